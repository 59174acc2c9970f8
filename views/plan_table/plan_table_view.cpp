// SPDX-License-Identifier: Apache-2.0
#include "views/plan_table/plan_table_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHeaderView>
#include <QJsonArray>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QSet>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "views/common/format.h"
#include "views/common/table_setup.h"
#include "views/common/theme_colors.h"
#include "views/plan_table/plan_delegates.h"

namespace turnpoint::views {

namespace {

/// More rows than this picked from elsewhere are marked, but not unfolded one by one.
constexpr std::size_t kMostUnfolded = 20;

/// Keeps rows whose words contain every word of the filter; parents of kept rows stay, and so do their children.
class PlanFilter : public QSortFilterProxyModel {
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;
  void set_words(const QString& text) {
    words_ = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
  }

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override {
    if (words_.isEmpty()) return true;
    const QString have = sourceModel()->index(row, 0, parent).data(PlanTableModel::SearchRole).toString();
    return std::all_of(words_.begin(), words_.end(),
                       [&](const QString& word) { return have.contains(word, Qt::CaseInsensitive); });
  }

 private:
  QStringList words_;
};

}  // namespace

PlanTableView::PlanTableView(QWidget* parent)
    : QWidget(parent), rows_(new PlanTableModel(this)), sorted_(new PlanFilter(this)) {
  setObjectName(QStringLiteral("plan_table_view"));
  rows_->set_palette(palette());
  sorted_->setSourceModel(rows_);
  sorted_->setSortRole(PlanTableModel::SortRole);
  sorted_->setSortCaseSensitivity(Qt::CaseInsensitive);
  sorted_->setRecursiveFilteringEnabled(true);
  sorted_->setAutoAcceptChildRows(true);
  make_tool_bar();
  make_tree();
  stack_table(this, bar_, tree_);
  update_summary();
}

void PlanTableView::make_tool_bar() {
  bar_ = make_table_bar(
      {QStringLiteral("plan_table_tool_bar"), tr("Filter: name, kind, configuration"), tr("Filter of the plan table"),
       tr("Copy rows"), tr("Copy the picked rows, or all that can be seen, with tabs between columns (Ctrl+C)")},
      this);
  connect(bar_.copy, &QToolButton::clicked, this, &PlanTableView::copy_rows);
  connect(bar_.filter, &QLineEdit::textChanged, this, [this](const QString& text) {
    static_cast<PlanFilter*>(sorted_)->set_words(text);
    // What was found is shown, not hidden in folded layers; whole layers stay folded.
    if (text.trimmed().isEmpty()) {
      tree_->collapseAll();
    } else if (sorted_->rowCount() <= 50) {
      tree_->expandToDepth(1);
    }
    update_summary();
    show_selection();
  });
}

void PlanTableView::make_tree() {
  tree_ = new QTreeView(this);
  tree_->setModel(sorted_);
  set_up_table(tree_, tr("Plan, one row per operator"));
  tree_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  tree_->setMouseTracking(true);
  tree_->setIndentation(16);
  tree_->setItemDelegate(new PlanRowDelegate(this));
  tree_->setItemDelegateForColumn(PlanTableModel::configuration, new SwatchDelegate(this));
  tree_->setItemDelegateForColumn(PlanTableModel::share, new ShareDelegate(rows_, this));
  tree_->setSortingEnabled(true);
  tree_->header()->setSortIndicatorClearable(true);
  tree_->header()->setSortIndicator(-1, Qt::DescendingOrder);
  sorted_->sort(-1);
  measure_columns();
  fit_columns();
  connect(tree_->header(), &QHeaderView::sectionResized, this, [this](int column) {
    // The last column stretches by itself.
    if (!fitting_columns_ && column != PlanTableModel::share) columns_are_the_users_ = true;
  });
  tint_picked_rows();
  tree_->viewport()->installEventFilter(this);
  connect(tree_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &PlanTableView::pick_selection);
  connect(tree_, &QTreeView::entered, this, [this](const QModelIndex& index) {
    const PlanRow& row = rows_->row_at(sorted_->mapToSource(index));
    if (selection_) selection_->hover_operator(row.op);
  });
  auto* copy = new QAction(tr("Copy rows"), tree_);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  connect(copy, &QAction::triggered, this, &PlanTableView::copy_rows);
  tree_->addAction(copy);
  auto* unfold = new QAction(tr("Unfold all"), tree_);
  connect(unfold, &QAction::triggered, tree_, &QTreeView::expandAll);
  auto* fold = new QAction(tr("Fold all"), tree_);
  connect(fold, &QAction::triggered, tree_, &QTreeView::collapseAll);
  tree_->addAction(unfold);
  tree_->addAction(fold);
  tree_->setContextMenuPolicy(Qt::ActionsContextMenu);
}

/// As wide as their words, within reason; figures as wide as their heads.
void PlanTableView::measure_columns() {
  const QFontMetrics metrics(tree_->font());
  const int letter = metrics.averageCharWidth();
  const int least[] = {20, 9, 18, 12, 10, 6, 8, 8, 8, 12}, most[] = {34, 20, 32, 30, 26, 10, 14, 14, 14, 26};
  const auto& rows = rows_->rows().rows;
  const std::size_t step = 1 + rows.size() / 2000;
  for (int c = 0; c < PlanTableModel::kColumns; ++c) {
    const bool figure = c >= PlanTableModel::memory && c < PlanTableModel::share;
    const int head = metrics.horizontalAdvance(rows_->headerData(c, Qt::Horizontal, Qt::DisplayRole).toString()) + 8;
    int widest = c == PlanTableModel::share ? most[c] * letter : head;
    for (std::size_t r = 0; r < rows.size() && c < PlanTableModel::memory; r += step) {
      const QModelIndex index = rows_->index_of(static_cast<int>(r), c);
      int width = metrics.horizontalAdvance(index.data().toString()) + (c == PlanTableModel::configuration ? 18 : 0);
      if (c == PlanTableModel::name) {
        width = width * 11 / 10;  // groups are bold
        for (QModelIndex at = index; at.isValid(); at = at.parent()) width += tree_->indentation();
      }
      widest = std::max(widest, width);
    }
    const auto i = static_cast<std::size_t>(c);
    full_width_[i] = widest + 14;
    wished_width_[i] = std::clamp(widest, least[c] * letter, most[c] * letter) + 14;
    // Figures are never cut, and of "elementwise" and "normalisation" the middle would not say which it is.
    least_width_[i] = figure ? std::max(head, metrics.horizontalAdvance(QStringLiteral("<0.001"))) + 10
                      : c == PlanTableModel::kind
                          ? wished_width_[i]
                          : std::min(wished_width_[i], std::max(head + 10, least[c] * letter + 14));
    wished_width_[i] = std::max(wished_width_[i], least_width_[i]);
    full_width_[i] = c == PlanTableModel::share ? wished_width_[i] : std::max(wished_width_[i], full_width_[i]);
  }
}

/// Where the view is too narrow for all wishes, every column gives up the same part of what it can give; where there is
/// more room than that, nothing is cut that it could hold.
void PlanTableView::fit_columns() {
  if (columns_are_the_users_) return;
  const auto sum = [](const auto& widths) { return std::accumulate(widths.begin(), widths.end(), 0); };
  const int wished = sum(wished_width_), least = sum(least_width_), room = tree_->viewport()->width();
  const double give = wished <= room || wished == least ? 0 : std::min(1.0, double(wished - room) / (wished - least));
  const int lacking = sum(full_width_) - wished;
  const double take = lacking <= 0 ? 0 : std::clamp(double(room - wished) / lacking, 0.0, 1.0);
  fitting_columns_ = true;
  for (int c = 0; c < PlanTableModel::share; ++c) {
    const auto i = static_cast<std::size_t>(c);
    tree_->setColumnWidth(c, wished_width_[i] -
                                 static_cast<int>(std::ceil(give * (wished_width_[i] - least_width_[i]))) +
                                 static_cast<int>(take * (full_width_[i] - wished_width_[i])));
  }
  fitting_columns_ = false;
}

/// The place of the branch lines follows the tree's own palette, the cells the delegates'.
void PlanTableView::tint_picked_rows() {
  QPalette tinted = palette();
  const ThemeColors& theme = theme_colors(tinted);
  for (const auto group : {QPalette::Active, QPalette::Inactive}) {
    tinted.setColor(group, QPalette::Highlight, theme.accent_background);
    tinted.setColor(group, QPalette::HighlightedText, theme.text);
  }
  tree_->setPalette(tinted);
}

void PlanTableView::set_model(ModelPtr model) {
  if (model == model_) return;
  if (!model || !model_ || model->name != model_->name || model->operators.size() != model_->operators.size()) {
    plan_ = nullptr;
    scenario_ = nullptr;
  }
  model_ = std::move(model);
  hierarchy_ = model_ ? std::make_shared<const Hierarchy>(build_hierarchy(*model_)) : nullptr;
  if (!plan_) columns_measured_ = false;
  figures_ = PlanFigures::make(model_, plan_);
  if (model_) colors_->set_model(to_qt(model_->name + '\n' + model_->source));
  update_rows();
}

void PlanTableView::set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario) {
  if (scenario && scenario->model && scenario->model != model_) set_model(scenario->model);
  plan_ = std::move(plan);
  scenario_ = std::move(scenario);
  figures_ = PlanFigures::make(model_, plan_);
  if (figures_) colors_->update(figures_->shares());
  update_rows();
}

