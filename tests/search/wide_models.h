// SPDX-License-Identifier: Apache-2.0
// Small networks whose graphs are wide or tied together across their whole depth, which is what defeats elimination:
// attention masks, tied embeddings, U-Nets, DenseNets, unrolled recurrences, mixtures of experts.
#pragma once

#include <string>

#include "search/small_models.h"

namespace turnpoint::test {

/// Self-attention layers that all read one mask; a product, so that it is no mere input. `tied`: the logits are
/// computed with the token table.
inline ModelPtr transformer_layers(int layers, bool mask, bool tied, std::int64_t batch = 16,
                                   std::int64_t sequence = 16, std::int64_t hidden = 32) {
  ModelBuilder b(mask ? "attention mask" : "tied embeddings", "test", batch, sequence);
  const std::int64_t vocabulary = 64;
  const TensorId tokens = b.input("tokens", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId labels = b.input("labels", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId table = b.parameter("table", {vocabulary, hidden}, {DimName::vocabulary, DimName::channel});
  TensorId bias{};
  if (mask) {
    const TensorId raw = b.input("mask", {batch, sequence, sequence},
                                 {DimName::batch, DimName::sequence, DimName::key_sequence}, ElementType::f32);
    const std::array one{raw};
    bias = b.elementwise("mask_scaled", "Mul", one);
  }
  TensorId x = b.embedding("embed", table, tokens);
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const TensorId q = b.linear("q" + n, x, b.parameter("wq" + n, {hidden, hidden}));
    const TensorId k = b.linear("k" + n, x, b.parameter("wk" + n, {hidden, hidden}));
    const TensorId v = b.linear("v" + n, x, b.parameter("wv" + n, {hidden, hidden}));
    TensorId scores = b.matmul("scores" + n, q, k, false, true);
    if (mask) {
      const std::array both{scores, bias};
      scores = b.elementwise("masked" + n, "Add", both);
    }
    const TensorId context = b.matmul("context" + n, b.softmax("softmax" + n, scores, 2), v);
    const std::array two{b.linear("out" + n, context, b.parameter("wo" + n, {hidden, hidden})), x};
    x = b.elementwise("add" + n, "Add", two);
  }
  const TensorId weight =
      tied ? b.tied_parameter("table_out", table, {vocabulary, hidden}) : b.parameter("head_w", {vocabulary, hidden});
  x = b.linear("head", x, weight, {}, true, DimName::vocabulary);
  return finished(b, b.cross_entropy("loss", x, labels));
}

inline TensorId small_convolution(ModelBuilder& b, const std::string& name, TensorId x, std::int64_t out) {
  ConvolutionShape shape;
  shape.kernel = {3, 3}, shape.strides = {1, 1}, shape.pads_begin = {1, 1}, shape.pads_end = {1, 1},
  shape.dilations = {1, 1};
  const std::int64_t in = b.tensor(x).shape[1];
  const std::array y{b.convolution(name, x, b.parameter(name + "_w", {out, in, 3, 3}), {}, shape)};
  return b.elementwise(name + "_relu", "Relu", y, {1, true, {}});
}

/// Down `depth` levels and up again, every level's result joined to the way up.
inline ModelPtr u_net(int depth, std::int64_t batch = 16) {
  ModelBuilder b("U-Net", "test", batch, 0);
  std::int64_t size = 8 << (depth > 2 ? depth - 2 : 0), channels = 8;
  TensorId x = b.input("x", {batch, 4, size, size}, {DimName::batch, DimName::channel, DimName::height, DimName::width},
                       ElementType::f32);
  std::vector<TensorId> skips;
  for (int i = 0; i < depth; ++i) {
    x = small_convolution(b, "down" + std::to_string(i), x, channels);
    skips.push_back(x);
    size /= 2;
    x = b.pooling("pool" + std::to_string(i), "MaxPool", x, {batch, channels, size, size}, {2, 2}, true);
    channels *= 2;
  }
  x = small_convolution(b, "bottom", x, channels);
  for (int i = depth; i-- > 0;) {
    size *= 2;
    x = b.slice("up_sample" + std::to_string(i), "Upsample", x, {batch, channels, size, size});
    channels /= 2;
    const std::array both{x, skips[static_cast<std::size_t>(i)]};
    x = small_convolution(b, "up" + std::to_string(i), b.concat("join" + std::to_string(i), both, 1), channels);
  }
  return finished(b, x);
}

/// Every layer reads the results of all layers before it.
inline ModelPtr dense_net(int layers, std::int64_t batch = 32) {
  ModelBuilder b("DenseNet", "test", batch, 0);
  std::vector<TensorId> all{b.input("x", {batch, 16}, {DimName::batch, DimName::channel}, ElementType::f32)};
  const auto joined = [&](const std::string& name) { return all.size() == 1 ? all.front() : b.concat(name, all, 1); };
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const TensorId in = joined("join" + n);
    all.push_back(b.linear("fc" + n, in, b.parameter("w" + n, {b.tensor(in).shape[1], 16})));
  }
  const TensorId in = joined("join");
  return finished(b, b.linear("head", in, b.parameter("wh", {b.tensor(in).shape[1], 8})));
}

/// h' = tanh(x W + h U), step by step with the same W and U.
inline ModelPtr unrolled_rnn(int steps, std::int64_t batch = 32, std::int64_t hidden = 32) {
  ModelBuilder b("unrolled RNN", "test", batch, 0);
  const TensorId w = b.parameter("w", {16, hidden}), u = b.parameter("u", {hidden, hidden});
  TensorId h{};
  for (int i = 0; i < steps; ++i) {
    const std::string n = std::to_string(i);
    const TensorId x = b.input("x" + n, {batch, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    const TensorId in = b.linear("in" + n, x, i == 0 ? w : b.tied_parameter("w" + n, w, {16, hidden}));
    if (i == 0) {
      const std::array one{in};
      h = b.elementwise("tanh" + n, "Tanh", one, {4, true, {}});
      continue;
    }
    const std::array both{in, b.linear("back" + n, h, i == 1 ? u : b.tied_parameter("u" + n, u, {hidden, hidden}))};
    h = b.elementwise("tanh" + n, "Add+Tanh", both, {5, true, {}});
  }
  return finished(b, b.linear("head", h, b.parameter("wh", {hidden, 8})));
}

/// Layers of routed experts as in Mixtral: the routing weights travel around the experts.
inline ModelPtr routed_experts(int layers, std::int64_t batch = 16, std::int64_t experts = 4) {
  const std::int64_t sequence = 8, hidden = 16, inner = 32;
  ModelBuilder b("Mixtral's routing", "test", batch, sequence);
  TensorId x =
      b.input("x", {batch, sequence, hidden}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
  x = b.linear("stem", x, b.parameter("ws", {hidden, hidden}));
  const auto product = [&](const std::string& name, TensorId tokens, std::int64_t in, std::int64_t out) {
    enum : std::uint8_t { n, e, s, o, k };
    return b.contraction(name, "ExpertLinear",
                         {{DimName::batch, DimRole::parallel, batch, true},
                          {DimName::expert, DimRole::parallel, experts, true},
                          {DimName::sequence, DimRole::parallel, b.tensor(tokens).shape[2], false},
                          {DimName::out_channel, DimRole::parallel, out, true},
                          {DimName::in_channel, DimRole::reduction, in, true}},
                         tokens, {{n}, {e}, {s}, {k}}, b.parameter(name + "_w", {experts, in, out}), {{e}, {k}, {o}},
                         {{n}, {e}, {s}, {o}}, {DimName::batch, DimName::expert, DimName::sequence, DimName::channel});
  };
  for (int i = 0; i < layers; ++i) {
    const std::string l = std::to_string(i);
    const TensorId scores =
        b.linear("router" + l, x, b.parameter("wr" + l, {hidden, experts}), {}, false, DimName::expert);
    const TensorId routing = b.softmax("routing" + l, scores, 2);
    const TensorId tokens = b.dispatch("dispatch" + l, x, routing, sequence * 2 / experts);
    const std::array gated{product("gate" + l, tokens, hidden, inner), product("up" + l, tokens, hidden, inner)};
    const TensorId active = b.elementwise("act" + l, "Silu*", gated, {6, false, {true, true}});
    const std::array both{b.combine("combine" + l, product("down" + l, active, inner, hidden), sequence), x};
    x = b.elementwise("add" + l, "Add", both);
  }
  return finished(b, b.linear("head", x, b.parameter("wh", {hidden, 8})));
}

}  // namespace turnpoint::test
