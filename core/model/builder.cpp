// SPDX-License-Identifier: Apache-2.0
#include "core/model/builder.h"

#include "core/model/builder_detail.h"
#include "core/model/fold_views.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

/// Meaning of the dimensions of a tensor when nobody says: batch first, channel last.
Dims default_dims(std::size_t rank) {
  Dims dims(rank, DimName::other);
  if (rank >= 1) dims[0] = DimName::batch;
  if (rank == 2 || rank == 3) dims[rank - 1] = DimName::channel;
  if (rank == 3) dims[1] = DimName::sequence;
  if (rank == 4) dims = {DimName::batch, DimName::channel, DimName::height, DimName::width};
  return dims;
}

}  // namespace

ModelBuilder::ModelBuilder(std::string name, std::string source, std::int64_t batch, std::int64_t sequence) {
  model_.name = std::move(name);
  model_.source = std::move(source);
  model_.batch = batch;
  model_.sequence = sequence;
}

std::string ModelBuilder::unique_name(std::string name) {
  if (name.empty()) name = "unnamed";
  if (used_names_.insert(name).second) return name;
  for (auto& suffix = next_suffix_[name];;) {
    std::string candidate = name + "_" + std::to_string(++suffix);
    if (used_names_.insert(candidate).second) return candidate;
  }
}

void ModelBuilder::fail(const std::string& op, std::string what) {
  if (!error_) error_ = bad_input(std::move(what), model_.source + ": node '" + op + "'");
}

TensorId ModelBuilder::broken(const std::string& op, std::string what) {
  fail(op, std::move(what));
  return add_tensor({op, {}, {}, ElementType::f32, TensorRole::constant, {}, {}, false});
}

bool ModelBuilder::check_shape(const std::string& op, const Shape& shape) {
  if (shape.size() > 32)
    return fail(op, "a tensor of " + std::to_string(shape.size()) + " dimensions is not supported"), false;
  std::int64_t elements = 1;
  for (const auto size : shape) {
    if (size < 1) return fail(op, "a tensor dimension has size " + std::to_string(size)), false;
    if (size > kMaxElements / elements) return fail(op, "a tensor has more than 2^60 elements"), false;
    elements *= size;
  }
  return true;
}

bool ModelBuilder::usable(const std::string& op, std::initializer_list<TensorId> operands) {
  for (const auto id : operands) {
    if (!id.valid() || id.index >= model_.tensors.size()) return fail(op, "an operand is missing"), false;
  }
  return true;
}

TensorId ModelBuilder::add_tensor(Tensor tensor) {
  if (!check_shape(tensor.name, tensor.shape)) tensor.shape.clear();
  tensor.dims.resize(tensor.shape.size(), DimName::other);
  model_.tensors.push_back(std::move(tensor));
  return TensorId(model_.tensors.size() - 1);
}

TensorId ModelBuilder::input(std::string name, Shape shape, Dims dims, ElementType type) {
  if (dims.size() != shape.size()) dims = default_dims(shape.size());
  auto op = start(std::move(name), OperatorKind::input, "Input");
  Walks walks(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (dims[i] == DimName::batch && shape[i] > 1 && op.dims.empty())
      walks[i] = {add(op.dims, parallel_dim(dims[i], shape[i]))};
  }
  op.outputs.push_back({{}, std::move(walks), false});
  const auto id = add_operator(std::move(op), std::move(shape), std::move(dims), type);
  model_.tensors[id].role = TensorRole::input;
  return id;
}

TensorId ModelBuilder::parameter(std::string name, Shape shape, Dims dims) {
  return add_tensor({unique_name(std::move(name)),
                     std::move(shape),
                     std::move(dims),
                     ElementType::f32,
                     TensorRole::parameter,
                     {},
                     {},
                     true});
}

TensorId ModelBuilder::tied_parameter(std::string name, TensorId original, Shape shape, Dims dims) {
  const auto id = parameter(std::move(name), std::move(shape), std::move(dims));
  if (!usable(tensor(id).name, {original})) return id;
  if (tensor(id).elements() != tensor(original).elements())
    fail(tensor(id).name, "a tied parameter has another number of elements than its original");
  model_.tensors[id].tied_to = tensor(original).tied_to.valid() ? tensor(original).tied_to : original;
  return id;
}

