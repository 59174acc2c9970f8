// SPDX-License-Identifier: Apache-2.0
// Sharded updates on CPU ranks beside replicated ones (W6): from the same summed gradient every rank computes the same
// weights, bit for bit, as the probe's optimizers work element by element.
#include <QtTest>
#include <cstring>
#include <map>

#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

using Place = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // operator, input, element
using Bits = std::map<Place, std::uint64_t>;

/// Of all ranks together; ranks that hold the same element hold the same bits, or it is said.
std::string read_bits(const step::StepRun& run, step::Compared kind, Bits& bits) {
  for (const auto& rank : run.ranks)
    for (const auto& recorded : rank.recorded) {
      if (recorded.kind != kind) continue;
      for (const auto offset : recorded.region.offset)
        if (offset != 0) return "weights are cut";
      for (std::size_t i = 0; i < recorded.data.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, &recorded.data[i], sizeof value);
        const Place place{recorded.op.index, recorded.slot, recorded.first + std::int64_t(i)};
        if (bits.try_emplace(place, value).first->second != value) return "ranks differ";
      }
    }
  return {};
}

/// The plan's choices, so that nothing is proven of a plan that shares out no update.
int shared_updates(const Plan& plan) {
  int count = 0;
  for (const auto& op : plan.operators) count += !op.parameters.empty() && op.choice.update != Update::replicated;
  return count;
}

struct Ran {
  int shared = 0;
  Bits gradient, weight;
};

Ran carry_out(const ScenarioPtr& scenario, const char* method, step::UpdateRule rule) {
  const auto result = test::run(method, scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  Plan plan = (*result)->plans->sharding(0);
  auto options = test::step_options(scenario->settings);
  options.rule = rule;
  options.micro_batches = plan.micro_batches();
  const Model& model = plan.pipeline ? *plan.pipeline->micro_batch : *scenario->model;
  plan.pipeline.reset();
  const auto run = step::run_step(step::in_double(), model, plan, options);
  if (!run) qFatal("%s", run.error().message().c_str());
  Ran ran;
  ran.shared = shared_updates(plan);
  for (const auto& [kind, bits] : {std::pair{step::Compared::parameter_gradient, &ran.gradient},
                                   std::pair{step::Compared::new_parameter, &ran.weight}})
    if (const std::string fault = read_bits(*run, kind, *bits); !fault.empty()) qFatal("%s", fault.c_str());
  return ran;
}

}  // namespace

class StepUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  void sharded_updates_are_the_replicated_ones_bit_for_bit_data() {
    QTest::addColumn<int>("optimizer");
    for (const Optimizer o : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam})
      QTest::newRow(to_string(o)) << static_cast<int>(o);
  }
  void sharded_updates_are_the_replicated_ones_bit_for_bit() {
    QFETCH(int, optimizer);
    const auto chosen = static_cast<Optimizer>(optimizer);
    const step::UpdateRule rule = chosen == Optimizer::sgd        ? step::UpdateRule::sgd
                                  : chosen == Optimizer::momentum ? step::UpdateRule::momentum
                                                                  : step::UpdateRule::adam;
    std::size_t compared = 0, of = 0;
    for (const auto& model : {test::builtin("lenet", 12), test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-1x4", "v100-16gb-2x2"}) {
        const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.optimizer = chosen; });
        const Ran whole = carry_out(scenario, "data-parallel", rule);
        QCOMPARE(whole.shared, 0);
        for (const char* method : {"fsdp:zero=1", "update-sharding"}) {
          const std::string what = model->name + " on " + hardware + " by " + method;
          const Ran shards = carry_out(scenario, method, rule);
          if (method != std::string("update-sharding")) QVERIFY2(shards.shared > 0, what.c_str());
          QCOMPARE(shards.weight.size(), whole.weight.size());
          QCOMPARE(shards.gradient.size(), whole.gradient.size());
          for (const auto& [place, bits] : shards.weight) {
            ++of;
            // Two ranks add two numbers, in either order the same. Rings of more may add in another order.
            const bool same = shards.gradient.at(place) == whole.gradient.at(place);
            if (hardware == std::string("v100-16gb-1x2")) QVERIFY2(same, what.c_str());
            if (!same) continue;
            ++compared;
            QVERIFY2(bits == whole.weight.at(place), what.c_str());
          }
        }
      }
    qInfo("%zu of %zu weights have the same gradient", compared, of);
    QVERIFY(compared > of / 2);
  }

  /// In micro-batches, on a device so slow that sharded updates pay even for small weights: whole gradients are summed
  /// over all parts and scattered once.
  void micro_batches_sum_before_they_scatter() {
    std::size_t compared = 0;
    for (const auto& model : {test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3"}) {
        const auto scenario = test::scenario_on(model, hardware, [](Settings& s) { s.factors.device_speed = 1e-4; });
        const Ran whole = carry_out(scenario, "manual:micro-batches=2", step::UpdateRule::adam),
                  shards = carry_out(scenario, "update-sharding:of=manual:micro-batches=2", step::UpdateRule::adam);
        const std::string what = model->name + " on " + hardware;
        QVERIFY2(whole.shared == 0 && shards.shared > 0, what.c_str());
        QCOMPARE(shards.weight.size(), whole.weight.size());
        for (const auto& [place, bits] : shards.weight) {
          if (shards.gradient.at(place) != whole.gradient.at(place)) continue;
          ++compared;
          QVERIFY2(bits == whole.weight.at(place), what.c_str());
        }
      }
    QVERIFY(compared > 1000);
  }
};

QTEST_APPLESS_MAIN(StepUpdatesTest)
#include "step_updates_test.moc"
