// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/frontier_chart.h"

#include <QMouseEvent>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/frontier/chart_graphs.h"
#include "views/frontier/chart_private.h"
#include "views/frontier/point_finder.h"

namespace turnpoint::views {

namespace {
constexpr double kPick_px = 24, kLimit_px = 5, kClick_px = 4, kFan_px = 14;
constexpr int kTop = 34, kRight = 22, kBottom = 46, kLeft = 56, kPictureTitle = 24;
}  // namespace

FrontierChart::FrontierChart(QWidget* parent)
    : QWidget(parent), p_(std::make_unique<Private>()), plot_(new QCustomPlot(this)) {
  setObjectName(QStringLiteral("frontier_chart"));
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Memory and time of all plans"));
  setMinimumSize(360, 180);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(plot_);
  plot_->setFocusPolicy(Qt::NoFocus);
  plot_->setNoAntialiasingOnDrag(false);
  plot_->installEventFilter(this);
  plot_->setMouseTracking(true);

  plot_->addLayer(QStringLiteral("backdrop"), plot_->layer(QStringLiteral("background")), QCustomPlot::limAbove);
  plot_->addLayer(QStringLiteral("pinned"), plot_->layer(QStringLiteral("grid")), QCustomPlot::limAbove);
  plot_->addLayer(QStringLiteral("parts"), plot_->layer(QStringLiteral("pinned")), QCustomPlot::limAbove);
  plot_->addLayer(QStringLiteral("labels"), plot_->layer(QStringLiteral("axes")), QCustomPlot::limAbove);
  plot_->layer(QStringLiteral("overlay"))->setMode(QCPLayer::lmBuffered);
  p_->x_ticker = QSharedPointer<NumberTicker>::create(&p_->state);
  p_->y_ticker = QSharedPointer<NumberTicker>::create(&p_->state);
  plot_->xAxis->setTicker(p_->x_ticker);
  plot_->yAxis->setTicker(p_->y_ticker);
  plot_->xAxis->grid()->setVisible(false);
  plot_->axisRect()->setAutoMargins(QCP::msNone);
  new BackdropItem(plot_, QStringLiteral("backdrop"), &p_->state);
  new LabelItem(plot_, QStringLiteral("labels"), &p_->state);
  p_->overlay = new OverlayItem(plot_, QStringLiteral("overlay"), &p_->state);
  connect(plot_, &QCustomPlot::afterReplot, this, [this] {
    ++replots_;
    if (plot_->axisRect()->size() != p_->built_for) rebuild();  // on more pixels more can be told apart
  });
  apply_theme();
}

FrontierChart::~FrontierChart() = default;

const ChartData& FrontierChart::data() const { return p_->state.data; }
bool FrontierChart::log_time() const { return p_->state.log_time; }

void FrontierChart::set_selection(SelectionModel* selection) {
  p_->selection = selection;
  p_->state.selection = selection;
  connect(selection, &SelectionModel::point_changed, this, &FrontierChart::redraw_overlay);
  connect(selection, &SelectionModel::hovered_point_changed, this, &FrontierChart::redraw_overlay);
}

void FrontierChart::apply_theme() {
  const ThemeColors& colors = theme_colors(palette());
  p_->state.colors = &colors;
  p_->state.font = font();
  plot_->setBackground(colors.base);
  const QFont small = secondary_font(font());
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
    axis->setBasePen(QPen(colors.axis));
    axis->setTickPen(QPen(colors.axis));
    axis->setSubTickPen(Qt::NoPen);
    axis->setTickLabelFont(small);
    axis->setTickLabelColor(colors.secondary);
    axis->setTickLengthIn(0);
    axis->setTickLengthOut(axis == plot_->xAxis ? 4 : 0);
    axis->setTickLabelPadding(5);
  }
  plot_->yAxis->grid()->setPen(QPen(colors.grid));
  plot_->yAxis->grid()->setZeroLinePen(Qt::NoPen);
  plot_->yAxis->grid()->setSubGridVisible(false);
  rebuild();
}

void FrontierChart::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) apply_theme();
}

void FrontierChart::set_data(ChartData data) {
  if (data == p_->state.data) return;
  p_->state.data = std::move(data);
  p_->state.units = units_for(p_->state.data);
  fit_if_allowed();
  rebuild();
  setAccessibleDescription(describe());
}

