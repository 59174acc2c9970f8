// SPDX-License-Identifier: Apache-2.0
// The scrolling, zooming surface of the graph: one widget that paints a GraphScene itself and turns mouse and keys into
// selection, hover and fold requests.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <QPointer>
#include <memory>

#include "views/common/selection_model.h"
#include "views/graph/graph_painter.h"
#include "views/graph/graph_scene.h"
#include "views/graph/hover_text.h"

namespace turnpoint::views {

class GraphCanvas : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit GraphCanvas(QWidget* parent = nullptr);

  /// `anchor`: an operator whose card keeps its place on the screen if it can.
  void set_scene(ModelPtr model, std::shared_ptr<GraphScene> scene, OperatorId anchor = {});
  void set_figures(PlanFiguresPtr figures, GraphColor color);  ///< after decorate()
  void set_selection(SelectionModel* selection);
  void set_empty_text(const QString& text);

  const GraphScene* scene() const { return scene_.get(); }
  double zoom() const { return zoom_; }
  void set_zoom(double zoom, QPointF anchor_device);
  void fit();  ///< everything visible, at most 100 %
  void show_card(int card, bool readable);
  void show_operator(OperatorId op);
  QRectF visible_scene() const;
  void center_on(QPointF scene_position);
  QPointF to_device(QPointF scene_position) const;
  const HoverText& hover_text() const { return hover_text_; }
  const std::vector<CardLink>& hover_links() const { return links_; }
  int current_card() const { return focus_card_; }
  OperatorId current_operator() const;
  qint64 last_frame_ns() const { return last_frame_ns_; }  ///< of the scene below the marks
  /// For pictures: the whole scene scaled into `size`.
  void paint_to(QPainter& painter, const QSizeF& size, const ThemeColors& theme);

 signals:
  void toggle_fold(std::uint32_t group, bool open);
  void fold_container(std::uint32_t group,
                      OperatorId op);  ///< of a folded card, or of a lone operator where group is kNoGroup
  void zoom_changed(double zoom);
  void view_changed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void changeEvent(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  ModelPtr model_;
  std::shared_ptr<GraphScene> scene_;
  PlanFiguresPtr figures_;
  GraphColor color_ = GraphColor::configuration;
  QPointer<SelectionModel> selection_;
  QString empty_text_;
  GraphPainter painter_;
  QPixmap frame_;
  bool frame_stale_ = true, fitted_ = true, changing_selection_ = false;
  double zoom_ = 1;
  SceneHit hover_;
  HoverText hover_text_;
  std::vector<CardLink> links_;  ///< of the card under the pointer
  int linked_card_ = -1;
  QPointF pointer_;
  int focus_card_ = -1, focus_drawn_ = -1;
  bool pressed_ = false, panning_ = false, by_keyboard_ = false;
  QPoint press_, last_;
  qint64 last_frame_ns_ = 0;

  GraphPaint view() const;
  QPointF origin() const;  ///< device position of the scene's corner
  QPointF to_scene(QPointF device) const;
  void update_scroll_bars();
  void repaint_all();
  void set_hover(const SceneHit& hit, QPointF device);
  void clear_hover();
  SceneHit hit_at(QPointF device) const;
  std::set<OperatorId> operators_at(const SceneHit& hit) const;
  void pick(const SceneHit& hit, bool add);
  void activate(const SceneHit& hit);
  void set_focus_item(int card, int drawn, bool pick_it);
  void step_to(int dx, int dy);
  int neighbour_operator(int drawn, int dx, int dy) const;
  int neighbour_card(int card, int dx, int dy) const;
  void selection_changed();
  void fold_current();
};

}  // namespace turnpoint::views
