// SPDX-License-Identifier: Apache-2.0
#include "views/common/format.h"

#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace turnpoint::views {

namespace {

constexpr QChar kNoBreak(0x00A0), kThin(0x2009), kMinus(0x2212), kTimes(0x00D7), kMicro(0x00B5);

QString significant(double value) {
  const double magnitude = std::abs(value);
  // Thresholds sit where rounding would add a digit: 99.96 is "100", not "100.0".
  return grouped_number(value, magnitude >= 99.95 || magnitude == 0 ? 0 : magnitude >= 9.995 ? 1 : 2);
}

QString with_unit(const QString& number, const QString& unit) { return number + kNoBreak + unit; }

/// "5.0", "12.5", "13" for 13.0, "120".
QString two_or_three(double value) {
  const double magnitude = std::abs(value);
  const bool whole = std::abs(magnitude - std::round(magnitude)) < 0.05;
  return grouped_number(value, magnitude < 9.95 || (magnitude < 99.95 && !whole) ? 1 : 0);
}

}  // namespace

QString grouped_number(double value, int decimals) {
  QString text = QString::number(std::abs(value), 'f', decimals);
  qsizetype whole = text.indexOf(u'.');
  if (whole < 0) whole = text.size();
  for (qsizetype at = whole - 3; at > 0; at -= 3) text.insert(at, kThin);
  bool zero = true;
  for (const QChar c : text) zero = zero && (c == u'0' || c == u'.');
  if (value < 0 && !zero) text.prepend(kMinus);
  return text;
}

QString with_groups(QString words) {
  static const QRegularExpression kFigure(
      QStringLiteral("(?<![\\w.])(\\d{4,})(\\.\\d+)?(?=[ \\x{00A0}](?:[KMGT]i?B|B|s|ms|\\x{00B5}s|us)\\b)"));
  for (auto match = kFigure.match(words); match.hasMatch(); match = kFigure.match(words, match.capturedEnd(1)))
    for (qsizetype at = match.capturedEnd(1) - 3; at > match.capturedStart(1); at -= 3) words.insert(at, kThin);
  return words;
}

QString memory_text(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (std::abs(value) >= 1073741824.0) return with_unit(grouped_number(value / 1073741824.0, 1), QStringLiteral("GiB"));
  if (std::abs(value) >= 1048576.0) return with_unit(significant(value / 1048576.0), QStringLiteral("MiB"));
  if (std::abs(value) >= 1024.0) return with_unit(significant(value / 1024.0), QStringLiteral("KiB"));
  return with_unit(grouped_number(value, 0), QStringLiteral("B"));
}

QString time_text(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude >= 10) return with_unit(significant(seconds), QStringLiteral("s"));
  if (magnitude >= 1e-3 || magnitude == 0) return with_unit(significant(seconds * 1e3), QStringLiteral("ms"));
  if (magnitude >= 1e-6) return with_unit(significant(seconds * 1e6), QString(kMicro) + u's');
  return with_unit(significant(seconds * 1e9), QStringLiteral("ns"));
}

QString factor_text(double factor) { return kTimes + grouped_number(factor, 2); }

QString percent_text(double fraction) {
  const double percent = fraction * 100;
  const QString number = grouped_number(std::abs(percent), std::abs(percent) >= 9.95 ? 0 : 1);
  return (percent < 0 ? QString(kMinus) : QStringLiteral("+")) + number + u'%';
}

QString gap_text(double gap) {
  if (gap > 0 && gap < kLeastGap) return QObject::tr("below 0.01%");
  return grouped_number(gap * 100, gap < 0.1 ? 2 : 1) + u'%';
}

QString progress_text(double fraction) { return share_text(std::min(fraction, 0.99)); }

QString share_text(double fraction) { return grouped_number(fraction * 100, 0) + u'%'; }

