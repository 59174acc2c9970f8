// SPDX-License-Identifier: Apache-2.0
// What moves, cuts, joins, repeats and makes tensors without computing.
#include <algorithm>
#include <limits>

#include "core/import/torch/lowering.h"

namespace turnpoint::torch_program {

void Lowering::add_views(Table& table) {
  const auto add = [&](Handler handler, std::initializer_list<const char*> kinds) {
    for (const char* kind : kinds) table[kind] = handler;
  };
  add(&Lowering::on_reshape, {"view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy"});
  add(&Lowering::on_flatten, {"flatten"});
  add(&Lowering::on_unflatten, {"unflatten"});
  add(&Lowering::on_transpose, {"transpose", "swapaxes", "swapdims", "transpose_copy"});
  add(&Lowering::on_permute, {"permute", "permute_copy"});
  add(&Lowering::on_turn_last, {"t", "numpy_T", "mT", "adjoint", "t_copy"});
  add(&Lowering::on_expand, {"expand", "broadcast_to", "expand_copy"});
  add(&Lowering::on_expand_as, {"expand_as"});
  add(&Lowering::on_unsqueeze, {"unsqueeze", "unsqueeze_copy"});
  add(&Lowering::on_squeeze, {"squeeze", "squeeze_copy"});
  add(&Lowering::on_cat, {"cat", "concat", "concatenate"});
  add(&Lowering::on_stack, {"stack"});
  add(&Lowering::on_split, {"split", "split_with_sizes", "chunk", "tensor_split", "split_with_sizes_copy"});
  add(&Lowering::on_unbind, {"unbind"});
  add(&Lowering::on_slice, {"slice", "narrow", "slice_copy"});
  add(&Lowering::on_select, {"select", "select_copy"});
  add(&Lowering::on_index_select, {"index_select"});
  add(&Lowering::on_index, {"index"});
  add(&Lowering::on_gather, {"gather"});
  add(&Lowering::on_arange, {"arange"});
  add(&Lowering::on_fill, {"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor",
                           "rand", "randn"});
  add(&Lowering::on_fill_like, {"zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"});
  add(&Lowering::on_repeat, {"repeat", "tile"});
  add(&Lowering::on_repeat_interleave, {"repeat_interleave"});
  add(&Lowering::on_pad, {"pad", "constant_pad_nd"});
  add(&Lowering::on_roll, {"roll"});
  add(&Lowering::on_diff, {"diff"});
  add(&Lowering::on_triangle, {"tril", "triu"});
  add(&Lowering::on_resize, {"upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d",
                             "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"});
  add(&Lowering::on_pixel_shuffle, {"pixel_shuffle", "pixel_unshuffle"});
  add(&Lowering::on_topk, {"topk"});
  add(&Lowering::on_inner_graph, {"wrap_with_set_grad_enabled", "wrap_with_autocast"});
}

void Lowering::on_reshape() {
  const auto target = numbers(has("size") ? "size" : "shape");
  set(emit("Reshape", {value("self"), list(target)}));
}

/// Dimensions that stay are copied: what lies before by ONNX's 0, what lies behind by its size.
void Lowering::on_flatten() {
  const auto sizes = sizes_of("self");
  const auto rank = sizes.size();
  const auto begin = axis("start_dim", 0, rank), end = axis("end_dim", -1, rank);
  if (error_) return;
  if (rank == 0) return set(emit("Reshape", {value("self"), list(Integers{1})}));
  if (begin == end) return on_identity();
  std::vector<Number> target(std::size_t(begin), Number{0, {}});
  target.push_back({-1, {}});
  const std::string shape = emit("Shape", {value("self")});
  for (std::size_t d = std::size_t(end) + 1; d < rank; ++d) {
    if (sizes[d].value >= 0) {
      target.push_back({sizes[d].value, {}});
      continue;
    }
    Attributes first;
    first.set("axis", std::int64_t{0});
    const std::string name = node_->name + "/size" + std::to_string(d);
    numbers_[name] = emit("Gather", {shape, scalar(Number{std::int64_t(d), {}})}, std::move(first));
    target.push_back({0, name});
  }
  set(emit("Reshape", {value("self"), list(target)}));
}

void Lowering::on_unflatten() {
  const auto sizes = sizes_of("self");
  const auto at = axis("dim", 0, sizes.size());
  if (error_) return;
  std::vector<Number> target(std::size_t(at), Number{0, {}});
  for (const Number& own : numbers("sizes")) target.push_back(own);
  for (std::size_t d = std::size_t(at) + 1; d < sizes.size(); ++d) {
    if (sizes[d].value < 0) return fail("before a dimension of unknown size is not supported");
    target.push_back({sizes[d].value, {}});
  }
  set(emit("Reshape", {value("self"), list(target)}));
}

void Lowering::on_transpose() {
  const auto rank = rank_of("self");
  const char* first = has("dim0") || !has("axis0") ? "dim0" : "axis0";
  const char* second = has("dim1") || !has("axis1") ? "dim1" : "axis1";
  set(transposed(value("self"), rank, axis(first, 0, rank), axis(second, 1, rank)));
}
void Lowering::on_permute() {
  auto order = integers("dims");
  for (auto& one : order) one += one < 0 ? std::int64_t(order.size()) : 0;
  Attributes how;
  how.set("perm", order);
  set(emit("Transpose", {value("self")}, std::move(how)));
}
void Lowering::on_turn_last() {
  const auto rank = rank_of("self");
  if (rank < 2) return on_identity();
  set(transposed(value("self"), rank, std::int64_t(rank) - 2, std::int64_t(rank) - 1));
}

/// -1 keeps a size, which is what ONNX's 1 does.
void Lowering::on_expand() {
  auto target = numbers("size");
  for (Number& size : target)
    if (size.name.empty() && size.value == -1) size.value = 1;
  set(emit("Expand", {value("self"), list(target)}));
}

void Lowering::on_expand_as() { set(emit("Expand", {value("self"), emit("Shape", {value("other")})})); }

void Lowering::on_unsqueeze() {
  set(emit("Unsqueeze", {value("self"), list(Integers{axis("dim", 0, rank_of("self") + 1)})}));
}
void Lowering::on_squeeze() {
  const auto sizes = sizes_of("self");
  Integers axes, given = integers("dim");
  for (auto& one : given) one += one < 0 ? std::int64_t(sizes.size()) : 0;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].value == 1 && (!has("dim") || std::find(given.begin(), given.end(), std::int64_t(d)) != given.end()))
      axes.push_back(std::int64_t(d));
  if (axes.empty()) return on_identity();
  set(emit("Squeeze", {value("self"), list(axes)}));
}

