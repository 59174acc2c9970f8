// SPDX-License-Identifier: Apache-2.0
#include "views/parallelism/parallelism_data.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

constexpr double kIterations = 1000, kSamples = 1e6;

QString words(const char* text) { return QCoreApplication::translate("Parallelism", text); }

const char* state_name(ParallelismPoint::State state) {
  switch (state) {
    case ParallelismPoint::State::pending: return "pending";
    case ParallelismPoint::State::fits: return "fits";
    case ParallelismPoint::State::does_not_fit: return "does not fit";
    case ParallelismPoint::State::refused: return "refused";
    case ParallelismPoint::State::failed: return "failed";
  }
  return "";
}

QString quoted(QString text) {
  if (!text.contains(u',') && !text.contains(u'"') && !text.contains(u'\n')) return text;
  return u'"' + text.replace(u'"', QStringLiteral("\"\"")) + u'"';
}

/// Nothing where the peak says what fits.
QString sum_text(const ParallelismPoint& point) {
  return point.no_peak.isEmpty() ? QString()
                                 : words("memory is a plain sum, as no peak could be had: %1").arg(point.no_peak);
}

QString point_text(const ParallelismData& data, const ParallelismPoint& point) {
  switch (point.state) {
    case ParallelismPoint::State::pending: return words("not searched yet");
    case ParallelismPoint::State::refused:
    case ParallelismPoint::State::failed: return point.reason;
    case ParallelismPoint::State::does_not_fit:
      if (data.largest_batch)
        return words("not even a batch of %1 fits: it needs %2 of %3")
            .arg(grouped_number(data.samples(point), 0), memory_text(point.memory_bytes),
                 memory_text(data.memory_limit));
      return words("does not fit: needs %1 of %2")
                 .arg(memory_text(point.memory_bytes), memory_text(data.memory_limit)) +
             (point.no_peak.isEmpty() ? QString() : QStringLiteral(" · ") + sum_text(point));
    case ParallelismPoint::State::fits: break;
  }
  const double rate = data.samples(point) / point.time_s;
  QStringList parts;
  if (data.largest_batch) parts << words("batch %1").arg(grouped_number(data.samples(point), 0));
  parts << time_text(point.time_s) << memory_text(point.memory_bytes)
        << words("%1 samples/s").arg(grouped_number(rate, rate < 10));
  if (const auto price = data.price(point))
    parts << (data.largest_batch ? words("%1 per 1 000 000 samples") : words("%1 per 1 000 iterations"))
                 .arg(price_text(*price));
  if (!point.no_peak.isEmpty()) parts << sum_text(point);
  if (point.stopped) parts << words("stopped early");
  if (point.coarse) parts << (data.largest_batch ? words("of the scenario before") : words("coarse"));
  return parts.join(QStringLiteral(" · "));
}

}  // namespace

const ParallelismPoint* ParallelismLine::at(int devices) const {
  const auto found =
      std::find_if(points.begin(), points.end(), [&](const ParallelismPoint& p) { return p.devices == devices; });
  return found == points.end() ? nullptr : &*found;
}

std::optional<double> ParallelismData::price(const ParallelismPoint& point) const {
  if (!price_per_hour || !point.fits()) return std::nullopt;
  const double iterations = largest_batch ? kSamples / samples(point) : kIterations;
  return iterations * *price_per_hour * point.devices * point.time_s / 3600;
}

const ParallelismPoint* ParallelismData::cheapest() const {
  const ParallelismLine* line = subject();
  const ParallelismPoint* best = nullptr;
  if (!line) return nullptr;
  for (const ParallelismPoint& point : line->points)
    if (const auto cost = price(point); cost && (!best || *cost < *price(*best))) best = &point;
  return best;
}

bool ParallelismData::complete() const {
  for (const ParallelismLine& line : lines)
    for (const ParallelismPoint& point : line.points)
      if (point.state == ParallelismPoint::State::pending || point.coarse || point.stopped) return false;
  return true;
}

QString devices_text(int devices) {
  return devices == 1 ? words("1 device") : words("%1 devices").arg(grouped_number(devices, 0));
}

QString price_text(double price) {
  const int decimals = price >= 100               ? 0
                       : price >= 1 || price <= 0 ? 2
                                                  : static_cast<int>(std::ceil(-std::log10(price))) + 2;
  return u'$' + grouped_number(price, std::min(decimals, 8));
}

QString parallelism_csv(const ParallelismData& data) {
  QString text = QStringLiteral("method,devices,state,time_s,memory_bytes,samples_per_s,") +
                 (data.largest_batch ? QStringLiteral("price_per_1000000_samples,batch\n")
                                     : QStringLiteral("price_per_1000_iterations\n"));
  for (const ParallelismLine& line : data.lines)
    for (const ParallelismPoint& point : line.points) {
      QStringList cells{quoted(to_qt(line.method)), QString::number(point.devices),
                        quoted(QString::fromLatin1(state_name(point.state)))};
      const bool known = point.fits() || point.state == ParallelismPoint::State::does_not_fit;
      cells << (point.fits() ? QString::number(point.time_s, 'g', 17) : QString())
            << (known ? QString::number(point.memory_bytes) : QString())
            << (point.fits() ? QString::number(data.samples(point) / point.time_s, 'g', 17) : QString());
      const auto price = data.price(point);
      cells << (price ? QString::number(*price, 'g', 17) : QString());
      if (data.largest_batch) cells << (known ? QString::number(point.batch) : QString());
      text += cells.join(u',') + u'\n';
    }
  return text;
}

QString column_text(const ParallelismData& data, int devices) {
  QStringList lines{devices_text(devices)};
  for (const ParallelismLine& line : data.lines)
    if (const ParallelismPoint* point = line.at(devices))
      lines << line.title + QStringLiteral(": ") + point_text(data, *point);
  // Of the subject alone: a sentence for every method would hide the figures.
  if (const ParallelismPoint* point = data.subject() ? data.subject()->at(devices) : nullptr)
    if (!point->bound.isEmpty()) lines << data.subject()->title + QStringLiteral(": ") + point->bound;
  return lines.join(u'\n');
}

QString describe(const ParallelismData& data) {
  if (!data.nothing.isEmpty()) return data.nothing;
  QStringList text;
  if (const ParallelismLine* line = data.subject())
    for (const ParallelismPoint& point : line->points)
      text << devices_text(point.devices) + QStringLiteral(": ") + point_text(data, point);
  if (const ParallelismPoint* best = data.cheapest())
    text << (data.largest_batch ? words("cheapest: %1, %2 for 1 000 000 samples")
                                : words("cheapest: %1, %2 for 1 000 iterations"))
                .arg(devices_text(best->devices), price_text(*data.price(*best)));
  return text.join(QStringLiteral(". "));
}

}  // namespace turnpoint::views
