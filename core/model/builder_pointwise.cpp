// SPDX-License-Identifier: Apache-2.0
// Operators bound by memory traffic: elementwise functions, normalisations, softmax, pooling, reductions, look-ups.
#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

/// Loop dimensions of an output shape, and each operand's walks under NumPy broadcasting (aligned right).
Walks broadcast_walks(const Shape& operand, const Walks& out_walks) {
  Walks walks(operand.size());
  const std::size_t offset = out_walks.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] > 1) walks[d] = out_walks[d + offset];
  }
  return walks;
}

}  // namespace

TensorId ModelBuilder::elementwise(std::string name, std::string detail, std::span<const TensorId> operands,
                                   const ElementwiseTraits& traits) {
  if (operands.empty()) return broken(name, "an elementwise operator without operands");
  std::size_t rank = 0;
  for (const auto id : operands) {
    if (!usable(name, {id})) return broken(name, "an operand is missing");
    rank = std::max(rank, tensor(id).shape.size());
  }
  Shape shape(rank, 1);
  Dims names(rank, DimName::other);
  std::vector<bool> named(rank, false);
  for (const bool only_activations : {true, false}) {
    for (const auto id : operands) {
      const auto& t = tensor(id);
      const bool activation = t.role == TensorRole::activation || t.role == TensorRole::input;
      for (std::size_t d = 0; d < t.shape.size(); ++d) {
        const std::size_t at = d + rank - t.shape.size();
        if (t.shape[d] > 1) {
          if (shape[at] != 1 && shape[at] != t.shape[d]) {
            return broken(name, "sizes " + std::to_string(shape[at]) + " and " + std::to_string(t.shape[d]) +
                                    " cannot be broadcast");
          }
          shape[at] = t.shape[d];
        }
        if (activation == only_activations && !named[at] && (t.shape[d] > 1 || only_activations)) {
          names[at] = t.dims[d];
          named[at] = t.shape[d] > 1;
        }
      }
    }
  }
  auto op = start(std::move(name), OperatorKind::elementwise, std::move(detail));
  auto walks = identity_walks(op.dims, shape, names);
  const auto type = [&] {
    if (traits.type) return *traits.type;
    for (const auto id : operands) {
      if (is_floating(tensor(id).type)) return tensor(id).type;
    }
    return tensor(operands.front()).type;
  }();
  const double elements = product(shape);
  op.forward_flop = traits.flop_per_element * elements;
  BackwardWork work{0, {}, {}};
  const auto reading = std::count(traits.saves_input.begin(), traits.saves_input.end(), true);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    bool saved = i < traits.saves_input.size() && traits.saves_input[i];
    if (saved && reading > 1) {  // each operand's gradient reads the others
      bool other = false;
      for (std::size_t k = 0; k < operands.size(); ++k)
        other = other || (k != i && tensor(operands[k]).requires_gradient);
      saved = other || (op.detail == "Div" && i > 0);
    } else if (saved) {
      saved = tensor(operands[i]).requires_gradient;
    }
    op.inputs.push_back({operands[i], broadcast_walks(tensor(operands[i]).shape, walks), saved});
    work.input_flop.push_back(traits.flop_per_element * elements);
  }
  op.outputs = {{{}, walks, traits.saves_output}};
  const std::string mask = op.name + "/mask";
  const auto y = add_operator(std::move(op), shape, names, type, work);
  if (traits.saves_mask && tensor(y).requires_gradient)
    add_output(tensor(y).producer, mask, std::move(shape), std::move(names), ElementType::boolean, TensorRole::internal,
               std::move(walks), true);
  return y;
}

