// SPDX-License-Identifier: Apache-2.0
#include "core/cost/transformer_roles.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace turnpoint {

namespace {

constexpr int kMostBetween = 16;  // operators between a product and its softmax

bool passes_on(const Operator& op) {
  return op.kind == OperatorKind::elementwise || op.kind == OperatorKind::view || op.kind == OperatorKind::slice ||
         op.kind == OperatorKind::normalisation || op.kind == OperatorKind::concat || op.kind == OperatorKind::gather;
}

bool multiplies_activations(const Model& model, const Operator& op) {
  if (op.kind != OperatorKind::matmul || op.inputs.size() < 2) return false;
  for (std::size_t k = 0; k < 2; ++k) {
    const Tensor& tensor = model.tensors[storage_of(model, op.inputs[k].tensor)];
    if (tensor.role != TensorRole::activation || !tensor.requires_gradient) return false;
  }
  return weight_input(model, op) != 0 && weight_input(model, op) != 1;
}

/// Back along the input that carries a gradient until `wanted` holds.
template <class Wanted>
std::optional<OperatorId> trace_back(const Model& model, TensorId tensor, Wanted&& wanted) {
  for (int step = 0; step < kMostBetween; ++step) {
    const OperatorId producer = model.tensors[tensor].producer;
    if (!producer.valid()) return std::nullopt;
    const Operator& op = model.operators[producer];
    if (wanted(op)) return producer;
    if (!passes_on(op)) return std::nullopt;
    const auto next = std::find_if(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
      const Tensor& input = model.tensors[access.tensor];
      return input.role == TensorRole::activation && input.requires_gradient;
    });
    if (next == op.inputs.end()) return std::nullopt;
    tensor = next->tensor;
  }
  return std::nullopt;
}

std::optional<OperatorId> trace_forward(const Model& model, TensorId tensor) {
  for (int step = 0; step < kMostBetween; ++step) {
    const auto& uses = model.uses[tensor];
    for (const auto& use : uses)
      if (multiplies_activations(model, model.operators[use.op])) return use.op;
    const auto next = std::find_if(uses.begin(), uses.end(),
                                   [&](const Model::Use& use) { return passes_on(model.operators[use.op]); });
    if (next == uses.end()) return std::nullopt;
    tensor = model.operators[next->op].outputs.front().tensor;
  }
  return std::nullopt;
}

bool walks(const Access& access, int loop) {
  return std::any_of(access.walks.begin(), access.walks.end(),
                     [&](const auto& walk) { return std::find(walk.begin(), walk.end(), loop) != walk.end(); });
}

class Finder {
 public:
  Finder(const Model& model, bool split_windows) : model_(model) {
    roles_.dims = analyse_logical_dims(model, split_windows);
    for (auto* flags : {&roles_.is_head, &roles_.is_inner, &roles_.is_vocabulary})
      flags->assign(roles_.dims.classes.size(), 0);
  }

  Expected<TransformerRoles> run() {
    find_attentions();
    if (roles_.attentions.empty())
      return usage_error(
          "the model has no attention (a product of activations, a softmax and a product with the result)");
    find_residual_stream();
    if (residual_.empty())
      return usage_error("no weighted product leads into the heads of the model's attention or out of them");
    find_inner_channels();
    find_cores();
    find_layers();
    return std::move(roles_);
  }

 private:
  int dim_class(OperatorId op, std::size_t loop) const { return roles_.dims.at(op, static_cast<int>(loop)); }

  // What one operand of the scores is projected from: the input of the weighted product before it, and, since latent
  // attention projects twice (down to a narrow tensor and up to the heads), that of the product before that one.
  std::vector<TensorId> origins(TensorId operand) const {
    std::vector<TensorId> found;
    for (int products = 0; products < 2; ++products) {
      const auto product =
          trace_back(model_, operand, [&](const Operator& op) { return is_weighted_product(model_, op); });
      if (!product) break;
      operand = model_.operators[*product].inputs.front().tensor;
      found.push_back(storage_of(model_, operand));
    }
    return found;
  }

