// SPDX-License-Identifier: Apache-2.0
// Written by hand rather than through a tree of values, which for a million tasks would be many times the text.
#include "core/plan_io/task_graph_json.h"

#include <fmt/format.h>

#include <iterator>

#include "core/base/json.h"

namespace turnpoint {
namespace {

using Out = std::back_insert_iterator<std::string>;

/// A list, `write(i)` for each of `count` items.
template <class Write>
void list(std::string& text, const char* separator, std::size_t count, Write&& write) {
  text += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i) text += separator;
    write(i);
  }
  text += ']';
}

void numbers(std::string& text, const std::vector<std::uint32_t>& values) {
  list(text, ", ", values.size(), [&](std::size_t i) { fmt::format_to(Out(text), "{}", values[i]); });
}

void write_task(std::string& text, const TaskGraph& g, TaskIndex t) {
  fmt::format_to(Out(text), "{{\"name\": {}, \"kind\": \"{}\", \"time_s\": {}", json_text(g.names[t]),
                 to_string(g.kind[t]), g.time_s[t]);
  if (g.output_bytes[t]) fmt::format_to(Out(text), ", \"output_bytes\": {}", g.output_bytes[t]);
  if (g.persistent_bytes[t]) fmt::format_to(Out(text), ", \"persistent_bytes\": {}", g.persistent_bytes[t]);
  if (g.workspace_bytes[t]) fmt::format_to(Out(text), ", \"workspace_bytes\": {}", g.workspace_bytes[t]);
  if (g.colocate[t] != kNone) fmt::format_to(Out(text), ", \"colocate\": {}", json_text(g.groups[g.colocate[t]]));
  if (g.scope[t]) fmt::format_to(Out(text), ", \"scope\": {}", json_text(g.scopes[g.scope[t]]));
  text += '}';
}

void write_edges(std::string& text, const TaskGraph& g) {
  text += '[';
  const char* separator = "";
  for (TaskIndex t = 0; t < g.task_count(); ++t)
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      fmt::format_to(Out(text), "{}{{\"from\": {}, \"to\": {}", separator, t, g.out_to[e]);
      if (g.out_bytes[e] != g.output_bytes[t]) fmt::format_to(Out(text), ", \"bytes\": {}", g.out_bytes[e]);
      if (!g.out_tensor.empty() && g.out_tensor[e] != 0) fmt::format_to(Out(text), ", \"tensor\": {}", g.out_tensor[e]);
      text += '}';
      separator = ",\n";
    }
  text += ']';
}

void write_link_number(std::string& text, const char* key, double scalar, const std::vector<double>& matrix,
                       std::size_t size) {
  fmt::format_to(Out(text), "\"{}\": ", key);
  if (matrix.empty()) {
    fmt::format_to(Out(text), "{}", scalar);
    return;
  }
  list(text, ", ", size, [&](std::size_t row) {
    list(text, ", ", size, [&](std::size_t column) { fmt::format_to(Out(text), "{}", matrix[row * size + column]); });
  });
}

}  // namespace

std::string write_task_graph(const TaskGraph& g) {
  std::string text;
  text.reserve(g.task_count() * 160 + g.edge_count() * 32);
  fmt::format_to(Out(text), "{{\"format\": \"turnpoint/task-graph@1\",\n\"name\": {},\n\"tasks\": ", json_text(g.name));
  list(text, ",\n", g.task_count(), [&](std::size_t t) { write_task(text, g, TaskIndex(t)); });
  text += ",\n\"edges\": ";
  write_edges(text, g);
  text += ",\n\"links\": {";
  write_link_number(text, "bandwidth_bytes_per_s", g.links.bandwidth, g.links.bandwidths, g.links.size);
  text += ", ";
  write_link_number(text, "latency_s", g.links.latency, g.links.latencies, g.links.size);
  const bool none = g.links.contention == TaskLinks::Contention::none;
  fmt::format_to(Out(text), ", \"contention\": \"{}\"}}", none ? "none" : "sender");
  if (!g.devices.empty()) {
    text += ",\n\"devices\": ";
    list(text, ", ", g.devices.size(), [&](std::size_t d) {
      fmt::format_to(Out(text), "{{\"speed\": {}", g.devices[d].speed);
      if (g.devices[d].memory_bytes != kUnlimitedBytes)
        fmt::format_to(Out(text), ", \"memory_bytes\": {}", g.devices[d].memory_bytes);
      text += '}';
    });
  }
  text += "}\n";
  return text;
}

std::string write_placement(const Placement& placement, const PlacementFigures& figures) {
  std::string text = "{\"format\": \"turnpoint/placement@1\",\n";
  if (!figures.method.empty()) fmt::format_to(Out(text), "\"method\": {},\n", json_text(figures.method));
  const auto figure = [&](const char* key, const std::optional<double>& value) {
    if (value) fmt::format_to(Out(text), "\"{}\": {},\n", key, *value);
  };
  figure("makespan_s", figures.makespan_s);
  figure("max_load_s", figures.max_load_s);
  figure("search_s", figures.search_s);
  const auto by_device = [&](const char* key, const std::vector<std::int64_t>& bytes) {
    if (bytes.empty()) return;
    fmt::format_to(Out(text), "\"{}\": ", key);
    list(text, ", ", bytes.size(), [&](std::size_t d) { fmt::format_to(Out(text), "{}", bytes[d]); });
    text += ",\n";
  };
  by_device("peak_bytes", figures.peak_bytes);
  by_device("persistent_bytes", figures.persistent_bytes);
  if (figures.peak_communication_bytes)
    fmt::format_to(Out(text), "\"peak_communication_bytes\": {},\n", *figures.peak_communication_bytes);
  fmt::format_to(Out(text), "\"devices\": {},\n\"device\": ", placement.devices);
  numbers(text, placement.device);
  if (!placement.cluster.empty()) {
    text += ",\n\"cluster\": ";
    numbers(text, placement.cluster);
  }
  if (!placement.order.empty()) {
    text += ",\n\"order\": ";
    list(text, ",\n", placement.order.size(), [&](std::size_t d) { numbers(text, placement.order[d]); });
  }
  text += "}\n";
  return text;
}

}  // namespace turnpoint
