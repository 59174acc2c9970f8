// SPDX-License-Identifier: Apache-2.0
// Matrix products, convolutions and recurrent cells: the operators whose multiply-accumulates are counted.
#include <algorithm>

#include "core/model/builder.h"
#include "core/model/builder_detail.h"

namespace turnpoint {
using namespace builder_detail;

namespace {

Shape shape_of_walks(const std::vector<LoopDimension>& dims, const Walks& walks) {
  Shape shape;
  for (const auto& walk : walks) {
    std::int64_t size = 1;
    for (const auto loop : walk) size *= dims[loop].size;
    shape.push_back(size);
  }
  return shape;
}

/// A name that no dimension of the operator has yet, so that "split" in a plan is unambiguous.
DimName distinct(const std::vector<LoopDimension>& dims, DimName wanted, DimName otherwise) {
  if (!has_name(dims, wanted)) return wanted;
  return has_name(dims, otherwise) ? DimName::other : otherwise;
}

bool is_attention_name(DimName name) {
  return name == DimName::head || name == DimName::head_channel || name == DimName::key_sequence ||
         name == DimName::sequence;
}

}  // namespace

TensorId ModelBuilder::contraction(std::string name, std::string detail, std::vector<LoopDimension> dims, TensorId a,
                                   Walks a_walks, TensorId b, Walks b_walks, Walks out_walks, Dims out_dims,
                                   std::optional<TensorId> bias, Walks bias_walks) {
  if (!usable(name, {a, b})) return broken(name, "an operand is missing");
  auto op = start(name, OperatorKind::matmul, std::move(detail));
  std::vector<bool> in_output(dims.size(), false);
  for (const auto* walks : {&a_walks, &b_walks, &out_walks}) {
    for (const auto& walk : *walks) {
      for (const auto loop : walk) {
        if (loop >= dims.size()) return broken(name, "a tensor walks a loop dimension that does not exist");
        if (walks == &out_walks) in_output[loop] = true;
      }
    }
  }
  double macs = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    macs *= static_cast<double>(dims[i].size);
    if (!in_output[i]) dims[i].role = DimRole::reduction;
  }
  const auto agrees = [&](TensorId id, const Walks& walks) {
    if (walks.size() != tensor(id).shape.size()) return false;
    const auto expected = shape_of_walks(dims, walks);
    for (std::size_t d = 0; d < walks.size(); ++d) {
      if (!walks[d].empty() && expected[d] != tensor(id).shape[d]) return false;
    }
    return true;
  };
  if (!agrees(a, a_walks) || !agrees(b, b_walks))
    return broken(name, "the sizes of a contraction's operands do not agree");
  const auto shape = shape_of_walks(dims, out_walks);
  op.dims = std::move(dims);
  op.inputs = {{a, std::move(a_walks), tensor(b).requires_gradient},
               {b, std::move(b_walks), tensor(a).requires_gradient}};
  op.outputs = {{{}, std::move(out_walks), false}};
  op.forward_macs = macs;
  op.forward_flop = 2 * macs;
  const auto type = tensor(a).type;
  BackwardWork work{0, {2 * macs, 2 * macs}, {macs, macs}};
  if (bias) {
    if (!usable(op.name, {*bias})) return broken(op.name, "an operand is missing");
    for (const auto& walk : bias_walks) {
      for (const auto loop : walk) {
        if (loop >= in_output.size() || !in_output[loop])
          return broken(op.name, "the bias of a contraction walks a dimension that the output does not have");
      }
    }
    if (tensor(*bias).shape != shape_of_walks(op.dims, bias_walks))
      return broken(op.name, "the bias of a contraction does not fit its output");
    op.inputs.push_back({*bias, std::move(bias_walks), false});
    op.forward_flop += product(shape);
    work.input_flop.push_back(product(shape));
  }
  return add_operator(std::move(op), shape, std::move(out_dims), type, work);
}

