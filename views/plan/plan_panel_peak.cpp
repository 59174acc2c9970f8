// SPDX-License-Identifier: Apache-2.0
// The picked plan's memory in the headline: its simulated peak as soon as that is known.
#include <QLabel>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::views {

void PlanPanel::set_peak(std::optional<std::int64_t> bytes) {
  peak_bytes_ = bytes;
  show_peak();
}

std::optional<std::int64_t> PlanPanel::peak_of_point() const {
  if (!result_ || result_->clock != Clock::additive || !result_->scenario || !result_->scenario->model)
    return std::nullopt;
  const auto& known = result_->points[index_].simulated_memory_bytes;
  return known ? known : peak_bytes_;
}

/// The headline is the peak, which decides what fits, as soon as it is known; the plain sum stands below it.
void PlanPanel::show_peak() {
  if (!result_) return;
  const ResultPoint& point = result_->points[index_];
  const std::optional<std::int64_t> peak = peak_of_point();
  memory_->setText(memory_text(peak.value_or(point.memory_bytes)));
  fit_head();
  const bool sums = result_->clock == Clock::additive && result_->scenario && result_->scenario->model;
  peak_->setVisible(sums);
  if (!sums) return;
  const bool over = peak && *peak > result_->scenario->memory_limit();
  peak_->setText(!peak  ? tr("Plain sum; peak not simulated yet")
                 : over ? tr("Peak, simulated \u00b7 does not fit; plain sum %1").arg(memory_text(point.memory_bytes))
                        : tr("Peak, simulated; plain sum %1").arg(memory_text(point.memory_bytes)));
  const ThemeColors& colors = theme_colors(palette());
  QPalette tinted = palette();
  tinted.setColor(QPalette::WindowText, over ? colors.warning : colors.secondary);
  QFont weight = secondary_font(font());
  weight.setBold(over);
  peak_->setFont(weight);
  peak_->setPalette(tinted);
}

}  // namespace turnpoint::views
