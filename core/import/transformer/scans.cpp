// SPDX-License-Identifier: Apache-2.0
// Layers that carry a state along the sequence instead of attending: Mamba, Mamba-2, delta nets, gated convolutions and
// recurrences. Each is made of ordinary products and one scan; heads and channels of a scan are independent of each
// other and can be split, its sequence cannot.
#include <algorithm>

#include "core/import/transformer/layers.h"

namespace turnpoint {

TensorId TransformerLayers::mix(Mixer mixer, TensorId x) {
  switch (mixer) {
    case Mixer::selective_scan: return selective_scan(x);
    case Mixer::state_space: return state_space(x);
    case Mixer::delta: return delta_net(x);
    case Mixer::short_convolution: return short_convolution(x);
    case Mixer::recurrence: return recurrence(x);
    case Mixer::weighted_average: return weighted_average(x);
    case Mixer::fourier: return fourier(x);
    case Mixer::matrix_memory: return matrix_memory(x);
    case Mixer::attention_and_state_space: {
      const TensorId attended = attention(x, x);
      return add("mixed", {attended, state_space(x)});
    }
    case Mixer::attention:
    case Mixer::none: break;
  }
  return shape_.latent.key_value_rank > 0 ? latent_attention(x) : attention(x, x);
}

/// Each channel of [batch, sequence, channel] with its own few last positions.
TensorId TransformerLayers::convolve_causally(const std::string& leaf, TensorId x, std::int64_t kernel, bool bias) {
  if (b_.error()) return x;
  const std::int64_t channels = b_.tensor(x).shape.back();
  ConvolutionShape shape;
  shape.kernel = {kernel};
  shape.strides = shape.dilations = {1};
  shape.pads_begin = {kernel - 1};
  shape.pads_end = {0};
  shape.groups = channels;
  const TensorId w =
      parameter(leaf + ".weight", {channels, 1, kernel}, {DimName::channel, DimName::in_channel, DimName::window});
  std::optional<TensorId> b;
  if (bias) b = parameter(leaf + ".bias", {channels}, {DimName::channel});
  const TensorId turned = b_.transpose(path(leaf + "_turn"), x, {0, 2, 1});
  const TensorId y = b_.convolution(path(leaf), turned, w, b, shape);
  return b_.transpose(path(leaf + "_back"), y, {0, 2, 1});
}

TensorId TransformerLayers::times(const std::string& leaf, const std::string& detail, TensorId gate, TensorId x) {
  const TensorId operands[] = {gate, x};
  return b_.elementwise(path(leaf), detail, operands, {.flop_per_element = 5, .saves_input = {true, true}});
}

/// arXiv 2312.00752, algorithm 2: every channel has `state` numbers of its own, updated and read at each position.
TensorId TransformerLayers::selective_scan(TensorId x) {
  const StateSpace& m = shape_.states;
  constexpr auto kRms = TransformerShape::Norm::rms;
  const TensorId z = linear("z", x, shape_.hidden, m.inner, m.projection_bias);
  const TensorId inner = linear("in", x, shape_.hidden, m.inner, m.projection_bias);
  const TensorId convolved_of[] = {convolve_causally("convolution", inner, m.kernel, m.convolution_bias)};
  const TensorId u =
      b_.elementwise(path("silu"), "silu", convolved_of, {.flop_per_element = 4, .saves_input = {true}});
  TensorId step = linear("rank", u, m.inner, m.rank, false);
  TensorId in_weights = linear("state_in", u, m.inner, m.state, false);
  TensorId out_weights = linear("state_out", u, m.inner, m.state, false);
  if (m.part_norms) {
    step = norm("rank_norm", step, m.rank, 2, kRms);
    in_weights = norm("state_in_norm", in_weights, m.state, 2, kRms);
    out_weights = norm("state_out_norm", out_weights, m.state, 2, kRms);
  }
  const TensorId dt = linear("step", step, m.rank, m.inner, true);
  const TensorId decay = parameter("decay", {m.inner, m.state}, {DimName::channel, DimName::other});
  const TensorId skip = parameter("skip", {m.inner}, {DimName::channel});
  enum : std::uint8_t { n, s, c, k, p };
  constexpr std::int64_t kKept = 64;  // positions between states kept for backward
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::channel, DimRole::parallel, m.inner, true},
                                     {DimName::other, DimRole::parallel, m.state, false},
                                     {DimName::time, DimRole::parallel, (sequence_ + kKept - 1) / kKept, false}};
  const double cells = double(batch_) * double(sequence_) * double(m.inner) * double(m.state);
  const ModelBuilder::ScanOperand operands[] = {
      {u, {{n}, {s}, {c}}},           {dt, {{n}, {s}, {c}}}, {in_weights, {{n}, {s}, {k}}},
      {out_weights, {{n}, {s}, {k}}}, {decay, {{c}, {k}}},   {skip, {{c}}}};
  const TensorId y = b_.scan(path("scan"), "SelectiveScan", std::move(dims), operands, {{n}, {s}, {c}},
                             {DimName::batch, DimName::sequence, DimName::channel},
                             {.macs = 2 * cells, .pointwise_flop = 4 * cells, .state_walks = {{n}, {p}, {c}, {k}}});
  return linear("out", times("gated", "silu*", z, y), m.inner, shape_.hidden, m.projection_bias);
}

