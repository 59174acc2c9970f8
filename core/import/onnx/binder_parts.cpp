// SPDX-License-Identifier: Apache-2.0
// Concatenation, splitting, slicing and gathering: results that hold a part of their operands, or several of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/import/onnx/binder.h"

namespace turnpoint::onnx {

void Binder::on_concat(const Node& node) {
  if (node.inputs.empty() || !needs(node, node.inputs.size())) return;
  const std::size_t rank = shape(node, 0).size();
  const auto along = axis(node, node.integer("axis", 1), rank);
  if (!along) return;
  if (node.inputs.size() == 1) return alias(node, 0, node.inputs[0]);
  std::vector<TensorId> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Shape own = shape(node, i);
    const bool empty = std::find(own.begin(), own.end(), 0) != own.end();
    if (empty) continue;
    auto x = operand(node, i);
    if (plan_.repeated.count(node.input(i)) && own.size() == rank) {
      Shape wanted = own;
      wanted[0] = batch_;
      x = builder_->expand(operator_name(node) + "/batch", x, wanted);
    }
    // In a file of batch 1 a constant part was never repeated for the batch.
    if (reference_ && plan_.fixed_batch == 1 && own.size() == rank && *along != 0 && own[0] == 1) {
      Shape wanted = own;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (shape(node, k).size() == rank && old_shape(node.input(k)) && (*old_shape(node.input(k)))[0] == 1)
          wanted[0] = shape(node, k)[0];
      }
      if (wanted != own) x = builder_->expand(operator_name(node) + "/batch", x, wanted);
    }
    operands.push_back(x);
  }
  if (operands.empty()) return fail(node, "concatenates nothing");
  set(node, 0, builder_->concat(operator_name(node), operands, static_cast<int>(*along)));
}

void Binder::on_split(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape from = shape(node, 0);
  const auto along = axis(node, node.integer("axis", 0), from.size());
  if (!along) return;
  if (list_unknown(node, "split", 1)) return fail(node, "its sizes are not constant");
  auto sizes = list(node, "split", 1).value_or(Shape{});
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  if (sizes.empty()) {
    const std::int64_t chunk = (from[*along] + parts - 1) / parts;
    for (std::int64_t k = 0; k < parts; ++k) sizes.push_back(std::min(chunk, from[*along] - k * chunk));
  }
  if (sizes.size() != node.outputs.size()) return fail(node, "has another number of sizes than of outputs");
  if (sizes.size() == 1) return alias(node, 0, node.inputs[0]);
  if (const auto full = std::find(sizes.begin(), sizes.end(), from[*along]);
      full != sizes.end() &&
      std::count(sizes.begin(), sizes.end(), 0) + 1 == static_cast<std::ptrdiff_t>(sizes.size())) {
    // All in one part; the others hold nothing, and whatever joins them again passes them over.
    Shape nothing = from;
    nothing[*along] = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      if (sizes[k] != 0)
        alias(node, k, node.inputs[0]);
      else if (node.output(k) >= 0)
        set_unknown_constant(node.outputs[k], nothing, in(node, 0).type);
    }
    return;
  }
  const Value value = in(node, 0);
  const bool whole = is_whole(value.groups, *along);
  const auto x = whole && !value.groups.empty() ? value.tensor : operand(node, 0);
  const auto groups = whole ? value.groups : std::vector<std::uint8_t>();
  const auto made =
      builder_->split(operator_name(node), x, static_cast<int>(whole ? first_of(groups, *along) : *along), sizes);
  if (*along + 1 == from.size() && !builder_->error()) {
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < made.size(); begin += sizes[k++]) remember_cut(x, begin, made[k]);
  }
  for (std::size_t k = 0; k < made.size() && k < node.outputs.size(); ++k) set(node, k, made[k], groups);
}

