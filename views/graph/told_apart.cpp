// SPDX-License-Identifier: Apache-2.0
#include "views/graph/told_apart.h"

#include <algorithm>
#include <numeric>

namespace turnpoint::views {

namespace {

constexpr QChar kDots(0x2026);

qsizetype common_begin(QStringView a, QStringView b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

qsizetype common_end(QStringView a, QStringView b) {
  return std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
}

/// A number is told by all of its digits.
NamePart with_whole_number(const QString& name, NamePart part) {
  const auto digit = [&](qsizetype at) { return at >= 0 && at < name.size() && name[at].isDigit(); };
  if (digit(part.begin) || digit(part.end - 1)) {
    while (digit(part.begin - 1)) --part.begin;
    while (digit(part.end)) ++part.end;
  }
  return part;
}

}  // namespace

std::vector<NamePart> telling_parts(const std::vector<QString>& names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  std::vector<NamePart> parts(names.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    const QString& name = names[order[at]];
    // In sorted order the name with the longest common beginning is a neighbour.
    std::vector<const QString*> beside;
    if (at > 0) beside.push_back(&names[order[at - 1]]);
    if (at + 1 < order.size()) beside.push_back(&names[order[at + 1]]);
    qsizetype most = -1;
    for (const QString* other : beside) {
      const qsizetype same = common_begin(name, *other);
      if (same <= most) continue;
      most = same;
      const qsizetype shorter = std::min(name.size(), other->size());
      NamePart& part = parts[order[at]];
      part = {same, name.size() - std::min(common_end(name, *other), shorter - same)};
      if (name != *other) part = with_whole_number(name, part);
    }
  }
  return parts;
}

QString elided_around(const QFontMetricsF& metrics, const QString& name, NamePart part, double width) {
  const QString middle = metrics.elidedText(name, Qt::ElideMiddle, width);
  const qsizetype dots = middle.indexOf(kDots);
  if (middle == name || dots < 0 || part.begin >= part.end) return middle;
  const qsizetype tail = name.size() - (middle.size() - dots - 1);
  if (part.end <= dots || part.begin >= tail) return middle;
  const auto shown = [&](qsizetype begin, qsizetype end) {
    return (begin > 0 ? QString(kDots) : QString()) + name.mid(begin, end - begin) +
           (end < name.size() ? QString(kDots) : QString());
  };
  const auto fits = [&](qsizetype begin, qsizetype end) {
    return metrics.horizontalAdvance(shown(begin, end)) <= width;
  };
  qsizetype begin = part.begin, end = part.end;
  if (!fits(begin, end)) return metrics.elidedText(shown(begin, end), Qt::ElideMiddle, width);
  for (bool grew = true; grew;) {
    grew = false;
    if (begin > 0 && fits(begin - 1, end)) --begin, grew = true;
    if (end < name.size() && fits(begin, end + 1)) ++end, grew = true;
  }
  return shown(begin, end);
}

}  // namespace turnpoint::views