/// arXiv 2405.21060, section 6: matrix products within chunks of positions, a state [channels, state] a head between.
TensorId TransformerLayers::state_space(TensorId x) {
  const StateSpace& m = shape_.states;
  const std::int64_t wide = m.groups * m.state, channels = m.inner / m.heads;
  const TensorId z = linear("z", x, shape_.hidden, m.inner, m.projection_bias);
  const auto convolved = [&](const std::string& leaf, std::int64_t width) {
    const TensorId of[] = {convolve_causally(leaf + "_convolution",
                                             linear(leaf, x, shape_.hidden, width, m.projection_bias), m.kernel,
                                             m.convolution_bias)};
    return b_.elementwise(path(leaf + "_silu"), "silu", of, {.flop_per_element = 4, .saves_input = {true}});
  };
  const TensorId u = convolved("in", m.inner), in_weights = convolved("state_in", wide),
                 out_weights = convolved("state_out", wide);
  const TensorId dt = linear("step", x, shape_.hidden, m.heads, m.projection_bias);
  const TensorId decay = parameter("decay", {m.heads}, {DimName::head});
  const TensorId skip = parameter("skip", {m.heads}, {DimName::head});
  const TensorId shift = parameter("step_shift", {m.heads}, {DimName::head});
  enum : std::uint8_t { n, s, h, d, g, p };
  const std::int64_t chunk = std::min(m.chunk, sequence_);
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::head, DimRole::parallel, m.heads, true},
                                     {DimName::head_channel, DimRole::parallel, channels, false},
                                     {DimName::other, DimRole::parallel, m.state, false},
                                     {DimName::time, DimRole::parallel, (sequence_ + chunk - 1) / chunk, false}};
  const ModelBuilder::ScanOperand operands[] = {{u, {{n}, {s}, {h, d}}},  {dt, {{n}, {s}, {h}}},
                                                {in_weights, {{n}, {s}, {}}}, {out_weights, {{n}, {s}, {}}},
                                                {decay, {{h}}},           {skip, {{h}}},
                                                {shift, {{h}}}};
  const double tokens = double(batch_) * double(sequence_), inner = double(m.inner);
  const double macs = tokens * (double(chunk) * (double(wide) + inner) + 2 * double(m.state) * inner);
  TensorId y = b_.scan(path("scan"), "StateSpaceScan", std::move(dims), operands, {{n}, {s}, {h, d}},
                       {DimName::batch, DimName::sequence, DimName::channel},
                       {.macs = macs,
                        .pointwise_flop = tokens * (6 * double(m.heads) + 2 * inner),
                        .state_walks = {{n}, {p}, {h}, {d}, {g}}});
  y = times("gated", "silu*", z, y);
  if (m.norm) y = norm("norm_inner", y, m.inner, 2, TransformerShape::Norm::rms);
  return linear("out", y, m.inner, shape_.hidden, m.projection_bias);
}

