// SPDX-License-Identifier: Apache-2.0
#include "core/export/engines/model_sizes.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class SizeFinder {
 public:
  SizeFinder(const Model& model, const TransformerRoles& roles) : model_(model), roles_(roles) {}

  Expected<ModelSizes> run() {
    if (roles_.layers == 0 || roles_.attentions.empty())
      return usage_error("the model has no layers that could be told apart");
    made_.layers = roles_.layers, made_.sequence = roles_.sequence;
    if (auto error = find_heads()) return *error;
    if (auto error = find_stream()) return *error;
    find_feed_forward();
    find_others();
    return made_;
  }

 private:
  const Tensor& input(const Operator& op, std::size_t k) const { return model_.tensors[op.inputs[k].tensor]; }
  bool in_layers(std::size_t op) const { return roles_.layer_of[op] >= 0 && roles_.layer_of[op] < roles_.layers; }

  std::optional<Error> find_heads() {
    for (const AttentionCore& core : roles_.attentions) {
      const Operator& op = model_.operators[core.scores];
      if (core.across)
        return usage_error(fmt::format("{} attends to another stack, which has no one size for all layers", op.name));
      const Tensor &q = input(op, 0), &k = input(op, 1);
      const std::int64_t channels = q.shape.back(), rows = std::max<std::int64_t>(1, model_.batch * roles_.sequence);
      const std::int64_t heads = q.elements() / (rows * channels);
      const std::int64_t groups = std::max<std::int64_t>(1, k.elements() / (rows * channels));
      if (made_.heads == 0) made_.heads = heads, made_.groups = groups, made_.head_channels = channels;
      if (heads != made_.heads || groups != made_.groups || channels != made_.head_channels)
        return usage_error(
            fmt::format("{} has {} heads of {} channels for queries and {} for keys, another layer {} of "
                        "{} and {}",
                        op.name, heads, channels, groups, made_.heads, made_.head_channels, made_.groups));
      made_.causal = made_.causal || op.causal || model_.operators[core.softmax].causal;
    }
    if (made_.heads < 1 || made_.heads % made_.groups != 0)
      return usage_error("the heads of its attentions cannot be told");
    return std::nullopt;
  }

  std::optional<Error> find_stream() {
    for (const auto& entering : roles_.enters)
      for (const TensorId id : entering) {
        const Tensor& tensor = model_.tensors[id];
        if (tensor.shape.size() < 2 || std::ranges::find(tensor.dims, DimName::sequence) == tensor.dims.end()) continue;
        const std::int64_t channels = tensor.shape.back();
        if (made_.hidden == 0) made_.hidden = channels;
        if (made_.hidden != channels)
          return usage_error(
              fmt::format("the stream between its layers has {} channels here and {} there", made_.hidden, channels));
      }
    if (made_.hidden == 0) return usage_error("the stream between its layers cannot be told");
    return std::nullopt;
  }

  bool is_inner(std::size_t op, std::size_t loop) const {
    const int c = roles_.dims.of[op].empty() ? -1 : roles_.dims.of[op][loop];
    return c >= 0 && roles_.is_inner[static_cast<std::size_t>(c)];
  }

  void find_feed_forward() {
    std::set<std::int64_t> dense, of_expert;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      if (!in_layers(i)) continue;
      for (std::size_t l = 0; l < op.dims.size(); ++l) {
        if (!is_inner(i, l)) continue;
        const auto expert =
            std::ranges::find_if(op.dims, [](const LoopDimension& dim) { return dim.name == DimName::expert; });
        if (expert != op.dims.end()) made_.experts = expert->size;
        (expert != op.dims.end() ? of_expert : dense).insert(op.dims[l].size);
        if (op.kind == OperatorKind::elementwise && made_.activation.empty()) {
          made_.gated = op.detail.find("*up") != std::string::npos;
          made_.activation = lower_case(op.detail.substr(0, op.detail.find("*up")));
        }
      }
      if (op.detail == "Dispatch" && roles_.sequence > 0) {
        const Tensor& slots = model_.tensors[op.outputs.front().tensor];
        made_.experts_a_token = slots.shape[1] * slots.shape[2] / roles_.sequence;
      }
    }
    const auto& sizes = of_expert.empty() ? dense : of_expert;
    if (!sizes.empty()) made_.inner = *sizes.begin();
    if (sizes.size() > 1) made_.unlike.push_back("feed-forward parts of its layers have unlike widths");
    if (!of_expert.empty() && !dense.empty())
      made_.unlike.push_back(
          fmt::format("beside the experts some feed-forward parts are dense, of {} channels", *dense.rbegin()));
    if (sizes.empty()) made_.unlike.push_back("its layers have no feed-forward part of the usual kind");
  }

  void find_others() {
    int products = 0, with_bias = 0;
    std::optional<TensorId> table;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      if (op.kind == OperatorKind::normalisation && in_layers(i))
        made_.root_mean_square = lower_case(op.detail).find("rms") != std::string::npos;
      made_.rotates = made_.rotates || op.rotates;
      if (in_layers(i) && is_weighted_product(model_, op)) {
        ++products;
        with_bias += std::ranges::any_of(op.inputs, [&](const Access& access) {
          const Tensor& tensor = model_.tensors[access.tensor];
          return tensor.role == TensorRole::parameter && tensor.shape.size() == 1;
        });
      }
      if (op.kind == OperatorKind::embedding && !table)
        for (const LoopDimension& dim : op.dims)
          if (dim.name == DimName::vocabulary) made_.vocabulary = dim.size;
      if (op.kind == OperatorKind::embedding && !table)
        for (const Access& access : op.inputs)
          if (model_.tensors[access.tensor].role == TensorRole::parameter) table = access.tensor;
      // A row of a table for each position, added to what the tokens' table has.
      if (roles_.layer_of[i] < 0 && op.kind != OperatorKind::normalisation)
        for (const Access& access : op.inputs) {
          const Tensor& tensor = model_.tensors[access.tensor];
          made_.position_table =
              made_.position_table || (tensor.role == TensorRole::parameter && tensor.shape.size() >= 2 && table &&
                                       access.tensor != *table && tensor.shape.back() == made_.hidden);
        }
    }
    for (const Tensor& tensor : model_.tensors)
      made_.tied = made_.tied || (table && tensor.tied_to.valid() && tensor.tied_to == *table);
    made_.biases = products > 0 && with_bias == products;
    made_.query_biases = !made_.biases && with_bias == 3 * roles_.layers;
    if (with_bias > 0 && !made_.biases && !made_.query_biases)
      made_.unlike.push_back(fmt::format("{} of {} products of its layers have biases", with_bias, products));
  }

  const Model& model_;
  const TransformerRoles& roles_;
  ModelSizes made_;
};

}  // namespace

Expected<ModelSizes> sizes_of(const Model& model, const TransformerRoles& roles) {
  return SizeFinder(model, roles).run();
}

}  // namespace turnpoint
