// SPDX-License-Identifier: Apache-2.0
#include "views/validation/validation_view.h"

#include <QAction>
#include <QButtonGroup>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/counted.h"
#include "views/common/note_label.h"
#include "views/common/selection_model.h"
#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/validation/engine_fields.h"
#include "views/validation/report_delegate.h"
#include "views/validation/validation_bars.h"
#include "views/validation/validation_model.h"
#include "views/validation/validation_scatter.h"

namespace turnpoint::views {

namespace {

constexpr int kLeastHeight = 120;

}  // namespace

ValidationView::ValidationView(const ValidationActions& actions, QWidget* parent)
    : QWidget(parent), actions_(actions), rows_(new ValidationModel(this)), sorted_(new QSortFilterProxyModel(this)) {
  setObjectName(QStringLiteral("validation_view"));
  make_tool_bar();
  whole_ = new QStackedWidget(this);
  whole_->addWidget(make_empty());
  across_ = new QSplitter(Qt::Horizontal, whole_);
  across_->setChildrenCollapsible(false);
  across_->addWidget(make_list());
  across_->addWidget(make_report());
  across_->setStretchFactor(0, 0);
  across_->setStretchFactor(1, 1);
  across_->setSizes({200, 700});
  whole_->addWidget(across_);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(tool_bar_);
  all->addWidget(make_ways());
  engine_fields_ = new EngineFields(this);
  engine_fields_->hide();
  connect(engine_fields_, &EngineFields::changed, this, &ValidationView::way_changed);
  all->addWidget(engine_fields_);
  // In a low window it scrolls rather than holding the window open.
  auto* scroll = new QScrollArea(this);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(whole_);
  scroll->setMinimumSize(whole_->minimumSizeHint().width(), kLeastHeight);
  all->addWidget(scroll, 1);
  tint();
  set_reports({});
}

void ValidationView::compare(const ValidationReportPtr& shown, const ValidationReportPtr& beside) {
  const int first = row_of(shown), second = row_of(beside);
  if (first < 0 || second < 0 || first == second) return;
  list_->setCurrentRow(first);
  list_->setCurrentRow(second, QItemSelectionModel::Select);
}

void ValidationView::set_selection(SelectionModel* selection) {
  if (selection_) selection_->disconnect(this);
  selection_ = selection;
  bars_->set_selection(selection);
  if (selection_) connect(selection_, &SelectionModel::operators_changed, this, &ValidationView::mark_table_rows);
}

void ValidationView::set_model(ModelPtr model) {
  model_ = std::move(model);
  show_report();
}

void ValidationView::set_reports(std::vector<ValidationReportPtr> reports, int current) {
  const ValidationReportPtr shown = this->current();
  reports_ = std::move(reports);
  if (current < 0) {
    const auto again = std::find(reports_.begin(), reports_.end(), shown);
    current =
        again != reports_.end() ? static_cast<int>(again - reports_.begin()) : static_cast<int>(reports_.size()) - 1;
  }
  changing_ = true;
  fill_list();
  if (current >= 0) list_->setCurrentRow(current);
  changing_ = false;
  whole_->setCurrentIndex(reports_.empty() ? 0 : 1);
  show_state();
  show_report();
  emit current_changed();
}

void ValidationView::fill_list() {
  list_->clear();
  for (const auto& report : reports_) {
    QStringList second{error_text(report->step, false)};
    if (report->calibrated) second << tr("calibrated");
    if (report->numerics && !report->numerics->holds()) second << tr("computes something else");
    second << backend_text(*report);
    auto* item = new QListWidgetItem(to_qt(report->plan), list_);
    item->setData(ReportDelegate::SecondLine, second.join(QStringLiteral(" \u00b7 ")));
    item->setData(ReportDelegate::Wrong, report->numerics && !report->numerics->holds());
    item->setToolTip(to_qt(report->plan) + u'\n' + backend_text(*report) + u'\n' + report_date_text(*report));
  }
}

ValidationReportPtr ValidationView::current() const {
  // Where two are picked, the earlier pick is the one on show, the current item the one beside it.
  const auto picked = list_->selectionModel()->selectedRows();
  if (picked.size() == 2) {
    const int beside = list_->currentRow();
    const int shown = picked[0].row() == beside ? picked[1].row() : picked[0].row();
    return reports_[static_cast<std::size_t>(shown)];
  }
  const int row = list_->currentRow();
  return row >= 0 && row < static_cast<int>(reports_.size()) ? reports_[static_cast<std::size_t>(row)] : nullptr;
}

ValidationReportPtr ValidationView::compared() const {
  const int row = list_->currentRow();
  if (list_->selectionModel()->selectedRows().size() != 2 || row < 0) return nullptr;
  return reports_[static_cast<std::size_t>(row)];
}

std::vector<ValidationReportPtr> ValidationView::comparable(bool calibrated) const {
  const ValidationReportPtr shown = current();
  std::vector<ValidationReportPtr> list;
  for (const auto& report : reports_)
    if (shown && report->model == shown->model && report->hardware == shown->hardware &&
        report->backend == shown->backend && report->engine == shown->engine && report->mode == shown->mode &&
        report->calibrated == calibrated)
      list.push_back(report);
  return list;
}

void ValidationView::show_report() {
  content_ = make_validation_content(current(), compared(), model_);
  bars_->set_content(content_);
  changing_ = true;
  rows_->set_content(content_);
  changing_ = false;
  if (content_) {
    for (int column = 0; column < ValidationModel::kColumns; ++column)
      table_->setColumnHidden(
          column,
          (column == ValidationModel::other_measured || column == ValidationModel::other_error) && !content_->other);
    fit_columns();
    title_->setText(content_->title);
    facts_->setText(content_->facts);
    verdict_->setText(content_->verdict);
    disturbed_->setText(content_->disturbed);
    disturbed_->setVisible(!content_->disturbed.isEmpty());
    compared_->setText(tr("Beside it, grey: %1").arg(content_->other_title));
    for (QLabel* label : {title_, static_cast<QLabel*>(facts_), verdict_, disturbed_, static_cast<QLabel*>(compared_)})
      label->setToolTip(label->text());
    compared_->setVisible(content_->other != nullptr);
  }
  tint();
  show_plans();
  mark_table_rows();
}

void ValidationView::fit_columns() {
  for (int column = 0; column < ValidationModel::kColumns; ++column) {
    if (table_->isColumnHidden(column)) continue;
    table_->resizeColumnToContents(column);
    table_->setColumnWidth(column, table_->columnWidth(column) + 6);
  }
  // Long names give way to the figures; they are in the tool tip.
  constexpr int kLeastName = 90;
  table_->setColumnWidth(ValidationModel::name, std::min(table_->columnWidth(ValidationModel::name),
                                                         std::max(kLeastName, pages_->width() / 4 - 20)));
}

void ValidationView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (content_) fit_columns();
}

