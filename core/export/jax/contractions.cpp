// SPDX-License-Identifier: Apache-2.0
// Products of two tensors with what is added to them, and views, in the manner of einsum: "n s k, k (h d) -> n h s d".
#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "core/export/jax/formulas.h"

namespace turnpoint::jax {

namespace {

/// A short name for every loop of an operator, by its meaning where that is free.
std::vector<std::string> loop_names(const Operator& op) {
  const auto wanted = [](DimName name) -> char {
    switch (name) {
      case DimName::batch: return 'n';
      case DimName::sequence: return 's';
      case DimName::key_sequence: return 't';
      case DimName::head: return 'h';
      case DimName::head_channel: return 'd';
      case DimName::in_channel: return 'k';
      case DimName::out_channel: return 'o';
      case DimName::channel: return 'c';
      case DimName::group: return 'g';
      case DimName::vocabulary: return 'v';
      case DimName::expert: return 'e';
      default: return 'a';
    }
  };
  std::set<char> taken;
  std::vector<std::string> names;
  for (const auto& dim : op.dims) {
    char letter = wanted(dim.name);
    for (char next = 'a'; taken.contains(letter); ++next) letter = next;
    taken.insert(letter);
    names.emplace_back(1, letter);
  }
  return names;
}

/// "n s (h d)"; a dimension that no loop walks is "1".
std::string rule_of(const Operator& op, const Access& access) {
  const auto names = loop_names(op);
  std::vector<std::string> words;
  for (const auto& walk : access.walks) {
    std::vector<std::string> loops;
    for (const auto loop : walk) loops.push_back(names[loop]);
    const std::string all = fmt::format("{}", fmt::join(loops, " "));
    words.push_back(loops.empty() ? "1" : loops.size() == 1 ? all : "(" + all + ")");
  }
  return words.empty() ? "" : fmt::format("{}", fmt::join(words, " "));
}

/// ", h=4, d=64": sizes of the loops that share a dimension with others, which no shape tells.
std::string sizes_of(const Place& place, std::initializer_list<const Access*> read) {
  const auto names = loop_names(place.op());
  std::set<std::size_t> merged;
  for (const Access* access : read)
    for (const auto& walk : access->walks)
      if (walk.size() > 1) merged.insert(walk.begin(), walk.end());
  std::string text;
  for (const auto loop : merged) text += fmt::format(", {}={}", names[loop], place.size(loop));
  return text;
}

bool walks_every_dimension(const Place& place, const Access& access) {
  const Tensor& tensor = place.model.tensors[access.tensor];
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t walked = 1;
    for (const auto loop : access.walks[d]) walked *= place.op().dims[loop].size;
    if (walked != tensor.shape[d]) return false;
  }
  return true;
}

std::set<std::size_t> loops_of(const Access& access) {
  std::set<std::size_t> loops;
  for (const auto& walk : access.walks) loops.insert(walk.begin(), walk.end());
  return loops;
}

/// Rotary positions, where the result's last dimensions are positions and a head's channels.
std::string rotated(const Place& place, const std::string& value, bool back) {
  const auto& walks = place.op().outputs.front().walks;
  const std::string first = place.start(walks[walks.size() - 2].front());
  return fmt::format("rotate({}, {}{})", value, first, back ? ", back=True" : "");
}

Expected<void> check_product(const Place& place) {
  const Operator& op = place.op();
  if (op.inputs.size() > 3) return place.refuse("it is a product of more than two tensors");
  for (const auto& access : op.inputs)
    if (!walks_every_dimension(place, access))
      return place.refuse(fmt::format("no loop walks a dimension of '{}'", place.model.tensors[access.tensor].name));
  if (!walks_every_dimension(place, op.outputs[0])) return place.refuse("no loop walks a dimension of its result");
  const auto a = loops_of(op.inputs[0]), b = loops_of(op.inputs[1]), y = loops_of(op.outputs[0]);
  for (const auto loop : a)
    if (!b.contains(loop) && !y.contains(loop)) return place.refuse("it sums over a dimension of one operand alone");
  for (const auto loop : b)
    if (!a.contains(loop) && !y.contains(loop)) return place.refuse("it sums over a dimension of one operand alone");
  for (std::size_t k = 0; k < 2; ++k)
    if (place.input(k).requires_gradient && !op.inputs[1 - k].saved)
      return place.refuse("backward would read an operand that the model does not keep");
  const auto& out = op.outputs[0].walks;
  if (op.rotates && (out.size() < 2 || out.back().size() != 1 || out[out.size() - 2].size() != 1 ||
                     op.dims[out.back().front()].name != DimName::head_channel ||
                     op.dims[out[out.size() - 2].front()].name != DimName::sequence))
    return place.refuse("it rotates what is not laid out as positions and channels of a head");
  return {};
}

void forward_product(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  std::string rule = rule_of(op, op.inputs[0]) + ", " + rule_of(op, op.inputs[1]),
              operands = joined({values.inputs[0], values.inputs[1]}), sizes;
  if (op.inputs.size() == 3) {
    const std::uint32_t summed = place.summed_axes();
    rule += ", " + rule_of(op, op.inputs[2]);
    operands += summed ? fmt::format(", once({}, {})", values.inputs[2], axis_list(place.mesh, summed))
                       : ", " + values.inputs[2];
    sizes = sizes_of(place, {&op.inputs[0], &op.inputs[1], &op.inputs[2]});
  } else {
    sizes = sizes_of(place, {&op.inputs[0], &op.inputs[1]});
  }
  std::string made = fmt::format("contract(\"{} -> {}\", {}{})", rule, rule_of(op, op.outputs[0]), operands, sizes);
  if (op.rotates) made = rotated(place, made, false);
  lines.add(values.outputs[0] + " = " + made);
}

void backward_product(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  std::string gradient = values.gradients[0];
  if (op.rotates) {
    gradient += "_turned";
    lines.add(fmt::format("{} = {}", gradient, rotated(place, values.gradients[0], true)));
  }
  const Access& y = op.outputs[0];
  for (std::size_t k = 0; k < 2; ++k)
    if (!values.results[k].empty())
      lines.add(fmt::format("{} = contract(\"{}, {} -> {}\", {}, {}{})", values.results[k], rule_of(op, y),
                            rule_of(op, op.inputs[1 - k]), rule_of(op, op.inputs[k]), gradient, values.inputs[1 - k],
                            sizes_of(place, {&y, &op.inputs[1 - k]})));
  if (values.results.size() == 3 && !values.results[2].empty())
    lines.add(fmt::format("{} = contract(\"{} -> {}\", {}{})", values.results[2], rule_of(op, y),
                          rule_of(op, op.inputs[2]), gradient, sizes_of(place, {&y})));
}

/// Whether the loops come in one order in both, so that no element changes its place in memory.
bool keeps_order_of_elements(const Operator& op) {
  std::vector<std::size_t> x, y;
  for (const auto& walk : op.inputs[0].walks) x.insert(x.end(), walk.begin(), walk.end());
  for (const auto& walk : op.outputs[0].walks) y.insert(y.end(), walk.begin(), walk.end());
  return x == y;
}

bool walks_whole_view(const Place& place) {
  return walks_every_dimension(place, place.op().inputs[0]) && walks_every_dimension(place, place.op().outputs[0]);
}

Expected<void> check_view(const Place& place) {
  if (walks_whole_view(place) || keeps_order_of_elements(place.op())) return {};
  return place.refuse("it moves elements along dimensions that no loop walks");
}

void write_view(const Place& place, const Access& from, const Access& to, const std::string& x, const std::string& y,
                Lines& lines) {
  if (keeps_order_of_elements(place.op()))
    lines.add(fmt::format("{} = {}.reshape({})", y, x, tuple_of(place.shape(to))));
  else
    lines.add(fmt::format("{} = contract(\"{} -> {}\", {}{})", y, rule_of(place.op(), from), rule_of(place.op(), to), x,
                          sizes_of(place, {&from})));
}

void forward_view(const Place& place, const Values& values, Lines& lines) {
  write_view(place, place.op().inputs[0], place.op().outputs[0], values.inputs[0], values.outputs[0], lines);
}

void backward_view(const Place& place, const Values& values, Lines& lines) {
  if (!values.results[0].empty())
    write_view(place, place.op().outputs[0], place.op().inputs[0], values.gradients[0], values.results[0], lines);
}

}  // namespace

const Formula kProduct{check_product, forward_product, backward_product};
const Formula kView{check_view, forward_view, backward_view};

}  // namespace turnpoint::jax
