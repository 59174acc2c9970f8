// SPDX-License-Identifier: Apache-2.0
#include "views/comparison/comparison_model.h"

#include <QFont>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/result_notes.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {
namespace {

const QString kDot = QStringLiteral(" · ");

/// Its simulated peak, which decides what fits, where that is known.
std::int64_t needed(const ResultPoint& point) { return point.simulated_memory_bytes.value_or(point.memory_bytes); }

QString point_text(const ResultPoint& point) { return memory_text(needed(point)) + kDot + time_text(point.time_s); }

QString answer_text(const ChartSeries& series) {
  const Result& result = *series.result;
  // Whatever it was there, here it is nothing yet.
  if (!series.of.isEmpty()) return ComparisonModel::tr("of %1").arg(series.of);
  if (series.coarse) return ComparisonModel::tr("sketch");
  if (series.beyond()) return ComparisonModel::tr("beyond the switches");
  if (result.exact) return ComparisonModel::tr("exact");
  if (result.gap) return ComparisonModel::tr("gap %1").arg(gap_text(*result.gap));
  return ComparisonModel::tr("not certified");
}

/// On the simulated clock some points have no figures, and those that have are no longer by rising memory.
std::size_t least_memory(const std::vector<ResultPoint>& points) {
  std::size_t least = 0;
  for (std::size_t i = 1; i < points.size(); ++i)
    if (drawable(points[i]) && (!drawable(points[least]) || needed(points[i]) < needed(points[least]))) least = i;
  return least;
}

/// Empty where the parts are not those of the time: a sharding plan's are plain sums also where its time is simulated.
std::optional<double> network_share(const ResultPoint* point) {
  if (!point || !(point->time_s > 0)) return std::nullopt;
  if (std::abs(point->compute_s + point->network_s - point->time_s) > 1e-6 * point->time_s) return std::nullopt;
  return point->network_s / point->time_s;
}

}  // namespace

void ComparisonModel::set_data(const ChartData& data) {
  std::vector<Row> rows;
  for (const ChartSeries& series : data.series)
    if (series.result && !series.result->points.empty())
      rows.push_back({series, series.result->fastest_that_fits(), least_memory(series.result->points)});
  if (rows == rows_ && data.memory_limit == memory_limit_) return;
  const bool same_methods = rows.size() == rows_.size() &&
                            std::equal(rows.begin(), rows.end(), rows_.begin(),
                                       [](const Row& a, const Row& b) { return a.series.method == b.series.method; });
  if (!same_methods) beginResetModel();
  rows_ = std::move(rows);
  memory_limit_ = data.memory_limit;
  best_ = -1;
  for (int row = 0; row < rowCount(); ++row) {
    const Row& here = rows_[std::size_t(row)];
    if (here.fastest && here.series.of.isEmpty() && here.series.result->points[*here.fastest].time_s < best_time())
      best_ = row;
  }
  if (!same_methods)
    endResetModel();
  else if (!rows_.empty())
    emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
}

void ComparisonModel::set_palette(const QPalette& palette) {
  palette_ = palette;
  if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
}

double ComparisonModel::best_time() const {
  if (best_ < 0) return std::numeric_limits<double>::infinity();
  const Row& best = rows_[std::size_t(best_)];
  return best.series.result->points[*best.fastest].time_s;
}

int ComparisonModel::row_of(const std::string& name) const {
  for (int row = 0; row < rowCount(); ++row)
    if (rows_[std::size_t(row)].series.method == name) return row;
  return -1;
}

std::optional<std::size_t> ComparisonModel::plan_of(int row) const {
  if (row < 0 || row >= rowCount()) return std::nullopt;
  return rows_[std::size_t(row)].fastest.value_or(rows_[std::size_t(row)].least);
}

QString ComparisonModel::text(const Row& row, int column) const {
  const Result& result = *row.series.result;
  const ResultPoint* fastest = row.fastest ? &result.points[*row.fastest] : nullptr;
  switch (column) {
    case method: return result.notes.empty() ? row.series.title : tr("%1 (note)").arg(row.series.title);
    case plans: return about_plans(distinct_plans(result.points));
    case memory:
      return fastest ? memory_text(needed(*fastest))
                     : tr("needs %1").arg(memory_text(needed(result.points[row.least])));
    case time: return fastest ? time_text(fastest->time_s) : tr("does not fit");
    case against_best:
      if (!fastest || !row.series.of.isEmpty()) return {};
      return fastest->time_s <= best_time() ? tr("fastest") : percent_text(fastest->time_s / best_time() - 1);
    case network: {
      const auto share = network_share(fastest);
      return share ? share_text(*share) : QString();
    }
    case turning: return result.turning_point ? point_text(result.points[*result.turning_point]) : QString();
    case least: return point_text(result.points[row.least]);
    case answer: return answer_text(row.series);
    case clock: return QString::fromLatin1(to_string(result.clock));
    case communication: {
      const ResultPoint& point = fastest ? *fastest : result.points[row.least];
      return point.peak_communication_bytes ? memory_text(*point.peak_communication_bytes) : QString();
    }
    default: return {};
  }
}

