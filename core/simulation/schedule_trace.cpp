// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "core/base/json.h"
#include "core/simulation/trace.h"

namespace turnpoint {
namespace {

double micro(double seconds) { return seconds * 1e6; }

class ScheduleTrace {
 public:
  explicit ScheduleTrace(const Schedule& schedule) : s_(schedule), graph_(*schedule.graph) {}

  std::string write() {
    text_.reserve(256 * s_.item_count() + 1024);
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (std::uint32_t d = 0; d < s_.devices.size(); ++d) {
      event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", d, json_text(s_.devices[d].name));
      event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", d, d);
    }
    lane_of_.resize(s_.item_count());
    for (std::uint32_t l = 0; l < s_.lanes.size(); ++l)
      for (std::uint32_t i = s_.lanes[l].begin; i < s_.lanes[l].end; ++i) lane_of_[i] = l;
    for (const Schedule::Lane& lane : s_.lanes) {
      event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", lane.device, tid(lane),
            to_string(lane.kind));
      for (std::uint32_t i = lane.begin; i < lane.end; ++i) write_item(lane, i);
    }
    for (TaskIndex t = 0; t < graph_.task_count(); ++t) write_flows(t);
    for (std::uint32_t d = 0; d < s_.memory.size(); ++d)
      for (const MemorySample& sample : s_.memory[d])
        event(
            R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"persistent":{},"activations":{},"copies":{},"workspace":{}}}}})",
            d, micro(sample.time_s), s_.devices[d].persistent_bytes, sample.activation_bytes, sample.copy_bytes,
            sample.workspace_bytes);
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
  static int tid(const Schedule::Lane& lane) {
    return lane.kind == LaneKind::compute ? 0 : lane.kind == LaneKind::network ? 2 : 1;
  }

  void write_item(const Schedule::Lane& lane, std::uint32_t i) {
    const TaskIndex t = s_.task[i];
    event(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{"task":{},"scope":{},"bytes":{}}}}})",
        lane.device, tid(lane), micro(s_.start_s[i]), micro(s_.end_s[i] - s_.start_s[i]), json_text(graph_.names[t]),
        to_string(graph_.kind[t]), t, json_text(graph_.scopes[graph_.scope[t]]), s_.bytes[i]);
  }

  // An arrow where an item began in the instant in which an item of another lane ended: the one it waited for.
  void write_flows(TaskIndex t) {
    const std::uint32_t from = s_.item_of[t];
    if (from == kNone) return;
    for (const TaskIndex successor : graph_.successors(t)) {
      const std::uint32_t to = s_.item_of[successor];
      if (to == kNone || lane_of_[to] == lane_of_[from] || s_.start_s[to] != s_.end_s[from]) continue;
      const Schedule::Lane &left = s_.lanes[lane_of_[from]], &right = s_.lanes[lane_of_[to]];
      event(R"({{"ph":"s","cat":"flow","name":"input","id":{},"pid":{},"tid":{},"ts":{}}})", flow_, left.device,
            tid(left), micro(s_.start_s[from]));
      event(R"({{"ph":"f","bp":"e","cat":"flow","name":"input","id":{},"pid":{},"tid":{},"ts":{}}})", flow_,
            right.device, tid(right), micro(s_.start_s[to]));
      ++flow_;
    }
  }

  const Schedule& s_;
  const TaskGraph& graph_;
  std::vector<std::uint32_t> lane_of_;  ///< by item
  std::string text_;
  const char* separator_ = "\n";
  std::uint64_t flow_ = 0;
};

}  // namespace

std::string write_trace(const Schedule& schedule) { return ScheduleTrace(schedule).write(); }

}  // namespace turnpoint
