// SPDX-License-Identifier: Apache-2.0
#include "views/plan/time_parts.h"

#include <QObject>

#include "views/common/format.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

std::vector<TimePart> time_parts(const CostBreakdown& cost, bool stages, const ThemeColors& colors) {
  static const char* const kCompute[] = {QT_TR_NOOP("Forward"), QT_TR_NOOP("Backward"), QT_TR_NOOP("Update"),
                                         QT_TR_NOOP("Recompute")};
  static const char* const kNetwork[] = {
      QT_TR_NOOP("All-reduce"), QT_TR_NOOP("All-gather"), QT_TR_NOOP("Reduce-scatter"), QT_TR_NOOP("All-to-all"),
      QT_TR_NOOP("Permute"),    QT_TR_NOOP("Offload"),    QT_TR_NOOP("Bubble")};
  std::vector<TimePart> parts;
  for (std::size_t i = 0; i < kComputeParts; ++i)
    if (cost.compute[i] != 0 || ComputePart(i) != ComputePart::recompute)
      parts.push_back({colors.compute[i], QObject::tr(kCompute[i]), cost.compute[i], false});
  for (std::size_t i = 0; i < kNetworkParts; ++i) {
    if (cost.network[i] == 0) continue;
    const bool sends = stages && NetworkPart(i) == NetworkPart::permute;
    parts.push_back(
        {colors.network[i], sends ? QObject::tr("Sends") : QObject::tr(kNetwork[i]), cost.network[i], true});
  }
  return parts;
}

std::vector<BarPart> bar_of(const std::vector<TimePart>& parts) {
  std::vector<BarPart> bar;
  for (const TimePart& part : parts)
    bar.push_back({part.color, part.seconds, part.name + u' ' + time_text(part.seconds)});
  return bar;
}

}  // namespace turnpoint::views
