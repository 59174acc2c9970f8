// SPDX-License-Identifier: Apache-2.0
// Paints a TaskScene: the same code for the screen, for pictures and for the mini-map. Never more primitives than
// pixels: what is too small for its inside is painted as one box with its shares, lines and texts come when there is
// room for them.
#pragma once

#include <QFont>
#include <QFontMetrics>
#include <QPainter>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "views/graph/scene_canvas.h"
#include "views/graph/task_scene.h"
#include "views/graph/told_apart.h"

namespace turnpoint::views {

struct TaskPaint : SceneView {
  TaskColor color = TaskColor::device;
  bool neutral = false;          ///< nothing to colour by
  bool critical_path = true;     ///< show it
  std::uint32_t device = kNone;  ///< the others fade

  /// Whether an open box is painted with its inside.
  bool shows_inside(const TaskScene& scene, const TaskBox& box) const;
};

class TaskPainter {
 public:
  void paint(QPainter& painter, const TaskScene& scene, const TaskPaint& paint);
  /// Outlines: boxes of picked tasks, of the hovered one, the keyboard's place.
  void paint_marks(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, const std::vector<int>& picked,
                   int hovered, int focus) const;
  /// A hovered line on top of all others.
  void paint_line_mark(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, int line);

  /// The lines of a box that the crowded level around it leaves out, as bows.
  void paint_left_out(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, const TaskHierarchy& hierarchy,
                      int box) const;

  static std::array<QColor, kDeviceColors> colors(const TaskPaint& paint);
  /// The box itself, or the innermost box around it whose inside is not painted.
  static int painted_box(const TaskScene& scene, const TaskPaint& paint, int box);

 private:
  const TaskScene* texts_of_ = nullptr;
  double texts_zoom_ = 0;
  QFont texts_font_, name_font_, small_font_;
  QFontMetrics name_metrics_{QFont()}, small_metrics_{QFont()};
  std::vector<QString> names_;                  ///< elided; null: not yet
  std::vector<std::optional<NamePart>> parts_;  ///< of names that have no room; null: not yet
  /// What of a card's texts has room.
  struct Fit {
    int width = -1;
    bool with_value = false;
    QString value, second;
  };
  std::vector<Fit> fits_;
  std::array<QColor, kDeviceColors> colors_;
  std::array<bool, kDeviceColors> dark_text_{};
  std::vector<std::uint32_t> open_;
  std::vector<QPointF> line_;
  bool few_ = true;  ///< boxes in sight: there is time for rounded lines

  NamePart telling_part(const TaskScene& scene, std::uint32_t index);
  void prepare(const TaskScene& scene, const TaskPaint& paint);
  static std::size_t boxes_in_sight(const TaskScene& scene, const TaskPaint& paint, std::size_t enough);
  void map_line(const TaskScene& scene, const TaskPaint& paint, std::size_t line);
  void paint_lines(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, const TaskBox& around);
  void paint_closed(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index);
  void paint_card(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index,
                  const QRect& rect);
  void paint_frame(QPainter& painter, const TaskScene& scene, const TaskPaint& paint, std::uint32_t index);
  void paint_shares(QPainter& painter, const TaskScene& scene, const TaskBox& box, const QRect& bar) const;
  void outline(QPainter& painter, const TaskPaint& paint, const TaskBox& box, const QRect& rect) const;
  void critical_bar(QPainter& painter, const TaskPaint& paint, const TaskBox& box, const QRect& rect) const;
  const QString& name(const TaskScene& scene, std::uint32_t index, const QFontMetrics& metrics, int width);
};

}  // namespace turnpoint::views
