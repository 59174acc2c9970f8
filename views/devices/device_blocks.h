// SPDX-License-Identifier: Apache-2.0
// A ratio plan's devices as nested blocks: every part beside its other half, as wide as its part of the work, with what
// its slowest device computes and its fullest one holds.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <vector>

#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::views {

struct DeviceBlock {
  int level = 0;                          ///< cuts above it
  double left = 0, width = 1;             ///< of the whole
  std::size_t parent = 0;                 ///< index; its own of the whole
  std::uint32_t first = 0, count = 1;     ///< places in the plan's order
  QString devices;                        ///< "4 × V100-16GB"
  double ratio = 1;                       ///< of its parent's work, as the cut says
  double compute_s = 0;                   ///< of its slowest device
  std::int64_t memory_bytes = 0;          ///< of the device that has least room left
  double memory_part = 0;                 ///< of what that device may hold; above 1: it does not fit
  std::uint32_t cut = RatioPlan::kNoCut;  ///< that divides it
  std::array<int, 3> types{};             ///< layers that the cut divides by batch, reduction, output
};

struct DeviceBlocks {
  std::vector<DeviceBlock> blocks;  ///< parents before their halves, the first half first
  int levels = 0;                   ///< of cuts; 0: one device, or no plan
  double slowest_s = 0;             ///< computing of the slowest of all devices
  bool empty() const { return blocks.empty(); }
};

/// Halves of more than this level are not shown: there would be a thousand devices side by side.
inline constexpr int kMostBlockLevels = 10;

DeviceBlocks blocks_of(const RatioPlan& plan, const Scenario& scenario);
/// "4 × V100-16GB: 62.5% of its part of the work, 31.25% of all; computes 80.4 ms, holds at most
/// 989 MiB of 14.8 GiB; ...", for tool tips and readers.
QString describe(const DeviceBlock& block);
/// The same of a plan in one sentence a cut.
QString describe(const DeviceBlocks& blocks);

}  // namespace turnpoint::views
