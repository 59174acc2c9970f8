// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QSet>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/elided_label.h"
#include "views/common/format.h"
#include "views/graph/fit_button.h"
#include "views/graph/graph_legend.h"

namespace turnpoint::views {

namespace {

/// Longer than a level usually takes, shorter than a person notices.
constexpr int kLateMs = 150;
constexpr int kLegendFrom = 520;  // narrower views hide the legend

bool same_operators(const ModelPtr& a, const ModelPtr& b) {
  return a && b && a->name == b->name && a->operators.size() == b->operators.size() &&
         std::equal(a->operators.begin(), a->operators.end(), b->operators.begin(),
                    [](const Operator& x, const Operator& y) { return x.name == y.name; });
}

}  // namespace

GraphView::GraphView(QWidget* parent)
    : QWidget(parent), canvas_(new GraphCanvas(this)), legend_(new GraphLegend(canvas_, this)) {
  setObjectName(QStringLiteral("graph_view"));
  make_tool_bar();
  auto* body = new QHBoxLayout;
  body->setContentsMargins(0, 0, 0, 0);
  body->setSpacing(0);
  body->addWidget(canvas_, 1);
  body->addWidget(legend_);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(tool_bar_);
  all->addLayout(body, 1);

  late_timer_.setSingleShot(true);
  late_timer_.setInterval(kLateMs);
  resize_timer_.setSingleShot(true);
  resize_timer_.setInterval(40);
  connect(&late_timer_, &QTimer::timeout, this, [this] { build_scene(true); });
  connect(&resize_timer_, &QTimer::timeout, this, &GraphView::request_scene);
  connect(&layouts_, &LayoutService::finished, this, [this] {
    late_timer_.stop();
    build_scene(false);
  });
  connect(canvas_, &GraphCanvas::toggle_fold, this, &GraphView::toggle_fold);
  connect(canvas_, &GraphCanvas::fold_container, this, [this](std::uint32_t group, OperatorId op) {
    const std::uint32_t container = group != kNoGroup ? hierarchy_->groups[group].parent : hierarchy_->parent[op];
    if (container != kNoGroup && container != 0) toggle_fold(container, false);
  });
  connect(canvas_, &GraphCanvas::zoom_changed, this, &GraphView::update_labels);
  canvas_->set_empty_text(tr("Open a model to see its graph."));
  update_labels();
}

void GraphView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("graph_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(6);
  const auto add_box = [&](const QString& label, const QStringList& choices, const QString& tip) {
    auto* name = new QLabel(label, tool_bar_);
    auto* box = new QComboBox(tool_bar_);
    box->addItems(choices);
    box->setAccessibleName(label);
    box->setToolTip(tip);
    name->setBuddy(box);
    row->addWidget(name);
    row->addWidget(box);
    row->addSpacing(8);
    return box;
  };
  color_box_ = add_box(tr("Colour"), {tr("Configuration"), tr("Time"), tr("Memory")},
                       tr("What the colour of an operator means"));
  for (int i = 0; i < color_box_->count(); ++i) color_box_->setItemData(i, i);
  edge_box_ = add_box(tr("Edges"), {tr("Bytes"), tr("Time")},
                      tr("What the width of an edge means: the bytes or the time of its resharding"));
  fold_box_ = add_box(tr("Fold"), {tr("Layers"), tr("Operators"), tr("Outline")}, tr("How far the graph is unfolded"));
  mesh_label_ = new Elided<QLabel>(tool_bar_);
  mesh_label_->setToolTip(tr("The axes of the device mesh, outermost first"));
  row->addWidget(mesh_label_, 1);
  layout_label_ = new QLabel(tool_bar_);
  layout_label_->setContentsMargins(0, 0, 6, 0);
  row->addWidget(layout_label_);
  zoom_label_ = new QLabel(tool_bar_);
  row->addWidget(zoom_label_);
  auto* fit_button = new FitButton(tool_bar_);
  fit_button->setAutoRaise(true);
  fit_button->setFixedSize(26, 24);
  fit_button->setToolTip(tr("Fit the whole graph (F)"));
  fit_button->setAccessibleName(tr("Fit"));
  row->addWidget(fit_button);
  mesh_label_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  connect(color_box_, &QComboBox::currentIndexChanged, this, [this] {
    wanted_ = color();
    recolor();
  });
  connect(edge_box_, &QComboBox::currentIndexChanged, this, &GraphView::recolor);
  connect(fold_box_, &QComboBox::activated, this, [this](int index) { set_fold(static_cast<Fold>(index)); });
  connect(fit_button, &QToolButton::clicked, canvas_, &GraphCanvas::fit);
  tool_bar_->installEventFilter(this);
}

void GraphView::set_model(ModelPtr model) {
  if (model == model_) return;
  const bool same = same_operators(model_, model);
  const QStringList paths = same ? expanded_paths() : QStringList();
  model_ = std::move(model);
  if (!same || !model_) {
    plan_ = nullptr;
    scenario_ = nullptr;
    ratio_ = nullptr;
  }
  // Until the new plan comes the last one stays.
  make_figures();
  stand_ins_.clear();
  hierarchy_ = model_ ? std::make_shared<const Hierarchy>(build_hierarchy(*model_)) : nullptr;
  if (!model_) {
    layouts_.cancel();
    scene_ = nullptr;
    canvas_->set_scene(nullptr, nullptr);
    legend_->set_figures(nullptr, *colors_, color(), edge_measure());
    update_labels();
    return;
  }
  colors_->set_model(to_qt(model_->name + '\n' + model_->source));
  fold_.containers = hierarchy_->layer_containers();
  if (same) {
    fold_.expanded.assign(hierarchy_->groups.size(), false);
    expand_paths(paths);
  } else {
    fold_box_->setCurrentIndex(layers);
    apply_fold(layers);
    if (const QJsonObject waiting = pending_state_; !waiting.isEmpty()) restore_state(waiting);
  }
  // The old scene is of the old model: it must not live on until levels arrive.
  scene_ = nullptr;
  request_scene();
}

void GraphView::make_figures() {
  figures_ = PlanFigures::make(model_, plan_, RatioShares::make(ratio_, scenario_), difference_, typed_);
  offer(GraphColor::ratio, figures_ && figures_->ratio(), tr("Ratio"),
        tr("How much the stronger half of the first cut has"));
  offer(GraphColor::difference, figures_ && figures_->difference(), tr("Difference"),
        tr("What is treated otherwise in the plan that Why has put beside this one"));
}

/// Without a word to recolor(): whoever changes the figures does so anyway.
void GraphView::offer(GraphColor one, bool has, const QString& text, const QString& tip) {
  const int at = color_box_->findData(static_cast<int>(one));
  if ((at >= 0) == has) return;
  const QSignalBlocker quiet(color_box_);
  if (has) {
    color_box_->addItem(text, static_cast<int>(one));
    color_box_->setItemData(color_box_->count() - 1, tip, Qt::ToolTipRole);
    if (wanted_ == one) color_box_->setCurrentIndex(color_box_->count() - 1);
  } else {
    if (color() == one) choose_color(GraphColor::configuration);
    color_box_->removeItem(at);
  }
}

void GraphView::choose_color(GraphColor one) {
  if (const int at = color_box_->findData(static_cast<int>(one)); at >= 0) color_box_->setCurrentIndex(at);
}

void GraphView::set_difference(DifferenceMarksPtr difference) {
  if (difference == difference_) return;
  difference_ = std::move(difference);
  make_figures();
  recolor();
}

void GraphView::show_difference() { choose_color(GraphColor::difference); }

void GraphView::set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario, RatioPlanPtr ratio, bool typed) {
  if (scenario && scenario->model && scenario->model != model_) set_model(scenario->model);
  plan_ = std::move(plan);
  scenario_ = std::move(scenario);
  ratio_ = std::move(ratio);
  typed_ = typed;
  make_figures();
  if (figures_) colors_->update(figures_->shares());
  recolor();
}

