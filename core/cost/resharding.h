// SPDX-License-Identifier: Apache-2.0
// Bringing a tensor from one layout to another by the cheapest sequence of collectives (TensorOpt: tensor
// re-scheduling; papers.md 1.5). Shortest path over layouts; one edge is one collective:
//   all-gather      the last axes of a dimension become replicated
//   slice           replicated axes split a dimension further (as its last axes): free, no bytes
//   all-to-all      the last axes of one dimension become the last axes of another
//   all-reduce      partial axes become replicated
//   reduce-scatter  partial axes become the last axes of a dimension
//   permute         same split sizes per dimension on other axes: one send of the local block
// Only moves that a real device can execute are edges: an axis joins or leaves a dimension only as its innermost
// ("last") axis, because anything else would need rows that live elsewhere.
#pragma once

#include <memory>
#include <vector>

#include "core/cost/layout.h"

namespace turnpoint {

enum class ReshardMove : std::uint8_t { all_gather, slice, all_to_all, all_reduce, reduce_scatter, permute };
const char* to_string(ReshardMove move);

struct ReshardStep {
  ReshardMove move = ReshardMove::slice;
  std::uint32_t axes = 0;   ///< bit mask of the mesh axes taking part
  double bytes = 0;         ///< bytes one device receives (slice 0)
  double time_s = 0;
  Layout result;
};

struct ReshardPath {
  std::vector<ReshardStep> steps;  ///< empty: layouts are equal
  double time_s = 0;
};

/// Prices reshardings of tensors on one mesh. Thread-safe for concurrent reads after construction.
class ReshardingModel {
 public:
  ReshardingModel(Mesh mesh, CollectiveModel collectives, double memory_bandwidth);
  ~ReshardingModel();

  const Mesh& mesh() const;

  /// The cheapest path for a tensor of this shape and element size. Splits keep every dimension divisible.
  ReshardPath path(const std::vector<std::int64_t>& shape, int element_bytes, const Layout& from, const Layout& to) const;

  /// Times of all pairs, row-major [from][to]; one shortest-path run per source. `from` may hold partial axes, `to` may not.
  std::vector<double> times(const std::vector<std::int64_t>& shape, int element_bytes, const std::vector<Layout>& from,
                            const std::vector<Layout>& to) const;

  /// Reducing a gradient of `bytes` local bytes over the axes of `mask`: the cheaper of one all-reduce over the whole
  /// group and, where it spans nodes, reduce-scatter inside the node, all-reduce between nodes, all-gather inside.
  ReshardPath gradient_sync(double local_bytes, std::uint32_t mask) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace turnpoint
