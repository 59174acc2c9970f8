// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <array>

#include "core/import/builtin/networks.h"
#include "core/import/builtin/vision_network.h"

namespace turnpoint {

namespace {

/// Simonyan and Zisserman's networks: stages of 3x3 convolutions, then three dense layers; dropout's masks are free and
/// left out.
Expected<ModelPtr> vgg(const NetworkParameters& p, const std::array<int, 5>& convolutions) {
  VisionNetwork net(p, 3, 224);
  constexpr std::int64_t kTimes[] = {1, 2, 4, 8, 8};
  for (std::size_t stage = 0; stage < convolutions.size(); ++stage) {
    net.scope(fmt::format("stage{}", stage + 1));
    for (int i = 1; i <= convolutions[stage]; ++i) {
      net.convolution(fmt::format("conv{}", i), p.width * kTimes[stage], 3, 1, 1, true);
      net.relu(fmt::format("relu{}", i));
    }
    net.pool("pool", "MaxPool", 2, 2);
  }
  net.scope("classifier");
  net.flatten();
  for (int i = 1; i <= 2; ++i) {
    net.linear(fmt::format("fc{}", i), p.hidden);
    net.relu(fmt::format("relu{}", i));
  }
  net.linear("fc3", 1000);
  return net.finish();
}

/// Basic blocks are `width` wide throughout; bottlenecks only inside.
struct ResNetShape {
  std::array<int, 4> blocks;
  bool bottleneck;
  std::int64_t width;  ///< of the first stage's inner convolutions
  std::int64_t image;
};

/// He et al. 2015 with the stride in the 3x3 convolution, the variant whose counts are usually published. A wider
/// network widens the inner convolutions only (Zagoruyko and Komodakis, in the bottleneck form).
void residual_block(VisionNetwork& net, const ResNetShape& shape, std::size_t stage, int block) {
  const std::int64_t inner = shape.width << stage;
  const std::int64_t out = shape.bottleneck ? std::int64_t(256) << stage : shape.width << stage;
  const std::int64_t stride = stage > 0 && block == 1 ? 2 : 1;
  net.scope(fmt::format("stage{}/block{}", stage + 1, block));
  const TensorId entry = net.x();
  const bool project = stride != 1 || net.channels() != out;
  if (shape.bottleneck) {
    net.convolution_norm_relu("conv1", inner, 1, 1);
    net.convolution_norm_relu("conv2", inner, 3, stride);
    net.convolution("conv3", out, 1, 1, 0, false);
    net.batch_norm("conv3_norm");
  } else {
    net.convolution_norm_relu("conv1", inner, 3, stride);
    net.convolution("conv2", out, 3, 1, 1, false);
    net.batch_norm("conv2_norm");
  }
  const TensorId body = net.x();
  net.set_x(entry);
  if (project) {
    net.convolution("shortcut", out, 1, stride, 0, false);
    net.batch_norm("shortcut_norm");
  }
  const TensorId shortcut = net.x();
  net.set_x(body);
  net.add("add", shortcut);
  net.relu("relu");
}

Expected<ModelPtr> resnet(const NetworkParameters& p, const ResNetShape& shape) {
  VisionNetwork net(p, 3, shape.image);
  net.scope("stem");
  net.convolution("conv", shape.bottleneck ? 64 : shape.width, 7, 2, 3, false);
  net.batch_norm("norm");
  net.relu("relu");
  net.pool("pool", "MaxPool", 3, 2, 1);
  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage)
    for (int block = 1; block <= shape.blocks[stage]; ++block) residual_block(net, shape, stage, block);
  net.scope("classifier");
  net.global_pool();
  net.flatten();
  net.linear("fc", 1000);
  return net.finish();
}

}  // namespace

Expected<ModelPtr> build_lenet(const NetworkParameters& p) {
  VisionNetwork net(p, 1, 32);
  net.scope("features");
  net.convolution("conv1", 6, 5, 1, 0, true);
  net.relu("relu1");
  net.pool("pool1", "MaxPool", 2, 2);
  net.convolution("conv2", 16, 5, 1, 0, true);
  net.relu("relu2");
  net.pool("pool2", "MaxPool", 2, 2);
  net.scope("classifier");
  net.flatten();
  net.linear("fc1", p.hidden);
  net.relu("relu1");
  net.linear("fc2", 84);
  net.relu("relu2");
  net.linear("fc3", 10);
  return net.finish();
}

