// SPDX-License-Identifier: Apache-2.0
// Look-ups in tables, losses over classes, slices and concatenations.
#include <fmt/format.h>
#include <algorithm>

#include "core/export/jax/formulas.h"
#include "core/model/split_loss.h"

namespace turnpoint::jax {

namespace {

/// Where this device's rows or classes begin among all, by the first walker of a dimension.
std::string first_of(const Place& place, const Access& access, std::size_t dimension) {
  const auto& walk = access.walks[dimension];
  if (walk.empty() || place.axes_on(walk.front()) == 0) return "0";
  return fmt::format("start({}, {})", place.shape(access)[dimension],
                     axis_list(place.mesh, place.axes_on(walk.front())));
}

Expected<void> nothing_to_check(const Place&) { return {}; }

void forward_embedding(const Place& place, const Values& values, Lines& lines) {
  lines.add(fmt::format("{} = look_up({}, {}, {})", values.outputs[0], values.inputs[0], values.inputs[1],
                        first_of(place, place.op().inputs[0], 0)));
}

void backward_embedding(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  lines.add(fmt::format("{} = look_up_back({}, {}, {}, {})", values.results[0],
                        tuple_of(place.shape(place.op().inputs[0])), values.inputs[1],
                        first_of(place, place.op().inputs[0], 0), values.gradients[0]));
}

/// Of the logits: what a device's classes begin with.
std::string first_class(const Place& place) {
  const Access& logits = place.op().inputs[0];
  return first_of(place, logits, logits.walks.size() - 1);
}

std::int64_t blocks_here(const Place& place) {
  const auto shape = place.shape(place.op().outputs[0]);
  return shape[shape.size() - 2];
}

void forward_statistics(const Place& place, const Values& values, Lines& lines) {
  lines.add(fmt::format("{} = loss_statistics({}, {}, {}, {})", values.outputs[0], values.inputs[0], values.inputs[1],
                        blocks_here(place), first_class(place)));
}

void backward_statistics(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  lines.add(fmt::format("{}, = back(lambda x: loss_statistics(x, {}, {}, {}), {})({})", values.results[0],
                        values.inputs[1], blocks_here(place), first_class(place), values.inputs[0],
                        values.gradients[0]));
}

/// Rows of the whole batch, over which the loss is a mean.
std::int64_t rows_of_loss(const Place& place) {
  const auto& shape = place.input(0).shape;
  const std::size_t beyond = reads_statistics(place.op()) ? 2 : 1;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + beyond < shape.size(); ++d) rows *= shape[d];
  return rows;
}

std::string loss_of(const Place& place, const std::string& x, const Values& values) {
  if (reads_statistics(place.op())) return fmt::format("loss_of_statistics({}, {})", x, rows_of_loss(place));
  return fmt::format("cross_entropy({}, {}, {})", x, values.inputs[1], rows_of_loss(place));
}

Expected<void> check_cross_entropy(const Place& place) {
  if (!place.op().inputs[0].saved && place.output(0).requires_gradient)
    return place.refuse("backward would read an operand that the model does not keep");
  return {};
}

void forward_cross_entropy(const Place& place, const Values& values, Lines& lines) {
  lines.add(fmt::format("{} = {}", values.outputs[0], loss_of(place, values.inputs[0], values)));
}

void backward_cross_entropy(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  lines.add(fmt::format("{}, = back(lambda x: {}, {})({})", values.results[0], loss_of(place, "x", values),
                        values.inputs[0], values.gradients[0]));
}

/// The dimension along which operands or results are parts of the whole; -1: not just one, or one that is walked.
int parted_dimension(const Place& place, const Access& whole, const std::vector<Access>& parts) {
  const auto& shape = place.model.tensors[whole.tensor].shape;
  int found = -1;
  for (const Access& part : parts) {
    const auto& own = place.model.tensors[part.tensor].shape;
    if (own.size() != shape.size()) return -1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (own[d] == shape[d]) continue;
      if ((found >= 0 && found != static_cast<int>(d)) || !whole.walks[d].empty()) return -1;
      found = static_cast<int>(d);
    }
  }
  return found;
}