/// A list of equal or named parts; SequenceAt picks one by a constant place, as unoptimised graphs of torch.export do.
void Binder::on_split_to_sequence(const Node& node) {
  if (!needs(node, 1) || node.output(0) < 0) return;
  const Shape from = shape(node, 0);
  const auto along = axis(node, node.integer("axis", 0), from.size());
  if (!along) return;
  const auto wanted = constant_integers(node, 1);
  if (has(node, 1) && (!wanted || wanted->empty())) return fail(node, "its sizes are not constant");
  const bool listed = wanted && in(node, 1).shape.size() == 1;
  Shape sizes = listed ? *wanted : Shape();
  const std::int64_t chunk = wanted ? wanted->front() : 1;
  if (!listed && (chunk < 1 || (from[*along] - 1) / chunk >= 4096)) return fail(node, "makes too many parts");
  for (std::int64_t at = 0; !listed && at < from[*along]; at += chunk)
    sizes.push_back(std::min(chunk, from[*along] - at));
  const bool keep = wanted.has_value() || node.integer("keepdims", 1) != 0;
  if (std::any_of(sizes.begin(), sizes.end(), [&](auto size) { return size != sizes.front(); }) && scratch_)
    return fail(node, "splits a constant into unequal parts");
  Sequence parts{{}, in(node, 0).groups, {}};
  if (scratch_) {
    Shape part = from;
    part[*along] = sizes.front();
    if (!keep) part.erase(part.begin() + static_cast<std::ptrdiff_t>(*along));
    return set_unknown_constant(node.outputs[0], part, in(node, 0).type);
  }
  const bool whole = is_whole(parts.groups, *along);
  if (!whole) parts.groups.clear();
  const auto x = whole && !parts.groups.empty() ? in(node, 0).tensor : operand(node, 0);
  const auto at = whole ? first_of(parts.groups, *along) : *along;
  parts.tensors = sizes.size() == 1 ? std::vector<TensorId>{x}
                                    : builder_->split(operator_name(node), x, static_cast<int>(at), sizes);
  if (builder_->error()) return;
  if (*along + 1 == from.size()) {
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < parts.tensors.size(); begin += sizes[k++])
      if (sizes.size() > 1) remember_cut(x, begin, parts.tensors[k]);
  }
  if (!keep) parts.dropped = static_cast<std::int64_t>(*along);
  set(node, 0, parts.tensors.front(), parts.groups);
  sequences_[node.outputs[0]] = std::move(parts);
}

void Binder::on_sequence_at(const Node& node) {
  if (!needs(node, 2)) return;
  if (in(node, 0).kind == Value::Kind::constant) return alias(node, 0, node.inputs[0]);
  const auto found = sequences_.find(node.inputs[0]);
  const auto place = scalar(node, 1);
  if (found == sequences_.end() || !place) return fail(node, "picks from a sequence that is not known here");
  const auto& parts = found->second;
  const auto count = static_cast<double>(parts.tensors.size());
  const double k = *place < 0 ? *place + count : *place;
  if (!(k >= 0 && k < count)) return fail(node, "picks beyond the end of its sequence");
  const TensorId part = parts.tensors[static_cast<std::size_t>(k)];
  if (!parts.dropped) return set(node, 0, part, parts.groups);
  Shape target = builder_->tensor(part).shape;
  target.erase(target.begin() + static_cast<std::ptrdiff_t>(*parts.dropped));
  set(node, 0, builder_->reshape(operator_name(node), part, target));
}

