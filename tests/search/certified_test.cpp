// SPDX-License-Identifier: Apache-2.0
// Networks that defeat exact elimination: the answer is exact or its gap is stated, and what is certified is true. The
// oracle of the tiny versions is another algorithm altogether (the published one, where it needs no heuristic step),
// and enumeration where that is possible.
#include <QtTest>
#include <cmath>
#include <functional>

#include "core/frontier/published.h"
#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/plans.h"
#include "core/search/registry.h"
#include "frontier/problems.h"
#include "search/wide_models.h"

using namespace turnpoint;
using frontier::Answer;
using frontier::CostList;
using frontier::CostPoint;
using frontier::Problem;

namespace {

ScenarioPtr scenario_on(ModelPtr model, const std::string& hardware) {
  auto cluster = cluster_preset(hardware);
  if (!cluster) qFatal("%s", cluster.error().message().c_str());
  Settings settings;
  settings.batch = model->batch;
  auto scenario = make_scenario(std::move(model), *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

Problem problem_on(const ModelPtr& model, const std::string& hardware) {
  const auto scenario = scenario_on(model, hardware);
  const auto structure = search::build_structure(*scenario, {}, {});
  if (!structure) qFatal("%s", structure.error().message().c_str());
  const search::Prices prices(scenario, *structure);
  ThreadPool pool(2);
  auto priced = search::price_problem(prices, pool, {});
  if (!priced) qFatal("%s", priced.error().message().c_str());
  return std::move(priced->problem);
}

RunContext context() {
  RunContext c;
  c.threads = 1;  // small tables: a second thread would wait more than work
  return c;
}

struct Network {
  const char* name;
  std::function<ModelPtr()> large, small, tiny;
};

const std::vector<Network>& networks() {
  using namespace test;
  static const std::vector<Network> kNetworks = {
      {"attention mask", [] { return transformer_layers(4, true, false); },
       [] { return transformer_layers(2, true, false); }, [] { return transformer_layers(1, true, false, 4, 4, 8); }},
      {"tied embeddings", [] { return transformer_layers(6, false, true); },
       [] { return transformer_layers(2, false, true); }, [] { return transformer_layers(1, false, true, 4, 4, 8); }},
      {"U-Net", [] { return u_net(4); }, [] { return u_net(3); }, [] { return u_net(1, 4); }},
      {"DenseNet", [] { return dense_net(6); }, [] { return dense_net(5); }, [] { return dense_net(3, 4); }},
      {"unrolled RNN", [] { return unrolled_rnn(8); }, [] { return unrolled_rnn(6); },
       [] { return unrolled_rnn(3, 4, 8); }},
      {"Mixtral's routing", [] { return routed_experts(4); }, [] { return routed_experts(2); },
       [] { return routed_experts(1, 4, 2); }},
  };
  return kNetworks;
}

/// Whatever certified frontier this answer carries: its lower bound, or itself where it is exact.
CostList floor_of(const Answer& answer) { return answer.exact ? frontier::test::costs_of(answer) : answer.lower_bound; }

/// True if no point of `plans` lies below the staircase `floor`.
bool below(const CostList& floor, const CostList& plans) {
  for (const CostPoint& p : plans)
    if (frontier::time_at(floor, p.memory) > p.time * (1 + 1e-9)) return false;
  return true;
}

/// The largest (T - L) / T at the achieved points and at the steps of the bound between them.
double largest_gap(const CostList& achieved, const CostList& floor) {
  double gap = 0;
  const auto at = [&](std::int64_t memory) {
    const double time = frontier::time_at(achieved, memory), least = frontier::time_at(floor, memory);
    if (std::isfinite(time) && time > 0) gap = std::max(gap, (time - std::min(least, time)) / time);
  };
  for (const CostPoint& p : achieved) at(p.memory);
  for (const CostPoint& p : floor) at(p.memory);
  return gap;
}

/// Everything that must hold of an answer by itself; the empty string if it does.
std::string broken(const Problem& problem, const Answer& answer) {
  const CostList costs = frontier::test::costs_of(answer);
  if (costs.empty() || !frontier::is_frontier(costs)) return "no frontier";
  for (const auto& p : answer.points)
    if (frontier::evaluate(problem, p) != CostPoint{p.memory, p.time})
      return "a point does not re-evaluate to its cost";
  if (!answer.certified) return "not certified";
  if (answer.exact) return answer.gap == 0 ? "" : "exact with a gap";
  if (answer.lower_bound.empty() || !frontier::is_frontier(answer.lower_bound)) return "no lower bound";
  if (!below(answer.lower_bound, costs)) return "a plan lies below the lower bound";
  if (!(answer.gap > 0 && answer.gap < 1)) return "the gap is not stated";
  // The stated gap is what the two curves say.
  if (largest_gap(costs, answer.lower_bound) > answer.gap + 1e-6) return "the stated gap is smaller than the drawn one";
  return {};
}

/// Combinations of configurations and alternatives, or more than `limit`.
double combinations(const Problem& problem, double limit) {
  double count = 1;
  for (const auto& node : problem.nodes) {
    double alternatives = 0;
    for (std::size_t c = 0; c < node.costs.size(); ++c) alternatives += double(node.costs[c].size());
    count *= alternatives;
    if (count > limit) return count;
  }
  for (const auto& edge : problem.edges) {
    std::size_t most = 1;
    for (std::size_t e = 0; e < edge.costs.size(); ++e) most = std::max(most, edge.costs[e].size());
    count *= double(most);
  }
  return count;
}

}  // namespace

class CertifiedTest : public QObject {
  Q_OBJECT

  static void each_network() {
    QTest::addColumn<int>("network");
    for (int i = 0; i < int(networks().size()); ++i) QTest::newRow(networks()[std::size_t(i)].name) << i;
  }

 private slots:
  void exact_or_a_stated_gap_data() { each_network(); }
  /// As the search solves it, and with tables so small that fixing and relaxing variables is the only way.
  void exact_or_a_stated_gap() {
    QFETCH(int, network);
    const Network& n = networks()[std::size_t(network)];
    const ModelPtr model = n.small();
    QVERIFY(model);
    for (const char* hardware : {"v100-16gb-2x2"}) {
      const Problem problem = problem_on(model, hardware);
      const auto free = frontier::Solver().solve(problem, {}, context());
      QVERIFY2(free.has_value(), free ? "" : free.error().message().c_str());
      QVERIFY2(broken(problem, *free).empty(), broken(problem, *free).c_str());
      const CostList achieved = frontier::test::costs_of(*free);
      qInfo("%s on %s: %zu operators and hubs, %s, gap %.4f %%, %zu points", n.name, hardware, problem.nodes.size(),
            free->exact ? "exact" : "not exact", 100 * free->gap, achieved.size());
      // Narrow, narrower: the certificate must stay true however little is allowed.
      for (const std::size_t table : {std::size_t(400), std::size_t(40)}) {
        frontier::SolveOptions options;
        options.max_table = table;
        const auto narrow = frontier::Solver().solve(problem, options, context());
        QVERIFY2(narrow.has_value(), narrow ? "" : narrow.error().message().c_str());
        QVERIFY2(broken(problem, *narrow).empty(), broken(problem, *narrow).c_str());
        QVERIFY(below(floor_of(*narrow), achieved));
        QVERIFY(below(floor_of(*free), frontier::test::costs_of(*narrow)));
        qInfo("  tables up to %zu: %s, gap %.4f %%", table, narrow->exact ? "exact" : "not exact", 100 * narrow->gap);
      }
    }
  }

  void deeper_ones_through_the_search_data() { each_network(); }
  void deeper_ones_through_the_search() {
    QFETCH(int, network);
    const Network& n = networks()[std::size_t(network)];
    for (const char* method : {"ft", "data-parallel"}) {
      const auto scenario = scenario_on(n.large(), "v100-16gb-2x2");
      const auto searcher = make_searcher(**find_method(method), "micro-batches=1");
      const auto result = (*searcher)->run(scenario, SearchPass::exact, context());
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      const Result& r = **result;
      QVERIFY(r.gap.has_value());
      QCOMPARE(r.exact, *r.gap == 0);
      QVERIFY(*r.gap >= 0 && *r.gap < 1);
      qInfo("%s by %s: %s, gap %.4f %%, %zu points, %.2f s", n.name, method, r.exact ? "exact" : "not exact",
            100 * *r.gap, r.points.size(), r.search_s);
    }
  }

  void published_plans_lie_above_the_bound_data() { each_network(); }
  void published_plans_lie_above_the_bound() {
    QFETCH(int, network);
    const Network& n = networks()[std::size_t(network)];
    const auto scenario = scenario_on(n.small(), "v100-16gb-1x2");
    const auto ft =
        (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, context());
    QVERIFY2(ft.has_value(), ft ? "" : ft.error().message().c_str());
    QVERIFY((*ft)->gap.has_value());
    const auto published =
        (*make_searcher(**find_method("ft-published"), "time-limit=0"))->run(scenario, SearchPass::exact, context());
    QVERIFY2(published.has_value(), published ? "" : published.error().message().c_str());
    QVERIFY((*published)->heuristic_eliminations.has_value());
    QCOMPARE((*published)->exact, *(*published)->heuristic_eliminations == 0);
    QCOMPARE((*published)->gap.has_value(), (*published)->exact);
    const auto curve = [](const Result& result) {
      CostList list;
      for (const auto& p : result.points) list.push_back({p.memory_bytes, p.time_s});
      return list;
    };
    QVERIFY(below((*ft)->exact ? curve(**ft) : (*ft)->lower_bound, curve(**published)));
    if ((*published)->exact && (*ft)->exact)
      QVERIFY(frontier::test::equal_frontiers(curve(**published), curve(**ft), false));

    // More devices, and so few pairs allowed in a branch merge that configurations have to be fixed.
    const Problem problem = problem_on(n.tiny(), "v100-16gb-2x2");
    const auto certified = frontier::Solver().solve(problem, {}, context());
    QVERIFY2(certified.has_value(), certified ? "" : certified.error().message().c_str());
    for (const auto heuristic : {frontier::PublishedHeuristic::weighted, frontier::PublishedHeuristic::least_memory}) {
      frontier::PublishedOptions options;
      options.heuristic = heuristic;
      options.max_merged_configs = 6;
      const auto answer = frontier::solve_published(problem, options, context());
      QVERIFY2(answer.has_value(), answer ? "" : answer.error().message().c_str());
      const CostList plans = frontier::test::costs_of(*answer);
      QVERIFY(below(floor_of(*certified), plans));
      for (const auto& p : answer->points) QVERIFY((frontier::evaluate(problem, p) == CostPoint{p.memory, p.time}));
      qInfo("%s, %s: %u heuristic eliminations cost up to %.2f %% of time", n.name,
            heuristic == frontier::PublishedHeuristic::weighted ? "weighted" : "least memory",
            *answer->heuristic_eliminations, 100 * largest_gap(plans, floor_of(*certified)));
    }
  }

  void tiny_versions_hold_against_the_truth_data() { each_network(); }
  void tiny_versions_hold_against_the_truth() {
    QFETCH(int, network);
    const Network& n = networks()[std::size_t(network)];
    const Problem problem = problem_on(n.tiny(), "v100-16gb-1x2");
    frontier::PublishedOptions published;
    published.max_merged_configs = std::size_t(1) << 20;
    const auto oracle = frontier::solve_published(problem, published, context());
    QVERIFY2(oracle.has_value(), oracle ? "" : oracle.error().message().c_str());
    QVERIFY2(oracle->exact, "the oracle needed a heuristic step");
    const CostList truth = frontier::test::costs_of(*oracle);
    const double choices = combinations(problem, 3e7);
    if (choices <= 3e7) QVERIFY(frontier::test::equal_frontiers(frontier::test::brute_force(problem), truth, false));
    int not_exact = 0;
    double worst = 0;
    for (const std::size_t table : {std::size_t(1) << 22, std::size_t(30), std::size_t(12), std::size_t(6)}) {
      frontier::SolveOptions options;
      options.max_table = table;
      const auto answer = frontier::Solver().solve(problem, options, context());
      QVERIFY2(answer.has_value(), answer ? "" : answer.error().message().c_str());
      QVERIFY2(broken(problem, *answer).empty(), broken(problem, *answer).c_str());
      const CostList achieved = frontier::test::costs_of(*answer);
      QVERIFY(below(floor_of(*answer), truth));  // no plan lies below what is certified
      QVERIFY(below(truth, achieved));           // and none that is drawn is impossible
      if (answer->exact) QVERIFY(frontier::test::equal_frontiers(achieved, truth, false));
      // At every memory value from the least achieved on, the truth is within the stated gap.
      QVERIFY(largest_gap(achieved, truth) <= answer->gap + 1e-9);
      not_exact += !answer->exact;
      worst = std::max(worst, answer->gap);
    }
    qInfo("%s: %zu points, %d of 4 runs not exact, largest gap %.3f %%%s", n.name, truth.size(), not_exact, 100 * worst,
          choices <= 3e7 ? ", enumerated" : "");
  }
};

QTEST_APPLESS_MAIN(CertifiedTest)
#include "certified_test.moc"
