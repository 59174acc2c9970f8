// SPDX-License-Identifier: Apache-2.0
// The published algorithms against the worked examples, brute force and the engine.
#include "core/frontier/published.h"

#include <QTest>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/frontier/solver.h"
#include "frontier/benchmark_chain.h"
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

constexpr PublishedAlgorithm kBoth[] = {PublishedAlgorithm::dynamic_programme, PublishedAlgorithm::elimination};

RunContext context(int threads = 1) {
  RunContext c;
  c.threads = threads;
  return c;
}

Expected<Answer> published(const Problem& problem, PublishedAlgorithm algorithm, PublishedReport* report = nullptr,
                           std::size_t max_merged = 4096) {
  PublishedOptions options;
  options.algorithm = algorithm;
  options.max_merged_configs = max_merged;
  return solve_published(problem, options, context(), report);
}

/// Everything that must hold of an answer whatever the problem; the empty string if it does.
std::string broken(const Problem& problem, const Answer& answer, const CostList& truth, const PublishedReport& report,
                   bool exact_times) {
  const CostList costs = costs_of(answer);
  if (costs.empty()) return "no points";
  if (!is_frontier(costs)) return "memory does not rise or time does not fall";
  for (const Point& p : answer.points)
    if (evaluate(problem, p) != CostPoint{p.memory, p.time}) return "a point does not re-evaluate to its cost";
  // Plans are costed anew, so the tables' own sums have to be looked at apart.
  for (const Point& p : answer.points)
    if (std::none_of(report.tuples.begin(), report.tuples.end(), [&](const CostPoint& t) {
          return t.memory == p.memory && std::abs(t.time - p.time) <= 1e-12 * p.time;
        }))
      return "a plan does not cost what its tuple says";
  for (const CostPoint& t : report.tuples)
    if (time_at(costs, t.memory) > t.time * (1 + 1e-12)) return "a tuple has no plan";
  if (answer.exact != (report.heuristics == 0)) return "exactness does not follow from the heuristic steps";
  if (answer.certified != answer.exact) return "certified without a proof";
  if (answer.heuristic_eliminations != report.heuristics) return "the answer does not count the heuristic steps";
  for (const CostPoint& p : costs)
    if (time_at(truth, p.memory) > p.time * (1 + 1e-9)) return "a point lies below the true frontier";
  if (answer.exact && !equal_frontiers(costs, truth, exact_times)) return "wrong frontier";
  return {};
}

/// A mask read by every operator of a chain, as attention masks are: node 0 the chain's start, the last one the mask.
Problem masked_chain(std::uint64_t seed, std::uint32_t n, std::uint32_t configs, std::uint32_t layouts) {
  Problem problem = layered_chain(seed, n, configs, layouts);
  Generator g(seed + 1000);
  const auto mask = static_cast<std::uint32_t>(problem.nodes.size());
  problem.nodes.push_back(layered_node(g, configs));
  for (std::uint32_t i = 1; i < n; i += 2)
    problem.edges.push_back({mask, i, random_classes(g, configs, layouts), random_classes(g, configs, layouts), layouts,
                             layouts, resharding_table(g, layouts, layouts)});
  return problem;
}

}  // namespace

class PublishedTest : public QObject {
  Q_OBJECT

 private slots:
  void worked_chain() {
    const std::vector<std::vector<std::uint32_t>> configs{{1, 1, 1}, {0, 1, 1}, {1, 1, 0}, {0, 1, 0}, {0, 0, 0}};
    for (const auto algorithm : kBoth) {
      PublishedReport report;
      const auto answer = published(f2_chain(), algorithm, &report);
      QVERIFY(answer.has_value() && answer->exact && answer->certified);
      QVERIFY(costs_of(*answer) == (CostList{{6, 16}, {8, 14}, {10, 13}, {12, 11}, {15, 6}}));
      for (std::size_t i = 0; i < 5; ++i) QVERIFY(answer->points[i].configs == configs[i]);
      const bool chain = algorithm == PublishedAlgorithm::dynamic_programme;
      QCOMPARE(report.chain, std::size_t(chain ? 3 : 2));
      QCOMPARE(report.nodes, std::size_t(chain ? 0 : 1));
    }
  }

