// SPDX-License-Identifier: Apache-2.0
// How many ranks ran on how many nodes, for logs whose tables do not say: from the command line in the log, else from
// the file's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/hardware/logs/log_text.h"

namespace turnpoint::logs {

struct RunShape {
  int ranks = 0, nodes = 0, per_node = 0;  ///< 0: not told
};

/// Takes what a line of `mpirun`, `mpiexec` or `srun` says: -np, -n, -N, --nodes, --ntasks-per-node, -ppn, -npernode.
void add_command_line(RunShape& shape, std::string_view line);

/// The group of `ranks` (0: as the shape says). A run of at most eight without a word about nodes is taken for one
/// node, with a warning; nullopt: nothing tells the ranks or the nodes, which is a warning as well.
std::optional<DeviceGroup> group_of_run(LogBuilder& out, RunShape shape, int ranks);

}  // namespace turnpoint::logs
