// SPDX-License-Identifier: Apache-2.0
// The widgets of the Validation tab, made once.
#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
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

/// A button that does what the menu entry does, and is allowed when it is.
QToolButton* button_for(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setAccessibleName(action->text());
  return button;
}

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
  row->addWidget(make_ways());
  row->addWidget(button_for(actions_.run, tool_bar_));
  row->addWidget(button_for(actions_.sample, tool_bar_));
  actions_.calibrate->setIconText(tr("Calibrate"));
  row->addWidget(button_for(actions_.calibrate, tool_bar_));
}

/// Beside the button, not in it: where one way is refused another may not be.
QWidget* ValidationView::make_ways() {
  way_button_ = new QToolButton(tool_bar_);
  way_button_->setObjectName(QStringLiteral("validation_way"));
  way_button_->setPopupMode(QToolButton::InstantPopup);
  way_button_->setToolTip(tr("How plans are run here"));
  way_button_->setAccessibleName(tr("How plans are run here"));
  auto* menu = new QMenu(way_button_);
  menu->setToolTipsVisible(true);
  ways_ = new QActionGroup(this);
  const struct {
    QString name, short_name, tip;
  } ways[] = {{tr("CPU ranks"), tr("CPU ranks"), tr("A process for every device of the plan, with all exchanges")},
              {tr("One device's part, on the CPU"), tr("One part, CPU"),
               tr("Computing and memory of one device; exchanges are modelled")},
              {tr("One device's part, on the GPU"), tr("One part, GPU"),
               tr("Computing and memory of one device; exchanges are modelled")}};
  for (int i = 0; i < 3; ++i) {
    QAction* action = menu->addAction(ways[i].name);
    action->setIconText(ways[i].short_name);
    action->setToolTip(ways[i].tip);
    action->setCheckable(true);
    action->setData(i);
    ways_->addAction(action);
  }
  menu->addSeparator();
  prove_ = menu->addAction(tr("Compare results first"));
  prove_->setToolTip(tr("Loss and gradients of the plan's step against the unpartitioned step on one rank"));
  prove_->setCheckable(true);
  prove_->setChecked(true);
  way_button_->setMenu(menu);
  ways_->actions().front()->setChecked(true);
  way_button_->setText(ways[0].short_name);
  connect(ways_, &QActionGroup::triggered, this, [this] { take_way(); });
  return way_button_;
}

void ValidationView::take_way() {
  way_button_->setText(ways_->checkedAction()->iconText());
  emit way_changed();
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