// Of two parts the smaller one is rounded; the larger one is what that leaves of 100.
QString portion_text(double fraction) {
  constexpr double kTie = 1e-6;  // what subtraction from 1 may lose must not turn a half down
  const double small = std::floor(1e4 * std::min(fraction, 1 - fraction) + 0.5 + kTie);
  const auto hundredths = std::llround(fraction <= 0.5 ? small : 1e4 - small);
  const int decimals = hundredths % 100 == 0 ? 0 : hundredths % 10 == 0 ? 1 : 2;
  return grouped_number(double(hundredths) / 100, decimals) + u'%';
}

// What rounding down leaves goes to the parts that lost most.
std::vector<QString> shares_text(const std::vector<double>& parts) {
  const double total = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (!(total > 0)) return std::vector<QString>(parts.size());
  std::vector<int> percent;
  std::vector<double> lost;
  std::vector<std::size_t> order;
  for (const double part : parts) {
    percent.push_back(int(std::floor(100 * part / total + 1e-9)));
    lost.push_back(100 * part / total - percent.back());
    order.push_back(order.size());
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
  const int left = 100 - std::accumulate(percent.begin(), percent.end(), 0);
  for (int k = 0; k < left; ++k) ++percent[order[std::size_t(k) % order.size()]];
  std::vector<QString> texts;
  for (const int share : percent) texts.push_back(QString::number(share) + u'%');
  return texts;
}

QString bandwidth_text(double bytes_per_s) {
  if (bytes_per_s >= 1e12) return with_unit(grouped_number(bytes_per_s / 1e12, 2), QStringLiteral("TB/s"));
  if (bytes_per_s >= 1e9) return with_unit(two_or_three(bytes_per_s / 1e9), QStringLiteral("GB/s"));
  return with_unit(two_or_three(bytes_per_s / 1e6), QStringLiteral("MB/s"));
}

QString latency_text(double seconds) {
  if (seconds >= 1e-3) return with_unit(two_or_three(seconds * 1e3), QStringLiteral("ms"));
  return with_unit(two_or_three(seconds * 1e6), QString(kMicro) + u's');
}

QString speed_text(double flop_per_s) {
  if (flop_per_s >= 1e15) return with_unit(grouped_number(flop_per_s / 1e15, 2), QStringLiteral("PFLOP/s"));
  if (flop_per_s >= 1e12) return with_unit(two_or_three(flop_per_s / 1e12), QStringLiteral("TFLOP/s"));
  return with_unit(two_or_three(flop_per_s / 1e9), QStringLiteral("GFLOP/s"));
}

QString search_time_text(double seconds) {
  if (seconds < 0.1) return with_unit(grouped_number(seconds * 1e3, seconds < 0.00995 ? 1 : 0), QStringLiteral("ms"));
  return with_unit(grouped_number(seconds, 2), QStringLiteral("s"));
}

TimeUnit time_unit_for(double largest_s) {
  if (largest_s >= 10) return {1, QStringLiteral("s")};
  if (largest_s > 0 && largest_s < 1e-3) return {1e6, QString(kMicro) + u's'};
  return {};
}

ByteUnit byte_unit_for(double largest_bytes) {
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}};
  for (const auto& [bytes, name] : kUnits)
    if (largest_bytes >= bytes) return {bytes, QString::fromLatin1(name)};
  return {1, QStringLiteral("B")};
}

QString bytes_in(const ByteUnit& unit, double bytes) {
  const double value = bytes / unit.bytes;
  if (unit.bytes > 1 && value > 0 && value < 0.05) return QStringLiteral("<0.1");  // little is not nothing
  return grouped_number(value, unit.bytes == 1 || value >= 99.95 || value == 0 ? 0 : 1);
}

QString time_in(const TimeUnit& unit, double seconds) { return significant(seconds * unit.per_second); }

QString bytes_beside(double bytes, double largest) {
  const ByteUnit unit = byte_unit_for(largest);
  return with_unit(bytes_in(unit, bytes), unit.name);
}

QString time_beside(double seconds, double largest) {
  const TimeUnit unit = time_unit_for(largest);
  return with_unit(time_in(unit, seconds), unit.name);
}

}  // namespace turnpoint::views