TensorId ModelBuilder::buffer(std::string name, Shape shape) {
  return add_tensor(
      {unique_name(std::move(name)), std::move(shape), {}, ElementType::f32, TensorRole::buffer, {}, {}, false});
}

TensorId ModelBuilder::constant(std::string name, Shape shape, ElementType type) {
  return add_tensor({unique_name(std::move(name)), std::move(shape), {}, type, TensorRole::constant, {}, {}, false});
}

Operator ModelBuilder::start(std::string name, OperatorKind kind, std::string detail) const {
  Operator op;
  op.name = std::move(name);
  op.kind = kind;
  op.detail = std::move(detail);
  op.scope = scope_;
  return op;
}

TensorId ModelBuilder::add_operator(Operator op, Shape shape, Dims dims, ElementType type, const BackwardWork& work) {
  const OperatorId id(model_.operators.size());
  op.name = unique_name(std::move(op.name));
  if (op.dims.size() > kMaxDims) fail(op.name, "more than 64 loop dimensions");
  bool gradient = false;
  for (auto& access : op.inputs) {
    auto& tensor = model_.tensors[access.tensor];
    gradient = gradient || tensor.requires_gradient;
    if (tensor.role != TensorRole::parameter && tensor.role != TensorRole::buffer) continue;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      if (tensor.dims[d] == DimName::other && !access.walks[d].empty())
        tensor.dims[d] = op.dims[access.walks[d].front()].name;
    }
  }
  gradient = gradient && is_floating(type);
  // Only the outermost part of a merged dimension can be cut without moving data.
  const auto restrict_inner = [&](const Access& access) {
    for (const auto& walk : access.walks) {
      for (std::size_t k = 1; k < walk.size(); ++k) op.dims[walk[k]].splittable = false;
    }
  };
  for (const auto& access : op.inputs) restrict_inner(access);
  for (const auto& access : op.outputs) restrict_inner(access);

  const auto tensor =
      add_tensor({op.name, std::move(shape), std::move(dims), type, TensorRole::activation, id, {}, gradient});
  assert(op.outputs.size() == 1);
  op.outputs.front().tensor = tensor;
  op.outputs.front().walks.resize(model_.tensors[tensor].shape.size());
  if (gradient) {
    op.backward_flop = work.base_flop;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!model_.tensors[op.inputs[i].tensor].requires_gradient) continue;
      if (i < work.input_flop.size()) op.backward_flop += work.input_flop[i];
      if (i < work.input_macs.size()) op.backward_macs += work.input_macs[i];
    }
  } else {
    for (auto& access : op.inputs) access.saved = false;
    for (auto& access : op.outputs) access.saved = false;
  }
  model_.operators.push_back(std::move(op));
  return tensor;
}

TensorId ModelBuilder::add_output(OperatorId op, std::string name, Shape shape, Dims dims, ElementType type,
                                  TensorRole role, Walks walks, bool saved) {
  auto& target = model_.operators[op];
  const bool trained = tensor(target.outputs.front().tensor).requires_gradient;
  const bool gradient = trained && is_floating(type);
  const auto id =
      add_tensor({unique_name(std::move(name)), std::move(shape), std::move(dims), type, role, op, {}, gradient});
  walks.resize(tensor(id).shape.size());
  target.outputs.push_back({id, std::move(walks), saved && trained});
  return id;
}

void ModelBuilder::rename_dims(TensorId id, Dims dims) {
  auto& tensor = model_.tensors[id];
  if (dims.size() != tensor.dims.size()) return fail(tensor.name, "rename_dims with another number of dimensions");
  tensor.dims = dims;
  if (!tensor.producer.valid()) return;
  auto& op = model_.operators[tensor.producer];
  for (const auto& access : op.outputs) {
    if (access.tensor != id) continue;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (access.walks[d].size() != 1) continue;
      auto& loop = op.dims[access.walks[d].front()];
      if (dims[d] == DimName::channel && loop.name == DimName::out_channel) continue;
      if (loop.role != DimRole::reduction) loop.name = dims[d];
    }
  }
}

