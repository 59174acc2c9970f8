// SPDX-License-Identifier: Apache-2.0
// The numbers that decide which passes the engine runs, and how far each goes, in one place. What a caller allows of
// work and sizes of tables stands in SolveOptions (solver.h). Not here are how single entries are put into buckets
// (merger.h), where slopes are sampled (slopes.cpp), how far prices step (multipliers.cpp), and what is guessed of the
// work of a join (lists.cpp) and of the first coarse pass (engine.cpp). How numbers are represented and rounded stays
// where it is used.
//
// Work is counted in products (pairs of points that a pass sums) and terms (products of whole lists, or of entries of
// tables), which are the same on every machine. Shares are between 0 and 1.
#pragma once

#include <cstddef>

namespace turnpoint::frontier {

struct Policy {
  // Work: below it nothing is weighed up.
  double instant_products = 1e6;  ///< products: milliseconds; what is looked for at once, whatever it yields
  double short_products = 1e7;    ///< products: hundredths of a second; for what was not asked for, and lists alone
  double term_products = 8;       ///< products per term: as long as one takes, timed

  // The order of elimination.
  std::size_t short_part = 32;  ///< leaves: of shorter rings and shorter parts the lists are short, whatever the order

  // The hull.
  std::size_t lanes = 64;        ///< slopes: of a proof; for plans and their bounds one block does
  double closed = 0.002;         ///< share of ranges: what may hide behind a chord
  std::size_t crossings = 2000;  ///< plans: made between neighbours on the hull
  double hull_share = 0.07;      ///< of the work allowed: for the states that plans on the hull use

  // Proof: corners and plans ever nearer to each other.
  double gap = 0.003;         ///< share of the time: what an eye can tell
  double next_gap = 3;        ///< divisor: from one gap that is proven to the next
  double first_points = 256;  ///< points: along the frontier, at first
  double finer = 4;           ///< factor: of points from one step to the next, and of the work

  // Beams.
  double first_buckets = 512;    ///< of memory: of the first move; those after it follow from its work
  double most_buckets = 4096;    ///< of memory: more show nothing
  double steep = 6;              ///< ratio of scaled weights: from which a slope is steep
  double steep_width = 1.0 / 8;  ///< of a bucket: where the frontier is steep

  // A slider's moves.
  double drag_open = 0.005;           ///< share of ranges: an improvement that may stay hidden while it is dragged
  double most_open = 0.02;            ///< share of ranges: the same where tables alone take more than the work allowed
  double rest_open = 0.0005;          ///< share of ranges: the same once the slider rests
  std::size_t kept_plans = 1000;      ///< plans: that the next answer begins with
  std::size_t few_choices = 300'000;  ///< choices: of plans together where there is little time
  std::size_t enough_plans = 64;      ///< plans: kept ones that still form a frontier at new costs

  std::size_t bytes = std::size_t(1) << 29;  ///< bytes: that tables, lists and plans of one search may take, each

  // Problems whose tables are too wide, and the prices that draw copies of one variable together.
  std::size_t wide_rounds = 3;         ///< rounds: of slopes, the last two with exact lists
  std::size_t wide_terms = 2'000'000;  ///< terms: of a part and of the relaxation; what has more is split further
  std::size_t wide_dives = 4000;       ///< relaxations: tried where no assignment of the cut was feasible
  std::size_t price_steps = 60;        ///< evaluations: most of a climb
  std::size_t price_patience = 4;      ///< evaluations: without a gain, after which a step is shortened
};

}  // namespace turnpoint::frontier