void Lowering::on_cat() {
  const auto* first = meta(first_tensor());
  Attributes how;
  how.set("axis", axis("dim", 0, first ? first->sizes.size() : 1));
  set(emit("Concat", tensors("tensors"), std::move(how)));
}
void Lowering::on_stack() {
  const auto* first = meta(first_tensor());
  const auto at = axis("dim", 0, (first ? first->sizes.size() : 0) + 1);
  Names parts = tensors("tensors");
  for (auto& part : parts) part = emit("Unsqueeze", {part, list(Integers{at})});
  Attributes how;
  how.set("axis", at);
  set(emit("Concat", std::move(parts), std::move(how)));
}

/// The sizes of the parts are those of the results, which the file has.
void Lowering::on_split() {
  const auto at = axis("dim", 0, rank_of("self"));
  Integers sizes;
  for (const auto& name : node_->outputs) {
    const auto* own = meta(name);
    if (!own || std::size_t(at) >= own->sizes.size() || own->sizes[std::size_t(at)].value < 1)
      return fail("into parts of unknown sizes is not supported");
    sizes.push_back(own->sizes[std::size_t(at)].value);
  }
  Attributes how;
  how.set("axis", at);
  const Names parts = emit_many("Split", {value("self"), list(sizes)}, std::move(how), sizes.size());
  for (std::size_t i = 0; i < parts.size(); ++i) set(i, parts[i]);
}
void Lowering::on_unbind() {
  const auto at = axis("dim", 0, rank_of("self"));
  Attributes how;
  how.set("axis", at);
  const Names parts =
      emit_many("Split", {value("self"), list(Integers(node_->outputs.size(), 1))}, std::move(how), node_->outputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) set(i, emit("Squeeze", {parts[i], list(Integers{at})}));
}

void Lowering::on_slice() {
  constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();
  const auto at = axis("dim", 0, rank_of("self"));
  auto begin = numbers("start"), end = numbers("end"), step = numbers("step");
  if (begin.empty()) begin = {Number{0, {}}};
  if (kind_ == "narrow") {
    const auto first = integer("start", 0), length = integer("length", 1);
    if (length < 0 || std::max(length, first) > kLargestSize) return fail("to an impossible part");
    // What is counted from the end and reaches it has no last place to be counted from there.
    end = {Number{first < 0 && first + length == 0 ? kToTheEnd : first + length, {}}};
  }
  if (end.empty()) end = {Number{kToTheEnd, {}}};
  if (step.empty()) step = {Number{1, {}}};
  const auto is = [](const std::vector<Number>& one, std::int64_t number) {
    return one.front().name.empty() && one.front().value == number;
  };
  if (is(begin, 0) && is(end, kToTheEnd) && is(step, 1)) return on_identity();
  set(emit("Slice", {value("self"), list(begin), list(end), list(Integers{at}), list(step)}));
}
std::string Lowering::cut(const std::string& value, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return emit("Slice", {value, list(Integers{begin}), list(Integers{end}), list(Integers{axis})});
}

