// SPDX-License-Identifier: Apache-2.0
// The numbers that decide which passes the engine runs, and how far each goes, in one place. What a caller allows of work
// and sizes of tables stands in SolveOptions (solver.h). Not here yet are how single entries are put into buckets
// (merger.h), where slopes are sampled (slopes.cpp), and what is guessed of the work of a join (lists.cpp) and of the
// first coarse pass (engine.cpp). How numbers are represented and rounded stays where it is used.
//
// Work is counted in products (pairs of points that a pass sums) and terms (products of whole lists, or of entries of
// tables), which are the same on every machine. Shares are between 0 and 1.
#pragma once

#include <array>
#include <cstddef>

namespace turnpoint::frontier {

/// What was done, the same on every machine and on any number of threads.
struct Work {
  double products = 0;  ///< pairs of points that lists summed
  double terms = 0;     ///< entries of tables that lanes summed, sixteen slopes at once
};

/// What differs between looks at a curve under a slider.
struct Look {
  double open;       ///< share of ranges: an improvement that may stay hidden
  double most_open;  ///< share of ranges: the same where tables alone take more than the work allowed
  double apart;      ///< sum of shares of ranges: plans that are nearer are one
  double buckets;    ///< of memory: most of them; more show nothing
};

/// What differs between passes over the hull.
struct HullLook {
  std::size_t lanes;      ///< slopes: exact: for a proof; sketch: for the hull of any pass, and for beams
  std::size_t crossings;  ///< plans: made between neighbours on the hull
  double hull_share;      ///< of the work allowed: for the states that plans on the hull use
};

/// How multipliers draw copies of cut variables together (a volume algorithm, as in multipliers.h).
struct PricePolicy {
  std::size_t averages = 12;      ///< evaluations: in which min-marginals are made equal; most of the gain comes early
  std::size_t idle_averages = 3;  ///< evaluations: of them without a gain, after which none will come
  double little = 2e-5;           ///< share of the bound: what counts as a gain
  double longer = 1.5;            ///< factor: of an average's step after a gain
  double shorter = 3;             ///< divisor: of an average's step that overshot
  double first_step = 0.3;        ///< share of the way to what is achieved: where a climb begins
  double longest_step = 1.5;      ///< share of the way to what is achieved: beyond it, a climb overshoots
  double step_grows = 1.1;        ///< factor: of a climb's step after a gain along the mean (Barahona and Anbil)
  double step_shrinks = 0.66;     ///< factor: of a climb's step without gains (Barahona and Anbil)
  std::size_t step_patience = 4;  ///< evaluations: without a gain until the step shrinks
  std::size_t idle_climbs = 12;   ///< evaluations: without a gain in any lane, after which a climb ends
  std::size_t climbs = 60;        ///< evaluations: most of a climb
  double fresh = 0.2;             ///< share: of the newest plan in the mean
};

/// How a problem whose tables are too wide is made narrow and solved in parts.
struct WidePolicy {
  std::size_t rounds = 3;                     ///< rounds: of slopes, the last ones with exact lists
  double open_time = 0.003;                   ///< share of the time: behind a chord from which its slope is asked, too
  std::size_t assignments = 8;                ///< assignments of the cut: solved in one round
  std::size_t most_terms = 1'000'000;         ///< terms: over the states that relaxed plans use; more is halved
  std::size_t comfortable_terms = 3'000'000;  ///< terms: more variables are cut until elimination takes no more
  double part_share = 0.1;                    ///< of the work allowed: for the exact lists of one part
  std::size_t dives = 4000;                   ///< relaxations: tried where no assignment was feasible
};

struct Policy {
  /// Presets: a whole search, one that answers at once, a slider that is dragged, and one at rest.
  HullLook exact{64, 2000, 0.07}, sketch{32, 2000, 0.01};
  Look drag{0.005, 0.02, 2.0 / 800, 4096}, rest{0.0005, 0.0005, 2.0 / 4000, 4096};

  // What counts as little work: below it nothing is weighed up.
  double instant_products = 1e6;       ///< products: milliseconds; what is looked for at once, whatever it yields
  double short_products = 1e7;         ///< products: hundredths of a second; what a gap finer than asked may take
  double direct_products = 2e7;        ///< products: lists without bounds; few lists can still be long
  std::size_t long_hull = 10'000'000;  ///< terms: from which one pass must do for a hull alone
  std::size_t always_whole = 50'000;   ///< terms: problems with fewer are solved afresh even under a slider