TensorId ModelBuilder::matmul(std::string name, TensorId a, TensorId b, bool transpose_a, bool transpose_b,
                              std::string detail) {
  if (!usable(name, {a, b})) return broken(name, "an operand is missing");
  const Tensor left = tensor(a), right = tensor(b);
  if (left.shape.empty() || right.shape.empty())
    return broken(name, "a matrix product needs operands of at least one dimension");
  const std::size_t ra = left.shape.size(), rb = right.shape.size();
  const bool has_m = ra > 1, has_n = rb > 1;
  const std::size_t am = has_m ? (transpose_a ? ra - 1 : ra - 2) : ra, ak = has_m && transpose_a ? ra - 2 : ra - 1;
  const std::size_t bk = has_n ? (transpose_b ? rb - 1 : rb - 2) : 0, bn = has_n ? (transpose_b ? rb - 2 : rb - 1) : rb;
  if (left.shape[ak] != right.shape[bk]) {
    return broken(name, "inner sizes " + std::to_string(left.shape[ak]) + " and " + std::to_string(right.shape[bk]) +
                            " of a matrix product differ");
  }
  const std::size_t la = has_m ? ra - 2 : 0, lb = has_n ? rb - 2 : 0, lead = std::max(la, lb);
  const bool of_activations = !is_parameter(storage_of(model_, a)) && !is_parameter(storage_of(model_, b));

  std::vector<LoopDimension> dims;
  Walks a_walks(ra), b_walks(rb), out_walks;
  Dims out_dims;
  const auto new_dim = [&](LoopDimension dim) {
    return dim.size > 1 ? std::vector<std::uint8_t>{add(dims, dim)} : std::vector<std::uint8_t>{};
  };
  for (std::size_t i = 0; i < lead; ++i) {
    const std::size_t ia = i + la - lead, ib = i + lb - lead;  // wraps where the operand lacks the dimension
    const std::int64_t size_a = i + la >= lead ? left.shape[ia] : 1, size_b = i + lb >= lead ? right.shape[ib] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1)
      return broken(name, "leading sizes of a matrix product cannot be broadcast");
    const DimName dim_name = i + la >= lead && (size_a > 1 || i + lb < lead) ? left.dims[ia] : right.dims[ib];
    const auto walk = new_dim(parallel_dim(dim_name, std::max(size_a, size_b)));
    if (size_a > 1) a_walks[ia] = walk;
    if (size_b > 1) b_walks[ib] = walk;
    out_walks.push_back(walk);
    out_dims.push_back(dim_name);
  }
  if (has_m) {
    auto dim = parallel_dim(left.dims[am], left.shape[am]);
    dim.name = distinct(dims, dim.name, DimName::other);
    a_walks[am] = new_dim(dim);
    out_walks.push_back(a_walks[am]);
    out_dims.push_back(left.dims[am]);
  }
  LoopDimension reduced{of_activations && is_attention_name(left.dims[ak]) ? left.dims[ak] : DimName::in_channel,
                        DimRole::reduction, left.shape[ak], true};
  reduced.splittable = reduced.name != DimName::key_sequence;
  reduced.name = distinct(dims, reduced.name, DimName::in_channel);
  a_walks[ak] = new_dim(reduced);
  b_walks[bk] = a_walks[ak];
  if (has_n) {
    DimName out_name = of_activations && is_attention_name(right.dims[bn]) ? right.dims[bn] : DimName::channel;
    if (out_name == DimName::sequence && has_name(dims, DimName::sequence)) out_name = DimName::key_sequence;
    LoopDimension dim{out_name == DimName::channel ? DimName::out_channel : out_name, DimRole::parallel,
                      right.shape[bn], true};
    dim.name = distinct(dims, dim.name, DimName::out_channel);
    b_walks[bn] = new_dim(dim);
    out_walks.push_back(b_walks[bn]);
    out_dims.push_back(out_name);
  }
  return contraction(std::move(name), std::move(detail), std::move(dims), a, std::move(a_walks), b, std::move(b_walks),
                     std::move(out_walks), std::move(out_dims));
}

TensorId ModelBuilder::linear(std::string name, TensorId x, TensorId w, std::optional<TensorId> bias, bool transpose_w,
                              DimName out_name) {
  if (!usable(name, {x, w})) return broken(name, "an operand is missing");
  if (tensor(w).shape.size() != 2) return broken(name, "the weight of a linear layer must have two dimensions");
  const auto y = matmul(std::move(name), x, w, false, transpose_w, "Linear");
  if (error_) return y;
  auto& op = model_.operators[tensor(y).producer];
  auto& result = model_.tensors[y];
  const auto last = op.outputs.front().walks.back();
  if (!last.empty())
    op.dims[last.front()].name =
        distinct(op.dims, out_name, DimName::out_channel) == out_name ? out_name : op.dims[last.front()].name;
  result.dims.back() = out_name == DimName::out_channel ? DimName::channel : out_name;
  if (bias && !add_bias(y, *bias)) fail(op.name, "the bias of a linear layer does not have the size of its output");
  return y;
}

