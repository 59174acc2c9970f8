// SPDX-License-Identifier: Apache-2.0
// Small networks whose recurrent layers follow one another step by step, with what stands between such layers.
#pragma once

#include "gpu_probe/step_models.h"

namespace turnpoint::test {

/// A cell of `units`, its weights and bias in one direction or both.
inline TensorId cell_over(ModelBuilder& b, const std::string& name, TensorId x, std::int64_t features,
                          std::int64_t units, int gates, int directions, bool batch_first) {
  return b.recurrent(name,
                     gates == 4   ? "LSTM"
                     : gates == 3 ? "GRU"
                                  : "RNN",
                     x, b.parameter(name + "_w", {directions, gates * units, features}),
                     b.parameter(name + "_r", {directions, gates * units, units}),
                     b.parameter(name + "_b", {directions, gates * units}), gates, directions, units, batch_first,
                     false);
}

/// Two layers over both directions of a first one, with a residual, dropout and a concatenation step by step.
inline ModelPtr recurrent_stack(int gates, std::int64_t batch = 3, std::int64_t time = 4) {
  ModelBuilder b("stack", "test", batch, time);
  const TensorId tokens = b.input("tokens", {batch, time}, {DimName::batch, DimName::sequence}, ElementType::i64);
  TensorId x = b.embedding("embed", b.parameter("table", {9, 5}), tokens);
  x = cell_over(b, "both", x, 5, 3, gates, 2, true);
  const std::array one{x};
  x = b.elementwise("dropout", "Dropout", one, {2, false, {}, {}, true});
  const TensorId below = x;
  x = cell_over(b, "middle", x, 6, 6, gates, 1, true);
  const std::array two{x, below};
  x = b.elementwise("add", "Add", two);
  const std::array three{x, below};
  x = b.concat("joined", three, 2);
  x = cell_over(b, "top", x, 12, 4, gates, 1, true);
  x = b.reshape("rows", x, {batch * time, 4});
  return finished(b, b.linear("head", x, b.parameter("wh", {4, 8}), b.parameter("bh", {8})));
}

/// Time outermost: layers with a view between, products step by step, and the mean over the steps.
inline ModelPtr recurrent_time_first(int gates, std::int64_t batch = 2, std::int64_t time = 5) {
  ModelBuilder b("time first", "test", batch, time);
  TensorId x = b.input("x", {time, batch, 4}, {DimName::sequence, DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("stem", x, b.parameter("ws", {4, 4}));
  x = cell_over(b, "first", x, 4, 6, gates, 1, false);
  x = b.reshape("squeezed", x, {time, batch, 6});
  const TensorId below = x;
  x = cell_over(b, "second", x, 6, 6, gates, 1, false);
  x = b.reshape("squeezed2", x, {time, batch, 6});
  const std::array two{x, below};
  x = b.elementwise("mul", "Mul", two, {1, false, {true, true}});
  return finished(b, b.reduction("mean", "ReduceMean", x, {0}, false));
}

/// What the layer reads was made as rows, no step of which is a block of it.
inline ModelPtr recurrent_over_rows(std::int64_t batch = 3, std::int64_t time = 4) {
  ModelBuilder b("rows", "test", batch, time);
  TensorId x = b.input("x", {batch * time, 4}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("stem", x, b.parameter("ws", {4, 4}));
  x = b.reshape("sequences", x, {batch, time, 4});
  x = cell_over(b, "cell", x, 4, 4, 4, 1, true);
  return finished(b, cell_over(b, "last", x, 4, 3, 3, 2, true));
}

inline const std::vector<StepModel>& recurrent_models() {
  static const std::vector<StepModel> kModels = {
      {"lstm, steps", [] { return lstm(4, true, true); }},
      {"gru, steps", [] { return lstm(3, false, true, 2); }},
      {"rnn, steps", [] { return lstm(1, true, false); }},
      {"lstm stack", [] { return recurrent_stack(4); }},
      {"gru stack", [] { return recurrent_stack(3); }},
      {"lstm, time first", [] { return recurrent_time_first(4); }},
      {"rnn, time first", [] { return recurrent_time_first(1); }},
      {"rows", [] { return recurrent_over_rows(); }},
  };
  return kModels;
}

}  // namespace turnpoint::test