void GraphView::set_selection(SelectionModel* selection) {
  selection_ = selection;
  canvas_->set_selection(selection);
  legend_->set_selection(selection);
  if (selection_) share_colors(colors_of(selection_));
}

void GraphView::share_colors(std::shared_ptr<ConfigurationColors> colors) {
  colors_ = std::move(colors);
  if (model_) colors_->set_model(to_qt(model_->name + '\n' + model_->source));
  if (figures_) set_plan(plan_, scenario_, ratio_, typed_);
}

void GraphView::recolor() {
  if (scene_) decorate(*scene_, figures_.get(), *colors_, color(), edge_measure());
  canvas_->set_figures(figures_, color());
  legend_->set_figures(figures_, *colors_, color(), edge_measure());
  update_labels();
}

void GraphView::request_scene() {
  if (!model_) return;
  const GraphScene* old = canvas_->scene();
  if (!anchor_.valid() && old && canvas_->current_card() >= 0) anchor_ = canvas_->current_operator();
  const SceneStyle style{QFontMetricsF(graph_name_font(font())), QFontMetricsF(graph_small_font(font()))};
  auto levels = SceneBuilder(*model_, *hierarchy_, fold_, style).levels();
  const bool all_known = std::all_of(levels.begin(), levels.end(),
                                     [this](const LevelRequest& level) { return layouts_.find(level.text()); });
  layouts_.want(std::move(levels));
  if (all_known) {
    late_timer_.stop();
    build_scene(false);
  } else if (!scene_) {
    build_scene(true);
  } else if (!late_timer_.isActive()) {
    late_timer_.start();
  }
  update_labels();
}

