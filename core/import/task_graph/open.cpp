// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/import/task_graph.h"
#include "core/import/task_graph/readers.h"
#include "core/import/tensorflow/tensorflow_source.h"

namespace turnpoint {
namespace task_graph_import {

Error syntax_error(std::string_view text, std::size_t position, std::string what, const std::string& where) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." without its own place.
  if (const auto tag = what.find("] "); tag != std::string::npos) what.erase(0, tag + 2);
  const auto colon = what.find(": ");
  if (what.starts_with("parse error at line") && colon != std::string::npos) what.erase(0, colon + 2);
  const std::size_t at = std::min(position, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n');
  return bad_input("not valid JSON: " + what, where + ": line " + std::to_string(line));
}

bool to_bytes(double value, std::int64_t& bytes) {
  if (!(value >= 0) || value > double(TaskGraphBuilder::kMaxBytes)) return false;
  bytes = std::llround(value);
  return true;
}

namespace {

/// Reads only until a key of the outermost object tells the kind of file.
class KindFinder {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  std::string found;  ///< "tasks" or "nodes"
  bool too_deep = false;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string& value) {
    if (depth_ == 1 && value == "turnpoint/task-graph@1") found = "tasks";
    return found.empty();
  }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return deeper(); }
  bool start_array(std::size_t) { return deeper(); }
  bool end_object() { return --depth_ >= 0; }
  bool end_array() { return --depth_ >= 0; }
  bool key(std::string& name) {
    if (depth_ == 1 && (name == "tasks" || name == "nodes")) found = name;
    return found.empty();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  bool deeper() {
    too_deep = ++depth_ > kMaxDepth;
    return !too_deep;
  }
  int depth_ = 0;
};

}  // namespace
}  // namespace task_graph_import

Expected<TaskGraphPtr> read_task_graph(std::string_view text, const std::string& where) {
  using namespace task_graph_import;
  const auto first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return bad_input("is empty", where);
  // "node {" begins a TensorFlow graph, "node1 -- ..." a PipeDream profile.
  if (is_tensorflow({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}))
    return read_tensorflow(text, where);
  if (text.compare(first, 4, "node") == 0) return read_pipedream(text, where);
  if (text[first] != '{') return bad_input("is no task graph: neither a JSON object nor a PipeDream profile", where);
  KindFinder finder;
  nlohmann::json::sax_parse(text.begin(), text.end(), &finder);
  if (finder.too_deep) return bad_input("nested deeper than " + std::to_string(kMaxDepth) + " levels", where);
  if (finder.found == "tasks") return read_native(text, where);
  // The other kinds are small; what is larger would only serve to fill memory with its tree.
  constexpr std::size_t kMaxTree = std::size_t(24) << 20;
  if (text.size() > kMaxTree)
    return bad_input("is larger than 24 MiB and not in the format turnpoint/task-graph@1", where);
  const auto document = parse_json(text, where, kMaxDepth);
  if (!document) return document.error();
  if (document->contains("maxFPGAs")) return read_workload(*document, where);
  if (document->contains("maxDevices") && document->contains("nodes")) return read_piper(*document, where);
  Error error = bad_input("is no task graph that is known here", where);
  error.hint = kTaskGraphFiles;
  return error;
}

bool is_task_graph(std::string_view text) {
  using namespace task_graph_import;
  const auto first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return false;
  if (text.compare(first, 4, "node") == 0) return true;
  if (text[first] != '{') return false;
  KindFinder finder;
  nlohmann::json::sax_parse(text.begin() + std::ptrdiff_t(first), text.end(), &finder);
  return !finder.found.empty();
}

Expected<TaskGraphPtr> open_task_graph(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return read_task_graph(*text, path);
}

Expected<Placement> open_placement(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  return read_placement(*text, path);
}

}  // namespace turnpoint
