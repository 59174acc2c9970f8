// SPDX-License-Identifier: Apache-2.0
// Elementwise functions, softmax, norms and reductions.
#include <fmt/format.h>
#include <algorithm>
#include <string_view>

#include "core/export/jax/formulas.h"

namespace turnpoint::jax {

namespace {

/// What backward of an elementwise function reads.
enum class Reads : std::uint8_t { nothing, output, inputs, others };

struct Pointwise {
  std::string_view name;  ///< as the model's source calls it
  std::size_t operands;   ///< 0: any number
  Reads reads;
  std::string_view function;  ///< of prelude.h, or an operator of Python between the operands
  std::string_view slope;     ///< with reads output: of y
};

constexpr Pointwise kPointwise[] = {
    {"Add", 0, Reads::nothing, "+", ""},
    {"Sum", 0, Reads::nothing, "+", ""},
    {"Sub", 2, Reads::nothing, "-", ""},
    {"Identity", 1, Reads::nothing, "+", ""},
    {"Expand", 1, Reads::nothing, "+", ""},
    {"Mul", 2, Reads::others, "*", ""},
    {"Relu", 1, Reads::output, "jax.nn.relu", "({y} > 0)"},
    {"relu", 1, Reads::output, "jax.nn.relu", "({y} > 0)"},
    {"Tanh", 1, Reads::output, "jnp.tanh", "(1 - {y} * {y})"},
    {"Sigmoid", 1, Reads::output, "jax.nn.sigmoid", "{y} * (1 - {y})"},
    {"Exp", 1, Reads::output, "jnp.exp", "{y}"},
    {"gelu", 1, Reads::inputs, "gelu", ""},
    {"Gelu", 1, Reads::inputs, "told_gelu", ""},
    {"gelu_new", 1, Reads::inputs, "gelu_tanh", ""},
    {"gelu_pytorch_tanh", 1, Reads::inputs, "gelu_tanh", ""},
    {"gelu_fast", 1, Reads::inputs, "gelu_tanh", ""},
    {"silu", 1, Reads::inputs, "jax.nn.silu", ""},
    {"Silu", 1, Reads::inputs, "jax.nn.silu", ""},
    {"Swish", 1, Reads::inputs, "jax.nn.silu", ""},
    {"silu*up", 2, Reads::inputs, "gated_silu", ""},
    {"gelu*up", 2, Reads::inputs, "gated_gelu", ""},
    {"gelu_new*up", 2, Reads::inputs, "gated_gelu_tanh", ""},
    {"gelu_pytorch_tanh*up", 2, Reads::inputs, "gated_gelu_tanh", ""},
};

const Pointwise* pointwise_of(const Operator& op) {
  for (const Pointwise& each : kPointwise)
    if (each.name == op.detail && (each.operands == 0 || each.operands == op.inputs.size())) return &each;
  return nullptr;
}

/// Whether the operands are those that NumPy's rules broadcast, dimension by dimension from the right.
bool broadcasts(const Operator& op, const Access& access) {
  const auto& out = op.outputs[0].walks;
  if (access.walks.size() > out.size()) return false;
  const std::size_t offset = out.size() - access.walks.size();
  for (std::size_t d = 0; d < access.walks.size(); ++d)
    if (!access.walks[d].empty() && access.walks[d] != out[d + offset]) return false;
  return true;
}

bool drops(const Operator& op) { return op.detail == "Dropout" && op.inputs.size() == 1; }

/// Which elements a dropout keeps: the same on every device that holds them.
std::string mask_of(const Place& place) { return fmt::format("mask{}", place.id.index); }

void write_mask(const Place& place, Lines& lines) {
  const Access& y = place.op().outputs[0];
  lines.add(fmt::format("{} = kept({}, number, {}, {}, {})", mask_of(place), place.id.index,
                        tuple_of(place.output(0).shape), place.starts(y), tuple_of(place.shape(y))));
}

Expected<void> check_elementwise(const Place& place) {
  const Operator& op = place.op();
  if (drops(op)) return {};
  const Pointwise* function = pointwise_of(op);
  if (!function)
    return place.refuse(fmt::format("the function '{}' of {} operand{} has no lines yet", op.detail, op.inputs.size(),
                                    op.inputs.size() == 1 ? "" : "s"));
  for (const Access& access : op.inputs)
    if (!broadcasts(op, access)) return place.refuse("its operands are not broadcast from the right");
  if (function->reads == Reads::output && place.input(0).requires_gradient && !op.outputs[0].saved)
    return place.refuse("backward would read its result, which the model does not keep");
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    bool needed = function->reads == Reads::inputs && place.output(0).requires_gradient;
    for (std::size_t other = 0; other < op.inputs.size(); ++other)
      needed = needed || (function->reads == Reads::others && other != k && place.input(other).requires_gradient);
    if (needed && !op.inputs[k].saved)
      return place.refuse("backward would read an operand that the model does not keep");
  }
  return {};
}

void forward_elementwise(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  if (drops(op)) {
    write_mask(place, lines);
    return lines.add(fmt::format("{} = dropped({}, {})", values.outputs[0], values.inputs[0], mask_of(place)));
  }
  const Pointwise& function = *pointwise_of(op);
  std::string made;
  if (op.detail == "Expand")
    made = fmt::format("jnp.broadcast_to({}, {})", values.inputs[0], tuple_of(place.shape(op.outputs[0])));
  else if (function.function.size() == 1)
    made = fmt::format("{}", fmt::join(values.inputs, fmt::format(" {} ", function.function)));
  else
    made = fmt::format("{}({})", function.function, joined(values.inputs));
  lines.add(values.outputs[0] + " = " + made);
}

/// A gradient of the result's shape, summed over what the operand was broadcast along.
std::string narrowed(const Place& place, std::size_t k, const std::string& gradient) {
  const auto shape = place.shape(place.op().inputs[k]);
  return shape == place.shape(place.op().outputs[0]) ? gradient
                                                     : fmt::format("narrowed({}, {})", gradient, tuple_of(shape));
}

void backward_elementwise(const Place& place, const Values& values, Lines& lines) {
  if (drops(place.op())) {
    if (!values.results[0].empty())
      lines.add(fmt::format("{} = dropped({}, {})", values.results[0], values.gradients[0], mask_of(place)));
    return;
  }
  const Pointwise& function = *pointwise_of(place.op());
  const std::string& g = values.gradients[0];
  if (function.reads == Reads::inputs) {  // all gradients at once; of operands of one shape
    std::vector<std::string> targets;
    for (const auto& result : values.results) targets.push_back(result.empty() ? "_" : result);
    if (std::all_of(values.results.begin(), values.results.end(), [](const auto& r) { return r.empty(); })) return;
    lines.add(fmt::format("{}{} = back({}, {})({})", joined(targets), targets.size() == 1 ? "," : "", function.function,
                          joined(values.inputs), g));
    return;
  }
  for (std::size_t k = 0; k < values.results.size(); ++k) {
    if (values.results[k].empty()) continue;
    std::string made = g;
    if (function.reads == Reads::output)
      made = g + " * " + fmt::format(fmt::runtime(function.slope), fmt::arg("y", values.outputs[0]));
    else if (function.reads == Reads::others)
      made = g + " * " + values.inputs[1 - k];
    else if (function.function == "-" && k == 1)
      made = "-" + g;
    lines.add(values.results[k] + " = " + narrowed(place, k, made));
  }
}

/// The dimension of a softmax: the one that must not be split; -1: several must not, or none.
int row_of(const Operator& op) {
  int found = -1;
  for (std::size_t d = 0; d < op.inputs[0].walks.size(); ++d) {
    const auto& walk = op.inputs[0].walks[d];
    if (walk.empty() || op.dims[walk.front()].splittable) continue;
    if (found >= 0 || walk.size() > 1) return -1;
    found = static_cast<int>(d);
  }
  return found;
}

Expected<void> check_softmax(const Place& place) {
  const Operator& op = place.op();
  if (op.detail != "Softmax") return place.refuse(fmt::format("'{}' has no lines yet", op.detail));
  if (row_of(op) < 0) return place.refuse("the model does not tell along which dimension it is");
  const auto& walks = op.inputs[0].walks;
  if (op.causal &&
      (row_of(op) + 1 != static_cast<int>(walks.size()) || walks.size() < 2 || walks[walks.size() - 2].size() != 1))
    return place.refuse("its mask is not over queries and keys");
  return {};
}

/// ", scale=..., mask=...": what lies between the scores and the softmax.
std::string between(const Place& place) {
  const Operator& op = place.op();
  std::string text;
  if (const auto channels = channels_of_scores(place.model, op))
    text += fmt::format(", scale=SCORE_SCALE / math.sqrt({})", *channels);
  const auto& walks = op.inputs[0].walks;
  if (op.causal) text += fmt::format(", first_query={}", place.start(walks[walks.size() - 2].front()));
  return text;
}

void forward_softmax(const Place& place, const Values& values, Lines& lines) {
  lines.add(
      fmt::format("{} = softmax({}, {}{})", values.outputs[0], values.inputs[0], row_of(place.op()), between(place)));
}

void backward_softmax(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  std::string scale;
  if (const auto channels = channels_of_scores(place.model, place.op()))
    scale = fmt::format(", scale=SCORE_SCALE / math.sqrt({})", *channels);
  lines.add(fmt::format("{} = softmax_back({}, {}, {}{})", values.results[0], values.outputs[0], values.gradients[0],
                        row_of(place.op()), scale));
}

/// How many dimensions at the end a norm is over.
std::size_t normed_dimensions(const Operator& op) {
  const auto& walks = op.inputs[0].walks;
  std::size_t count = 0;
  while (count < walks.size() && !walks[walks.size() - 1 - count].empty() &&
         !op.dims[walks[walks.size() - 1 - count].front()].splittable)
    ++count;
  return count;
}

bool centred(const Operator& op) { return op.detail.find("RMS") == std::string::npos; }

Expected<void> check_norm(const Place& place) {
  const Operator& op = place.op();
  constexpr std::string_view kKnown[] = {"LayerNorm", "LayerNormalization", "RMSNorm", "RMSNormalization"};
  if (std::find(std::begin(kKnown), std::end(kKnown), op.detail) == std::end(kKnown))
    return place.refuse(fmt::format("the norm '{}' has no lines yet", op.detail));
  const std::size_t count = normed_dimensions(op);
  if (count == 0 || op.inputs.size() > 3) return place.refuse("the model does not tell over which dimensions it is");
  const auto& walks = op.inputs[0].walks;
  for (std::size_t k = 1; k < op.inputs.size(); ++k) {
    const auto& own = op.inputs[k].walks;
    if (own.size() > count || !std::equal(own.rbegin(), own.rend(), walks.rbegin()))
      return place.refuse("its scale is not over the dimensions of the norm");
  }
  if (place.output(0).requires_gradient && !op.inputs[0].saved)
    return place.refuse("backward would read an operand that the model does not keep");
  return {};
}

std::string norm_arguments(const Place& place, const Values& values) {
  const Operator& op = place.op();
  const std::string scale = op.inputs.size() > 1 ? values.inputs[1] : "None";
  return fmt::format("{}, {}", values.inputs[0], scale);
}

void forward_norm(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  lines.add(fmt::format("{} = norm({}, {}, dims={}, centred={})", values.outputs[0], norm_arguments(place, values),
                        op.inputs.size() > 2 ? values.inputs[2] : "None", normed_dimensions(op),
                        centred(op) ? "True" : "False"));
}

void backward_norm(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  std::vector<std::string> targets;
  for (std::size_t k = 0; k < 3; ++k)
    targets.push_back(k < values.results.size() && !values.results[k].empty() ? values.results[k] : "_");
  if (std::all_of(targets.begin(), targets.end(), [](const auto& t) { return t == "_"; })) return;
  lines.add(fmt::format("{} = norm_back({}, {}, dims={}, centred={})", joined(targets), norm_arguments(place, values),
                        values.gradients[0], normed_dimensions(op), centred(op) ? "True" : "False"));
}

std::vector<std::int64_t> reduced_dimensions(const Operator& op) {
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < op.inputs[0].walks.size(); ++d)
    for (const auto loop : op.inputs[0].walks[d])
      if (op.dims[loop].role == DimRole::reduction) {
        dims.push_back(static_cast<std::int64_t>(d));
        break;
      }
  return dims;
}