  // Queries and keys of one sequence come from one tensor. Operands without any projection are taken for one's own.
  bool share_an_origin(const Operator& scores) const {
    const auto queries = origins(scores.inputs[0].tensor), keys = origins(scores.inputs[1].tensor);
    return std::find_first_of(queries.begin(), queries.end(), keys.begin(), keys.end()) != queries.end() ||
           (queries.empty() && keys.empty());
  }

  void find_attentions() {
    std::int64_t fewest = 0;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& softmax = model_.operators[OperatorId(i)];
      std::optional<OperatorId> scores, context;
      if (softmax.kind == OperatorKind::attention) {
        scores = context = OperatorId(i);
      } else if (softmax.kind == OperatorKind::softmax) {
        scores = trace_back(model_, softmax.inputs.front().tensor,
                            [&](const Operator& op) { return multiplies_activations(model_, op); });
        context = trace_forward(model_, softmax.outputs.front().tensor);
      }
      if (!scores || !context) continue;
      AttentionCore core{*scores, OperatorId(i), *context, false};
      core.across = !share_an_origin(model_.operators[*scores]);
      const Operator& op = model_.operators[*scores];
      std::int64_t heads = 1;
      for (std::size_t l = 0; l < op.dims.size(); ++l) {
        const int loop = static_cast<int>(l);
        if (op.dims[l].name == DimName::batch || !walks(op.inputs[0], loop) || !walks(op.inputs[1], loop) ||
            !walks(op.outputs[0], loop))
          continue;
        roles_.is_head[static_cast<std::size_t>(dim_class(*scores, l))] = 1;
        heads *= op.dims[l].size;
      }
      // One key head for all queries: the queries' own heads are split, and keys and values are repeated.
      for (std::size_t l = 0; heads == 1 && l < op.dims.size(); ++l) {
        if (op.dims[l].name != DimName::head || !walks(op.outputs[0], static_cast<int>(l))) continue;
        roles_.is_head[static_cast<std::size_t>(dim_class(*scores, l))] = 1;
        heads = op.dims[l].size;
      }
      if (roles_.sequence == 0)
        for (const auto& dim : op.dims)
          if (dim.name == DimName::sequence) roles_.sequence = dim.size;
      fewest = roles_.attentions.empty() ? heads : std::min(fewest, heads);
      roles_.attentions.push_back(core);
    }
    roles_.heads = std::max<std::int64_t>(1, fewest);
  }

  // What a weighted product makes (parallel dimensions that the weight walks) and what it sums over.
  void for_each_product(const std::function<void(const std::set<int>& sums, const std::set<int>& makes)>& visit) const {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      if (!is_weighted_product(model_, op)) continue;
      const Access& weight = op.inputs[static_cast<std::size_t>(weight_input(model_, op))];
      std::set<int> sums, makes;
      for (std::size_t l = 0; l < op.dims.size(); ++l)
        if (walks(weight, static_cast<int>(l)) && op.dims[l].name != DimName::head_channel &&
            op.dims[l].name != DimName::expert)
          (op.dims[l].role == DimRole::reduction ? sums : makes).insert(dim_class(OperatorId(i), l));
      visit(sums, makes);
    }
  }

  void find_residual_stream() {
    // A model with one head has no head dimension; its projections still tell the residual stream.
    for_each_product([&](const std::set<int>& sums, const std::set<int>& makes) {
      const auto any_head = [&](const std::set<int>& classes) {
        return std::any_of(classes.begin(), classes.end(),
                           [&](int c) { return roles_.is_head[static_cast<std::size_t>(c)] != 0; });
      };
      const bool into = any_head(makes), out_of = any_head(sums);
      if (into && !out_of) residual_.insert(sums.begin(), sums.end());
      if (out_of && !into) residual_.insert(makes.begin(), makes.end());
    });
    if (!residual_.empty() || roles_.heads > 1) return;
    for (const auto& core : roles_.attentions) {
      const auto product = trace_back(model_, model_.operators[core.scores].inputs.front().tensor,
                                      [&](const Operator& op) { return is_weighted_product(model_, op); });
      if (!product) continue;
      const Operator& op = model_.operators[*product];
      for (std::size_t l = 0; l < op.dims.size(); ++l)
        if (op.dims[l].role == DimRole::reduction) residual_.insert(dim_class(*product, l));
    }
  }

  void find_inner_channels() {
    std::set<int> made, summed;
    for_each_product([&](const std::set<int>& sums, const std::set<int>& makes) {
      const auto meets = [&](const std::set<int>& classes) {
        return std::any_of(classes.begin(), classes.end(), [&](int c) { return residual_.count(c) > 0; });
      };
      if (meets(sums)) made.insert(makes.begin(), makes.end());
      if (meets(makes)) summed.insert(sums.begin(), sums.end());
    });
    for (const int c : made) {
      const auto index = static_cast<std::size_t>(c);
      const auto& known = roles_.dims.classes[index];
      if (known.name == DimName::vocabulary) roles_.is_vocabulary[index] = 1;
      if (!summed.count(c) || residual_.count(c) || roles_.is_head[index] || !known.splittable ||
          known.name == DimName::vocabulary)
        continue;
      roles_.is_inner[index] = 1;
      for (const auto& member : known.members)
        roles_.inner =
            std::gcd(roles_.inner, model_.operators[member.op].dims[static_cast<std::size_t>(member.loop)].size);
    }
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& op = model_.operators[OperatorId(i)];
      if (op.kind != OperatorKind::embedding) continue;
      for (std::size_t l = 0; l < op.dims.size(); ++l)
        if (op.dims[l].name == DimName::vocabulary)
          roles_.is_vocabulary[static_cast<std::size_t>(dim_class(OperatorId(i), l))] = 1;
    }
  }

  // What lies on a way from the scores to their product with the values.
  void find_cores() {
    roles_.core_of.assign(model_.operators.size(), -1);
    for (std::size_t c = 0; c < roles_.attentions.size(); ++c) {
      const std::uint32_t first = roles_.attentions[c].scores.index, last = roles_.attentions[c].context.index;
      if (first == last) continue;  // fused: it keeps nothing that could be made again
      std::vector<char> behind(last - first + 1, 0);  // the scores
      behind.front() = 1;
      const auto reads_one_behind = [&](const Operator& op) {
        return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
          const OperatorId producer = model_.tensors[access.tensor].producer;
          return producer.valid() && producer.index >= first && producer.index <= last &&
                 behind[producer.index - first] != 0;
        });
      };
      for (std::uint32_t p = first + 1; p <= last; ++p)
        behind[p - first] = reads_one_behind(model_.operators[OperatorId(p)]);
      const auto is_read_by_the_core = [&](const Operator& op) {
        return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const Access& access) {
          const auto& uses = model_.uses[access.tensor];
          return std::any_of(uses.begin(), uses.end(), [&](const Model::Use& use) {
            return roles_.core_of[use.op.index] == static_cast<int>(c);
          });
        });
      };
      roles_.core_of[last] = static_cast<int>(c);
      for (std::uint32_t p = last; p-- > first;)
        if (behind[p - first] && is_read_by_the_core(model_.operators[OperatorId(p)]))
          roles_.core_of[p] = static_cast<int>(c);
    }
  }

  void find_layers() {
    const std::size_t count = model_.operators.size();
    // alive[p]: bytes with gradient made before operator p and read at p or later.
    std::vector<double> alive(count + 1, 0);
    IdVector<TensorId, std::uint32_t> last_use(model_.tensors.size(), 0);
    for (std::size_t t = 0; t < model_.tensors.size(); ++t) {
      const Tensor& tensor = model_.tensors[TensorId(t)];
      if (!tensor.producer.valid() || tensor.role != TensorRole::activation || !tensor.requires_gradient) continue;
      for (const auto& use : model_.uses[TensorId(t)])
        last_use[TensorId(t)] = std::max(last_use[TensorId(t)], use.op.index);
      if (last_use[TensorId(t)] <= tensor.producer.index) continue;
      alive[tensor.producer.index + 1] += static_cast<double>(tensor.elements());
      alive[last_use[TensorId(t)] + 1] -= static_cast<double>(tensor.elements());
    }
    for (std::size_t p = 1; p <= count; ++p) alive[p] += alive[p - 1];

    std::uint32_t after = 0;  // the cut lies behind the attention before
    for (const auto& core : roles_.attentions) {
      if (core.across) {
        after = std::max(after, core.context.index + 1);
        continue;
      }
      std::uint32_t best = after;
      double least = -1;
      for (std::uint32_t p = after; p <= core.scores.index; ++p) {
        if (alive[p] <= 0) continue;  // nothing has been computed yet
        if (least < 0 || alive[p] <= least * (1 + 1e-12)) least = alive[p], best = p;
      }
      roles_.start.push_back(best);
      after = core.context.index + 1;
    }
    roles_.layers = static_cast<int>(roles_.start.size());
    if (roles_.layers == 0) return;
    // The last layer is as long as the one before it; a lone one ends where the stream is as narrow as at its start.
    std::uint32_t end = after;
    if (roles_.layers > 1) {
      const std::uint32_t last = roles_.start.back(), period = last - roles_.start[roles_.start.size() - 2];
      end = std::max(after, std::min(last + period, static_cast<std::uint32_t>(count)));
    } else {
      for (std::uint32_t p = after; p < count; ++p)
        if (alive[p] == alive[roles_.start.front()]) end = p;
    }
    roles_.start.push_back(end);
    roles_.layer_of.assign(count, -1);
    int layer = -1;
    for (std::uint32_t p = 0; p < count; ++p) {
      while (layer < roles_.layers && roles_.start[static_cast<std::size_t>(layer + 1)] <= p) ++layer;
      roles_.layer_of[p] = layer;
    }
    roles_.enters.resize(static_cast<std::size_t>(roles_.layers));
    for (std::size_t t = 0; t < model_.tensors.size(); ++t) {
      const Tensor& tensor = model_.tensors[TensorId(t)];
      if (!tensor.producer.valid() || last_use[TensorId(t)] <= tensor.producer.index) continue;
      for (const auto& use : model_.uses[TensorId(t)]) {
        const int at = roles_.layer_of[use.op.index];
        if (at < 0 || at >= roles_.layers || roles_.layer_of[tensor.producer.index] == at) continue;
        auto& list = roles_.enters[static_cast<std::size_t>(at)];
        if (list.empty() || list.back() != TensorId(t)) list.push_back(TensorId(t));
      }
    }
  }

  const Model& model_;
  TransformerRoles roles_;
  std::set<int> residual_;
};

}  // namespace

int TransformerRoles::tensor_parallel_loop(const Model& model, OperatorId id) const {
  const Operator& op = model.operators[id];
  if (op.kind == OperatorKind::input) return -1;
  const bool has_words = op.kind == OperatorKind::embedding || op.kind == OperatorKind::loss_statistics ||
                        is_weighted_product(model, op);
  for (std::size_t l = 0; l < op.dims.size(); ++l) {
    const int c = dims.at(id, static_cast<int>(l));
    if (c < 0 || !can_split(op, static_cast<int>(l), false)) continue;
    const auto index = static_cast<std::size_t>(c);
    if (is_head[index] || is_inner[index] ||
        (has_words && is_vocabulary[index] && op.dims[l].name == DimName::vocabulary))
      return static_cast<int>(l);
  }
  return -1;
}

Expected<TransformerRoles> find_transformer_roles(const Model& model, bool split_windows) {
  return Finder(model, split_windows).run();
}

}  // namespace turnpoint