void ValidationView::show_plans() {
  const auto shown = comparable();
  const auto found = std::find(shown.begin(), shown.end(), current());
  scatter_->set_reports(shown, found == shown.end() ? -1 : static_cast<int>(found - shown.begin()));
  const auto summary_of = [](const std::vector<ValidationReportPtr>& reports) {
    std::vector<ValidationReport> values;
    for (const auto& report : reports) values.push_back(*report);
    return summarise(values);
  };
  const ErrorSummary summary = summary_of(shown);
  const auto percent = [](double share) { return grouped_number(share * 100, share < 0.0995 ? 1 : 0) + u'%'; };
  QString text = QStringLiteral(
                     "<table cellspacing='0' cellpadding='2'><tr><th align='left'>%1&nbsp;&nbsp;</th>"
                     "<th align='right'>&nbsp;%2</th><th align='right'>&nbsp;&nbsp;%3</th>"
                     "<th align='right'>&nbsp;&nbsp;%4</th></tr>")
                     .arg(tr("Error"), tr("mean"), tr("median"), tr("worst"));
  for (const ErrorSummary::Row& row : summary.rows) {
    QString name = to_qt(row.name);
    if (!name.isEmpty()) name[0] = name[0].toUpper();
    text += QStringLiteral("<tr><td>%1</td>").arg(name.toHtmlEscaped());
    if (row.plans == 0)
      text += QStringLiteral("<td colspan='3' align='right'>&nbsp;%1</td>").arg(tr("not measured"));
    else
      for (const double value : {row.mean, row.median, row.worst})
        text += QStringLiteral("<td align='right'>&nbsp;&nbsp;%1</td>").arg(percent(value));
    text += QStringLiteral("</tr>");
  }
  text += QStringLiteral("</table>");
  text += QStringLiteral("<p>%1</p>")
              .arg(summary.rank_correlation
                       ? tr("Rank correlation (Spearman) <b>%1</b>").arg(grouped_number(*summary.rank_correlation, 2))
                       : tr("Rank correlation: needs three different plans"));
  const bool calibrated = current() && current()->calibrated;
  if (const auto others = comparable(!calibrated); !others.empty()) {
    QStringList parts;
    const ErrorSummary other = summary_of(others);
    for (const ErrorSummary::Row& row : other.rows)
      if (row.plans > 0) parts << to_qt(row.name) + u' ' + percent(row.mean);
    if (other.rank_correlation) parts << tr("correlation %1").arg(grouped_number(*other.rank_correlation, 2));
    text += QStringLiteral("<p>%1<br/>%2</p>")
                .arg(calibrated ? tr("Mean errors before calibration:") : tr("Mean errors after calibration:"),
                     parts.join(QStringLiteral(", ")));
  }
  summary_->setText(text);
  summary_scope_->setText(
      shown.size() == reports_.size()
          ? tr("Of the steps of %1").arg(counted(static_cast<double>(shown.size()), tr("1 plan"), tr("%1 plans")))
          : tr("%1 of %2 reports: those of the same model, hardware, machine and calibration")
                .arg(shown.size())
                .arg(reports_.size()));
}

