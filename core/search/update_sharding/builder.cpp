// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace turnpoint::update_sharding {

namespace {

Instruction plain_instruction(Kind kind, std::vector<ValueId> inputs, std::string name) {
  Instruction instruction;
  instruction.kind = kind;
  instruction.inputs = std::move(inputs);
  instruction.name = std::move(name);
  return instruction;
}

}  // namespace

Builder::Builder(int replicas) {
  program_.replicas = replicas;
  program_.entry = in_ = computation("entry");
}

ComputationId Builder::computation(std::string name) {
  const ComputationId id = program_.computations.next_id();
  program_.computations.push_back({std::move(name), {}, {}, {}});
  return id;
}

std::vector<ValueId> Builder::append(Instruction instruction, const std::vector<Value>& outputs) {
  const InstructionId id = program_.instructions.next_id();
  instruction.computation = in_;
  if (instruction.name.empty())
    instruction.name = to_string(instruction.kind) + std::string(".") + std::to_string(id.index);
  instruction.outputs.clear();
  for (const Value& output : outputs) {
    instruction.outputs.push_back(program_.values.next_id());
    program_.values.push_back(output);
    program_.values.back().producer = id;
    if (output.name.empty()) program_.values.back().name = instruction.name;
  }
  std::vector<ValueId> made_values = instruction.outputs;
  program_.computations[in_].instructions.push_back(id);
  program_.instructions.push_back(std::move(instruction));
  return made_values;
}

ValueId Builder::append_one(Instruction instruction, Shape shape, int element_bytes) {
  return append(std::move(instruction), {Value{{}, std::move(shape), element_bytes, {}}}).front();
}

ValueId Builder::parameter(std::string name, Shape shape, ParameterRole role, bool same_everywhere, int element_bytes) {
  Instruction instruction = plain_instruction(Kind::parameter, {}, std::move(name));
  instruction.role = role;
  instruction.same_everywhere = same_everywhere;
  const ValueId value = append_one(std::move(instruction), std::move(shape), element_bytes);
  program_.computations[in_].parameters.push_back(value);
  return value;
}

ValueId Builder::constant(double literal, Shape shape, int element_bytes) {
  Instruction instruction = plain_instruction(Kind::constant, {}, {});
  instruction.literal = literal;
  return append_one(std::move(instruction), std::move(shape), element_bytes);
}

ValueId Builder::iota(std::int64_t elements) {
  return append_one(plain_instruction(Kind::iota, {}, {}), {elements}, 8);
}

ValueId Builder::source(Kind kind, std::string name, Shape shape, int element_bytes) {
  return append_one(plain_instruction(kind, {}, std::move(name)), std::move(shape), element_bytes);
}

ValueId Builder::apply(Function function, std::vector<ValueId> inputs, std::string name) {
  // The last input has the result's type: of a select the first is a predicate.
  const Value like = value(inputs.back());
  Instruction instruction = plain_instruction(Kind::elementwise, std::move(inputs), std::move(name));
  instruction.function = function;
  return append_one(std::move(instruction), like.shape, like.element_bytes);
}

ValueId Builder::convert(ValueId input, int element_bytes) {
  Instruction instruction = plain_instruction(Kind::elementwise, {input}, {});
  instruction.function = Function::convert;
  return append_one(std::move(instruction), Shape(value(input).shape), element_bytes);
}

ValueId Builder::reduce(ValueId input, std::vector<int> dims, std::string name) {
  Shape kept;
  const Value from = value(input);
  for (int d = 0; d < static_cast<int>(from.shape.size()); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(from.shape[static_cast<std::size_t>(d)]);
  Instruction instruction = plain_instruction(Kind::reduce, {input}, std::move(name));
  instruction.dims = std::move(dims);
  return append_one(std::move(instruction), std::move(kept), from.element_bytes);
}

ValueId Builder::sum(ValueId input, std::string name) {
  std::vector<int> dims(value(input).shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  return reduce(input, std::move(dims), std::move(name));
}

ValueId Builder::broadcast(ValueId input, Shape shape, std::vector<int> dims) {
  Instruction instruction = plain_instruction(Kind::broadcast, {input}, {});
  instruction.dims = std::move(dims);
  return append_one(std::move(instruction), std::move(shape), value(input).element_bytes);
}

ValueId Builder::shaped(Kind kind, ValueId input, Shape shape, std::string name) {
  return append_one(plain_instruction(kind, {input}, std::move(name)), std::move(shape), value(input).element_bytes);
}

ValueId Builder::dynamic_slice(ValueId input, ValueId offset, std::int64_t elements) {
  return append_one(plain_instruction(Kind::dynamic_slice, {input, offset}, {}), {elements},
                    value(input).element_bytes);
}

ValueId Builder::dynamic_update_slice(ValueId input, ValueId update, ValueId offset) {
  const Value like = value(input);
  return append_one(plain_instruction(Kind::dynamic_update_slice, {input, update, offset}, {}), like.shape,
                    like.element_bytes);
}

ValueId Builder::collective(Kind kind, ValueId input, ReplicaGroups groups, Shape shape, std::string name) {
  Instruction instruction = plain_instruction(kind, {input}, std::move(name));
  instruction.groups = std::move(groups);
  return append_one(std::move(instruction), std::move(shape), value(input).element_bytes);
}

ValueId Builder::all_reduce(ValueId input, ReplicaGroups groups, std::string name) {
  return collective(Kind::all_reduce, input, std::move(groups), Shape(value(input).shape), std::move(name));
}

std::vector<ValueId> Builder::operation(Kind kind, std::vector<ValueId> inputs, std::vector<Shape> shapes,
                                        std::string name) {
  std::vector<Value> outputs;
  for (Shape& shape : shapes) outputs.push_back({{}, std::move(shape), 4, {}});
  return append(plain_instruction(kind, std::move(inputs), std::move(name)), outputs);
}

ValueId Builder::dot(ValueId a, ValueId b, std::string name) {
  return operation(Kind::dot, {a, b}, {{value(a).shape[0], value(b).shape[1]}}, std::move(name)).front();
}

std::vector<ValueId> Builder::conditional(ValueId predicate, std::vector<ValueId> arguments, ComputationId taken,
                                          ComputationId otherwise, std::string name) {
  arguments.insert(arguments.begin(), predicate);
  Instruction instruction = plain_instruction(Kind::conditional, std::move(arguments), std::move(name));
  instruction.called = {taken, otherwise};
  std::vector<Value> outputs;
  for (const ValueId result : program_.computations[taken].results) outputs.push_back(value(result));
  return append(std::move(instruction), outputs);
}

std::vector<ValueId> Builder::loop(std::vector<ValueId> carried, ComputationId body, ComputationId condition,
                                   std::string name) {
  std::vector<Value> outputs;
  for (const ValueId input : carried) outputs.push_back(value(input));
  Instruction instruction = plain_instruction(Kind::loop, std::move(carried), std::move(name));
  instruction.called = {body, condition};
  return append(std::move(instruction), outputs);
}

void Builder::output(std::vector<ValueId> inputs, std::string name) {
  append(plain_instruction(Kind::output, std::move(inputs), std::move(name)), {});
}

}  // namespace turnpoint::update_sharding
