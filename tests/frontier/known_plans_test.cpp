// SPDX-License-Identifier: Apache-2.0
// Searches that are told what is achieved elsewhere: together with it they have the frontier that they would have had,
// and nothing lies below their bound; and searches that stop at a gap which is small enough.
#include <QTest>
#include <cmath>

#include "core/frontier/solver.h"
#include "frontier/layered.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

/// What random plans of the problem cost, moved somewhat: some better than all of its own, some worse.
CostList somewhere_else(Generator& g, const CostList& truth) {
  CostList known;
  for (const CostPoint& point : truth)
    if (g.chance(0.6))
      known.push_back(
          {static_cast<std::int64_t>(double(point.memory) * g.real(0.7, 1.4)), point.time * g.real(0.7, 1.4)});
  return reduce(known);
}

/// Small enough for brute force.
Problem small_problem(Generator& g, std::uint64_t seed) {
  ProblemShape shape;
  shape.integer_times = g.chance(0.5);
  shape.forbidden = 0;
  const auto kind = static_cast<std::uint32_t>(seed % 9);
  shape.max_alternatives = kind == 4 ? 1 : g.number(1, 2);
  return random_problem(seed, g.number(2, kind == 4 ? 4 : 5), shape, kind);
}

/// Nothing of the problem, and nothing known, lies below the bound; and the gap covers the distance between them, of
/// what is not too slow.
std::string bound_fault(const Answer& answer, const CostList& known, const CostList& truth,
                        double slowest = std::numeric_limits<double>::infinity()) {
  const CostList reached = unite(costs_of(answer), known), all = unite(truth, known);
  for (const CostPoint& p : all) {
    const double have = std::min(time_at(reached, p.memory), slowest);
    if (answer.exact) {
      if (have > p.time * (1 + 1e-12)) return "an exact answer misses a plan";
      if (!known.empty() && time_at(answer.lower_bound, p.memory) > p.time * (1 + 1e-9))
        return "a plan lies below the bound of an exact answer";
      continue;
    }
    if (time_at(answer.lower_bound, p.memory) > p.time * (1 + 1e-9)) return "a plan lies below the bound";
    if (std::isfinite(have) && have > 0 && (have - p.time) / have > answer.gap + 1e-9) return "the gap is too small";
  }
  return {};
}

}  // namespace

class KnownPlansTest : public QObject {
  Q_OBJECT

 private slots:
  void the_higher_of_two_bounds() {
    Generator g(5);
    const auto staircase = [&] {
      CostList steps;
      for (std::uint32_t i = g.number(0, 6); i-- > 0;) steps.push_back({g.number(1, 12), g.real(1, 9)});
      return reduce(steps);
    };
    for (int i = 0; i < 400; ++i) {
      const CostList a = staircase(), b = staircase(), both = higher(a, b);
      QVERIFY(is_frontier(both));
      for (std::int64_t memory = 0; memory < 14; ++memory)
        QCOMPARE(time_at(both, memory), std::max(time_at(a, memory), time_at(b, memory)));
    }
  }

  void together_they_have_the_frontier() {
    int exact = 0, left_out = 0;
    for (std::uint64_t seed = 0; seed < 900; ++seed) {
      Generator g(seed ^ 0x4b0);
      const Problem problem = small_problem(g, seed);
      const CostList truth = brute_force(problem);
      SolveOptions options;
      options.direct_terms = 0;
      options.known = somewhere_else(g, truth);
      if (g.chance(0.3)) options.restrict_terms = 0;
      if (g.chance(0.2)) options.pass = Pass::coarse, options.buckets = 8;
      if (g.chance(0.2)) options.max_table = g.number(1, 4);
      if (g.chance(0.2)) options.max_products = g.number(1, 200);
      if (g.chance(0.3)) options.enough_gap = 0.003;
      const auto answer = Solver().solve(problem, options, {});
      QVERIFY2(answer.has_value(), answer ? "" : answer.error().message().c_str());
      QVERIFY(!answer->points.empty());
      for (const Point& point : answer->points)
        QVERIFY((evaluate(problem, point) == CostPoint{point.memory, point.time}));
      const std::string fault = bound_fault(*answer, options.known, truth);
      QVERIFY2(fault.empty(), ("seed " + std::to_string(seed) + ": " + fault).c_str());
      exact += answer->exact;
      left_out += answer->exact && answer->points.size() < truth.size();
    }
    QVERIFY2(exact > 500 && left_out > 50, qPrintable(QString("%1 exact, %2 left out").arg(exact).arg(left_out)));
  }

