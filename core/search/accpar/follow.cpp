// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/follow.h"

#include <algorithm>

namespace turnpoint::accpar {

namespace {

using Loops = std::vector<std::uint8_t>;

/// Whether more than one operand walks a loop: type III cuts between such first.
bool in_several_operands(const Operator& op, std::uint8_t loop) {
  return std::count_if(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
           return std::any_of(access.walks.begin(), access.walks.end(), [&](const auto& walk) {
             return std::find(walk.begin(), walk.end(), loop) != walk.end();
           });
         }) > 1;
}

}  // namespace

const Access* followed_operand(const Model& model, const ModelLayers& layers, OperatorId id) {
  for (const Access& access : model.operators[id].inputs) {
    const OperatorId producer = model.tensors[access.tensor].producer;
    if (producer.valid() && layers.layer_of[producer] != kNoLayer && layers.layer_of[producer] == layers.layer_of[id])
      return &access;
  }
  return nullptr;
}

const Access& output_of(const Model& model, TensorId tensor) {
  const auto& outputs = model.operators[model.tensors[tensor].producer].outputs;
  return *std::find_if(outputs.begin(), outputs.end(), [&](const Access& access) { return access.tensor == tensor; });
}

void restrict_loops(const Operator& op, std::size_t index, ModelLayers& layers, const LoopUnits& units) {
  Layer& layer = layers.graph.layers[index];
  const bool grouped = layer.grouped();
  for (Loops& loops : layers.loops[index]) std::erase_if(loops, [&](std::uint8_t loop) { return units(op, loop) < 2; });
  const auto product = [&](const Loops& loops) {
    double count = 1;
    for (const std::uint8_t loop : loops) count *= static_cast<double>(units(op, loop));
    return count;
  };
  Loops groups, outputs;
  for (const std::uint8_t loop : layers.loops[index][static_cast<std::size_t>(Type::output)])
    (grouped && in_several_operands(op, loop) ? groups : outputs).push_back(loop);
  for (const Type type : kAllTypes)
    layer.lengths[static_cast<std::size_t>(type)] =
        product(type == Type::output ? outputs : layers.loops[index][static_cast<std::size_t>(type)]);
  layer.groups = product(groups);
}

}  // namespace turnpoint::accpar
