// SPDX-License-Identifier: Apache-2.0
// Eidetic 3D LSTM (Wang et al. 2019, "Eidetic 3D LSTM: A Model for Video Prediction and Beyond") on Moving MNIST:
// frames of 64 x 64 in patches of 4 x 4, windows of two, kernels of 2 x 5 x 5; each cell is one operator over all
// frames.
#include <fmt/format.h>

#include "core/import/builtin/networks.h"
#include "core/model/builder.h"

namespace turnpoint {

Expected<ModelPtr> build_e3d(const NetworkParameters& p) {
  constexpr std::int64_t kPatch = 16, kSide = 16, kWindow = 2;
  constexpr double kPositions = double(kWindow * kSide * kSide);
  const std::int64_t n = p.batch, t = p.sequence, h = p.hidden;
  if (double(p.layers) * double(n) * double(t) * double(std::max(h, t)) * 30 * kPositions > 4503599627370496.0)
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", n, t), p.source);
  ModelBuilder b(p.name, p.source, n, t);
  b.set_scope("input");
  const std::vector<DimName> names = {DimName::batch, DimName::sequence, DimName::channel,
                                      DimName::depth, DimName::height,   DimName::width};
  TensorId x = b.input("frames", {n, t, kPatch, kWindow, kSide, kSide}, names, ElementType::f32);
  std::int64_t in = kPatch;
  // Step i recalls the i states before it: scores and their weighted mean, every position against every position.
  const double recall = double(n) * double(t) * double(t + 1) * kPositions * kPositions * double(h);
  for (std::int64_t i = 0; i < p.layers; ++i) {
    const std::string scope = fmt::format("layer{}", i);
    b.set_scope(scope);
    const auto weight = [&](const char* name, std::int64_t gates, std::int64_t from, bool fused = false) {
      const std::int64_t depth = fused ? 1 : kWindow, side = fused ? 1 : 5;
      return b.parameter(
          scope + "/" + name, {gates * h, from, depth, side, side},
          {DimName::out_channel, DimName::in_channel, DimName::window, DimName::window, DimName::window});
    };
    const TensorId weights[] = {weight("input_weight", 7, in),      weight("state_weight", 4, h),
                                weight("memory_weight", 4, h),      weight("cell_gate_weight", 1, h),
                                weight("memory_gate_weight", 1, h), weight("fusion_weight", 1, 2 * h, true)};
    // Kept: 11 gates of input and state, 4 of the memory, cell, memory, their gates and the recalled state.
    x = b.convolutional_recurrent(scope + "/e3d", "E3D-LSTM", x, weights, h, 20, recall);
    in = h;
  }
  b.set_scope("head");
  const TensorId w = b.parameter("head/frames.weight", {h, kPatch}, {DimName::in_channel, DimName::out_channel});
  const TensorId turned = b.transpose("head/turned", x, {0, 1, 3, 4, 5, 2});
  const TensorId frames = b.linear("head/frames", turned, w, {}, false, DimName::channel);
  const TensorId targets =
      b.input("targets", {n, t, kWindow, kSide, kSide, kPatch},
              {DimName::batch, DimName::sequence, DimName::depth, DimName::height, DimName::width, DimName::channel},
              ElementType::f32);
  const TensorId operands[] = {frames, targets};
  const TensorId errors =
      b.elementwise("head/error", "SquaredDifference", operands, {.flop_per_element = 2, .saves_input = {true, true}});
  return b.finish({b.reduction("head/loss", "ReduceMean", errors, {}, false)});
}

}  // namespace turnpoint
