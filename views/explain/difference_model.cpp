// SPDX-License-Identifier: Apache-2.0
#include "views/explain/difference_model.h"

#include <QRegularExpression>
#include <cmath>
#include <cstdlib>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

const QString kNone = QStringLiteral("\u2013"), kMinus = QStringLiteral("\u2212");

constexpr const char* kAddUp = QT_TRANSLATE_NOOP("turnpoint::views::DifferenceModel",
                                                 "Where the difference comes from: the rows add up to the whole");
constexpr const char* kWholeAlone =
    QT_TRANSLATE_NOOP("turnpoint::views::DifferenceModel",
                      "The whole alone: of plans with stages memory is that of the largest and time that of the "
                      "slowest stage, which no layers add up to");

double seconds_in(const DifferenceParts& parts, int column) {
  switch (column) {
    case DifferenceModel::time: return parts.time_s();
    case DifferenceModel::computing: return parts.compute_s;
    case DifferenceModel::again: return parts.recompute_s;
    case DifferenceModel::weights: return parts.weights_s;
    case DifferenceModel::activations: return parts.activations_s;
    case DifferenceModel::host: return parts.offload_s;
    case DifferenceModel::waiting: return parts.waiting_s;
    default: return 0;
  }
}

QList<QStandardItem*> row_of(const QString& name, const DifferenceParts& parts, double beside) {
  QList<QStandardItem*> row{new QStandardItem(name)};
  row.back()->setToolTip(name);
  for (int column = 1; column < DifferenceModel::kColumns; ++column) {
    row << new QStandardItem(column == DifferenceModel::memory ? signed_memory(parts.memory_bytes)
                                                               : signed_time(seconds_in(parts, column), beside));
    row.back()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  }
  return row;
}

}  // namespace

QString signed_time(double seconds, double beside) {
  if (seconds == 0) return kNone;
  QString text = time_beside(std::abs(seconds), std::abs(beside));
  // What is nothing beside the whole is something by itself.
  if (!text.contains(QRegularExpression(QStringLiteral("[1-9]")))) text = time_text(std::abs(seconds));
  return (seconds < 0 ? kMinus : QStringLiteral("+")) + text;
}

QString signed_memory(std::int64_t bytes) {
  if (bytes == 0) return kNone;
  return (bytes < 0 ? kMinus : QStringLiteral("+")) + memory_text(std::abs(bytes));
}

DifferenceModel::DifferenceModel(QObject* parent) : QStandardItemModel(parent) {
  setColumnCount(kColumns);
  setHorizontalHeaderLabels({tr("Layer"), tr("Time"), tr("Memory"), tr("Computing"), tr("Again"), tr("Weights"),
                             tr("Activations"), tr("Host"), tr("Waiting")});
  const char* const tips[kColumns] = {kAddUp,
                                      QT_TR_NOOP("Longer or shorter than in the first plan"),
                                      QT_TR_NOOP("More or less memory on a device"),
                                      QT_TR_NOOP("Forward, backward and update"),
                                      QT_TR_NOOP("Forward once more, in backward"),
                                      QT_TR_NOOP("Collectives over parameters and their gradients"),
                                      QT_TR_NOOP("Collectives over activations and their gradients"),
                                      QT_TR_NOOP("Optimizer state on its way to the host and back"),
                                      QT_TR_NOOP("The slowest pipeline stage waits for the others")};
  for (int column = 0; column < kColumns; ++column) {
    horizontalHeaderItem(column)->setToolTip(tr(tips[column]));
    horizontalHeaderItem(column)->setTextAlignment((column ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
}

void DifferenceModel::set_difference(std::shared_ptr<const PlanDifference> difference, const ModelPtr& model) {
  removeRows(0, rowCount());
  difference_ = std::move(difference);
  model_ = model;
  changes_row_ = -1;
  horizontalHeaderItem(layer)->setToolTip(tr(difference_ && difference_->of_stages ? kWholeAlone : kAddUp));
  if (!difference_) return;
  const double whole = difference_->total.time_s();
  appendRow(row_of(tr("All"), difference_->total, whole));
  QFont bold;
  bold.setBold(true);
  for (int column = 0; column < kColumns; ++column) item(0, column)->setFont(bold);
  for (const auto& each : difference_->layers) appendRow(row_of(to_qt(each.name), each.parts, whole));
  if (difference_->changes.empty()) return;
  changes_row_ = rowCount();
  auto* head = new QStandardItem(tr("What changes"));
  head->setFont(bold);
  for (const PlanChange& change : difference_->changes) {
    const QString text =
        to_qt((change.tensor ? "tensor " : "") + describe_place(change) + ": " + change.was + " \u2192 " + change.is);
    head->appendRow(new QStandardItem(text));
    head->child(head->rowCount() - 1)->setToolTip(text);
  }
  appendRow(head);
}

std::set<OperatorId> DifferenceModel::operators_of(const QModelIndex& row) const {
  if (!difference_ || !model_ || !row.isValid()) return {};
  if (row.parent().isValid()) {
    const auto& found = difference_->changes[std::size_t(row.row())].operators;
    return {found.begin(), found.end()};
  }
  if (row.row() == 0 || row.row() == changes_row_) return {};
  const std::string& name = difference_->layers[std::size_t(row.row() - 1)].name;
  std::set<OperatorId> found;
  for (std::size_t i = 0; i < model_->operators.size(); ++i)
    if (layer_name(model_->operators[OperatorId(i)]) == name) found.insert(OperatorId(i));
  return found;
}

bool DifferenceModel::is_empty(int column) const {
  if (!difference_ || column <= memory) return false;
  for (const auto& each : difference_->layers)
    if (seconds_in(each.parts, column) != 0) return false;
  return seconds_in(difference_->total, column) == 0;
}

}  // namespace turnpoint::views