void PlanTableView::share_colors(std::shared_ptr<ConfigurationColors> colors) {
  colors_ = std::move(colors);
  if (model_) colors_->set_model(to_qt(model_->name + '\n' + model_->source));
  if (figures_) set_plan(plan_, scenario_);
}

void PlanTableView::update_rows() {
  changing_selection_ = true;
  QStringList open = expanded_keys();
  if (model_) open += std::exchange(waiting_keys_, {});
  const int scroll = tree_->verticalScrollBar()->value();
  rows_->set_data(model_, hierarchy_, figures_, colors_);
  if (figures_ && !std::exchange(columns_measured_, true)) {
    measure_columns();
    fit_columns();
  }
  expand_keys(open);
  tree_->verticalScrollBar()->setValue(scroll);
  changing_selection_ = false;
  update_summary();
  show_selection();
  tree_->viewport()->update();
}

void PlanTableView::set_empty_text(const QString& text) {
  if (empty_text_ == text) return;
  empty_text_ = text;
  update_summary();
  tree_->viewport()->update();
}

void PlanTableView::update_summary() {
  if (!model_) {
    bar_.summary->setText(empty_text_);
    return;
  }
  std::size_t shown = 0;
  const std::size_t all = model_->operators.size();
  if (bar_.filter->text().trimmed().isEmpty()) {
    shown = all;
  } else {
    std::vector<QModelIndex> open;
    for (int r = 0; r < sorted_->rowCount(); ++r) open.push_back(sorted_->index(r, 0));
    while (!open.empty()) {
      const QModelIndex index = open.back();
      open.pop_back();
      const PlanRow& row = rows_->row_at(sorted_->mapToSource(index));
      if (row.op.valid()) shown += row.operators.size();
      for (int r = 0; r < sorted_->rowCount(index); ++r) open.push_back(sorted_->index(r, 0, index));
    }
  }
  QString text = shown == all ? tr("%1 operators").arg(all) : tr("%1 of %2 operators").arg(shown).arg(all);
  const PlanRows& rows = rows_->rows();
  if (rows.folded_rows == 1) text += tr(", %1 equal layers in one row").arg(rows.folded_groups);
  if (rows.folded_rows > 1) text += tr(", %1 equal layers in %2 rows").arg(rows.folded_groups).arg(rows.folded_rows);
  if (!figures_) text += tr(" \u00b7 no plan picked");
  bar_.summary->setText(text);
}