  // The order of elimination.
  double short_mass = 64;          ///< leaves: inside a factor whose lists are still short
  std::size_t shortest_ring = 16;  ///< steps: from which a ring is worth an order of its own
  double most_ring_steps = 5e7;    ///< variables x factors: beyond, looking for rings takes too long

  // The hull and its chords.
  std::size_t closing_rounds = 4;  ///< rounds: most, in which slopes are asked along chords that are open still
  double closed = 0.002;           ///< share of ranges: what may hide behind a chord
  std::size_t limit_rounds = 6;    ///< rounds: most, in which the hull is searched around a memory
  double closed_chord = 1e-4;      ///< share of the time: so near its bound a chord is one of the hull

  // Proof: corners and plans ever nearer to each other.
  std::array<double, 3> gaps{0.003, 0.001, 0.0003};  ///< share of the time: what an eye can tell, a turning point, less
  double next_gap = 4;                               ///< factor: work of a level over that of the one before
  double first_points = 256;                         ///< points: along the frontier, at first
  double finer = 4;                                  ///< factor: of points, from one step to the next
  double most_points = 1 << 18;                      ///< points: along the frontier, at last
  double flat = 1.5;                                 ///< factor: of the work, up to which finer lists come at once
  double prune_terms = 16;       ///< products per term: from which new regions are worth their making
  double least_part = 1.0 / 64;  ///< share of ranges: points are no nearer where little is left to find
  double few_more = 30;          ///< factor: of instant_products, for a whole frontier that nobody asked for
  double whole_share = 0.4;      ///< of the work allowed: for the whole frontier where it is wanted
  double hull_gap = 1.0 / 3;     ///< of the gap that is enough: among the states of the hull more costs little

  // One memory.
  std::array<double, 3> rough_gaps{0.08, 0.025, 0.009};  ///< share of the time: proven first, before `gaps`
  double improve_share = 0.2;      ///< of the work allowed: over the states of the hull around a memory
  double limit_buckets = 1 << 16;  ///< of memory: for plans near it whose lists are too long

  // Beams.
  double widest_beam = 256;           ///< factor: of a bucket's width where there is no room for the points
  std::size_t cheap_points = 20'000;  ///< points: a beam that keeps fewer may be widened
  double steep = 6;                   ///< ratio of scaled weights: from which a slope is steep
  double steep_width = 1.0 / 8;       ///< of a bucket: where the frontier is steep
  double dear_steep_width = 1.0 / 4;  ///< of a bucket: the same after a pass of more than short_products
  double term_products = 8;           ///< products per term: as timed, of a look under a slider

  // A slider's moves.
  double first_buckets = 512;          ///< of memory: of the first move; those after it follow from its work
  double fewest_buckets = 128;         ///< of memory: fewer make steps that an eye sees
  double products_grow = 2.0 / 3;      ///< power: of the products, buckets grow by; between their number and its square
  std::size_t kept_plans = 1000;       ///< plans: that the next answer begins with
  std::size_t live_plans = 600;        ///< plans: the same under a slider
  std::size_t live_choices = 300'000;  ///< choices: of those plans together; a deep network keeps fewer
  std::size_t enough_plans = 64;       ///< plans: kept ones that still form a frontier at new costs
  std::size_t live_crossings = 500;    ///< plans: between neighbours on the hull, as far as live_choices allows
  std::size_t few_crossings = 250;     ///< plans: the same of a deep network, and around a memory

  // Memory that one search may take.
  std::size_t lane_bytes = std::size_t(400) << 20;  ///< bytes: tables of all blocks, if they stay side by side
  std::size_t beam_points = std::size_t(1) << 23;   ///< points: most that a beam keeps
  std::size_t most_kept = std::size_t(1) << 24;     ///< points: of all lists of a proof; 400 MB
  std::size_t plan_bytes = std::size_t(1) << 27;    ///< bytes: of plans over the states of the hull
  std::size_t few_plans = 2000;                     ///< plans: of them, that are kept at least
  std::size_t answer_bytes = std::size_t(1) << 29;  ///< bytes: of plans; a frontier of more is thinned out

  PricePolicy prices;
  WidePolicy wide;
};

}  // namespace turnpoint::frontier
