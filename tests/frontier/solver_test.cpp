// SPDX-License-Identifier: Apache-2.0
// The engine against brute force on thousands of random problems of all shapes, with and without pruning.
#include "core/frontier/solver.h"

#include <QTest>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "frontier/layered.h"
#include "frontier/worked.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlow = 20;  // sanitizers
#else
constexpr double kSlow = 1;
#endif

RunContext context(int threads = 1) {
  RunContext c;
  c.threads = threads;
  return c;
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
    if (std::isfinite(achieved) && achieved > 0 && (achieved - p.time) / achieved > answer.gap + 1e-9)
      return "the gap is too small";
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
    for (std::uint64_t i = 0; i < 350; ++i) {
      const std::uint64_t seed = i * 16 + static_cast<std::uint64_t>(kind);
      Generator g(seed ^ 0x5eed);
      ProblemShape shape;
      shape.integer_times = g.chance(0.5);
      shape.large_memory = g.chance(0.3);
      shape.forbidden = g.chance(0.5) ? 0 : 0.2;
      shape.max_alternatives = kind == 4 ? 1 : g.number(1, 2);
      const std::uint32_t n = g.number(1, kind == 4 ? 5 : 6);
      const Problem problem = random_problem(seed, n, shape, static_cast<std::uint32_t>(kind));
      QVERIFY2(validate(problem).has_value(), "the generator made an invalid problem");
      const CostList truth = brute_force(problem);
      feasible += !truth.empty();
      for (int mode = 0; mode < 6; ++mode) {
        SolveOptions options;
        options.direct_terms = mode == 0 ? 1u << 30 : 0;
        if (mode >= 4) options.restrict_terms = 0;
        if (mode == 5) options.max_products = g.number(1, 200);
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
        if (mode < 2 || mode == 4) CHECK(answer->exact, "not exact");
        if (answer->exact) CHECK(equal_frontiers(costs_of(*answer), truth, shape.integer_times), "wrong frontier");
        not_exact += mode == 3 && !answer->exact;
        bounded += mode == 3;
      }
    }
    QVERIFY(feasible > 175);
    if (kind == 4 || kind == 3) QVERIFY2(not_exact * 4 > bounded, "the too-wide path was hardly taken");
  }

  void same_answer_on_any_number_of_threads() {
    const Problem problems[] = {layered_chain(3, 30, 40, 8), residual_blocks(4, 6, 3, 20, 9, 7, 2, true),
                                random_problem(77, 12, {}, 3)};
    for (const Problem& problem : problems)
      for (const Pass pass : {Pass::exact, Pass::coarse})
        for (const std::size_t table : {std::size_t(1) << 24, std::size_t(30)}) {
          SolveOptions options;
          options.pass = pass;
          options.direct_terms = 0;
          options.max_table = table;
          const auto one = Solver().solve(problem, options, context(1));
          QVERIFY(one.has_value());
          for (const int threads : {2, 8}) {
            const auto many = Solver().solve(problem, options, context(threads));
            QVERIFY(many.has_value());
            QCOMPARE(many->points.size(), one->points.size());
            for (std::size_t i = 0; i < one->points.size(); ++i) {
              QVERIFY(many->points[i].memory == one->points[i].memory && many->points[i].time == one->points[i].time);
              QVERIFY(many->points[i].configs == one->points[i].configs);
              QVERIFY(many->points[i].edge_alternatives == one->points[i].edge_alternatives);
            }
            QCOMPARE(many->gap, one->gap);
            QVERIFY(many->lower_bound == one->lower_bound);
          }
        }
  }

  /// Bounds, classes and sharing of repeated layers are all off in the direct mode; both must agree on larger problems.
  void pruned_equals_unpruned() {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem problem = seed % 2 ? residual_blocks(seed, 5, 3, 16, 6, 5, 1 + seed % 3, seed % 4 == 1)
                                       : layered_chain(seed, 14, 30, 6);
      SolveOptions direct, pruned;
      direct.direct_terms = std::size_t(1) << 40;
      pruned.direct_terms = 0;
      const auto a = Solver().solve(problem, direct, context(2)), b = Solver().solve(problem, pruned, context(2));
      QVERIFY(a.has_value() && b.has_value() && a->exact && b->exact);
      QVERIFY(broken(problem, *a).empty() && broken(problem, *b).empty());
      QVERIFY2(equal_frontiers(costs_of(*a), costs_of(*b), false), ("seed " + std::to_string(seed)).c_str());
      QVERIFY(a->points.size() > 20);
    }
  }

  /// Larger problems through the states of the hull, tolerances and work limits, against lists without any bounds.
  void tolerances_leave_true_certificates() {
    int inexact = 0, small_gap = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Problem problem =
          with_alternatives(seed % 2 ? residual_blocks(seed, 5, 3, 12, 6, 5, 1 + seed % 3, seed % 4 == 1)
                                     : layered_chain(seed, 12, 20, 5),
                            seed, 3);
      SolveOptions options;
      options.direct_terms = std::size_t(1) << 40;
      const auto truth = Solver().solve(problem, options, context(2));
      QVERIFY(truth.has_value() && truth->exact);
      options.direct_terms = options.restrict_terms = 0;
      for (double work = 1e3; work < 1e9; work *= 4) {
        options.max_products = work;
        const auto answer = Solver().solve(problem, options, context(2));
        const auto other = Solver().solve(problem, options, context(3));
        QVERIFY(answer.has_value() && other.has_value());
        QCOMPARE(costs_of(*answer), costs_of(*other));
        QCOMPARE(answer->gap, other->gap);
        QVERIFY2(broken(problem, *answer).empty(), broken(problem, *answer).c_str());
        if (answer->exact) {
          QVERIFY(equal_frontiers(costs_of(*answer), costs_of(*truth), false));
          continue;
        }
        ++inexact;
        small_gap += answer->gap < 0.1;
        QVERIFY2(bound_broken(*answer, costs_of(*truth)).empty(), bound_broken(*answer, costs_of(*truth)).c_str());
      }
    }
    QVERIFY(inexact > 10 && small_gap > 0);
  }

  /// Nodes with many alternatives each make millions of points that lie next to the hull; they must not be enumerated.
  void many_alternatives_end_with_a_small_gap() {
    const Problem problem = with_alternatives(residual_blocks(1, 30, 4, 60, 30, 30, 3, false), 1, 6);
    const auto answer = Solver().solve(problem, {}, context(2));
    QVERIFY(answer.has_value());
    QVERIFY(broken(problem, *answer).empty());
    QVERIFY2(answer->gap < 0.01, std::to_string(answer->gap).c_str());
  }

  /// A coarse answer asked for again at the same costs is at least as good everywhere.
  void rest_refines_a_slider() {
    Problem problem = layered_chain(3, 60, 40, 20);
    SolveOptions options;
    options.direct_terms = 0;
    Solver solver;
    QVERIFY(solver.solve(problem, options, context(2)).has_value());
    for (Edge& edge : problem.edges)
      for (CostPoint& p : edge.costs.mutable_points()) p.time *= 3;
    options.pass = Pass::coarse;
    const auto moved = solver.solve(problem, options, context(2)), rest = solver.solve(problem, options, context(2));
    QVERIFY(moved.has_value() && rest.has_value());
    QVERIFY(broken(problem, *moved).empty() && broken(problem, *rest).empty());
    options.pass = Pass::exact;
    const auto exact = Solver().solve(problem, options, context(2));
    QVERIFY(exact.has_value());
    const auto excess = [&](const Answer& answer) {
      double worst = 0;
      const CostList curve = costs_of(answer);
      for (const Point& p : exact->points) {
        const double time = time_at(curve, p.memory);
        if (std::isfinite(time)) worst = std::max(worst, time - p.time);
      }
      return worst / (exact->points.front().time - exact->points.back().time);
    };
    QVERIFY2(excess(*rest) < 0.03, std::to_string(excess(*rest)).c_str());
  }

  void reuse_equals_a_fresh_solver() {
    Problem problem = residual_blocks(9, 6, 3, 20, 8, 6, 2, false);
    SolveOptions options;
    options.direct_terms = 0;
    Solver kept;
    for (int round = 0; round < 4; ++round) {
      const auto again = kept.solve(problem, options, context(2)), fresh = Solver().solve(problem, options, context(2));
      QVERIFY(again.has_value() && fresh.has_value() && again->exact && fresh->exact);
      QVERIFY(broken(problem, *again).empty());
      QVERIFY(equal_frontiers(costs_of(*again), costs_of(*fresh), false));
      for (Edge& edge : problem.edges)
        for (CostPoint& p : edge.costs.mutable_points()) p.time *= 1.5;  // the bandwidth slider
    }
    // Another structure in the same solver.
    const Problem other = layered_chain(5, 12, 20, 5);
    const auto again = kept.solve(other, options, context(2)), fresh = Solver().solve(other, options, context(2));
    QVERIFY(again.has_value() && fresh.has_value());
    QVERIFY(equal_frontiers(costs_of(*again), costs_of(*fresh), false));
  }

  /// A window sketches first and has searched elsewhere before; the command line has not. Both say the same.
  void exact_answers_do_not_depend_on_earlier_ones() {
    Problem problem = layered_chain(11, 80, 60, 12), elsewhere = problem;
    for (Edge& edge : elsewhere.edges)
      for (CostPoint& p : edge.costs.mutable_points()) p.time *= 3;
    SolveOptions options, coarse;
    options.direct_terms = coarse.direct_terms = 0;
    coarse.pass = Pass::coarse;
    int inexact = 0;
    for (const double work : {3e5, 3e6, 1e10}) {
      options.max_products = work;
      const auto fresh = Solver().solve(problem, options, context(2));
      Solver kept;
      for (const Problem* before : {&problem, &elsewhere}) {
        QVERIFY(kept.solve(*before, coarse, context(2)).has_value());
        QVERIFY(kept.solve(*before, options, context(2)).has_value());
        const auto again = kept.solve(problem, options, context(2));
        QVERIFY(fresh.has_value() && again.has_value());
        QVERIFY(costs_of(*again) == costs_of(*fresh) && again->lower_bound == fresh->lower_bound);
        QCOMPARE(again->gap, fresh->gap);
        for (std::size_t i = 0; i < fresh->points.size(); ++i)
          QVERIFY(again->points[i].configs == fresh->points[i].configs);
      }
      inexact += !fresh->exact;
    }
    QVERIFY(inexact > 0 && inexact < 3);
  }

  void memory_limit() {
    for (const std::size_t direct : {std::size_t(0), std::size_t(1) << 30}) {
      const Problem problem = layered_chain(6, 12, 30, 6);
      SolveOptions options;
      options.direct_terms = direct;
      const auto whole = Solver().solve(problem, options, context());
      QVERIFY(whole.has_value() && whole->points.size() > 10);
      const std::size_t middle = whole->points.size() / 2;
      options.memory_limit = whole->points[middle].memory;
      const auto limited = Solver().solve(problem, options, context());
      QVERIFY(limited.has_value() && limited->exact);
      CostList expected = costs_of(*whole);
      expected.resize(middle + 1);
      QVERIFY(equal_frontiers(costs_of(*limited), expected, false));
      QVERIFY(limited->points.back().memory <= options.memory_limit);
      options.memory_limit = whole->points[0].memory - 1;
      const auto none = Solver().solve(problem, options, context());
      QVERIFY(none.has_value());
      QCOMPARE(none->points.size(), std::size_t(1));
      QCOMPARE(none->points[0].memory, whole->points[0].memory);
      QCOMPARE(none->points[0].time, whole->points[0].time);
    }
  }

  void cancels_within_100_ms() {
    const Problem problem = layered_chain(1, 200, 100, 20);
    for (const int delay_ms : {0, 20, 100, 400, 1500}) {
      std::stop_source source;
      RunContext c = context(2);
      c.stop = source.get_token();
      std::clock_t cpu_asked = 0;
      std::jthread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        cpu_asked = std::clock();
        source.request_stop();
      });
      Solver solver;  // whoever cancels keeps the solver and its working memory
      const auto answer = solver.solve(problem, {}, c);
      const std::clock_t cpu_ended = std::clock();
      stopper.join();
      if (answer) continue;  // it was done before
      QVERIFY(answer.error().code == ErrorCode::cancelled);
      // On a machine that others keep busy the clock on the wall says little; the processor time of both threads does.
      const double latency = double(cpu_ended - cpu_asked) / CLOCKS_PER_SEC;
      QVERIFY2(latency < 0.2 * kSlow, ("cancelled after " + std::to_string(latency) + " s").c_str());
    }
  }

  void time_limit_gives_an_achievable_answer() {
    const Problem problem = layered_chain(1, 200, 100, 20);
    SolveOptions options;
    options.time_limit_s = 0.05;
    const auto answer = Solver().solve(problem, options, context(2));
    QVERIFY(answer.has_value());
    QVERIFY(broken(problem, *answer).empty());
    if (!answer->exact) QVERIFY(answer->gap > 0 && answer->gap < 1 && !answer->lower_bound.empty());
  }

  // Where the work allowed ends an exact pass early, what was proven by then must hold against the true frontier.
  void a_work_limit_leaves_a_true_certificate() {
    const Problem problem = layered_chain(11, 80, 60, 12);
    SolveOptions options;
    options.direct_terms = 0;
    const auto truth = Solver().solve(problem, options, context(2));
    QVERIFY(truth.has_value() && truth->exact);
    int inexact = 0;
    for (double work = 1e4; work < 1e10; work *= 3) {
      options.max_products = work;
      const auto answer = Solver().solve(problem, options, context(2));
      const auto other = Solver().solve(problem, options, context(1));
      QVERIFY(answer.has_value() && other.has_value());
      QCOMPARE(costs_of(*answer), costs_of(*other));
      QVERIFY2(broken(problem, *answer).empty(), broken(problem, *answer).c_str());
      if (answer->exact) {
        QVERIFY(equal_frontiers(costs_of(*answer), costs_of(*truth), false));
        continue;
      }
      ++inexact;
      QVERIFY2(bound_broken(*answer, costs_of(*truth)).empty(), bound_broken(*answer, costs_of(*truth)).c_str());
    }
    QVERIFY(inexact > 2);
  }

  void reports_progress() {
    std::vector<std::string> phases;
    std::mutex mutex;
    RunContext c = context(2);
    c.progress = [&](const Progress& p) {
      const std::lock_guard lock(mutex);
      if (phases.empty() || phases.back() != p.phase) phases.push_back(p.phase);
      QVERIFY(p.fraction <= 1);
    };
    SolveOptions options;
    options.direct_terms = 0;
    QVERIFY(Solver().solve(layered_chain(2, 20, 30, 6), options, c).has_value());
    QVERIFY(std::find(phases.begin(), phases.end(), "exact frontier") != phases.end());
  }

  void no_nodes() {
    const auto answer = Solver().solve({}, {}, context());
    QVERIFY(answer.has_value() && answer->exact);
    QVERIFY(costs_of(*answer) == (CostList{{0, 0}}));
  }

  /// Layers that share their weights: every node of a layer is tied to its like in the first one, by equal tables.
  /// Oracle: every choice.
  void tied_layers_against_brute_force() {
    std::size_t not_exact = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Generator g(seed ^ 0x71ed);
      const std::uint32_t layers = g.number(2, 4), kinds = 2, states = g.number(2, 3);
      Problem problem;
      std::vector<Node> like;
      for (std::uint32_t k = 0; k < kinds; ++k) like.push_back(layered_node(g, states));
      for (std::uint32_t l = 0; l < layers; ++l) problem.nodes.insert(problem.nodes.end(), like.begin(), like.end());
      const auto each = random_classes(g, states, states);
      const auto inside = resharding_table(g, states, states), between = resharding_table(g, states, states);
      std::vector<CostTable> ties;
      for (std::uint32_t k = 0; k < kinds; ++k) ties.push_back(resharding_table(g, states, states));
      const auto edge = [&](std::uint32_t from, std::uint32_t to, const CostTable& costs) {
        problem.edges.push_back({from, to, each, each, states, states, costs});
      };
      for (std::uint32_t l = 0; l < layers; ++l) {
        edge(kinds * l, kinds * l + 1, inside);
        if (l == 0) continue;
        edge(kinds * l - 1, kinds * l, between);
        for (std::uint32_t k = 0; k < kinds; ++k) edge(k, kinds * l + k, ties[k]);
      }
      const CostList truth = brute_force(problem);
      for (const std::size_t table : {std::size_t(1) << 22, std::size_t(states + 1), std::size_t(1)}) {
        SolveOptions options;
        options.max_table = table;
        options.direct_terms = 0;
        const auto answer = Solver().solve(problem, options, context(2));
        QVERIFY(answer.has_value());
        QVERIFY2(broken(problem, *answer).empty(), broken(problem, *answer).c_str());
        QVERIFY2(bound_broken(*answer, truth).empty(), bound_broken(*answer, truth).c_str());
        QVERIFY(table < 100 || answer->exact);
        if (answer->exact) QVERIFY(equal_frontiers(costs_of(*answer), truth, false));
        not_exact += !answer->exact;
      }
    }
    QVERIFY2(not_exact > 60, "the too-wide path was hardly taken");
  }

  /// A network of attention-mask kind: every operator hangs on one hub, and on its neighbours.
  void wide_problem_has_a_small_gap() {
    Generator g(11);
    Problem problem;
    const std::uint32_t n = 14;
    for (std::uint32_t i = 0; i < n; ++i) problem.nodes.push_back(layered_node(g, 12));
    for (std::uint32_t i = 1; i < n; ++i)
      for (const std::uint32_t back : {1u, 2u, 4u}) {
        if (back > i) continue;
        problem.edges.push_back(
            {i - back, i, random_classes(g, 12, 6), random_classes(g, 12, 6), 6, 6, resharding_table(g, 6, 6)});
      }
    SolveOptions options;
    const auto exact = Solver().solve(problem, options, context(2));
    QVERIFY(exact.has_value());
    options.max_table = 40;
    const auto wide = Solver().solve(problem, options, context(2));
    QVERIFY(wide.has_value() && !wide->exact);
    QVERIFY(broken(problem, *wide).empty());
    if (exact->exact)
      QVERIFY2(bound_broken(*wide, costs_of(*exact)).empty(), bound_broken(*wide, costs_of(*exact)).c_str());
    QVERIFY2(wide->gap < 0.5, std::to_string(wide->gap).c_str());
  }
};

QTEST_APPLESS_MAIN(SolverTest)
#include "solver_test.moc"