void PlanTableView::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (!selection_) return;
  share_colors(colors_of(selection_));
  connect(selection_, &SelectionModel::operators_changed, this, &PlanTableView::show_selection);
  connect(selection_, &SelectionModel::hovered_operator_changed, this,
          [this] { rows_->set_hovered(selection_->hovered_operator()); });
  show_selection();
}

void PlanTableView::pick_selection() {
  if (changing_selection_ || !selection_) return;
  std::set<OperatorId> operators;
  for (const QModelIndex& index : tree_->selectionModel()->selectedRows()) {
    const PlanRow& row = rows_->row_at(sorted_->mapToSource(index));
    operators.insert(row.operators.begin(), row.operators.end());
  }
  changing_selection_ = true;
  selection_->pick_operators(std::move(operators));
  changing_selection_ = false;
}

void PlanTableView::show_selection() {
  if (changing_selection_ || !selection_ || !model_) return;
  changing_selection_ = true;
  const auto& picked = selection_->operators();
  const auto& rows = rows_->rows();
  std::vector<int> found, open(rows.top.rbegin(), rows.top.rend());
  while (!open.empty() && !picked.empty()) {
    const int at = open.back();
    open.pop_back();
    const PlanRow& row = rows.rows[static_cast<std::size_t>(at)];
    const auto inside =
        std::count_if(row.operators.begin(), row.operators.end(), [&](OperatorId op) { return picked.count(op) > 0; });
    if (inside == 0) continue;
    if (row.op.valid() || inside == static_cast<std::ptrdiff_t>(row.operators.size())) {
      found.push_back(at);
    } else {
      open.insert(open.end(), row.children.rbegin(), row.children.rend());
    }
  }
  QItemSelection marks;
  QModelIndex first;
  for (const int row : found) {
    const QModelIndex index = sorted_->mapFromSource(rows_->index_of(row));
    if (!index.isValid()) continue;
    if (!first.isValid()) first = index;
    if (found.size() <= kMostUnfolded)
      for (QModelIndex above = index.parent(); above.isValid(); above = above.parent()) tree_->setExpanded(above, true);
    marks.select(index, index.siblingAtColumn(PlanTableModel::kColumns - 1));
  }
  tree_->selectionModel()->select(marks, QItemSelectionModel::ClearAndSelect);
  if (first.isValid()) tree_->scrollTo(first);
  changing_selection_ = false;
}