void Binder::on_slice(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape from = shape(node, 0);
  const auto starts = list(node, "starts", 1), ends = list(node, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) return fail(node, "its bounds are not constant");
  auto axes = list(node, "axes", 3);
  const auto steps = list(node, "steps", 4);
  if (list_unknown(node, "axes", 3) || list_unknown(node, "steps", 4)) return fail(node, "its bounds are not constant");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), std::int64_t{0});
  }
  if (axes->size() != starts->size() || (steps && steps->size() != starts->size()))
    return fail(node, "its bounds and axes differ in number");
  Shape target = from;
  std::optional<std::int64_t> last_begin;  // of a plain cut of the last dimension
  for (std::size_t k = 0; k < axes->size(); ++k) {
    const auto at = axis(node, (*axes)[k], from.size());
    if (!at) return;
    const std::int64_t size = from[*at], step = steps ? (*steps)[k] : 1;
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
      return fail(node, "has a step that is out of range");
    const Shape* old = old_shape(node.input(0));
    const bool rebound = old && (*old)[*at] != size && step == 1 && (*starts)[k] == 0 && (*ends)[k] == (*old)[*at];
    if (rebound) continue;  // the whole of the old batch is the whole of the new one
    const auto clamp = [&](std::int64_t v, std::int64_t low, std::int64_t high) {
      return std::clamp(v < 0 ? (v < -size ? low : v + size) : v, low, high);
    };
    const std::int64_t begin = step > 0 ? clamp((*starts)[k], 0, size) : clamp((*starts)[k], 0, size - 1);
    const std::int64_t end = step > 0 ? clamp((*ends)[k], 0, size) : clamp((*ends)[k], -1, size - 1);
    const std::int64_t span = step > 0 ? end - begin : begin - end, stride = std::abs(step);
    target[*at] = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (axes->size() == 1 && *at + 1 == from.size() && step == 1) last_begin = begin;
    if (target[*at] == 0 && !only_joined(node.output(0)))
      return fail(node, "leaves nothing of a dimension of size " + std::to_string(size));
  }
  // What is left of a rotation over all channels: nothing, which a concatenation passes over.
  const bool nothing = std::find(target.begin(), target.end(), 0) != target.end();
  if (nothing && node.output(0) < 0) return;
  if (nothing)
    return set_unknown_constant(node.outputs[0], target, in(node, 0).type);
  if (target == from && !steps) return alias(node, 0, node.inputs[0]);
  const Value& value = in(node, 0);
  bool whole = value.kind == Value::Kind::tensor && !value.groups.empty();
  Shape parts = whole ? builder_->tensor(value.tensor).shape : Shape();
  for (std::size_t d = 0; whole && d < from.size(); ++d) {
    if (target[d] == from[d]) continue;
    whole = value.groups[d] == 1;
    parts[first_of(value.groups, d)] = target[d];
  }
  if (whole) return set(node, 0, builder_->slice(operator_name(node), "Slice", value.tensor, parts), value.groups);
  const auto x = operand(node, 0);
  const auto part = builder_->slice(operator_name(node), "Slice", x, target);
  if (last_begin) remember_cut(x, *last_begin, part);
  set(node, 0, part);
}

bool Binder::only_joined(int value) const {
  if (value < 0 || graph_.values[value].result || graph_.values[value].consumers.empty()) return false;
  const auto& readers = graph_.values[value].consumers;
  return std::all_of(readers.begin(), readers.end(), [&](int n) { return graph_.nodes[n].kind == "Concat"; });
}

void Binder::remember_cut(TensorId from, std::int64_t begin, TensorId part) {
  if (!scratch_ && builder_->tensor(part).shape.size() == builder_->tensor(from).shape.size())
    cuts_[from][begin] = part;
}

void Binder::interleave_fused_projections() {
  for (const auto& [whole, parts] : cuts_) {
    std::vector<TensorId> in_order;
    std::int64_t next = 0;
    bool result = false;
    for (const auto& [begin, part] : parts) {
      if (begin != next) break;
      next += real_.tensor(part).shape.back();
      in_order.push_back(part);
    }
    for (const int value : graph_.results) result = result || values_[value].tensor == whole;
    if (!result && in_order.size() == parts.size() && next == real_.tensor(whole).shape.back())
      real_.interleave_parts(whole, in_order);
  }
}

void Binder::on_pad(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape from = shape(node, 0);
  auto pads = node.attribute("paddings") ? std::optional<Shape>(node.integers("paddings")) : list(node, "pads", 1);
  if (!pads) return fail(node, "its pads are not constant");
  const auto axes = constant_integers(node, 3);
  Shape target = from;
  const std::size_t count = axes ? axes->size() : from.size();
  if (pads->size() != 2 * count) return fail(node, "its pads do not fit its input");
  for (std::size_t k = 0; k < count; ++k) {
    const auto at = axes ? axis(node, (*axes)[k], from.size()) : std::optional<std::size_t>(k);
    if (!at) return;
    const std::int64_t before = (*pads)[k], after = (*pads)[k + count];
    constexpr std::int64_t kLimit = std::int64_t{1} << 40;
    if (std::min(before, after) < -kLimit || std::max(before, after) > kLimit) return fail(node, "a padding is out of range");
    target[*at] += before + after;
    if (target[*at] < 1) return fail(node, "pads away a whole dimension");
  }
  if (target == from) return alias(node, 0, node.inputs[0]);
  const auto x = operand(node, 0);
  set(node, 0, builder_->slice(operator_name(node), "Pad", x, target));
}

