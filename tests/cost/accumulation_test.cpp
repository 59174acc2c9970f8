// SPDX-License-Identifier: Apache-2.0
// What a backward pass pays for adding its gradients to those of earlier micro-batches, by hand.
#include <QtTest/QtTest>

#include "core/cost/logical_dims.h"
#include "core/cost/operator_cost.h"
#include "search/scenario_on.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// One machine, every operator whole on each of its devices.
struct Alone {
  ScenarioPtr scenario;
  TensorUses uses;
  Mesh mesh;
  ReshardingModel resharding;

  explicit Alone(const ScenarioPtr& of)
      : scenario(of),
        uses(analyse_tensor_uses(*of->model)),
        mesh(make_mesh(*of->cluster)),
        resharding(mesh, CollectiveModel(*of->cluster, of->settings.factors), 1e12) {}

  CostBreakdown cost(OperatorId id, int micro_batches, const MemoryChoice& choice = {}) const {
    return OperatorCostModel(*scenario, uses, resharding, micro_batches).cost(id, {}, choice).breakdown;
  }
  double more_backward_s(OperatorId id, int micro_batches, const MemoryChoice& choice = {}) const {
    return cost(id, micro_batches, choice)[ComputePart::backward] - cost(id, 1, choice)[ComputePart::backward];
  }
  double elements(OperatorId id) const {
    double all = 0;
    const Operator& op = scenario->model->operators[id];
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (uses.owns_parameter[id.index][k])
        all += static_cast<double>(scenario->model->tensors[op.inputs[k].tensor].elements());
    return all;
  }
  double parameters(OperatorId id) const {
    const auto& owned = uses.owns_parameter[id.index];
    return static_cast<double>(std::count(owned.begin(), owned.end(), true));
  }
  double bandwidth() const {
    return scenario->cluster->device.memory_bandwidth * scenario->cluster->device.memory_efficiency;
  }
};

bool alike(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

class AccumulationTest : public QObject {
  Q_OBJECT

 private slots:
  /// Bytes of an element: both gradients are read and the sum is written; a product of 16 bits reads the sum and writes
  /// it in place of a gradient of its own.
  void every_gradient_is_added() {
    struct Case {
      Precision precision;
      Gradients gradients;
      Kernels kernels;
      double of_products, of_others;
    };
    const Case cases[] = {
        {Precision::fp32, Gradients::as_weights, Kernels::fused, 4 + 4 + 4, 4 + 4 + 4},
        {Precision::bf16, Gradients::fp32, Kernels::fused, 4 + 4 - 2, 4 + 4 + 2},
        {Precision::bf16, Gradients::as_weights, Kernels::fused, 2 + 2 - 2, 2 + 2 + 2},
        {Precision::bf16, Gradients::fp32, Kernels::eager, 4 + 4 + 2, 4 + 4 + 2},
    };
    int products = 0, others = 0;
    for (const Case& c : cases) {
      const Alone alone(scenario_on(attention(8), "a100-80gb-1x4", [&](Settings& s) {
        s.precision = c.precision, s.gradients = c.gradients, s.kernels = c.kernels;
      }));
      const Model& model = *alone.scenario->model;
      for (std::size_t i = 0; i < model.operators.size(); ++i) {
        const OperatorId id(i);
        if (alone.parameters(id) == 0) {
          QCOMPARE(alone.more_backward_s(id, 8), 0.0);
          continue;
        }
        const bool product = is_weighted_product(model, model.operators[id]);
        ++(product ? products : others);
        const bool itself = product && c.precision == Precision::bf16 && c.kernels == Kernels::fused;
        const double one = alone.elements(id) * (product ? c.of_products : c.of_others) / alone.bandwidth() +
                           (itself ? 0 : alone.parameters(id) * alone.scenario->cluster->device.launch_s);
        for (const int micro_batches : {2, 8})
          QVERIFY2(alike(micro_batches * alone.more_backward_s(id, micro_batches), (micro_batches - 1) * one),
                   model.operators[id].name.c_str());
        // Nothing else is another.
        CostBreakdown several = alone.cost(id, 8), single = alone.cost(id, 1);
        several[ComputePart::backward] = single[ComputePart::backward];
        QVERIFY(several.time_s() == single.time_s() && several.memory_bytes() == single.memory_bytes());
      }
    }
    QVERIFY(products >= 8 && others >= 4);
  }

  /// Where every micro-batch's gradient is scattered, a shard is added up; where gradients stay whole, all of it.
  void shards_are_added_alone() {
    const Alone alone(scenario_on(mlp(), "v100-16gb-1x4"));
    const std::uint32_t all = (1u << alone.mesh.count()) - 1;
    const double launch_s = alone.scenario->cluster->device.launch_s;
    int tried = 0;
    for (std::size_t i = 0; i < alone.scenario->model->operators.size(); ++i) {
      const OperatorId id(i);
      if (alone.parameters(id) == 0) continue;
      ++tried;
      for (const Update update : {Update::sharded, Update::sharded_weights, Update::sharded_state}) {
        const double summed = alone.elements(id) / (update == Update::sharded_state ? 1 : 4);
        QVERIFY(alike(4 * alone.more_backward_s(id, 4, {update, all, false, false}),
                      3 * (summed * 12 / alone.bandwidth() + alone.parameters(id) * launch_s)));
      }
    }
    QVERIFY(tried >= 2);
  }

  /// As measured additions of activations are, or as updates, where a profile has them; at the device's speed.
  void measured_rates_count() {
    const auto scenario = scenario_on(mlp(), "v100-16gb-1x4", [](Settings& s) { s.factors.device_speed = 2; });
    const auto with = [&](const std::vector<OperatorFit>& fits) {
      auto cluster = std::make_shared<Cluster>(*scenario->cluster);
      cluster->fits = fits;
      auto other = std::make_shared<Scenario>(*scenario);
      other->cluster = std::move(cluster);
      return Alone(other);
    };
    const OperatorFit update{"update", "update", Precision::fp32, 3e-5, 0, 2e-12, 9};
    const OperatorFit few{"elementwise", "forward", Precision::fp32, 0, 0, 7e-12, 2};
    const OperatorFit many{"elementwise", "forward", Precision::fp32, 1e-5, 4e-12, 1e-12, 9};
    int tried = 0;
    for (std::size_t i = 0; i < scenario->model->operators.size(); ++i) {
      const OperatorId id(i);
      const Alone by_update = with({update, few}), by_few = with({few}), by_many = with({update, many});
      if (by_update.parameters(id) == 0) continue;
      ++tried;
      const double n = by_update.parameters(id), elements = by_update.elements(id);
      QVERIFY(alike(2 * by_update.more_backward_s(id, 2), (n * 3e-5 + elements * 12 * 2e-12) / 2));
      QVERIFY(alike(2 * by_few.more_backward_s(id, 2), elements * 12 * 7e-12 / 2));
      QVERIFY(alike(2 * by_many.more_backward_s(id, 2), (n * 1e-5 + elements * 4e-12 + elements * 12 * 1e-12) / 2));
    }
    QVERIFY(tried >= 2);
  }

  void papers_know_of_no_such_thing() {
    const Alone alone(scenario_on(mlp(), "v100-16gb-1x4", [](Settings& s) { s.accounting = Accounting::paper; }));
    for (std::size_t i = 0; i < alone.scenario->model->operators.size(); ++i)
      QCOMPARE(alone.more_backward_s(OperatorId(i), 8), 0.0);
  }
};

QTEST_APPLESS_MAIN(AccumulationTest)
#include "accumulation_test.moc"
