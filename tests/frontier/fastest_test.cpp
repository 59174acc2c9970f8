// SPDX-License-Identifier: Apache-2.0
// The fastest plan within one memory against brute force, on random problems of all shapes: exact where it says so, its
// bound and gap true where it does not, the plan of least memory where none fits, and ended early by what is known.
#include <QTest>
#include <cmath>

#include "core/frontier/solver.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

/// Memories below, at, between and above those of the frontier.
std::vector<std::int64_t> memories_around(const CostList& truth) {
  std::vector<std::int64_t> memories{std::max<std::int64_t>(1, truth.front().memory - 1), truth.back().memory + 1};
  for (const CostPoint& p : truth) memories.push_back(p.memory), memories.push_back(p.memory + 1);
  std::erase_if(memories, [](std::int64_t m) { return m < 1; });
  return memories;
}

}  // namespace

class FastestTest : public QObject {
  Q_OBJECT

 private slots:
  void against_brute_force() {
    int proven = 0, open = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const Problem problem = random_problem(seed, 2 + std::uint32_t(seed % 4), {}, std::uint32_t(seed % 6));
      const CostList truth = brute_force(problem);
      Solver solver;
      for (const double work : {1e9, 0.0}) {
        SolveOptions options;
        options.direct_terms = 0;  // the bounds are to be used
        options.max_products = work;
        if (truth.empty()) {
          options.memory_limit = 1000;
          const auto none = solver.fastest(problem, options, {});
          QVERIFY(!none && none.error().code == ErrorCode::infeasible);
          continue;
        }
        for (const std::int64_t memory : memories_around(truth)) {
          options.memory_limit = memory;
          const auto answer = solver.fastest(problem, options, {});
          QVERIFY2(answer, qPrintable(QString::number(seed)));
          QCOMPARE(answer->points.size(), std::size_t(1));
          const Point& point = answer->points.front();
          QCOMPARE(evaluate(problem, point), (CostPoint{point.memory, point.time}));
          QVERIFY(answer->lower_bound.front().memory <= truth.front().memory);
          if (memory < truth.front().memory) {
            QCOMPARE(point.memory, truth.front().memory);
            QCOMPARE(point.time, truth.front().time);
            continue;
          }
          const double best = time_at(truth, memory);
          QVERIFY(point.memory <= memory);
          QVERIFY(point.time >= best);
          if (work > 0) QVERIFY2(answer->exact, qPrintable(QString("seed %1, %2 bytes").arg(seed).arg(memory)));
          if (answer->exact) QCOMPARE(point.time, best);
          QVERIFY(answer->lower_bound.front().time <= best * (1 + 1e-9));
          QVERIFY(point.time * (1 - answer->gap) <= best * (1 + 1e-9));
          (answer->exact ? proven : open) += 1;
        }
      }
    }
    QVERIFY(proven > 1000);
    QVERIFY2(open > 10, "no question was ever left open, so the gap was never judged");
  }

  void what_is_known_ends_it() {
    int ended = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Problem problem = random_problem(seed, 4, {}, std::uint32_t(seed % 6));
      const CostList truth = brute_force(problem);
      if (truth.size() < 2) continue;
      Solver solver;
      SolveOptions options;
      options.direct_terms = 0;
      options.memory_limit = std::max<std::int64_t>(1, truth[truth.size() / 2].memory);
      const double best = time_at(truth, options.memory_limit);
      // What is faster than anything within the memory: only a bound is told, and a true one.
      options.known = {{0, best / 2}};
      const auto answer = solver.fastest(problem, options, {});
      QVERIFY(answer);
      QVERIFY(answer->points.front().time >= best);
      QVERIFY(answer->lower_bound.front().time <= best * (1 + 1e-9));
      // What is slower is improved on.
      options.known = {{0, best * 2}};
      const auto improved = solver.fastest(problem, options, {});
      QVERIFY(improved && improved->exact);
      QCOMPARE(improved->points.front().time, best);
      ++ended;
    }
    QVERIFY(ended > 20);
  }
};

QTEST_APPLESS_MAIN(FastestTest)
#include "fastest_test.moc"
