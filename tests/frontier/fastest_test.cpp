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

  // All memories in one call, with the slopes that another problem's bounds suggest, or with nonsense for slopes.
  void several_memories_at_once() {
    int asked = 0, open = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const Problem problem = random_problem(seed, 3 + std::uint32_t(seed % 3), {}, std::uint32_t(seed % 6));
      const CostList truth = brute_force(problem);
      if (truth.empty()) continue;
      Solver solver;
      SolveOptions options;
      options.direct_terms = 0;
      std::vector<std::int64_t> memories = memories_around(truth);
      if (memories.size() > 6) memories.resize(6);
      std::vector<Solver::Within> within;
      for (const std::int64_t memory : memories) within.push_back({memory});
      const std::vector<BoundLine> own = lines_below(truth), odd{{1e6, 1e-3}, {1e-6, 1e-15}, {0, 0}};
      for (const std::vector<BoundLine>& like : {std::vector<BoundLine>(), own, odd}) {
        const auto answers = solver.fastest(problem, within, like, options, {});
        QVERIFY(answers);
        QCOMPARE(answers->size(), within.size());
        for (std::size_t i = 0; i < within.size(); ++i) {
          const Answer& answer = (*answers)[i];
          const Point& point = answer.points.front();
          QCOMPARE(evaluate(problem, point), (CostPoint{point.memory, point.time}));
          if (memories[i] < truth.front().memory) {
            QCOMPARE(point.memory, truth.front().memory);
            continue;
          }
          const double best = time_at(truth, memories[i]);
          QVERIFY(point.memory <= memories[i]);
          QVERIFY2(answer.exact, qPrintable(QString("seed %1, %2 bytes").arg(seed).arg(memories[i])));
          QCOMPARE(point.time, best);
          QVERIFY(answer.lower_bound.front().time <= best * (1 + 1e-9));
          ++asked;
        }
      }
      // Of an answer over the whole frontier: no plan lies below its lines, and some come near.
      for (const std::size_t direct : {std::size_t(0), std::size_t(20000)}) {
        options.direct_terms = direct;
        const auto whole = solver.solve(problem, options, {});
        QVERIFY(whole && !whole->lines.empty());
        QCOMPARE(upper_envelope(whole->lines), whole->lines);
        double nearest = std::numeric_limits<double>::infinity();
        for (const CostPoint& p : truth) {
          const double least = time_above(whole->lines, double(p.memory));
          QVERIFY(least <= p.time * (1 + 1e-9));
          nearest = std::min(nearest, p.time - least);
        }
        QVERIFY(nearest <= 1e-4 * truth.front().time);
        open += truth.size() > 2;
      }
    }
    QVERIFY(asked > 1000 && open > 50);
  }

  void lines_and_staircases() {
    // 1 s and falling by 0.1 s a byte, 0.5 s throughout, and one that is nowhere the highest.
    const std::vector<BoundLine> lines = upper_envelope({{0.5, 0}, {0.4, 0.05}, {1, 0.1}, {0.9, 0.1}});
    QCOMPARE(lines, (std::vector<BoundLine>{{1, 0.1}, {0.5, 0}}));
    QCOMPARE(time_above(lines, 2), 0.8);
    QCOMPARE(time_above(lines, 50), 0.5);
    QCOMPARE(time_above({}, 2), 0.0);
    // The corner at 3 bytes lies above the chord of its neighbours.
    QCOMPARE(lines_below({{1, 4}, {3, 3.5}, {5, 2}, {9, 1}}),
             (std::vector<BoundLine>{{4.5, 0.5}, {3.25, 0.25}, {1, 0}}));
    QCOMPARE(lines_below({{7, 2}}), (std::vector<BoundLine>{{2, 0}}));
    QVERIFY(lines_below({}).empty());
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
