// SPDX-License-Identifier: Apache-2.0
// The central chart: memory against iteration time. Reads and writes the shared selection; knows no search.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>

#include "views/frontier/chart_data.h"

class QCustomPlot;

namespace turnpoint::views {

class SelectionModel;

/// Keyboard: left and right along the picked method's points to the next that looks different, with Shift to the very
/// next, up and down to the next slower and faster method, Home least memory, End least time, T turning point,
/// + and - zoom, Ctrl+0 fits, C copies the point. Mouse: click picks, drag pans, wheel zooms (Shift or over an axis:
/// that axis only), double click fits, dragging the memory line moves it. Markers that cover each other spread out
/// under the pointer.
class FrontierChart : public QWidget {
  Q_OBJECT
 public:
  explicit FrontierChart(QWidget* parent = nullptr);
  ~FrontierChart() override;

  void set_selection(SelectionModel* selection);
  /// New data never touches a view the user has zoomed.
  void set_data(ChartData data);
  const ChartData& data() const;

  void set_parts_visible(bool on);
  void set_others_visible(bool on);
  void set_pinned_visible(bool on);
  void set_log_time(bool on);
  bool log_time() const;
  void set_emphasised(const std::string& method);
  /// Something lies over so much of the top: words move below it, axes stay.
  void keep_clear(int height);

  void fit();
  void zoom(double factor);  ///< above 1 shows less; the picked plan, if it is in view, keeps its place
  bool user_zoomed() const { return user_zoomed_; }

  /// How far a step goes: to the next plan that looks different at this zoom, or to the very next one.
  enum class Stride { visible, every };
  void step_pick(int steps, Stride stride = Stride::visible);
  /// To another method's plan: by falling time of the methods' fastest plans.
  void step_method(int steps);
  void pick_first();
  void pick_last();
  void pick_turning_point();
  void copy_point();

  /// As it is on screen, under the model's and the hardware's name.
  bool save_png(const QString& path, double scale = 2);
  bool save_svg(const QString& path);
  bool save_pdf(const QString& path);
  /// Figures as axes and words have them now, for whoever repeats them beside the chart.
  QString memory_words(std::int64_t bytes) const;
  QString time_words(double seconds) const;
  /// The chart in words.
  QString describe() const;

  // For tests and benchmarks.
  /// Whose name stands there, of the plans out of view; in this widget.
  std::optional<PickedPoint> named_at_edge(QPointF position) const;
  int replots() const { return replots_; }
  QPoint position_of(const ResultPoint& point) const;  ///< in this widget
  QPoint limit_position() const;
  QRect plot_area() const;
  const std::vector<QRectF>& words() const;  ///< where words are that might cover something, in this widget
  ChartRange visible_range() const;

 signals:
  /// The memory line was dragged to `bytes`; one `gesture` per drag.
  void memory_limit_dragged(qint64 bytes, quint64 gesture);
  void view_changed();

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Private;
  enum class Drag { none, pan, limit };

  void apply_theme();
  void rebuild();
  void fit_if_allowed();
  void set_range(const ChartRange& range);
  void redraw_overlay();
  void move_to(QPointF position, Qt::MouseButtons buttons);
  void press(QPointF position);
  void release(QPointF position);
  void wheel(QPointF position, double steps, Qt::KeyboardModifiers modifiers);
  void zoom_at(QPointF position, double factor, bool horizontal, bool vertical);
  bool on_limit(QPointF position) const;
  void step_marker(int steps);
  std::optional<PickedPoint> under(QPointF position);
  void close_fan();
  QPointF pixel_of(const ResultPoint& point) const;
  bool as_picture(const std::function<bool()>& save);
  bool write_svg(const QString& path);
  bool write_pdf(const QString& path);

  std::unique_ptr<Private> p_;
  QCustomPlot* plot_;
  bool user_zoomed_ = false;
  int replots_ = 0;
  Drag drag_ = Drag::none;
  QPointF pressed_at_, last_at_;
  bool moved_ = false;
  quint64 gesture_ = 0;
};

}  // namespace turnpoint::views