void Lowering::on_select() {
  const auto at = axis("dim", 0, rank_of("self"));
  const auto index = numbers("index");
  if (index.size() != 1) return fail("has no index");
  Attributes how;
  how.set("axis", at);
  set(emit("Gather", {value("self"), scalar(index.front())}, std::move(how)));
}
void Lowering::on_index_select() {
  Attributes how;
  how.set("axis", axis("dim", 0, rank_of("self")));
  set(emit("Gather", {value("self"), value("index")}, std::move(how)));
}

/// One list of indices is a lookup; several are a lookup in the dimensions that they name together.
void Lowering::on_index() {
  const Names all = tensors("indices");
  Names given;
  std::size_t first = all.size();
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (all[d].empty()) continue;
    first = std::min(first, d);
    given.push_back(all[d]);
  }
  if (error_ || given.empty()) return;
  for (const auto& one : argument("indices")->tensors)
    if (const auto* own = meta(one); own && (own->type == DataType::boolean || own->type == DataType::u8))
      return fail("by a mask makes as many elements as hold, which the sizes do not tell");
  if (given.size() == 1) {
    Attributes how;
    how.set("axis", std::int64_t(first));
    return set(emit("Gather", {value("self"), given.front()}, std::move(how)));
  }
  if (first != 0 || all.size() != given.size()) return fail("in dimensions that do not come first is not supported");
  // Indices broadcast against each other: a sum has the shape of all of them.
  std::string shape = given.front();
  for (std::size_t i = 1; i < given.size(); ++i) shape = emit("Add", {shape, given[i]});
  shape = emit("Shape", {shape});
  for (auto& one : given) one = emit("Unsqueeze", {emit("Expand", {one, shape}), list(Integers{-1})});
  Attributes how;
  how.set("axis", std::int64_t{-1});
  set(emit("GatherND", {value("self"), emit("Concat", given, std::move(how))}));
}

void Lowering::on_gather() {
  Attributes how;
  how.set("axis", axis("dim", 0, rank_of("self")));
  set(emit("GatherElements", {value("self"), value("index")}, std::move(how)));
}

void Lowering::on_arange() {
  const auto whole = [&](const char* name, std::int64_t otherwise) {
    const auto* given = argument(name);
    if (given && !given->reals.empty()) return scalar(Number{whole_number(given->reals.front()), {}});
    const auto own = numbers(name);
    return scalar(own.empty() ? Number{otherwise, {}} : own.front());
  };
  const std::string range = emit("Range", {whole("start", 0), whole("end", 1), whole("step", 1)});
  if (!tensorflow::is_floating(result_type())) return set(range);
  Attributes to;
  to.set("to", tensorflow::onnx_type(result_type()));
  set(emit("Cast", {range}, std::move(to)));
}

/// The numbers matter only where shapes are computed of them, which nobody does with a tensor that is filled.
void Lowering::on_fill() {
  const auto sizes = numbers("size");
  const DataType type = result_type();
  const double filled = kind_.ends_with("ones") ? 1 : real("fill_value", real("s", 0));
  if (sizes.empty()) return set(scalar(filled, type));
  Attributes how;
  how.tensor("value", {type, {1}, false, {}, {}});
  set(emit("ConstantOfShape", {list(sizes)}, std::move(how)));
}
void Lowering::on_fill_like() {
  Attributes how;
  how.tensor("value", {result_type(), {1}, false, {}, {}});
  set(emit("ConstantOfShape", {emit("Shape", {value("self")})}, std::move(how)));
}

void Lowering::on_repeat() {
  const auto times = numbers(has("repeats") ? "repeats" : "dims");
  std::string x = value("self");
  const auto rank = rank_of("self");
  if (times.size() > rank) {
    Integers lead(times.size() - rank);
    for (std::size_t d = 0; d < lead.size(); ++d) lead[d] = std::int64_t(d);
    x = emit("Unsqueeze", {x, list(lead)});
  }
  set(emit("Tile", {x, list(times)}));
}
void Lowering::on_repeat_interleave() {
  const auto sizes = sizes_of("self");
  if (!has("dim") || numbers("repeats").empty()) return fail("of all elements, or by a tensor, is not supported");
  const auto at = axis("dim", 0, sizes.size());
  const auto times = integer("repeats", 1);
  if (error_) return;
  if (sizes.empty()) return fail("of a scalar is not supported");
  if (times < 0 || times > kLargestSize / std::max<std::int64_t>(sizes[std::size_t(at)].value, 1))
    return fail("an impossible number of times");
  std::vector<Number> target(std::size_t(at), Number{0, {}});
  Integers many(sizes.size() + 1, 1);
  many[std::size_t(at) + 1] = times;
  if (sizes[std::size_t(at)].value < 0) return fail("of a dimension of unknown size is not supported");
  target.push_back({sizes[std::size_t(at)].value * times, {}});
  for (std::size_t d = std::size_t(at) + 1; d < sizes.size(); ++d) {
    if (sizes[d].value < 0) return fail("before a dimension of unknown size is not supported");
    target.push_back({sizes[d].value, {}});
  }
  const std::string apart = emit("Unsqueeze", {value("self"), list(Integers{at + 1})});
  set(emit("Reshape", {emit("Expand", {apart, list(many)}), list(target)}));
}