QString ValidationView::summary_text() const { return summary_->text(); }

void ValidationView::show_page(Page page) {
  const int at = static_cast<int>(page);
  pages_->setCurrentIndex(at);
  for (int i = 0; i < 3; ++i) page_buttons_[i]->setChecked(i == at);
}

ValidationView::Page ValidationView::page() const { return static_cast<Page>(pages_->currentIndex()); }

bool ValidationView::proves() const { return prove_->isChecked(); }

double ValidationView::budget_s() const { return budget_->value(); }

void ValidationView::set_state(const QString& reason, const QString& words) {
  if (reason == reason_ && words == running_words_) return;
  reason_ = reason;
  running_words_ = words;
  show_state();
}

void ValidationView::show_state() {
  // The empty page has room for the reason itself.
  words_->setText(running_words_.isEmpty() && !reports_.empty() ? reason_ : running_words_);
  words_->setToolTip(words_->text());
  stop_->setVisible(!running_words_.isEmpty());
  empty_reason_->setText(running_words_.isEmpty() ? reason_ : running_words_);
  empty_reason_->setVisible(!empty_reason_->text().isEmpty());
}

ValidationWay ValidationView::way() const { return static_cast<ValidationWay>(std::max(0, ways_->checkedId())); }

void ValidationView::pick_table_row() {
  if (changing_ || !selection_) return;
  std::set<OperatorId> picked;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows())
    if (const OperatorId op = rows_->row(sorted_->mapToSource(index).row()).op; op.valid()) picked.insert(op);
  if (picked.empty()) return;
  changing_ = true;
  selection_->pick_operators(std::move(picked));
  changing_ = false;
}

void ValidationView::mark_table_rows() {
  if (changing_ || !selection_ || !content_) return;
  changing_ = true;
  QItemSelection rows;
  QModelIndex first;
  for (int at = 0; at < rows_->rowCount(); ++at) {
    const OperatorId op = rows_->row(at).op;
    if (!op.valid() || !selection_->operators().contains(op)) continue;
    const QModelIndex index = sorted_->mapFromSource(rows_->index(at, 0));
    rows.select(index, index.siblingAtColumn(ValidationModel::kColumns - 1));
    if (!first.isValid()) first = index;
  }
  table_->selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  if (first.isValid()) table_->scrollTo(first);
  changing_ = false;
}

