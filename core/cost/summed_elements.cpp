// SPDX-License-Identifier: Apache-2.0
#include "core/cost/summed_elements.h"

namespace turnpoint {

std::vector<double> summed_elements(Optimizer optimizer, const std::vector<std::int64_t>& shape) {
  const bool matrix = shape.size() >= 2;
  switch (optimizer) {
    case Optimizer::sgd:
    case Optimizer::momentum:
    case Optimizer::adam: return {};
    case Optimizer::lars:
    case Optimizer::lamb: return matrix ? std::vector<double>{2} : std::vector<double>{};
    case Optimizer::adafactor: break;
  }
  if (!matrix) return {1};
  double rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= static_cast<double>(shape[d]);
  return {rows + static_cast<double>(shape.back()), 1};
}

void add_rounds(std::vector<double>& rounds, const std::vector<double>& more) {
  if (rounds.size() < more.size()) rounds.resize(more.size(), 0);
  for (std::size_t r = 0; r < more.size(); ++r) rounds[r] += more[r];
}

}  // namespace turnpoint