/// Pairs of the last dimension first, to all begins and then all ends.
void Lowering::on_pad() {
  const auto rank = rank_of("self");
  const auto pairs = integers("pad");
  if (pairs.size() > 2 * rank || pairs.size() % 2) return fail("has more pads than dimensions");
  Integers pads(2 * rank, 0);
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    pads[rank - 1 - i] = pairs[2 * i];
    pads[2 * rank - 1 - i] = pairs[2 * i + 1];
  }
  set(emit("Pad", {value("self"), list(pads)}));
}

void Lowering::on_roll() {
  const auto sizes = sizes_of("self");
  const auto shifts = integers("shifts"), dims = integers("dims");
  if (shifts.size() != dims.size()) return fail("of all elements is not supported");
  std::string x = value("self");
  for (std::size_t i = 0; i < dims.size() && !error_; ++i) {
    const auto at = dims[i] < 0 ? dims[i] + std::int64_t(sizes.size()) : dims[i];
    if (at < 0 || at >= std::int64_t(sizes.size()) || sizes[std::size_t(at)].value < 1)
      return fail("of a dimension of unknown size is not supported");
    const auto size = sizes[std::size_t(at)].value, by = ((shifts[i] % size) + size) % size;
    if (by == 0) continue;
    Attributes how;
    how.set("axis", at);
    x = emit("Concat", {cut(x, at, size - by, size), cut(x, at, 0, size - by)}, std::move(how));
  }
  set(x);
}

void Lowering::on_diff() {
  const auto rank = rank_of("self");
  const auto at = axis("dim", -1, rank);
  if (integer("n", 1) != 1) return fail("of a higher order is not supported");
  Names parts;
  for (const char* part : {"prepend", "self", "append"})
    if (has(part)) parts.push_back(value(part));
  Attributes how;
  how.set("axis", at);
  const std::string x = parts.size() == 1 ? parts.front() : emit("Concat", parts, std::move(how));
  set(emit("Sub", {cut(x, at, 1, std::numeric_limits<std::int64_t>::max()), cut(x, at, 0, -1)}));
}

void Lowering::on_triangle() {
  Attributes how;
  how.set("upper", std::int64_t{kind_ == "triu"});
  set(emit("Trilu", {value("self")}, std::move(how)));
}

/// To the sizes of the result.
void Lowering::on_resize() {
  const auto* made = node_->outputs.empty() ? nullptr : meta(node_->outputs.front());
  const auto from = sizes_of(node_->inputs.empty() ? "" : node_->inputs.front().first);
  if (error_ || !made || made->sizes.size() != from.size() || from.size() < 3) return fail("its result has no shape");
  std::vector<double> scales;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (d > 1 && (from[d].value < 1 || made->sizes[d].value < 1)) return fail("of unknown sizes is not supported");
    scales.push_back(d > 1 ? double(made->sizes[d].value) / double(from[d].value) : 1);
  }
  const std::string name = out_.unique(node_->name + "/scales");
  out_.initializer(name, {DataType::f32, {std::int64_t(scales.size())}, true, {}, scales});
  Attributes how;
  how.text("mode", kind_.find("nearest") != kind_.npos ? "nearest" : kind_.find("cubic") != kind_.npos ? "cubic" : "linear");
  set(emit("Resize", {tensor(first_tensor()), "", name}, std::move(how)));
}

void Lowering::on_pixel_shuffle() {
  const bool apart = kind_ == "pixel_shuffle";
  Attributes how;
  how.set("blocksize", integer(apart ? "upscale_factor" : "downscale_factor", 1));
  set(emit(apart ? "DepthToSpace" : "SpaceToDepth", {value("self")}, std::move(how)));
}

void Lowering::on_topk() {
  Attributes how;
  how.set("axis", axis("dim", -1, rank_of("self")));
  const Names made = emit_many("TopK", {value("self"), list(Integers{integer("k", 1)})}, std::move(how), 2);
  for (std::size_t i = 0; i < made.size(); ++i) set(i, made[i]);
}

}  // namespace turnpoint::torch_program