void FrontierChart::rebuild() {
  p_->state.fanned.reset();  // its markers have moved
  rebuild_graphs(*plot_, p_->state);
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) axis->setTickLabels(!p_->state.empty());
  p_->built_for = plot_->axisRect()->size();
  // Room for the widest tick label, which depends on unit and range.
  const QFontMetrics metrics(plot_->yAxis->tickLabelFont());
  const double top = std::max(std::abs(plot_->yAxis->range().upper), 1.0);
  const int left = std::max(kLeft, metrics.horizontalAdvance(grouped_number(top, top < 10 ? 1 : 0)) + 20);
  const int top_margin = kTop + (p_->state.picture ? kPictureTitle : 0);
  plot_->axisRect()->setMargins(QMargins(left, top_margin, kRight, kBottom));
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void FrontierChart::fit_if_allowed() {
  if (user_zoomed_) return;
  const auto wanted =
      fitted_range(p_->state.data, p_->state.units, p_->state.show_others, p_->state.show_pinned, p_->state.log_time);
  if (!wanted) return;
  // Axes that breathe with every slider step make curves impossible to compare: keep a range that still serves.
  const ChartRange now = visible_range();
  ChartRange next = *wanted;
  const auto keeps = [](double have, double want) { return have >= want * 0.999 && have <= want * 1.35; };
  if (keeps(now.x_high, next.x_high) && next.x_low == 0 && now.x_low == 0) next.x_high = now.x_high;
  const double span = next.x_high - next.x_low;
  if (next.x_low > 0 && now.x_low > 0 && std::abs(now.x_low - next.x_low) < 0.2 * span &&
      std::abs(now.x_high - next.x_high) < 0.2 * span) {
    next.x_low = now.x_low;
    next.x_high = std::max(now.x_high, next.x_high);
  }
  if (keeps(now.y_high, next.y_high)) next.y_high = now.y_high;
  if (p_->state.log_time && now.y_low <= next.y_low && now.y_low >= next.y_low / 1.5) next.y_low = now.y_low;
  set_range(next);
}

void FrontierChart::set_range(const ChartRange& range) {
  plot_->xAxis->setRange(range.x_low, range.x_high);
  plot_->yAxis->setRange(range.y_low, range.y_high);
  emit view_changed();
}

void FrontierChart::fit() {
  user_zoomed_ = false;
  if (const auto range = fitted_range(p_->state.data, p_->state.units, p_->state.show_others, p_->state.show_pinned,
                                      p_->state.log_time))
    set_range(*range);
  rebuild();
}

void FrontierChart::set_parts_visible(bool on) {
  p_->state.show_parts = on;
  rebuild();
}

void FrontierChart::set_others_visible(bool on) {
  p_->state.show_others = on;
  fit_if_allowed();
  rebuild();
}

void FrontierChart::set_pinned_visible(bool on) {
  p_->state.show_pinned = on;
  fit_if_allowed();
  rebuild();
}

void FrontierChart::set_emphasised(const std::string& method) {
  p_->state.emphasised = method;
  rebuild();
}

