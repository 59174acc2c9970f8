// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/layers.h"

namespace turnpoint {

TensorId TransformerLayers::mlp(TensorId x, std::int64_t width, const std::string& stem) {
  const auto name = [&](const char* leaf) { return stem.empty() ? std::string(leaf) : stem + "_" + leaf; };
  const bool inner_bias = shape_.mlp_bias && shape_.gate_bias;
  const auto down = [&](TensorId inner) {
    if (shape_.activation_dropout) inner = dropout(inner, name("act_dropout"));
    if (shape_.mlp_norm) inner = norm(name("norm_inner"), inner, width);
    return linear(name("down"), inner, width, shape_.hidden, shape_.mlp_bias);
  };
  if (shape_.mlp == TransformerShape::Mlp::gated) {
    const TensorId gate = linear(name("gate"), x, shape_.hidden, width, inner_bias);
    const TensorId up = linear(name("up"), x, shape_.hidden, width, inner_bias);
    const TensorId operands[] = {gate, up};
    return down(b_.elementwise(path(name("act")), shape_.activation + "*up", operands,
                               {.flop_per_element = 6, .saves_input = {true, true}}));
  }
  const TensorId up = linear(name("up"), x, shape_.hidden, width, inner_bias);
  const ElementwiseTraits traits{
      .flop_per_element = is_relu() ? 1.0 : 8.0, .saves_output = is_relu(), .saves_input = {!is_relu()}};
  const TensorId operands[] = {up};
  return down(b_.elementwise(path(name("act")), shape_.activation, operands, traits));
}

bool TransformerLayers::is_sparse(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  const auto& dense = shape_.moe.dense;
  const auto own = at < base_.each.size() ? base_.each[at].feed_forward : FeedForward::by_list;
  if (own != FeedForward::by_list) return own == FeedForward::experts;
  return shape_.moe.experts > 0 && !(at < dense.size() && dense[at]);
}

TensorId TransformerLayers::feed_forward(std::int64_t index, TensorId x) {
  const auto at = static_cast<std::size_t>(index);
  if (at < base_.each.size() && base_.each[at].feed_forward == FeedForward::gated_mix) return gated_mix(x);
  return is_sparse(index) ? mixture(x) : mlp(x, shape_.intermediate);
}

/// One product for all experts: [batch_, expert, slot, in] with a weight [expert, in, out]. `filled`: the part of the
/// slots that hold a token; work is counted for those only.
TensorId TransformerLayers::expert_product(const std::string& leaf, TensorId x, std::int64_t in, std::int64_t out,
                                           double filled) {
  const auto& moe = shape_.moe;
  const TensorId w =
      parameter(leaf + ".weight", {moe.experts, in, out}, {DimName::expert, DimName::in_channel, DimName::out_channel});
  b_.add_idle_parameters((moe.experts - moe.per_token) * in * out);
  enum : std::uint8_t { n, e, s, o, k };
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::expert, DimRole::parallel, moe.experts, true},
                                     {DimName::sequence, DimRole::parallel, b_.tensor(x).shape[2], true},
                                     {DimName::out_channel, DimRole::parallel, out, true},
                                     {DimName::in_channel, DimRole::reduction, in, true}};
  std::optional<TensorId> bias;
  if (moe.expert_bias) {
    bias = parameter(leaf + ".bias", {moe.experts, out}, {DimName::expert, DimName::out_channel});
    b_.add_idle_parameters((moe.experts - moe.per_token) * out);
  }
  const TensorId y = b_.contraction(
      path(leaf), "ExpertLinear", std::move(dims), x, {{n}, {e}, {s}, {k}}, w, {{e}, {k}, {o}}, {{n}, {e}, {s}, {o}},
      {DimName::batch, DimName::expert, DimName::sequence, DimName::channel}, bias, {{e}, {o}});
  if (b_.error()) return y;
  auto& op = b_.model().operators[b_.tensor(y).producer];
  for (double* work : {&op.forward_flop, &op.backward_flop, &op.forward_macs, &op.backward_macs}) *work *= filled;
  return y;
}

TensorId TransformerLayers::mixture(TensorId x) {
  const auto& moe = shape_.moe;
  const TensorId scores_weight =
      parameter("router.weight", {shape_.hidden, moe.experts}, {DimName::in_channel, DimName::expert});
  std::optional<TensorId> scores_bias;
  if (moe.router_bias) scores_bias = parameter("router.bias", {moe.experts}, {DimName::expert});
  const TensorId scores = b_.linear(path("router"), x, scores_weight, scores_bias, false, DimName::expert);
  const TensorId routing = b_.softmax(path("routing"), scores, 2, "SoftmaxTopK");

  const std::int64_t chosen = sequence_ * moe.per_token, slots = (chosen + moe.experts - 1) / moe.experts;
  const double filled = double(chosen) / (double(slots) * double(moe.experts));
  const TensorId tokens = b_.dispatch(path("dispatch"), x, routing, slots);
  TensorId hidden;
  const auto activate = [&](std::span<const TensorId> operands, const std::string& detail,
                            const ElementwiseTraits& traits) {
    return b_.elementwise(path("experts_act"), detail, operands, traits);
  };
  if (shape_.mlp == TransformerShape::Mlp::gated) {
    const TensorId operands[] = {expert_product("experts_gate", tokens, shape_.hidden, moe.intermediate, filled),
                                 expert_product("experts_up", tokens, shape_.hidden, moe.intermediate, filled)};
    hidden =
        activate(operands, shape_.activation + "*up", {.flop_per_element = 6 * filled, .saves_input = {true, true}});
  } else {
    const TensorId operands[] = {expert_product("experts_up", tokens, shape_.hidden, moe.intermediate, filled)};
    hidden = activate(operands, shape_.activation,
                      {.flop_per_element = 8 * filled, .saves_output = is_relu(), .saves_input = {!is_relu()}});
  }
  const TensorId down = expert_product("experts_down", hidden, moe.intermediate, shape_.hidden, filled);
  const TensorId mixed = b_.combine(path("combine"), down, sequence_);
  if (moe.shared_intermediate == 0) return mixed;
  TensorId shared = mlp(x, moe.shared_intermediate, "shared");
  if (moe.shared_gate) {
    const TensorId operands[] = {linear("shared_scale", x, shape_.hidden, 1, false), shared};
    shared = b_.elementwise(path("shared_scaled"), "Sigmoid*", operands,
                            {.flop_per_element = 2, .saves_input = {true, true}});
  }
  return add("experts_add", {mixed, shared});
}

}  // namespace turnpoint
