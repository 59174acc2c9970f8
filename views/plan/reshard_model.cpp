// SPDX-License-Identifier: Apache-2.0
#include "views/plan/reshard_model.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/plan/iteration_cost.h"

namespace turnpoint::views {

namespace {

/// Runs of digits become a star, so that equal layers get equal names.
QString without_numbers(const QString& name) {
  QString out;
  bool digits = false;
  for (const QChar c : name) {
    if (c.isDigit()) {
      if (!digits) out += u'*';
      digits = true;
    } else {
      out += c;
      digits = false;
    }
  }
  return out;
}

QString last_part(const QString& name) { return name.section(u'/', -1); }

QString algorithm_word(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::direct: return QObject::tr("direct");
    case Algorithm::ring: return QObject::tr("ring");
    case Algorithm::tree: return QObject::tr("tree");
    case Algorithm::parallel_trees: return QObject::tr("parallel trees");
    case Algorithm::switch_reduction: return QObject::tr("reduction in the switch");
    case Algorithm::switch_tree: return QObject::tr("reduction in the switches and a tree between them");
    case Algorithm::one_shot: return QObject::tr("direct exchange of all");
    case Algorithm::two_phase: return QObject::tr("two phases");
  }
  return {};
}

QString collective_word(ReshardMove move) {
  switch (move) {
    case ReshardMove::all_gather: return QObject::tr("all-gather");
    case ReshardMove::slice: return QObject::tr("slice");
    case ReshardMove::all_to_all: return QObject::tr("all-to-all");
    case ReshardMove::all_reduce: return QObject::tr("all-reduce");
    case ReshardMove::reduce_scatter: return QObject::tr("reduce-scatter");
    case ReshardMove::permute: return QObject::tr("permute");
  }
  return {};
}

}  // namespace

std::vector<ReshardRow> fold_reshards(const Plan& plan, const Model& model) {
  using Key = std::tuple<QString, QString, qint64>;
  std::map<Key, std::size_t> found;
  std::vector<ReshardRow> rows;
  for (const PlanReshard& reshard : plan.reshards) {
    if (reshard.time_s() <= 0) continue;
    const QString producer = reshard.producer.valid() ? to_qt(model.operators[reshard.producer].name)
                                                      : to_qt(model.tensors[reshard.tensor].name);
    const QString consumer =
        reshard.consumer.valid() ? to_qt(model.operators[reshard.consumer].name) : QObject::tr("all consumers");
    double bytes = 0, largest = -1;
    QString collective, algorithm;
    for (const ReshardRole role : kReshardRoles) {
      for (const ReshardStep& step : reshard.steps(role)) {
        bytes += step.bytes * plan.micro_batches();
        if (step.time_s <= largest) continue;
        largest = step.time_s;
        collective = collective_word(step.move);
        algorithm = step.move == ReshardMove::slice ? QString() : algorithm_word(step.algorithm);
      }
    }
    const Key key{without_numbers(producer) + u'>' + without_numbers(consumer), collective, static_cast<qint64>(bytes)};
    const auto [at, fresh] = found.try_emplace(key, rows.size());
    if (fresh) {
      ReshardRow row;
      // The dock is narrow: last parts here, whole names in the tool tip.
      row.tensor = last_part(producer) + QStringLiteral(" → ") + last_part(consumer);
      row.collective = collective;
      row.bytes = bytes;
      row.tool_tip = producer + QStringLiteral(" → ") + consumer + u'\n' +
                     describe(plan.mesh, reshard.from, model.tensors[reshard.tensor].dims).c_str() +
                     QStringLiteral(" → ") +
                     describe(plan.mesh, reshard.to, model.tensors[reshard.tensor].dims).c_str();
      if (plan.micro_batches() > 1)
        row.tool_tip += u'\n' + QObject::tr("bytes and time of all %1 micro-batches").arg(plan.micro_batches());
      if (!algorithm.isEmpty()) row.tool_tip += u'\n' + QObject::tr("%1 by %2").arg(collective, algorithm);
      row.count = 0;
      rows.push_back(std::move(row));
    }
    ReshardRow& row = rows[at->second];
    if (++row.count == 2)
      row.tensor = last_part(without_numbers(producer)) + QStringLiteral(" → ") + last_part(without_numbers(consumer));
    row.time_s += of_iteration(reshard, plan.micro_batches()).time_s();
    if (reshard.producer.valid()) row.operators.insert(reshard.producer);
    if (reshard.consumer.valid()) row.operators.insert(reshard.consumer);
  }
  for (ReshardRow& row : rows)
    if (row.count > 1) row.tensor += QStringLiteral(" ×%1").arg(row.count);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ReshardRow& a, const ReshardRow& b) { return a.time_s > b.time_s; });
  return rows;
}

void ReshardModel::set_rows(std::vector<ReshardRow> rows, std::size_t shown) {
  beginResetModel();
  total_ = rows.size();
  rows_ = std::move(rows);
  if (rows_.size() > shown) rows_.resize(shown);
  double longest = 0, largest = 0;
  for (const ReshardRow& row : rows_) longest = std::max(longest, row.time_s), largest = std::max(largest, row.bytes);
  unit_ = time_unit_for(longest);
  byte_unit_ = byte_unit_for(largest);
  endResetModel();
}

int ReshardModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int ReshardModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant ReshardModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const ReshardRow& row = rows_[static_cast<std::size_t>(index.row())];
  if (role == Qt::ToolTipRole)
    return row.count > 1 ? tr("%1 times, such as\n%2").arg(row.count).arg(row.tool_tip) : row.tool_tip;
  if (role == Qt::TextAlignmentRole)
    return QVariant(index.column() >= kBytes ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == kHeatRole) {
    const auto smaller =
        std::count_if(rows_.begin(), rows_.end(), [&](const ReshardRow& other) { return other.bytes < row.bytes; });
    return rows_.size() < 2 ? 1.0 : static_cast<double>(smaller) / static_cast<double>(rows_.size() - 1);
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case kTensor: return row.tensor;
    case kCollective: return row.collective;
    case kBytes: return bytes_in(byte_unit_, row.bytes);
    case kTime: return time_in(unit_, row.time_s);
    default: return {};
  }
}

QVariant ReshardModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section >= kBytes ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && section == kBytes)
    return tr("Bytes one device receives in each of them, forward and backward");
  if (role == Qt::ToolTipRole && section == kTime) return tr("Time of all of them together");
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case kTensor: return tr("Tensor");
    case kBytes: return byte_unit_.name;
    case kTime: return unit_.name;
    default: return QString();
  }
}

}  // namespace turnpoint::views
