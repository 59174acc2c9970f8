// SPDX-License-Identifier: Apache-2.0
#include "core/cost/messages.h"

#include <QtTest/QtTest>
#include <cmath>
#include <map>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/import/source/model_source.h"
#include "search/scenario_on.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

constexpr const char* kMachine = "h100-80gb-8x8";

bool alike(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// Seconds on the network where every operator's batch is split over all devices.
double data_parallel(const Scenario& scenario, const MemoryChoice& choice) {
  const Model& model = *scenario.model;
  const TensorUses uses = analyse_tensor_uses(model);
  const Mesh mesh = make_mesh(*scenario.cluster);
  const ReshardingModel resharding(mesh, collectives_of(scenario), 1);
  const OperatorCostModel costs(scenario, uses, resharding);
  double seconds = 0;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    Configuration split;
    for (int a = 0; a < mesh.count(); ++a) split.axis[static_cast<std::size_t>(a)] = Configuration::kRepeat;
    const Operator& op = model.operators[OperatorId(i)];
    for (std::size_t d = 0; d < op.dims.size(); ++d)
      if (op.dims[d].name == DimName::batch)
        for (int a = 0; a < mesh.count(); ++a) split.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(d);
    seconds += costs.cost(OperatorId(i), split, choice).breakdown.network_s();
  }
  return seconds;
}

double all_reduce(const Scenario& scenario, double bytes) {
  const Mesh mesh = make_mesh(*scenario.cluster);
  const std::uint32_t all = (1u << mesh.count()) - 1;
  return collectives_of(scenario).time(Collective::all_reduce, mesh.group(all), bytes).value;
}

}  // namespace

class MessagesTest : public QObject {
  Q_OBJECT

 private slots:
  // A model smaller than a bucket is one message, a larger one as many as it fills, whatever its operators.
  void gradients_fill_buckets() {
    const auto whole = [](const Scenario& scenario) { return 4 * analyse_tensor_uses(*scenario.model).parameters.all; };
    const auto small = test::scenario_on(test::mlp(), kMachine);
    QVERIFY(whole(*small) < small->settings.bucket_bytes);
    QVERIFY(alike(data_parallel(*small, {}), all_reduce(*small, whole(*small))));
    const auto filled = test::scenario_on(test::mlp(), kMachine, [](Settings& s) { s.bucket_bytes = 1000; });
    double largest = 0;
    for (const auto& tensor : filled->model->tensors)
      if (tensor.role == TensorRole::parameter) largest = std::max(largest, 4 * elements_of(tensor));
    QVERIFY(largest > 1000);  // which travels alone
    QVERIFY(data_parallel(*filled, {}) > data_parallel(*small, {}));
    const auto alone = test::scenario_on(test::mlp(), kMachine, [](Settings& s) { s.bucket_bytes = 0; });
    QVERIFY(data_parallel(*alone, {}) > data_parallel(*filled, {}) * (1 - 1e-12));
  }

  // Gathers and scatters of sharded weights: one a layer and one of the rest, in each direction.
  void sharded_weights_travel_by_layer() {
    const auto scenario = test::scenario_on(*(*open_model("builtin:gpt2?layers=2"))->bind({64, 0}), kMachine,
                                            [](Settings& s) { s.precision = Precision::bf16; });
    const TensorUses uses = analyse_tensor_uses(*scenario->model);
    std::map<double, int> sizes;  // of layers, in elements
    double all = 0;
    for (const double layer : uses.parameters.layer) ++sizes[layer];
    QCOMPARE(sizes.size(), std::size_t(2));  // two equal layers, and what is outside of them
    all = 2 * sizes.begin()->first + sizes.rbegin()->first;
    QCOMPARE(all, uses.parameters.all);
    const Mesh mesh = make_mesh(*scenario->cluster);
    const std::uint32_t every = (1u << mesh.count()) - 1;
    const CollectiveModel collectives = collectives_of(*scenario);
    const auto time = [&](Collective kind, double elements) {
      return collectives.time(kind, mesh.group(every), 2 * elements).value;
    };
    // Every weight's part of its layer's messages: as many gathers as it is read, one scatter of its gradient.
    double expected = 0;
    for (std::size_t i = 0; i < scenario->model->operators.size(); ++i) {
      const Operator& op = scenario->model->operators[OperatorId(i)];
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        if (!uses.owns_parameter[i][k]) continue;
        const double layer = uses.parameters.layer[i];
        expected += elements_of(scenario->model->tensors[op.inputs[k].tensor]) / layer *
                    (uses.parameter_reads[i][k] * time(Collective::all_gather, layer) +
                     time(Collective::reduce_scatter, layer));
      }
    }
    const double charged = data_parallel(*scenario, {Update::sharded_weights, every, false, false});
    QVERIFY2(alike(charged, expected), qPrintable(QStringLiteral("%1 of %2").arg(charged).arg(expected)));
  }

  void nothing_travels_together_without_a_library() {
    const auto one = [](auto&& change) {
      const auto scenario = test::scenario_on(test::mlp(), kMachine, change);
      const TensorUses uses = analyse_tensor_uses(*scenario->model);
      return Messages(*scenario, uses).sizes(OperatorId(std::size_t(1)), 10, 40).bucket;
    };
    QVERIFY(one([](Settings&) {}) > 1);
    QCOMPARE(one([](Settings& s) { s.collectives = Collectives::rings; }), 1.0);
    QCOMPARE(one([](Settings& s) { s.accounting = Accounting::paper; }), 1.0);
    QCOMPARE(one([](Settings& s) { s.bucket_bytes = 0; }), 1.0);
    QCOMPARE(one([](Settings& s) { s.bucket_bytes = 80; }), 2.0);
  }
};

QTEST_APPLESS_MAIN(MessagesTest)
#include "messages_test.moc"
