// SPDX-License-Identifier: Apache-2.0
// Gaps that thinned lists prove: what such lists keep of the exact ones, answers against brute force and against whole
// frontiers, and searches that go on from bounds.
#include <QTest>
#include <cmath>

#include "core/frontier/bounds.h"
#include "core/frontier/lists.h"
#include "core/frontier/solver.h"
#include "frontier/layered.h"
#include "frontier/parts.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

/// The root list of a problem, and its plans where they can be traced back.
struct Roots : Parts {
  using Parts::Parts;
  CostList list(const ListOptions& options) {
    if (run_lists(dag, options, pool, control, nullptr, tables) != ListResult::done) return {};
    const ListTable& root = tables[dag.root];
    CostList costs;
    for (std::size_t i = 0; i < root.points(); ++i) costs.push_back({root.memory[i], root.time[i]});
    return costs;
  }
  std::vector<Point> plans() {
    std::vector<std::uint32_t> all(tables[dag.root].points());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    std::vector<Choice> choices;
    trace_lists(dag, tables, all, choices);
    std::vector<Point> points(all.size());
    make_points(graph, choices, points);
    return points;
  }
  std::vector<ListTable> tables;
};

Problem long_problem(std::uint64_t seed) {
  return with_alternatives(residual_blocks(seed, 10, 3, 20, 9, 7, 1 + seed % 3, seed % 4 == 1), seed, 2);
}

/// Nothing that is true lies below the bound, and the gap covers the distance to it.
std::string bound_fault(const Answer& answer, const CostList& truth) {
  const CostList reached = costs_of(answer);
  for (const CostPoint& p : truth) {
    const double have = time_at(reached, p.memory);
    if (answer.exact ? have > p.time * (1 + 1e-12) : time_at(answer.lower_bound, p.memory) > p.time * (1 + 1e-9))
      return "a plan lies below what is said of all";
    if (!answer.exact && std::isfinite(have) && have > 0 && (have - p.time) / have > answer.gap + 1e-9)
      return "the gap is too small";
  }
  return {};
}

}  // namespace

class ProofTest : public QObject {
  Q_OBJECT

