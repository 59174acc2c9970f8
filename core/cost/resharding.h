// SPDX-License-Identifier: Apache-2.0
// Bringing a tensor from one layout to another by the cheapest sequence of collectives (TensorOpt: tensor
// re-scheduling; resources/manual/mathematics.md, 1.5). Shortest path over layouts; one edge is one collective:
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
#include "core/hardware/collective_model.h"

namespace turnpoint {

enum class ReshardMove : std::uint8_t { all_gather, slice, all_to_all, all_reduce, reduce_scatter, permute };
const char* to_string(ReshardMove move);

struct ReshardStep {
  ReshardMove move = ReshardMove::slice;
  std::uint32_t axes = 0;  ///< bit mask of the mesh axes taking part
  double bytes = 0;        ///< bytes one device receives (slice 0)
  /// The same of the message that it travels in, of which it pays its part; 0: it travels alone.
  double message_bytes = 0;
  double time_s = 0;
  Algorithm algorithm = Algorithm::direct;  ///< by which the library is expected to carry it out
  Layout result;
};

struct ReshardPath {
  std::vector<ReshardStep> steps;  ///< empty: layouts are equal
  double time_s = 0;
};

/// Paths already found for a table of layouts, one or more a pair, to be priced again under other link speeds without a
/// search.
struct ReshardRoutes {
  struct Data;
  std::shared_ptr<const Data> data;
};

/// Prices reshardings of tensors on one mesh. Thread-safe for concurrent reads after construction.
///
/// Intermediate layouts may use every dimension of the tensor; where that makes more than 50 000 layouts (beyond six
/// axes or so), an axis only takes the values it has at either end of the pair, or replicated.
///
/// A permute sends every local block once, inside the nodes if no axis between nodes changes its place, else across
/// them (the slower of both sends, since some blocks stay). It is priced with all devices sending: the group is all
/// axes of the level. Slices and local copies cost nothing: a joining or leaving innermost axis keeps blocks
/// contiguous, and the copy into and out of an all-to-all's buffers is not charged. Of paths of equal time the one with
/// fewer collectives is taken, then the first found in a fixed order. times(), routes() and path() agree to the last
/// bit.
class ReshardingModel {
 public:
  /// Which of the ways between two layouts is taken.
  enum class Ways : std::uint8_t {
    cheapest,
    fewest  ///< collectives, the cheapest of those: what engines call, one for a change of layout where one will do
  };
  ReshardingModel(Mesh mesh, CollectiveModel collectives, double memory_bandwidth, Ways ways = Ways::cheapest);
  /// Same mesh under other link speeds; shares the graphs of layouts, so it costs nothing to make.
  ReshardingModel(const ReshardingModel& other, CollectiveModel collectives);
  ~ReshardingModel();

  const Mesh& mesh() const;

  /// The cheapest path for a tensor of this shape and element size. Splits keep every dimension divisible.
  ReshardPath path(const std::vector<std::int64_t>& shape, int element_bytes, const Layout& from,
                   const Layout& to) const;
  /// The path that is the cheapest by another model of this mesh, at this model's prices.
  ReshardPath path_of(const ReshardingModel& finder, const std::vector<std::int64_t>& shape, int element_bytes,
                      const Layout& from, const Layout& to) const;

  /// Times of all pairs, row-major [from][to]; one shortest-path run per target. `from` may hold partial axes, `to` may
  /// not.
  std::vector<double> times(const std::vector<std::int64_t>& shape, int element_bytes, const std::vector<Layout>& from,
                            const std::vector<Layout>& to) const;

  /// The paths of all pairs, besides those that are `known` of the same table by another model; and the time of each
  /// pair's cheapest one under this model's link speeds. reprice(routes(...)) equals times(...); with routes that other
  /// models found it gives what the best of those paths costs here: an upper bound, at a thousandth of the work.
  ReshardRoutes routes(const std::vector<std::int64_t>& shape, int element_bytes, const std::vector<Layout>& from,
                       const std::vector<Layout>& to, const ReshardRoutes& known = {}) const;
  std::vector<double> reprice(const ReshardRoutes& routes) const;

  /// One collective over the group of `axes` outside any path: all-gather to, reduce-scatter or all-reduce from
  /// `bytes` on each device; a slice costs nothing. It travels in a message `message` times as large.
  ReshardStep step(ReshardMove move, std::uint32_t axes, double bytes, double message = 1) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// ReshardingModel::step(), each asked of the model once: the choices of one operator ask for the same few. For one
/// thread; the model must outlive it.
class StepPrices {
 public:
  explicit StepPrices(const ReshardingModel& model) : model_(model) {}
  const ReshardingModel& model() const { return model_; }
  ReshardStep step(ReshardMove move, std::uint32_t axes, double bytes, double message = 1);

 private:
  struct Asked {
    ReshardMove move;
    std::uint32_t axes;
    double bytes, message;
    bool operator==(const Asked&) const = default;
  };
  const ReshardingModel& model_;
  std::vector<Asked> asked_;  // few, so that looking through them is faster than anything else
  std::vector<ReshardStep> steps_;
};

}  // namespace turnpoint
