// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/hardware_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "views/common/counted.h"
#include "views/common/elided_label.h"
#include "views/common/icons.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/hardware/coverage_model.h"
#include "views/hardware/curve_chart.h"
#include "views/hardware/remark_model.h"
#include "views/hardware/topology_view.h"

namespace turnpoint::views {

HardwareView::HardwareView(QWidget* parent)
    : QWidget(parent), rows_(new CoverageModel(this)), remark_rows_(new RemarkModel(this)) {
  setObjectName(QStringLiteral("hardware_view"));
  make_tool_bar();
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(tool_bar_);
  all->addWidget(make_banner());
  across_ = new QSplitter(Qt::Horizontal, this);
  across_->setChildrenCollapsible(false);
  across_->addWidget(make_list());
  down_ = new QSplitter(Qt::Vertical, across_);
  down_->setChildrenCollapsible(false);
  auto* chart_panel = new QWidget(down_);
  auto* column = new QVBoxLayout(chart_panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  chart_head_ = new SectionHead({}, chart_panel);
  auto* head = new QVBoxLayout();
  head->setContentsMargins(12, 6, 12, 0);
  head->addWidget(chart_head_);
  column->addLayout(head);
  detail_ = new QStackedWidget(chart_panel);
  chart_ = new CurveChart(detail_);
  topology_ = new TopologyView(detail_);
  detail_->addWidget(chart_);
  detail_->addWidget(topology_);
  column->addWidget(detail_, 1);
  chart_panel->setAutoFillBackground(true);
  chart_panel->setBackgroundRole(QPalette::Base);
  down_->addWidget(chart_panel);
  down_->addWidget(make_remarks());
  down_->setStretchFactor(0, 3);
  down_->setStretchFactor(1, 1);
  down_->setSizes({300, 110});
  across_->addWidget(down_);
  across_->setStretchFactor(0, 0);
  across_->setStretchFactor(1, 1);
  across_->setSizes({430, 560});
  all->addWidget(across_, 1);
  connect(bandwidth_button_, &QToolButton::toggled, chart_, &CurveChart::set_bandwidth);
  tint();
  set_content(nullptr);
}

void HardwareView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("hardware_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(10);
  title_ = new Elided<QLabel>(tool_bar_);
  title_->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
  QFont bold = font();
  bold.setBold(true);
  title_->setFont(bold);
  summary_ = new Elided<QLabel>(tool_bar_);
  summary_->setFont(secondary_font(font()));
  bandwidth_button_ = new ToggleButton(tool_bar_);
  bandwidth_button_->setText(tr("Bandwidth"));
  bandwidth_button_->setCheckable(true);
  bandwidth_button_->setToolTip(tr("Bytes over time in place of time"));
  measure_button_ = new QToolButton(tool_bar_);
  measure_button_->setToolTip(
      tr("Time copies, collectives and operators on this machine; what is found becomes the hardware"));
  set_measuring(false);
  open_button_ = new QToolButton(tool_bar_);
  open_button_->setText(tr("Open measured logs\u2026"));
  open_button_->setToolTip(
      tr("Read logs of nccl-tests, nvbandwidth, nvidia-smi and others, several at once, and make a profile of them"));
  row->addWidget(title_);
  row->addWidget(summary_, 1);
  row->addWidget(bandwidth_button_);
  row->addWidget(measure_button_);
  row->addWidget(open_button_);
  connect(measure_button_, &QToolButton::clicked, this, &HardwareView::measure_requested);
  connect(open_button_, &QToolButton::clicked, this, &HardwareView::open_logs_requested);
}

QWidget* HardwareView::make_banner() {
  banner_ = new QWidget(this);
  banner_->setObjectName(QStringLiteral("hardware_banner"));
  banner_->setAutoFillBackground(true);
  auto* row = new QHBoxLayout(banner_);
  row->setContentsMargins(12, 5, 8, 5);
  banner_text_ = new QLabel(banner_);
  banner_text_->setWordWrap(true);
  banner_text_->setTextFormat(Qt::PlainText);
  banner_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  base_button_ = new QPushButton(banner_);
  close_button_ = new QPushButton(tr("Close"), banner_);
  close_button_->setToolTip(tr("Show the open hardware again"));
  row->addWidget(banner_text_, 1);
  row->addWidget(base_button_);
  row->addWidget(close_button_);
  connect(base_button_, &QPushButton::clicked, this, &HardwareView::base_requested);
  connect(close_button_, &QPushButton::clicked, this, &HardwareView::close_requested);
  return banner_;
}

QWidget* HardwareView::make_list() {
  auto* panel = new QWidget(this);
  panel->setAutoFillBackground(true);
  panel->setBackgroundRole(QPalette::Base);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  tree_ = new QTreeView(panel);
  tree_->setObjectName(QStringLiteral("hardware_tree"));
  tree_->setModel(rows_);
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->setUniformRowHeights(true);
  tree_->setAlternatingRowColors(true);
  tree_->setAllColumnsShowFocus(true);
  tree_->setIndentation(14);
  tree_->setTextElideMode(Qt::ElideRight);
  tree_->setAccessibleName(tr("What is measured, calibrated or modelled"));
  tree_->setItemDelegateForColumn(CoverageModel::origin, new OriginDelegate(tree_));
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionsMovable(false);
  tree_->header()->setMinimumSectionSize(40);
  tree_->header()->setSectionResizeMode(CoverageModel::name, QHeaderView::Stretch);
  for (const int c : {CoverageModel::origin, CoverageModel::samples, CoverageModel::range})
    tree_->header()->setSectionResizeMode(c, QHeaderView::ResizeToContents);
  tree_->viewport()->installEventFilter(this);
  connect(tree_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &HardwareView::pick_row);
  explanation_ = new NoteLabel(panel);
  explanation_->setWordWrap(true);
  explanation_->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  explanation_->setContentsMargins(12, 5, 12, 6);
  column->addWidget(tree_, 1);
  column->addWidget(explanation_);
  panel->setMinimumWidth(260);
  return panel;
}

QWidget* HardwareView::make_remarks() {
  remark_panel_ = new QWidget(this);
  remark_panel_->setAutoFillBackground(true);
  remark_panel_->setBackgroundRole(QPalette::Base);
  auto* column = new QVBoxLayout(remark_panel_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  remark_head_ = new SectionHead(tr("Problems and notes"), remark_panel_);
  auto* head = new QVBoxLayout();
  head->setContentsMargins(12, 4, 12, 2);
  head->addWidget(remark_head_);
  column->addLayout(head);
  remark_table_ = new QTableView(remark_panel_);
  remark_table_->setObjectName(QStringLiteral("hardware_remarks"));
  remark_table_->setModel(remark_rows_);
  remark_table_->setFrameShape(QFrame::NoFrame);
  remark_table_->setShowGrid(false);
  remark_table_->setAlternatingRowColors(true);
  remark_table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  remark_table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  remark_table_->setWordWrap(false);
  remark_table_->setTabKeyNavigation(false);
  remark_table_->setAccessibleName(tr("Problems and notes of the files"));
  remark_table_->verticalHeader()->hide();
  remark_table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
  remark_table_->horizontalHeader()->setHighlightSections(false);
  remark_table_->horizontalHeader()->setStretchLastSection(true);
  connect(remark_table_, &QTableView::doubleClicked, this,
          [this](const QModelIndex& index) { copy_remark(index.row()); });
  auto* copy = new QAction(tr("Copy"), remark_table_);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetShortcut);
  connect(copy, &QAction::triggered, this, [this] {
    QStringList lines;
    for (const QModelIndex& index : remark_table_->selectionModel()->selectedRows())
      if (const RemarkRow* row = remark_rows_->row_at(index.row())) lines << row->text();
    if (!lines.isEmpty()) QApplication::clipboard()->setText(lines.join(u'\n'));
  });
  remark_table_->addAction(copy);
  remark_table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  column->addWidget(remark_table_, 1);
  remark_panel_->setMinimumHeight(70);
  return remark_panel_;
}

void HardwareView::tint() {
  const ThemeColors& colors = theme_colors(palette());
  QPalette tinted = palette();
  for (const auto group : {QPalette::Active, QPalette::Inactive}) {
    tinted.setColor(group, QPalette::Highlight, colors.accent_background);
    tinted.setColor(group, QPalette::HighlightedText, colors.text);
  }
  tree_->setPalette(tinted);
  remark_table_->setPalette(tinted);
  remark_rows_->set_palette(palette());
  QPalette warning = palette();
  warning.setColor(QPalette::Window, colors.warning_background);
  banner_->setPalette(warning);
  QPalette quiet = palette();
  quiet.setColor(QPalette::WindowText, colors.secondary);
  summary_->setPalette(quiet);
}

void HardwareView::set_base(const QString& title) {
  base_ = title;
  base_button_->setText(tr("Fill in from %1").arg(title));
  base_button_->setVisible(!title.isEmpty() && content_ && !content_->cluster);
}

void HardwareView::set_measuring(bool on) {
  measure_button_->setEnabled(!on);
  measure_button_->setText(on ? tr("Measuring\u2026") : tr("Measure this machine\u2026"));
}

void HardwareView::set_content(HardwareContentPtr content) {
  const QString wanted = wanted_;
  content_ = std::move(content);
  rows_->set_content(content_);
  remark_rows_->set_content(content_);
  title_->setText(content_ ? content_->title : QString());
  summary_->setText(content_ ? content_->summary : QString());
  summary_->setToolTip(summary_->text());
  explanation_->setText(content_ ? content_->explanation : QString());
  explanation_->setVisible(content_ && !content_->explanation.isEmpty());
  banner_->setVisible(content_ && !content_->not_in_use.isEmpty());
  if (content_) banner_text_->setText(content_->not_in_use);
  set_base(base_);
  const bool remarks = content_ && !content_->remarks.empty();
  remark_panel_->setVisible(remarks);
  if (remarks) {
    const int notes = static_cast<int>(content_->remarks.size()) - content_->warnings;
    remark_head_->set_value(content_->warnings > 0
                                ? counted(content_->warnings, tr("1 problem"), tr("%1 problems")) +
                                      QStringLiteral(" · ") + counted(notes, tr("1 note"), tr("%1 notes"))
                                : counted(notes, tr("1 note"), tr("%1 notes")));
    remark_table_->resizeColumnToContents(RemarkModel::file);
    remark_table_->resizeColumnToContents(RemarkModel::line);
    remark_table_->setColumnWidth(RemarkModel::file, std::min(remark_table_->columnWidth(RemarkModel::file) + 8, 180));
  }
  wanted_ = wanted;
  show_picked();
}

/// The row that was picked before, else the first measured one, else the first.
void HardwareView::show_picked() {
  int found = -1, measured = -1, first = -1;
  const auto count = content_ ? static_cast<int>(content_->rows.size()) : 0;
  for (int i = 0; i < count; ++i) {
    const HardwareRow& row = content_->rows[static_cast<std::size_t>(i)];
    if (row.kind == HardwareRow::Kind::heading) continue;
    if (!wanted_.isEmpty() && row.key() == wanted_ && found < 0) found = i;
    if (row.curve >= 0 && measured < 0) measured = i;
    if (first < 0) first = i;
  }
  const int pick = found >= 0 ? found : measured >= 0 ? measured : first;
  if (pick < 0) {
    pick_row();
    return;
  }
  const QModelIndex index = rows_->index_of(pick);
  tree_->expand(index.parent());
  tree_->setCurrentIndex(index);
  tree_->scrollTo(index);
}

void HardwareView::pick_row() {
  const HardwareRow* row = rows_->row_at(tree_->currentIndex());
  if (!row || !content_) {
    CurveChartData nothing;
    nothing.nothing = content_ && !content_->explanation.isEmpty() ? content_->explanation : QStringLiteral(" ");
    chart_head_->set_title({});
    chart_head_->set_value({});
    chart_->set_chart(std::move(nothing));
    detail_->setCurrentWidget(chart_);
    return;
  }
  if (row->kind != HardwareRow::Kind::heading) wanted_ = row->key();
  const bool topology = row->kind == HardwareRow::Kind::topology;
  if (!topology && !before_topology_.isEmpty()) {
    across_->setSizes(std::exchange(before_topology_, {}));
    for (const int column : {CoverageModel::samples, CoverageModel::range}) tree_->setColumnHidden(column, false);
  }
  detail_->setCurrentWidget(topology ? static_cast<QWidget*>(topology_) : chart_);
  if (topology) {
    topology_->set_topology(content_->cluster->topology);
    make_room_for_topology();
    chart_head_->set_title(row->name);
    chart_head_->set_value(tr("%1 GPUs").arg(content_->cluster->topology.gpus.size()));
    return;
  }
  CurveChartData chart = make_curve_chart(*content_, *row);
  chart_head_->set_title(chart.title);
  QString value = row->origin ? origin_text(*row->origin) : row->state;
  if (!chart.subtitle.isEmpty())
    value = chart.points.empty() ? chart.subtitle : value + QStringLiteral(" · ") + chart.subtitle;
  chart_head_->set_value(value);
  chart_->set_chart(std::move(chart));
}

/// A matrix is read as a whole. Where that takes room from the list, the list keeps its names.
void HardwareView::make_room_for_topology() {
  const QList<int> sizes = across_->sizes();
  const int both = sizes[0] + sizes[1];
  const int wanted = std::min(topology_->least_width(), both - across_->widget(0)->minimumWidth());
  if (wanted <= sizes[1]) return;
  if (before_topology_.isEmpty()) before_topology_ = sizes;
  across_->setSizes({both - wanted, wanted});
  for (const int column : {CoverageModel::samples, CoverageModel::range}) tree_->setColumnHidden(column, true);
}

void HardwareView::copy_remark(int row) const {
  if (const RemarkRow* remark = remark_rows_->row_at(row)) QApplication::clipboard()->setText(remark->text());
}

QString HardwareView::explanation() const { return explanation_->text(); }

QString HardwareView::empty_text() const {
  if (!content_)
    return tr("Open a model, a hardware profile or measured logs to see what the costs are computed from.");
  return content_->rows.empty() ? tr("The files hold no collective, operator or link.") : QString();
}

QJsonObject HardwareView::save_state() const {
  QJsonObject state;
  state.insert(QStringLiteral("picked"), wanted_);
  state.insert(QStringLiteral("bandwidth"), chart_->bandwidth());
  return state;
}

void HardwareView::restore_state(const QJsonObject& state) {
  wanted_ = state.value(QLatin1String("picked")).toString();
  bandwidth_button_->setChecked(state.value(QLatin1String("bandwidth")).toBool());
  show_picked();
}

void HardwareView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) tint();
}

bool HardwareView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == tree_->viewport() && event->type() == QEvent::Paint && !empty_text().isEmpty()) {
    const ThemeColors& colors = theme_colors(palette());
    QPainter painter(tree_->viewport());
    painter.fillRect(tree_->viewport()->rect(), colors.base);
    painter.setPen(colors.secondary);
    painter.drawText(tree_->viewport()->rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     empty_text());
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace turnpoint::views
