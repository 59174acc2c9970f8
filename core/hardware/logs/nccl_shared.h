// SPDX-License-Identifier: Apache-2.0
// One sweep of nccl-tests, whether it came as a table or as JSON: which collective, how many ranks, which unit.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/hardware/logs/log_text.h"

namespace turnpoint::logs {

struct NcclTimes {
  double time = 0;              ///< in the sweep's unit; 0: not run
  double algbw = 0, busbw = 0;  ///< GB/s (10^9)
  RepeatSpread spread;          ///< of single iterations, in the sweep's unit, where they were timed
};
struct NcclRow {
  int line = 0;
  double size = 0;  ///< bytes as printed
  NcclTimes out_of_place, in_place;
};
struct NcclSection {
  std::string program;  ///< "all_reduce_perf", empty if not named
  std::set<std::string> hosts;
  int ranks = 0;  ///< 0: not named
  int gpus_per_process = 0;
  bool has_redop = false;
  double unit_s = 0;  ///< 0: not named
  int empty_sizes = 0;
  std::vector<NcclRow> rows;
};

/// Adds the section's curves to `out`, out-of-place first, in-place as a variant; what had to be guessed becomes a
/// problem.
void add_nccl_section(LogBuilder& out, const NcclSection& section);

}  // namespace turnpoint::logs
