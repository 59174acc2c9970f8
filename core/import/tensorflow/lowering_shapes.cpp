// SPDX-License-Identifier: Apache-2.0
// Slices, gathers and the arithmetic of shapes.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

void Lowering::on_slice() {
  if (!needs(3)) return;
  Value& x = in(0);
  const auto begin = constants(1), size = constants(2);
  MaybeShape shape;
  if (const auto& list = in(2).shape; list && list->size() == 1 && list->front() >= 0 && list->front() <= 32)
    shape = Shape(static_cast<std::size_t>(list->front()), -1);
  else if (x.shape)
    shape = Shape(x.rank(), -1);
  const auto name = plain(x);
  if (begin && size) {
    if (begin->size() != size->size() || begin->size() > 32) return fail("its begin and size do not fit each other");
    std::vector<std::int64_t> ends;
    for (std::size_t d = 0; d < size->size(); ++d) {
      if ((*begin)[d] < 0 || (*begin)[d] > (1LL << 48) || (*size)[d] > (1LL << 48))
        return fail("its bounds are out of range");
      ends.push_back((*size)[d] < 0 ? std::numeric_limits<std::int64_t>::max() : (*begin)[d] + (*size)[d]);
    }
    shape = *size;
    const auto from = integers("begin", *begin), to = integers("end", ends);
    if (!failed()) set(0, tensor(emit("Slice", {name, from, to}), shape, x.type));
    return;
  }
  const auto from = plain(1);
  const auto to = emit("Add", {from, plain(2)}, {}, "end");
  if (!failed()) set(0, tensor(emit("Slice", {name, from, to}), shape, x.type));
}

/// One bound per entry: a number of the file, or element `d` of a computed list.
std::string Lowering::bound(std::size_t i, std::size_t d, const char* name, std::int64_t offset) {
  const auto index = integers("index", {static_cast<std::int64_t>(d)});
  auto one = emit("Gather", {plain(i), index}, Attributes().set("axis", std::int64_t{0}), name);
  if (offset != 0) one = emit("Add", {one, integers("step", {offset})}, {}, name);
  return one;
}

