// SPDX-License-Identifier: Apache-2.0
// Task graphs and placements from files (resources/manual/formats.md). The kind of file is told by its content:
//   - turnpoint/task-graph@1;
//   - workloads of the NeurIPS 2020 device-placement study: accelerators only, latencies and transfer costs in seconds
//     as they stand (costs of the latency inputs divided by 1000), sizes persistent, colour classes co-located;
//   - Piper inputs: without tensor parallelism, one sample;
//   - PipeDream profiles (text): a forward and a backward task per layer, co-located;
//   - TensorFlow graphs (binary or text), as they are: a task per node of the file, gradients, updates, initialisers
//   and
//     all, with its control inputs; a variable is co-located with what reads and writes it; one round of a loop. Bytes
//     come from the shapes that the file states and those that follow from them, with 1 for sizes that it leaves open,
//     times from the default device's data sheet. The network's own training graph, with the importer's costs, is
//     core/schedule/training_graph.h.
// Reading is one pass over the text without a tree of it, so that a graph of a million tasks needs little more than
// itself; nesting is limited, and every message names file, place and reason.
#pragma once

#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"

namespace turnpoint {

/// What can be opened, for help texts and messages.
inline constexpr const char* kTaskGraphFiles =
    "turnpoint/task-graph@1, a device-placement workload, a Piper input, a PipeDream profile or a TensorFlow graph";

Expected<TaskGraphPtr> open_task_graph(const std::string& path);
/// `where` names the text in messages; its folder tells the study's latency inputs from the others.
Expected<TaskGraphPtr> read_task_graph(std::string_view text, const std::string& where);

/// Whether read_task_graph is the reader for this text, right or wrong as it may be: a JSON object with "tasks" or
/// "nodes" or the format's name at its top, or a PipeDream profile. Stops at the first key that tells.
bool is_task_graph(std::string_view text);

/// turnpoint/placement@1, or a turnpoint/plan@1 of kind placement. Whether it fits a graph is check_placement's task.
Expected<Placement> open_placement(const std::string& path);
Expected<Placement> read_placement(std::string_view text, const std::string& where);

}  // namespace turnpoint
