// SPDX-License-Identifier: Apache-2.0
// The frontier problem (resources/manual/formats.md): choose one configuration per node so that the sums of memory and
// time over all nodes and edges are Pareto-optimal. This folder knows nothing of networks or devices and depends on
// base/ only.
//
// Memory: integers from 0 to 2^53 per entry, sums below 2^63. Time: finite, >= 0, seconds. An entry is a short list of
// alternatives (memory, time); an empty list forbids the combination.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint::frontier {

struct CostPoint {
  std::int64_t memory = 0;
  double time = 0;
  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

/// Lists of alternatives, stored back to back. Copies share their contents until one of them is changed, so equal
/// edges of repeated layers cost nothing; `identity()` tells shared contents apart cheaply.
class CostTable {
 public:
  CostTable() : data_(std::make_shared<Data>()) {}
  void add(std::span<const CostPoint> alternatives) {
    Data& data = own();
    data.points.insert(data.points.end(), alternatives.begin(), alternatives.end());
    data.offsets.push_back(static_cast<std::uint32_t>(data.points.size()));
  }
  void add(CostPoint single) { add(std::span<const CostPoint>(&single, 1)); }
  std::size_t size() const { return data_->offsets.size() - 1; }
  std::span<const CostPoint> operator[](std::size_t i) const {
    return {data_->points.data() + data_->offsets[i], data_->points.data() + data_->offsets[i + 1]};
  }
  std::span<const CostPoint> points() const { return data_->points; }
  std::span<CostPoint> mutable_points() { return own().points; }             ///< leaves other copies as they are
  std::span<const std::uint32_t> offsets() const { return data_->offsets; }  ///< size() + 1 positions into points()
  const void* identity() const { return data_.get(); }
  friend bool operator==(const CostTable& a, const CostTable& b) { return a.data_ == b.data_ || *a.data_ == *b.data_; }

 private:
  struct Data {
    std::vector<std::uint32_t> offsets{0};
    std::vector<CostPoint> points;
    friend bool operator==(const Data&, const Data&) = default;
  };
  Data& own() {
    if (data_.use_count() > 1) data_ = std::make_shared<Data>(*data_);
    return *data_;
  }
  std::shared_ptr<Data> data_;
};

struct Node {
  std::string name;
  CostTable costs;  ///< one entry per configuration, at least one
};

/// Costs depend on classes of configurations (layouts): class_of_from[configuration] -> row, class_of_to -> column.
struct Edge {
  std::uint32_t from = 0, to = 0;
  std::vector<std::uint32_t> from_class, to_class;  ///< one per configuration of that end
  std::uint32_t rows = 0, columns = 0;
  CostTable costs;  ///< entry of (r, c) at r * columns + c
};

struct Problem {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// Checks ranges, sizes, indices, self-loops; the message names node or edge.
Expected<void> validate(const Problem& problem);

/// turnpoint/frontier-problem@1. `where` names the file in messages.
Expected<Problem> read_problem(const nlohmann::json& document, const std::string& where);
nlohmann::json write_problem(const Problem& problem);

struct Point {
  std::int64_t memory = 0;
  double time = 0;
  std::vector<std::uint32_t> configs;            ///< configuration of every node
  std::vector<std::uint16_t> node_alternatives;  ///< which alternative inside each node's entry
  std::vector<std::uint16_t> edge_alternatives;  ///< which alternative inside each edge's entry
};

/// No plan of so much memory, bytes, takes less time than `time` - `per_byte` * memory, seconds.
struct BoundLine {
  double time = 0, per_byte = 0;
  friend bool operator==(const BoundLine&, const BoundLine&) = default;
};

struct Answer {
  bool exact = false;
  bool certified = true;      ///< false: nothing is known about the distance to better plans; no gap
  double gap = 0;             ///< largest (T(M) - L(M)) / T(M); 0 when exact; meaningless if not certified
  std::vector<Point> points;  ///< memory strictly rising, time strictly falling
  /// No plan lies below this staircase; empty when exact, unless plans of another problem were known (SolveOptions).
  std::vector<CostPoint> lower_bound;
  /// The same of the problem alone, whatever was known of another: lines, flatter and flatter, each the highest
  /// somewhere. Of Solver's certified answers over a whole frontier; else empty.
  std::vector<BoundLine> lines;
  std::optional<std::uint32_t> heuristic_eliminations;  ///< of the published algorithms: how often Eq. 7 was used
};
/// turnpoint/frontier@1; "gap" is null where not certified.
nlohmann::json write_answer(const Answer& answer, double search_s);

/// Sums nodes and edges of the choice itself; the independent check of every point.
CostPoint evaluate(const Problem& problem, const Point& point);

}  // namespace turnpoint::frontier