  void worked_diamond() {
    const std::vector<std::vector<std::uint32_t>> configs{{0, 0, 0, 0}, {1, 0, 1, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    for (const auto algorithm : kBoth) {
      PublishedReport report;
      const auto answer = published(f3_diamond(), algorithm, &report);
      QVERIFY(answer.has_value() && answer->exact);
      QVERIFY(costs_of(*answer) == (CostList{{6, 14}, {9, 12}, {11, 10}, {12, 6}}));
      for (std::size_t i = 0; i < 4; ++i) QVERIFY(answer->points[i].configs == configs[i]);
      // Node, node, edge.
      QCOMPARE(report.nodes, std::size_t(2));
      QCOMPARE(report.edges, std::size_t(1));
      QCOMPARE(report.branches + report.folds + report.heuristics, std::size_t(0));
    }
  }

  void random_problems_data() {
    QTest::addColumn<int>("kind");
    const char* names[] = {"chain", "tree", "diamonds", "ladder", "clique", "components", "random", "cycle", "star"};
    for (int k = 0; k < 9; ++k) QTest::newRow(names[k]) << k;
  }

  /// All shapes against brute force; with branch merges, and with so few pairs allowed that heuristic steps are needed.
  void random_problems() {
    QFETCH(int, kind);
    std::size_t feasible = 0, exact = 0, inexact = 0, lost = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const std::uint64_t seed = i * 16 + static_cast<std::uint64_t>(kind) + 70000;
      Generator g(seed ^ 0x5eed);
      ProblemShape shape;
      shape.integer_times = g.chance(0.5);
      shape.large_memory = g.chance(0.3);
      shape.forbidden = g.chance(0.5) ? 0 : 0.15;
      shape.max_alternatives = kind == 4 ? 1 : g.number(1, 2);
      const std::uint32_t n = kind == 4 ? g.number(1, 5) : i % 4 == 0 ? 7 : g.number(1, 6);
      if (n == 7) shape.max_alternatives = 1;
      const Problem problem = random_problem(seed, n, shape, static_cast<std::uint32_t>(kind));
      const CostList truth = brute_force(problem);
      feasible += !truth.empty();
      for (const auto algorithm : kBoth)
        for (const std::size_t merged : {std::size_t(4096), std::size_t(1)}) {
          PublishedReport report;
          const auto answer = published(problem, algorithm, &report, merged);
          const std::string where = "seed " + std::to_string(seed) + ", merged " + std::to_string(merged) + ": ";
          if (merged == 4096) QVERIFY2(report.heuristics == 0, where.c_str());
          if (truth.empty() || !answer) {
            QVERIFY2(!answer && answer.error().code == ErrorCode::infeasible, where.c_str());
            QVERIFY2(truth.empty() || report.heuristics > 0, (where + answer.error().message()).c_str());
            lost += !truth.empty();
            continue;
          }
          const std::string why = broken(problem, *answer, truth, report, shape.integer_times);
          QVERIFY2(why.empty(), (where + why).c_str());
          ++(answer->exact ? exact : inexact);
        }
    }
    QVERIFY(feasible > 120);
    QVERIFY(exact > 2 * feasible);
    if (kind == 3 || kind == 4) QVERIFY2(inexact > 50, "the heuristic was hardly used");
    QVERIFY2(lost * 20 < feasible, "heuristic steps lost too many solutions");
  }

  /// Every kind of elimination is exercised, and no branch is merged across a detour (that would make a cycle).
  void all_eliminations_are_used() {
    PublishedReport sum;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      PublishedReport report;
      ProblemShape shape;
      shape.forbidden = 0;
      shape.max_alternatives = 1;
      const Problem problem = random_problem(seed + 5000, 6, shape, 3 + seed % 4);
      const auto answer = published(problem, kBoth[seed % 2], &report, seed % 3 ? 4096 : 4);
      QVERIFY(answer.has_value());
      sum.nodes += report.nodes, sum.edges += report.edges, sum.branches += report.branches;
      sum.folds += report.folds, sum.heuristics += report.heuristics;
    }
    QVERIFY(sum.nodes > 50 && sum.edges > 50 && sum.branches > 50 && sum.folds > 50 && sum.heuristics > 10);
  }