void FrontierChart::keep_clear(int height) {
  if (height == p_->state.covered_px) return;
  p_->state.covered_px = height;
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void FrontierChart::set_log_time(bool on) {
  if (on == p_->state.log_time) return;
  p_->state.log_time = on;
  p_->y_ticker->logarithmic = on;
  plot_->yAxis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  fit();
}

void FrontierChart::redraw_overlay() {
  // Hidden or never shown: the buffer does not exist yet and the next replot draws it anyway.
  if (isVisible())
    plot_->layer(QStringLiteral("overlay"))->replot();
  else
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void FrontierChart::zoom(double factor) {
  // What is picked is what one wants to see more of; it keeps its place, as does what is under the wheel.
  const QRectF frame(plot_->axisRect()->rect());
  QPointF around = frame.center();
  if (const ResultPoint* picked = p_->state.find_point(p_->selection ? p_->selection->point() : std::nullopt)) {
    const QPointF at = pixel_of(*picked);
    if (frame.contains(at)) around = at;
  }
  zoom_at(around, factor, true, true);
}

void FrontierChart::zoom_at(QPointF position, double factor, bool horizontal, bool vertical) {
  user_zoomed_ = true;
  if (horizontal) plot_->xAxis->scaleRange(1 / factor, std::max(0.0, plot_->xAxis->pixelToCoord(position.x())));
  if (vertical) plot_->yAxis->scaleRange(1 / factor, plot_->yAxis->pixelToCoord(position.y()));
  rebuild();
  emit view_changed();
}

void FrontierChart::wheel(QPointF position, double steps, Qt::KeyboardModifiers modifiers) {
  const QRectF area(plot_->axisRect()->rect());
  const bool over_x = position.y() > area.bottom(), over_y = position.x() < area.left();
  const bool single = over_x || over_y || (modifiers & Qt::ShiftModifier);
  zoom_at(position, std::pow(1.15, steps), !single || over_x || (!over_y && (modifiers & Qt::ShiftModifier)),
          !single || over_y);
}

bool FrontierChart::on_limit(QPointF position) const {
  if (p_->state.data.memory_limit <= 0 || !p_->state.data.subject()) return false;
  const QRectF area(plot_->axisRect()->rect());
  const double x = plot_->xAxis->coordToPixel(p_->state.units.x(static_cast<double>(p_->state.data.memory_limit)));
  return area.contains(position) && std::abs(position.x() - x) <= kLimit_px;
}

void FrontierChart::press(QPointF position) {
  setFocus(Qt::MouseFocusReason);
  pressed_at_ = last_at_ = position;
  moved_ = false;
  drag_ = on_limit(position) ? Drag::limit : Drag::pan;
  static quint64 last_gesture = quint64(1) << 40;  // apart from the sliders' numbers
  gesture_ = ++last_gesture;
}

void FrontierChart::move_to(QPointF position, Qt::MouseButtons buttons) {
  if (drag_ != Drag::none && (buttons & Qt::LeftButton)) {
    moved_ = moved_ || (position - pressed_at_).manhattanLength() > kClick_px;
    if (!moved_) return;
    if (drag_ == Drag::limit) {
      const double bytes = plot_->xAxis->pixelToCoord(position.x()) * p_->state.units.bytes_per_unit;
      if (bytes > 0) emit memory_limit_dragged(std::llround(bytes), gesture_);
      return;
    }
    user_zoomed_ = true;
    setCursor(Qt::ClosedHandCursor);
    for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
      const bool across = axis == plot_->xAxis;
      const double before = axis->pixelToCoord(across ? last_at_.x() : last_at_.y()),
                   after = axis->pixelToCoord(across ? position.x() : position.y());
      if (axis->scaleType() == QCPAxis::stLogarithmic)
        axis->setRange(axis->range().lower * before / after, axis->range().upper * before / after);
      else
        axis->moveRange(before - after);
    }
    last_at_ = position;
    rebuild();
    emit view_changed();
    return;
  }
  const bool limit = on_limit(position);
  if (limit != p_->state.limit_hovered) {
    p_->state.limit_hovered = limit;
    plot_->replot(QCustomPlot::rpQueuedReplot);
  }
  setCursor(limit                     ? Qt::SplitHCursor
            : named_at_edge(position) ? Qt::PointingHandCursor
                                      : Qt::ArrowCursor);
  if (p_->selection) p_->selection->hover_point(under(position));
}

std::optional<PickedPoint> FrontierChart::named_at_edge(QPointF position) const {
  for (const EdgeName& name : p_->state.edge_names)
    if (name.at.contains(position)) return name.point;
  return std::nullopt;
}

std::optional<PickedPoint> FrontierChart::under(QPointF position) {
  const auto pixel = [this](const ResultPoint& p) { return pixel_of(p); };
  const auto nearest = find_nearest(p_->state, *plot_, position, kPick_px);
  auto& fanned = p_->state.fanned;
  if (fanned) {
    const MarkerFan fan = fan_of(*fanned, QRectF(plot_->axisRect()->rect()));
    if (fan.covers(position)) {
      // In the middle of the fan all are equally near: what lies under the pointer itself is meant there.
      const bool moved_out = QLineF(fan.centre, position).length() > fan.radius / 3;
      return moved_out || !nearest ? fanned->members[fan.nearest(position)] : nearest;
    }
    fanned.reset();
    redraw_overlay();
  }
  if (!nearest) return nearest;
  for (const MarkerGroup& group : marker_groups(p_->state, pixel)) {
    const bool of_it = std::find(group.members.begin(), group.members.end(), *nearest) != group.members.end();
    if (!of_it || group.members.size() < 2 || QLineF(group.at, position).length() > kFan_px) continue;
    fanned = group;
    redraw_overlay();
  }
  return nearest;
}

void FrontierChart::close_fan() {
  if (!p_->state.fanned) return;
  p_->state.fanned.reset();
  redraw_overlay();
}

void FrontierChart::release(QPointF position) {
  const Drag ended = drag_;
  drag_ = Drag::none;
  setCursor(Qt::ArrowCursor);
  if (ended != Drag::pan || moved_ || !p_->selection) return;
  if (const auto named = named_at_edge(position)) return p_->selection->pick_point(named);
  if (const auto nearest = under(position)) p_->selection->pick_point(nearest);
}

bool FrontierChart::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_) return QWidget::eventFilter(watched, event);
  switch (event->type()) {
    case QEvent::MouseButtonPress:
      if (auto* mouse = static_cast<QMouseEvent*>(event); mouse->button() == Qt::LeftButton) press(mouse->position());
      return true;
    case QEvent::MouseMove:
      move_to(static_cast<QMouseEvent*>(event)->position(), static_cast<QMouseEvent*>(event)->buttons());
      return true;
    case QEvent::MouseButtonRelease:
      if (auto* mouse = static_cast<QMouseEvent*>(event); mouse->button() == Qt::LeftButton) release(mouse->position());
      return true;
    case QEvent::MouseButtonDblClick: fit(); return true;
    case QEvent::Wheel: {
      auto* turned = static_cast<QWheelEvent*>(event);
      const QPoint angle = turned->angleDelta();  // Shift turns the wheel sideways on some platforms
      wheel(turned->position(), (angle.y() != 0 ? angle.y() : angle.x()) / 120.0, turned->modifiers());
      return true;
    }
    case QEvent::Leave:
      close_fan();
      if (p_->selection) p_->selection->hover_point(std::nullopt);
      return false;
    default: return QWidget::eventFilter(watched, event);
  }
}