void GraphView::build_scene(bool with_stand_ins) {
  if (!model_) return;
  const SceneStyle style{QFontMetricsF(graph_name_font(font())), QFontMetricsF(graph_small_font(font()))};
  SceneBuilder builder(*model_, *hierarchy_, fold_, style);
  const auto find = [this](const LevelRequest& level) {
    const QByteArray key = level.text();
    if (auto known = layouts_.find(key)) return known;
    LevelLayoutPtr& stand_in = stand_ins_[key];
    if (!stand_in) stand_in = std::make_shared<const LevelLayout>(layered_layout(level));
    return stand_in;
  };
  if (!with_stand_ins) stand_ins_.clear();
  const QSize room = canvas_->maximumViewportSize();
  built_width_ = room.width();
  scene_ = builder.build(find, std::max(320, room.width()), room.width() / std::max(1.0, double(room.height())));
  decorate(*scene_, figures_.get(), *colors_, color(), edge_measure());
  const OperatorId anchor = anchor_;
  const bool show = show_anchor_;
  anchor_ = {};
  show_anchor_ = false;
  canvas_->set_scene(model_, scene_, anchor);
  canvas_->set_figures(figures_, color());
  if (show && anchor.valid()) canvas_->show_card(scene_->card_of[anchor], true);
  legend_->mini_map()->refresh();
  update_labels();
}

void GraphView::update_labels() {
  mesh_label_->setText(figures_ ? figures_->mesh_text() : QString());
  const bool graph = model_ != nullptr;
  QString engine, tip;
  const bool panels = scene_ && std::any_of(scene_->cards.begin(), scene_->cards.end(),
                                            [](const GraphCard& card) { return card.open; });
  if (layouts_.busy()) {
    engine = tr("laying out\u2026");
  } else if (panels && !layouts_.trouble().isEmpty()) {
    engine = tr("own layout");
    tip = tr("Layers are laid out by Turnpoint itself: %1.").arg(layouts_.trouble());
  } else if (panels) {
    tip = tr("Layers are laid out by Graphviz.");
    engine = tr("Graphviz");
  }
  layout_label_->setText(engine);
  layout_label_->setToolTip(tip);
  const QString zoom = graph ? tr("zoom %1%").arg(qRound(canvas_->zoom() * 100)) : QString();
  zoom_label_->setText(graph && figures_ ? tr("time in ms \u00b7 ") + zoom : zoom);
  // What is cut says less than what is left out.
  for (const QString& less : {zoom, QString()})
    if (tool_bar_->layout()->sizeHint().width() > tool_bar_->width()) zoom_label_->setText(less);
}