  /// Where no heuristic step is needed all three agree on problems too large for brute force; where one is, the exact
  /// frontier dominates.
  void agrees_with_the_engine() {
    std::size_t exact = 0, inexact = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem problem = seed % 4 == 0   ? layered_chain(seed, 14, 24, 6)
                              : seed % 4 == 1 ? residual_blocks(seed, 4, 2, 12, 6, 5, 1 + seed % 3, false)
                              : seed % 4 == 2 ? residual_blocks(seed, 3, 2, 10, 5, 4, 2, true)
                                              : masked_chain(seed, 8, 9, 4);
      const auto truth = Solver().solve(problem, {}, context(2));
      QVERIFY(truth.has_value() && truth->exact);
      for (const auto algorithm : kBoth)
        for (const std::size_t merged : {std::size_t(4096), std::size_t(60)}) {
          PublishedReport report;
          const auto answer = published(problem, algorithm, &report, merged);
          QVERIFY2(answer.has_value(), answer ? "" : answer.error().message().c_str());
          const std::string why = broken(problem, *answer, costs_of(*truth), report, false);
          QVERIFY2(why.empty(), ("seed " + std::to_string(seed) + ": " + why).c_str());
          ++(answer->exact ? exact : inexact);
        }
    }
    QVERIFY(exact >= 30 && inexact >= 3);
  }

  /// Tuples that are dropped before they are sorted would not have been kept: the same tables, plan by plan.
  void dropping_early_changes_nothing() {
    for (const PublishedAlgorithm algorithm : kBoth) {
      const Problem problem = benchmark_chain(3, 14, 30, 6);
      PublishedOptions options;
      options.algorithm = algorithm;
      PublishedReport plain_report, early_report;
      const auto plain = solve_published(problem, options, {}, &plain_report);
      options.drop_early = true;
      const auto early = solve_published(problem, options, {}, &early_report);
      QVERIFY(plain && early);
      QCOMPARE(early_report.products, plain_report.products);
      QVERIFY(early_report.step_kept == plain_report.step_kept);
      QCOMPARE(early->points.size(), plain->points.size());
      for (std::size_t i = 0; i < plain->points.size(); ++i) {
        QCOMPARE(early->points[i].memory, plain->points[i].memory);
        QCOMPARE(early->points[i].time, plain->points[i].time);
        QVERIFY(early->points[i].configs == plain->points[i].configs);
      }
    }
  }

  /// The whole chain is the spine, and the dynamic programme costs K^2 a step where elimination costs K^3.
  void chains_are_spines() {
    const Problem problem = layered_chain(3, 12, 20, 5);
    PublishedReport chain, pairs;
    QVERIFY(published(problem, kBoth[0], &chain).has_value());
    QVERIFY(published(problem, kBoth[1], &pairs).has_value());
    QCOMPARE(chain.chain, std::size_t(12));
    QCOMPARE(chain.nodes + chain.folds, std::size_t(0));
    QCOMPARE(pairs.chain, std::size_t(2));
    QCOMPARE(pairs.nodes, std::size_t(10));
    QVERIFY(pairs.products > 5 * chain.products);
    // The first step has one tuple per configuration, the second K x K times the choices of an edge.
    QCOMPARE(chain.step_products[0], 20.0);
    QVERIFY(chain.step_products[1] >= 400 && chain.step_products[1] <= 800);
    double sum = 0;
    for (const double products : chain.step_products) sum += products;
    QVERIFY(sum <= chain.products);
  }

  void same_answer_on_any_number_of_threads() {
    for (const Problem& problem : {layered_chain(3, 16, 30, 8), masked_chain(4, 8, 10, 4)})
      for (const auto algorithm : kBoth) {
        PublishedOptions options;
        options.algorithm = algorithm;
        options.max_merged_configs = 50;
        const auto one = solve_published(problem, options, context(1));
        QVERIFY(one.has_value());
        for (const int threads : {2, 7}) {
          const auto many = solve_published(problem, options, context(threads));
          QVERIFY(many.has_value());
          QCOMPARE(many->points.size(), one->points.size());
          for (std::size_t i = 0; i < one->points.size(); ++i) {
            QVERIFY(many->points[i].memory == one->points[i].memory && many->points[i].time == one->points[i].time);
            QVERIFY(many->points[i].configs == one->points[i].configs);
            QVERIFY(many->points[i].edge_alternatives == one->points[i].edge_alternatives);
          }
        }
      }
  }

  void limits_are_said() {
    const Problem problem = layered_chain(1, 200, 100, 20);
    for (const auto algorithm : kBoth) {
      PublishedOptions options;
      options.algorithm = algorithm;
      options.time_limit_s = 0.3;
      PublishedReport report;
      const auto late = solve_published(problem, options, context(2), &report);
      QVERIFY(!late && late.error().code == ErrorCode::infeasible);
      QVERIFY2(late.error().what.find("time limit of 0.3 s") != std::string::npos, late.error().what.c_str());
      QVERIFY(report.products > 1e5 && report.seconds >= 0.3 && report.seconds < 0.3 + 5 * kSlow);
      options.time_limit_s = 0;
      options.max_bytes = std::size_t(4) << 20;
      const auto large = solve_published(problem, options, context(2));
      QVERIFY(!large && large.error().code == ErrorCode::infeasible);
      QVERIFY2(large.error().what.find("more than 4 MiB") != std::string::npos, large.error().what.c_str());
    }
  }

  void cancels_within_100_ms() {
    const Problem problem = layered_chain(1, 200, 150, 30);
    for (const auto algorithm : kBoth)
      for (const int delay_ms : {0, 50, 400, 1500}) {
        std::stop_source source;
        RunContext c = context(2);
        c.stop = source.get_token();
        std::clock_t cpu_asked = 0;
        std::jthread stopper([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
          cpu_asked = std::clock();
          source.request_stop();
        });
        PublishedOptions options;
        options.algorithm = algorithm;
        const auto answer = solve_published(problem, options, c);
        const std::clock_t cpu_ended = std::clock();
        stopper.join();
        QVERIFY(!answer && answer.error().code == ErrorCode::cancelled);
        // On a busy machine the clock on the wall says little; the processor time of both threads does.
        const double latency = double(cpu_ended - cpu_asked) / CLOCKS_PER_SEC;
        QVERIFY2(latency < 0.2 * kSlow, ("cancelled after " + std::to_string(latency) + " s").c_str());
      }
  }

  void reports_progress() {
    std::set<std::string> phases;
    std::mutex mutex;
    double last = -1;
    RunContext c = context(2);
    c.progress = [&](const Progress& p) {
      const std::lock_guard lock(mutex);
      phases.insert(p.phase);
      QVERIFY(p.fraction >= 0 && p.fraction <= 1 + 1e-12);
      if (p.phase == "published dynamic programme") {
        QVERIFY(p.fraction >= last);
        last = p.fraction;
      }
    };
    PublishedOptions options;
    options.time_limit_s = 1;
    QVERIFY(!solve_published(layered_chain(2, 200, 100, 20), options, c));
    QVERIFY(phases.count("published dynamic programme") == 1);
    QVERIFY(last > 0);
  }

  void no_nodes_and_isolated_nodes() {
    for (const auto algorithm : kBoth) {
      const auto none = published({}, algorithm);
      QVERIFY(none.has_value() && none->exact);
      QVERIFY(costs_of(*none) == (CostList{{0, 0}}));
      Problem apart;
      for (int i = 0; i < 3; ++i) {
        Node node;
        node.costs.add(CostPoint{1, 4});
        node.costs.add(CostPoint{3, 2});
        apart.nodes.push_back(node);
      }
      const auto answer = published(apart, algorithm);
      QVERIFY(answer.has_value());
      QVERIFY(costs_of(*answer) == (CostList{{3, 12}, {5, 10}, {7, 8}, {9, 6}}));
    }
  }

  void json_says_what_is_not_certified() {
    Problem problem = masked_chain(2, 6, 6, 3);
    PublishedReport report;
    const auto exact = published(problem, kBoth[0], &report);
    QVERIFY(exact.has_value() && exact->exact);
    const auto certain = write_answer(*exact, 1);
    QVERIFY(certain["gap"] == 0 && certain["heuristic_eliminations"] == 0 && !certain.contains("lower_bound"));
    const auto guessed = published(problem, kBoth[0], &report, 1);
    QVERIFY(guessed.has_value() && !guessed->exact);
    const auto uncertain = write_answer(*guessed, 1);
    QVERIFY(uncertain["exact"] == false && uncertain["gap"].is_null() && !uncertain.contains("lower_bound"));
    QVERIFY(uncertain["heuristic_eliminations"] == report.heuristics && report.heuristics > 0);
    // The engine's answers carry no such key.
    const auto engine = Solver().solve(problem, {}, context());
    QVERIFY(engine.has_value() && !write_answer(*engine, 1).contains("heuristic_eliminations"));
  }
};

QTEST_APPLESS_MAIN(PublishedTest)
#include "published_test.moc"
