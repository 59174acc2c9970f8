// SPDX-License-Identifier: Apache-2.0
// The engine against brute force on thousands of random problems of all shapes, with and without pruning.
#include "core/frontier/solver.h"

#include <QTest>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

RunContext context(int threads = 1) {
  RunContext c;
  c.threads = threads;
  return c;
}

Problem f2_chain() {
  Problem p;
  const auto node = [&](CostPoint a, CostPoint b) {
    Node n;
    n.costs.add(a);
    n.costs.add(b);
    p.nodes.push_back(n);
  };
  const auto edge = [&](std::uint32_t a, std::uint32_t b, double t00, double t01, double t10, double t11) {
    Edge e{a, b, {0, 1}, {0, 1}, 2, 2, {}};
    for (const double t : {t00, t01, t10, t11}) e.costs.add(CostPoint{0, t});
    p.edges.push_back(e);
  };
  node({4, 2}, {2, 5});
  node({6, 3}, {3, 4});
  node({5, 1}, {1, 6});
  edge(0, 1, 0, 2, 3, 1);
  edge(1, 2, 0, 4, 2, 0);
  return p;
}

Problem f3_diamond() {
  Problem p;
  const auto node = [&](CostPoint a, CostPoint b) {
    Node n;
    n.costs.add(a);
    n.costs.add(b);
    p.nodes.push_back(n);
  };
  const auto edge = [&](std::uint32_t a, std::uint32_t b, double t) {
    Edge e{a, b, {0, 1}, {0, 1}, 2, 2, {}};
    for (const double x : {0.0, t, t, 0.0}) e.costs.add(CostPoint{0, x});
    p.edges.push_back(e);
  };
  node({1, 4}, {3, 2});
  node({2, 3}, {4, 1});
  node({1, 5}, {2, 2});
  node({2, 2}, {3, 1});
  edge(0, 1, 2);
  edge(0, 2, 3);
  edge(1, 3, 2);
  edge(2, 3, 1);
  return p;
}

/// Everything that must hold of an answer whatever the problem; the empty string if it does.
std::string broken(const Problem& problem, const Answer& answer) {
  const CostList costs = costs_of(answer);
  if (costs.empty()) return "no points";
  if (!is_frontier(costs)) return "memory does not rise or time does not fall";
  for (const Point& p : answer.points)
    if (evaluate(problem, p) != CostPoint{p.memory, p.time}) return "a point does not re-evaluate to its cost";
  if (answer.exact && (answer.gap != 0 || !answer.lower_bound.empty())) return "an exact answer with a gap";
  return {};
}

std::string bound_broken(const Answer& answer, const CostList& truth) {
  const CostList costs = costs_of(answer);
  for (const CostPoint& p : costs)
    if (time_at(truth, p.memory) > p.time * (1 + 1e-9)) return "a point lies below the true frontier";
  if (answer.exact) return {};
  if (!is_frontier(answer.lower_bound)) return "the lower bound is no staircase";
  for (const CostPoint& p : truth)
    if (time_at(answer.lower_bound, p.memory) > p.time * (1 + 1e-9)) return "a plan lies below the lower bound";
  // The stated gap covers the distance to the truth at every memory value from the smallest achieved on.
  for (const CostPoint& p : truth) {
    const double achieved = time_at(costs, p.memory);
    if (std::isfinite(achieved) && achieved > 0 && (achieved - p.time) / achieved > answer.gap + 1e-9) return "the gap is too small";
  }
  return {};
}

void dump(const Problem& problem, std::uint64_t seed) {
  const std::string path = "frontier_failure_" + std::to_string(seed) + ".json";
  std::ofstream(path) << write_problem(problem).dump();
  qWarning("problem of seed %llu written to %s", static_cast<unsigned long long>(seed), path.c_str());
}

}  // namespace

/// Fails with the seed after writing the problem to a file; needs a `fail` in scope.
#define CHECK(condition, why) \
  if (!(condition)) QFAIL(fail(why).c_str())

class SolverTest : public QObject {
  Q_OBJECT

