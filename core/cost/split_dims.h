// SPDX-License-Identifier: Apache-2.0
// Tensors as the graph of layouts sees them. Part of ReshardingModel.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "core/cost/reshard_graph.h"

namespace turnpoint {

// A tensor's dimensions that can be split at all, numbered densely.
struct SplitDims {
  std::vector<std::int64_t> divisors;
  std::vector<std::int8_t> dense, original;  ///< tensor dimension -> dense number or kReplicated, and back

  SplitDims(const std::vector<std::int64_t>& shape, std::int64_t devices) : dense(shape.size(), Layout::kReplicated) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t divisor = std::gcd(shape[d], devices);
      if (divisor == 1) continue;
      dense[d] = static_cast<std::int8_t>(divisors.size());
      original.push_back(static_cast<std::int8_t>(d));
      divisors.push_back(divisor);
    }
  }

  // nullopt: splits a dimension that cannot be split.
  std::optional<ReshardGraph::State> state(const Layout& layout) const {
    ReshardGraph::State state = layout.axis;
    for (auto& value : state) {
      if (value < 0) continue;
      if (static_cast<std::size_t>(value) >= dense.size() || dense[value] < 0) return std::nullopt;
      value = dense[value];
    }
    return state;
  }

  Layout layout(const ReshardGraph::State& state) const {
    Layout layout;
    for (int a = 0; a < kMaxAxes; ++a) layout.axis[a] = state[a] < 0 ? state[a] : original[state[a]];
    return layout;
  }
};

}  // namespace turnpoint