bool takes_mean(const Operator& op) { return op.detail.find("Mean") != std::string::npos; }

Expected<void> check_reduction(const Place& place) {
  const Operator& op = place.op();
  if (op.inputs[0].saved || (!takes_mean(op) && op.detail.find("Sum") == std::string::npos))
    return place.refuse(fmt::format("the reduction '{}' has no lines yet", op.detail));
  return {};
}

/// The whole number of elements that become one.
std::int64_t elements_of_mean(const Place& place) { return place.input(0).elements() / place.output(0).elements(); }

void forward_reduction(const Place& place, const Values& values, Lines& lines) {
  const Operator& op = place.op();
  lines.add(fmt::format("{} = jnp.sum({}, axis={}).reshape({}){}", values.outputs[0], values.inputs[0],
                        tuple_of(reduced_dimensions(op)), tuple_of(place.shape(op.outputs[0])),
                        takes_mean(op) ? fmt::format(" / {}", elements_of_mean(place)) : ""));
}

void backward_reduction(const Place& place, const Values& values, Lines& lines) {
  if (values.results[0].empty()) return;
  const Operator& op = place.op();
  const auto whole = place.shape(op.inputs[0]);
  auto kept = whole;
  for (const auto d : reduced_dimensions(op)) kept[static_cast<std::size_t>(d)] = 1;
  lines.add(fmt::format("{} = jnp.broadcast_to({}.reshape({}), {}){}", values.results[0], values.gradients[0],
                        tuple_of(kept), tuple_of(whole),
                        takes_mean(op) ? fmt::format(" / {}", elements_of_mean(place)) : ""));
}

}  // namespace

const Formula kElementwise{check_elementwise, forward_elementwise, backward_elementwise};
const Formula kSoftmax{check_softmax, forward_softmax, backward_softmax};
const Formula kNormalisation{check_norm, forward_norm, backward_norm};
const Formula kReduction{check_reduction, forward_reduction, backward_reduction};

}  // namespace turnpoint::jax
