// SPDX-License-Identifier: Apache-2.0
// Reshapes, transposes, concatenations and cuts.
#include <algorithm>
#include <numeric>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

void Lowering::on_reshape() {
  if (!needs(2)) return;
  MaybeShape shape;
  if (const auto target = constants(1)) {
    shape = *target;
    for (auto& size : *shape) size = size < 1 ? -1 : size;
  } else if (in(1).rank() == 1 && in(1).shape->front() >= 0 && in(1).shape->front() <= 32) {
    shape = Shape(static_cast<std::size_t>(in(1).shape->front()), -1);
  }
  const auto x = plain(0), target = plain(1);
  if (failed()) return;
  set(0, tensor(emit("Reshape", {x, target}, Attributes().set("allowzero", std::int64_t{1})), shape, in(0).type));
}

void Lowering::on_flatten() {
  if (!needs(1)) return;
  const auto x = plain(0);
  if (!failed()) set(0, tensor(emit("Flatten", {x}), Shape{-1, -1}, in(0).type));
}

void Lowering::on_squeeze() {
  if (!needs(1)) return;
  Value& x = in(0);
  auto axes = node_->integers("squeeze_dims");
  if (axes.empty()) axes = node_->integers("axis");
  MaybeShape shape;
  if (x.shape) {
    std::vector<bool> gone(x.rank(), false);
    for (auto& axis : axes) {
      if (axis < 0) axis += static_cast<std::int64_t>(x.rank());
      if (axis < 0 || axis >= static_cast<std::int64_t>(x.rank())) return fail("an axis is out of range");
      gone[static_cast<std::size_t>(axis)] = true;
    }
    const bool complete = std::none_of(x.shape->begin(), x.shape->end(), [](auto size) { return size < 0; });
    if (!axes.empty() || complete) {
      shape.emplace();
      for (std::size_t d = 0; d < x.rank(); ++d) {
        if (axes.empty() ? (*x.shape)[d] != 1 : !gone[d]) shape->push_back((*x.shape)[d]);
      }
    }
  }
  // [n, 1, 1, c] without its two ones is the same in either order.
  const bool same = x.channels_first && x.rank() == 4 && axes == std::vector<std::int64_t>{1, 2};
  Names operands{same ? x.name : plain(x)};
  if (same) axes = {2, 3};
  if (failed()) return;
  if (!axes.empty()) operands.push_back(integers("axes", axes));
  set(0, tensor(emit("Squeeze", operands), shape, x.type));
}

void Lowering::on_expand_dims() {
  if (!needs(2)) return;
  Value& x = in(0);
  const auto axis = constants(1);
  if (!axis || axis->size() != 1) return fail("its axis is not a constant");
  MaybeShape shape = x.shape;
  if (shape) {
    const auto rank = static_cast<std::int64_t>(shape->size()) + 1;
    const auto at = axis->front() < 0 ? axis->front() + rank : axis->front();
    if (at < 0 || at >= rank) return fail("its axis is out of range");
    shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(at), 1);
  }
  const auto name = plain(x);
  if (!failed()) set(0, tensor(emit("Unsqueeze", {name, integers("axes", *axis)}), shape, x.type));
}

void Lowering::on_transpose() {
  if (!needs(2)) return;
  Value& x = in(0);
  const auto order = constants(1);
  if (!order) return fail("its order of dimensions is not a constant");
  const auto rank = order->size();
  std::vector<int> plain_order;
  for (const auto d : *order) {
    if (d < 0 || d >= static_cast<std::int64_t>(rank)) return fail("its order of dimensions is none");
    plain_order.push_back(static_cast<int>(d));
  }
  if (x.shape && x.rank() != rank) return fail("its order of dimensions does not fit its input");
  MaybeShape shape;
  if (x.shape) shape = permuted(*x.shape, plain_order);
  // Between the two orders of an image no element moves: only what the dimensions are called.
  if (x.kind == Value::Kind::tensor && rank >= 4 && x.channels_first && plain_order == to_first(rank))
    return set(0, tensor(x.name, shape, x.type));
  if (x.kind == Value::Kind::tensor && rank >= 4 && x.shape && !x.channels_first && plain_order == to_last(rank) &&
      spatial_last_)
    return set(0, tensor(x.name, shape, x.type, true));
  const auto name = plain(x);
  if (!failed()) set(0, tensor(emit("Transpose", {name}, Attributes().set("perm", *order)), shape, x.type));
}

