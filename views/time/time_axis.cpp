// SPDX-License-Identifier: Apache-2.0
#include "views/time/time_axis.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kMargin = 0.02;    // of the span, beyond either end of the schedule
constexpr double kDeepest = 1e-11;  // of the makespan; doubles still tell pixels apart there
constexpr int kMostDigits = 6;      // of an absolute label
constexpr QChar kNoBreak(0x00A0);

double round_step(double least) {
  if (!(least > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * (1 - 1e-12)) return digit * power;
  return 10 * power;
}

TimeUnit unit_of(double seconds) {
  if (seconds >= 1) return {1, QStringLiteral("s")};
  if (seconds >= 1e-3) return {1e3, QStringLiteral("ms")};
  if (seconds >= 1e-6) return {1e6, QString(QChar(0x00B5)) + u's'};
  if (seconds >= 1e-9 || seconds == 0) return {1e9, QStringLiteral("ns")};
  return {1e12, QStringLiteral("ps")};
}

int decimals_for(const TimeUnit& unit, double resolution_s) {
  const double digits = -std::log10(resolution_s * unit.per_second);
  return std::clamp(static_cast<int>(std::ceil(digits - 1e-9)), 0, 9);
}

}  // namespace

void TimeView::set_makespan(double seconds) {
  makespan_ = std::isfinite(seconds) && seconds > 0 ? seconds : 0;
  fit();
}

double TimeView::least_span() const { return makespan_ > 0 ? makespan_ * kDeepest : 1; }

void TimeView::fit() {
  fitted_ = true;
  from_ = 0;
  to_ = makespan_ > 0 ? makespan_ : 1;
}

void TimeView::show(double from, double to) {
  if (!(to >= from)) std::swap(from, to);
  const double middle = (from + to) / 2, half = std::max(to - from, least_span()) / 2;
  from_ = middle - half, to_ = middle + half;
  fitted_ = false;
  clamp();
}

void TimeView::zoom(double factor, double still) {
  if (makespan_ <= 0 || !(factor > 0)) return;
  const double span = to_ - from_;
  const double wanted = std::clamp(span / factor, least_span(), makespan_ * (1 + 2 * kMargin));
  const double share = (still - from_) / span;
  from_ = still - wanted * share;
  to_ = from_ + wanted;
  fitted_ = false;
  clamp();
}

void TimeView::pan(double seconds) {
  from_ += seconds, to_ += seconds;
  fitted_ = false;
  clamp();
}

void TimeView::clamp() {
  if (makespan_ <= 0) return fit();
  const double span = std::min(to_ - from_, makespan_ * (1 + 2 * kMargin));
  if (span >= makespan_ * (1 - 1e-9)) {
    if (span <= makespan_ * (1 + 1e-9)) return fit();
  }
  const double margin = span * kMargin;
  // What is shown of the outside is at most a margin, and both margins at the widest.
  const double least = -std::max(margin, span - makespan_ - margin);
  const double most = std::max(makespan_ + margin - span, least);
  from_ = std::clamp(from_, least, most);
  to_ = from_ + span;
}

bool TimeView::reveal(double from, double to) {
  const double span = to_ - from_, least = span * 1e-9;  // an end that was computed from a pixel is in sight
  if (from >= from_ - least && to <= to_ + least) return false;
  if (to - from > span * 0.9) {
    const double pad = (to - from) * 0.1;
    show(from - pad, to + pad);
  } else {
    const double middle = (from + to) / 2;
    show(middle - span / 2, middle + span / 2);
  }
  return true;
}

TimeTicks time_ticks(const TimeWindow& window, double least_pixels) {
  TimeTicks ticks;
  if (!(window.span() > 0) || !(window.width > 0)) return ticks;
  ticks.step = round_step(window.per_pixel() * std::max(least_pixels, 1.0));
  const double power = std::pow(10, std::floor(std::log10(ticks.step) + 1e-9));
  ticks.parts = std::lround(ticks.step / power) == 2 ? 4 : 5;
  const double low = std::max(window.from, 0.0);
  const double last = std::floor(window.to / ticks.step + 1e-9);
  const double begin = std::ceil(low / ticks.step - 1e-9);
  ticks.first = begin * ticks.step;
  ticks.count = static_cast<int>(std::clamp(last - begin + 1, 0.0, 10000.0));
  const double largest = std::max(std::abs(window.to), ticks.step);
  if (largest / ticks.step >= std::pow(10, kMostDigits)) {
    const double unit_step = std::pow(10, std::ceil(std::log10(window.span())));
    ticks.base_s = std::floor(low / unit_step) * unit_step;
    ticks.base_text = instant_text(ticks.base_s, unit_step);
  }
  const double shown = largest - ticks.base_s;
  ticks.unit = unit_of(shown);
  // 1 000 ms rather than 1.000 s while the steps are milliseconds.
  if (shown < 10 && ticks.unit.per_second == 1 && ticks.step < 1) ticks.unit = {1e3, QStringLiteral("ms")};
  ticks.decimals = decimals_for(ticks.unit, ticks.step);
  return ticks;
}

QString TimeTicks::label(int index) const {
  const double value = (at(index) - base_s) * unit.per_second;
  QString text = grouped_number(value, decimals);
  if (!base_text.isEmpty()) text.prepend(u'+');
  return index == 0 ? text + kNoBreak + unit.name : text;
}

QRectF tick_label_rect(const TimeTicks& ticks, int index, const TimeWindow& window, const QFontMetricsF& metrics,
                       double low, double high, double top) {
  const QString text = ticks.label(index);
  const double wide = metrics.horizontalAdvance(text);
  const double number =
      index == 0 ? metrics.horizontalAdvance(text.left(text.size() - ticks.unit.name.size() - 1)) : wide;
  const double left = window.x(ticks.at(index)) - number / 2;
  return {std::clamp(left, low, std::max(low, high - wide)), top, wide + 1, metrics.height()};
}

QString instant_text(double seconds, double resolution_s) {
  const TimeUnit unit = unit_of(std::abs(seconds) >= 1 && std::abs(seconds) < 10 ? 0.5 : std::abs(seconds));
  const int decimals = resolution_s > 0 ? decimals_for(unit, resolution_s) : 3;
  return grouped_number(seconds * unit.per_second, seconds == 0 ? 0 : decimals) + kNoBreak + unit.name;
}

}  // namespace turnpoint::views