void Lowering::on_strided_slice() {
  if (!needs(3)) return;
  Value& x = in(0);
  const auto begin = constants(1), end = constants(2);
  const auto steps = has(3) ? constants(3) : std::optional<std::vector<std::int64_t>>();
  std::size_t entries = begin ? begin->size() : end ? end->size() : 0;
  for (const std::size_t i : {1, 2}) {
    if (entries == 0 && in(i).rank() == 1 && in(i).shape->front() > 0)
      entries = static_cast<std::size_t>(std::min<std::int64_t>(in(i).shape->front(), 64));
  }
  if (entries == 0 || entries > 32 || (has(3) && (!steps || steps->size() != entries)) ||
      (begin && begin->size() != entries) || (end && end->size() != entries))
    return fail("its bounds do not fit each other or are not known in number");
  const auto mask = [&](const char* key) { return static_cast<std::uint64_t>(node_->integer(key, 0)); };
  const auto begin_mask = mask("begin_mask"), end_mask = mask("end_mask"), ellipsis = mask("ellipsis_mask"),
             fresh = mask("new_axis_mask"), shrink = mask("shrink_axis_mask");
  std::size_t consumed = 0;  // dimensions of x that entries name
  for (std::size_t k = 0; k < entries; ++k) consumed += (fresh >> k & 1) || (ellipsis >> k & 1) ? 0 : 1;
  if (ellipsis != 0 && !x.shape && ellipsis >> (entries - 1) == 0)
    return fail("has an ellipsis, and the number of its dimensions is not known");
  if (x.shape && consumed > x.rank()) return fail("has more entries than its input has dimensions");
  if (fold_strided(begin, end, steps, entries, shrink)) return;

  Names from, to;
  std::vector<std::int64_t> axes, strides, squeezed, added;
  std::size_t dimension = 0, made = 0;
  MaybeShape shape = x.shape ? MaybeShape(Shape{}) : std::nullopt;
  for (std::size_t k = 0; k < entries; ++k) {
    if (ellipsis >> k & 1) {
      const std::size_t skipped = x.shape ? x.rank() - consumed : 0;
      for (std::size_t s = 0; s < skipped; ++s) shape->push_back((*x.shape)[dimension + s]);
      dimension += skipped;
      made += skipped;
      continue;
    }
    if (fresh >> k & 1) {
      added.push_back(static_cast<std::int64_t>(made++));
      if (shape) shape->push_back(1);
      continue;
    }
    const std::int64_t stride = steps ? (*steps)[k] : 1;
    const bool point = shrink >> k & 1;
    const bool open_begin = !point && (begin_mask >> k & 1), open_end = !point && (end_mask >> k & 1);
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max(),
                   kLeast = std::numeric_limits<std::int64_t>::min() + 1;
    if (!(open_begin && open_end && stride == 1)) {
      axes.push_back(static_cast<std::int64_t>(dimension));
      strides.push_back(point ? 1 : stride);
      from.push_back(open_begin ? integers("begin", {stride > 0 ? 0 : kMost})
                     : begin    ? integers("begin", {(*begin)[k]})
                                : bound(1, k, "begin", 0));
      const bool last = point && begin && (*begin)[k] == -1;
      to.push_back(open_end || last ? integers("end", {stride > 0 || last ? kMost : kLeast})
                   : point && begin ? integers("end", {(*begin)[k] == kMost ? kMost : (*begin)[k] + 1})
                   : point          ? bound(1, k, "end", 1)
                   : end            ? integers("end", {(*end)[k]})
                                    : bound(2, k, "end", 0));
    }
    if (point) {
      squeezed.push_back(static_cast<std::int64_t>(dimension));
    } else {
      if (shape) shape->push_back(open_begin && open_end && stride == 1 ? (*x.shape)[dimension] : -1);
      ++made;
    }
    ++dimension;
  }
  if (shape)
    shape->insert(shape->end(), x.shape->begin() + static_cast<std::ptrdiff_t>(std::min(dimension, x.rank())),
                  x.shape->end());
  auto y = plain(x);
  if (failed()) return;
  const auto join = [&](const Names& parts, const char* suffix) {
    return parts.size() == 1 ? parts[0] : emit("Concat", parts, Attributes().set("axis", std::int64_t{0}), suffix);
  };
  if (!axes.empty())
    y = emit("Slice", {y, join(from, "begin"), join(to, "end"), integers("axes", axes), integers("strides", strides)},
             {}, squeezed.empty() && added.empty() ? "" : "slice");
  if (!squeezed.empty()) y = emit("Squeeze", {y, integers("squeezed", squeezed)}, {}, added.empty() ? "" : "squeeze");
  if (!added.empty()) y = emit("Unsqueeze", {y, integers("added", added)});
  set(0, tensor(y, shape, x.type));
}

/// One element of a list of whole numbers that the file knows: what shape arithmetic does most.
bool Lowering::fold_strided(const std::optional<std::vector<std::int64_t>>& begin,
                            const std::optional<std::vector<std::int64_t>>& end,
                            const std::optional<std::vector<std::int64_t>>& steps, std::size_t entries,
                            std::uint64_t shrink) {
  const auto values = constants(0);
  if (!values || in(0).rank() != 1 || !begin || !end || entries != 1 || shrink != 1 || (steps && steps->front() != 1))
    return false;
  const auto size = static_cast<std::int64_t>(values->size());
  const auto at = begin->front() < 0 ? begin->front() + size : begin->front();
  if (at < 0 || at >= size) return false;
  return set_constant({(*values)[static_cast<std::size_t>(at)]}, true, in(0).type), true;
}

