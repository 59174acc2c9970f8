// SPDX-License-Identifier: Apache-2.0
// The search against the independent evaluator, and against exhaustive enumeration of its own choices on tiny models.
#include <QtTest>
#include <cmath>
#include <random>

#include "core/frontier/solver.h"
#include "core/plan/evaluator.h"
#include "core/search/frontier_tracking/plans.h"
#include "core/search/frontier_tracking/search_mesh.h"
#include "core/search/registry.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

using test::scenario_on;

using test::close;

std::vector<std::pair<std::string, ModelPtr>> models() {
  return {{"mlp", test::mlp()},
          {"residual", test::residual()},
          {"attention", test::attention()},
          {"convolution", test::convolution()}};
}

}  // namespace

class FrontierTrackingTest : public QObject {
  Q_OBJECT

 private slots:
  void every_plan_evaluates_to_its_point_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("method");
    const auto all = models();
    for (int m = 0; m < static_cast<int>(all.size()); ++m)
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4", "v100-16gb-2x2", "a100-80gb-2x8", "v100-16gb-1x6",
                                   "v100-16gb-2x2x1@0.3"})
        for (const char* method : {"ft", "data-parallel", "optcnn"})
          QTest::addRow("%s on %s by %s", all[static_cast<std::size_t>(m)].first.c_str(), hardware, method)
              << m << hardware << method;
  }

  void every_plan_evaluates_to_its_point() {
    QFETCH(int, model);
    QFETCH(QString, hardware);
    QFETCH(QString, method);
    const auto all = models();
    QVERIFY(all[static_cast<std::size_t>(model)].second);
    for (const auto accounting : {Accounting::full, Accounting::paper}) {
      const auto scenario =
          scenario_on(all[static_cast<std::size_t>(model)].second, hardware.toStdString(), [&](Settings& s) {
            s.accounting = accounting;
            if (accounting == Accounting::paper) s.precision = Precision::bf16;
            // With attention as one operator.
            if (accounting == Accounting::full && hardware.contains("2x"))
              s.precision = Precision::bf16, s.gradients = Gradients::fp32;
          });
      auto found = find_method(method.toStdString());
      QVERIFY(found.has_value());
      auto result = (*make_searcher(**found))->run(scenario, SearchPass::exact, {});
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      QVERIFY(!(*result)->points.empty());
      if (method != "ft") QCOMPARE((*result)->points.size(), std::size_t(1));
      const std::size_t count = (*result)->points.size(), stride = std::max<std::size_t>(1, count / 40);
      for (std::size_t k = 0; k < count; k += stride) {
        const auto& point = (*result)->points[k];
        const Plan plan = (*result)->plans->sharding(k);
        const auto cost = evaluate_plan(*scenario, plan);
        QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
        QCOMPARE(cost->memory_bytes(), point.memory_bytes);
        QVERIFY2(close(cost->time_s(), point.time_s),
                 qPrintable(QString("%1 %2").arg(cost->time_s()).arg(point.time_s)));
        QVERIFY(close(cost->compute_s(), point.compute_s));
        QVERIFY(std::abs(cost->network_s() - point.network_s) <= 1e-9 * point.time_s);
        for (int part = 0; part < kMemoryParts; ++part)
          QCOMPARE(cost->memory[static_cast<std::size_t>(part)], plan.cost.memory[static_cast<std::size_t>(part)]);
      }
    }
  }

  // Beyond four axes neighbours are searched as one, but plans name real axes and cost what the points say.
  void merged_axes_unroll_to_the_real_mesh() {
    QCOMPARE(search::search_mesh(*scenario_on(test::mlp(), "v100-16gb-2x8")->cluster).count(), 4);
    const auto sizes = [](const Mesh& mesh) {
      std::vector<int> list;
      for (const auto& axis : mesh.axes) list.push_back(axis.level == kInterNode ? -axis.size : axis.size);
      return list;
    };
    const auto cluster = scenario_on(test::mlp(), "v100-16gb-8x8")->cluster;
    QCOMPARE(sizes(search::search_mesh(*cluster)), (std::vector<int>{-4, -2, 4, 2}));
    QCOMPARE(sizes(search::search_mesh(*cluster, search::kFewSearchAxes)), (std::vector<int>{-8, 4, 2}));
    int merged = 0;
    const auto check = [&](const ModelPtr& model, const char* hardware) {
      const auto scenario = scenario_on(model, hardware);
      const auto result =
          (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::coarse, {});
      QVERIFY2(result.has_value(), hardware);
      merged += !(*result)->notes.empty();
      for (std::size_t k = 0; k < (*result)->points.size(); k += 1 + (*result)->points.size() / 4) {
        const Plan plan = (*result)->plans->sharding(k);
        QCOMPARE(plan.mesh.count(), make_mesh(*scenario->cluster).count());
        const auto cost = evaluate_plan(*scenario, plan);
        QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
        QCOMPARE(cost->memory_bytes(), (*result)->points[k].memory_bytes);
        QVERIFY(close(cost->time_s(), (*result)->points[k].time_s));
      }
    };
    for (const char* hardware : {"v100-16gb-8x8", "v100-16gb-6x8", "v100-16gb-4x16"}) {
      check(test::residual(), hardware);
      check(test::mlp(), hardware);
    }
    check(test::attention(), "v100-16gb-4x8");
    check(test::attention(), "v100-16gb-16x16");
    check(test::mlp(), "v100-16gb-64x16");
    QVERIFY(merged >= 2);
  }

  // Who reads "exact" must be told over what: on the whole mesh Mesh-TensorFlow's layouts lie below such a frontier.
  void a_result_says_where_axes_were_merged() {
    for (const char* method : {"ft:micro-batches=1", "optcnn", "ft-published"}) {
      const auto notes_on = [&](const char* hardware) {
        const auto result = test::run(method, scenario_on(test::mlp(), hardware));
        if (!result) qFatal("%s: %s", method, result.error().message().c_str());
        return (*result)->notes;
      };
      QVERIFY2(notes_on("v100-16gb-2x8").empty(), method);
      const auto notes = notes_on("v100-16gb-64x16");
      QVERIFY2(notes.size() == 1, method);
      QVERIFY2(notes.front().find("4 \u00d7 4 \u00d7 4 nodes of 4 \u00d7 2 \u00d7 2 devices") != std::string::npos,
               notes.front().c_str());
    }
    const auto whole = test::run("data-parallel", scenario_on(test::mlp(), "v100-16gb-8x8"));
    QVERIFY(whole.has_value() && (*whole)->notes.empty());
  }

  // Small models are searched over all axes of larger clusters, too: no layouts of the whole mesh lie below.
  void small_models_are_searched_on_the_whole_mesh() {
    for (const char* hardware : {"v100-16gb-4x8", "v100-16gb-8x8"}) {
      const auto scenario = scenario_on(test::mlp(), hardware);
      const auto ft = test::run("ft:micro-batches=1", scenario), mesh = test::run("mesh-tensorflow", scenario);
      QVERIFY(ft.has_value() && mesh.has_value());
      QVERIFY((*ft)->exact && (*ft)->notes.empty());
      for (std::size_t k = 0; k < (*mesh)->points.size(); ++k) {
        const ResultPoint& point = (*mesh)->points[k];
        const bool in_order = test::hands_axes_out_in_order(*scenario->model, (*mesh)->plans->sharding(k));
        double time = std::numeric_limits<double>::infinity();
        for (const ResultPoint& other : (*ft)->points)
          if (other.memory_bytes <= point.memory_bytes) time = std::min(time, other.time_s);
        QVERIFY2(time <= point.time_s * (in_order ? 1 + 1e-12 : 1.1), hardware);
      }
    }
  }

  // Any combination of choices, not only Pareto-optimal ones, must evaluate to what the tables say.
  void random_choices_evaluate_to_their_tables() {
    std::mt19937_64 random(7);
    for (const auto& [name, model] : models()) {
      const auto scenario = scenario_on(model, "v100-16gb-2x4");
      auto structure = search::build_structure(*scenario, {}, {});
      QVERIFY(structure.has_value());
      auto prices = std::make_shared<const search::Prices>(scenario, *structure);
      ThreadPool pool(2);
      const auto priced = search::price_problem(*prices, pool, {});
      QVERIFY(priced.has_value());
      const auto& problem = priced->problem;
      int tried = 0;
      for (int trial = 0; trial < 200; ++trial) {
        frontier::Point point;
        for (const auto& node : problem.nodes)
          point.configs.push_back(static_cast<std::uint32_t>(random() % node.costs.size()));
        for (std::size_t v = 0; v < problem.nodes.size(); ++v)
          point.node_alternatives.push_back(
              static_cast<std::uint16_t>(random() % problem.nodes[v].costs[point.configs[v]].size()));
        bool possible = true;  // one that runs again wants a producer that does
        for (const auto& edge : problem.edges) {
          const auto entry = edge.costs[std::size_t(edge.from_class[point.configs[edge.from]]) * edge.columns +
                                        edge.to_class[point.configs[edge.to]]];
          possible = possible && entry.size() > 0;
          if (possible) point.edge_alternatives.push_back(static_cast<std::uint16_t>(random() % entry.size()));
        }
        if (!possible) continue;
        ++tried;
        const auto expected = frontier::evaluate(problem, point);
        const Plan plan = search::FrontierPlans(prices, {point}).sharding(0);
        const auto cost = evaluate_plan(*scenario, plan);
        QVERIFY2(
            cost.has_value(),
            cost ? ""
                 : qPrintable(
                       QString("%1, trial %2: %3").arg(name.c_str()).arg(trial).arg(cost.error().message().c_str())));
        QVERIFY(close(cost->compute_s(), priced->compute_seconds(**structure, point)));
        QVERIFY2(cost->memory_bytes() == expected.memory && close(cost->time_s(), expected.time),
                 qPrintable(QString("%1, trial %2: %3 B %4 s, tables say %5 B %6 s")
                                .arg(name.c_str())
                                .arg(trial)
                                .arg(cost->memory_bytes())
                                .arg(cost->time_s())
                                .arg(expected.memory)
                                .arg(expected.time)));
      }
      QVERIFY(tried >= 80);
    }
  }

  void methods_stand_where_they_must() {
    for (const auto& [name, model] : models()) {
      const auto scenario = scenario_on(model, "v100-16gb-2x4");
      const auto ft = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, {});
      const auto parallel = (*make_searcher(**find_method("data-parallel")))->run(scenario, SearchPass::exact, {});
      const auto fastest = (*make_searcher(**find_method("optcnn")))->run(scenario, SearchPass::exact, {});
      QVERIFY(ft.has_value() && parallel.has_value() && fastest.has_value());
      QVERIFY((*ft)->exact);
      // Nothing lies below the frontier, and the fastest plan is its end.
      for (const auto& other : {*parallel, *fastest}) {
        const auto& point = other->points.front();
        double best = INFINITY;
        for (const auto& p : (*ft)->points)
          if (p.memory_bytes <= point.memory_bytes) best = std::min(best, p.time_s);
        QVERIFY(best <= point.time_s * (1 + 1e-9));
      }
      QVERIFY(close((*ft)->points.back().time_s, (*fastest)->points.front().time_s));
    }
  }

  void time_never_rises_with_bandwidth() {
    for (const auto& [name, model] : models()) {
      double before = INFINITY;
      for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        const auto scenario =
            scenario_on(model, "v100-16gb-2x4", [&](Settings& s) { s.factors.inter_bandwidth = factor; });
        const auto result =
            (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, {});
        QVERIFY(result.has_value());
        QVERIFY((*result)->points.back().time_s <= before * (1 + 1e-12));
        before = (*result)->points.back().time_s;
      }
    }
  }

  void a_searcher_answers_like_a_fresh_one_after_a_slider_move() {
    const auto model = test::attention();
    auto searcher = std::move(*make_searcher(**find_method("ft"), "micro-batches=1"));
    for (const double factor : {1.0, 0.5, 3.0, 1.0}) {
      const auto scenario =
          scenario_on(model, "v100-16gb-2x4", [&](Settings& s) { s.factors.intra_bandwidth = factor; });
      const auto again = searcher->run(scenario, SearchPass::exact, {});
      const auto fresh = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, {});
      QVERIFY(again.has_value() && fresh.has_value());
      QCOMPARE((*again)->points.size(), (*fresh)->points.size());
      for (std::size_t k = 0; k < (*again)->points.size(); ++k) {
        QCOMPARE((*again)->points[k].memory_bytes, (*fresh)->points[k].memory_bytes);
        QCOMPARE((*again)->points[k].time_s, (*fresh)->points[k].time_s);
      }
    }
  }

  void broken_plans_are_refused() {
    const auto scenario = scenario_on(test::residual(), "v100-16gb-2x4");
    const auto result = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, {});
    QVERIFY(result.has_value());
    const Plan good = (*result)->plans->sharding((*result)->points.size() / 2);
    QVERIFY(evaluate_plan(*scenario, good).has_value());
    Plan missing = good;
    missing.operators.pop_back();
    QVERIFY(!evaluate_plan(*scenario, missing).has_value());
    for (std::size_t r = 0; r < good.reshards.size(); ++r) {
      if (good.reshards[r].forward.empty()) continue;
      Plan lost = good;
      lost.reshards.erase(lost.reshards.begin() + static_cast<std::ptrdiff_t>(r));
      QVERIFY(!evaluate_plan(*scenario, lost).has_value());
    }
    Plan wrong = good;
    wrong.operators[1].split.axis[0] = 99;
    QVERIFY(!evaluate_plan(*scenario, wrong).has_value());
  }

  void a_cancelled_search_says_so() {
    std::stop_source stop;
    stop.request_stop();
    RunContext context;
    context.stop = stop.get_token();
    const auto result = (*make_searcher(**find_method("ft"), "micro-batches=1"))
                            ->run(scenario_on(test::attention(), "v100-16gb-2x8"), SearchPass::exact, context);
    QVERIFY(!result.has_value());
    QCOMPARE(result.error().code, ErrorCode::cancelled);
  }
};

QTEST_APPLESS_MAIN(FrontierTrackingTest)
#include "frontier_tracking_test.moc"
