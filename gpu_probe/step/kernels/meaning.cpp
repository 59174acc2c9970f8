// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/kernels/meaning.h"

#include <algorithm>

namespace turnpoint::step {

Geometry geometry(const LocalOperator& at, const Shape& x, const Shape& w, const Shape& y) {
  Geometry g{x[0], 1, 1, 1, {}, at.op().detail == "ConvTranspose"};
  for (std::size_t l = 0; l < at.loops.size(); ++l)
    if (at.op().dims[l].name == DimName::group) g.groups = at.loops[l].size;
  g.in = x[1] / g.groups;
  g.out = y[1] / g.groups;
  const Shape &whole_x = at.input(0).shape, &whole_y = at.output(0).shape;
  for (std::size_t d = 2; d < x.size(); ++d) {
    const std::int64_t small = g.transposed ? whole_x[d] : whole_y[d], large = g.transposed ? whole_y[d] : whole_x[d];
    // The least stride with which the windows reach the end without padding of the back alone: an unpadded
    // convolution stays one.
    const std::int64_t beside = large - w[d] + 1, stride = std::max<std::int64_t>(1, (beside + small - 1) / small);
    Spatial s{g.transposed ? x[d] : y[d], g.transposed ? y[d] : x[d], w[d], stride, 0};
    s.pad = std::max<std::int64_t>(0, (small - 1) * s.stride + s.kernel - large + 1) / 2;
    g.spatial.push_back(s);
  }
  return g;
}

ProbeCall convolution_call(const Geometry& g) {
  std::int64_t large[2] = {1, 1}, small[2] = {1, 1}, kernel[2] = {1, 1}, stride[2] = {1, 1}, pad[2] = {0, 0};
  for (std::size_t d = 0; d < g.spatial.size(); ++d) {
    const Spatial& s = g.spatial[d];
    const std::size_t to = d + 2 - g.spatial.size();
    large[to] = s.large, small[to] = s.small, kernel[to] = s.kernel, stride[to] = s.stride, pad[to] = s.pad;
  }
  const std::int64_t x = g.in * g.groups, y = g.out * g.groups;
  ProbeCall call;
  call.kind = CallKind::convolution;
  call.size = {g.batch,
               g.transposed ? y : x,
               large[0],
               large[1],
               g.transposed ? x : y,
               kernel[0],
               kernel[1],
               small[0],
               small[1],
               stride[0],
               stride[1],
               pad[0],
               pad[1],
               1,
               1,
               g.groups};
  return call;
}

bool takes_maximum(const LocalOperator& at) {
  return at.op().detail.find("Max") != std::string::npos && at.op().inputs[0].saved;
}

std::vector<bool> softmax_loop(const LocalOperator& at) {
  std::vector<bool> within(at.loops.size(), false);
  const auto& walks = at.op().inputs[0].walks;
  for (std::size_t d = walks.size(); d-- > 0;) {
    if (walks[d].empty() || at.op().dims[walks[d].front()].splittable) continue;
    within[walks[d].front()] = true;
    break;
  }
  return within;
}

bool logarithmic(const LocalOperator& at) { return at.op().detail.find("Log") != std::string::npos; }

namespace {

Norm layer_norm(const LocalOperator& at) {
  Norm norm;
  norm.within.assign(at.loops.size(), false);
  const auto& walks = at.op().inputs[0].walks;
  for (std::size_t d = walks.size(); d-- > 0;) {
    if (walks[d].empty()) continue;
    if (at.op().dims[walks[d].front()].splittable) break;
    for (const auto loop : walks[d]) norm.within[loop] = true;
  }
  norm.centred = at.op().detail.find("RMS") == std::string::npos;
  return norm;
}

Norm batch_norm(const LocalOperator& at) {
  Norm norm;
  norm.within.assign(at.loops.size(), true);
  for (const auto loop : at.op().inputs[0].walks[1]) norm.within[loop] = false;
  return norm;
}

}  // namespace

Norm norm_of(const LocalOperator& at) {
  Norm norm = at.op().kind == OperatorKind::batch_normalisation ? batch_norm(at) : layer_norm(at);
  for (std::size_t k = 1; k < at.op().inputs.size(); ++k) {
    if (at.input(k).role == TensorRole::buffer) continue;
    (norm.scale < 0 ? norm.scale : norm.bias) = static_cast<int>(k);
  }
  return norm;
}

Reduction reduction_of(const LocalOperator& at) {
  const std::string& name = at.op().detail;
  // What is not linear reads its input in backward.
  if (at.op().inputs[0].saved) return name.find("Max") != std::string::npos ? Reduction::maximum : Reduction::squares;
  return name.find("Mean") != std::string::npos ? Reduction::mean : Reduction::sum;
}
double mean_factor(const LocalOperator& at) {
  return static_cast<double>(at.output(0).elements()) / static_cast<double>(at.input(0).elements());
}

Rows rows_of(const LocalOperator& at, const Region& logits) {
  const Shape& shape = at.input(0).shape;
  Rows r{logits.extent.back(), logits.elements() / logits.extent.back(), logits.offset.back(), shape.back(), 1};
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) r.all_rows *= shape[d];
  return r;
}