bool ModelBuilder::add_bias(TensorId y, TensorId bias) {
  if (!usable("bias", {y, bias}) || !tensor(y).producer.valid()) return false;
  auto& op = model_.operators[tensor(y).producer];
  auto& result = model_.tensors[y];
  auto& b = model_.tensors[bias];
  if (op.kind != OperatorKind::matmul || op.inputs.size() != 2 || result.shape.empty() || b.producer.valid())
    return false;
  if (b.shape.size() > 1 || (b.elements() != 1 && b.elements() != result.shape.back())) return false;
  Walks walks(b.shape.size());
  if (b.elements() > 1) walks[0] = op.outputs.front().walks.back();
  op.inputs.push_back({bias, std::move(walks), false});
  const auto elements = product(result.shape);
  op.forward_flop += elements;
  if (b.requires_gradient) {
    op.backward_flop += elements;
    result.requires_gradient = true;
    if (!b.dims.empty() && b.dims[0] == DimName::other) b.dims[0] = result.dims.back();
  }
  return true;
}

TensorId ModelBuilder::convolution(std::string name, TensorId x, TensorId w, std::optional<TensorId> bias,
                                   const ConvolutionShape& c) {
  if (!usable(name, {x, w})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x), weight = tensor(w);
  const std::size_t rank = in.shape.size();
  if (rank < 3 || rank > 5 || weight.shape.size() != rank)
    return broken(name, "a convolution needs an input and a weight of the same rank, 3 to 5");
  const std::size_t spatial = rank - 2;
  for (const auto* list : {&c.kernel, &c.strides, &c.pads_begin, &c.pads_end, &c.dilations}) {
    if (list->size() != spatial)
      return broken(name, "a convolution attribute has the wrong number of spatial dimensions");
  }
  const std::int64_t batch = in.shape[0], channels = in.shape[1], groups = c.groups;
  if (groups < 1 || channels % groups != 0)
    return broken(name, "the groups of a convolution do not divide its input channels");
  const std::int64_t in_per_group = channels / groups;
  const std::int64_t out_per_group = c.transposed ? weight.shape[1] : weight.shape[0] / groups;
  if (c.transposed ? weight.shape[0] != channels : weight.shape[1] != in_per_group || weight.shape[0] % groups != 0) {
    return broken(name, "the weight of a convolution does not fit its input's channels");
  }
  Shape out{batch, out_per_group * groups};
  double positions = 1;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (c.kernel[i] != weight.shape[i + 2]) return broken(name, "kernel_shape contradicts the weight's shape");
    constexpr std::int64_t kLimit = std::int64_t{1} << 40;
    for (const auto value : {c.strides[i], c.dilations[i], in.shape[i + 2], c.kernel[i]}) {
      if (value < 1 || value > kLimit)
        return broken(name, "a stride, dilation or size of a convolution is out of range");
    }
    if (std::min(c.pads_begin[i], c.pads_end[i]) < -kLimit || std::max(c.pads_begin[i], c.pads_end[i]) > kLimit)
      return broken(name, "a padding of a convolution is out of range");
    if (c.transposed && in.shape[i + 2] > kMaxElements / c.strides[i])
      return broken(name, "a convolution's output is too large");
    const double extent_check = static_cast<double>(c.dilations[i]) * static_cast<double>(c.kernel[i]);
    if (extent_check > static_cast<double>(kLimit)) return broken(name, "the kernel of a convolution is out of range");
    const std::int64_t extent = (c.kernel[i] - 1) * c.dilations[i] + 1, pads = c.pads_begin[i] + c.pads_end[i];
    const std::int64_t size = c.transposed ? (in.shape[i + 2] - 1) * c.strides[i] + extent - pads
                                           : (in.shape[i + 2] + pads - extent) / c.strides[i] + 1;
    if (size < 1 || in.shape[i + 2] + pads < (c.transposed ? 0 : extent))
      return broken(name, "the kernel of a convolution is larger than its padded input");
    out.push_back(size);
    positions *= static_cast<double>(c.kernel[i]);
  }
  if (!check_shape(name, out)) return broken(name, "a convolution's output is too large");

  auto op = start(std::move(name), OperatorKind::convolution, c.transposed ? "ConvTranspose" : "Conv");
  auto& dims = op.dims;
  const auto new_dim = [&](DimName dim_name, DimRole role, std::int64_t size, bool splittable) {
    return size > 1 ? std::vector<std::uint8_t>{add(dims, {dim_name, role, size, splittable})}
                    : std::vector<std::uint8_t>{};
  };
  const auto join = [](std::vector<std::uint8_t> outer, const std::vector<std::uint8_t>& inner) {
    outer.insert(outer.end(), inner.begin(), inner.end());
    return outer;
  };
  const auto b = new_dim(DimName::batch, DimRole::parallel, batch, true);
  const auto g = new_dim(DimName::group, DimRole::parallel, groups, true);
  const auto o = new_dim(DimName::out_channel, DimRole::parallel, out_per_group, true);
  const auto i = new_dim(DimName::in_channel, DimRole::reduction, in_per_group, true);
  Walks x_walks{b, join(g, i)}, y_walks{b, join(g, o)};
  Walks w_walks = c.transposed ? Walks{join(g, i), o} : Walks{join(g, o), i};
  static constexpr DimName kSpatial[] = {DimName::depth, DimName::height, DimName::width};
  Dims y_dims{DimName::batch, DimName::channel};
  for (std::size_t s = 0; s < spatial; ++s) {
    const DimName dim_name =
        spatial == 1 ? (in.dims[2] == DimName::sequence ? DimName::window : DimName::width) : kSpatial[s + 3 - spatial];
    const std::int64_t small = c.transposed ? in.shape[s + 2] : out[s + 2],
                       large = c.transposed ? out[s + 2] : in.shape[s + 2];
    const bool no_halo = c.pads_begin[s] == 0 && c.pads_end[s] == 0 &&
                         (c.kernel[s] - 1) * c.dilations[s] < c.strides[s] && small * c.strides[s] == large;
    const auto walk = new_dim(dim_name, DimRole::window, small, no_halo);
    x_walks.push_back(no_halo || small == in.shape[s + 2] ? walk : std::vector<std::uint8_t>{});
    y_walks.push_back(no_halo || small == out[s + 2] ? walk : std::vector<std::uint8_t>{});
    y_dims.push_back(spatial == 1 ? in.dims[2] : dim_name);
  }
  for (std::size_t s = 0; s < spatial; ++s)
    w_walks.push_back(new_dim(DimName::window, DimRole::reduction, c.kernel[s], false));

  double outer = static_cast<double>(batch) * static_cast<double>(groups) * static_cast<double>(out_per_group) *
                 static_cast<double>(in_per_group) * positions;
  for (std::size_t s = 0; s < spatial; ++s) outer *= static_cast<double>(c.transposed ? in.shape[s + 2] : out[s + 2]);
  op.forward_macs = outer;
  op.forward_flop = 2 * outer;
  BackwardWork work{0, {2 * outer, 2 * outer}, {outer, outer}};
  op.inputs = {{x, std::move(x_walks), weight.requires_gradient}, {w, std::move(w_walks), in.requires_gradient}};
  if (bias) {
    if (!usable(op.name, {*bias})) return broken(op.name, "an operand is missing");
    if (tensor(*bias).shape != Shape{out[1]})
      return broken(op.name, "the bias of a convolution does not have one element per output channel");
    op.inputs.push_back({*bias, {join(g, o)}, false});
    op.forward_flop += product(out);
    work.input_flop.push_back(product(out));
  }
  op.outputs = {{{}, std::move(y_walks), false}};
  return add_operator(std::move(op), std::move(out), std::move(y_dims), in.type, work);
}