std::vector<QModelIndex> PlanTableView::visible_rows() const {
  std::vector<QModelIndex> rows;
  for (QModelIndex index = sorted_->index(0, 0); index.isValid(); index = tree_->indexBelow(index))
    rows.push_back(index);
  return rows;
}

QString PlanTableView::rows_as_text() const {
  std::vector<QModelIndex> rows = visible_rows();
  const auto* picked = tree_->selectionModel();
  if (picked->hasSelection())
    rows.erase(
        std::remove_if(rows.begin(), rows.end(), [&](const QModelIndex& index) { return !picked->isSelected(index); }),
        rows.end());
  QStringList lines;
  QStringList head;
  for (int c = 0; c < PlanTableModel::kColumns; ++c) head << sorted_->headerData(c, Qt::Horizontal).toString();
  lines << head.join(QLatin1Char('\t'));
  for (const QModelIndex& index : rows) {
    QStringList cells;
    for (int c = 0; c < PlanTableModel::kColumns; ++c) cells << index.siblingAtColumn(c).data().toString();
    lines << cells.join(QLatin1Char('\t'));
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

void PlanTableView::copy_rows() const { QApplication::clipboard()->setText(rows_as_text()); }

QStringList PlanTableView::expanded_keys() const {
  QStringList keys;
  for (const QModelIndex& index : visible_rows())
    if (tree_->isExpanded(index)) keys << index.data(PlanTableModel::KeyRole).toString();
  return keys;
}

void PlanTableView::expand_keys(const QStringList& keys) {
  const QSet<QString> wanted(keys.begin(), keys.end());
  if (wanted.isEmpty()) return;
  for (std::size_t r = 0; r < rows_->rows().rows.size(); ++r) {
    const PlanRow& row = rows_->rows().rows[r];
    if (!row.op.valid() && wanted.contains(row.key))
      tree_->setExpanded(sorted_->mapFromSource(rows_->index_of(static_cast<int>(r))), true);
  }
}

QJsonObject PlanTableView::save_state() const {
  QJsonObject state;
  state.insert(QStringLiteral("expanded"), QJsonArray::fromStringList(model_ ? expanded_keys() : waiting_keys_));
  state.insert(QStringLiteral("header"), QString::fromLatin1(tree_->header()->saveState().toBase64()));
  return state;
}

void PlanTableView::restore_state(const QJsonObject& state) {
  const QByteArray header = QByteArray::fromBase64(state.value(QLatin1String("header")).toString().toLatin1());
  if (!header.isEmpty() && tree_->header()->restoreState(header)) columns_are_the_users_ = true;
  QStringList keys;
  for (const auto& key : state.value(QLatin1String("expanded")).toArray()) keys << key.toString();
  if (model_) {
    expand_keys(keys);
  } else {
    waiting_keys_ = keys;
  }
}

void PlanTableView::paint_to(QPainter& painter, QSize size) {
  const ThemeColors& theme = theme_colors(palette());
  painter.fillRect(QRect(QPoint(0, 0), size), theme.base);
  const auto rows = visible_rows();
  const int height = std::max(18, fontMetrics().height() + 7), width = std::max(1, tree_->header()->length());
  const double scale =
      std::min({1.0, double(size.width()) / width, double(size.height()) / (height * double(rows.size() + 1))});
  painter.save();
  painter.scale(scale, scale);
  painter.setFont(font());
  for (std::size_t r = 0; r <= rows.size(); ++r) {
    const QModelIndex index = r > 0 ? rows[r - 1] : QModelIndex();
    int depth = 0;
    for (QModelIndex above = index.parent(); above.isValid(); above = above.parent()) ++depth;
    for (int c = 0; c < PlanTableModel::kColumns; ++c) {
      const QRect cell(tree_->header()->sectionPosition(c), static_cast<int>(r) * height,
                       tree_->header()->sectionSize(c), height);
      if (r == 0) {
        painter.fillRect(cell, theme.head);
        painter.setPen(theme.secondary);
        const auto alignment = Qt::Alignment(sorted_->headerData(c, Qt::Horizontal, Qt::TextAlignmentRole).toInt());
        painter.drawText(cell.adjusted(6, 0, -6, 0), int(alignment), sorted_->headerData(c, Qt::Horizontal).toString());
        continue;
      }
      QStyleOptionViewItem option;
      option.initFrom(this);
      option.rect = c == 0 ? cell.adjusted(16 * depth, 0, 0, 0) : cell;
      option.font = font();
      option.fontMetrics = fontMetrics();
      option.palette = palette();
      option.state = QStyle::State_Enabled;
      tree_->itemDelegateForIndex(index.siblingAtColumn(c))->paint(&painter, option, index.siblingAtColumn(c));
    }
  }
  painter.restore();
}

void PlanTableView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    rows_->set_palette(palette());
    tint_picked_rows();
  }
  QWidget::changeEvent(event);
}

void PlanTableView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit_columns();
}

bool PlanTableView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == tree_->viewport()) {
    if (event->type() == QEvent::Leave && selection_) selection_->hover_operator({});
    if (event->type() == QEvent::Paint && !model_) {
      QPainter painter(tree_->viewport());
      painter.fillRect(tree_->viewport()->rect(), theme_colors(palette()).base);
      painter.setPen(theme_colors(palette()).secondary);
      painter.drawText(tree_->viewport()->rect(), Qt::AlignCenter, empty_text_);
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace turnpoint::views
