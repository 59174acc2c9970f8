// SPDX-License-Identifier: Apache-2.0
#include "views/common/ratio_shares.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

/// Where a step of the scale ends and the next one begins; the part itself belongs to the step that is nearer a half.
constexpr double kStepEnds[RatioShares::kSteps - 1] = {0.25, 0.4, 0.48, 0.52, 0.6, 0.75};

double flop_per_second(const RatioPlan& plan, const Scenario& scenario, std::uint32_t first, std::uint32_t count) {
  double sum = 0;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const DeviceType& type = device_of(*scenario.cluster, plan.order[i]);
    sum += type.peak(scenario.settings.precision) * type.efficiency(scenario.settings.precision);
  }
  return sum;
}

/// By operator, an index into the plan's layers or RatioPlan::kNoLayer.
std::vector<std::uint32_t> layers_by_operator(const RatioPlan& plan, std::size_t operators) {
  std::vector<std::uint32_t> layers(operators, RatioPlan::kNoLayer);
  for (std::size_t o = 0; o < std::min(operators, plan.follows.size()); ++o)
    if (plan.follows[o] < plan.layers.size()) layers[o] = plan.follows[o];
  for (std::uint32_t l = 0; l < plan.layers.size(); ++l)
    if (plan.layers[l].op.index < operators) layers[plan.layers[l].op.index] = l;
  return layers;
}

}  // namespace

QString devices_text(const std::vector<std::uint32_t>& devices, const Cluster& cluster) {
  std::vector<std::pair<QString, int>> kinds;
  for (const std::uint32_t device : devices) {
    const QString name = to_qt(device_of(cluster, device).name);
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {name, 0});
    ++at->second;
  }
  QStringList texts;
  for (const auto& [name, count] : kinds) texts << (count == 1 ? name : QObject::tr("%1 × %2").arg(count).arg(name));
  return texts.join(QObject::tr(" and "));
}

QString devices_text(const RatioPlan& plan, const Cluster& cluster, std::uint32_t part, std::uint32_t first) {
  const auto begin = plan.order.begin() + std::ptrdiff_t(first);
  return devices_text(std::vector<std::uint32_t>(begin, begin + std::ptrdiff_t(plan.parts[part].devices)), cluster);
}

std::shared_ptr<const RatioShares> RatioShares::make(const RatioPlanPtr& plan, const ScenarioPtr& scenario) {
  if (!plan || plan->cuts.empty() || !scenario || !scenario->model || !scenario->cluster) return nullptr;
  const RatioPlan::Cut& cut = plan->cuts.front();
  const Model& model = *scenario->model;
  if (cut.share.size() != model.operators.size()) return nullptr;
  const auto [one, other] = plan->parts[cut.part].halves;
  const std::uint32_t here = plan->parts[one].devices, there = plan->parts[other].devices;
  const bool first = flop_per_second(*plan, *scenario, 0, here) >= flop_per_second(*plan, *scenario, here, there);
  auto shares = std::make_shared<RatioShares>();
  shares->stronger_ = devices_text(*plan, *scenario->cluster, one, 0);
  shares->weaker_ = devices_text(*plan, *scenario->cluster, other, here);
  if (!first) std::swap(shares->stronger_, shares->weaker_);
  for (std::size_t o = 0; o < cut.share.size(); ++o) {
    const auto& [loop, units] = cut.share[o];
    const auto& dims = model.operators[OperatorId(o)].dims;
    if (loop >= static_cast<int>(dims.size())) return nullptr;
    if (loop < 0) {
      shares->part_.push_back(kBoth);
      continue;
    }
    const std::int64_t all = dims[std::size_t(loop)].size;
    shares->part_.push_back(double(first ? units : all - units) / double(all));
  }
  const std::vector<std::uint32_t> layers = layers_by_operator(*plan, cut.share.size());
  for (std::uint32_t c = 0; c < plan->cuts.size() && shares->types_.size() < kMaxAxes; c = plan->cuts[c].next[0]) {
    auto& types = shares->types_.emplace_back(layers.size());
    for (std::size_t o = 0; o < layers.size() && o < plan->cuts[c].share.size(); ++o)
      if (layers[o] != RatioPlan::kNoLayer && plan->cuts[c].share[o].loop >= 0)
        if (const auto& type = plan->layers[layers[o]].type; c < type.size()) types[o] = type[c];
  }
  return shares;
}

std::optional<PartitionType> RatioShares::type(OperatorId op, std::size_t level) const {
  return level < types_.size() ? types_[level][op.index] : std::nullopt;
}

int RatioShares::step_of(double part) {
  if (part == kBoth) return kBothStep;
  int step = 0;
  while (step < kEven && part >= kStepEnds[step]) ++step;
  while (step >= kEven && step < kSteps - 1 && part > kStepEnds[step]) ++step;
  return step;
}

QString RatioShares::step_words(int step) {
  if (step == kBothStep) return QObject::tr("both halves do all of it");
  if (step == 0) return QObject::tr("below %1").arg(portion_text(kStepEnds[0]));
  if (step == kSteps - 1) return QObject::tr("above %1").arg(portion_text(kStepEnds[kSteps - 2]));
  return QObject::tr("%1 to %2").arg(portion_text(kStepEnds[step - 1]), portion_text(kStepEnds[step]));
}

QString RatioShares::range(double low, double high) {
  const QString one = portion_text(low), other = portion_text(high);
  return one == other ? one : one + QStringLiteral(" \u2013 ") + other;
}

QString RatioShares::words(OperatorId op) const { return words(std::span(&op, 1)); }

QString RatioShares::words(std::span<const OperatorId> ops) const {
  double low = 2, high = kBoth;
  for (const OperatorId op : ops)
    if (of(op) != kBoth) low = std::min(low, of(op)), high = std::max(high, of(op));
  if (high == kBoth) return step_words(kBothStep);
  return QObject::tr("%1 on %2, %3 on %4").arg(range(low, high), stronger_, range(1 - high, 1 - low), weaker_);
}

}  // namespace turnpoint::views
