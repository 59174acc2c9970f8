// SPDX-License-Identifier: Apache-2.0
#include "core/import/torch/program.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace turnpoint::torch_program {

namespace {

using nlohmann::json;

const json& at(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

/// ScalarType of the schema.
DataType type_of(const json& number) {
  static constexpr DataType kTypes[] = {DataType::invalid, DataType::u8,      DataType::i8,        DataType::i16,
                                        DataType::i32,     DataType::i64,     DataType::f16,       DataType::f32,
                                        DataType::f64,     DataType::invalid, DataType::complex64, DataType::complex128,
                                        DataType::boolean, DataType::bf16};
  constexpr std::int64_t kUnsigned16 = 28;
  if (!number.is_number_integer()) return DataType::invalid;
  const auto code = number.get<std::int64_t>();
  if (code == kUnsigned16) return DataType::u16;
  return code >= 0 && code < std::int64_t(std::size(kTypes)) ? kTypes[code] : DataType::invalid;
}

/// "Symbol('s77', positive=True, integer=True)", or "s77" of older writers; nothing of any other expression.
std::string symbol_of(std::string_view text) {
  constexpr std::string_view kBegin = "Symbol('";
  if (text.starts_with(kBegin)) {
    text.remove_prefix(kBegin.size());
    const auto end = text.find('\'');
    if (end == text.npos || text.find("Symbol('", end) != text.npos) return {};
    return std::string(text.substr(0, end));
  }
  const bool word = !text.empty() && text.size() < 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  return word ? std::string(text) : std::string();
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Expected<Program> read(const json& document) {
    const json& module = at(document, "graph_module");
    const json& signature = at(module, "signature");
    if (!at(module, "graph").is_object() || !at(signature, "input_specs").is_array())
      return bad_input("holds no graph with a signature, as torch.export.save writes them", file_);
    Program program;
    program.graph = graph(at(module, "graph"), 0);
    for (const json& spec : at(signature, "input_specs")) input_spec(spec, program);
    for (const json& spec : at(signature, "output_specs"))
      for (const char* key : {"user_output", "loss_output"})
        add_names(at(at(spec, key), "arg"), program.results);
    if (error_) return *error_;
    if (program.results.empty()) return bad_input("computes no result", file_);
    return program;
  }

 private:
  void fail(std::string what, const std::string& place = {}) {
    if (!error_) error_ = bad_input(std::move(what), place.empty() ? file_ : file_ + ": node '" + place + "'");
  }

  /// Names of tensors in an argument.
  void add_names(const json& argument, std::vector<std::string>& names) {
    if (const json& one = at(argument, "as_tensor"); one.is_object()) names.push_back(text_of(at(one, "name")));
    for (const char* list : {"as_tensors", "as_nested_tensors"})
      for (const json& one : at(argument, list)) names.push_back(text_of(at(one, "name")));
    for (const json& one : at(argument, "as_optional_tensors"))
      names.push_back(text_of(at(at(one, "as_tensor"), "name")));
    if (const json& number = at(argument, "as_sym_int"); number.is_object())
      names.push_back(text_of(at(number, "as_name")));
  }

  void input_spec(const json& spec, Program& program) {
    if (const json& own = at(spec, "parameter"); own.is_object())
      program.parameters[text_of(at(at(own, "arg"), "name"))] = text_of(at(own, "parameter_name"));
    for (const char* kind : {"buffer", "tensor_constant"})
      if (const json& own = at(spec, kind); own.is_object()) {
        const json& path = at(own, kind == std::string_view("buffer") ? "buffer_name" : "tensor_constant_name");
        program.buffers[text_of(at(at(own, "arg"), "name"))] = text_of(path);
      }
    add_names(at(at(spec, "user_input"), "arg"), program.data);
  }

  Number whole(const json& value, const std::string& place) {
    if (value.is_number_integer()) return {value.get<std::int64_t>(), {}};
    if (const json& own = at(value, "as_int"); own.is_number_integer()) return {own.get<std::int64_t>(), {}};
    const std::string name = text_of(at(value, "as_name"));
    if (name.empty()) fail("holds a number that is none", place);
    return {0, name};
  }

  Argument argument(const json& value, const std::string& place, int depth) {
    using Kind = Argument::Kind;
    Argument made;
    if (!value.is_object() || value.size() != 1) return made;
    const std::string key = value.begin().key();
    const json& held = *value.begin();
    if (key == "as_tensor" || key == "as_tensors" || key == "as_optional_tensors") {
      made.kind = key == "as_tensor" ? Kind::tensor : Kind::tensors;
      add_names(value, made.tensors);
      if (made.kind == Kind::tensor && made.tensors.empty()) fail("has a tensor without a name", place);
    } else if (key == "as_int" || key == "as_sym_int") {
      made.kind = Kind::integers;
      made.integers.push_back(whole(held, place));
    } else if (key == "as_ints" || key == "as_sym_ints") {
      made.kind = Kind::integers;
      made.list = true;
      for (const json& one : held) made.integers.push_back(whole(one, place));
    } else if (key == "as_float" && held.is_number()) {
      made.kind = Kind::reals;
      made.reals.push_back(held.get<double>());
    } else if (key == "as_floats") {
      made.kind = Kind::reals;
      made.list = true;
      for (const json& one : held) made.reals.push_back(one.is_number() ? one.get<double>() : 0);
    } else if (key == "as_float" || key == "as_sym_float") {
      made.kind = Kind::reals;  // "Infinity", "NaN" and what is computed: no count hangs on it
      made.reals.push_back(0);
    } else if (key == "as_bool" && held.is_boolean()) {
      made.kind = Kind::flag;
      made.flag = held.get<bool>();
    } else if (key == "as_string") {
      made.kind = Kind::text;
      made.text = text_of(held);
    } else if (key == "as_scalar_type") {
      made.kind = Kind::type;
      made.type = type_of(held);
    } else if (key == "as_graph") {
      made.kind = Kind::graph;
      made.graph = std::make_shared<const Graph>(graph(at(held, "graph"), depth + 1));
    } else if (key != "as_none") {
      made.kind = Kind::other;
    }
    return made;
  }

  TensorMeta meta(const json& value, const std::string& name) {
    constexpr std::size_t kMostDims = 32;
    TensorMeta made;
    made.type = type_of(at(value, "dtype"));
    if (at(value, "sizes").size() > kMostDims) fail("tensor '" + name + "' has too many dimensions");
    for (const json& size : at(value, "sizes")) {
      Size own;
      if (const json& known = at(size, "as_int"); known.is_number_integer()) {
        own.value = known.get<std::int64_t>();
        if (own.value < 0 || own.value > kLargestSize) fail("tensor '" + name + "' has an impossible dimension");
      } else {
        own.symbol = symbol_of(text_of(at(at(size, "as_expr"), "expr_str")));
      }
      made.sizes.push_back(std::move(own));
    }
    return made;
  }

  /// "key,path,type;key,path,type": the path of the innermost module, its dots as slashes.
  static std::string scope_of(const std::string& stack) {
    const auto last = stack.find_last_of(';');
    std::string entry = last == stack.npos ? stack : stack.substr(last + 1);
    const auto comma = entry.find(',');
    if (comma == entry.npos) return {};
    entry = entry.substr(comma + 1, entry.find(',', comma + 1) - comma - 1);
    if (entry.find_first_of("[]'\" ") != entry.npos || entry.starts_with("_empty_nn_module")) return {};
    std::replace(entry.begin(), entry.end(), '.', '/');
    return entry;
  }

  Graph graph(const json& value, int depth) {
    constexpr int kDeepest = 8;
    Graph made;
    if (depth > kDeepest) return fail("holds graphs inside graphs too deep"), made;
    for (const json& input : at(value, "inputs")) add_names(input, made.inputs);
    for (const json& output : at(value, "outputs")) add_names(output, made.outputs);
    if (at(value, "tensor_values").is_object())
      for (const auto& [name, tensor] : at(value, "tensor_values").items()) made.tensors.emplace(name, meta(tensor, name));
    for (const json& node : at(value, "nodes")) {
      if (error_) break;
      Node own;
      own.target = text_of(at(node, "target"));
      for (const std::string_view begin : {"torch.ops.", "#"})
        if (own.target.starts_with(begin)) own.target.erase(0, begin.size());
      for (const json& output : at(node, "outputs")) add_names(output, own.outputs);
      own.name = text_of(at(node, "name"));
      if (own.name.empty() && !own.outputs.empty()) own.name = own.outputs.front();
      own.scope = scope_of(text_of(at(at(node, "metadata"), "nn_module_stack")));
      for (const json& input : at(node, "inputs"))
        own.inputs.emplace_back(text_of(at(input, "name")), argument(at(input, "arg"), own.name, depth));
      made.nodes.push_back(std::move(own));
    }
    return made;
  }

  const std::string& file_;
  std::optional<Error> error_;
};

}  // namespace

Expected<Program> parse_program(std::string_view text, const std::string& file) {
  const auto document = parse_json(text, file);
  if (!document) return document.error();
  return Reader(file).read(*document);
}

}  // namespace turnpoint::torch_program
