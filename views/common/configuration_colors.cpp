// SPDX-License-Identifier: Apache-2.0
#include "views/common/configuration_colors.h"

#include <algorithm>
#include <utility>

namespace turnpoint::views {

namespace {

/// Lives as a child of the selection it belongs to.
class ColorsHolder : public QObject {
 public:
  using QObject::QObject;
  std::shared_ptr<ConfigurationColors> colors = std::make_shared<ConfigurationColors>();
};

}  // namespace

std::shared_ptr<ConfigurationColors> colors_of(QObject* selection) {
  for (QObject* child : selection->children())
    if (auto* holder = dynamic_cast<ColorsHolder*>(child)) return holder->colors;
  return (new ColorsHolder(selection))->colors;
}

void ConfigurationColors::set_model(const QString& key) {
  if (key == model_) return;
  *this = {};
  model_ = key;
}

void ConfigurationColors::update(const std::vector<Share>& shares) {
  ++tick_;
  const QHash<QString, int> before = std::exchange(active_, {});
  std::array<bool, kOwn> taken{};
  const auto count = std::min<std::size_t>(shares.size(), kOwn);
  std::vector<const QString*> homeless;
  // What is in sight keeps its colour; what comes back gets its old one if nobody has it now.
  for (const auto* known : {&before, &std::as_const(remembered_)}) {
    for (std::size_t i = 0; i < count; ++i) {
      const QString& configuration = shares[i].configuration;
      const int slot = known->value(configuration, kOther);
      if (active_.contains(configuration) || slot == kOther || taken[static_cast<std::size_t>(slot)]) continue;
      taken[static_cast<std::size_t>(slot)] = true;
      active_.insert(configuration, slot);
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!active_.contains(shares[i].configuration)) homeless.push_back(&shares[i].configuration);
  for (const QString* configuration : homeless) {
    // The colour that has been out of sight for longest confuses least.
    int best = -1;
    for (int slot = 0; slot < kOwn; ++slot) {
      const auto s = static_cast<std::size_t>(slot);
      if (!taken[s] && (best < 0 || last_used_[s] < last_used_[static_cast<std::size_t>(best)])) best = slot;
    }
    taken[static_cast<std::size_t>(best)] = true;
    active_.insert(*configuration, best);
    remembered_.insert(*configuration, best);
  }
  for (const int slot : std::as_const(active_)) last_used_[static_cast<std::size_t>(slot)] = tick_;
}

}  // namespace turnpoint::views