QString FrontierChart::describe() const {
  const ChartSeries* series = p_->state.data.subject();
  if (!series) return tr("No plans yet");
  if (p_->state.data.markers_only()) {
    QStringList answers;
    for (const auto& s : p_->state.data.series)
      if (s.result && !s.result->points.empty())
        answers << QStringLiteral("%1: %2, %3")
                       .arg(s.title, memory_text(s.result->points.front().memory_bytes),
                            time_text(s.result->points.front().time_s));
    return answers.join(QStringLiteral(". "));
  }
  QStringList words{series->title + QStringLiteral(": ") +
                    counted(double(series->result->points.size()), tr("1 plan"), tr("%1 plans"))};
  if (p_->state.data.envelope) words << tr("The line: %1").arg(p_->state.data.envelope_words());
  const Result& told = p_->state.data.envelope ? *p_->state.data.envelope->result : *series->result;
  for (const auto& line : describe_turning_point(told)) words << with_groups(to_qt(line));
  return words.join(QStringLiteral(". "));
}

QString FrontierChart::memory_words(std::int64_t bytes) const {
  return p_->state.empty() ? memory_text(bytes)
                           : p_->state.units.memory_text(double(bytes), plot_->xAxis->range().size());
}

QString FrontierChart::time_words(double seconds) const {
  return p_->state.empty() ? time_text(seconds) : p_->state.units.time_text(seconds);
}

QPointF FrontierChart::pixel_of(const ResultPoint& point) const {
  return {plot_->xAxis->coordToPixel(p_->state.units.x(static_cast<double>(point.memory_bytes))),
          plot_->yAxis->coordToPixel(p_->state.units.y(point.time_s))};
}

QPoint FrontierChart::position_of(const ResultPoint& point) const {
  const QPointF at = pixel_of(point);
  return {static_cast<int>(std::lround(at.x())), static_cast<int>(std::lround(at.y()))};
}

QPoint FrontierChart::limit_position() const {
  const QRect area = plot_->axisRect()->rect();
  return {static_cast<int>(std::lround(
              plot_->xAxis->coordToPixel(p_->state.units.x(static_cast<double>(p_->state.data.memory_limit))))),
          area.center().y()};
}

QRect FrontierChart::plot_area() const { return plot_->axisRect()->rect(); }

const std::vector<QRectF>& FrontierChart::words() const { return p_->state.words; }

ChartRange FrontierChart::visible_range() const {
  return {plot_->xAxis->range().lower, plot_->xAxis->range().upper, plot_->yAxis->range().lower,
          plot_->yAxis->range().upper};
}

}  // namespace turnpoint::views