bool GraphView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == tool_bar_ && event->type() == QEvent::Resize) update_labels();
  return QWidget::eventFilter(watched, event);
}

void GraphView::toggle_fold(std::uint32_t group, bool open) {
  if (!hierarchy_ || group >= hierarchy_->groups.size()) return;
  fold_.expanded[group] = open;
  anchor_ = hierarchy_->groups[group].first;
  show_anchor_ = open;
  request_scene();
}

void GraphView::set_fold(Fold fold) {
  fold_box_->setCurrentIndex(fold);
  if (!hierarchy_) return;
  apply_fold(fold);
  anchor_ = {};
  request_scene();
  canvas_->fit();
}

void GraphView::apply_fold(Fold fold) {
  fold_.expanded.assign(hierarchy_->groups.size(), fold == operators);
  if (fold == layers)
    for (std::size_t g = 0; g < fold_.expanded.size(); ++g) fold_.expanded[g] = fold_.containers[g];
  fold_.expanded[0] = true;
}

QStringList GraphView::expanded_paths() const {
  QStringList paths;
  for (std::size_t g = 1; hierarchy_ && g < hierarchy_->groups.size(); ++g)
    if (fold_.expanded[g]) paths << to_qt(hierarchy_->groups[g].path);
  return paths;
}

void GraphView::expand_paths(const QStringList& paths) {
  const QSet<QString> wanted(paths.begin(), paths.end());
  for (std::size_t g = 0; g < hierarchy_->groups.size(); ++g)
    fold_.expanded[g] = g == 0 || wanted.contains(to_qt(hierarchy_->groups[g].path));
}

QJsonObject GraphView::save_state() const {
  if (!model_ && !pending_state_.isEmpty()) return pending_state_;
  QJsonObject state;
  state.insert(QStringLiteral("expanded"), QJsonArray::fromStringList(expanded_paths()));
  // A difference goes with the window: what it was to is not kept.
  state.insert(QStringLiteral("colour"),
               static_cast<int>(wanted_ == GraphColor::difference ? GraphColor::configuration : wanted_));
  state.insert(QStringLiteral("edges"), edge_box_->currentIndex());
  state.insert(QStringLiteral("fold"), fold_box_->currentIndex());
  return state;
}

void GraphView::restore_state(const QJsonObject& state) {
  const auto choose = [&](QComboBox* box, const char* key) {
    const int index = state.value(QLatin1String(key)).toInt(box->currentIndex());
    if (index >= 0 && index < box->count()) box->setCurrentIndex(index);
  };
  // Whether there is a ratio to show is known when a plan comes.
  const int wanted = state.value(QLatin1String("colour")).toInt(color_box_->currentData().toInt());
  const bool later = wanted == static_cast<int>(GraphColor::ratio);
  choose_color(later && color_box_->findData(wanted) < 0 ? GraphColor::configuration : static_cast<GraphColor>(wanted));
  if (later) wanted_ = GraphColor::ratio;
  choose(edge_box_, "edges");
  choose(fold_box_, "fold");
  // The layers are those of a model; without one they wait for it.
  pending_state_ = model_ ? QJsonObject() : state;
  if (!model_ || !state.value(QLatin1String("expanded")).isArray()) return;
  QStringList paths;
  for (const auto& path : state.value(QLatin1String("expanded")).toArray()) paths << path.toString();
  expand_paths(paths);
  if (scene_) request_scene();
}

void GraphView::paint_to(QPainter& painter, QSize size) { canvas_->paint_to(painter, size, theme_colors(palette())); }

void GraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) request_scene();
  if (event->type() == QEvent::PaletteChange) legend_->mini_map()->refresh();
  QWidget::changeEvent(event);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  legend_->setVisible(width() >= kLegendFrom);
  if (model_ && canvas_->maximumViewportSize().width() != built_width_) resize_timer_.start();
}

}  // namespace turnpoint::views
