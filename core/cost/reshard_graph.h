// SPDX-License-Identifier: Apache-2.0
// The graph of layouts behind ReshardingModel: every layout that keeps a tensor's dimensions divisible, and every move
// between two of them. It depends on the mesh and on how far each dimension can be divided only; what a move costs is a
// number of its price table, so that one graph serves all tensors of that divisibility, sizes, and link speeds.
//
// Permutations run over hubs: all layouts of equal split sizes and partial axes meet in one hub ("any device to any
// device"), those that also agree on the axes between nodes in another ("inside the node"). That keeps the number of
// edges linear in the number of layouts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cost/resharding.h"

namespace turnpoint {

/// What a move costs, up to the tensor's size: a collective on a group, on local blocks of total bytes / splits.
struct ReshardPrice {
  enum class Kind : std::uint8_t {
    free,
    all_gather,
    all_to_all,
    all_reduce,
    reduce_scatter,
    permute_inside,
    permute_across
  };
  Kind kind = Kind::free;
  DeviceGroup group;
  std::int64_t splits = 1;
  friend auto operator<=>(const ReshardPrice&, const ReshardPrice&) = default;
};

class ReshardGraph {
 public:
  using State = std::array<std::int8_t, kMaxAxes>;  ///< as Layout::axis, dimensions counted over `divisors` only
  using Allowed = std::array<std::vector<std::int8_t>, kMaxAxes>;

  /// `divisors`: per dimension, the number its splits must divide. `allowed`: the values each axis may take.
  ReshardGraph(const Mesh& mesh, const std::vector<std::int64_t>& divisors, const Allowed& allowed);

  /// Every value for every axis.
  static Allowed all_values(int axes, int dims);

  static constexpr std::uint32_t kNone = ~std::uint32_t(0);
  std::uint32_t find(const State& state) const;  ///< kNone if it is not a legal layout of this graph
  std::uint32_t states() const { return static_cast<std::uint32_t>(states_.size()); }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(partial_.size()); }  ///< states, then hubs
  const State& state(std::uint32_t index) const { return states_[index]; }
  std::uint32_t partial(std::uint32_t node) const { return partial_[node]; }  ///< mask of its partial axes

  struct Edge {
    std::uint32_t source, price;
  };
  /// Moves that arrive at a node: [begin, end).
  const Edge* begin(std::uint32_t node) const { return edges_.data() + offsets_[node]; }
  const Edge* end(std::uint32_t node) const { return edges_.data() + offsets_[node + 1]; }
  const std::vector<ReshardPrice>& prices() const { return prices_; }  ///< [0] is the free move

 private:
  struct Arc {
    std::uint32_t source, target, price;
  };
  struct Split;

  void list_states(const Allowed& allowed);
  void add_moves(std::uint32_t index, std::vector<Arc>& arcs);
  void add_joins(std::uint32_t index, const Split& split, std::uint32_t axes, int origin, std::vector<Arc>& arcs);
  void add_hubs(std::vector<Arc>& arcs);
  void add_arc(std::uint32_t source, const State& target, ReshardPrice::Kind kind, std::uint32_t axes,
               std::int64_t splits, std::vector<Arc>& arcs);
  std::uint32_t price_index(const ReshardPrice& price);
  void sort_by_target(const std::vector<Arc>& arcs);

  Mesh mesh_;
  std::vector<std::int64_t> divisors_;
  std::array<std::array<std::int32_t, 128>, kMaxAxes> digit_{};  ///< value + 2 -> place value, -1 if not allowed
  std::vector<std::uint32_t> dense_;                             ///< mixed-radix number -> state
  std::vector<State> states_;
  std::vector<std::uint32_t> partial_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> offsets_;
  std::vector<ReshardPrice> prices_;
  std::unordered_map<std::string, std::uint32_t> price_lookup_;
};

}  // namespace turnpoint