LossBlocks blocks_of(const Tensor& statistics, const Region& region) {
  const std::size_t rows = statistics.shape.size() - 2;
  LossBlocks b{region.extent[rows], 1, 1};
  for (std::size_t d = 0; d < rows; ++d) b.rows *= region.extent[d], b.all_rows *= statistics.shape[d];
  return b;
}

std::vector<Region> places(const LocalOperator& at, const Region& whole) {
  const Access& out = at.op().outputs[0];
  std::size_t along = 0;
  for (std::size_t d = 0; d < out.walks.size(); ++d)
    if (out.walks[d].empty() && at.output(0).shape[d] > 1) along = d;
  std::vector<Region> result;
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < at.op().inputs.size(); ++k) {
    Region place{Shape(whole.extent.size(), 0), whole.extent};
    place.offset[along] = offset;
    place.extent[along] = at.input(k).shape[along];
    offset += place.extent[along];
    result.push_back(place);
  }
  return result;
}

// The part of x that output k is: per dimension that no loop walks, where it starts. Consecutive parts go to the
// outputs of one operator, and to the slices of one tensor, in their order.
Shape slice_start(const LocalOperator& at, std::size_t k) {
  const Model& model = *at.model;
  const TensorId x = at.op().inputs[0].tensor;
  const Shape& whole = at.input(0).shape;
  const auto size = [&](const Tensor& part, std::size_t d) { return d < part.shape.size() ? part.shape[d] : 1; };
  Shape start(whole.size(), 0);
  const auto pass = [&](const Tensor& part) {
    for (std::size_t d = 0; d < whole.size(); ++d)
      if (size(part, d) < whole[d]) start[d] += size(part, d);
  };
  for (const auto& use : model.uses[x]) {
    if (use.op == at.id) break;
    const Operator& other = model.operators[use.op];
    if (other.kind != OperatorKind::slice) continue;
    for (const auto& access : other.outputs) pass(model.tensors[access.tensor]);
  }
  for (std::size_t o = 0; o < k; ++o) pass(at.output(o));
  for (std::size_t d = 0; d < whole.size(); ++d)
    if (start[d] + size(at.output(k), d) > whole[d] || size(at.output(k), d) >= whole[d]) start[d] = 0;
  return start;
}

std::optional<Slice> slice_of(const LocalOperator& at, std::size_t k, const Region& x, const Region& y) {
  const std::size_t rank = x.extent.size();
  if (y.extent.size() > rank) return std::nullopt;
  const Shape start = slice_start(at, k);
  Slice slice;
  std::int64_t x_stride = 1, y_stride = 1;
  for (std::size_t d = rank; d-- > 0;) {
    const std::int64_t size = d < y.extent.size() ? y.extent[d] : 1;
    const bool repeats = size > x.extent[d];
    if (repeats && size % x.extent[d] != 0) return std::nullopt;
    const std::int64_t times = repeats ? size / x.extent[d] : 1;
    slice.sizes.insert(slice.sizes.end(), {times, size / times});
    slice.x.insert(slice.x.end(), {0, x_stride});
    slice.y.insert(slice.y.end(), {y_stride, y_stride * times});
    if (!repeats) slice.start += start[d] * x_stride;
    x_stride *= x.extent[d];
    y_stride *= size;
  }
  return slice;
}

}  // namespace turnpoint::step