void Lowering::on_concat() {
  const bool old = node_->op == "Concat";
  if (count() < 2 || !needs(count())) return;
  const std::size_t slot = old ? 0 : count() - 1;
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < count(); ++i) {
    if (i != slot) parts.push_back(i);
  }
  if (parts.size() == 1) return set(0, in(parts[0]));
  const auto axis = axis_of(slot, in(parts[0]));
  if (!axis) return;
  if (fold_concat(parts)) return;
  const bool same_rank = std::all_of(parts.begin(), parts.end(),
                                     [&](auto i) { return in(i).shape && in(i).rank() == in(parts[0]).rank(); });
  const bool any_first = std::any_of(parts.begin(), parts.end(), [&](auto i) { return in(i).channels_first; });
  const bool first_order = same_rank && any_first;
  MaybeShape shape;
  if (same_rank) {
    shape = in(parts[0]).shape;
    auto& size = (*shape)[static_cast<std::size_t>(*axis)];
    for (std::size_t k = 1; k < parts.size(); ++k) {
      const auto own = (*in(parts[k]).shape)[static_cast<std::size_t>(*axis)];
      size = size < 0 || own < 0 || size > (std::int64_t{1} << 48) ? -1 : size + own;
    }
  }
  Names operands;
  for (const auto i : parts) operands.push_back(first_order ? first(in(i)) : plain(i));
  if (failed()) return;
  auto along = *axis;
  if (first_order) {
    const auto order = to_first(in(parts[0]).rank());
    along = std::find(order.begin(), order.end(), static_cast<int>(along)) - order.begin();
  }
  set(0, tensor(emit("Concat", operands, Attributes().set("axis", along)), shape, in(parts[0]).type, first_order));
}

/// A list of whole numbers put together from known ones.
bool Lowering::fold_concat(const std::vector<std::size_t>& parts) {
  std::vector<std::int64_t> values;
  for (const auto i : parts) {
    const auto part = constants(i);
    if (!part || in(i).rank() > 1 || values.size() + part->size() > 64) return false;
    values.insert(values.end(), part->begin(), part->end());
  }
  return set_constant(std::move(values), false, in(parts[0]).type), true;
}

void Lowering::on_pack() {
  if (count() == 0 || !needs(count())) return;
  const auto axis = node_->integer("axis", 0);
  std::vector<std::size_t> parts(count());
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  const bool scalars =
      std::all_of(parts.begin(), parts.end(), [&](auto i) { return in(i).shape && in(i).rank() == 0; });
  if (scalars && fold_concat(parts)) return;
  MaybeShape shape = in(0).shape;
  if (shape) {
    const auto rank = static_cast<std::int64_t>(shape->size()) + 1;
    const auto at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return fail("its axis is out of range");
    shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::int64_t>(count()));
  }
  Names operands;
  const auto axes = integers("axes", {axis});
  for (const auto i : parts) operands.push_back(emit("Unsqueeze", {plain(i), axes}, {}, "part"));
  if (failed()) return;
  set(0, tensor(emit("Concat", operands, Attributes().set("axis", axis)), shape, in(0).type));
}

void Lowering::cut(Value& x, std::int64_t axis, std::int64_t parts, const std::string& sizes, bool squeeze) {
  if (parts < 1 || parts > 65536) return fail("its number of parts is out of range");
  const bool first_order = x.channels_first && !squeeze;
  const auto name = first_order ? x.name : plain(x);
  if (failed()) return;
  auto along = axis;
  MaybeShape shape = x.shape;
  if (shape) {
    if (along < 0) along += static_cast<std::int64_t>(x.rank());
    if (along < 0 || along >= static_cast<std::int64_t>(x.rank())) return fail("its axis is out of range");
    auto& size = (*shape)[static_cast<std::size_t>(along)];
    size = size > 0 && size % parts == 0 && sizes.empty() ? size / parts : -1;
    if (squeeze) shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(along));
    if (first_order) {
      const auto order = to_first(x.rank());
      along = std::find(order.begin(), order.end(), static_cast<int>(along)) - order.begin();
    }
  }
  if (parts == 1 && !squeeze) return set(0, x);
  Names outputs, operands{name};
  if (!sizes.empty()) operands.push_back(sizes);
  for (std::int64_t k = 0; k < parts; ++k)
    outputs.push_back(out_.unique(k == 0 && !squeeze ? node_->name : node_->name + ":" + std::to_string(k)));
  Attributes attributes;
  attributes.set("axis", along).set("num_outputs", parts);
  const DataType type = x.type;
  out_.node({"Split", "", node_->name, operands, outputs, attributes});
  const auto axes = squeeze ? integers("axes", {along}) : std::string();
  for (std::int64_t k = 0; k < parts; ++k) {
    auto part = outputs[static_cast<std::size_t>(k)];
    if (squeeze) part = emit("Squeeze", {part, axes}, {}, "part");
    set(static_cast<std::size_t>(k), tensor(part, shape, type, first_order));
  }
}