TensorId ModelBuilder::expand(std::string name, TensorId x, Shape shape, Dims dims) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  if (shape.size() < in.shape.size()) return broken(name, "an expansion to fewer dimensions");
  const std::size_t offset = shape.size() - in.shape.size();
  if (dims.size() != shape.size()) {
    dims.assign(shape.size(), DimName::other);
    std::copy(in.dims.begin(), in.dims.end(), dims.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  for (std::size_t d = 0; d < in.shape.size(); ++d) {
    if (in.shape[d] != 1 && in.shape[d] != shape[d + offset])
      return broken(name, "a dimension larger than 1 cannot be expanded");
  }
  if (!check_shape(name, shape)) return broken(name, "an expansion is too large");
  auto op = start(std::move(name), OperatorKind::elementwise, "Expand");
  auto walks = identity_walks(op.dims, shape, dims);
  op.inputs = {{x, broadcast_walks(in.shape, walks), false}};
  op.outputs = {{{}, std::move(walks), false}};
  return add_operator(std::move(op), std::move(shape), std::move(dims), in.type, {product(shape), {}, {}});
}

TensorId ModelBuilder::softmax(std::string name, TensorId x, int axis, std::string detail) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const auto rank = static_cast<int>(tensor(x).shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return broken(name, "the axis of a softmax is out of range");
  mark_key_sequence(x, axis);
  const Tensor in = tensor(x);
  auto op = start(std::move(name), OperatorKind::softmax, std::move(detail));
  auto walks = identity_walks(op.dims, in.shape, in.dims);
  for (const auto loop : walks[static_cast<std::size_t>(axis)]) op.dims[loop].splittable = false;
  const double elements = product(in.shape);
  op.forward_flop = 5 * elements;
  op.inputs = {{x, walks, false}};
  op.outputs = {{{}, std::move(walks), true}};
  return add_operator(std::move(op), in.shape, in.dims, in.type, {4 * elements, {}, {}});
}

TensorId ModelBuilder::normalisation(std::string name, TensorId x, int first_axis, std::optional<TensorId> scale,
                                     std::optional<TensorId> bias, std::string detail) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  const auto rank = static_cast<int>(in.shape.size());
  if (first_axis < 0) first_axis += rank;
  if (first_axis < 0 || first_axis >= rank) return broken(name, "the axis of a normalisation is out of range");
  auto op = start(std::move(name), OperatorKind::normalisation, std::move(detail));
  auto walks = identity_walks(op.dims, in.shape, in.dims);
  for (auto d = static_cast<std::size_t>(first_axis); d < walks.size(); ++d) {
    for (const auto loop : walks[d]) op.dims[loop].splittable = false;
  }
  const double elements = product(in.shape);
  op.forward_flop = 7 * elements;
  op.inputs = {{x, walks, true}};
  BackwardWork work{14 * elements, {}, {}};
  for (const auto& parameter : {scale, bias}) {
    if (!parameter) continue;
    if (!usable(op.name, {*parameter})) return broken(op.name, "an operand is missing");
    const auto& p = tensor(*parameter).shape;
    Walks parameter_walks(p.size());
    const bool trailing = p.size() <= in.shape.size() && std::equal(p.rbegin(), p.rend(), in.shape.rbegin());
    const bool per_channel = p.size() == 1 && rank > 1 && p[0] == in.shape[1];
    if (trailing) {
      parameter_walks = broadcast_walks(p, walks);
    } else if (per_channel) {  // instance and group normalisation: NC...
      parameter_walks[0] = walks[1];
    } else if (tensor(*parameter).elements() != 1) {
      return broken(op.name, "the scale or bias of a normalisation does not fit its input");
    }
    // The gradient of x is scaled as x was.
    op.inputs.push_back({*parameter, std::move(parameter_walks), scale && *parameter == *scale});
  }
  op.outputs = {{{}, std::move(walks), false}};
  return add_operator(std::move(op), in.shape, in.dims, in.type, work);
}

TensorId ModelBuilder::batch_normalisation(std::string name, TensorId x, std::optional<TensorId> scale,
                                           std::optional<TensorId> bias, std::optional<TensorId> mean,
                                           std::optional<TensorId> variance) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  if (in.shape.size() < 2) return broken(name, "a batch normalisation needs an input of at least two dimensions");
  auto op = start(std::move(name), OperatorKind::batch_normalisation, "BatchNormalization");
  auto walks = identity_walks(op.dims, in.shape, in.dims);
  const double elements = product(in.shape);
  op.forward_flop = 5 * elements;
  op.forward_passes = op.backward_passes =
      1.5;  // the input is read once for the statistics and once more to apply them
  op.inputs = {{x, walks, true}};
  for (const auto& channel : {scale, bias, mean, variance}) {
    if (!channel) continue;
    if (!usable(op.name, {*channel})) return broken(op.name, "an operand is missing");
    if (tensor(*channel).shape != Shape{in.shape[1]})
      return broken(op.name, "a parameter of a batch normalisation does not have one element per channel");
    // The gradient of x is scaled as x was.
    op.inputs.push_back({*channel, {walks[1]}, scale && *channel == *scale});
  }
  op.outputs = {{{}, std::move(walks), false}};
  return add_operator(std::move(op), in.shape, in.dims, in.type, {10 * elements, {}, {}});
}

