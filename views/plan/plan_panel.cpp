// SPDX-License-Identifier: Apache-2.0
#include "views/plan/plan_panel.h"

#include <QApplication>
#include <QEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QStackedWidget>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "core/search/placement_search.h"
#include "core/search/registry.h"
#include "views/common/icons.h"
#include "views/common/note_label.h"
#include "views/common/ratio_types.h"
#include "views/common/result_notes.h"
#include "views/common/section_head.h"
#include "views/common/selection_model.h"
#include "views/common/theme_colors.h"
#include "views/frontier/chart_data.h"
#include "views/plan/breakdown_bar.h"
#include "views/plan/layers_section.h"
#include "views/plan/legend_table.h"
#include "views/plan/plan_words.h"
#include "views/plan/ratio_words.h"
#include "views/plan/time_parts.h"
#include "views/plan/validated_section.h"
#include "views/plan/weights_section.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kShownReshards = 6;
constexpr int kPanelMargin = 12, kFiguresGap = 12, kHalvesGap = 14;

QLabel* make_label(QWidget* parent, bool secondary) {
  QLabel* label = secondary ? new NoteLabel(parent) : new QLabel(parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

/// Paints the heat mark before a resharding's name and the collective in secondary text.
class ReshardDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const ThemeColors& colors = theme_colors(option.palette);
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, colors.accent_background);
    QRect area = option.rect.adjusted(2, 0, -2, 0);
    if (index.column() == ReshardModel::kTensor) {
      const double heat = index.data(ReshardModel::kHeatRole).toDouble();
      painter->fillRect(QRect(area.left(), area.center().y() - 5, 4, 11),
                        colors.heat[static_cast<std::size_t>(std::clamp(heat * 4.0 + 0.5, 0.0, 4.0))]);
      area.setLeft(area.left() + 9);
    }
    const bool quiet = index.column() == ReshardModel::kCollective;
    painter->setFont(quiet ? secondary_font(option.font) : option.font);
    painter->setPen(quiet ? colors.secondary : colors.text);
    const QFontMetrics metrics(painter->font());
    painter->drawText(area, index.data(Qt::TextAlignmentRole).toInt(),
                      metrics.elidedText(index.data().toString(), Qt::ElideMiddle, area.width()));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QSize size = QStyledItemDelegate::sizeHint(option, index);
    size.setHeight(option.fontMetrics.height() + 5);
    if (index.column() == ReshardModel::kCollective)
      size.setWidth(QFontMetrics(secondary_font(option.font)).horizontalAdvance(index.data().toString()) + 8);
    return size;
  }
};

}  // namespace

PlanPanel::PlanPanel(QWidget* parent) : QScrollArea(parent), memory_of_(memory_text), time_of_(time_text) {
  setObjectName(QStringLiteral("plan_panel"));
  setAccessibleName(tr("Plan"));
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  pages_ = new QStackedWidget(this);
  empty_ = make_label(pages_, false);
  empty_->setObjectName(QStringLiteral("no_plan"));
  empty_->setText(tr("Pick a point in the chart to see its plan."));
  empty_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  empty_->setMargin(12);
  pages_->addWidget(empty_);
  auto* body = new QWidget(pages_);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(kPanelMargin, 8, kPanelMargin, 8);
  column->setSpacing(4);
  build_head(column);
  build_bars(column);
  build_lists(column);
  column->addStretch(1);
  pages_->addWidget(body);
  setWidget(pages_);
  setMinimumWidth(288);
}

void PlanPanel::fit_halves() {
  // Of parts that most plans have, no name is cut at any width: where two columns have no room, one stands below the
  // other.
  const int compute = compute_legend_->width_for({tr("Backward"), tr("Recompute")}, QStringLiteral("88.8"));
  const int network = network_legend_->width_for({tr("All-reduce"), tr("Reduce-scatter")}, QStringLiteral("88.8"));
  halves_->setStretch(0, compute);
  halves_->setStretch(1, network);
  const bool beside = viewport()->width() - 2 * kPanelMargin >= compute + kHalvesGap + network;
  halves_->setDirection(beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  halves_->setSpacing(beside ? kHalvesGap : 4);
}

void PlanPanel::fit_head() {
  // Ten times the figures are three letters more: large ones are written smaller before anything is cut.
  const int room = viewport()->width() - 2 * kPanelMargin - kFiguresGap - 3 * 4 - previous_->sizeHint().width() -
                   next_->sizeHint().width();
  QFont big = font();
  big.setBold(true);
  for (const double scale : {1.7, 1.55, 1.4, 1.25, 1.1, 1.0}) {
    big.setPointSizeF(font().pointSizeF() * scale);
    const QFontMetrics metrics(big);
    if (metrics.horizontalAdvance(memory_->text()) + metrics.horizontalAdvance(time_->text()) <= room) break;
  }
  for (QLabel* label : {memory_, time_}) label->setFont(big);
}

void PlanPanel::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  fit_head();
  fit_halves();
}