Expected<ModelPtr> build_alexnet(const NetworkParameters& p) {
  struct Layer {
    std::int64_t channels, kernel, stride, padding;
    bool pool;
  };
  constexpr Layer kLayers[] = {
      {64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}};
  VisionNetwork net(p, 3, 224);
  net.scope("features");
  int index = 0;
  for (const Layer& layer : kLayers) {
    ++index;
    net.convolution(fmt::format("conv{}", index), layer.channels, layer.kernel, layer.stride, layer.padding, true);
    net.relu(fmt::format("relu{}", index));
    if (layer.pool) net.pool(fmt::format("pool{}", index), "MaxPool", 3, 2);
  }
  net.scope("classifier");
  net.flatten();
  for (int i = 1; i <= 2; ++i) {
    net.linear(fmt::format("fc{}", i), p.hidden);
    net.relu(fmt::format("relu{}", i));
  }
  net.linear("fc3", 1000);
  return net.finish();
}

Expected<ModelPtr> build_vgg(const NetworkParameters& p) {
  switch (p.layers) {
    case 11: return vgg(p, {1, 1, 2, 2, 2});
    case 13: return vgg(p, {2, 2, 2, 2, 2});
    case 16: return vgg(p, {2, 2, 3, 3, 3});
    case 19: return vgg(p, {2, 2, 4, 4, 4});
    default: return usage_error(fmt::format("layers must be 11, 13, 16 or 19, not {}", p.layers), p.source);
  }
}

namespace {

Expected<ModelPtr> resnet_of_depth(const NetworkParameters& p, std::int64_t image) {
  switch (p.layers) {
    case 18: return resnet(p, {{2, 2, 2, 2}, false, p.width, image});
    case 34: return resnet(p, {{3, 4, 6, 3}, false, p.width, image});
    case 50: return resnet(p, {{3, 4, 6, 3}, true, p.width, image});
    case 101: return resnet(p, {{3, 4, 23, 3}, true, p.width, image});
    case 152: return resnet(p, {{3, 8, 36, 3}, true, p.width, image});
    default: return usage_error(fmt::format("layers must be 18, 34, 50, 101 or 152, not {}", p.layers), p.source);
  }
}

}  // namespace

Expected<ModelPtr> build_resnet(const NetworkParameters& p) { return resnet_of_depth(p, 224); }

Expected<ModelPtr> build_wide_resnet(const NetworkParameters& p) {
  if (p.layers < 50) return usage_error(fmt::format("layers must be 50, 101 or 152, not {}", p.layers), p.source);
  return resnet_of_depth(p, 200);
}

Expected<ModelPtr> build_wrn(const NetworkParameters& p) {
  VisionNetwork net(p, 3, 32);
  net.scope("stem");
  net.convolution("conv", 16, 3, 1, 1, false);
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t out = (std::int64_t(16) << stage) * p.width;
    for (std::int64_t unit = 1; unit <= p.layers; ++unit) {
      // Norm and relu come before each convolution; where the size changes, the shortcut starts after them.
      net.scope(fmt::format("stage{}/unit{}", stage + 1, unit));
      const std::int64_t stride = stage > 0 && unit == 1 ? 2 : 1;
      TensorId shortcut = net.x();
      const bool project = stride != 1 || net.channels() != out;
      net.batch_norm("norm1");
      net.relu("relu1");
      if (project) {
        const TensorId active = net.x();
        net.convolution("shortcut", out, 1, stride, 0, false);
        shortcut = net.x();
        net.set_x(active);
      }
      net.convolution("conv1", out, 3, stride, 1, false);
      net.batch_norm("norm2");
      net.relu("relu2");
      net.convolution("conv2", out, 3, 1, 1, false);
      net.add("add", shortcut);
    }
  }
  net.scope("classifier");
  net.batch_norm("norm");
  net.relu("relu");
  net.global_pool();
  net.flatten();
  net.linear("fc", 100);
  return net.finish();
}

}  // namespace turnpoint