 private slots:
  void thinned_lists_lie_on_either_side_of_the_exact_ones() {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem problem = with_alternatives(
          seed % 2 ? layered_chain(seed, 12, 12, 4) : residual_blocks(seed, 3, 3, 8, 4, 3, 2, false), seed, 3);
      Roots roots(problem);
      const CostList exact = roots.list({});
      QVERIFY2(exact.size() > 100, std::to_string(exact.size()).c_str());
      const double range_m = double(exact.back().memory - exact.front().memory),
                   range_t = exact.front().time - exact.back().time;
      ListOptions options;
      options.near_memory = range_m / 20;
      options.near_time = range_t / 20;
      const CostList plans = roots.list(options);
      const std::vector<Point> made = roots.plans();
      options.corners = true;
      const CostList corners = roots.list(options);
      // Two of each three neighbours are farther apart than a twentieth of both ranges together.
      for (const CostList* thin : {&plans, &corners})
        QVERIFY2(is_frontier(*thin) && thin->size() <= 82 && thin->size() < exact.size(),
                 qPrintable(QString("%1 of %2").arg(thin->size()).arg(exact.size())));
      for (std::size_t i = 0; i < plans.size(); ++i) {
        QVERIFY(made[i].memory == plans[i].memory && std::abs(made[i].time - plans[i].time) <= 1e-9 * plans[i].time);
        QVERIFY(evaluate(problem, made[i]).memory == plans[i].memory);
        QVERIFY(time_at(exact, plans[i].memory) <= plans[i].time * (1 + 1e-12));
      }
      bool below = false;
      for (const CostPoint& p : exact) {
        QVERIFY(time_at(corners, p.memory) <= p.time * (1 + 1e-12));
        below = below || time_at(corners, p.memory) < p.time * (1 - 1e-6);
      }
      QVERIFY(below);
    }
  }

  void searches_go_on_from_bounds() {
    int went_on = 0, exact = 0;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
      Generator g(seed ^ 0x90e5);
      ProblemShape shape;
      shape.integer_times = g.chance(0.5);
      shape.forbidden = 0;
      const auto kind = static_cast<std::uint32_t>(seed % 9);
      shape.max_alternatives = kind == 4 ? 1 : g.number(1, 2);
      const Problem problem = random_problem(seed, g.number(2, kind == 4 ? 4 : 6), shape, kind);
      const CostList truth = brute_force(problem);
      SolveOptions options;
      options.direct_terms = 0;
      options.pass = Pass::bounds;
      if (g.chance(0.3)) options.restrict_terms = 0;
      if (g.chance(0.2)) options.max_table = g.number(1, 4);
      Solver solver;
      const auto begun = solver.solve(problem, options, {});
      QVERIFY(begun.has_value());
      std::string fault = bound_fault(*begun, truth);
      QVERIFY2(fault.empty(), ("bounds, seed " + std::to_string(seed) + ": " + fault).c_str());
      if (begun->exact) continue;
      ++went_on;
      options.pass = Pass::exact;
      if (g.chance(0.3)) options.enough_gap = 0.003;
      if (g.chance(0.3)) options.max_products = g.number(1, 200);
      const auto answer = solver.go_on(options, {});
      QVERIFY(answer.has_value());
      for (const Point& point : answer->points)
        QVERIFY((evaluate(problem, point) == CostPoint{point.memory, point.time}));
      fault = bound_fault(*answer, truth);
      QVERIFY2(fault.empty(), ("seed " + std::to_string(seed) + ": " + fault).c_str());
      QVERIFY(answer->exact || answer->gap <= begun->gap * (1 + 1e-9));
      exact += answer->exact;
    }
    QVERIFY2(went_on > 300 && exact > 200, qPrintable(QString("%1 went on, %2 exact").arg(went_on).arg(exact)));
  }

  // Of problems whose exact lists are long: a gap that is enough is proven, and the true frontier lies above the bound.
  void a_gap_is_proven_where_lists_are_long() {
    int inexact = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Problem problem = long_problem(seed);
      SolveOptions options;
      options.direct_terms = 0;
      const auto whole = Solver().solve(problem, options, {});
      QVERIFY(whole.has_value());
      options.enough_gap = 0.003;
      const auto enough = Solver().solve(problem, options, {});
      QVERIFY(enough.has_value());
      QVERIFY2(enough->gap <= 0.003, std::to_string(enough->gap).c_str());
      inexact += !enough->exact;
      if (!whole->exact) continue;
      const std::string fault = bound_fault(*enough, costs_of(*whole));
      QVERIFY2(fault.empty(), fault.c_str());
    }
    QVERIFY(inexact > 0);
  }

  void a_gap_is_proven_within_a_limit() {
    const Problem problem = long_problem(2);
    SolveOptions options;
    options.direct_terms = 0;
    options.enough_gap = 0.003;
    const auto all = Solver().solve(problem, options, {});
    QVERIFY(all.has_value() && all->gap <= 0.003);
    options.memory_limit = all->points[all->points.size() / 2].memory;
    const auto within = Solver().solve(problem, options, {});
    QVERIFY(within.has_value());
    QVERIFY2(within->gap <= 0.003, std::to_string(within->gap).c_str());
    QVERIFY(within->points.back().memory <= options.memory_limit);
  }

  // Where there is room for all blocks of slopes at once, for a few or for one.
  void the_same_on_any_number_of_threads() {
    const Problem problem = long_problem(5);
    SolveOptions options;
    options.direct_terms = 0;
    options.enough_gap = 0.003;
    for (const int room : {29, 20, 18, 16}) {
      options.policy.bytes = std::size_t(1) << room;
      std::vector<Answer> answers;
      for (const int threads : {1, 2, 3, 8}) {
        RunContext context;
        context.threads = threads;
        answers.push_back(*Solver().solve(problem, options, context));
      }
      for (const Answer& answer : answers) {
        QCOMPARE(answer.gap, answers[0].gap);
        QVERIFY(costs_of(answer) == costs_of(answers[0]) && answer.lower_bound == answers[0].lower_bound);
      }
    }
  }

  // A frontier whose products are more than the work allowed is not begun.
  void one_entry_that_is_too_much_is_not_made() {
    Problem problem;
    for (int n = 0; n < 2; ++n) {
      Generator g(static_cast<std::uint64_t>(n));
      Node node;
      for (int c = 0; c < 1000; ++c) node.costs.add({c * 1000 + g.number(0, 9), 1000.0 - c});
      problem.nodes.push_back(node);
    }
    Roots roots(problem);
    ListOptions options;
    options.max_products = 999'999;
    QVERIFY(run_lists(roots.dag, options, roots.pool, roots.control, nullptr, roots.tables) == ListResult::too_large);
    options.max_products = 1e6;
    QVERIFY(run_lists(roots.dag, options, roots.pool, roots.control, nullptr, roots.tables) == ListResult::done);
  }
};

QTEST_APPLESS_MAIN(ProofTest)
#include "proof_test.moc"
