// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_graph_view.h"

#include <QEvent>
#include <QFutureWatcher>
#include <QHBoxLayout>
#include <QHash>
#include <QJsonArray>
#include <QPromise>
#include <QThreadPool>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/graph/fold_plan.h"
#include "views/graph/graph_painter.h"
#include "views/graph/layout_service.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_bar.h"
#include "views/graph/task_legend.h"
#include "views/graph/task_search.h"

namespace turnpoint::views {

namespace {

/// Longer than a level usually takes, shorter than a person notices.
constexpr int kTasksLateMs = 150;
constexpr int kTaskLegendFrom = 560;  // narrower views hide the legend
/// So many levels at once are laid out by ourselves: Graphviz would take longer than one waits.
constexpr std::size_t kMostAsked = 120;

bool same_names(const TaskGraph& a, const TaskGraph& b) {
  if (a.task_count() != b.task_count()) return false;
  for (TaskIndex t = 0; t < a.task_count(); ++t)
    if (a.names[t] != b.names[t]) return false;
  return true;
}

}  // namespace

struct TaskGraphView::Private {
  TaskGraphView* view;
  TaskGraphPtr graph;
  SchedulePtr schedule;
  TaskHierarchyPtr hierarchy;  ///< of the scene; may lag behind graph
  TaskFiguresPtr figures;
  OpenGroups open;
  std::shared_ptr<TaskScene> scene;
  QJsonObject pending_state;

  QFutureWatcher<TaskFiguresPtr> job;
  LayoutService layouts;
  QTimer late_timer, resize_timer;
  QHash<QByteArray, LevelLayoutPtr> own_layouts;
  bool making = false, incomplete = false, all_own = false, more_than_shown = false;
  std::uint32_t anchor = kNone;
  TaskIndex show_task = kNone;
  std::uint32_t show_group = kNone;
  double built_width = 0;
  std::vector<TaskHierarchy::Child> matches;
  std::size_t match = 0;

  TaskGraphBar* bar;
  TaskCanvas* canvas;
  TaskLegend* legend;
  QPointer<SelectionModel> selection;

  explicit Private(TaskGraphView* v) : view(v), bar(new TaskGraphBar(v)), canvas(new TaskCanvas(v)) {
    legend = new TaskLegend(canvas, v);
  }

