// SPDX-License-Identifier: Apache-2.0
// Small networks of every shape that matters to a search: chains, residuals, shared activations, attention, tied
// weights.
#pragma once

#include <array>

#include "core/model/builder.h"

namespace turnpoint::test {

inline ModelPtr finished(ModelBuilder& builder, TensorId result) {
  auto model = builder.finish({result});
  return model ? *model : nullptr;
}

inline ModelPtr mlp(std::int64_t batch = 64) {
  ModelBuilder b("mlp", "test", batch, 0);
  TensorId x = b.input("x", {batch, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc1", x, b.parameter("w1", {32, 64}), b.parameter("b1", {64}));
  const std::array in{x};
  x = b.elementwise("relu", "Relu", in, {1, true, {}});
  x = b.linear("fc2", x, b.parameter("w2", {64, 16}), b.parameter("b2", {16}));
  return finished(b, x);
}

/// x -> fc -> relu -> fc -> add(x) -> relu -> fc
inline ModelPtr residual(std::int64_t batch = 64) {
  ModelBuilder b("residual", "test", batch, 0);
  TensorId x = b.input("x", {batch, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("stem", x, b.parameter("w0", {16, 32}));
  const TensorId skip = x;
  x = b.linear("fc1", x, b.parameter("w1", {32, 64}));
  std::array one{x};
  x = b.elementwise("relu1", "Relu", one, {1, true, {}});
  x = b.linear("fc2", x, b.parameter("w2", {64, 32}));
  const std::array two{x, skip};
  x = b.elementwise("add", "Add", two);
  one = {x};
  x = b.elementwise("relu2", "Relu", one, {1, true, {}});
  x = b.linear("head", x, b.parameter("w3", {32, 16}));
  return finished(b, x);
}

/// One attention block with tied input and output embeddings.
inline ModelPtr attention(std::int64_t batch = 8, std::int64_t sequence = 16) {
  ModelBuilder b("attention", "test", batch, sequence);
  const std::int64_t hidden = 32, vocabulary = 64;
  const TensorId tokens = b.input("tokens", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId labels = b.input("labels", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId table = b.parameter("table", {vocabulary, hidden}, {DimName::vocabulary, DimName::channel});
  TensorId x = b.embedding("embed", table, tokens);
  const TensorId skip = x;
  x = b.normalisation("norm", x, 2, b.parameter("g", {hidden}), b.parameter("h", {hidden}));
  const TensorId q = b.linear("q", x, b.parameter("wq", {hidden, hidden}));
  const TensorId k = b.linear("k", x, b.parameter("wk", {hidden, hidden}));
  const TensorId v = b.linear("v", x, b.parameter("wv", {hidden, hidden}));
  const TensorId scores = b.matmul("scores", q, k, false, true);
  const TensorId weights = b.softmax("softmax", scores, 2);
  x = b.matmul("context", weights, v);
  x = b.linear("out", x, b.parameter("wo", {hidden, hidden}));
  const std::array two{x, skip};
  x = b.elementwise("add", "Add", two);
  x = b.linear("head", x, b.tied_parameter("table_out", table, {vocabulary, hidden}), {}, true, DimName::vocabulary);
  x = b.cross_entropy("loss", x, labels);
  return finished(b, x);
}

/// conv - bn - relu - pool - view - linear
inline ModelPtr convolution(std::int64_t batch = 32) {
  ModelBuilder b("convolution", "test", batch, 0);
  TensorId x = b.input("x", {batch, 4, 8, 8}, {DimName::batch, DimName::channel, DimName::height, DimName::width},
                       ElementType::f32);
  ConvolutionShape shape;
  shape.kernel = {3, 3}, shape.strides = {1, 1}, shape.pads_begin = {1, 1}, shape.pads_end = {1, 1},
  shape.dilations = {1, 1};
  x = b.convolution("conv", x, b.parameter("w", {16, 4, 3, 3}), {}, shape);
  x = b.batch_normalisation("bn", x, b.parameter("scale", {16}), b.parameter("shift", {16}), b.buffer("mean", {16}),
                            b.buffer("var", {16}));
  const std::array one{x};
  x = b.elementwise("relu", "Relu", one, {1, true, {}});
  x = b.pooling("pool", "MaxPool", x, {batch, 16, 4, 4}, {2, 2}, true);
  x = b.reshape("flatten", x, {batch, 256});
  x = b.linear("fc", x, b.parameter("wf", {256, 32}), b.parameter("bf", {32}));
  return finished(b, x);
}

}  // namespace turnpoint::test
