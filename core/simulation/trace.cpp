// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/trace.h"

#include <fmt/format.h>

#include <iterator>

#include "core/base/json.h"

namespace turnpoint {
namespace {

constexpr int kComputeLane = 0, kSendLane = 1;

class TraceWriter {
 public:
  TraceWriter(const TaskGraph& graph, const Placement& placement, const Simulation& simulation)
      : graph_(graph), placement_(placement), sim_(simulation) {}

  std::string write() {
    text_.reserve(256 * (graph_.task_count() + sim_.transfers.size()) + 1024);
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (std::uint32_t d = 0; d < placement_.devices; ++d) name_lanes(d);
    for (TaskIndex t = 0; t < graph_.task_count(); ++t) write_task(t);
    for (std::uint32_t k = 0; k < sim_.transfers.size(); ++k) write_transfer(k);
    for (std::uint32_t d = 0; d < sim_.memory.size(); ++d)
      for (const MemorySample& sample : sim_.memory[d]) write_sample(d, sample);
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += separator_;
    separator_ = ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }
  static double micro(double seconds) { return seconds * 1e6; }

  void name_lanes(std::uint32_t d) {
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"device {}"}}}})", d, d);
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", d, d);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"compute"}}}})", d, kComputeLane);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"send"}}}})", d, kSendLane);
  }

  void write_task(TaskIndex t) {
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{"task":{},"scope":{}}}}})",
          placement_.device[t], kComputeLane, micro(sim_.start_s[t]), micro(sim_.end_s[t] - sim_.start_s[t]),
          json_text(graph_.names[t]), to_string(graph_.kind[t]), t, json_text(graph_.scopes[graph_.scope[t]]));
  }

  void write_transfer(std::uint32_t k) {
    const SimulatedTransfer& transfer = sim_.transfers[k];
    // Where transfers of one device overlap (nothing contends), a lane each would be needed: asynchronous events nest.
    const bool overlap = graph_.links.contention == TaskLinks::Contention::none;
    const std::string name = json_text(fmt::format("{} to {}", graph_.names[transfer.source], transfer.to));
    const double start = micro(transfer.start_s), end = micro(transfer.end_s);
    if (overlap) {
      event(R"({{"ph":"b","cat":"transfer","id":{},"pid":{},"tid":{},"ts":{},"name":{},"args":{{"bytes":{}}}}})", k,
            transfer.from, kSendLane, start, name, transfer.bytes);
      event(R"({{"ph":"e","cat":"transfer","id":{},"pid":{},"tid":{},"ts":{},"name":{}}})", k, transfer.from, kSendLane,
            end, name);
      return;
    }
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"transfer","args":{{"bytes":{}}}}})",
          transfer.from, kSendLane, start, end - start, name, transfer.bytes);
    for (const TaskIndex t : graph_.successors(transfer.source)) {
      if (placement_.device[t] != transfer.to) continue;
      event(R"({{"ph":"s","cat":"flow","name":"input","id":{},"pid":{},"tid":{},"ts":{}}})", flow_, transfer.from,
            kSendLane, start);
      event(R"({{"ph":"f","bp":"e","cat":"flow","name":"input","id":{},"pid":{},"tid":{},"ts":{}}})", flow_,
            transfer.to, kComputeLane, micro(sim_.start_s[t]));
      ++flow_;
    }
  }

  void write_sample(std::uint32_t d, const MemorySample& sample) {
    event(
        R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"persistent":{},"activations":{},"copies":{},"workspace":{}}}}})",
        d, micro(sample.time_s), sim_.devices[d].persistent_bytes, sample.activation_bytes, sample.copy_bytes,
        sample.workspace_bytes);
  }

  const TaskGraph& graph_;
  const Placement& placement_;
  const Simulation& sim_;
  std::string text_;
  const char* separator_ = "\n";
  std::uint64_t flow_ = 0;
};

}  // namespace

std::string write_trace(const TaskGraph& graph, const Placement& placement, const Simulation& simulation) {
  return TraceWriter(graph, placement, simulation).write();
}

}  // namespace turnpoint