  TaskColor color() const;
  void start_job();
  void adopt(TaskFiguresPtr made);
  void request_scene();
  void build_scene(bool final);
  void recolor();
  void update_labels();
  void search(const QString& text);
  void go_to_match(int step);
  void show_wanted();
  SceneStyle style() const {
    return {QFontMetricsF(graph_name_font(view->font())), QFontMetricsF(graph_small_font(view->font()))};
  }
};

/// Without a placement there are no devices, so scopes give the colours until there is one.
TaskColor TaskGraphView::Private::color() const {
  const TaskColor wanted = bar->color();
  return wanted == TaskColor::device && (!figures || !figures->schedule) ? TaskColor::scope : wanted;
}

TaskGraphView::TaskGraphView(QWidget* parent) : QWidget(parent), d_(std::make_unique<Private>(this)) {
  setObjectName(QStringLiteral("task_graph_view"));
  auto* body = new QHBoxLayout;
  body->setContentsMargins(0, 0, 0, 0);
  body->setSpacing(0);
  body->addWidget(d_->canvas, 1);
  body->addWidget(d_->legend);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(d_->bar);
  all->addLayout(body, 1);
  d_->canvas->set_empty_text(tr("Open a task graph, or place a model, to see its tasks."));

  d_->late_timer.setSingleShot(true);
  d_->late_timer.setInterval(kTasksLateMs);
  d_->resize_timer.setSingleShot(true);
  d_->resize_timer.setInterval(40);
  connect(&d_->late_timer, &QTimer::timeout, this, [this] { d_->build_scene(false); });
  connect(&d_->resize_timer, &QTimer::timeout, this, [this] { d_->request_scene(); });
  connect(&d_->job, &QFutureWatcherBase::finished, this, [this] {
    d_->making = false;
    if (d_->job.future().resultCount() > 0) d_->adopt(d_->job.result());
  });
  // A finished level decides the size of the one around it; so the outer level is asked for next.
  connect(&d_->layouts, &LayoutService::finished, this, [this] { d_->request_scene(); });
  connect(d_->canvas, &TaskCanvas::toggle_fold, this, [this](std::uint32_t group, bool open) {
    d_->open[group] = open || group == 0;
    d_->anchor = group;
    d_->more_than_shown = false;
    if (open) d_->show_group = group;
    d_->request_scene();
  });
  connect(d_->canvas, &TaskCanvas::unfold_all_in, this, [this](std::uint32_t group) {
    d_->more_than_shown = !unfold_inside(*d_->hierarchy, d_->open, group);
    d_->anchor = group;
    d_->request_scene();
  });
  connect(d_->canvas, &SceneCanvas::zoom_changed, this, [this] { d_->update_labels(); });
  connect(d_->bar, &TaskGraphBar::look_changed, this, [this] { d_->recolor(); });
  connect(d_->bar, &TaskGraphBar::fit, d_->canvas, &SceneCanvas::fit);
  connect(d_->bar, &TaskGraphBar::export_requested, this, &TaskGraphView::export_requested);
  connect(d_->canvas, &TaskCanvas::export_requested, this, &TaskGraphView::export_requested);
  connect(d_->bar, &TaskGraphBar::search, this, [this](const QString& text) { d_->search(text); });
  connect(d_->bar, &TaskGraphBar::next_match, this, [this](int step) { d_->go_to_match(step); });
  connect(d_->bar, &TaskGraphBar::fold_chosen, this, [this](TaskFold fold) {
    if (!d_->hierarchy) return;
    d_->more_than_shown = false;
    d_->open = fold == TaskFold::layers ? folded_layers(*d_->hierarchy) : folded_outline(*d_->hierarchy);
    if (fold == TaskFold::everything) d_->more_than_shown = !unfold_inside(*d_->hierarchy, d_->open, 0);
    d_->request_scene();
    d_->canvas->fit();
  });
  d_->update_labels();
}

TaskGraphView::~TaskGraphView() {
  // Nothing may come back into a view that is half gone.
  d_->job.disconnect(this);
  d_->layouts.disconnect(this);
}

void TaskGraphView::set_selection(SelectionModel* selection) {
  d_->selection = selection;
  d_->canvas->set_selection(selection);
  d_->legend->set_selection(selection);
}

void TaskGraphView::set_task_graph(TaskGraphPtr graph) {
  if (graph == d_->graph) return;
  d_->graph = std::move(graph);
  if (d_->schedule && d_->schedule->graph != d_->graph) d_->schedule = nullptr;
  d_->start_job();
}

void TaskGraphView::set_schedule(SchedulePtr schedule) {
  if (schedule == d_->schedule) return;
  if (schedule) d_->graph = schedule->graph;
  d_->schedule = std::move(schedule);
  d_->start_job();
}

void TaskGraphView::Private::start_job() {
  if (!graph) {
    job.setFuture({});
    making = incomplete = false;
    layouts.cancel();
    hierarchy = nullptr, figures = nullptr, scene = nullptr;
    canvas->set_scene(nullptr, nullptr);
    legend->set_figures(nullptr, color(), false);
    return update_labels();
  }
  auto promise = std::make_shared<QPromise<TaskFiguresPtr>>();
  // The newest job is the one that counts; what an older one makes is dropped.
  job.setFuture(promise->future());
  making = true;
  const TaskHierarchyPtr known = hierarchy && hierarchy->graph == graph ? hierarchy : nullptr;
  QThreadPool::globalInstance()->start([promise, known, g = graph, s = schedule] {
    promise->start();
    promise->addResult(make_task_figures(known ? known : build_task_hierarchy(g), s));
    promise->finish();
  });
  update_labels();
}

void TaskGraphView::Private::adopt(TaskFiguresPtr made) {
  if (!graph || made->hierarchy->graph != graph) return;
  figures = std::move(made);
  if (figures->hierarchy == hierarchy) return recolor();
  const bool same = hierarchy && same_names(*hierarchy->graph, *graph);
  const QStringList paths = same ? open_paths(*hierarchy, open) : QStringList();
  hierarchy = figures->hierarchy;
  open = same ? open_from_paths(*hierarchy, paths) : folded_layers(*hierarchy);
  if (!same) {
    bar->set_fold(TaskFold::layers);
    matches.clear();
    more_than_shown = false;
    if (const QJsonObject waiting = pending_state; !waiting.isEmpty()) view->restore_state(waiting);
  }
  // The old scene is of another graph.
  scene = nullptr;
  own_layouts.clear();
  request_scene();
}

void TaskGraphView::Private::request_scene() {
  if (!hierarchy) return;
  const SceneStyle text_style = style();
  TaskSceneBuilder builder(*hierarchy, open, text_style);
  const auto groups = std::size_t(std::count(open.begin(), open.end(), true));
  all_own = groups > kMostAsked;
  auto missing = all_own ? std::vector<LevelRequest>()
                         : builder.missing([this](const LevelRequest& level) { return layouts.find(level.text()); });
  const bool complete = missing.empty();
  incomplete = !complete;
  layouts.want(std::move(missing));
  if (complete) {
    late_timer.stop();
    build_scene(true);
  } else if (!scene) {
    build_scene(false);
  } else if (!late_timer.isActive()) {
    late_timer.start();
  }
  update_labels();
}

void TaskGraphView::Private::build_scene(bool final) {
  if (!hierarchy || !figures || figures->hierarchy != hierarchy) return;
  const SceneStyle text_style = style();
  TaskSceneBuilder builder(*hierarchy, open, text_style);
  const auto find = [this](const LevelRequest& level) {
    const QByteArray key = level.text();
    if (auto known = layouts.find(key)) return known;
    LevelLayoutPtr& own = own_layouts[key];
    if (!own) own = std::make_shared<const LevelLayout>(layered_layout(level));
    return own;
  };
  const QSize room = canvas->maximumViewportSize();
  built_width = room.width();
  scene = builder.build(find, QSizeF(std::max(320, room.width()), std::max(120, room.height())));
  decorate(*scene, *figures, color());
  canvas->set_scene(scene, figures, anchor);
  canvas->set_figures(figures, color(), bar->critical_path());
  legend->set_figures(figures, color(), bar->critical_path());
  if (final) {
    anchor = kNone;
    show_wanted();
  }
  update_labels();
  if (final) emit view->ready();
}

void TaskGraphView::Private::show_wanted() {
  int box = -1;
  if (show_task != kNone) box = scene->box_of(*hierarchy, show_task);
  if (box < 0 && show_group != kNone) box = scene->box_of_group[show_group];
  if (box > 0) {
    canvas->show_box(box, show_task != kNone);
    canvas->set_current_box(box);
  }
  show_task = show_group = kNone;
}

void TaskGraphView::Private::recolor() {
  if (!scene || !figures || figures->hierarchy != hierarchy) return;
  decorate(*scene, *figures, color());
  canvas->set_figures(figures, color(), bar->critical_path());
  legend->set_figures(figures, color(), bar->critical_path());
  update_labels();
  if (!view->busy()) emit view->ready();
}

void TaskGraphView::Private::update_labels() {
  TaskGraphBar::Words words;
  if (hierarchy && scene) {
    words.counts = counted(double(hierarchy->order.size()), tr("1 task"), tr("%1 tasks")) + QStringLiteral(" \u00b7 ") +
                   counted(double(scene->boxes.size() - 1), tr("1 box"), tr("%1 boxes"));
    if (more_than_shown)
      words.counts_tip = tr("Unfolded as far as %1 boxes.").arg(grouped_number(double(kMostBoxes), 0));
    words.zoom = tr("zoom %1%").arg(qRound(canvas->zoom() * 100));
  }
  if (view->busy()) {
    words.engine = layouts.busy() ? tr("laying out\u2026") : tr("reading\u2026");
  } else if (scene && (all_own || !layouts.trouble().isEmpty())) {
    words.engine = tr("own layout");
    words.engine_tip = all_own ? tr("So many levels at once are laid out by Turnpoint itself.")
                               : tr("Levels are laid out by Turnpoint itself: %1.").arg(layouts.trouble());
  } else if (scene) {
    words.engine = tr("Graphviz");
    words.engine_tip = tr("Levels are laid out by Graphviz.");
  }
  bar->set_words(words, !matches.empty() ? tr("%1 of %2%3")
                                               .arg(match + 1)
                                               .arg(matches.size())
                                               .arg(matches.size() >= kMostMatches ? QStringLiteral("+") : QString())
                        : bar->search_text().isEmpty() ? QString()
                                                       : tr("not found"));
}

void TaskGraphView::Private::search(const QString& text) {
  matches = hierarchy ? find_by_name(*hierarchy, text) : std::vector<TaskHierarchy::Child>();
  match = 0;
  if (matches.empty()) return update_labels();
  go_to_match(0);
}

void TaskGraphView::Private::go_to_match(int step) {
  if (matches.empty()) return;
  match = (match + matches.size() + std::size_t(step + int(matches.size()))) % matches.size();
  const auto& found = matches[match];
  std::set<TaskIndex> tasks;
  if (found.is_group) {
    const auto inside = hierarchy->tasks_of(found.index);
    tasks.insert(inside.begin(), inside.end());
    for (std::uint32_t g = hierarchy->groups[found.index].parent; g != kNone; g = hierarchy->groups[g].parent)
      open[g] = true;
    show_group = found.index;
  } else {
    tasks.insert(found.index);
    unfold_to(*hierarchy, open, found.index);
    show_task = found.index;
  }
  if (selection) selection->pick_tasks(std::move(tasks));
  request_scene();
}

void TaskGraphView::reveal(const std::set<TaskIndex>& tasks) {
  if (!d_->hierarchy || tasks.empty()) return;
  // Enough of them to see where they are; the others are marked on the boxes around them.
  std::size_t left = 40;
  for (const TaskIndex task : tasks) {
    if (task >= d_->hierarchy->order.size() || left-- == 0) break;
    unfold_to(*d_->hierarchy, d_->open, task);
    if (d_->show_task == kNone) d_->show_task = task;
  }
  d_->request_scene();
}

QJsonObject TaskGraphView::save_state() const {
  if (!d_->hierarchy && !d_->pending_state.isEmpty()) return d_->pending_state;
  QJsonObject state;
  if (d_->hierarchy)
    state.insert(QStringLiteral("expanded"), QJsonArray::fromStringList(open_paths(*d_->hierarchy, d_->open)));
  d_->bar->save_state(state);
  return state;
}

void TaskGraphView::restore_state(const QJsonObject& state) {
  d_->bar->restore_state(state);
  // The groups are those of a graph; without one they wait for it.
  d_->pending_state = d_->hierarchy ? QJsonObject() : state;
  if (!d_->hierarchy || !state.value(QLatin1String("expanded")).isArray()) return;
  QStringList paths;
  for (const auto& path : state.value(QLatin1String("expanded")).toArray()) paths << path.toString();
  d_->open = open_from_paths(*d_->hierarchy, paths);
  if (d_->scene) d_->request_scene();
}

QWidget* TaskGraphView::tool_bar() const { return d_->bar; }
TaskCanvas* TaskGraphView::canvas() const { return d_->canvas; }
LayoutService* TaskGraphView::layout_service() const { return &d_->layouts; }
bool TaskGraphView::busy() const { return d_->making || d_->incomplete || d_->layouts.busy(); }

void TaskGraphView::paint_to(QPainter& painter, QSize size) {
  d_->canvas->paint_to(painter, size, theme_colors(palette()));
}

void TaskGraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) d_->request_scene();
  if (event->type() == QEvent::PaletteChange) d_->legend->mini_map()->refresh();
  QWidget::changeEvent(event);
}

void TaskGraphView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  d_->legend->setVisible(width() >= kTaskLegendFrom);
  if (d_->scene && d_->canvas->maximumViewportSize().width() != d_->built_width) d_->resize_timer.start();
}

}  // namespace turnpoint::views
