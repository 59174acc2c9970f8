// SPDX-License-Identifier: Apache-2.0
// The picked plan's memory in the headline: its simulated peak as soon as that is known.
#include <QLabel>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::views {

void PlanPanel::set_figures(std::function<QString(std::int64_t)> memory, std::function<QString(double)> time) {
  memory_of_ = std::move(memory);
  time_of_ = std::move(time);
  refresh_figures();
}

void PlanPanel::refresh_figures() {
  if (!result_) return;
  if (time_->text() == time_of_(result_->points[index_].time_s) &&
      memory_->text() == memory_of_(peak_of_point().value_or(result_->points[index_].memory_bytes)))
    return;
  show_point();
  show_bars();
}

QString PlanPanel::part_text(std::int64_t bytes) const {
  const QString beside = memory_of_(bytes);
  const bool something =
      std::any_of(beside.begin(), beside.end(), [](QChar c) { return c.isDigit() && c != QLatin1Char('0'); });
  return something ? beside : memory_text(bytes);
}

void PlanPanel::set_peak(std::optional<std::int64_t> bytes) {
  if (peak_bytes_ == bytes) return;
  peak_bytes_ = bytes;
  show_peak();
  show_bars();
}

/// What is there at the peak alone: gathered weights, tensors that are computed again, workspaces. The plain sum has
/// none of it.
std::int64_t PlanPanel::passing_bytes() const {
  const auto peak = peak_of_point();
  return peak && plan_ ? std::max<std::int64_t>(0, *peak - plan_->cost.memory_bytes()) : 0;
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
  const QString memory = memory_of_(peak.value_or(point.memory_bytes));
  memory_->setText(memory);
  const std::int64_t limit = ratio_ && scenario_ ? scenario_->memory_limit_of(ratio_->fullest_device())
                             : result_->scenario ? result_->scenario->memory_limit()
                                                 : kUnlimitedBytes;
  memory_head_->set_value(limit == kUnlimitedBytes ? memory : tr("%1 of %2").arg(memory, memory_text(limit)));
  fit_head();
  const bool sums = result_->clock == Clock::additive && result_->scenario && result_->scenario->model;
  peak_->setVisible(sums);
  if (!sums) return;
  // Devices of a ratio plan have memory of their own: the one that lacks some need not be the fullest.
  const bool over = peak && (ratio_ ? result_->fits_by_peak && !point.fits : *peak > limit);
  const QString sum = memory_of_(point.memory_bytes);
  if (ratio_)
    peak_->setText(!peak  ? tr("Plain sum of the fullest device; peak not simulated yet")
                   : over ? tr("Peak of the fullest, simulated \u00b7 does not fit; plain sum %1").arg(sum)
                          : tr("Peak of the fullest device, simulated; plain sum %1").arg(sum));
  else
    peak_->setText(!peak  ? tr("Plain sum; peak not simulated yet")
                   : over ? tr("Peak, simulated \u00b7 does not fit; plain sum %1").arg(sum)
                          : tr("Peak, simulated; plain sum %1").arg(sum));
  const ThemeColors& colors = theme_colors(palette());
  QPalette tinted = palette();
  tinted.setColor(QPalette::WindowText, over ? colors.warning : colors.secondary);
  QFont weight = secondary_font(font());
  weight.setBold(over);
  peak_->setFont(weight);
  peak_->setPalette(tinted);
}

}  // namespace turnpoint::views
