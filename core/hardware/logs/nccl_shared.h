// SPDX-License-Identifier: Apache-2.0
// One sweep of nccl-tests, whether it came as a table or as JSON: which collective, how many ranks, which unit.
#pragma once

#include <map>
#include <string>
#include <string_view>
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
  std::string program;                 ///< "all_reduce_perf", empty if not named
  std::map<std::string, int> hosts;    ///< how many ranks each has
  std::map<std::string, int> devices;  ///< by host, number and bus: how many ranks say that they are on it
  int ranks = 0;                       ///< listed; 0: not named
  int highest_rank = -1;               ///< the largest number in the list
  int gpus_per_process = 0;
  bool has_redop = false;
  double unit_s = 0;  ///< 0: not named
  int empty_sizes = 0;
  std::vector<NcclRow> rows;
};

/// One more rank on `host`; `device` tells it from the others there, by number and bus.
void add_rank(NcclSection& section, const std::string& host, const std::string& device);

/// Adds the section's curves to `out`, out-of-place first, in-place as a variant; what had to be guessed becomes a
/// problem.
void add_nccl_section(LogBuilder& out, const NcclSection& section);

}  // namespace turnpoint::logs
