// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/layers.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace turnpoint {

void TransformerLayers::enter(const std::string& scope) {
  b_.set_scope(root_ + scope);
  prefix_ = root_ + scope + "/";
}

/// Layers of one group of shared parameters read the tensors of the group's first layer.
TensorId TransformerLayers::parameter(const std::string& leaf, std::vector<std::int64_t> sizes,
                                      std::vector<DimName> dims) {
  if (group_ < 0 || !prefix_.starts_with(layer_)) return b_.parameter(path(leaf), std::move(sizes), std::move(dims));
  const std::string key = fmt::format("{}:{}{}", group_, prefix_.substr(layer_.size()), leaf);
  const auto found = shared_.find(key);
  if (found != shared_.end()) return b_.tied_parameter(path(leaf), found->second, std::move(sizes), std::move(dims));
  const TensorId original = b_.parameter(path(leaf), std::move(sizes), std::move(dims));
  shared_.emplace(key, original);
  return original;
}

TensorId TransformerLayers::norm(const std::string& leaf, TensorId x, std::int64_t channels, int axis,
                                 TransformerShape::Norm kind) {
  const char* detail = kind == TransformerShape::Norm::rms ? "RMSNorm" : "LayerNorm";
  std::optional<TensorId> scale, bias;
  if (kind != TransformerShape::Norm::bare) scale = parameter(leaf + ".weight", {channels}, {DimName::channel});
  if (kind == TransformerShape::Norm::layer) bias = parameter(leaf + ".bias", {channels}, {DimName::channel});
  return b_.normalisation(path(leaf), x, axis, scale, bias, detail);
}

TensorId TransformerLayers::linear(const std::string& leaf, TensorId x, std::int64_t in, std::int64_t out,
                                   bool with_bias) {
  const TensorId w = parameter(leaf + ".weight", {in, out}, {DimName::in_channel, DimName::out_channel});
  std::optional<TensorId> bias;
  if (with_bias) bias = parameter(leaf + ".bias", {out}, {DimName::out_channel});
  return b_.linear(path(leaf), x, w, bias, false, DimName::channel);
}

TensorId TransformerLayers::add(const std::string& leaf, std::initializer_list<TensorId> operands) {
  return b_.elementwise(path(leaf), "Add", std::vector<TensorId>(operands),
                        {.flop_per_element = double(operands.size() - 1)});
}

// Whole but for the dimensions in `split`: as free as any view, it keeps what is done behind it from widening the
// choices before it.
TensorId TransformerLayers::narrow_view(const std::string& leaf, TensorId x, std::initializer_list<DimName> split) {
  const Tensor in = b_.tensor(x);
  const TensorId view = b_.reshape(path(leaf), x, in.shape, in.dims, "Identity");
  keep_whole(view, split);
  return view;
}

/// Nothing of the operator behind x is split but what is named.
void TransformerLayers::keep_whole(TensorId x, std::initializer_list<DimName> split) {
  if (b_.error()) return;
  for (auto& loop : b_.model().operators[b_.tensor(x).producer].dims)
    loop.splittable = std::find(split.begin(), split.end(), loop.name) != split.end();
}

TensorId TransformerLayers::dropout(TensorId x, const std::string& leaf) {
  const TensorId operands[] = {x};
  return b_.elementwise(path(leaf), "Dropout", operands, {.flop_per_element = 2, .saves_mask = true});
}

void TransformerLayers::enter_layer(std::int64_t index) {
  if (static_cast<std::size_t>(index) >= base_.each.size()) return;
  const LayerShape& own = base_.each[static_cast<std::size_t>(index)];
  const auto or_base = [](std::int64_t value, std::int64_t base) { return value > 0 ? value : base; };
  shape_.heads = or_base(own.heads, base_.heads);
  shape_.kv_heads = or_base(own.kv_heads, base_.kv_heads);
  shape_.head_channels = or_base(own.head_channels, base_.head_channels);
  shape_.value_channels = or_base(own.value_channels, base_.value_channels);
  shape_.intermediate = or_base(own.intermediate, base_.intermediate);
  shape_.latent.key_value_rank = or_base(own.key_value_rank, base_.latent.key_value_rank);
  shape_.indexer.heads = own.indexed ? base_.indexer.heads : 0;
  shape_.attention_sinks = base_.attention_sinks && own.sinks;
  shape_.block = own.block < 0 ? base_.block : static_cast<TransformerShape::Block>(own.block);
}

