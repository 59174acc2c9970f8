// SPDX-License-Identifier: Apache-2.0
// Layers without attention of their own: RWKV's averages (arXiv 2305.13048, section 3), FNet's transforms, and the block
// of attention that layers of Zamba share. Positions of the first two see their neighbours, so a sequence is not split.
#include <cmath>

#include "core/import/transformer/layers.h"

namespace turnpoint {

/// Each channel mixed with the same one at the position before, by a learned share.
TensorId TransformerLayers::mixed_with_last(const std::string& leaf, TensorId x) {
  const TensorId operands[] = {x, parameter(leaf + "_share.weight", {shape_.hidden}, {DimName::channel})};
  const TensorId y = b_.elementwise(path(leaf + "_shared"), "TimeMix", operands,
                                    {.flop_per_element = 3, .saves_input = {true, true}});
  keep_whole(y, {DimName::batch, DimName::channel});
  return y;
}

/// out(sigmoid(r) * average), the average of values weighted by exp(key) and decaying channel by channel.
TensorId TransformerLayers::weighted_average(TensorId x) {
  const std::int64_t width = shape_.recurrence_channels;
  const TensorId k = linear("k", mixed_with_last("k", x), shape_.hidden, width, false);
  const TensorId v = linear("v", mixed_with_last("v", x), shape_.hidden, width, false);
  const TensorId r = linear("gate", mixed_with_last("gate", x), shape_.hidden, width, false);
  const TensorId decay = parameter("decay", {width}, {DimName::channel});
  const TensorId first = parameter("first", {width}, {DimName::channel});
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::channel, DimRole::parallel, width, true}};
  const ModelBuilder::ScanOperand operands[] = {{k, {{0}, {1}, {2}}}, {v, {{0}, {1}, {2}}}, {decay, {{2}}}, {first, {{2}}}};
  const double cells = double(batch_) * double(sequence_) * double(width);
  // Two sums go along, of weights and of weighted values: two multiply-accumulates, and four exponentials to scale them.
  const TensorId y = b_.scan(path("scan"), "WeightedAverage", std::move(dims), operands, {{0}, {1}, {2}},
                             {DimName::batch, DimName::sequence, DimName::channel},
                             {.macs = 2 * cells, .pointwise_flop = 24 * cells, .state_walks = {{0}, {1}, {2}}});
  return linear("out", times("gated", "Sigmoid*", r, y), width, shape_.hidden, false);
}

TensorId TransformerLayers::gated_mix(TensorId x) {
  const TensorId up[] = {linear("up", mixed_with_last("up", x), shape_.hidden, shape_.intermediate, false)};
  const TensorId act =
      b_.elementwise(path("act"), "relu2", up, {.flop_per_element = 2, .saves_input = {true}});
  const TensorId gate = linear("gate", mixed_with_last("gate", x), shape_.hidden, shape_.hidden, false);
  return times("gated", "Sigmoid*", gate, linear("down", act, shape_.intermediate, shape_.hidden, false));
}

/// The real part of the transform over positions and channels, by the fast algorithm: 5 n log2(n) for n numbers.
TensorId TransformerLayers::fourier(TensorId x) {
  const TensorId operands[] = {x};
  const double flop = 5 * (std::log2(double(sequence_)) + std::log2(double(shape_.hidden)));
  const TensorId y = b_.elementwise(path("transform"), "Fourier", operands, {.flop_per_element = std::max(1.0, flop)});
  keep_whole(y, {DimName::batch});
  return y;
}

/// A product plus one of low rank of the same input, which each layer that uses the block has for itself.
TensorId TransformerLayers::beside(const std::string& leaf, TensorId product, TensorId x, Heads kind) {
  const TensorId low = linear(leaf + "_low", x, b_.tensor(x).shape.back(), shape_.shared.rank, false);
  return add(leaf + "_sum",
             {product, project(leaf + "_high", low, kind, shape_.shared.rank, shape_.head_channels, false)});
}

TensorId TransformerLayers::shared_block(TensorId x) {
  if (b_.error()) return x;
  const std::string scope = prefix_.substr(root_.size(), prefix_.size() - root_.size() - 1);
  const std::int64_t wide = 2 * shape_.hidden, inner = shape_.intermediate, rank = shape_.shared.rank;
  const std::int64_t block = blocks_met_++ % shape_.shared.blocks;
  enter(scope + "/shared");
  // The embeddings are read by every such layer, so their layout is one choice for all of them: kept to batch and copies.
  const TensorId both[] = {x, narrow_view("embedded", *embedded_, {DimName::batch})};
  group_ = block;
  const TensorId seen = norm("norm", b_.concat(path("join"), both, 2), wide);
  TensorId q = project("q", seen, Heads::query, wide, shape_.head_channels, false);
  TensorId k = project("k", seen, Heads::key_value, wide, shape_.head_channels, false);
  TensorId v = project("v", seen, Heads::key_value, wide, shape_.head_channels, false);
  if (shape_.shared.attention_rank) {
    group_ = -1;
    q = beside("q", q, seen, Heads::query);
    k = beside("k", k, seen, Heads::key_value);
    v = beside("v", v, seen, Heads::key_value);
    group_ = block;
  }
  const TensorId fed = norm("mlp_norm", attend(q, k, v, seen));
  TensorId gate = linear("gate", fed, shape_.hidden, inner, shape_.mlp_bias);
  TensorId up = linear("up", fed, shape_.hidden, inner, shape_.mlp_bias);
  if (rank > 0) {
    group_ = -1;
    const TensorId low = linear("mlp_low", fed, shape_.hidden, rank, false);
    gate = add("gate_sum", {gate, linear("gate_high", low, rank, inner, false)});
    up = add("up_sum", {up, linear("up_high", low, rank, inner, false)});
    group_ = block;
  }
  const TensorId down = linear("down", times("act", shape_.activation + "*up", gate, up), inner, shape_.hidden, shape_.mlp_bias);
  group_ = -1;
  const TensorId behind = linear("behind", down, shape_.hidden, shape_.hidden, false);
  enter(scope);
  return behind;
}

}  // namespace turnpoint
