// SPDX-License-Identifier: Apache-2.0
// turnpoint/task-graph@1, read as a stream of events: what is not known is skipped whatever it holds.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/import/task_graph/readers.h"

namespace turnpoint::task_graph_import {
namespace {

constexpr const char* kFormat = "turnpoint/task-graph@1";

/// A scalar as the parser met it.
struct Scalar {
  enum class Type { null, boolean, integer, real, text } type = Type::null;
  std::int64_t integer = 0;
  double real = 0;  ///< also set for integers
  std::string_view text;
  bool is_number() const { return type == Type::integer || type == Type::real; }
};

class NativeReader {
 public:
  // What nlohmann's event parser asks for.
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  NativeReader(std::string_view text, const std::string& where) : source_(text), where_(where) {}

  bool null() { return scalar({}); }
  bool boolean(bool) { return scalar({Scalar::Type::boolean, 0, 0, {}}); }
  bool number_integer(std::int64_t v) { return scalar({Scalar::Type::integer, v, double(v), {}}); }
  bool number_unsigned(std::uint64_t v) {
    if (v > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return scalar({Scalar::Type::real, 0, double(v), {}});
    return scalar({Scalar::Type::integer, std::int64_t(v), double(v), {}});
  }
  bool number_float(double v, const std::string&) { return scalar({Scalar::Type::real, 0, v, {}}); }
  bool string(std::string& v) { return scalar({Scalar::Type::text, 0, 0, v}); }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(std::string& name) {
    if (depth_ == 1) section_ = section_of(name);
    if (depth_ <= 3) key_ = name;
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    error_ = syntax_error(source_, position ? position - 1 : 0, error.what(), where_);
    return false;
  }

  Expected<TaskGraphPtr> result() {
    if (error_) return *error_;
    if (!format_seen_) return bad_input(fmt::format("has no \"format\": \"{}\"", kFormat), where_);
    if (!tasks_seen_) return bad_input("has no \"tasks\"", where_);
    return builder_.finish(where_);
  }

 private:
  enum class Section { other, format, name, tasks, edges, links, devices };

  static Section section_of(std::string_view name) {
    if (name == "format") return Section::format;
    if (name == "name") return Section::name;
    if (name == "tasks") return Section::tasks;
    if (name == "edges") return Section::edges;
    if (name == "links") return Section::links;
    if (name == "devices") return Section::devices;
    return Section::other;
  }
  static const char* name_of(Section section) {
    constexpr const char* kNames[] = {"", "format", "name", "tasks", "edges", "links", "devices"};
    return kNames[std::size_t(section)];
  }

  bool fail(std::string what, std::string place = {}) {
    if (!error_) error_ = bad_input(std::move(what), place.empty() ? where_ : where_ + ": " + place);
    return false;
  }
  std::string place(std::string_view field = {}) const {
    std::string text = name_of(section_);
    if (section_ == Section::tasks || section_ == Section::edges || section_ == Section::devices)
      text += fmt::format("[{}]", element_);
    return field.empty() ? text : fmt::format("{}.{}", text, field);
  }

  bool is_list() const {
    return section_ == Section::tasks || section_ == Section::edges || section_ == Section::devices;
  }
  bool is_matrix() const {
    return section_ == Section::links && (key_ == "bandwidth_bytes_per_s" || key_ == "latency_s");
  }

  bool open(bool object) {
    if (++depth_ > kMaxDepth) return fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    if (depth_ == 1) return object || fail("is not a JSON object");
    if (section_ == Section::other) return true;
    if (section_ == Section::format || section_ == Section::name) return fail("is not a text", place());
    if (depth_ == 2) {
      element_ = 0;
      if (section_ == Section::tasks) tasks_seen_ = true;
      if (is_list() == object) return fail(is_list() ? "is not a list" : "is not an object", name_of(section_));
      return true;
    }
    if (is_list() && depth_ == 3) {
      if (!object) return fail("is not an object", place());
      begin_element();
      return true;
    }
    if (is_list() && depth_ == 4 && known_field()) return fail("is neither a number nor a text", place(key_));
    if (section_ == Section::links && is_matrix()) return open_matrix(object);
    return true;
  }

  bool close() {
    if (is_list() && depth_ == 3 && !end_element()) return false;
    if (section_ == Section::links && is_matrix() && !close_matrix()) return false;
    if (--depth_ == 1) section_ = Section::other;
    return true;
  }

  bool scalar(const Scalar& value) {
    if (depth_ == 0) return fail("is not a JSON object");
    if (section_ == Section::format) {
      format_seen_ = value.text == kFormat;
      return format_seen_ || fail(fmt::format("the format is not \"{}\"", kFormat));
    }
    if (section_ == Section::name && value.type == Scalar::Type::text) builder_.name = value.text;
    if (section_ == Section::links && is_matrix() && depth_ >= 2) return link_value(value);
    if (section_ == Section::links && depth_ == 2 && key_ == "contention") return contention(value);
    if (!is_list() || value.type == Scalar::Type::null) return true;
    if (depth_ == 1) return fail("is not a list", name_of(section_));
    if (depth_ == 2) return fail("is not an object", place());
    if (depth_ != 3) return true;
    if (section_ == Section::tasks) return task_field(value);
    if (section_ == Section::edges) return edge_field(value);
    return device_field(value);
  }

  bool known_field() const {
    if (section_ == Section::tasks)
      return key_ == "name" || key_ == "kind" || key_ == "scope" || key_ == "colocate" || key_ == "time_s" ||
             key_ == "output_bytes" || key_ == "persistent_bytes" || key_ == "workspace_bytes";
    if (section_ == Section::edges) return key_ == "from" || key_ == "to" || key_ == "bytes" || key_ == "tensor";
    return key_ == "memory_bytes" || key_ == "speed";
  }

  void begin_element() {
    task_ = {};
    name_.clear();
    from_ = to_ = -1;
    bytes_ = TaskGraphBuilder::kProducerBytes;
    tensor_ = 0;
    has_from_ = has_to_ = false;
    device_ = {};
  }
  bool end_element() {
    if (section_ == Section::tasks) {
      if (name_.empty()) name_ = fmt::format("task{}", element_);
      task_.name = name_;
      if (builder_.task_count() >= TaskGraphBuilder::kMaxTasks) return fail("has too many tasks");
      builder_.add_task(task_);
    } else if (section_ == Section::edges) {
      if (!has_from_ || !has_to_) return fail("has no \"from\" or no \"to\"", place());
      builder_.add_tensor(from_, to_, tensor_, bytes_);
    } else if (section_ == Section::devices) {
      builder_.devices.push_back(device_);
    }
    ++element_;
    return true;
  }

  bool seconds(const Scalar& value, double& into) {
    if (!value.is_number()) return fail("is not a number", place(key_));
    if (value.real < 0) return fail(fmt::format("is negative ({})", value.real), place(key_));
    into = value.real;
    return true;
  }
  bool bytes(const Scalar& value, std::int64_t& into) {
    if (!value.is_number()) return fail("is not a number", place(key_));
    if (!to_bytes(value.real, into))
      return fail(value.real < 0 ? fmt::format("is negative ({})", value.real)
                                 : fmt::format("is absurdly large ({}; at most 2^53)", value.real),
                  place(key_));
    return true;
  }
  bool index(const Scalar& value, std::int64_t& into, bool& seen) {
    if (value.type != Scalar::Type::integer) return fail("is not a whole number", place(key_));
    into = value.integer;
    seen = true;
    return true;
  }
  bool is_text(const Scalar& value) { return value.type == Scalar::Type::text || fail("is not a text", place(key_)); }

  bool task_field(const Scalar& value) {
    if (key_ == "time_s") return seconds(value, task_.time_s);
    if (key_ == "output_bytes") return bytes(value, task_.output_bytes);
    if (key_ == "persistent_bytes") return bytes(value, task_.persistent_bytes);
    if (key_ == "workspace_bytes") return bytes(value, task_.workspace_bytes);
    if (key_ == "colocate") {
      if (value.type == Scalar::Type::integer) {
        task_.colocate = builder_.group(std::to_string(value.integer));
        return true;
      }
      if (!is_text(value)) return false;
      task_.colocate = builder_.group(value.text);
      return true;
    }
    if (key_ != "name" && key_ != "scope" && key_ != "kind") return true;
    if (!is_text(value)) return false;
    if (key_ == "name") name_ = value.text;
    if (key_ == "scope") task_.scope = builder_.scope(value.text);
    return key_ != "kind" || kind(value.text);
  }
  bool kind(std::string_view word) {
    for (const TaskKind k : {TaskKind::forward, TaskKind::backward, TaskKind::update, TaskKind::other})
      if (word == to_string(k)) {
        task_.kind = k;
        return true;
      }
    return fail(fmt::format("is '{}', not forward, backward, update or other", word.substr(0, 40)), place(key_));
  }
  bool edge_field(const Scalar& value) {
    if (key_ == "from") return index(value, from_, has_from_);
    if (key_ == "to") return index(value, to_, has_to_);
    if (key_ == "tensor") return tensor(value);
    return key_ != "bytes" || bytes(value, bytes_);
  }
  bool tensor(const Scalar& value) {
    if (value.type != Scalar::Type::integer) return fail("is not a whole number", place(key_));
    if (value.integer < 0 || value.integer >= kNone)
      return fail(fmt::format("is {}; tensors are numbered from 0 to {}", value.integer, kNone - 1), place(key_));
    tensor_ = std::uint32_t(value.integer);
    return true;
  }
  bool device_field(const Scalar& value) {
    if (key_ == "memory_bytes") return bytes(value, device_.memory_bytes);
    return key_ != "speed" || seconds(value, device_.speed);
  }

  bool contention(const Scalar& value) {
    if (value.text != "sender" && value.text != "none")
      return fail("is neither \"sender\" nor \"none\"", place("contention"));
    builder_.links.contention = value.text == "none" ? TaskLinks::Contention::none : TaskLinks::Contention::sender;
    return true;
  }

  // Link numbers: a number, or a list (depth 3) of rows (depth 4) of numbers.
  std::vector<double>& matrix() { return key_ == "latency_s" ? builder_.links.latencies : builder_.links.bandwidths; }
  bool open_matrix(bool object) {
    if (object || depth_ > 4) return fail("is neither a number nor a list of rows of numbers", place(key_));
    if (depth_ == 3) matrix().clear(), rows_ = 0;
    if (depth_ == 4) row_ = 0;
    return true;
  }
  bool close_matrix() {
    if (depth_ == 4) {
      ++rows_;
      if (rows_ == 1) columns_ = row_;
      if (row_ != columns_) return fail("has rows of different lengths", place(key_));
    }
    if (depth_ != 3) return true;
    if (rows_ != columns_ || rows_ == 0) return fail("is not a square matrix", place(key_));
    if (rows_ > TaskGraphBuilder::kMaxDevices) return fail("has too many devices", place(key_));
    if (builder_.links.size != 0 && builder_.links.size != rows_)
      return fail("is a matrix of another size than the one before", place(key_));
    builder_.links.size = std::uint32_t(rows_);
    rows_ = columns_ = 0;
    return true;
  }
  bool link_value(const Scalar& value) {
    if (!value.is_number()) return fail("is not a number", place(key_));
    if (depth_ == 2) {
      (key_ == "latency_s" ? builder_.links.latency : builder_.links.bandwidth) = value.real;
      return true;
    }
    if (depth_ == 3) return fail("is a list, not a matrix", place(key_));
    matrix().push_back(value.real);
    ++row_;
    return true;
  }

  std::string_view source_;
  const std::string& where_;
  TaskGraphBuilder builder_;
  std::optional<Error> error_;
  int depth_ = 0;
  Section section_ = Section::other;
  std::string key_;
  std::size_t element_ = 0;
  bool format_seen_ = false, tasks_seen_ = false;
  TaskGraphBuilder::Task task_;
  std::string name_;
  std::int64_t from_ = -1, to_ = -1, bytes_ = -1;
  std::uint32_t tensor_ = 0;
  bool has_from_ = false, has_to_ = false;
  TaskDevice device_;
  std::size_t rows_ = 0, columns_ = 0, row_ = 0;
};

}  // namespace

Expected<TaskGraphPtr> read_native(std::string_view text, const std::string& where) {
  NativeReader reader(text, where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.result();
}

}  // namespace turnpoint::task_graph_import
