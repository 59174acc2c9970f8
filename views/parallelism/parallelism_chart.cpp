// SPDX-License-Identifier: Apache-2.0
#include "views/parallelism/parallelism_chart.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QSvgGenerator>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/round_step.h"
#include "views/common/section_head.h"
#include "views/parallelism/parallelism_scale.h"

namespace turnpoint::views {

namespace {

constexpr double kTop = 34, kBottom = 44, kBottomLow = 27, kLeft = 62, kRight = 20, kPriceRight = 66, kNames = 108;
constexpr double kMisfitRow = 34, kLow = 210;

}  // namespace

double ParallelismChart::Scale::x(double devices) const {
  return plot.left() + plot.width() * (std::log2(devices) - left) / (right - left);
}

double ParallelismChart::Scale::y(double value) const {
  const double height = plot.bottom() - top;
  if (!logarithmic) return plot.bottom() - height * (value - low) / (high - low);
  return plot.bottom() - height * std::log(std::max(value, low) / low) / std::log(high / low);
}

QRectF ParallelismChart::Scale::column(const std::vector<int>& counts, std::size_t index) const {
  const double here = x(counts[index]);
  const double half = (x(2) - x(1)) / 2;
  const double before = index > 0 ? (x(counts[index - 1]) + here) / 2 : std::max(plot.left(), here - half);
  const double after =
      index + 1 < counts.size() ? (here + x(counts[index + 1])) / 2 : std::min(plot.right(), here + half);
  return {before, plot.top(), after - before, plot.height()};
}

std::vector<double> ParallelismChart::Scale::ticks() const {
  std::vector<double> list;
  if (!logarithmic) {
    for (int i = 0; i <= intervals; ++i) list.push_back(low + i * step);
    return list;
  }
  const bool wide = high / low > 300;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if ((digit == 1 || !wide) && digit * power >= low * (1 - 1e-9) && digit * power <= high * (1 + 1e-9))
        list.push_back(digit * power);
  return list;
}

ParallelismChart::ParallelismChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("parallelism_chart"));
  setMinimumSize(320, 150);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Time against the number of devices"));
}

void ParallelismChart::set_data(ParallelismData data) {
  if (data == data_) return;
  data_ = std::move(data);
  if (std::find(data_.counts.begin(), data_.counts.end(), picked_) == data_.counts.end()) picked_ = 0;
  setAccessibleDescription(describe(data_));
  update();
}

void ParallelismChart::set_throughput(bool on) {
  throughput_ = on;
  update();
}

void ParallelismChart::set_logarithmic(bool on) {
  logarithmic_ = on;
  update();
}

void ParallelismChart::set_picked(int devices) {
  if (devices == picked_) return;
  picked_ = devices;
  emit count_picked(picked_);
  update();
}

double ParallelismChart::value(const ParallelismPoint& point) const {
  if (throughput_) return data_.samples(point) / point.time_s;
  return data_.largest_batch ? data_.samples(point) : point.time_s;
}

ParallelismChart::Scale ParallelismChart::scale_for(QSizeF size) const {
  Scale scale;
  double largest = 0, smallest = 0, price = 0;
  bool names = false, misfits = false;
  for (const ParallelismLine& line : data_.lines)
    for (const ParallelismPoint& point : line.points) {
      misfits = misfits || (point.state == ParallelismPoint::State::does_not_fit && !all_misfit(point.devices));
      if (!point.fits()) continue;
      largest = std::max(largest, value(point));
      smallest = smallest > 0 ? std::min(smallest, value(point)) : value(point);
      if (const auto cost = data_.price(point); cost && &line == data_.subject()) price = std::max(price, *cost);
      names = true;
    }
  if (!rising()) scale.unit = time_unit_for(largest);
  scale.plot = QRectF(kLeft, kTop, std::max(80.0, size.width() - kLeft - (price > 0 ? kPriceRight : kRight)),
                      std::max(60.0, size.height() - kTop - (size.height() < kLow ? kBottomLow : kBottom)));
  scale.captioned = size.height() >= kLow;
  scale.top = scale.plot.top() + (misfits ? std::min(kMisfitRow, scale.plot.height() / 3) : 0);
  const double first = data_.counts.empty() ? 0 : std::log2(data_.counts.front());
  const double last = data_.counts.empty() ? 1 : std::log2(data_.counts.back());
  // Half a column on either side, and room for the names at the lines' ends.
  const double room = names ? std::min(kNames / scale.plot.width(), 0.3) : 0;
  const double columns = last - first + 1;
  scale.left = first - 0.5;
  scale.right = scale.left + std::max(columns, (columns - 0.5) / (1 - room));
  scale.logarithmic = logarithmic_ && smallest > 0;
  if (scale.logarithmic) {
    scale.low = smallest / 1.3;
    scale.high = largest * 1.6;
    scale.intervals = 4;
  } else {
    scale.intervals = size.height() < 260 ? 3 : 5;
    scale.step =
        round_tick_step((largest > 0 ? largest * 1.06 : 1) * (rising() ? 1 : scale.unit.per_second) / scale.intervals) /
        (rising() ? 1 : scale.unit.per_second);
    scale.high = scale.step * scale.intervals;
  }
  if (price > 0) scale.price_high = round_tick_step(price * 1.06 / scale.intervals) * scale.intervals;
  return scale;
}

