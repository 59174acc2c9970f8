// SPDX-License-Identifier: Apache-2.0
// Networks small enough to execute many times, which between them hold every kind of operator that can be executed.
#pragma once

#include <functional>
#include <vector>

#include "core/import/transformer/transformer.h"
#include "core/model/fuse_attention.h"
#include "search/wide_models.h"

namespace turnpoint::test {

/// An LSTM over embedded words, its last states to classes.
inline ModelPtr lstm(int gates, bool batch_first, bool split_hidden, int directions = 1) {
  const std::int64_t batch = 8, time = 3, in = 4, hidden = 8, vocabulary = 16;
  ModelBuilder b("recurrent", "test", batch, time);
  const TensorId tokens = b.input(
      "tokens", batch_first ? std::vector<std::int64_t>{batch, time} : std::vector<std::int64_t>{time, batch},
      batch_first ? std::vector{DimName::batch, DimName::sequence} : std::vector{DimName::sequence, DimName::batch},
      ElementType::i64);
  const TensorId x = b.embedding("embed", b.parameter("table", {vocabulary, in}), tokens);
  const TensorId y = b.recurrent("cell",
                                 gates == 4   ? "LSTM"
                                 : gates == 3 ? "GRU"
                                              : "RNN",
                                 x, b.parameter("w", {directions, gates * hidden, in}),
                                 b.parameter("r", {directions, gates * hidden, hidden}),
                                 b.parameter("bias", {directions, (directions == 1 ? 1 : 2) * gates * hidden}), gates,
                                 directions, hidden, batch_first, split_hidden);
  if (!batch_first) return finished(b, b.reduction("sum", "ReduceSum", y, {0}, false));
  return finished(b, b.linear("head", y, b.parameter("wh", {directions * hidden, 8}), b.parameter("bh", {8})));
}

/// Multi-head attention by views, dropout, gelu and a gated unit; RMS normalisation.
inline ModelPtr block(std::int64_t batch = 4, std::int64_t sequence = 4, std::int64_t hidden = 8,
                      std::int64_t heads = 2) {
  ModelBuilder b("block", "test", batch, sequence);
  TensorId x =
      b.input("x", {batch, sequence, hidden}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
  x = b.linear("stem", x, b.parameter("w0", {hidden, hidden}), b.parameter("b0", {hidden}));
  const TensorId skip = x;
  x = b.normalisation("norm", x, 2, b.parameter("g", {hidden}), {}, "RMSNormalization");
  const auto split_heads = [&](const std::string& name, TensorId t, std::vector<int> order) {
    t = b.reshape(name + "_heads", t, {batch, sequence, heads, hidden / heads});
    return b.transpose(name + "_turned", t, std::move(order));
  };
  const TensorId q = split_heads("q", b.linear("q", x, b.parameter("wq", {hidden, hidden})), {0, 2, 1, 3});
  const TensorId k = split_heads("k", b.linear("k", x, b.parameter("wk", {hidden, hidden})), {0, 2, 3, 1});
  const TensorId v = split_heads("v", b.linear("v", x, b.parameter("wv", {hidden, hidden})), {0, 2, 1, 3});
  TensorId weights = b.softmax("softmax", b.matmul("scores", q, k), 3);
  const std::array one{weights};
  weights = b.elementwise("dropout", "Dropout", one, {2, false, {}, {}, true});
  x = b.matmul("context", weights, v);
  x = b.transpose("back", x, {0, 2, 1, 3});
  x = b.reshape("merged", x, {batch, sequence, hidden});
  x = b.linear("out", x, b.parameter("wo", {hidden, hidden}), b.parameter("bo", {hidden}));
  std::array two{x, skip};
  x = b.elementwise("add", "Add", two);
  const TensorId skip2 = x;
  std::array up{b.linear("gate", x, b.parameter("wg", {hidden, 2 * hidden})),
                b.linear("up", x, b.parameter("wu", {hidden, 2 * hidden}))};
  const std::array act{b.elementwise("act", "Gelu", std::array{up[0]}, {12, false, {true}}), up[1]};
  x = b.elementwise("gated", "Mul", act, {1, false, {true, true}});
  x = b.linear("down", x, b.parameter("wd", {2 * hidden, hidden}));
  two = {x, skip2};
  x = b.elementwise("add2", "Add", two);
  return finished(b, b.reduction("pooled", "ReduceMean", x, {1}, false));
}

/// Token table used transposed for the logits, a logarithmic softmax, a maximum over the sequence, a highway unit.
inline ModelPtr turned_table(std::int64_t batch = 4, std::int64_t sequence = 4, std::int64_t hidden = 12) {
  const std::int64_t vocabulary = 8;
  ModelBuilder b("turned", "test", batch, sequence);
  const TensorId tokens = b.input("tokens", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId table = b.parameter("table", {vocabulary, hidden}, {DimName::vocabulary, DimName::channel});
  TensorId x = b.embedding("embed", table, tokens);
  x = b.reduction("largest", "ReduceMax", x, {1}, false, false);
  const std::array three{b.linear("t", x, b.parameter("wt", {hidden, hidden})),
                         b.linear("h", x, b.parameter("wh", {hidden, hidden}), b.parameter("bh", {hidden})), x};
  x = b.elementwise("mix", "Highway", three, {10, false, {true, true, true}});
  x = b.linear("logits", x, b.tied_parameter("table_out", table, {hidden, vocabulary}), {}, false, DimName::vocabulary);
  return finished(b, b.softmax("chances", x, 1, "LogSoftmax"));
}

/// Grouped and transposed convolutions, average pooling, slices, an unknown function.
inline ModelPtr vision(std::int64_t batch = 6) {
  ModelBuilder b("vision", "test", batch, 0);
  TensorId x = b.input("x", {batch, 4, 6, 6}, {DimName::batch, DimName::channel, DimName::height, DimName::width},
                       ElementType::f32);
  ConvolutionShape shape{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2, false};
  x = b.convolution("grouped", x, b.parameter("w1", {12, 2, 3, 3}), b.parameter("b1", {12}), shape);
  const auto parts = b.split("parts", x, 1, std::array<std::int64_t, 2>{6, 6});
  const std::array one{b.elementwise("silu", "Swish", std::array{parts[0]}, {5, false, {true}}), parts[1]};
  x = b.elementwise("gated", "Mul", one, {1, false, {true, true}});
  shape = {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1, true};
  x = b.convolution("up", x, b.parameter("w2", {6, 4, 2, 2}), b.parameter("b2", {4}), shape);
  x = b.pooling("average", "AveragePool", x, {batch, 4, 3, 3}, {2, 2}, false);
  x = b.opaque("unknown", "Mystery", std::array{x}, {batch, 4, 5}, ElementType::f32);
  x = b.pooling("global", "GlobalAveragePool", x, {batch, 4, 1}, {}, false);
  x = b.reshape("flat", x, {batch, 4});
  return finished(b, b.linear("head", x, b.parameter("wh", {4, 6}), b.parameter("bh", {6})));
}

/// Two inputs through the same layer, and how far apart they come out.
inline ModelPtr twins(std::int64_t batch = 4) {
  ModelBuilder b("twins", "test", batch, 0);
  const TensorId weight = b.parameter("w", {16, 8});
  const auto branch = [&](const std::string& name, TensorId w) {
    const TensorId x = b.input(name, {batch, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    const std::array one{b.linear(name + "_layer", x, w)};
    return b.elementwise(name + "_tanh", "Tanh", one, {1, false, {}});
  };
  const std::array two{branch("left", weight), branch("right", b.tied_parameter("w_again", weight, {16, 8}))};
  const TensorId apart = b.elementwise("apart", "Sub", two);
  return finished(b, b.linear("head", apart, b.parameter("wh", {8, 2})));
}

/// A layer of DeepSeek's attention, whose keys are two tensors, or of T5's, which adds a table to the scores.
inline ModelPtr open_attention(bool latent, bool key_bias = false) {
  TransformerShape shape;
  shape.layers = 1, shape.hidden = 8, shape.heads = shape.kv_heads = 2, shape.head_channels = 4;
  shape.intermediate = 8, shape.vocabulary = 8, shape.positions = 4;
  shape.norm = TransformerShape::Norm::rms;
  shape.qkv_bias = key_bias;
  if (latent)
    shape.latent = {6, 0, 2, 4};
  else
    shape.position_buckets = 3;
  const auto model = build_transformer(shape, latent ? "latent" : "distances", "test", 4, 4);
  return model ? *model : nullptr;
}

struct StepModel {
  const char* name;
  std::function<ModelPtr()> make;
};
inline const std::vector<StepModel>& step_models() {
  static const std::vector<StepModel> kModels = {
      {"mlp", [] { return mlp(12); }},
      {"residual", [] { return residual(12); }},
      {"attention", [] { return attention(4, 4); }},
      {"convolution", [] { return convolution(6); }},
      {"block", [] { return block(); }},
      {"vision", [] { return vision(); }},
      {"lstm", [] { return lstm(4, true, true); }},
      {"gru", [] { return lstm(3, false, true, 2); }},
      {"rnn", [] { return lstm(1, true, false); }},
      {"tied layers", [] { return transformer_layers(1, true, true, 4, 4, 8); }},
      {"U-Net", [] { return u_net(1, 4); }},
      {"DenseNet", [] { return dense_net(3, 6); }},
      {"unrolled", [] { return unrolled_rnn(3, 6, 8); }},
      {"turned table", [] { return turned_table(); }},
      {"latent attention", [] { return open_attention(true); }},
      {"position table", [] { return open_attention(false); }},
      {"experts", [] { return routed_experts(1, 4, 2); }},
      {"twins", [] { return twins(); }},
      {"fused block", [] { return fuse_attention(block()); }},
      {"fused latent attention", [] { return fuse_attention(open_attention(true)); }},
  };
  return kModels;
}

}  // namespace turnpoint::test
