// SPDX-License-Identifier: Apache-2.0
#include "core/model/model_json.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::string_view kRoles[] = {"parallel", "reduction", "window"};
constexpr std::string_view kTypes[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "boolean"};
constexpr std::string_view kTensorRoles[] = {"input", "parameter", "buffer", "constant", "activation", "internal"};
constexpr int kDimNames = static_cast<int>(DimName::other) + 1;

constexpr std::size_t kMostEntries = 1'000'000, kMostDims = 64, kMostAccesses = 4096;
constexpr std::int64_t kMostElements = std::int64_t(1) << 60;

template <class Enum, std::size_t N>
std::string_view name_of(const std::string_view (&names)[N], Enum value) {
  return names[static_cast<std::size_t>(value)];
}

json write_id(std::uint32_t index, bool valid) { return valid ? json(index) : json(-1); }

json write_accesses(const std::vector<Access>& accesses) {
  json list = json::array();
  for (const auto& access : accesses)
    list.push_back({{"tensor", access.tensor.index}, {"walks", access.walks}, {"saved", access.saved}});
  return list;
}

json write_operator(const Operator& op) {
  json dims = json::array();
  for (const auto& dim : op.dims)
    dims.push_back({{"name", to_string(dim.name)},
                    {"role", name_of(kRoles, dim.role)},
                    {"size", dim.size},
                    {"splittable", dim.splittable}});
  json object = {{"name", op.name},
                 {"kind", record_of(op.kind).name},
                 {"detail", op.detail},
                 {"scope", op.scope},
                 {"dims", std::move(dims)},
                 {"inputs", write_accesses(op.inputs)},
                 {"outputs", write_accesses(op.outputs)},
                 {"forward_flop", op.forward_flop},
                 {"backward_flop", op.backward_flop},
                 {"forward_macs", op.forward_macs},
                 {"backward_macs", op.backward_macs},
                 {"forward_passes", op.forward_passes},
                 {"backward_passes", op.backward_passes}};
  if (op.causal) object["causal"] = true;
  if (op.rotates) object["rotates"] = true;
  if (op.parts) {
    object["parts"] = write_model(*op.parts);
    object["part_loops"] = op.part_loops;
  }
  return object;
}

json write_tensor(const Tensor& tensor) {
  json dims = json::array();
  for (const auto name : tensor.dims) dims.push_back(to_string(name));
  return {{"name", tensor.name},
          {"shape", tensor.shape},
          {"dims", std::move(dims)},
          {"type", name_of(kTypes, tensor.type)},
          {"role", name_of(kTensorRoles, tensor.role)},
          {"producer", write_id(tensor.producer.index, tensor.producer.valid())},
          {"tied_to", write_id(tensor.tied_to.index, tensor.tied_to.valid())},
          {"requires_gradient", tensor.requires_gradient}};
}

class Reader {
 public:
  explicit Reader(JsonFields& fields, bool of_parts = false) : fields_(fields), of_parts_(of_parts) {}

  ModelPtr read() {
    auto model = std::make_shared<Model>();
    model->name = fields_.text("name", "");
    model->source = fields_.text("source", "");
    model->batch = fields_.integer("batch", 1, kMostElements);
    model->sequence = fields_.integer("sequence", 0, kMostElements, 0);
    fields_.each("tensors", [&](JsonFields& one, std::size_t index) {
      if (index < kMostEntries) return model->tensors.push_back(read_tensor(one));
      one.fail("name", "more than a million tensors");
    });
    tensors_ = model->tensors.size();
    fields_.each("operators", [&](JsonFields& one, std::size_t index) {
      if (index < kMostEntries) return model->operators.push_back(read_operator(one, *model));
      one.fail("name", "more than a million operators");
    });
    for (const auto& tensor : model->tensors) check_ids(tensor, *model);
    for (const auto id : integers("results", 0, static_cast<std::int64_t>(tensors_) - 1, kMostEntries))
      model->results.emplace_back(static_cast<std::size_t>(id));
    model->symbolic_dimensions = texts("symbolic_dimensions");
    model->warnings = texts("warnings");
    model->parameters = fields_.integer("parameters", 0, kMostElements, 0);
    model->buffers = fields_.integer("buffers", 0, kMostElements, 0);
    model->active_parameters = fields_.integer("active_parameters", 0, kMostElements, 0);
    if (fields_.error()) return nullptr;
    model->fill_uses();
    return model;
  }