  // Of what is slower only the bound is said, and all else is found.
  void slow_plans_are_of_no_interest() {
    int closed = 0, left_out = 0;
    for (std::uint64_t seed = 0; seed < 900; ++seed) {
      Generator g(seed ^ 0x510);
      const Problem problem = small_problem(g, seed);
      const CostList truth = brute_force(problem);
      SolveOptions options;
      options.direct_terms = 0;
      options.slowest = g.real(truth.back().time * 0.9, truth.front().time * 1.1);
      if (g.chance(0.5)) options.known = somewhere_else(g, truth);
      if (g.chance(0.3)) options.restrict_terms = 0;
      if (g.chance(0.2)) options.max_table = g.number(1, 4);
      if (g.chance(0.2)) options.max_products = g.number(1, 200);
      const bool free = options.max_products > 200 && options.max_table > 4;
      if (g.chance(0.3)) options.enough_gap = 0.003;
      Solver solver;
      if (g.chance(0.3)) {  // in two steps, as a sweep does
        SolveOptions bounds = options;
        bounds.pass = Pass::bounds;
        QVERIFY(solver.solve(problem, bounds, {}).has_value());
      }
      const auto answer = solver.has_bounds() ? solver.go_on(options, {}) : solver.solve(problem, options, {});
      QVERIFY2(answer.has_value(), answer ? "" : answer.error().message().c_str());
      QVERIFY(!answer->exact && !answer->points.empty());
      for (const Point& point : answer->points)
        QVERIFY((evaluate(problem, point) == CostPoint{point.memory, point.time}));
      const std::string fault = bound_fault(*answer, options.known, truth, options.slowest);
      QVERIFY2(fault.empty(), ("seed " + std::to_string(seed) + ": " + fault).c_str());
      if (free) QVERIFY2(answer->gap <= 0.003, ("seed " + std::to_string(seed)).c_str());
      closed += free && answer->gap < 1e-9;
      left_out += answer->points.size() < truth.size();
    }
    QVERIFY2(closed > 300 && left_out > 100, qPrintable(QString("%1 closed, %2 left out").arg(closed).arg(left_out)));
  }

  // What is known saves work: of a problem whose every plan is known nothing but its hull is looked for.
  void nothing_is_left_to_find() {
    const Problem problem = residual_blocks(4, 6, 3, 20, 9, 7, 2, true);
    SolveOptions options;
    options.direct_terms = 0;
    const auto whole = Solver().solve(problem, options, {});
    QVERIFY(whole.has_value() && whole->exact);
    options.known = costs_of(*whole);
    const auto again = Solver().solve(problem, options, {});
    QVERIFY(again.has_value() && again->exact);
    QVERIFY2(again->points.size() * 2 < whole->points.size(),
             qPrintable(QString("%1 of %2").arg(again->points.size()).arg(whole->points.size())));
  }