void PlanPanel::build_head(QVBoxLayout* column) {
  auto* row = new QHBoxLayout;
  row->setSpacing(4);
  memory_ = make_label(this, false);
  time_ = make_label(this, false);
  memory_->setObjectName(QStringLiteral("picked_memory"));
  time_->setObjectName(QStringLiteral("picked_time"));
  for (QLabel* label : {memory_, time_}) label->setWordWrap(false);
  previous_ = new QToolButton(this);
  previous_->setIcon(themed_icon(QStringLiteral("previous")));
  previous_->setToolTip(tr("The next plan with less memory that looks different; with Shift the very next"));
  previous_->setAccessibleName(tr("Previous plan"));
  next_ = new QToolButton(this);
  next_->setIcon(themed_icon(QStringLiteral("next")));
  next_->setToolTip(tr("The next plan with less time that looks different; with Shift the very next"));
  next_->setAccessibleName(tr("Next plan"));
  const auto every = [] { return QApplication::keyboardModifiers().testFlag(Qt::ShiftModifier); };
  connect(previous_, &QToolButton::clicked, this, [this, every] { emit step_requested(-1, every()); });
  connect(next_, &QToolButton::clicked, this, [this, every] { emit step_requested(1, every()); });
  row->addWidget(memory_);
  row->addSpacing(kFiguresGap);
  row->addWidget(time_);
  row->addStretch(1);
  row->addWidget(previous_);
  row->addWidget(next_);
  column->addLayout(row);
  peak_ = make_label(this, false);  // a note would keep its own colour
  peak_->setObjectName(QStringLiteral("simulated_peak"));
  peak_->setToolTip(
      tr("The plain sum counts what the plan keeps for backward, all at once and nothing else.\n"
         "The simulation follows every tensor from its making to its last use: what is computed again lives again in "
         "backward,\nand so do gathered weights and gradients on their way; what ends early makes room. See Memory."));
  peak_->hide();
  column->addWidget(peak_);
  where_ = make_label(this, true);
  where_->setObjectName(QStringLiteral("picked_where"));
  column->addWidget(where_);
  words_ = make_label(this, true);
  column->addWidget(words_);
  notes_ = make_label(this, false);  // in the colour of a warning
  notes_->setObjectName(QStringLiteral("result_notes"));
  notes_->hide();
  column->addWidget(notes_);
  explanations_ = make_label(this, true);
  explanations_->setObjectName(QStringLiteral("result_explanations"));
  explanations_->hide();
  column->addWidget(explanations_);
  column->addSpacing(8);
}

void PlanPanel::build_bars(QVBoxLayout* column) {
  memory_head_ = new SectionHead(tr("Memory per device"), this);
  memory_bar_ = new BreakdownBar(this);
  memory_bar_->setAccessibleName(tr("Memory by part"));
  memory_legend_ = new LegendTable(this);
  memory_legend_->setObjectName(QStringLiteral("memory_legend"));
  time_head_ = new SectionHead(tr("Iteration time"), this);
  time_bar_ = new BreakdownBar(this);
  time_bar_->setAccessibleName(tr("Time by part"));
  compute_legend_ = new LegendTable(this);
  network_legend_ = new LegendTable(this);
  compute_legend_->setObjectName(QStringLiteral("compute_legend"));
  network_legend_->setObjectName(QStringLiteral("network_legend"));
  for (QWidget* part :
       {static_cast<QWidget*>(memory_head_), static_cast<QWidget*>(memory_bar_), static_cast<QWidget*>(memory_legend_)})
    column->addWidget(part);
  column->addSpacing(8);
  column->addWidget(time_head_);
  column->addWidget(time_bar_);
  halves_ = new QBoxLayout(QBoxLayout::LeftToRight);
  halves_->setSpacing(kHalvesGap);
  halves_->addWidget(compute_legend_, 1, Qt::AlignTop);
  halves_->addWidget(network_legend_, 1, Qt::AlignTop);
  column->addLayout(halves_);
  column->addSpacing(8);
  validated_ = new ValidatedSection(this);
  connect(validated_, &ValidatedSection::report_wanted, this, &PlanPanel::report_wanted);
  column->addWidget(validated_);
  column->addSpacing(4);
  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(8);
  export_ = new QPushButton(tr("Export…"), this);
  export_->setObjectName(QStringLiteral("export_button"));
  validate_ = new QPushButton(tr("Validate"), this);
  validate_->setObjectName(QStringLiteral("validate_button"));
  why_ = new QPushButton(tr("Why?"), this);
  why_->setObjectName(QStringLiteral("why_button"));
  buttons->addWidget(why_, 1);
  buttons->addWidget(export_, 1);
  buttons->addWidget(validate_, 1);
  column->addLayout(buttons);
  column->addSpacing(8);
}

