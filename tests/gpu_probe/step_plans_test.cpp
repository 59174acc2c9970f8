// SPDX-License-Identifier: Apache-2.0
// Plans of every method and plans by chance, on 1, 2, 3, 4 and 8 ranks: the partitioned step computes what the
// unpartitioned one computes, sends what the plan says and holds what the plan says.
#include <QtTest>
#include <random>
#include <set>

#include "core/plan/evaluator.h"
#include "core/search/frontier_tracking/plans.h"
#include "core/search/registry.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_of(const ModelPtr& model, const std::string& hardware, bool half = false) {
  auto cluster = cluster_preset(hardware);
  if (!model || !cluster) qFatal("no such model or hardware");
  Settings settings;
  settings.batch = model->batch;
  if (half) settings.precision = Precision::bf16, settings.optimizer = Optimizer::momentum;
  settings.loss = LossPrecision::as_activations;  // as the probe's kernels have it
  auto scenario = make_scenario(model, *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

void report(const test::StepStatistics& s) {
  qInfo(
      "%d plans, %d collectives, %.0f bytes, %d reruns, %d idle repeats, largest difference %.1e; %.0f bytes inside "
      "operators; peak up to %.1f x the plan's memory",
      s.plans, s.collectives, s.planned_bytes, s.reruns, s.idle_repeats, s.worst, s.inside_bytes, s.most_momentary);
}

/// Of four points of the frontier.
std::string frontier_fault(const ModelPtr& model, const std::string& hardware, test::StepStatistics& statistics) {
  const auto scenario = scenario_of(model, hardware);
  const auto result = (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(scenario, SearchPass::exact, {});
  if (!result) return result.error().message();
  const std::size_t count = (*result)->points.size(), step = std::max<std::size_t>(1, count / 3);
  for (std::size_t p = 0; p < count; p += step) {
    const std::string fault = test::step_fault(*scenario, (*result)->plans->sharding(p), &statistics);
    if (!fault.empty()) return hardware + ", point " + std::to_string(p) + ": " + fault;
  }
  return {};
}

}  // namespace

class StepPlansTest : public QObject {
  Q_OBJECT

  static void each_model() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  static ModelPtr model_of(int i) { return test::step_models()[std::size_t(i)].make(); }

 private slots:
  void the_frontier_data() { each_model(); }
  void the_frontier() {
    QFETCH(int, model);
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2", "v100-16gb-1x8"}) {
      const std::string fault = frontier_fault(model_of(model), hardware, statistics);
      QVERIFY2(fault.empty(), fault.c_str());
    }
    report(statistics);
  }

  /// Softmax takes off what a bias adds to all keys: the bias has the gradient 0, of which rounding leaves something.
  void gradients_that_are_nothing() {
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-2x2"}) {
      const std::string fault = frontier_fault(test::open_attention(false, true), hardware, statistics);
      QVERIFY2(fault.empty(), fault.c_str());
    }
    report(statistics);
  }

  void other_methods_data() { each_model(); }
  void other_methods() {
    QFETCH(int, model);
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-2x2", "v100-16gb-2x4"}) {
      const auto scenario = scenario_of(model_of(model), hardware);
      for (const char* name : {"data-parallel", "fsdp", "megatron", "mesh-tensorflow", "tofu", "optcnn"}) {
        const auto method = find_method(name);
        QVERIFY2(method.has_value(), name);
        if (!refusal_of(**method, {}, *scenario).empty()) continue;
        const auto result = (*make_searcher(**method))->run(scenario, SearchPass::exact, {});
        if (!result) {
          qInfo("%s on %s: %s", name, hardware, result.error().message().c_str());
          continue;
        }
        if ((*result)->points.empty() || !(*result)->plans) continue;
        for (const std::size_t p : {std::size_t(0), (*result)->points.size() - 1}) {
          const Plan plan = (*result)->plans->sharding(p);
          if (plan.pipeline) continue;
          const std::string fault = test::step_fault(*scenario, plan, &statistics);
          QVERIFY2(fault.empty(), (std::string(name) + " on " + hardware + ": " + fault).c_str());
          if ((*result)->points.size() == 1) break;
        }
      }
    }
    report(statistics);
  }

  /// Trees of NCCL, direct exchanges of RCCL and the two phases of a torus, as the plans of their hardware name them.
  void ways_of_other_libraries() {
    test::StepStatistics statistics;
    std::set<Algorithm> seen;
    for (const char* hardware : {"h100-80gb-2x2", "v100-16gb-4x2", "mi300x-192gb-1x4", "tpu-v4-2x4"})
      for (int model = 0; model < 3; ++model) {
        const auto scenario = scenario_of(model_of(model), hardware);
        for (const char* name : {"data-parallel", "fsdp"}) {
          const auto result = (*make_searcher(**find_method(name)))->run(scenario, SearchPass::exact, {});
          QVERIFY2(result.has_value(), hardware);
          const Plan plan = (*result)->plans->sharding(0);
          for (const PlanOperator& op : plan.operators)
            for (const ReshardStep& step : all_steps(op.parameters)) seen.insert(step.algorithm);
          const std::string fault = test::step_fault(*scenario, plan, &statistics);
          QVERIFY2(fault.empty(), (std::string(name) + " on " + hardware + ": " + fault).c_str());
        }
      }
    for (const Algorithm algorithm : {Algorithm::tree, Algorithm::one_shot, Algorithm::two_phase})
      QVERIFY2(seen.contains(algorithm), to_string(algorithm));
    report(statistics);
  }

  void by_chance_data() { each_model(); }
  /// Any legal configuration, layout, copy and memory choice, none of them chosen for being good.
  void by_chance() {
    QFETCH(int, model);
    test::StepStatistics statistics;
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 11);
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2", "v100-16gb-2x3", "v100-16gb-2x4"}) {
      // Bytes are counted for 16 bits on one of them.
      const auto scenario = scenario_of(model_of(model), hardware, hardware == std::string("v100-16gb-2x3"));
      const auto structure = search::build_structure(*scenario, {}, {});
      QVERIFY(structure.has_value());
      const auto prices = std::make_shared<const search::Prices>(scenario, *structure);
      ThreadPool pool(1);
      const auto priced = search::price_problem(*prices, pool, {});
      QVERIFY(priced.has_value());
      const auto& problem = priced->problem;
      for (int trial = 0; trial < 5; ++trial) {
        frontier::Point point;
        bool possible = true;
        for (const auto& node : problem.nodes) {
          point.configs.push_back(static_cast<std::uint32_t>(random() % node.costs.size()));
          const auto alternatives = node.costs[point.configs.back()].size();
          point.node_alternatives.push_back(static_cast<std::uint16_t>(random() % alternatives));
        }
        for (const auto& edge : problem.edges) {
          const auto entry = edge.costs[std::size_t(edge.from_class[point.configs[edge.from]]) * edge.columns +
                                        edge.to_class[point.configs[edge.to]]];
          possible = possible && entry.size() > 0;
          if (possible) point.edge_alternatives.push_back(static_cast<std::uint16_t>(random() % entry.size()));
        }
        if (!possible) continue;
        const Plan plan = search::FrontierPlans(prices, {point}).sharding(0);
        const auto cost = evaluate_plan(*scenario, plan);
        QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
        const std::string fault = test::step_fault(*scenario, plan, &statistics);
        QVERIFY2(fault.empty(), (std::string(hardware) + ", trial " + std::to_string(trial) + ": " + fault).c_str());
      }
    }
    report(statistics);
  }
};

QTEST_APPLESS_MAIN(StepPlansTest)
#include "step_plans_test.moc"