void Lowering::on_shape() {
  if (!needs(1)) return;
  for (std::size_t i = 0; i < count(); ++i) {
    Value& x = in(i);
    const bool turned = x.kind == Value::Kind::tensor && x.channels_first;
    auto y = emit("Shape", {turned ? x.name : plain(x)}, {}, turned ? "stored" : "");
    if (failed()) return;
    if (turned) {
      const auto order = to_last(x.rank());
      y = emit("Gather", {y, integers("order", {order.begin(), order.end()})},
               Attributes().set("axis", std::int64_t{0}));
    }
    set(i, tensor(y, x.shape ? MaybeShape(Shape{static_cast<std::int64_t>(x.rank())}) : std::nullopt, DataType::i64));
  }
}

void Lowering::on_rank() {
  if (!needs(1)) return;
  if (in(0).shape) return set_constant({static_cast<std::int64_t>(in(0).rank())}, true, DataType::i32);
  const auto shape = emit("Shape", {plain(0)}, {}, "shape");
  if (!failed()) set(0, tensor(emit("Size", {shape}), Shape{}, DataType::i64));
}

void Lowering::on_size() {
  if (!needs(1)) return;
  const auto x = plain(0);
  if (!failed()) set(0, tensor(emit("Size", {x}), Shape{}, DataType::i64));
}

void Lowering::on_fill() {
  if (!needs(2)) return;
  MaybeShape shape;
  if (const auto dims = constants(0))
    shape = *dims;
  else if (in(0).rank() == 1 && in(0).shape->front() >= 0 && in(0).shape->front() <= 32)
    shape = Shape(static_cast<std::size_t>(in(0).shape->front()), -1);
  const auto dims = plain(0);
  const auto* value = constant(1);
  Attributes attributes;
  if (value && value->shape.empty()) {
    TensorValue one = *value;
    one.shape = {1};
    attributes.tensor("value", one);
  }
  if (!failed()) set(0, tensor(emit("ConstantOfShape", {dims}, attributes), shape, in(1).type));
}

void Lowering::on_like() {
  if (!needs(1)) return;
  Value& x = in(0);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto dims = emit("Shape", {first_order ? x.name : plain(x)}, {}, "shape");
  TensorValue one{x.type, {1}, true, {}, {}};
  const bool ones = node_->op == "OnesLike";
  if (is_floating(x.type))
    one.reals = {ones ? 1.0 : 0.0};
  else
    one.integers = {ones ? 1 : 0};
  if (!failed())
    set(0, tensor(emit("ConstantOfShape", {dims}, Attributes().tensor("value", one)), x.shape, x.type, first_order));
}

void Lowering::on_random() {
  if (!needs(1)) return;
  MaybeShape shape;
  if (const auto dims = constants(0))
    shape = *dims;
  else if (in(0).rank() == 1 && in(0).shape->front() >= 0 && in(0).shape->front() <= 32)
    shape = Shape(static_cast<std::size_t>(in(0).shape->front()), -1);
  const auto dims = plain(0);
  const auto* type = node_->attribute("dtype");
  const DataType made = type && type->type ? *type->type : DataType::f32;
  // Drawn anew in every step, so no weight: numbers as a large constant of no known value.
  TensorValue unknown{made, {1}, false, {}, {}};
  if (!failed()) set(0, tensor(emit("ConstantOfShape", {dims}, Attributes().tensor("value", unknown)), shape, made));
}

void Lowering::on_range() {
  if (!needs(3)) return;
  const auto from = constants(0), to = constants(1), step = constants(2);
  if (from && to && step && from->size() == 1 && to->size() == 1 && step->size() == 1 && step->front() != 0 &&
      std::min(from->front(), to->front()) >= -64 && std::max(from->front(), to->front()) <= 64) {
    std::vector<std::int64_t> values;
    for (auto v = from->front(); step->front() > 0 ? v < to->front() : v > to->front();
         v += std::clamp<std::int64_t>(step->front(), -8192, 8192))
      values.push_back(v);
    if (!values.empty()) return set_constant(std::move(values), false, in(0).type);
  }
  const auto a = plain(0), b = plain(1), c = plain(2);
  if (!failed()) set(0, tensor(emit("Range", {a, b, c}), Shape{-1}, in(0).type));
}