void PlanPanel::build_lists(QVBoxLayout* column) {
  stage_head_ = new SectionHead(tr("Stages of the method"), this);
  stage_legend_ = new LegendTable(this);
  stage_legend_->setObjectName(QStringLiteral("stage_legend"));
  column->addWidget(stage_head_);
  column->addWidget(stage_legend_);
  layers_ = new LayersSection(this);
  column->addWidget(layers_);
  weights_ = new WeightsSection(this);
  connect(weights_, &WeightsSection::weight_picked, this, &PlanPanel::pick_weight);
  column->addWidget(weights_);
  reshard_head_ = new SectionHead(tr("Most expensive reshardings"), this);
  column->addWidget(reshard_head_);
  reshard_view_ = new QTreeView(this);
  reshard_view_->setObjectName(QStringLiteral("reshard_view"));
  reshard_view_->setAccessibleName(tr("Most expensive reshardings"));
  reshard_view_->setModel(&reshards_);
  reshard_view_->setItemDelegate(new ReshardDelegate(reshard_view_));
  reshard_view_->setRootIsDecorated(false);
  reshard_view_->setUniformRowHeights(true);
  reshard_view_->setFrameShape(QFrame::NoFrame);
  reshard_view_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  reshard_view_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  reshard_view_->viewport()->setAutoFillBackground(false);
  reshard_view_->header()->setStretchLastSection(false);
  reshard_view_->header()->setMinimumSectionSize(40);
  reshard_view_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  reshard_view_->header()->setSectionResizeMode(ReshardModel::kTensor, QHeaderView::Stretch);
  connect(reshard_view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& current) {
            if (selection_ && current.isValid())
              selection_->pick_operators(reshards_.rows()[static_cast<std::size_t>(current.row())].operators);
          });
  column->addWidget(reshard_view_);
  no_reshards_ = make_label(this, true);
  column->addWidget(no_reshards_);
  column->addSpacing(8);
  operator_head_ = new SectionHead(tr("Selected operator"), this);
  column->addWidget(operator_head_);
  facts_ = new QGridLayout;
  facts_->setHorizontalSpacing(10);
  facts_->setVerticalSpacing(2);
  facts_->setColumnStretch(1, 1);
  column->addLayout(facts_);
}

void PlanPanel::set_selection(SelectionModel* selection) {
  selection_ = selection;
  connect(selection, &SelectionModel::operators_changed, this, &PlanPanel::show_operator);
  connect(selection, &SelectionModel::tasks_changed, this, &PlanPanel::show_operator);
}

void PlanPanel::set_validation(std::shared_ptr<const ValidationReport> report, const QString& how) {
  validated_->set_report(std::move(report), how);
}

void PlanPanel::set_point(ResultPtr result, std::size_t index, const QString& method_title, bool coarse) {
  if (result && index >= result->points.size()) result = nullptr;
  result_ = std::move(result);
  index_ = index;
  method_title_ = method_title;
  coarse_ = coarse;
  show_point();
  if (result_ && result_->clock == Clock::simulated && plan_) show_bars();
}

void PlanPanel::set_empty_text(const QString& text) { empty_->setText(text); }

void PlanPanel::set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario,
                         const std::optional<CostBreakdown>& whole_updates) {
  whole_updates_ = whole_updates;
  plan_ = std::move(plan);
  ratio_ = nullptr;
  placement_ = nullptr;
  scenario_ = std::move(scenario);
  show_kind();
  show_bars();
  show_reshards();
  show_operator();
}