/// arXiv 2412.06464, section 3.3: the chunkwise form with 64 positions a chunk, as its kernels use it.
TensorId TransformerLayers::delta_net(TensorId x) {
  const DeltaNet& m = shape_.delta;
  const std::int64_t keys = m.key_heads * m.key_channels, values = m.value_heads * m.value_channels;
  const auto convolved = [&](const std::string& leaf, std::int64_t width) {
    const TensorId of[] = {
        convolve_causally(leaf + "_convolution", linear(leaf, x, shape_.hidden, width, false), m.kernel, false)};
    return b_.elementwise(path(leaf + "_silu"), "silu", of, {.flop_per_element = 4, .saves_input = {true}});
  };
  const TensorId q = convolved("q", keys), k = convolved("k", keys), v = convolved("v", values);
  const std::int64_t decays = m.channel_decay ? m.value_heads * m.key_channels : m.value_heads;
  const auto through = [&](const std::string& leaf, std::int64_t rank, std::int64_t width) {
    if (rank == 0) return linear(leaf, x, shape_.hidden, width, false);
    return linear(leaf, linear(leaf + "_down", x, shape_.hidden, rank, false), rank, width, false);
  };
  const TensorId decay = through("decay", m.decay_rank, decays);
  const TensorId rate = linear("rate", x, shape_.hidden, m.value_heads, false);
  const TensorId scale = parameter("decay_scale", {m.value_heads}, {DimName::head});
  const TensorId shift = parameter("decay_shift", {decays}, {DimName::head});
  enum : std::uint8_t { n, s, h, r, d, e, p };
  const std::int64_t shared = m.value_heads / m.key_heads, chunk = std::min<std::int64_t>(64, sequence_);
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::head, DimRole::parallel, m.key_heads, true},
                                     {DimName::group, DimRole::parallel, shared, false},
                                     {DimName::head_channel, DimRole::parallel, m.value_channels, false},
                                     {DimName::other, DimRole::parallel, m.key_channels, false},
                                     {DimName::time, DimRole::parallel, (sequence_ + chunk - 1) / chunk, false}};
  const std::vector<std::uint8_t> by_decay =
      m.channel_decay ? std::vector<std::uint8_t>{h, r, e} : std::vector<std::uint8_t>{h, r};
  const ModelBuilder::ScanOperand operands[] = {{q, {{n}, {s}, {h, e}}},     {k, {{n}, {s}, {h, e}}},
                                                {v, {{n}, {s}, {h, r, d}}},  {decay, {{n}, {s}, by_decay}},
                                                {rate, {{n}, {s}, {h, r}}},  {scale, {{h, r}}},
                                                {shift, {by_decay}}};
  const double tokens = double(batch_) * double(sequence_), dk = double(m.key_channels), dv = double(m.value_channels);
  const double macs = tokens * double(m.value_heads) * (double(chunk) * (3 * dk + 2 * dv) + 3 * dk * dv);
  const TensorId y = b_.scan(path("scan"), "DeltaRule", std::move(dims), operands, {{n}, {s}, {h, r, d}},
                             {DimName::batch, DimName::sequence, DimName::channel},
                             {.macs = macs,
                              .pointwise_flop = tokens * (8 * double(decays) + 6 * double(values)),
                              .state_walks = {{n}, {p}, {h}, {r}, {d}, {e}}});
  const TensorId by_head = b_.reshape(path("heads"), y, {batch_, sequence_, m.value_heads, m.value_channels},
                                      {DimName::batch, DimName::sequence, DimName::head, DimName::head_channel});
  const TensorId normed = norm("norm_inner", by_head, m.value_channels, 3, TransformerShape::Norm::rms);
  const TensorId joined = b_.reshape(path("join"), normed, {batch_, sequence_, values},
                                     {DimName::batch, DimName::sequence, DimName::channel});
  return linear("out", times("gated", "silu*", through("gate", m.gate_rank, values), joined), values, shape_.hidden,
                false);
}

/// arXiv 2405.04517, section 2.3, in chunks: per head a matrix that a gated key writes its value to and a query reads.
TensorId TransformerLayers::matrix_memory(TensorId x) {
  const DeltaNet& m = shape_.delta;
  const std::int64_t heads = m.value_heads, keys = heads * m.key_channels, values = heads * m.value_channels;
  const TensorId q = linear("q", x, shape_.hidden, keys, false), k = linear("k", x, shape_.hidden, keys, false);
  const TensorId v = linear("v", x, shape_.hidden, values, false);
  const TensorId write = linear("input_gate", x, shape_.hidden, heads, true);
  const TensorId keep = linear("forget_gate", x, shape_.hidden, heads, true);
  enum : std::uint8_t { n, s, h, d, e, p };
  const std::int64_t chunk = std::min(m.chunk, sequence_);
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::head, DimRole::parallel, heads, true},
                                     {DimName::head_channel, DimRole::parallel, m.value_channels, false},
                                     {DimName::other, DimRole::parallel, m.key_channels, false},
                                     {DimName::time, DimRole::parallel, (sequence_ + chunk - 1) / chunk, false}};
  const ModelBuilder::ScanOperand operands[] = {{q, {{n}, {s}, {h, e}}},
                                                {k, {{n}, {s}, {h, e}}},
                                                {v, {{n}, {s}, {h, d}}},
                                                {write, {{n}, {s}, {h}}},
                                                {keep, {{n}, {s}, {h}}}};
  const double tokens = double(batch_) * double(sequence_), dk = double(m.key_channels), dv = double(m.value_channels);
  const double macs = tokens * double(heads) * (double(chunk) * (dk + dv) + 2 * dk * dv);
  const TensorId y = b_.scan(path("scan"), "MatrixMemory", std::move(dims), operands, {{n}, {s}, {h, d}},
                             {DimName::batch, DimName::sequence, DimName::channel},
                             {.macs = macs,
                              .pointwise_flop = tokens * double(heads) * (8 * double(chunk) + 2 * dv),
                              .state_walks = {{n}, {p}, {h}, {d}, {e}}});
  const TensorId by_head = b_.reshape(path("heads"), y, {batch_, sequence_, heads, m.value_channels},
                                      {DimName::batch, DimName::sequence, DimName::head, DimName::head_channel});
  const TensorId normed = norm("norm_inner", by_head, m.value_channels, 3, TransformerShape::Norm::bare);
  const TensorId joined = b_.reshape(path("join"), normed, {batch_, sequence_, values},
                                     {DimName::batch, DimName::sequence, DimName::channel});
  const TensorId scale = parameter("norm_inner.weight", {values}, {DimName::channel});
  const TensorId gate = linear("gate", x, shape_.hidden, values, false);
  return linear("out", times("gated", "Sigmoid*", gate, times("scaled", "Mul", scale, joined)), values, shape_.hidden,
                false);
}