TensorId ModelBuilder::pooling(std::string name, std::string detail, TensorId x, Shape out_shape, Shape kernel,
                               bool saves_input) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  const std::size_t rank = in.shape.size();
  if (rank < 3 || out_shape.size() != rank)
    return broken(name, "a pooling needs an input and an output of the same rank, at least 3");
  if (!check_shape(name, out_shape)) return broken(name, "the output of a pooling is too large");
  if (out_shape[0] != in.shape[0] || out_shape[1] != in.shape[1])
    return broken(name, "a pooling changes batch or channels");
  auto op = start(std::move(name), OperatorKind::pooling, std::move(detail));
  Walks x_walks(rank), y_walks(rank);
  double window = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t size = kernel.empty() && d >= 2 ? in.shape[d] : out_shape[d];
    if (d >= 2) window *= static_cast<double>(kernel.empty() ? in.shape[d] : d - 2 < kernel.size() ? kernel[d - 2] : 1);
    if (size <= 1) continue;
    auto dim = parallel_dim(in.dims[d], size);
    if (d >= 2) {
      const bool no_halo = !kernel.empty() && d - 2 < kernel.size() && in.shape[d] % kernel[d - 2] == 0 &&
                           in.shape[d] / kernel[d - 2] == out_shape[d];
      dim.role = kernel.empty() ? DimRole::reduction : DimRole::window;
      dim.splittable = no_halo;
      const auto loop = add(op.dims, dim);
      if (kernel.empty() || no_halo || in.shape[d] == size) x_walks[d] = {loop};
      if (!kernel.empty()) y_walks[d] = {loop};
    } else {
      x_walks[d] = y_walks[d] = {add(op.dims, dim)};
    }
  }
  const double work = product(out_shape) * window;
  op.forward_flop = work;
  op.inputs = {{x, std::move(x_walks), saves_input}};
  op.outputs = {{{}, std::move(y_walks), false}};
  return add_operator(std::move(op), std::move(out_shape), in.dims, in.type, {work, {}, {}});
}

