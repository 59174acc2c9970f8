// SPDX-License-Identifier: Apache-2.0
// What the graph canvas draws, as plain data: cards (layers, folded or open, and lone operators) in reading order,
// operators and edges of open layers in flat arrays, figures of the plan beside them. Geometry and figures are made
// separately, so that another plan only recolours.
#pragma once

#include <QFontMetricsF>
#include <QRectF>
#include <QString>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/model/hierarchy.h"
#include "core/model/model.h"
#include "views/common/configuration_colors.h"
#include "views/common/plan_figures.h"
#include "views/graph/level_layout.h"

namespace turnpoint::views {

/// `ratio` of figures with ratio() alone, `difference` of those with difference().
enum class GraphColor { configuration, time, memory, ratio, difference };
enum class EdgeMeasure { bytes, time };

struct GraphCard {
  QRectF rect;
  std::uint32_t group = kNoGroup;  ///< kNoGroup: a lone operator
  OperatorId op;                   ///< of a lone operator
  bool open = false;               ///< its operators are drawn
  QString name;
  std::uint32_t member_begin = 0, member_end = 0;  ///< in GraphScene::members
  std::uint32_t drawn_begin = 0, drawn_end = 0;    ///< in the op_ arrays
  std::uint32_t edge_begin = 0, edge_end = 0;
  double in_y = 0, out_y = 0;  ///< where lines of neighbours meet the border
  // Figures of the plan.
  std::array<float, 8> share{};  ///< of the colours, summing to 1; all 0: nothing known
  double time_s = 0, reshard_s = 0;
  std::int64_t memory_bytes = 0;
  QString time_text, detail_text;
};

/// One tensor on its way from an operator to another.
struct EdgeUse {
  TensorId tensor;
  OperatorId producer, consumer;
};

struct GraphScene {
  QSizeF size;
  double card_width = 0;
  std::vector<GraphCard> cards;  ///< reading order
  std::vector<OperatorId> members;
  IdVector<OperatorId, int> card_of, drawn_of;  ///< -1: not drawn by itself

  // Operators drawn in open cards.
  std::vector<float> op_x, op_y, op_w, op_h;
  std::vector<OperatorId> op_id;
  std::vector<std::uint8_t> op_color;
  std::vector<QString> op_name;  ///< as long as it is; painters elide
  std::vector<QString> op_kind;  ///< what it is, with the sizes of its result: "Conv 64×112×112"
  double typical_width = 64;

  // Edges of open cards, then from `connector_begin` on those between cards.
  std::vector<QPointF> points;
  std::vector<std::uint32_t> point_begin{0}, use_begin{0};  ///< one more than edges
  std::vector<EdgeUse> uses;
  std::vector<float> edge_width;
  std::vector<std::uint8_t> edge_heat;  ///< 0: no resharding
  std::vector<int> edge_reshard;        ///< the largest one on the way; -1
  std::uint32_t connector_begin = 0;

  std::size_t edges() const { return point_begin.size() - 1; }
  bool lone_panel = false;  ///< the whole model is one open card
};

/// Which groups are open. `containers` come from Hierarchy::layer_containers().
struct FoldState {
  std::vector<bool> expanded, containers;
};

/// "Conv 64x112x112": the source's word and the sizes of one sample's result; the sizes alone where the name says the
/// word already.
QString kind_line(const Model& model, OperatorId op);

/// Groups of at most this many operators open in place; larger ones are replaced by their children.
inline constexpr std::uint32_t kLargestPanel = 150;

struct SceneStyle {
  QFontMetricsF name_font, small_font;  ///< of card names (bold), of operators and figures
};

class SceneBuilder {
 public:
  SceneBuilder(const Model& model, const Hierarchy& hierarchy, const FoldState& fold, const SceneStyle& style);

  /// The levels that open cards need, each once.
  std::vector<LevelRequest> levels() const;
  /// `find` answers the layout of a request, never null. Width zero: chosen for a window of `aspect` (width : height),
  /// never narrower than `least_width`.
  std::shared_ptr<GraphScene> build(const std::function<LevelLayoutPtr(const LevelRequest&)>& find, double least_width,
                                    double aspect);

 private:
  struct Panel {
    LevelRequest request;
    int in = -1, out = -1;  ///< node numbers of the entry and the exit; -1: none
    std::vector<std::vector<EdgeUse>> uses;
  };
  const Model& model_;
  const Hierarchy& hierarchy_;
  const FoldState& fold_;
  const SceneStyle& style_;
  std::vector<GraphCard> cards_;
  std::vector<OperatorId> members_;
  IdVector<OperatorId, int> card_of_;
  std::vector<Panel> panels_;  ///< per card; empty request where folded
  bool lone_panel_ = false;
  std::map<std::pair<int, int>, std::vector<EdgeUse>> between_;  ///< by the cards of producer and consumer
  double row_gap_ = 0;

  std::map<std::pair<int, int>, std::vector<EdgeUse>> uses_between_cards() const;
  void choose_cards();
  void add_card(std::uint32_t group, OperatorId op, bool open);
  Panel make_panel(const GraphCard& card) const;
  double card_width() const;
  double choose_width(const std::vector<QSizeF>& sizes, double least_width, double aspect) const;
  void place_rows(GraphScene& scene, const std::vector<QSizeF>& sizes, const std::vector<LevelLayout>& inner,
                  double width) const;
  void fill_panel(GraphScene& scene, GraphCard& card, const Panel& panel, const LevelLayout& inner) const;
  void connect_cards(GraphScene& scene, const std::vector<int>& row, const std::vector<double>& row_bottom) const;
};

/// Fills colours, shares, widths and texts; `figures` null: neutral.
void decorate(GraphScene& scene, const PlanFigures* figures, const ConfigurationColors& colors, GraphColor color,
              EdgeMeasure edges);

struct SceneHit {
  int card = -1, drawn = -1, edge = -1;
  bool header = false;  ///< on an open card's title
  friend bool operator==(const SceneHit&, const SceneHit&) = default;
};
/// What lies at a scene position; edges within `reach` scene pixels.
SceneHit hit_test(const GraphScene& scene, QPointF position, double reach);

/// Cards that a card gets tensors from or gives tensors to, its neighbours in reading order left out (those lines are
/// always drawn).
struct CardLink {
  int card = -1;
  bool incoming = false;
};
std::vector<CardLink> far_links(const Model& model, const GraphScene& scene, int card);

/// Card title bar height, scene pixels.
inline constexpr double kPanelHeader = 24;

}  // namespace turnpoint::views
