// SPDX-License-Identifier: Apache-2.0
// Plans that no search would take: any configuration and any memory choice per operator, at random.
#include <QtTest>
#include <random>

#include "core/schedule/plan_schedule.h"
#include "plan/hand_plan.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({std::abs(a), std::abs(b), 1e-12}); }

/// Another way to update and to keep, for every operator; what that costs is asked of the cost model.
void choose_at_random(const Scenario& scenario, Plan& plan, std::mt19937_64& random) {
  const TensorUses uses = analyse_tensor_uses(*scenario.model);
  const ReshardingModel resharding(plan.mesh, CollectiveModel(*scenario.cluster, scenario.settings.factors), 1e12);
  const OperatorCostModel costs(scenario, uses, resharding);
  const std::uint32_t all = (1u << plan.mesh.count()) - 1;
  for (PlanOperator& op : plan.operators) {
    auto choices = enumerate_choices(sharing_groups(plan.mesh, all, all), {true, true, false});
    MemoryChoice stage_one{Update::sharded_state, all, false, false};
    choices.push_back(stage_one);
    CostBreakdown before = costs.cost(op.op, op.split, {}).breakdown;
    const std::int64_t kept = op.cost[MemoryPart::activations] - before[MemoryPart::activations];
    op.choice = choices[random() % choices.size()];
    auto cost = costs.cost(op.op, op.split, op.choice, true);
    op.cost = cost.breakdown;
    op.cost[MemoryPart::activations] += kept;
    op.parameters = std::move(cost.parameters);
  }
  plan.cost = {};
  for (const auto& op : plan.operators) plan.cost += op.cost;
  for (const auto& reshard : plan.reshards) plan.cost += reshard.cost;
}

/// A table that the last product shares with the embedding; what the product makes is not the network's result.
ModelPtr shared_table() {
  ModelBuilder b("shared table", "test", 16, 8);
  const TensorId tokens = b.input("tokens", {16, 8}, {DimName::batch, DimName::sequence}, ElementType::i64);
  const TensorId table = b.parameter("table", {64, 32}, {DimName::vocabulary, DimName::channel});
  TensorId x = b.embedding("embed", table, tokens);
  x = b.linear("head", x, b.tied_parameter("table_out", table, {64, 32}), {}, true, DimName::vocabulary);
  const std::array one{x};
  return finished(b, b.elementwise("act", "Relu", one));
}

/// By item: whether it ends before the given one may start.
std::vector<char> waited_for(const LaneItems& items, std::uint32_t item) {
  std::vector<char> waited(items.size(), 0);
  waited[item] = 1;
  for (std::uint32_t i = item + 1; i-- > 0;)
    for (std::uint32_t w = items.wait_begin[i]; waited[i] && w < items.wait_begin[i + 1]; ++w)
      waited[items.wait_for[w]] = 1;
  return waited;
}

}  // namespace

class PlanScheduleRandomTest : public QObject {
  Q_OBJECT
 private slots:
  void any_plan();
  void what_runs_again_waits_for_a_shared_table();
};

void PlanScheduleRandomTest::any_plan() {
  int plans = 0, exact = 0;
  for (const auto& model : {test::mlp(), test::convolution()})
    for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x4", "a100-80gb-3x2"}) {
      const auto scenario = test::scenario_on(model, hardware);
      QVERIFY(scenario);
      const PlanLowering lowering(*scenario);
      for (std::uint64_t seed = 0; seed < 150; ++seed) {
        std::mt19937_64 random(seed);
        Plan plan = hand_plan(*scenario, seed);
        choose_at_random(*scenario, plan, random);
        const auto lowered = lowering.lower(plan);
        QVERIFY2(lowered.has_value(), lowered ? "" : lowered.error().message().c_str());
        const LaneTimes times = run_lanes(lowered->items);
        double compute = 0, network = 0;
        for (std::size_t i = 0; i < lowered->items.size(); ++i)
          (lowered->items.lane[i] == 0 ? compute : network) += lowered->items.duration_s[i];
        QVERIFY(close(compute, plan.cost.compute_s()) && close(network, plan.cost.network_s()));
        QVERIFY(times.makespan_s <= plan.cost.time_s() * (1 + 1e-12));
        QVERIFY(times.makespan_s >= std::max(compute, network) * (1 - 1e-12));
        const auto memory = memory_over_time(lowered->buffers, times, lowered->persistent(), true)[0];
        const QString slow = compare_with_slow(*lowered, times, memory);
        QVERIFY2(slow.isEmpty(), qPrintable(slow));
        std::int64_t counted = lowered->roles[0].persistent_bytes;
        for (std::size_t b = 0; b < lowered->buffers.size(); ++b)
          if (lowered->counted[b]) counted += lowered->buffers.bytes[b];
        QVERIFY2(counted <= plan.cost.memory_bytes(), qPrintable(QString("%1 seed %2: %3, additive %4")
                                                                     .arg(hardware)
                                                                     .arg(seed)
                                                                     .arg(counted)
                                                                     .arg(plan.cost.memory_bytes())));
        ++plans;
        exact += counted == plan.cost.memory_bytes();
      }
    }
  qInfo("%d plans, %d of which count as the additive accounting does", plans, exact);
  QVERIFY(exact > plans / 2);
}

/// It reads what its backward reads of the table, gathered once for both.
void PlanScheduleRandomTest::what_runs_again_waits_for_a_shared_table() {
  const auto scenario = test::scenario_on(shared_table(), "v100-16gb-1x4");
  QVERIFY(scenario);
  const PlanLowering lowering(*scenario);
  const auto find = [&](const char* name) {
    for (std::size_t i = 0; i < scenario->model->operators.size(); ++i)
      if (scenario->model->operators[OperatorId(i)].name == name) return i;
    return scenario->model->operators.size();
  };
  const std::size_t embed = find("embed"), head = find("head");
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    Plan plan = hand_plan(*scenario, seed);
    choose_at_random(*scenario, plan, random);
    if (plan.operators[embed].choice.update != Update::sharded_weights) continue;
    plan.operators[head].choice.recompute = true;
    plan.operators[head].cost[ComputePart::recompute] = plan.operators[head].cost[ComputePart::forward];
    const auto lowered = lowering.lower(plan);
    QVERIFY2(lowered.has_value(), lowered ? "" : lowered.error().message().c_str());
    std::vector<char> again, backward;
    for (std::uint32_t i = 0; i < lowered->tasks.size(); ++i) {
      if (lowered->tasks[i].op.index != head) continue;
      if (lowered->tasks[i].kind == PlanTaskKind::again) again = waited_for(lowered->items, i);
      if (lowered->tasks[i].kind == PlanTaskKind::backward) backward = waited_for(lowered->items, i);
    }
    if (again.empty() || backward.empty()) continue;
    for (std::uint32_t i = 0; i < lowered->tasks.size(); ++i)
      if (lowered->tasks[i].kind == PlanTaskKind::weights && lowered->tasks[i].op.index == embed && backward[i]) {
        QVERIFY(again[i]);
        ++seen;
      }
  }
  QVERIFY(seen > 20);
}

QTEST_APPLESS_MAIN(PlanScheduleRandomTest)
#include "plan_schedule_random_test.moc"