bool ParallelismChart::all_misfit(int devices) const {
  const ParallelismPoint* point = data_.subject() ? data_.subject()->at(devices) : nullptr;
  if (!point || point->state != ParallelismPoint::State::does_not_fit) return false;
  return std::none_of(data_.lines.begin(), data_.lines.end(), [&](const ParallelismLine& line) {
    const ParallelismPoint* other = line.at(devices);
    return other && other->fits();
  });
}

int ParallelismChart::count_at(QPointF position) const {
  if (!data_.nothing.isEmpty()) return 0;
  const Scale scale = scale_for(size());
  if (position.y() < scale.plot.top() - 8) return 0;
  for (std::size_t i = 0; i < data_.counts.size(); ++i) {
    const QRectF column = scale.column(data_.counts, i);
    if (position.x() >= column.left() && position.x() < column.right()) return data_.counts[i];
  }
  return 0;
}

QPointF ParallelismChart::position_of(const ParallelismPoint& point) const {
  const Scale scale = scale_for(size());
  return {scale.x(point.devices), scale.y(value(point))};
}

QRectF ParallelismChart::plot_area() const { return scale_for(size()).plot; }

bool ParallelismChart::save_svg(const QString& path) const {
  QSvgGenerator svg;
  svg.setFileName(path);
  svg.setSize(size());
  svg.setViewBox(rect());
  svg.setTitle(tr("Parallelism"));
  svg.setDescription(describe(data_));
  QPainter painter;
  if (!painter.begin(&svg)) return false;
  painter.setFont(font());
  paint(painter, size());
  return painter.end();
}

void ParallelismChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  paint(painter, size());
}

void ParallelismChart::mouseMoveEvent(QMouseEvent* event) {
  const int count = count_at(event->position());
  if (count != hovered_) {
    hovered_ = count;
    update();
  }
  if (count > 0)
    QToolTip::showText(event->globalPosition().toPoint(), column_text(data_, count), this);
  else
    QToolTip::hideText();
}

void ParallelismChart::leaveEvent(QEvent*) {
  hovered_ = 0;
  update();
}

void ParallelismChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) set_picked(count_at(event->position()));
}

void ParallelismChart::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int count = count_at(event->position()); count > 0 && event->button() == Qt::LeftButton) {
    set_picked(count);
    emit count_requested(count);
  }
}

void ParallelismChart::keyPressEvent(QKeyEvent* event) {
  const auto& counts = data_.counts;
  const auto step = [&](int by) {
    if (counts.empty()) return;
    const auto at = std::find(counts.begin(), counts.end(), picked_ > 0 ? picked_ : data_.devices);
    const auto index = at == counts.end() ? 0 : static_cast<int>(at - counts.begin()) + by;
    set_picked(counts[static_cast<std::size_t>(std::clamp(index, 0, static_cast<int>(counts.size()) - 1))]);
  };
  switch (event->key()) {
    case Qt::Key_Left: step(-1); break;
    case Qt::Key_Right: step(1); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (picked_ > 0) emit count_requested(picked_);
      break;
    case Qt::Key_Escape: set_picked(0); break;
    default: QWidget::keyPressEvent(event);
  }
}

}  // namespace turnpoint::views