  // A move in two halves is the move in one, and what its first half says is achieved.
  void a_coarse_pass_in_two_halves() {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      ProblemShape shape;
      shape.forbidden = 0;
      Problem problem = random_problem(seed, 5, shape, static_cast<std::uint32_t>(seed % 9));
      SolveOptions options;
      options.pass = Pass::coarse, options.direct_terms = 0, options.live_products = 1e5;
      Solver whole, halves;
      const auto first = whole.solve(problem, options, {});
      QVERIFY(first.has_value() && halves.solve(problem, options, {}).has_value());
      Generator g(seed);
      for (Node& node : problem.nodes)
        for (CostPoint& point : node.costs.mutable_points()) point.time *= g.real(0.5, 2);
      const auto begun = halves.begin_coarse(problem, options, {});
      QVERIFY(begun.has_value() && !begun->empty() && is_frontier(*begun));
      const CostList truth = brute_force(problem);
      for (const CostPoint& point : *begun) QVERIFY(time_at(truth, point.memory) <= point.time * (1 + 1e-12));
      const auto one = whole.solve(problem, options, {});
      options.begun = true;
      const auto two = halves.solve(problem, options, {});
      QVERIFY(one.has_value() && two.has_value());
      QVERIFY(costs_of(*one) == costs_of(*two));
      for (const CostPoint& point : *begun) QVERIFY(time_at(costs_of(*two), point.memory) <= point.time);
      // Begun and left: what is asked then is another problem.
      QVERIFY(halves.begin_coarse(problem, options, {}).has_value());
      Problem other = random_problem(seed + 1000, 4, shape, static_cast<std::uint32_t>(seed % 9));
      options.begun = false;
      if (seed % 2) options.pass = Pass::exact, options.live_products = 0;
      const auto another = halves.solve(other, options, {});
      QVERIFY(another.has_value());
      for (const Point& point : another->points)
        QVERIFY((evaluate(other, point) == CostPoint{point.memory, point.time}));
      if (another->exact) QVERIFY(costs_of(*another) == brute_force(other));
    }
  }

  // Chords that what is known reaches everywhere, by every point on them.
  void chords_that_are_covered() {
    Generator g(11);
    int covered = 0;
    for (int i = 0; i < 2000; ++i) {
      CostList known;
      for (std::uint32_t k = g.number(1, 5); k-- > 0;) known.push_back({g.number(0, 40), double(g.number(0, 40))});
      known = reduce(known);
      const CostPoint low{g.number(0, 19), double(g.number(21, 40))}, high{g.number(20, 40), double(g.number(0, 20))};
      detail::Achieved achieved;
      achieved.know(known);
      bool every = true;
      for (int step = 0; step <= 4000; ++step) {
        const double part = step / 4000.0, memory = double(low.memory) + part * double(high.memory - low.memory);
        every = every && time_at(known, static_cast<std::int64_t>(std::floor(memory))) <=
                             low.time + part * (high.time - low.time) + 1e-9;
      }
      const bool said = achieved.covers_chord(low, high);
      QVERIFY(!said || every);  // between two of these steps a line falls by a hundredth
      if (every && !said) {
        CostList lower = known;
        for (CostPoint& point : lower) point.time -= 0.02;
        achieved.know(lower);
        QVERIFY(achieved.covers_chord(low, high));
      }
      covered += said;
    }
    QVERIFY2(covered > 100 && covered < 1900, std::to_string(covered).c_str());
  }

  void a_gap_that_is_small_enough_ends_it() {
    int inexact = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Problem problem =
          with_alternatives(residual_blocks(seed, 8, 3, 20, 9, 7, 1 + seed % 3, seed % 4 == 1), seed, 2);
      SolveOptions options;
      options.direct_terms = 0;
      const auto whole = Solver().solve(problem, options, {});
      options.enough_gap = 0.003;
      const auto enough = Solver().solve(problem, options, {});
      QVERIFY(whole.has_value() && enough.has_value() && whole->exact);
      QVERIFY2(enough->exact || enough->gap <= 0.0031, std::to_string(enough->gap).c_str());
      const std::string fault = bound_fault(*enough, {}, costs_of(*whole));
      QVERIFY2(fault.empty(), fault.c_str());
      inexact += !enough->exact;
    }
    QVERIFY(inexact > 0);
  }
};

QTEST_APPLESS_MAIN(KnownPlansTest)
#include "known_plans_test.moc"