void ModelBuilder::mark_key_sequence(TensorId x, int axis) {
  struct Step {
    TensorId tensor;
    std::size_t dim, previous;
  };
  std::vector<Step> steps{{x, static_cast<std::size_t>(axis), 0}};
  constexpr std::size_t kMaxSteps = 256;  // scores are a few elementwise steps away from their product
  for (std::size_t s = 0; s < steps.size() && steps.size() < kMaxSteps; ++s) {
    const auto producer = tensor(steps[s].tensor).producer;
    if (!producer.valid()) continue;
    const auto& op = model_.operators[producer];
    if (op.outputs.front().tensor != steps[s].tensor) continue;
    const auto walk = op.outputs.front().walks[steps[s].dim];
    if (walk.size() != 1) continue;
    if (op.kind == OperatorKind::matmul) {
      const bool product_of_activations = !is_parameter(storage_of(model_, op.inputs[0].tensor)) &&
                                          !is_parameter(storage_of(model_, op.inputs[1].tensor));
      const bool from_second =
          std::any_of(op.inputs[1].walks.begin(), op.inputs[1].walks.end(), [&](const auto& w) { return w == walk; });
      const bool from_first =
          std::any_of(op.inputs[0].walks.begin(), op.inputs[0].walks.end(), [&](const auto& w) { return w == walk; });
      if (!product_of_activations || from_first == from_second) continue;
      for (std::size_t at = s;; at = steps[at].previous) {
        auto& marked = model_.tensors[steps[at].tensor];
        marked.dims[steps[at].dim] = DimName::key_sequence;
        auto& maker = model_.operators[marked.producer];
        auto& loop = maker.dims[maker.outputs.front().walks[steps[at].dim].front()];
        loop.name = DimName::key_sequence;
        loop.splittable = false;
        if (at == 0) return;
      }
    }
    if (op.kind != OperatorKind::elementwise && op.kind != OperatorKind::view) continue;
    for (const auto& access : op.inputs) {
      if (!tensor(access.tensor).requires_gradient && op.inputs.size() > 1) continue;
      for (std::size_t d = 0; d < access.walks.size(); ++d) {
        if (access.walks[d] == walk) steps.push_back({access.tensor, d, s});
      }
    }
  }
}

Expected<ModelPtr> ModelBuilder::finish(std::vector<TensorId> results, bool fold_chains) {
  if (error_) return *error_;
  for (const auto id : results) {
    if (!usable(model_.name, {id})) return *error_;
  }
  if (fold_chains) fold_views(model_, results);
  model_.results = std::move(results);
  model_.fill_uses();
  model_.parameters = model_.buffers = 0;
  for (const auto& tensor : model_.tensors) {
    auto* sum = tensor.role == TensorRole::parameter && !tensor.tied_to.valid() ? &model_.parameters
                : tensor.role == TensorRole::buffer                             ? &model_.buffers
                                                                                : nullptr;
    if (!sum) continue;
    if (*sum > kMaxElements - tensor.elements())
      return bad_input("the model has more than 2^60 parameters", model_.source);
    *sum += tensor.elements();
  }
  // What a plan holds is counted in whole bytes: weights, gradients and the optimizer's state, activations with whoever
  // keeps them. Some 16 bytes for each element and each operator that takes it must stay far inside 64 bits.
  double elements = 0;
  for (std::size_t t = 0; t < model_.tensors.size(); ++t)
    elements += double(model_.tensors[TensorId(t)].elements()) * double(1 + model_.uses[TensorId(t)].size());
  if (elements > double(kMaxElements / 8))
    return bad_input("the tensors that the operators take and make have more than 2^57 elements", model_.source);
  if (model_.active_parameters == 0) model_.active_parameters = model_.parameters - idle_parameters_;
  return ModelPtr(std::make_shared<const Model>(std::move(model_)));
}

}  // namespace turnpoint