 private:
  static std::vector<std::int64_t> integers(JsonFields& fields, const char* key, std::int64_t least, std::int64_t most,
                                            std::size_t count) {
    std::vector<std::int64_t> list;
    const auto found = fields.json().find(key);
    if (found == fields.json().end() || !found->is_array() || found->size() > count) {
      fields.fail(key, fmt::format("must be a list of at most {} whole numbers", count));
      return list;
    }
    for (const auto& value : *found) {
      const bool whole = value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() >> 63);
      if (!whole || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
        fields.fail(key, fmt::format("holds a number outside {} to {}", least, most));
        return list;
      }
      list.push_back(value.get<std::int64_t>());
    }
    return list;
  }
  std::vector<std::int64_t> integers(const char* key, std::int64_t least, std::int64_t most, std::size_t count) {
    return integers(fields_, key, least, most, count);
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> list;
    const auto found = fields_.json().find(key);
    if (found != fields_.json().end() && found->is_array())
      for (const auto& text : *found)
        if (text.is_string()) list.push_back(text.get<std::string>());
    return list;
  }
  template <class Enum, std::size_t N>
  static Enum named(JsonFields& fields, const char* key, const std::string_view (&names)[N]) {
    const std::string text = fields.text(key);
    const auto at = std::find(std::begin(names), std::end(names), text);
    if (at != std::end(names)) return static_cast<Enum>(at - std::begin(names));
    fields.fail(key, fmt::format("'{}' is not known", text));
    return Enum{};
  }
  static DimName dim_named(JsonFields& fields, const char* key, const std::string& text) {
    for (int i = 0; i < kDimNames; ++i)
      if (to_string(static_cast<DimName>(i)) == text) return static_cast<DimName>(i);
    fields.fail(key, fmt::format("'{}' is no dimension", text));
    return DimName::other;
  }

  static Tensor read_tensor(JsonFields& fields) {
    Tensor tensor;
    tensor.name = fields.text("name", "");
    tensor.shape = integers(fields, "shape", 1, kMostElements, kMostDims);
    double elements = 1;
    for (const auto size : tensor.shape) elements *= static_cast<double>(size);
    if (elements > static_cast<double>(kMostElements)) fields.fail("shape", "has more than 2^60 elements");
    const auto dims = fields.json().find("dims");
    if (dims == fields.json().end() || !dims->is_array() || dims->size() != tensor.shape.size())
      fields.fail("dims", "must name every dimension");
    else
      for (const auto& name : *dims)
        tensor.dims.push_back(dim_named(fields, "dims", name.is_string() ? name.get<std::string>() : ""));
    tensor.type = named<ElementType>(fields, "type", kTypes);
    tensor.role = named<TensorRole>(fields, "role", kTensorRoles);
    const auto id = [&](const char* key) { return fields.integer(key, -1, kMostEntries); };
    if (const auto producer = id("producer"); producer >= 0)
      tensor.producer = OperatorId(static_cast<std::size_t>(producer));
    if (const auto tied = id("tied_to"); tied >= 0) tensor.tied_to = TensorId(static_cast<std::size_t>(tied));
    tensor.requires_gradient = fields.flag("requires_gradient", true);
    return tensor;
  }

  std::vector<Access> read_accesses(JsonFields& fields, const char* key, const Model& model, std::size_t loops) {
    std::vector<Access> list;
    fields.each(key, [&](JsonFields& one, std::size_t index) {
      if (index >= kMostAccesses) return one.fail("tensor", fmt::format("more than {} of them", kMostAccesses));
      Access access;
      const auto id = one.integer("tensor", 0, static_cast<std::int64_t>(tensors_) - 1);
      if (one.error()) return;
      access.tensor = TensorId(static_cast<std::size_t>(id));
      const auto walks = one.json().find("walks");
      const std::size_t rank = model.tensors[access.tensor].shape.size();
      if (walks == one.json().end() || !walks->is_array() || walks->size() != rank)
        return one.fail("walks", "must say for every dimension which loops it walks");
      for (const auto& dim : *walks) {
        auto& walked = access.walks.emplace_back();
        if (!dim.is_array() || dim.size() > kMostDims) return one.fail("walks", "must be lists of loops");
        for (const auto& loop : dim) {
          if (!loop.is_number_unsigned() || loop.get<std::uint64_t>() >= loops)
            return one.fail("walks", "names a loop that the operator does not have");
          walked.push_back(loop.get<std::uint8_t>());
        }
      }
      access.saved = one.flag("saved", false);
      list.push_back(std::move(access));
    });
    return list;
  }

  Operator read_operator(JsonFields& fields, const Model& model) {
    Operator op;
    op.name = fields.text("name", "");
    const std::string kind = fields.text("kind");
    if (const auto known = operator_kind(kind))
      op.kind = *known;
    else
      fields.fail("kind", fmt::format("'{}' is not known", kind));
    op.detail = fields.text("detail", "");
    op.scope = fields.text("scope", "");
    fields.each("dims", [&](JsonFields& one, std::size_t index) {
      if (index >= kMostDims) return one.fail("name", fmt::format("more than {} loops", kMostDims));
      LoopDimension dim;
      dim.name = dim_named(one, "name", one.text("name"));
      dim.role = named<DimRole>(one, "role", kRoles);
      dim.size = one.integer("size", 1, kMostElements);
      dim.splittable = one.flag("splittable", true);
      op.dims.push_back(dim);
    });
    op.inputs = read_accesses(fields, "inputs", model, op.dims.size());
    op.outputs = read_accesses(fields, "outputs", model, op.dims.size());
    if (op.outputs.empty()) fields.fail("outputs", "names no tensor");
    constexpr double kMost = 1e30;
    op.forward_flop = fields.number("forward_flop", 0, kMost, 0);
    op.backward_flop = fields.number("backward_flop", 0, kMost, 0);
    op.forward_macs = fields.number("forward_macs", 0, kMost, 0);
    op.backward_macs = fields.number("backward_macs", 0, kMost, 0);
    op.forward_passes = fields.number("forward_passes", 0, kMost, 1);
    op.backward_passes = fields.number("backward_passes", 0, kMost, 1);
    op.causal = fields.flag("causal", false);
    op.rotates = fields.flag("rotates", false);
    if (op.kind == OperatorKind::attention) read_parts(fields, op);
    return op;
  }

  // What an operator stands for is one level deep.
  void read_parts(JsonFields& fields, Operator& op) {
    if (of_parts_) return fields.fail("kind", "an attention cannot be a part of another");
    JsonFields object = fields.object("parts");
    if (fields.error()) return;
    op.parts = Reader(object, true).read();
    if (!op.parts) return;
    const auto& parts = *op.parts;
    if (parts.operators.empty() || parts.tensors.size() < op.inputs.size())
      return fields.fail("parts", "must be operators and, first of all, the tensors that they read");
    const auto found = fields.json().find("part_loops");
    if (found == fields.json().end() || !found->is_array() || found->size() != parts.operators.size())
      return fields.fail("part_loops", "must be a list for every part");
    for (const auto& list : *found) {
      const std::size_t count = parts.operators[OperatorId(op.part_loops.size())].dims.size();
      if (!list.is_array() || list.size() != count) return fields.fail("part_loops", "must name a loop for every loop");
      auto& loops = op.part_loops.emplace_back();
      for (const auto& loop : list) {
        if (!loop.is_number_unsigned() || loop.get<std::uint64_t>() >= op.dims.size())
          return fields.fail("part_loops", "names a loop that the operator does not have");
        loops.push_back(loop.get<std::uint8_t>());
      }
    }
  }

  void check_ids(const Tensor& tensor, const Model& model) {
    if (tensor.producer.valid() && tensor.producer.index >= model.operators.size())
      fields_.fail("tensors", fmt::format("'{}' is produced by an operator that is not there", tensor.name));
    if (tensor.tied_to.valid() && tensor.tied_to.index >= model.tensors.size())
      fields_.fail("tensors", fmt::format("'{}' is tied to a tensor that is not there", tensor.name));
  }

  JsonFields& fields_;
  bool of_parts_;
  std::size_t tensors_ = 0;
};

}  // namespace

nlohmann::json write_model(const Model& model) {
  json operators = json::array(), tensors = json::array(), results = json::array();
  for (const auto& op : model.operators) operators.push_back(write_operator(op));
  for (const auto& tensor : model.tensors) tensors.push_back(write_tensor(tensor));
  for (const auto id : model.results) results.push_back(id.index);
  return {{"name", model.name},
          {"source", model.source},
          {"batch", model.batch},
          {"sequence", model.sequence},
          {"operators", std::move(operators)},
          {"tensors", std::move(tensors)},
          {"results", std::move(results)},
          {"symbolic_dimensions", model.symbolic_dimensions},
          {"warnings", model.warnings},
          {"parameters", model.parameters},
          {"buffers", model.buffers},
          {"active_parameters", model.active_parameters}};
}

ModelPtr read_model(JsonFields fields) { return Reader(fields).read(); }

}  // namespace turnpoint