TensorId ModelBuilder::recurrent(std::string name, std::string detail, TensorId x, TensorId w, TensorId r,
                                 std::optional<TensorId> bias, int gates, int directions, std::int64_t hidden,
                                 bool batch_first, bool split_hidden) {
  if (!usable(name, {x, w, r})) return broken(name, "an operand is missing");
  const Tensor in = tensor(x);
  const auto fits = [&](TensorId id, std::int64_t last) {
    return tensor(id).shape == Shape{directions, gates * hidden, last};
  };
  if (in.shape.size() != 3 || hidden < 1 || hidden > (std::int64_t{1} << 40))
    return broken(name, "a recurrent layer needs an input of three dimensions and a hidden size");
  if (!fits(w, in.shape[2]) || !fits(r, hidden))
    return broken(name, "the weights of a recurrent layer do not fit its input and hidden size");
  const std::int64_t time = in.shape[batch_first ? 1 : 0], batch = in.shape[batch_first ? 0 : 1],
                     features = in.shape[2];
  auto op = start(std::move(name), OperatorKind::recurrent, std::move(detail));
  auto& dims = op.dims;
  const auto new_dim = [&](DimName dim_name, DimRole role, std::int64_t size, bool splittable) {
    return size > 1 ? std::vector<std::uint8_t>{add(dims, {dim_name, role, size, splittable})}
                    : std::vector<std::uint8_t>{};
  };
  const auto t = new_dim(DimName::time, DimRole::parallel, time, false);
  const auto n = new_dim(DimName::batch, DimRole::parallel, batch, true);
  const auto d = new_dim(DimName::group, DimRole::parallel, directions, !batch_first);
  const auto h =
      new_dim(DimName::out_channel, DimRole::parallel, hidden, split_hidden && (!batch_first || directions == 1));
  // A part of the input features would leave the gates' arguments partial inside the cell, before its nonlinearity.
  const auto i = new_dim(DimName::in_channel, DimRole::reduction, features, false);
  const auto q = new_dim(DimName::gate, DimRole::parallel, gates, false);
  auto units = h;
  units.insert(units.end(), q.begin(), q.end());
  op.inputs = {
      {x, batch_first ? Walks{n, t, i} : Walks{t, n, i}, true}, {w, {d, units, i}, true}, {r, {d, units, {}}, true}};
  const double steps = static_cast<double>(time) * static_cast<double>(batch) * directions;
  const double cells = steps * static_cast<double>(hidden), gate_cells = cells * gates;
  const double input_macs = gate_cells * static_cast<double>(features),
               hidden_macs = gate_cells * static_cast<double>(hidden);
  op.forward_macs = input_macs + hidden_macs;
  op.forward_flop = 2 * op.forward_macs + 4 * gate_cells;
  // The gradient through the state is needed whatever is trained; those of w, r and x only where asked for.
  BackwardWork work{2 * hidden_macs + 4 * gate_cells,
                    {2 * input_macs, 2 * input_macs, 2 * hidden_macs},
                    {input_macs, input_macs, 2 * hidden_macs}};
  if (bias) {
    if (!usable(op.name, {*bias})) return broken(op.name, "an operand is missing");
    const auto& b = tensor(*bias).shape;
    if (b.size() != 2 || b[0] != directions || (b[1] != gates * hidden && b[1] != 2 * gates * hidden)) {
      return broken(op.name, "the bias of a recurrent layer does not fit its hidden size");
    }
    op.inputs.push_back({*bias, {d, b[1] == gates * hidden ? units : std::vector<std::uint8_t>{}}, false});
    work.input_flop.push_back(gate_cells);
  }
  auto merged = d;
  merged.insert(merged.end(), h.begin(), h.end());
  const Walks y_walks = batch_first ? Walks{n, t, merged} : Walks{t, d, n, h};
  const Shape shape = batch_first ? Shape{batch, time, directions * hidden} : Shape{time, directions, batch, hidden};
  const Dims y_dims = batch_first ? Dims{DimName::batch, DimName::sequence, DimName::channel}
                                  : Dims{DimName::sequence, DimName::group, DimName::batch, DimName::channel};
  op.outputs = {{{}, y_walks, true}};
  const auto y = add_operator(std::move(op), shape, y_dims, in.type, work);
  if (error_) return y;
  const auto producer = tensor(y).producer;
  const std::string gates_name = tensor(y).name + "/gates";
  auto gate_walks = batch_first ? Walks{n, t, merged, q} : Walks{t, d, n, h, q};
  Shape gate_shape = shape;
  gate_shape.push_back(gates);
  Dims gate_dims = y_dims;
  gate_dims.push_back(DimName::gate);
  add_output(producer, gates_name, std::move(gate_shape), std::move(gate_dims), in.type, TensorRole::internal,
             std::move(gate_walks), true);
  return y;
}

}  // namespace turnpoint
