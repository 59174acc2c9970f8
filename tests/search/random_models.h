// SPDX-License-Identifier: Apache-2.0
// Small networks at random: products, activations whose backward reads their output or their input, sums of two
// branches, views; tensors of one reader and of several.
#pragma once

#include <array>
#include <random>
#include <string>

#include "core/model/builder.h"

namespace turnpoint::test {

inline ModelPtr random_model(std::mt19937_64& random, std::int64_t batch = 16, int steps = 5) {
  ModelBuilder b("random", "test", batch, 0);
  const std::int64_t widths[] = {16, 32, 64};
  struct Live {
    TensorId tensor;
    std::int64_t width;
  };
  std::vector<Live> live{{b.input("x", {batch, 16}, {DimName::batch, DimName::channel}, ElementType::f32), 16}};
  const auto linear = [&](const std::string& name, const Live& from, std::int64_t width) {
    return Live{b.linear(name, from.tensor, b.parameter("w_" + name, {from.width, width})), width};
  };
  live = {linear("stem", live.front(), 32)};
  for (int i = 0; i < steps; ++i) {
    const std::string name = "n" + std::to_string(i);
    // Mostly the newest tensor goes on; sometimes an older one finds another reader.
    const Live from = random() % 4 ? live.back() : live[random() % live.size()];
    const std::array one{from.tensor};
    switch (random() % 5) {
      case 0: live.push_back({b.elementwise(name + "_relu", "Relu", one, {1, true, {}}), from.width}); break;
      case 1: live.push_back({b.softmax(name + "_softmax", from.tensor, 1), from.width}); break;
      case 2: {
        Live other = live[random() % live.size()];
        if (other.width != from.width) other = linear(name + "_side", other, from.width);
        const std::array two{from.tensor, other.tensor};
        live.push_back({b.elementwise(name + "_add", "Add", two), from.width});
        break;
      }
      case 3: {
        const TensorId view = b.reshape(name + "_view", from.tensor, {batch, from.width / 4, 4});
        live.push_back({b.reshape(name + "_back", view, {batch, from.width}), from.width});
        break;
      }
      default: live.push_back(linear(name + "_linear", from, widths[random() % 3])); break;
    }
  }
  TensorId last = linear("head", live.back(), 16).tensor;
  auto model = b.finish({last});
  return model ? *model : nullptr;
}

}  // namespace turnpoint::test
