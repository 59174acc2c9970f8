// SPDX-License-Identifier: Apache-2.0
// The widgets of the Validation tab, made once.
#include <QAction>
#include <QApplication>
#include <QButtonGroup>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <functional>

#include "views/common/elided_label.h"
#include "views/common/icons.h"
#include "views/common/note_label.h"
#include "views/common/toggle_button.h"
#include "views/plan_table/plan_delegates.h"
#include "views/validation/report_delegate.h"
#include "views/validation/validation_bars.h"
#include "views/validation/validation_model.h"
#include "views/validation/validation_scatter.h"
#include "views/validation/validation_view.h"

namespace turnpoint::views {

namespace {

constexpr double kUsualBudget_s = 60;

/// A button that does what the menu entry does, and is allowed when it is.
QToolButton* button_for(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setAccessibleName(action->text());
  return button;
}

/// Says when it has another width.
class WaysBar : public QWidget {
 public:
  using QWidget::QWidget;
  std::function<void()> fit;

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QWidget::resizeEvent(event);
    if (fit) fit();
  }
};

}  // namespace

void ValidationView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("validation_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  words_ = new Elided<NoteLabel>(tool_bar_);
  stop_ = new QToolButton(tool_bar_);
  stop_->setObjectName(QStringLiteral("validation_stop"));
  stop_->setIcon(themed_icon(QStringLiteral("stop")));
  stop_->setAutoRaise(true);
  stop_->setToolTip(tr("Stop running plans"));
  stop_->setAccessibleName(stop_->toolTip());
  stop_->hide();
  connect(stop_, &QToolButton::clicked, this, &ValidationView::stop_requested);
  row->addWidget(words_, 1);
  row->addWidget(stop_);
  row->addWidget(button_for(actions_.run, tool_bar_));
  row->addWidget(button_for(actions_.sample, tool_bar_));
  actions_.calibrate->setIconText(tr("Calibrate"));
  row->addWidget(button_for(actions_.calibrate, tool_bar_));
}

/// How it is run, in sight: where one way is refused another may not be, and most refusals name what is set here.
QWidget* ValidationView::make_ways() {
  auto* bar = new WaysBar(this);
  bar->setObjectName(QStringLiteral("validation_ways"));
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(8, 3, 8, 3);
  row->setSpacing(4);
  ways_ = new QButtonGroup(bar);
  const std::array names{tr("Whole plan, CPU"), tr("One device's part, CPU"), tr("One device's part, GPU"),
                         tr("PyTorch"), tr("JAX")};
  const std::array brief{tr("Whole plan"), tr("A part, CPU"), tr("A part, GPU"), tr("PyTorch"), tr("JAX")};
  const QString tips[] = {
      tr("A process for every device of the plan, with all exchanges"),
      tr("Computing and memory of one device; exchanges are modelled"),
      tr("Computing and memory of one device; exchanges are modelled"),
      tr("The exported program under PyTorch: a process for every device of the plan, on GPUs where "
         "there are enough"),
      tr("The exported program under JAX: all devices of the plan in one process, on GPUs where there "
         "are any")};
  for (int i = 0; i < kValidationWays; ++i) {
    auto* way = new ToggleButton(bar);
    way->setText(names[std::size_t(i)]);
    way->setToolTip(tips[i]);
    way->setCheckable(true);
    way->setObjectName(QLatin1String(kWayKeys[i]));
    ways_->addButton(way, i);
    row->addWidget(way);
  }
  ways_->button(0)->setChecked(true);
  row->addSpacing(8);
  prove_ = new ToggleButton(bar);
  prove_->setText(tr("Compare results"));
  prove_->setToolTip(tr("Loss and gradients of the plan's step against the unpartitioned step on one rank"));
  prove_->setCheckable(true);
  prove_->setChecked(true);
  row->addWidget(prove_);
  row->addSpacing(8);
  budget_ = new QDoubleSpinBox(bar);
  budget_->setObjectName(QStringLiteral("validation_budget"));
  budget_->setRange(1, 86400);
  budget_->setDecimals(0);
  budget_->setValue(kUsualBudget_s);
  budget_->setSingleStep(30);
  budget_->setPrefix(tr("at most "));
  budget_->setSuffix(tr(" s"));
  budget_->setKeyboardTracking(false);
  budget_->setAccessibleName(tr("Seconds for one plan's timed steps"));
  budget_->setToolTip(tr("Seconds for one plan's timed steps, and the most that comparing its results may take"));
  row->addWidget(budget_);
  row->addStretch(1);
  // Whole words in a narrow window, too: shorter ones, that the tool tips explain.
  bar->fit = [this, bar, names, brief] {
    const auto write = [&](const std::array<QString, kValidationWays>& words) {
      for (int i = 0; i < kValidationWays; ++i) ways_->button(i)->setText(words[std::size_t(i)]);
      bar->layout()->invalidate();
    };
    write(names);
    if (bar->layout()->sizeHint().width() > bar->width()) write(brief);
  };
  // Clipped at its end rather than holding a narrow window open.
  row->setSizeConstraint(QLayout::SetNoConstraint);
  bar->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  bar->setMinimumHeight(row->minimumSize().height());
  connect(ways_, &QButtonGroup::idClicked, this, &ValidationView::way_changed);
  connect(prove_, &QToolButton::clicked, this, &ValidationView::way_changed);
  connect(budget_, &QDoubleSpinBox::valueChanged, this, &ValidationView::way_changed);
  return bar;
}