TensorId ModelBuilder::reduction(std::string name, std::string detail, TensorId x, std::vector<int> axes,
                                 bool keep_dims, bool linear) {
  if (!usable(name, {x})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  std::vector<bool> reduced(in.shape.size(), axes.empty());
  for (auto axis : axes) {
    if (axis < 0) axis += static_cast<int>(in.shape.size());
    if (axis < 0 || axis >= static_cast<int>(in.shape.size()))
      return broken(name, "an axis of a reduction is out of range");
    reduced[static_cast<std::size_t>(axis)] = true;
  }
  auto op = start(std::move(name), OperatorKind::reduction, std::move(detail));
  auto x_walks = identity_walks(op.dims, in.shape, in.dims);
  Shape shape;
  Dims names;
  Walks y_walks;
  for (std::size_t d = 0; d < in.shape.size(); ++d) {
    if (!reduced[d]) {
      shape.push_back(in.shape[d]);
      y_walks.push_back(x_walks[d]);
    } else {
      for (const auto loop : x_walks[d]) {
        op.dims[loop].role = DimRole::reduction;
        op.dims[loop].splittable = op.dims[loop].splittable && linear && !is_spatial(in.dims[d]);
      }
      if (!keep_dims) continue;
      shape.push_back(1);
      y_walks.emplace_back();
    }
    names.push_back(in.dims[d]);
  }
  const double elements = product(in.shape);
  op.forward_flop = elements;
  op.inputs = {{x, std::move(x_walks), !linear}};
  op.outputs = {{{}, std::move(y_walks), false}};
  return add_operator(std::move(op), std::move(shape), std::move(names), in.type, {elements, {}, {}});
}

TensorId ModelBuilder::embedding(std::string name, TensorId table, TensorId indices, std::string detail) {
  if (!usable(name, {table, indices})) return broken(name, "an operand is missing");
  const Tensor rows = tensor(table), at = tensor(indices);
  if (rows.shape.size() != 2) return broken(name, "an embedding table must have two dimensions");
  auto op = start(std::move(name), OperatorKind::embedding, std::move(detail));
  auto index_walks = identity_walks(op.dims, at.shape, at.dims);
  Walks table_walks(2);
  if (rows.shape[0] > 1)
    table_walks[0] = {add(op.dims, {DimName::vocabulary, DimRole::reduction, rows.shape[0], true})};
  if (rows.shape[1] > 1) table_walks[1] = {add(op.dims, {DimName::channel, DimRole::parallel, rows.shape[1], true})};
  Shape shape = at.shape;
  Dims names = at.dims;
  auto y_walks = index_walks;
  shape.push_back(rows.shape[1]);
  names.push_back(DimName::channel);
  y_walks.push_back(table_walks[1]);
  const double elements = product(shape);
  op.forward_flop = elements;
  op.inputs = {{table, std::move(table_walks), false}, {indices, std::move(index_walks), true}};
  op.outputs = {{{}, std::move(y_walks), false}};
  return add_operator(std::move(op), std::move(shape), std::move(names), rows.type, {elements, {}, {}});
}

TensorId ModelBuilder::cross_entropy(std::string name, TensorId logits, TensorId labels) {
  if (!usable(name, {logits, labels})) return broken(name, "an operand is missing");
  const Tensor in = tensor(logits), target = tensor(labels);
  if (in.shape.empty() || !std::equal(target.shape.begin(), target.shape.end(), in.shape.begin(), in.shape.end() - 1)) {
    return broken(name, "the labels do not have the shape of the logits without the class dimension");
  }
  auto op = start(std::move(name), OperatorKind::cross_entropy, "CrossEntropy");
  auto walks = identity_walks(op.dims, in.shape, in.dims);
  for (auto& dim : op.dims) dim.role = DimRole::reduction;
  for (const auto loop : walks.back()) op.dims[loop].splittable = false;
  const Walks label_walks(walks.begin(), walks.end() - 1);
  const double elements = product(in.shape);
  op.forward_flop = 5 * elements;
  op.inputs = {{logits, std::move(walks), true}, {labels, label_walks, true}};
  op.outputs = {{{}, {}, false}};
  return add_operator(std::move(op), {}, {}, in.type, {2 * elements, {}, {}});
}

TensorId ModelBuilder::opaque(std::string name, std::string detail, std::span<const TensorId> operands, Shape out_shape,
                              ElementType type) {
  for (const auto id : operands) {
    if (!usable(name, {id})) return broken(name, "an operand is missing");
  }
  if (!check_shape(name, out_shape)) return broken(name, "the output of an unknown operator is too large");
  auto op = start(std::move(name), OperatorKind::opaque, std::move(detail));
  Dims names(out_shape.size(), DimName::other);
  Walks y_walks(out_shape.size());
  if (!operands.empty()) {
    const Tensor first = tensor(operands.front());
    for (std::size_t d = 0; d < out_shape.size() && d < first.shape.size(); ++d) {
      if (out_shape[d] != first.shape[d]) continue;
      names[d] = first.dims[d];
      if (out_shape[d] > 1) y_walks[d] = {add(op.dims, parallel_dim(names[d], out_shape[d]))};
    }
    for (const auto id : operands) {
      const auto& shape = tensor(id).shape;
      Walks walks(shape.size());
      for (std::size_t d = 0; d < shape.size() && shape.size() == first.shape.size() && d < y_walks.size(); ++d) {
        if (!y_walks[d].empty() && shape[d] == out_shape[d]) walks[d] = y_walks[d];
      }
      op.inputs.push_back({id, std::move(walks), true});
    }
  }
  const double elements = product(out_shape);
  op.forward_flop = elements;
  op.outputs = {{{}, std::move(y_walks), false}};
  return add_operator(std::move(op), std::move(out_shape), std::move(names), type, {2 * elements, {}, {}});
}

}  // namespace turnpoint