QString ValidationView::rows_as_text() const {
  QStringList lines;
  const QAbstractItemModel* model = sorted_;
  for (int row = -1; row < model->rowCount(); ++row) {
    QStringList cells;
    for (int column = 0; column < model->columnCount(); ++column) {
      if (table_->isColumnHidden(column)) continue;
      cells << (row < 0 ? model->headerData(column, Qt::Horizontal) : model->index(row, column).data()).toString();
    }
    lines << cells.join(u'\t');
  }
  return lines.join(u'\n') + u'\n';
}

void ValidationView::remove_picked() {
  QList<int> picked;
  for (const QModelIndex& index : list_->selectionModel()->selectedRows()) picked << index.row();
  if (!picked.isEmpty()) emit remove_requested(picked);
}

void ValidationView::tint() {
  const ThemeColors& colors = theme_colors(palette());
  QPalette tinted = palette();
  for (const auto group : {QPalette::Active, QPalette::Inactive}) {
    tinted.setColor(group, QPalette::Highlight, colors.accent_background);
    tinted.setColor(group, QPalette::HighlightedText, colors.text);
  }
  table_->setPalette(tinted);
  list_->setPalette(tinted);
  rows_->set_palette(palette());
  QPalette verdict = palette();
  verdict.setColor(QPalette::WindowText, !content_                ? colors.secondary
                                         : content_->verdict_bad  ? colors.error
                                         : content_->verdict_good ? colors.ok
                                                                  : colors.secondary);
  verdict_->setPalette(verdict);
  QPalette warning = palette();
  warning.setColor(QPalette::WindowText, colors.warning);
  empty_reason_->setPalette(warning);
  disturbed_->setPalette(warning);
}

void ValidationView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && across_) tint();
}

int ValidationView::row_of(const ValidationReportPtr& report) const {
  const auto found = std::find(reports_.begin(), reports_.end(), report);
  return report && found != reports_.end() ? static_cast<int>(found - reports_.begin()) : -1;
}

QJsonObject ValidationView::save_state() const {
  QJsonObject state{{QStringLiteral("page"), static_cast<int>(page())},
                    {QStringLiteral("way"), QString::fromLatin1(kWayKeys[static_cast<int>(way())])},
                    {QStringLiteral("prove"), proves()},
                    {QStringLiteral("budget_s"), budget_s()},
                    {QStringLiteral("report"), row_of(current())},
                    {QStringLiteral("compared"), row_of(compared())}};
  if (const int column = table_->header()->sortIndicatorSection(); column >= 0) {
    state[QStringLiteral("sorted_by")] = column;
    state[QStringLiteral("descending")] = table_->header()->sortIndicatorOrder() == Qt::DescendingOrder;
  }
  return state;
}

void ValidationView::restore_state(const QJsonObject& state) {
  const int page = state[QLatin1String("page")].toInt();
  if (page >= 0 && page < 3) show_page(static_cast<Page>(page));
  const QString way = state[QLatin1String("way")].toString();
  for (QAbstractButton* button : ways_->buttons())
    if (way == button->objectName()) button->setChecked(true);
  prove_->setChecked(state[QLatin1String("prove")].toBool(true));
  {
    const QSignalBlocker once(budget_);  // way_changed follows
    budget_->setValue(state[QLatin1String("budget_s")].toDouble(budget_s()));
  }
  const int report = state[QLatin1String("report")].toInt(-1);
  if (report >= 0 && report < list_->count()) list_->setCurrentRow(report);
  const int beside = state[QLatin1String("compared")].toInt(-1);
  if (report >= 0 && report < list_->count() && beside >= 0 && beside < list_->count())
    compare(reports_[static_cast<std::size_t>(report)], reports_[static_cast<std::size_t>(beside)]);
  const int column = state[QLatin1String("sorted_by")].toInt(-1);
  if (column >= 0 && column < ValidationModel::kColumns)
    table_->sortByColumn(column,
                         state[QLatin1String("descending")].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
  emit way_changed();
}

}  // namespace turnpoint::views