void Lowering::on_unpack() {
  if (needs(1)) cut(in(0), node_->integer("axis", 0), node_->integer("num", 0), "", true);
}

void Lowering::on_split() {
  const bool sized = node_->op == "SplitV";
  if (!needs(sized ? 3 : 2)) return;
  Value& x = in(sized ? 0 : 1);
  const auto axis = axis_of(sized ? 2 : 0, x);
  if (!axis) return;
  std::string sizes;
  if (sized) {
    auto list = constants(1);
    if (!list) return fail("its sizes are not constant");
    for (auto& size : *list) {
      if (size >= 0) continue;
      const auto whole = x.shape ? (*x.shape)[static_cast<std::size_t>(*axis)] : -1;
      if (whole < 0) return fail("leaves a size open that does not follow from its input");
      size = whole;
      for (const auto& other : *list) size -= &other == &size || other < 0 || other > whole ? 0 : other;
    }
    sizes = integers("sizes", *list);
  }
  cut(x, *axis, node_->integer("num_split", 0), sizes, false);
}

void Lowering::on_tile() {
  if (!needs(2)) return;
  MaybeShape shape = in(0).shape;
  if (shape) std::fill(shape->begin(), shape->end(), -1);
  const auto x = plain(0), repeats = plain(1);
  if (!failed()) set(0, tensor(emit("Tile", {x, repeats}), shape, in(0).type));
}

void Lowering::on_broadcast_to() {
  if (!needs(2)) return;
  const auto x = plain(0), target = plain(1);
  if (!failed()) set(0, tensor(emit("Expand", {x, target}), std::nullopt, in(0).type));
}

void Lowering::on_pad() {
  if (!needs(2)) return;
  Value& x = in(0);
  const auto pads = constants(1);
  const auto& layout = in(1).shape;
  if (pads && x.shape && pads->size() == 2 * x.rank()) {
    const bool first_order = x.channels_first;
    const auto order = first_order ? to_first(x.rank()) : std::vector<int>();
    std::vector<std::int64_t> list;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      for (std::size_t d = 0; d < x.rank(); ++d)
        list.push_back((*pads)[2 * (first_order ? static_cast<std::size_t>(order[d]) : d) + side]);
    }
    Shape shape = *x.shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      constexpr std::int64_t kLimit = std::int64_t{1} << 40;
      const std::int64_t before = (*pads)[2 * d], after = (*pads)[2 * d + 1];
      const bool known = shape[d] >= 0 && std::min(before, after) > -kLimit && std::max(before, after) < kLimit;
      if (before != 0 || after != 0) shape[d] = known ? shape[d] + before + after : -1;
    }
    const auto name = first_order ? x.name : plain(x);
    if (!failed()) set(0, tensor(emit("Pad", {name, integers("pads", list)}), shape, x.type, first_order));
    return;
  }
  if (layout && layout->size() != 2) return fail("its paddings are no table of two columns");
  const auto name = plain(x);
  const auto sides = emit("Transpose", {plain(1)}, Attributes().set("perm", {1, 0}), "sides");
  const auto flat = emit("Reshape", {sides, integers("flat", {-1})}, {}, "pads");
  MaybeShape shape = x.shape;
  if (shape) std::fill(shape->begin(), shape->end(), -1);
  if (!failed()) set(0, tensor(emit("Pad", {name, flat}), shape, x.type));
}

void Lowering::add_views(Table& table) {
  add_shapes(table);
  const auto add = [&](Handler handler, std::initializer_list<const char*> ops) {
    for (const char* op : ops) table[op] = handler;
  };
  add(&Lowering::on_reshape, {"Reshape"});
  add(&Lowering::on_flatten, {"Flatten"});
  add(&Lowering::on_squeeze, {"Squeeze"});
  add(&Lowering::on_expand_dims, {"ExpandDims"});
  add(&Lowering::on_transpose, {"Transpose"});
  add(&Lowering::on_concat, {"Concat", "ConcatV2"});
  add(&Lowering::on_pack, {"Pack"});
  add(&Lowering::on_unpack, {"Unpack"});
  add(&Lowering::on_split, {"Split", "SplitV"});
  add(&Lowering::on_tile, {"Tile"});
  add(&Lowering::on_broadcast_to, {"BroadcastTo"});
  add(&Lowering::on_pad, {"Pad", "PadV2", "MirrorPad"});
}

}  // namespace turnpoint::tensorflow