void PlanPanel::set_ratio(RatioPlanPtr ratio, std::shared_ptr<const Plan> as_axes, ScenarioPtr scenario,
                          const std::optional<CostBreakdown>& whole_updates) {
  whole_updates_ = whole_updates;
  plan_ = std::move(as_axes);
  ratio_ = std::move(ratio);
  placement_ = nullptr;
  scenario_ = std::move(scenario);
  show_kind();
  show_bars();
  show_peak();
  show_operator();
}

void PlanPanel::changeEvent(QEvent* event) {
  QScrollArea::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || !pages_) return;
  placement_ ? show_placement() : show_bars();
  show_notes();
  show_peak();
}

void PlanPanel::show_notes() {
  const QString text = result_ ? notes_text(*result_) : QString();
  notes_->setText(text);
  notes_->setVisible(!text.isEmpty());
  const QString said = result_ ? explanations_text(*result_) : QString();
  explanations_->setText(said);
  explanations_->setVisible(!said.isEmpty());
  weights_->set_weights(result_ ? result_->weights : std::vector<WeightUpdate>(),
                        result_ ? result_->whole_updates : std::nullopt);
  QPalette tinted = palette();
  tinted.setColor(QPalette::WindowText, theme_colors(palette()).warning);
  notes_->setPalette(tinted);
  notes_->setFont(secondary_font(font()));
}

void PlanPanel::show_point() {
  pages_->setCurrentIndex(result_ ? 1 : 0);
  show_kind();
  show_notes();
  if (!result_) return;
  const ResultPoint& point = result_->points[index_];
  time_->setText(time_of_(point.time_s));
  show_peak();
  QStringList where;
  if (result_->turning_point == index_) where << tr("Turning point");
  if (result_->points.size() > 1 && result_->fastest_that_fits() == index_) where << tr("Fastest that fits");
  const bool single = result_->plans && result_->plans->kind(index_) == PlanKind::placement;
  if (single)
    where << tr("placement on %1 devices").arg(result_->scenario->cluster->devices());
  else
    where << tr("point %1").arg(index_)
          << place_words(distinct_place(result_->points, index_), distinct_plans(result_->points));
  where << method_title_;
  if (result_->clock == Clock::simulated && !single) where << tr("simulated");
  const auto gap = gap_at(*result_, index_);
  if (search::has_not_ended(*result_))
    where << tr("the best so far of a search that goes on");
  else if (coarse_ && single)
    where << tr("placed before, simulated again");
  else if (coarse_)
    where << (tr("sketch"));
  else if (result_->exact)
    where << tr("exact");
  else if (gap)
    where << tr("gap %1").arg(gap_text(*gap));
  if (!point.fits) where << tr("does not fit");
  QString line = where.join(QStringLiteral(" · "));
  line[0] = line[0].toUpper();
  where_->setText(line);
  where_->setToolTip(single ? QString() : tr("--point %1 on the command line; points are counted from 0").arg(index_));
  // A placement's neighbours are those of other methods; the chart knows them.
  previous_->setEnabled(single || index_ > 0);
  next_->setEnabled(single || index_ + 1 < result_->points.size());
  time_head_->set_value(time_of_(point.time_s));
}

