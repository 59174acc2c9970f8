// SPDX-License-Identifier: Apache-2.0
#include "views/devices/device_blocks.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/ratio_shares.h"

namespace turnpoint::views {

namespace {

class Blocks {
 public:
  Blocks(const RatioPlan& plan, const Scenario& scenario) : plan_(plan), scenario_(scenario) {}

  DeviceBlocks run() {
    for (const double seconds : plan_.device_compute_s) out_.slowest_s = std::max(out_.slowest_s, seconds);
    add(plan_.whole(), plan_.cuts.empty() ? RatioPlan::kNoCut : 0, 0, {0, 0, 1, 0, 1});
    return std::move(out_);
  }

 private:
  struct Place {
    int level;
    double left, width;
    std::size_t parent;
    double ratio;
  };

  void add(std::uint32_t part, std::uint32_t cut, std::uint32_t first, const Place& place) {
    DeviceBlock block;
    block.level = place.level;
    block.left = place.left, block.width = place.width, block.parent = place.parent, block.ratio = place.ratio;
    block.first = first, block.count = plan_.parts[part].devices;
    block.devices = devices_text(plan_, *scenario_.cluster, part, first);
    for (std::uint32_t i = first; i < first + block.count; ++i) {
      const std::uint32_t device = plan_.order[i];
      block.compute_s = std::max(block.compute_s, plan_.device_compute_s[device]);
      const double used =
          double(plan_.device_memory[device]) / double(std::max<std::int64_t>(1, scenario_.memory_limit_of(device)));
      if (used > block.memory_part) block.memory_part = used, block.memory_bytes = plan_.device_memory[device];
    }
    const std::size_t index = out_.blocks.size();
    const bool divided = cut != RatioPlan::kNoCut && place.level < kMostBlockLevels;
    if (divided) {
      block.cut = cut;
      for (const RatioPlan::Layer& layer : plan_.layers) ++block.types[std::size_t(layer.type[cut])];
      out_.levels = std::max(out_.levels, place.level + 1);
    }
    out_.blocks.push_back(std::move(block));
    if (!divided) return;
    const RatioPlan::Cut& made = plan_.cuts[cut];
    const double at = place.width * made.ratio;
    const auto& halves = plan_.parts[part].halves;
    add(halves[0], made.next[0], first, {place.level + 1, place.left, at, index, made.ratio});
    add(halves[1], made.next[1], first + plan_.parts[halves[0]].devices,
        {place.level + 1, place.left + at, place.width - at, index, 1 - made.ratio});
  }

  const RatioPlan& plan_;
  const Scenario& scenario_;
  DeviceBlocks out_;
};

}  // namespace

DeviceBlocks blocks_of(const RatioPlan& plan, const Scenario& scenario) { return Blocks(plan, scenario).run(); }

QString describe(const DeviceBlock& block) {
  QString text = block.level == 0 ? QObject::tr("%1: all of the work").arg(block.devices)
                                  : QObject::tr("%1: %2 of its part of the work, %3 of all")
                                        .arg(block.devices, portion_text(block.ratio), portion_text(block.width));
  text += QObject::tr("; computes %1, holds %2, %3 of what fits")
              .arg(time_text(block.compute_s), memory_text(block.memory_bytes), share_text(block.memory_part));
  QStringList types;
  const QString names[] = {QObject::tr("batch (I)"), QObject::tr("reduction (II)"), QObject::tr("output (III)")};
  for (std::size_t t = 0; t < block.types.size(); ++t)
    if (block.types[t] > 0) types << QObject::tr("%1 by %2").arg(block.types[t]).arg(names[t]);
  if (!types.isEmpty()) text += QObject::tr("; its layers are cut: %1").arg(types.join(QStringLiteral(", ")));
  return text;
}

QString describe(const DeviceBlocks& blocks) {
  QStringList lines;
  for (const DeviceBlock& block : blocks.blocks)
    if (lines.size() < 16) lines << describe(block);
  return lines.join(u'\n');
}

}  // namespace turnpoint::views