/// LFM2: out(c * convolution(b * x)), all three from one product of the input.
TensorId TransformerLayers::short_convolution(TensorId x) {
  const std::int64_t width = shape_.hidden;
  const bool bias = shape_.convolution_bias;
  const TensorId before = linear("gate_before", x, width, width, bias), after = linear("gate_after", x, width, width, bias);
  const TensorId gated = times("gated_before", "Mul", before, linear("in", x, width, width, bias));
  const TensorId y = convolve_causally("convolution", gated, shape_.convolution_kernel, bias);
  return linear("out", times("gated_after", "Mul", after, y), width, width, bias);
}

/// arXiv 2402.19427, section 2.4: a gated linear recurrence of single channels, its gates made head by head.
TensorId TransformerLayers::recurrence(TensorId x) {
  const std::int64_t width = shape_.recurrence_channels, heads = shape_.heads, own = width / heads;
  const TensorId branch_of[] = {linear("gate", x, shape_.hidden, width, true)};
  const TensorId branch =
      b_.elementwise(path("gate_act"), "gelu", branch_of, {.flop_per_element = 8, .saves_input = {true}});
  const TensorId u = convolve_causally("convolution", linear("in", x, shape_.hidden, width, true),
                                       shape_.convolution_kernel, true);
  enum : std::uint8_t { n, s, h, o, i };
  const auto block_product = [&](const std::string& leaf) {
    std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                       {DimName::sequence, DimRole::parallel, sequence_, true},
                                       {DimName::head, DimRole::parallel, heads, true},
                                       {DimName::out_channel, DimRole::parallel, own, false},
                                       {DimName::in_channel, DimRole::reduction, own, false}};
    const TensorId w =
        parameter(leaf + ".weight", {heads, own, own}, {DimName::head, DimName::in_channel, DimName::out_channel});
    const TensorId bias = parameter(leaf + ".bias", {heads, own}, {DimName::head, DimName::out_channel});
    return b_.contraction(path(leaf), "BlockLinear", std::move(dims), u, {{n}, {s}, {h, i}}, w, {{h}, {i}, {o}},
                          {{n}, {s}, {h, o}}, {DimName::batch, DimName::sequence, DimName::channel}, bias, {{h}, {o}});
  };
  const TensorId input_gate = block_product("input_gate"), keep_gate = block_product("recurrent_gate");
  const TensorId rate = parameter("rate", {width}, {DimName::channel});
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, false},
                                     {DimName::channel, DimRole::parallel, width, true}};
  const ModelBuilder::ScanOperand operands[] = {
      {u, {{0}, {1}, {2}}}, {input_gate, {{0}, {1}, {2}}}, {keep_gate, {{0}, {1}, {2}}}, {rate, {{2}}}};
  const double cells = double(batch_) * double(sequence_) * double(width);
  const TensorId y = b_.scan(path("scan"), "GatedRecurrence", std::move(dims), operands, {{0}, {1}, {2}},
                             {DimName::batch, DimName::sequence, DimName::channel},
                             {.macs = cells, .pointwise_flop = 16 * cells, .state_walks = {{0}, {1}, {2}}});
  return linear("out", times("gated", "Mul", branch, y), width, shape_.hidden, true);
}

}  // namespace turnpoint
