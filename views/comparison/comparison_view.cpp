// SPDX-License-Identifier: Apache-2.0
#include "views/comparison/comparison_view.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHeaderView>
#include <QPainter>
#include <algorithm>
#include <utility>

#include "views/common/elided_header.h"
#include "views/common/format.h"
#include "views/common/method_marks.h"
#include "views/common/table_setup.h"
#include "views/common/theme_colors.h"
#include "views/plan_table/plan_delegates.h"

namespace turnpoint::views {
namespace {

constexpr int kMostAir = 6;
constexpr int kLeastColumn = 44;  // pixels

/// The method's line or marker before its name.
class MethodDelegate : public PlanRowDelegate {
 public:
  using PlanRowDelegate::PlanRowDelegate;
  static constexpr int kSwatchWidth = 26, kGap = 6, kEnd = 4;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return PlanRowDelegate::sizeHint(option, index) + QSize(kSwatchWidth + kGap, 0);
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const override {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
    style->drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
    const ThemeColors& theme = theme_colors(option.palette);
    const QString method = index.data(ComparisonModel::MethodRole).toString();
    const QRect swatch(option.rect.left() + 4, option.rect.top(), kSwatchWidth - 4, option.rect.height());
    painter->save();
    draw_method_swatch(*painter, swatch, method, index.data(ComparisonModel::FrontierRole).toBool(),
                       theme.method(method.toStdString()));
    painter->setPen(theme.text);
    painter->setFont(option.font);
    const QRect text = option.rect.adjusted(kSwatchWidth + kGap, 0, -kEnd, 0);
    painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                      option.fontMetrics.elidedText(option.text, Qt::ElideRight, text.width()));
    painter->restore();
  }
};

}  // namespace

ComparisonView::ComparisonView(QWidget* parent)
    : QWidget(parent), model_(new ComparisonModel(this)), sorted_(new QSortFilterProxyModel(this)) {
  setObjectName(QStringLiteral("comparison_view"));
  model_->set_palette(palette());
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(ComparisonModel::SortRole);
  make_tool_bar();
  make_table();
  empty_ = make_empty_words(
      tr("Methods that are switched on in the scenario are compared here once they have answered"), this);
  stack_table(this, bar_, table_, empty_);
  update_summary();
}

void ComparisonView::make_tool_bar() {
  bar_ = make_table_bar({QStringLiteral("comparison_tool_bar"),
                         {},
                         {},
                         tr("Copy table"),
                         tr("Copy all rows, with tabs between columns (Ctrl+C)")},
                        this);
  connect_copy(bar_, this, [this] { QApplication::clipboard()->setText(rows_as_text()); });
}

void ComparisonView::make_table() {
  table_ = new QTreeView(this);
  table_->setHeader(new ElidedHeader(table_));
  table_->setModel(sorted_);
  table_->setRootIsDecorated(false);
  set_up_table(table_, tr("Methods, one row each"));
  table_->setItemDelegate(new PlanRowDelegate(this));
  table_->setItemDelegateForColumn(ComparisonModel::method, new MethodDelegate(this));
  // Beside memory and time, with which it makes up what a placement is judged by.
  table_->header()->moveSection(ComparisonModel::communication, ComparisonModel::time + 1);
  table_->setSortingEnabled(true);
  table_->header()->setSortIndicatorClearable(true);
  table_->header()->setSortIndicator(-1, Qt::AscendingOrder);
  sorted_->sort(-1);
  table_->viewport()->installEventFilter(this);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &ComparisonView::pick_row);
}

void ComparisonView::set_data(const ChartData& chart) {
  const int before = model_->rowCount();
  changing_selection_ = true;
  model_->set_data(chart);
  changing_selection_ = false;
  QStringList names;  // with the sign of a note they are longer
  for (int row = 0; row < model_->rowCount(); ++row)
    names << model_->index(row, ComparisonModel::method).data().toString();
  bool other_columns = std::exchange(names_, names) != names;
  for (const int column :
       {int(ComparisonModel::network), int(ComparisonModel::turning), int(ComparisonModel::communication)}) {
    bool empty = true;
    for (int row = 0; row < model_->rowCount(); ++row)
      empty = empty && model_->index(row, column).data().toString().isEmpty();
    other_columns = other_columns || empty != table_->isColumnHidden(column);
    table_->setColumnHidden(column, empty);
  }
  if (model_->rowCount() != before || other_columns) fit_columns();
  update_summary();
  show_selection();
}

/// What the figures themselves take; names of methods are never cut.
int ComparisonView::content_width(int column) const {
  const QAbstractItemView* table = table_;
  return column == ComparisonModel::method ? least_width_[std::size_t(column)]
                                           : std::max(table->sizeHintForColumn(column), kLeastColumn);
}