void Binder::on_resize(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape from = shape(node, 0);
  Shape target = from;
  const bool resize = node.kind == "Resize";
  const std::size_t scale_slot = resize && graph_.opset >= 11 ? 2 : 1;
  std::vector<double> scales;
  if (const auto* attribute = node.attribute("scales")) scales = attribute->floats;
  if (has(node, scale_slot) && in(node, scale_slot).data && in(node, scale_slot).data->floating())
    scales = in(node, scale_slot).data->reals;
  if (const auto* h = node.attribute("height_scale"); h && h->f && from.size() == 4)
    scales = {1, 1, *h->f, node.real("width_scale", 1)};
  const auto sizes = resize && graph_.opset >= 11 ? constant_integers(node, 3) : std::nullopt;
  const auto axes = node.integers("axes");
  const std::size_t count = sizes ? sizes->size() : scales.size();
  if (count == 0 || (axes.empty() ? count != from.size() : count != axes.size()))
    return fail(node, "its sizes are not constant or do not fit its input");
  for (std::size_t k = 0; k < count; ++k) {
    const auto at = axes.empty() ? std::optional<std::size_t>(k) : axis(node, axes[k], from.size());
    if (!at) return;
    const Shape* old = old_shape(node.input(0));
    const double size =
        sizes ? static_cast<double>((*sizes)[k]) : std::floor(static_cast<double>(from[*at]) * scales[k] + 1e-6);
    if (sizes && old && (*old)[*at] != from[*at] && (*sizes)[k] == (*old)[*at]) continue;
    if (!(size >= 1 && size < 1e12)) return fail(node, "a size is out of range");
    target[*at] = static_cast<std::int64_t>(size);
  }
  if (target == from) return alias(node, 0, node.inputs[0]);
  const auto x = operand(node, 0);
  set(node, 0, builder_->slice(operator_name(node), node.kind, x, target));
}

void Binder::on_space_depth(const Node& node) {
  if (!needs(node, 1)) return;
  const Shape x = shape(node, 0);
  const auto block = node.integer("blocksize", 0);
  if (x.size() != 4 || block < 1 || block > 1024) return fail(node, "needs four dimensions and a block size");
  const bool to_depth = node.kind == "SpaceToDepth";
  const auto square = block * block;
  if (to_depth ? x[2] % block != 0 || x[3] % block != 0 : x[1] % square != 0)
    return fail(node, "the block size does not divide its input");
  const Shape out = to_depth ? Shape{x[0], x[1] * square, x[2] / block, x[3] / block}
                             : Shape{x[0], x[1] / square, x[2] * block, x[3] * block};
  const auto data = operand(node, 0);
  set(node, 0, builder_->slice(operator_name(node), node.kind, data, out));
}

void Binder::on_gather(const Node& node) {
  if (!needs(node, 2)) return;
  const Shape data = shape(node, 0), indices = shape(node, 1);
  const auto along = axis(node, node.integer("axis", 0), data.size());
  if (!along) return;
  const bool constant_indices = in(node, 1).kind == Value::Kind::constant;
  Value& table = in(node, 0);
  if (*along == 0 && data.size() == 2 && !constant_indices && is_floating(table.type) &&
      table.kind != Value::Kind::tensor && !plan_.tables.count(node.input(0))) {
    const auto rows = weight(node, 0);
    return set(node, 0, builder_->embedding(operator_name(node), rows, operand(node, 1), "Gather"));
  }
  Shape out(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(*along)), same_rank = data;
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(*along) + 1, data.end());
  const auto picked = element_count(indices);
  if (!picked || out.size() > 32) return fail(node, "its indices have an impossible shape");
  const auto x = operand(node, 0);
  if (!constant_indices) {
    const TensorId operands[] = {x, operand(node, 1)};
    return set(node, 0, builder_->opaque(operator_name(node), "Gather", operands, out, table.type));
  }
  same_rank[*along] = *picked;
  const auto part = builder_->slice(operator_name(node), "Gather", x, same_rank);
  set(node, 0, out == same_rank ? part : builder_->reshape(operator_name(node) + "/view", part, out));
}

}  // namespace turnpoint::onnx