void Lowering::on_gather() {
  if (!needs(2)) return;
  Value &x = in(0), &indices = in(1);
  std::int64_t axis = 0;
  if (node_->integer("batch_dims", 0) != 0) return on_unknown();
  if (has(2)) {
    const auto wanted = axis_of(2, x);
    if (!wanted) return;
    axis = *wanted;
  }
  MaybeShape shape;
  if (x.shape && indices.shape && axis >= 0 && axis < static_cast<std::int64_t>(x.rank())) {
    shape = Shape(x.shape->begin(), x.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    shape->insert(shape->end(), indices.shape->begin(), indices.shape->end());
    shape->insert(shape->end(), x.shape->begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape->end());
  }
  const auto data = plain(x), picked = plain(indices);
  if (!failed()) set(0, tensor(emit("Gather", {data, picked}, Attributes().set("axis", axis)), shape, x.type));
}

void Lowering::on_gather_nd() {
  if (!needs(2)) return;
  const auto x = plain(0), indices = plain(1);
  if (!failed()) set(0, tensor(emit("GatherND", {x, indices}), std::nullopt, in(0).type));
}

void Lowering::on_one_hot() {
  if (!needs(2)) return;
  const auto x = plain(0), depth = plain(1), values = has(2) ? plain(2) : std::string();
  if (failed()) return;
  MaybeShape shape = in(0).shape;
  const auto axis = node_->integer("axis", -1);
  if (shape) shape->push_back(-1);
  const DataType type = has(2) ? in(2).type : DataType::f32;
  set(0, tensor(emit("OneHot", {x, depth, values}, Attributes().set("axis", axis)), shape, type));
}

void Lowering::on_top_k() {
  if (!needs(1)) return;
  const auto x = plain(0);
  const auto k = has(1) ? plain(1) : integers("k", {node_->integer("k", 1)});
  if (failed()) return;
  const auto values = out_.unique(node_->name), indices = out_.unique(node_->name + ":1");
  out_.node({"TopK", "", node_->name, {x, k}, {values, indices}, {}});
  MaybeShape shape = in(0).shape;
  if (shape && !shape->empty()) shape->back() = -1;
  set(1, tensor(indices, shape, DataType::i64));
  set(0, tensor(values, shape, in(0).type));
}

/// Backwards along some axes: every element is moved.
void Lowering::on_reverse() {
  if (!needs(2)) return;
  const auto axes = constants(1);
  if (!axes || axes->empty() || axes->size() > 32) return fail("its axes are not constant");
  const auto x = plain(0);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> from(axes->size(), kMost), to(axes->size(), -kMost), steps(axes->size(), -1);
  const auto begin = integers("begin", from), end = integers("end", to);
  if (!failed())
    set(0, tensor(emit("Slice", {x, begin, end, integers("axes", *axes), integers("strides", steps)}), in(0).shape,
                  in(0).type));
}

void Lowering::add_shapes(Table& table) {
  const auto add = [&](Handler handler, std::initializer_list<const char*> ops) {
    for (const char* op : ops) table[op] = handler;
  };
  add(&Lowering::on_slice, {"Slice"});
  add(&Lowering::on_strided_slice, {"StridedSlice"});
  add(&Lowering::on_shape, {"Shape", "ShapeN"});
  add(&Lowering::on_rank, {"Rank"});
  add(&Lowering::on_size, {"Size"});
  add(&Lowering::on_fill, {"Fill"});
  add(&Lowering::on_like, {"ZerosLike", "OnesLike"});
  add(&Lowering::on_random, {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
                             "StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomNormal",
                             "StatelessRandomNormalV2", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2"});
  add(&Lowering::on_range, {"Range"});
  add(&Lowering::on_gather, {"Gather", "GatherV2", "ResourceGather"});
  add(&Lowering::on_gather_nd, {"GatherNd", "ResourceGatherNd"});
  add(&Lowering::on_one_hot, {"OneHot"});
  add(&Lowering::on_top_k, {"TopK", "TopKV2"});
  add(&Lowering::on_reverse, {"ReverseV2"});
}

}  // namespace turnpoint::tensorflow
