// SPDX-License-Identifier: Apache-2.0
// Networks on which partitions are tried, and a method's answer, which there must be.
#pragma once

#include <QtGlobal>

#include "search/random_models.h"
#include "search/scenarios.h"
#include "search/small_models.h"

namespace turnpoint::test {

inline ResultPtr answer_of(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return *result;
}

/// Every shape of network in small, real ones, and random ones by seed.
inline std::vector<std::pair<std::string, ModelPtr>> networks_to_cut(std::uint64_t seed, int random_ones) {
  std::vector<std::pair<std::string, ModelPtr>> models = {
      {"mlp", mlp()},
      {"residual", residual()},
      {"attention", attention()},
      {"convolution", convolution()},
      {"lenet", builtin("lenet", 64)},
      {"alexnet", builtin("alexnet", 32)},
      {"resnet18", builtin("resnet18", 64)},
      {"gpt2", builtin("gpt2?layers=2&hidden=128&sequence=32", 16)}};
  std::mt19937_64 random(seed);
  for (int i = 0; i < random_ones; ++i) models.emplace_back("random", random_model(random));
  return models;
}

}  // namespace turnpoint::test
