// SPDX-License-Identifier: Apache-2.0
// PipeDream profiles: a line per layer and a line per edge,
//   node4 -- Conv2d(3, 64, ...) -- forward_compute_time=1.5, backward_compute_time=3.0, activation_size=1000.0,
//     parameter_size=20.0 [-- stage_id=0]                                  (one line; milliseconds and bytes)
//       node3 -- node4
// A layer becomes a forward and a backward task on one device: its parameters stay with the forward one, activations
// travel forward and their gradients, of the same size, back.
#include <fmt/format.h>

#include <unordered_map>

#include "core/base/text.h"
#include "core/import/task_graph/readers.h"

namespace turnpoint::task_graph_import {
namespace {

constexpr std::string_view kSeparator = " -- ";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

struct Layer {
  std::string name, description;
  double forward_ms = 0, backward_ms = 0;
  std::int64_t activation_bytes = 0, parameter_bytes = 0;
};

class PipeDreamReader {
 public:
  explicit PipeDreamReader(const std::string& where) : where_(where) {}

  std::optional<Error> line(std::string_view text) {
    ++line_;
    text = trimmed(text);
    if (text.empty()) return std::nullopt;
    const auto first = text.find(kSeparator);
    if (first == std::string_view::npos) return fail("is neither a layer nor an edge");
    const auto last = text.find("forward_compute_time=", first);
    if (last != std::string_view::npos) return layer(text, first, last);
    const std::string_view to = trimmed(text.substr(first + kSeparator.size()));
    if (to.find(kSeparator) != std::string_view::npos) return fail("has no forward_compute_time");
    edges_.push_back({std::string(trimmed(text.substr(0, first))), std::string(to), line_});
    return std::nullopt;
  }

  Expected<TaskGraphPtr> finish() {
    TaskGraphBuilder builder;
    const auto count = std::int64_t(layers_.size());
    for (const bool backward : {false, true})
      for (std::size_t i = 0; i < layers_.size(); ++i) add_task(builder, layers_[i], backward);
    // The backward task of layer i is count + i.
    for (std::int64_t i = 0; i < count; ++i) builder.add_edge(i, count + i);
    for (const auto& edge : edges_) {
      line_ = edge.line;
      const auto from = index_.find(edge.from), to = index_.find(edge.to);
      if (from == index_.end() || to == index_.end())
        return fail(fmt::format("names layer '{}', which does not exist",
                                (from == index_.end() ? edge.from : edge.to).substr(0, 60)));
      builder.add_edge(from->second, to->second);
      builder.add_edge(count + to->second, count + from->second, layers_[std::size_t(from->second)].activation_bytes);
    }
    return builder.finish(where_);
  }

 private:
  struct Edge {
    std::string from, to;
    std::size_t line;
  };

  Error fail(std::string what) const { return bad_input(std::move(what), fmt::format("{}: line {}", where_, line_)); }

  std::optional<Error> layer(std::string_view text, std::size_t name_end, std::size_t figures) {
    Layer result;
    result.name = trimmed(text.substr(0, name_end));
    const auto begin = name_end + kSeparator.size();
    if (figures > begin + kSeparator.size())
      result.description = trimmed(text.substr(begin, figures - begin - kSeparator.size()));
    std::string_view rest = text.substr(figures);
    if (const auto stage = rest.find(kSeparator); stage != std::string_view::npos) rest = rest.substr(0, stage);
    double activation = 0, parameters = 0;
    for (const auto field : split(rest, ',')) {
      const auto equals = field.find('=');
      if (equals == std::string_view::npos) return fail("has a figure without a value");
      const std::string_view key = trimmed(field.substr(0, equals)), value = trimmed(field.substr(equals + 1));
      double* into = key == "forward_compute_time"    ? &result.forward_ms
                     : key == "backward_compute_time" ? &result.backward_ms
                     : key == "activation_size"       ? &activation
                     : key == "parameter_size"        ? &parameters
                                                      : nullptr;
      if (into && !number(value, *into))
        return fail(fmt::format("{} is '{}', not a number of 0 or more", key, value.substr(0, 40)));
    }
    if (!to_bytes(activation, result.activation_bytes) || !to_bytes(parameters, result.parameter_bytes))
      return fail("has an absurdly large size");
    if (!index_.try_emplace(result.name, std::int64_t(layers_.size())).second)
      return fail(fmt::format("'{}' is the name of an earlier layer, too", result.name.substr(0, 60)));
    layers_.push_back(std::move(result));
    return std::nullopt;
  }

  /// A number, or a list of them in brackets (several tensors): their sum.
  static bool number(std::string_view text, double& value) {
    if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
      text = text.substr(1, text.size() - 2);
      value = 0;
      for (const auto part : split(text, ';')) {
        const auto one = parse_double(trimmed(part));
        if (!one || *one < 0) return false;
        value += *one;
      }
      return true;
    }
    const auto one = parse_double(text);
    if (!one || *one < 0) return false;
    value = *one;
    return true;
  }

  static void add_task(TaskGraphBuilder& builder, const Layer& layer, bool backward) {
    TaskGraphBuilder::Task task;
    const std::string name = fmt::format("{} {}{}", layer.name, layer.description, backward ? " (backward)" : "");
    task.name = name;
    task.kind = backward ? TaskKind::backward : TaskKind::forward;
    task.time_s = (backward ? layer.backward_ms : layer.forward_ms) * 1e-3;
    task.output_bytes = backward ? 0 : layer.activation_bytes;
    task.persistent_bytes = backward ? 0 : layer.parameter_bytes;
    task.colocate = builder.group(layer.name);
    task.scope = builder.scope(layer.name);
    builder.add_task(task);
  }

  const std::string& where_;
  std::size_t line_ = 0;
  std::vector<Layer> layers_;
  std::unordered_map<std::string, std::int64_t> index_;
  std::vector<Edge> edges_;
};

}  // namespace

Expected<TaskGraphPtr> read_pipedream(std::string_view text, const std::string& where) {
  PipeDreamReader reader(where);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (auto error = reader.line(text.substr(begin, end - begin))) return *error;
    begin = end + 1;
  }
  return reader.finish();
}

}  // namespace turnpoint::task_graph_import