/// The norm before a branch, which A.X K2 multiplies by a sigmoid of two narrow products of itself.
TensorId TransformerLayers::branch_norm(std::int64_t index, bool feeding, TensorId x) {
  const TensorId y = norm("norm", x);
  if (shape_.gated_norm_rank == 0 || (feeding && !is_sparse(index))) return y;
  const TensorId low[] = {linear("norm_down", y, shape_.hidden, shape_.gated_norm_rank, false)};
  const TensorId act =
      b_.elementwise(path("norm_act"), "silu", low, {.flop_per_element = 4, .saves_input = {true}});
  return times("norm_gated", "Sigmoid*", linear("norm_up", act, shape_.gated_norm_rank, shape_.hidden, false), y);
}

TensorId TransformerLayers::layer(std::int64_t index, TensorId x) {
  using Block = TransformerShape::Block;
  const std::string scope = fmt::format("layer{}", index);
  layer_ = root_ + scope + "/";
  enter_layer(index);
  const LayerShape kinds =
      static_cast<std::size_t>(index) < base_.each.size() ? base_.each[static_cast<std::size_t>(index)] : LayerShape{};
  if (index == 0) embedded_ = x;
  if (shape_.shared_groups > 0) group_ = index * shape_.shared_groups / shape_.layers;
  if (shape_.position_buckets > 0 && (!position_table_ || shape_.own_buckets))
    position_table_ =
        b_.parameter((shape_.own_buckets ? layer_ : root_) + "positions.weight", {shape_.position_buckets * shape_.heads}, {DimName::channel});
  if (shape_.relative.rows > 0 && !distances_) make_distances();
  enter(scope + (kinds.mixer == Mixer::attention ? "/attention" : "/mixer"));
  const auto attend_to_self = [&](TensorId at) { return dropped(mix(kinds.mixer, at)); };
  const bool feeds = kinds.feed_forward != FeedForward::none;
  if (shape_.block == Block::parallel || shape_.block == Block::parallel_two_norms) {
    const TensorId normed = norm("norm", x);
    const TensorId attended = attend_to_self(normed);
    enter(scope + "/mlp");
    const TensorId own = shape_.block == Block::parallel ? normed : norm("norm", x);
    return add("add", {x, attended, dropped(feed_forward(index, own))});
  }
  bool feeding = false;
  const auto kept = [&](TensorId y) {
    if (!shape_.residual_scale) return y;
    const TensorId operands[] = {y, parameter("kept.weight", {shape_.hidden}, {DimName::channel})};
    return b_.elementwise(path("kept"), "Mul", operands, {.flop_per_element = 1, .saves_input = {true, true}});
  };
  const auto scaled = [&](TensorId y) {
    if (!shape_.layer_scale) return y;
    const TensorId operands[] = {y, parameter("scale.weight", {shape_.hidden}, {DimName::channel})};
    return b_.elementwise(path("scaled"), "Mul", operands, {.flop_per_element = 1, .saves_input = {true, true}});
  };
  const auto branch = [&](auto&& body) {
    // Where norms come first, the norm of a branch keeps channels whole and sums partial gradients before the residual
    // stream; where they come last, a view does.
    if (shape_.block == Block::post_norm)
      return norm("norm", add("add", {x, body(narrow_view("branch", x, {DimName::batch, DimName::sequence}))}));
    if (shape_.block == Block::norm_after)
      return add("add", {x, norm("norm", body(narrow_view("branch", x, {DimName::batch, DimName::sequence})))});
    const bool plain = index == 0 && !shape_.first_norm && !feeding;
    const TensorId seen = kinds.shared_block && !feeding ? add("shared_add", {x, shared_block(x)}) : x;
    const TensorId y = body(plain ? narrow_view("branch", x, {DimName::batch, DimName::sequence})
                                  : branch_norm(index, feeding, seen));
    return add("add", {kept(x), shape_.block == Block::sandwich ? norm("norm_after", y) : scaled(y)});
  };
  if (kinds.mixer != Mixer::none) x = branch(attend_to_self);
  if (memory_) {
    enter(scope + "/cross");
    const auto table = std::exchange(position_table_, std::nullopt);  // belongs to self attention only
    // The encoder's result is read by every layer, so its layout is one choice for all of them: it is kept to batch and
    // copies, which attention needs anyway; partial gradients are summed layer by layer.
    const TensorId source = narrow_view("memory", *memory_, {DimName::batch});
    x = branch([&](TensorId at) { return dropped(attention(at, source)); });
    position_table_ = table;
  }
  if (!feeds) return x;
  feeding = true;
  enter(scope + "/mlp");
  return branch([&](TensorId at) { return dropped(feed_forward(index, at)); });
}

}  // namespace turnpoint