std::vector<Access> results_of(const Operator& op) { return op.outputs; }

Expected<void> check_slice(const Place& place) {
  const Operator& op = place.op();
  const int along = parted_dimension(place, op.inputs[0], results_of(op));
  if (along < 0) return place.refuse("its parts are not consecutive along one whole dimension");
  std::int64_t all = 0;
  for (std::size_t o = 0; o < op.outputs.size(); ++o) all += place.output(o).shape[static_cast<std::size_t>(along)];
  const Tensor& table = place.input(0);
  const bool covers = op.detail == "Split" && all == table.shape[static_cast<std::size_t>(along)];
  const bool positions = op.outputs.size() == 1 && along == 0 && table.role == TensorRole::parameter &&
                         table.dims.front() == DimName::sequence;
  if (!covers && !positions) return place.refuse("the model does not tell where it begins");
  return {};
}

void forward_slice(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  const auto along = static_cast<std::size_t>(parted_dimension(place, op.inputs[0], results_of(op)));
  if (op.outputs.size() == 1) {
    lines.add(fmt::format("{} = lax.slice_in_dim({}, FIRST_POSITION, FIRST_POSITION + {}, axis={})", values.outputs[0],
                          values.inputs[0], place.output(0).shape[along], along));
    return;
  }
  std::vector<std::int64_t> cuts;
  for (std::size_t o = 0; o + 1 < op.outputs.size(); ++o)
    cuts.push_back((cuts.empty() ? 0 : cuts.back()) + place.output(o).shape[along]);
  lines.add(
      fmt::format("{} = jnp.split({}, {}, axis={})", joined(values.outputs), values.inputs[0], tuple_of(cuts), along));
}

void backward_slice(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  const Operator& op = place.op();
  const auto along = static_cast<std::size_t>(parted_dimension(place, op.inputs[0], results_of(op)));
  if (op.outputs.size() == 1) {
    lines.add(fmt::format("{} = jnp.zeros({}, {}.dtype).at[FIRST_POSITION:FIRST_POSITION + {}].set({})",
                          values.results[0], tuple_of(place.shape(op.inputs[0])), values.gradients[0],
                          place.output(0).shape[along], values.gradients[0]));
    return;
  }
  std::vector<std::string> parts;
  for (std::size_t o = 0; o < op.outputs.size(); ++o)
    parts.push_back(values.gradients[o].empty()
                        ? fmt::format("jnp.zeros({}, jnp.float32)", tuple_of(place.shape(op.outputs[o])))
                        : values.gradients[o]);
  lines.add(fmt::format("{} = jnp.concatenate([{}], axis={})", values.results[0], joined(parts), along));
}

Expected<void> check_concat(const Place& place) {
  if (parted_dimension(place, place.op().outputs[0], place.op().inputs) < 0)
    return place.refuse("its operands are not parts along one whole dimension");
  return {};
}

void forward_concat(const Place& place, const Values& values, Lines& lines) {
  lines.add(fmt::format("{} = jnp.concatenate([{}], axis={})", values.outputs[0], joined(values.inputs),
                        parted_dimension(place, place.op().outputs[0], place.op().inputs)));
}

void backward_concat(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  const auto along = static_cast<std::size_t>(parted_dimension(place, op.outputs[0], op.inputs));
  std::int64_t at = 0;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const std::int64_t end = at + place.input(k).shape[along];
    if (!values.results[k].empty())
      lines.add(fmt::format("{} = lax.slice_in_dim({}, {}, {}, axis={})", values.results[k], values.gradients[0], at,
                            end, along));
    at = end;
  }
}

}  // namespace

const Formula kEmbedding{nothing_to_check, forward_embedding, backward_embedding};
const Formula kLossStatistics{nothing_to_check, forward_statistics, backward_statistics};
const Formula kCrossEntropy{check_cross_entropy, forward_cross_entropy, backward_cross_entropy};
const Formula kSlice{check_slice, forward_slice, backward_slice};
const Formula kConcat{check_concat, forward_concat, backward_concat};

}  // namespace turnpoint::jax
