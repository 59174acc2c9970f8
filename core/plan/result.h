// SPDX-License-Identifier: Apache-2.0
// What a search answers: points in the memory-time plane and, on demand, the plan behind each.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/frontier/problem.h"
#include "core/plan/any_plan.h"
#include "core/plan/method_traits.h"
#include "core/plan/weight_update.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

struct ResultPoint {
  std::int64_t memory_bytes = 0;
  double time_s = 0, compute_s = 0, network_s = 0;
  bool fits = false;
  /// On the simulated clock (core/schedule/simulated_points.h), where that was asked for.
  std::optional<double> simulated_time_s = std::nullopt;
  std::optional<std::int64_t> simulated_memory_bytes = std::nullopt;
  /// Most that one device sends to one other; of placements alone.
  std::optional<std::int64_t> peak_communication_bytes = std::nullopt;

  /// The same point, simulated or not: what it simulates to follows from its plan.
  friend bool operator==(const ResultPoint& a, const ResultPoint& b) {
    return a.memory_bytes == b.memory_bytes && a.time_s == b.time_s && a.compute_s == b.compute_s &&
           a.network_s == b.network_s && a.fits == b.fits;
  }
};

/// Unrolls point k to its complete plan; immutable and thread-safe.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  virtual AnyPlan plan(std::size_t point) const = 0;
  /// What plan() gives; known without unrolling.
  virtual PlanKind kind(std::size_t point) const = 0;
  /// Roughly how much memory goes when this goes, for whoever keeps results under a limit; 0: very little.
  virtual std::size_t bytes() const { return 0; }

  /// The plan of a method that splits operators; std::bad_variant_access where it is a placement.
  Plan sharding(std::size_t point) const { return *std::get<PlanPtr>(plan(point)); }
};

/// What a result's times and bytes are (resources/manual/costs.md, 5).
enum class Clock : std::uint8_t {
  additive,   ///< plain sums, no overlap, no liveness
  simulated,  ///< resources/manual/clocks.md: overlap, waiting, liveness
};
const char* to_string(Clock clock);

/// Lines below which no plan with this number of micro-batches lies.
struct NumberBound {
  int micro_batches = 1;
  std::vector<frontier::BoundLine> lines;
  friend bool operator==(const NumberBound&, const NumberBound&) = default;
};

struct TurningPoint {
  std::size_t index = 0;
};

/// Immutable once published.
struct Result {
  ScenarioPtr scenario;
  std::string method;          ///< "ft"
  std::string method_options;  ///< what followed the name after colons
  MethodTraits traits;         ///< of the method with these options; not in files
  std::string objective;  ///< "mini-time" where it is one chosen plan (core/search/objectives.h); empty: the frontier
  Clock clock = Clock::additive;
  /// What fits, and so the turning point, was judged by simulated peaks (core/schedule/fitting.h), not by plain sums.
  bool fits_by_peak = false;
  bool exact = false;
  /// How much faster a plan that is considered may be at the same memory, a part of the time; nullopt: not certified (a
  /// single-answer method).
  std::optional<double> gap;
  std::optional<std::uint32_t> heuristic_eliminations;  ///< of the published algorithms only
  double search_s = 0;
  std::vector<ResultPoint> points;               ///< memory rising, time falling
  std::vector<frontier::CostPoint> lower_bound;  ///< where gap > 0
  /// By number of micro-batches, each once; of exact and coarse searches that certify what they find, else empty.
  std::vector<NumberBound> bounds;
  std::optional<std::size_t> turning_point;  ///< index into points
  std::optional<std::size_t> near_best;      ///< least memory within 5 % of the best time that fits
  /// Slower points are there for small devices: they take part in neither of these while a faster one fits.
  double slowest_considered_s = std::numeric_limits<double>::infinity();
  std::shared_ptr<const PlanSource> plans;
  std::vector<std::string> notes;         ///< what limits or weakens the figures, a sentence each
  std::vector<std::string> explanations;  ///< what the method decided, and why: nothing to be warned of
  std::vector<WeightUpdate> weights;      ///< of methods that decide for each how it is updated
  /// Of the same: what the plan would need with every update whole, by parts, on the additive clock.
  std::optional<CostBreakdown> whole_updates;
  std::optional<double> price_per_iteration;  ///< of one chosen plan, where the price of a device is known
  /// Of the objective largest-batch (core/search/largest_batch.h), where a plan fits: batch over the plan's time.
  std::optional<double> samples_per_second;
  std::optional<double> speed_up;  ///< likewise: samples_per_second over that of the fewest devices

  std::optional<std::size_t> fastest_that_fits() const;
  /// The first point that is not too slow to be considered; 0 where all are considered.
  std::size_t first_considered() const;
};
using ResultPtr = std::shared_ptr<const Result>;

/// resources/manual/turning-point.md over points sorted by memory; `fits` restricts unless none fits, and so does the
/// slowest time that is considered.
std::optional<std::size_t> find_turning_point(const std::vector<ResultPoint>& points,
                                              double slowest_considered_s = std::numeric_limits<double>::infinity());
std::optional<std::size_t> find_near_best(const std::vector<ResultPoint>& points,
                                          double slowest_considered_s = std::numeric_limits<double>::infinity(),
                                          double tolerance = 0.05);
/// Sets both of a result's.
void find_marks(Result& result);
/// The largest (T(M) - L(M)) / T(M) of what is achieved, memory rising and time falling, above a lower bound.
double gap_between(const std::vector<frontier::CostPoint>& bound, const std::vector<frontier::CostPoint>& achieved);
/// The gap of a result that is not exact, from its points and its lower bound: over all memory, for plans that are not
/// too slow to be considered.
double considered_gap(const Result& result);
/// (T - L) / T at one point: how far below it a better plan could still lie, as a fraction. 0 for an exact result,
/// nullopt where nothing is certified.
std::optional<double> gap_at(const Result& result, std::size_t point);
/// The lines of the callout ("Turning point 11.2 GiB peak · 812 ms", ...) and their variants. Memory is the simulated
/// peak where the result knows it; where nobody has simulated it yet, a line says that they speak of the plain sum.
std::vector<std::string> describe_turning_point(const Result& result);
/// "Fastest that fits 71.9 GiB peak · 691 ms", ...; empty where that is the turning point itself, or nothing fits.
std::vector<std::string> describe_fastest(const Result& result);
/// Which plans a method does not have, for "no plan ... fits": " without micro-batches", or nothing.
std::string space_words(const MethodTraits& method);
/// "11.2 GiB peak", or the plain sum where the peak was not simulated: "9.6 GiB".
std::string memory_words(const ResultPoint& point);

}  // namespace turnpoint