void PlanPanel::show_bars() {
  if (placement_) return;
  if (!plan_ || !scenario_) {
    words_->setText(result_ ? tr("Unrolling the plan…") : QString());
    return;
  }
  QString words = ratio_ ? describe_ratio(*ratio_, *scenario_) : describe_plan(*plan_, *scenario_->model);
  if (!ratio_ && result_ && cuts_by_types(result_->method, result_->method_options))
    if (const QString typed = typed_layers(*plan_, *scenario_->model); !typed.isEmpty()) words += u'\n' + typed;
  words_->setText(words);
  const ThemeColors& colors = theme_colors(palette());
  const CostBreakdown& cost = plan_->cost;
  static const char* const kMemory[] = {QT_TR_NOOP("Parameters"),        QT_TR_NOOP("Gradients"),
                                        QT_TR_NOOP("Optimizer state"),   QT_TR_NOOP("Activations"),
                                        QT_TR_NOOP("Resharding copies"), QT_TR_NOOP("Workspace")};
  std::vector<BarPart> parts;
  std::vector<PartRow> rows;
  const std::vector<QString> shares = shares_text({cost.memory.begin(), cost.memory.end()});
  for (std::size_t i = 0; i < kMemoryParts; ++i) {
    if (cost.memory[i] == 0) continue;
    const auto value = static_cast<double>(cost.memory[i]);
    parts.push_back({colors.memory[i], value, tr(kMemory[i]) + u' ' + memory_text(cost.memory[i])});
    rows.push_back({colors.memory[i], tr(kMemory[i]), part_text(cost.memory[i]), shares[i]});
  }
  const std::int64_t limit = ratio_ ? scenario_->memory_limit_of(ratio_->fullest_device()) : scenario_->memory_limit();
  if (result_ && result_->clock == Clock::simulated) {
    // The parts are those of the plain sums: overlap and liveness cannot be told part by part.
    memory_head_->set_value(tr("sum %1").arg(memory_of_(cost.memory_bytes())));
    time_head_->set_value(tr("sum %1").arg(time_of_(cost.time_s())));
  }
  const std::int64_t passing = passing_bytes(), free = limit - peak_of_point().value_or(cost.memory_bytes());
  if (passing > 0) {
    parts.push_back({colors.axis, double(passing), tr("Passing at the peak %1").arg(memory_text(passing))});
    rows.push_back({colors.axis, tr("Passing at the peak"), part_text(passing), {}});
  }
  memory_bar_->set_parts(std::move(parts), static_cast<double>(limit),
                         free > 0 ? tr("%1 free").arg(memory_text(free)) : QString());
  memory_legend_->set_rows(std::move(rows));

  const bool stages = plan_->pipeline && plan_->pipeline->stages > 1;
  const std::vector<TimePart> times = time_parts(cost, stages, colors);
  const TimeUnit unit = time_unit_for(cost.time_s());
  std::vector<PartRow> compute{{QColor(), tr("Compute"), time_in(unit, cost.compute_s()), {}}},
      network{{QColor(), tr("Network"), time_in(unit, cost.network_s()), {}}};
  for (const TimePart& part : times)
    (part.network ? network : compute).push_back({part.color, part.name, time_in(unit, part.seconds), {}});
  time_bar_->set_parts(bar_of(times));
  weights_->set_step(cost, whole_updates_, stages);
  compute_legend_->set_rows(std::move(compute));
  network_legend_->set_rows(std::move(network));
}

void PlanPanel::show_reshards() {
  if (!plan_ || !scenario_) return;
  reshards_.set_rows(fold_reshards(*plan_, *scenario_->model), kShownReshards);
  const int rows = reshards_.rowCount();
  reshard_head_->set_value(rows ? tr("%1 of %2").arg(rows).arg(reshards_.total()) : QString());
  reshard_view_->setVisible(rows > 0);
  no_reshards_->setVisible(rows == 0);
  no_reshards_->setText(tr("None: every operator reads its tensors as they lie."));
  const int row_height = reshard_view_->fontMetrics().height() + 5;
  reshard_view_->setFixedHeight(reshard_view_->header()->sizeHint().height() + rows * row_height + 4);
}

void PlanPanel::clear_facts() {
  while (QLayoutItem* item = facts_->takeAt(0)) {
    if (QWidget* gone = item->widget()) gone->hide(), gone->deleteLater();
    delete item;
  }
}

void PlanPanel::add_fact(int row, const QString& name, const QString& value) {
  auto* left = make_label(this, true);
  left->setText(name);
  left->setWordWrap(false);
  auto* right = make_label(this, true);
  right->setText(value);
  right->setForegroundRole(QPalette::Text);
  facts_->addWidget(left, row, 0, Qt::AlignTop);
  facts_->addWidget(right, row, 1);
}

void PlanPanel::show_operator() {
  if (placement_) return show_task();
  clear_facts();
  const auto add = [this](int row, const QString& name, const QString& value) { add_fact(row, name, value); };
  const auto picked = selection_ ? selection_->operators() : std::set<OperatorId>();
  const bool one = picked.size() == 1 && plan_ && scenario_;
  operator_head_->set_value(picked.size() > 1 ? tr("%1 selected").arg(picked.size()) : QString());
  if (!one) {
    auto* hint = make_label(this, true);
    hint->setText(picked.empty() ? tr("Click an operator in the graph or the table.")
                                 : tr("Click one operator for its details."));
    facts_->addWidget(hint, 0, 0, 1, 2);
    return;
  }
  int row = 0;
  const OperatorId op = *picked.begin();
  if (op.index < scenario_->model->operators.size())
    add(row++, tr("Name"), to_qt(scenario_->model->operators[op].name));
  for (const Fact& fact : describe_operator(*plan_, *scenario_->model, op)) add(row++, fact.name, fact.value);
  if (!ratio_) return;
  for (const Fact& fact : describe_shares(*ratio_, *scenario_, op)) add(row++, fact.name, fact.value);
}

}  // namespace turnpoint::views