void ComparisonView::fit_columns() {
  for (int column = 0; column < ComparisonModel::kColumns; ++column) {
    if (table_->isColumnHidden(column)) continue;
    table_->resizeColumnToContents(column);
    least_width_[std::size_t(column)] = table_->columnWidth(column);
    content_width_[std::size_t(column)] = std::min(table_->columnWidth(column), content_width(column));
  }
  fitted_.fill(0);
  spread_columns();
}

/// A little air between the columns where there is room for it, but never a scroll bar for the sake of air, nor for a
/// heading that is wider than its figures: it is elided, and its tip begins with it.
void ComparisonView::spread_columns() {
  int least = 0, shown = 0, shrinkable = 0;
  const auto slack = [this](std::size_t c) { return least_width_[c] - content_width_[c]; };
  for (std::size_t c = 0; c < fitted_.size(); ++c) {
    if (table_->isColumnHidden(int(c))) continue;
    const bool stretched = int(c) == ComparisonModel::clock;                                // the last one on show
    if (fitted_[c] > 0 && !stretched && table_->columnWidth(int(c)) != fitted_[c]) return;  // the user's
    least += least_width_[c];
    shrinkable += slack(c);
    ++shown;
  }
  if (shown == 0) return;
  const int room = table_->viewport()->width() - least;
  const int air = std::clamp(room / shown, 0, kMostAir);
  const int of_headings = std::clamp(-room, 0, shrinkable);
  for (std::size_t c = 0; c < fitted_.size(); ++c) {
    if (table_->isColumnHidden(int(c))) continue;
    // Rounded up, so that the sum is surely taken away.
    const int less = shrinkable > 0 ? (slack(c) * of_headings + shrinkable - 1) / shrinkable : 0;
    table_->setColumnWidth(int(c), fitted_[c] = least_width_[c] + air - less);
  }
}

bool ComparisonView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize && model_->rowCount() > 0) spread_columns();
  return QWidget::eventFilter(watched, event);
}

void ComparisonView::update_summary() {
  table_->setVisible(model_->rowCount() > 0);
  if (empty_) empty_->setVisible(model_->rowCount() == 0);
  bar_.copy->setEnabled(model_->rowCount() > 0);
  if (model_->rowCount() == 0) return bar_.summary->clear();
  const int best = model_->best_row();
  bar_.summary->setText(best < 0 ? tr("No method has a plan that fits")
                                 : tr("Fastest that fits: %1, %2 in %3")
                                       .arg(model_->series(best).title,
                                            model_->index(best, ComparisonModel::time).data().toString(),
                                            model_->index(best, ComparisonModel::memory).data().toString()));
}

void ComparisonView::set_selection(SelectionModel* selection) {
  if (selection_) selection_->disconnect(this);
  selection_ = selection;
  if (selection_) connect(selection_, &SelectionModel::point_changed, this, &ComparisonView::show_selection);
  show_selection();
}

void ComparisonView::show_selection() {
  if (changing_selection_) return;
  changing_selection_ = true;
  const int row = selection_ && selection_->point() ? model_->row_of(selection_->point()->method) : -1;
  if (row < 0)
    table_->clearSelection();
  else
    table_->selectionModel()->select(sorted_->mapFromSource(model_->index(row, 0)),
                                     QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  changing_selection_ = false;
}

void ComparisonView::pick_row() {
  if (changing_selection_ || !selection_) return;
  const auto picked = table_->selectionModel()->selectedRows();
  if (picked.size() != 1) return;
  const int row = sorted_->mapToSource(picked.front()).row();
  if (const auto plan = model_->plan_of(row)) selection_->pick_point(PickedPoint{model_->series(row).method, *plan});
}

QString ComparisonView::rows_as_text() const {
  QStringList lines;
  QStringList cells;
  std::vector<int> columns;  // as they stand on the screen
  for (int place = 0; place < ComparisonModel::kColumns; ++place)
    columns.push_back(table_->header()->logicalIndex(place));
  for (const int column : columns)
    cells << model_->headerData(column, Qt::Horizontal, Qt::AccessibleTextRole).toString();
  lines << cells.join(u'\t');
  for (int row = 0; row < sorted_->rowCount(); ++row) {
    cells.clear();
    for (const int column : columns) cells << sorted_->index(row, column).data().toString();
    lines << cells.join(u'\t');
  }
  return lines.join(u'\n') + u'\n';
}

QJsonObject ComparisonView::save_state() const {
  return {{QStringLiteral("sorted_by"), table_->header()->sortIndicatorSection()},
          {QStringLiteral("descending"), table_->header()->sortIndicatorOrder() == Qt::DescendingOrder}};
}

void ComparisonView::restore_state(const QJsonObject& state) {
  const int column = state[QStringLiteral("sorted_by")].toInt(-1);
  if (column < -1 || column >= ComparisonModel::kColumns) return;
  table_->sortByColumn(column, state[QStringLiteral("descending")].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
}

void ComparisonView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) model_->set_palette(palette());
  QWidget::changeEvent(event);
}

}  // namespace turnpoint::views