 private slots:
  void worked_chain() {
    for (const std::size_t direct : {std::size_t(0), std::size_t(1000)}) {
      SolveOptions options;
      options.direct_terms = direct;
      const auto answer = Solver().solve(f2_chain(), options, context());
      QVERIFY(answer.has_value() && answer->exact);
      QVERIFY(costs_of(*answer) == (CostList{{6, 16}, {8, 14}, {10, 13}, {12, 11}, {15, 6}}));
      const std::vector<std::vector<std::uint32_t>> configs{{1, 1, 1}, {0, 1, 1}, {1, 1, 0}, {0, 1, 0}, {0, 0, 0}};
      for (std::size_t i = 0; i < 5; ++i) QVERIFY(answer->points[i].configs == configs[i]);
    }
  }

  void worked_diamond() {
    const auto answer = Solver().solve(f3_diamond(), {}, context());
    QVERIFY(answer.has_value() && answer->exact);
    QVERIFY(costs_of(*answer) == (CostList{{6, 14}, {9, 12}, {11, 10}, {12, 6}}));
    const std::vector<std::vector<std::uint32_t>> configs{{0, 0, 0, 0}, {1, 0, 1, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    for (std::size_t i = 0; i < 4; ++i) QVERIFY(answer->points[i].configs == configs[i]);
  }

  void random_problems_data() {
    QTest::addColumn<int>("kind");
    const char* names[] = {"chain", "tree", "diamonds", "ladder", "clique", "components", "random", "cycle", "star"};
    for (int k = 0; k < 9; ++k) QTest::newRow(names[k]) << k;
  }

  /// Pruned, unpruned, coarse and too-wide paths on the same problems.
  void random_problems() {
    QFETCH(int, kind);
    std::size_t feasible = 0, not_exact = 0, bounded = 0;
    for (std::uint64_t i = 0; i < 500; ++i) {
      const std::uint64_t seed = i * 16 + static_cast<std::uint64_t>(kind);
      Generator g(seed ^ 0x5eed);
      Shape shape;
      shape.integer_times = g.chance(0.5);
      shape.large_memory = g.chance(0.3);
      shape.forbidden = g.chance(0.5) ? 0 : 0.2;
      shape.max_alternatives = kind == 4 ? 1 : g.number(1, 2);
      const std::uint32_t n = g.number(1, kind == 4 ? 5 : 6);
      const Problem problem = random_problem(seed, n, shape, static_cast<std::uint32_t>(kind));
      QVERIFY2(validate(problem).has_value(), "the generator made an invalid problem");
      const CostList truth = brute_force(problem);
      feasible += !truth.empty();
      for (int mode = 0; mode < 4; ++mode) {
        SolveOptions options;
        options.direct_terms = mode == 0 ? 1u << 30 : 0;
        if (mode == 2) options.pass = Pass::coarse, options.buckets = 8;
        if (mode == 3) options.max_table = g.number(1, 4);
        const auto answer = Solver().solve(problem, options, context());
        const auto fail = [&](const std::string& why) {
          dump(problem, seed);
          return "seed " + std::to_string(seed) + ", mode " + std::to_string(mode) + ": " + why;
        };
        if (truth.empty()) {
          CHECK(!answer && answer.error().code == ErrorCode::infeasible, "a plan where there is none");
          continue;
        }
        CHECK(answer.has_value(), "no answer: " + answer.error().message());
        const std::string why = broken(problem, *answer), bound = bound_broken(*answer, truth);
        CHECK(why.empty(), why);
        CHECK(bound.empty(), bound);
        if (mode < 2) CHECK(answer->exact, "not exact");
        if (answer->exact) CHECK(equal_frontiers(costs_of(*answer), truth, shape.integer_times), "wrong frontier");
        not_exact += mode == 3 && !answer->exact;
        bounded += mode == 3;
      }
    }
    QVERIFY(feasible > 250);
    if (kind == 4 || kind == 3) QVERIFY2(not_exact * 4 > bounded, "the too-wide path was hardly taken");
  }
};

QTEST_APPLESS_MAIN(SolverTest)
#include "solver_test.moc"
