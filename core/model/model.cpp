// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.h"

#include <algorithm>

namespace turnpoint {

std::string_view to_string(DimName name) {
  static constexpr std::string_view kNames[] = {
      "batch",      "sequence",    "key-sequence", "depth",        "height",     "width",  "window", "group", "channel",
      "in-channel", "out-channel", "head",         "head-channel", "vocabulary", "expert", "time",   "gate",  "other"};
  return kNames[static_cast<std::size_t>(name)];
}

int size_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::i64: return 8;
    case ElementType::f32:
    case ElementType::i32: return 4;
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::i16: return 2;
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean: return 1;
  }
  return 4;
}

bool is_floating(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const auto size : shape) product *= size;
  return product;
}

TensorId storage_of(const Model& model, TensorId tensor) {
  for (;;) {
    const auto producer = model.tensors[tensor].producer;
    if (!producer.valid() || !model.operators[producer].is_view()) return tensor;
    tensor = model.operators[producer].inputs.front().tensor;
  }
}

void Model::fill_uses() {
  uses.assign(tensors.size(), {});
  for (std::size_t o = 0; o < operators.size(); ++o) {
    const auto& inputs = operators[OperatorId(o)].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      uses[inputs[i].tensor].push_back({OperatorId(o), static_cast<std::uint32_t>(i)});
  }
}

ModelSummary summarise(const Model& model) {
  ModelSummary summary;
  summary.operators = static_cast<std::int64_t>(model.operators.size());
  summary.parameters = model.parameters;
  summary.buffers = model.buffers;
  summary.active_parameters = model.active_parameters;
  summary.parameter_bytes = model.parameters * size_of(ElementType::f32);
  std::vector<bool> counted(model.tensors.size(), false);
  const auto count = [&](const Access& access) {
    if (!access.saved) return;
    const auto id = storage_of(model, access.tensor);
    const auto& tensor = model.tensors[id];
    const bool occupies = tensor.role == TensorRole::activation || tensor.role == TensorRole::internal ||
                          tensor.role == TensorRole::input;
    if (!occupies || counted[id.index]) return;
    counted[id.index] = true;
    const int bytes = is_floating(tensor.type) ? size_of(ElementType::f32) : size_of(tensor.type);
    summary.activation_bytes += tensor.elements() * bytes;
  };
  for (const auto& op : model.operators) {
    summary.macs_forward += op.forward_macs;
    summary.macs_backward += op.backward_macs;
    std::for_each(op.inputs.begin(), op.inputs.end(), count);
    std::for_each(op.outputs.begin(), op.outputs.end(), count);
  }
  return summary;
}

}  // namespace turnpoint