QVariant ComparisonModel::sort_value(const Row& row, int column) const {
  const Result& result = *row.series.result;
  const double never = std::numeric_limits<double>::max();
  const ResultPoint* fastest = row.fastest ? &result.points[*row.fastest] : nullptr;
  switch (column) {
    case plans: return double(std::count_if(result.points.begin(), result.points.end(), drawable));
    case memory: return fastest ? double(needed(*fastest)) : never;
    case time:
    case against_best: return fastest && row.series.of.isEmpty() ? fastest->time_s : never;
    case network: return network_share(fastest).value_or(never);
    case turning: return result.turning_point ? result.points[*result.turning_point].time_s : never;
    case least: return double(needed(result.points[row.least]));
    case communication: {
      const auto& bytes = (fastest ? *fastest : result.points[row.least]).peak_communication_bytes;
      return bytes ? double(*bytes) : never;
    }
    case answer: return !row.series.of.isEmpty() || row.series.coarse ? never / 2 : result.gap.value_or(never);
    default: return text(row, column);
  }
}

QString ComparisonModel::tool_tip(const Row& row, int column) const {
  const Result& result = *row.series.result;
  if (!row.series.of.isEmpty())
    return tr("Found for another scenario, %1; it has not been searched for the present one").arg(row.series.of);
  if (column == method) return QStringList{notes_text(result), explanations_text(result)}.join(u'\n').trimmed();
  if (column == answer && !result.exact && result.gap)
    return tr("No plan of this method's kind can be faster by more than this at the same memory");
  if (column == answer && !result.exact) return tr("Found by a method that gives no bound");
  if (column == memory && !row.fastest && memory_limit_ > 0)
    return tr("A device has %1").arg(memory_text(memory_limit_));
  if (column == clock)
    return result.clock == Clock::additive ? tr("Times are plain sums, without overlap")
                                           : tr("Times are simulated: transfers overlap computing, tasks wait");
  return {};
}

QVariant ComparisonModel::data(const QModelIndex& index, int role) const {
  const Row& row = rows_[std::size_t(index.row())];
  const ThemeColors& theme = theme_colors(palette_);
  switch (role) {
    case Qt::DisplayRole: return text(row, index.column());
    case Qt::ToolTipRole: return tool_tip(row, index.column());
    case Qt::TextAlignmentRole:
      return int(Qt::AlignVCenter |
                 (index.column() == method || index.column() == answer || index.column() == clock ? Qt::AlignLeft
                                                                                                  : Qt::AlignRight));
    case Qt::ForegroundRole:
      if (!row.series.of.isEmpty()) return theme.disabled;
      if (!row.fastest && (index.column() == memory || index.column() == time)) return theme.warning;
      if (index.column() == clock || index.column() == plans) return theme.secondary;
      return theme.text;
    case Qt::FontRole:
      if (index.row() == best_ && index.column() >= method && index.column() <= against_best &&
          index.column() != plans) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    case SortRole: return sort_value(row, index.column());
    case MethodRole: return to_qt(row.series.method);
    case FrontierRole: return row.series.frontier;
    default: return {};
  }
}

QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter |
               (section == method || section == answer || section == clock ? Qt::AlignLeft : Qt::AlignRight));
  static const char* const kNames[] = {QT_TR_NOOP("Method"),        QT_TR_NOOP("Plans"),        QT_TR_NOOP("Memory"),
                                       QT_TR_NOOP("Time"),          QT_TR_NOOP("Against best"), QT_TR_NOOP("Network"),
                                       QT_TR_NOOP("Turning point"), QT_TR_NOOP("Least memory"), QT_TR_NOOP("Answer"),
                                       QT_TR_NOOP("Clock"),         QT_TR_NOOP("Peak comm.")};
  static const char* const kTips[] = {
      QT_TR_NOOP("The method; a click picks its fastest plan that fits"),
      QT_TR_NOOP(
          "Plans of the method that differ by a thousandth or more, none better than another in both memory and time"),
      QT_TR_NOOP("Memory per device of the fastest plan that fits: its simulated peak where that is known"),
      QT_TR_NOOP("Iteration time of the fastest plan that fits"),
      QT_TR_NOOP("Its time against the fastest of all methods"),
      QT_TR_NOOP("Share of its time that is network; of a placement, that its busiest device waits"),
      QT_TR_NOOP("Where more memory stops paying"),
      QT_TR_NOOP("The plan that needs the least memory"),
      QT_TR_NOOP("Whether a better plan of the method's kind can exist"),
      QT_TR_NOOP("What the times are"),
      QT_TR_NOOP("Of a placement: the most that one device sends to one other in a step")};
  if (role == Qt::DisplayRole) return tr(kNames[section]);
  const QString whole = section == communication ? tr("Peak communication") : tr(kNames[section]);
  if (role == Qt::AccessibleTextRole) return whole;  // also where it is copied
  if (role == Qt::ToolTipRole) return QStringLiteral("%1: %2").arg(whole, tr(kTips[section]));
  return {};
}

}  // namespace turnpoint::views
