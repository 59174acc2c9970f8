// SPDX-License-Identifier: Apache-2.0
#include "app/scenario_words.h"

#include <QStringList>

#include "views/common/format.h"

namespace turnpoint::app {

QString words_of_other(const Scenario& other, const Scenario& present) {
  constexpr int kMost = 2;
  QStringList words;
  if (other.model->name != present.model->name) words << views::to_qt(other.model->name);
  if (other.cluster->title != present.cluster->title) words << views::to_qt(other.cluster->title);
  for (const OptionRecord& option : scenario_options()) {
    const double value = get_option(other.settings, option.key);
    if (value == get_option(present.settings, option.key) || option.key == "price-per-hour") continue;
    const QString text = views::to_qt(option.text) + u' ';
    words << text + (option.key.ends_with("-scale") ? views::factor_text(value)
                                                    : views::to_qt(format_option(option, value)));
  }
  if (words.size() > kMost) words = words.mid(0, kMost) << QStringLiteral("\u2026");
  return words.join(QStringLiteral(", "));
}

}  // namespace turnpoint::app