QWidget* ValidationView::make_empty() {
  auto* page = new QWidget(whole_);
  page->setObjectName(QStringLiteral("validation_empty"));
  page->setAutoFillBackground(true);
  page->setBackgroundRole(QPalette::Base);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(24, 12, 24, 12);
  column->addStretch(1);
  auto* words = new QLabel(empty_text(), page);
  words->setWordWrap(true);
  words->setAlignment(Qt::AlignCenter);
  words->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  column->addWidget(words);
  auto* row = new QHBoxLayout();
  row->addStretch(1);
  row->addWidget(button_for(actions_.run, page));
  row->addWidget(button_for(actions_.open, page));
  row->addStretch(1);
  column->addSpacing(8);
  column->addLayout(row);
  empty_reason_ = new QLabel(page);
  empty_reason_->setWordWrap(true);
  empty_reason_->setAlignment(Qt::AlignCenter);
  empty_reason_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  empty_reason_->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  column->addSpacing(4);
  column->addWidget(empty_reason_);
  column->addStretch(1);
  return page;
}

QString ValidationView::empty_text() const {
  return tr(
      "Runs the training step of the picked plan on this machine and shows, bar by bar, what was predicted, what "
      "was measured, and what could not be measured here.");
}

QWidget* ValidationView::make_list() {
  auto* panel = new QWidget(across_);
  panel->setMinimumWidth(140);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  list_ = new QListWidget(panel);
  list_->setObjectName(QStringLiteral("validation_list"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  list_->setTextElideMode(Qt::ElideRight);
  list_->setAlternatingRowColors(true);
  list_->setItemDelegate(new ReportDelegate(list_));
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setAccessibleName(tr("Reports; two picked ones are compared"));
  list_->setToolTip(tr("Ctrl+click compares a second report"));
  column->addWidget(list_, 1);
  auto* row = new QHBoxLayout();
  row->setContentsMargins(4, 2, 4, 2);
  row->setSpacing(2);
  const auto icon_button = [&](const char* icon, const QString& tip) {
    auto* button = new QToolButton(panel);
    button->setIcon(themed_icon(QString::fromLatin1(icon)));
    button->setAutoRaise(true);
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    row->addWidget(button);
    return button;
  };
  connect(icon_button("open", actions_.open->text()), &QToolButton::clicked, actions_.open, &QAction::trigger);
  connect(icon_button("save", actions_.save->text()), &QToolButton::clicked, actions_.save, &QAction::trigger);
  QToolButton* exports = icon_button("export", tr("Export the report"));
  auto* menu = new QMenu(exports);
  menu->addAction(actions_.csv);
  menu->addAction(actions_.markdown);
  exports->setMenu(menu);
  exports->setPopupMode(QToolButton::InstantPopup);
  row->addStretch(1);
  connect(icon_button("close", tr("Remove the picked reports from the list")), &QToolButton::clicked, this,
          &ValidationView::remove_picked);
  column->addLayout(row);
  auto* remove = new QAction(tr("Remove"), list_);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetShortcut);
  connect(remove, &QAction::triggered, this, &ValidationView::remove_picked);
  list_->addActions({actions_.save, actions_.csv, actions_.markdown, remove});
  list_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(list_, &QListWidget::itemSelectionChanged, this, [this] {
    if (changing_) return;
    show_report();
    emit current_changed();
  });
  return panel;
}

QWidget* ValidationView::make_report() {
  auto* panel = new QWidget(across_);
  panel->setAutoFillBackground(true);
  panel->setBackgroundRole(QPalette::Base);
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* head = new QVBoxLayout();
  head->setContentsMargins(12, 5, 12, 4);
  head->setSpacing(1);
  auto* first = new QHBoxLayout();
  first->setSpacing(4);
  title_ = new Elided<QLabel>(panel);
  QFont bold = font();
  bold.setBold(true);
  title_->setFont(bold);
  first->addWidget(title_, 1);
  const QString names[] = {tr("Bars"), tr("Table"), tr("Plans")};
  const QString tips[] = {tr("Predicted against measured, value by value"), tr("The same as figures, sortable"),
                          tr("All plans: predicted against measured step time, and their errors")};
  for (int i = 0; i < 3; ++i) {
    page_buttons_[i] = new ToggleButton(panel);
    page_buttons_[i]->setText(names[i]);
    page_buttons_[i]->setToolTip(tips[i]);
    page_buttons_[i]->setCheckable(true);
    first->addWidget(page_buttons_[i]);
    connect(page_buttons_[i], &QToolButton::clicked, this, [this, i] { show_page(static_cast<Page>(i)); });
  }
  facts_ = new Elided<NoteLabel>(panel);
  verdict_ = new Elided<QLabel>(panel);
  verdict_->setObjectName(QStringLiteral("validation_verdict"));
  disturbed_ = new Elided<QLabel>(panel);
  disturbed_->setObjectName(QStringLiteral("validation_disturbed"));
  disturbed_->hide();
  compared_ = new Elided<NoteLabel>(panel);
  head->addLayout(first);
  head->addWidget(facts_);
  head->addWidget(disturbed_);
  head->addWidget(verdict_);
  head->addWidget(compared_);
  column->addLayout(head);
  pages_ = new QStackedWidget(panel);
  bars_ = new ValidationBars(pages_);
  pages_->addWidget(bars_);
  make_table(pages_);
  pages_->addWidget(table_);
  auto* plans = new QWidget(pages_);
  auto* beside = new QHBoxLayout(plans);
  beside->setContentsMargins(0, 0, 0, 0);
  beside->setSpacing(0);
  scatter_ = new ValidationScatter(plans);
  beside->addWidget(scatter_, 1);
  // On a low window the figures scroll; the chart stays whole.
  auto* scroll = new QScrollArea(plans);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* inner = new QWidget(scroll);
  inner->setAutoFillBackground(true);
  inner->setBackgroundRole(QPalette::Base);
  auto* figures = new QVBoxLayout(inner);
  figures->setContentsMargins(4, 8, 12, 8);
  summary_ = new QLabel(inner);
  summary_->setObjectName(QStringLiteral("validation_summary"));
  summary_->setTextFormat(Qt::RichText);
  summary_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  summary_->setWordWrap(true);
  summary_scope_ = new NoteLabel(inner);
  summary_scope_->setWordWrap(true);
  summary_scope_->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  figures->addWidget(summary_);
  figures->addWidget(summary_scope_);
  figures->addStretch(1);
  scroll->setWidget(inner);
  scroll->setFixedWidth(fontMetrics().horizontalAdvance(QLatin1Char('0')) * 32);
  beside->addWidget(scroll);
  pages_->addWidget(plans);
  column->addWidget(pages_, 1);
  connect(scatter_, &ValidationScatter::picked, this, [this](int at) {
    const auto shown = comparable();
    const auto found = std::find(reports_.begin(), reports_.end(), shown[static_cast<std::size_t>(at)]);
    if (found != reports_.end()) list_->setCurrentRow(static_cast<int>(found - reports_.begin()));
  });
  show_page(Page::bars);
  return panel;
}

void ValidationView::make_table(QWidget* parent) {
  sorted_->setSourceModel(rows_);
  sorted_->setSortRole(ValidationModel::SortRole);
  table_ = new QTreeView(parent);
  table_->setObjectName(QStringLiteral("validation_table"));
  table_->setModel(sorted_);
  table_->setRootIsDecorated(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->setAllColumnsShowFocus(true);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setAccessibleName(tr("Predicted and measured values"));
  table_->setItemDelegate(new PlanRowDelegate(this));
  table_->setSortingEnabled(true);
  table_->header()->setSortIndicatorClearable(true);
  table_->header()->setSortIndicator(-1, Qt::AscendingOrder);
  table_->header()->setStretchLastSection(true);
  table_->header()->setSectionsMovable(false);
  sorted_->sort(-1);
  auto* copy = new QAction(tr("Copy table"), table_);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetShortcut);
  connect(copy, &QAction::triggered, this, [this] { QApplication::clipboard()->setText(rows_as_text()); });
  table_->addAction(copy);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &ValidationView::pick_table_row);
}

}  // namespace turnpoint::views
