// SPDX-License-Identifier: Apache-2.0
// Task graphs and placements: whatever the bytes, reading ends with a graph or a message; a small graph is simulated,
// and again after being written and read.
#include <cstdlib>
#include <string_view>

#include "core/import/task_graph.h"
#include "core/plan_io/task_graph_json.h"
#include "core/simulation/simulator.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "placement:task_graph"; }

namespace {

using namespace turnpoint;

double makespan(const TaskGraph& graph) {
  Placement placement;
  placement.devices = std::min(3u, graph.device_limit());
  for (std::size_t t = 0; t < graph.task_count(); ++t)
    placement.device.push_back(std::uint32_t(t * 7 / 3) % placement.devices);
  const auto result = simulate(graph, placement, true, "fuzz");
  if (!result) std::abort();  // without an order every acyclic graph ends
  for (const auto& device : result->devices)
    if (device.peak_bytes < device.persistent_bytes) std::abort();
  return result->makespan_s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto placement = read_placement(text, "fuzz");
  if (!placement && placement.error().message().empty()) std::abort();
  const auto graph = read_task_graph(text, "fuzz");
  if (!graph) {
    if (graph.error().message().empty()) std::abort();
    return 0;
  }
  if ((*graph)->task_count() > 2000 || (*graph)->edge_count() > 10000) return 0;
  const double seconds = makespan(**graph);
  const auto again = read_task_graph(write_task_graph(**graph), "again");
  if (!again) std::abort();
  if ((*graph)->out_seconds.empty() && makespan(**again) != seconds) std::abort();
  return 0;
}
