// SPDX-License-Identifier: Apache-2.0
// Tensor reuse: every choice of kept copies is offered, to one reader and to several. The oracles are the plans of
// practice that repeat a gathering, and plans whose copies are exchanged here one by one and costed by the evaluator.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <random>

#include "core/cost/operator_cost.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/schedule/plan_lowering.h"
#include "search/random_models.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

double best_within(const Result& result, std::int64_t memory) {
  double best = INFINITY;
  for (const auto& p : result.points)
    if (p.memory_bytes <= memory) best = std::min(best, p.time_s);
  return best;
}

void without_choices(Settings& s) { s.recompute = s.update_sharding = s.offload = false; }

/// What a plan may keep instead for one of its reshardings; the steps are put together here.
std::vector<PlanReshard> other_copies(const Scenario& scenario, const TensorUses& uses, const PlanReshard& reshard) {
  std::vector<PlanReshard> result;
  const auto flow = std::find_if(uses.flows.begin(), uses.flows.end(),
                                 [&](const TensorFlow& f) { return f.tensor == reshard.tensor; });
  const Layout to = reshard.to.without_partial();
  if (flow == uses.flows.end() || reshard.keep == Keep::none || reshard.keep == Keep::again || reshard.from == to)
    return result;
  const bool leaves_producer = !flow->shared() || !reshard.consumer.valid();
  if (leaves_producer && reshard.from.has_partial()) return result;
  const Tensor& tensor = scenario.model->tensors[reshard.tensor];
  const bool both_read = leaves_producer && flow->producer_saves && !flow->producer_is_view && tensor.requires_gradient;
  PlanReshard other = reshard;
  const auto add = [&](Keep keep, const std::vector<ReshardStep>& first) {
    other.keep = keep;
    other.repeated = keep == Keep::before ? first : std::vector<ReshardStep>();
    other.restored = keep == Keep::after ? first : std::vector<ReshardStep>();
    result.push_back(other);
  };
  add(Keep::both, {});
  // Of a shared tensor that backward of one reader alone reads, that one has the choice.
  const auto readers = std::count(flow->consumer_saves.begin(), flow->consumer_saves.end(), true);
  if (reshard.consumer.valid() || readers > 1) add(Keep::before, reshard.forward);
  if (both_read) {
    const auto& device = scenario.cluster->device;
    const ReshardingModel resharding(make_mesh(*scenario.cluster),
                                     CollectiveModel(*scenario.cluster, scenario.settings.factors),
                                     device.memory_bandwidth * device.memory_efficiency);
    add(Keep::after,
        resharding.path(tensor.shape, element_bytes(tensor, scenario.settings.precision), to, reshard.from).steps);
  }
  return result;
}

}  // namespace

class ReuseTest : public QObject {
  Q_OBJECT

 private slots:
  // A plan of sequence parallelism gathers again in backward, once for all readers. The frontier has that choice, and
  // without the operators' own ones nothing else makes up for it.
  void practice_is_never_below_the_frontier_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("hardware");
    for (const char* model :
         {"llama-2-7b?hidden=512&sequence=64&layers=1", "llama-2-7b?hidden=512&sequence=64&layers=2",
          "gpt2?hidden=256&sequence=64&layers=1", "bert-large?hidden=256&sequence=64&layers=1"})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4", "v100-16gb-2x2"})
        QTest::addRow("%s on %s", model, hardware) << QString(model) << QString(hardware);
  }
  void practice_is_never_below_the_frontier() {
    QFETCH(QString, model);
    QFETCH(QString, hardware);
    int compared = 0;
    for (const bool choices : {true, false}) {
      const auto scenario = scenario_on(builtin(model.toStdString(), 8), hardware.toStdString(), [&](Settings& s) {
        if (!choices) without_choices(s);
      });
      const auto ft = run("ft:micro-batches=1", scenario);
      QVERIFY2(ft.has_value(), ft ? "" : ft.error().message().c_str());
      for (const char* method : {"megatron", "megatron:sequence-parallel", "manual:tp=2:sequence-parallel",
                                 "manual:tp=4:sequence-parallel"}) {
        const auto other = run(method, scenario);
        if (!other && other.error().code == ErrorCode::usage) continue;  // tp=4 on two devices
        QVERIFY2(other.has_value(), other ? "" : other.error().message().c_str());
        for (const auto& point : (*other)->points) {
          const double best = best_within(**ft, point.memory_bytes);
          QVERIFY2(best <= point.time_s * (1 + 1e-9) / (1 - (*ft)->gap.value_or(0)),
                   qPrintable(QString("%1, choices %2: %3 B in %4 s, ft %5 s")
                                  .arg(method)
                                  .arg(choices)
                                  .arg(point.memory_bytes)
                                  .arg(point.time_s)
                                  .arg(best)));
          ++compared;
        }
      }
    }
    QVERIFY(compared >= 6);
  }

  // Of any plan of an exact frontier any one copy may be exchanged for another: the result does not lie below.
  void no_exchange_of_copies_lies_below() {
    std::mt19937_64 random(11);
    std::vector<ModelPtr> models = {mlp(), residual(), attention(), convolution()};
    for (int k = 0; k < 24; ++k) models.push_back(random_model(random));
    int exchanged = 0, kept[5] = {};
    for (const auto& model : models) {
      QVERIFY(model);
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-2x2"}) {
        const auto scenario = scenario_on(model, hardware, without_choices);
        const auto ft = run("ft:micro-batches=1", scenario);
        QVERIFY2(ft.has_value(), ft ? "" : ft.error().message().c_str());
        if (!(*ft)->exact) continue;
        const TensorUses uses = analyse_tensor_uses(*model);
        const std::size_t count = (*ft)->points.size();
        for (std::size_t k = 0; k < count; k += 1 + count / 30) {
          const Plan plan = (*ft)->plans->sharding(k);
          const auto own = evaluate_plan(*scenario, plan);
          QVERIFY2(own.has_value(), own ? "" : own.error().message().c_str());
          QCOMPARE(own->memory_bytes(), (*ft)->points[k].memory_bytes);
          QVERIFY(close(own->time_s(), (*ft)->points[k].time_s));
          for (std::size_t r = 0; r < plan.reshards.size(); ++r)
            for (const PlanReshard& other : other_copies(*scenario, uses, plan.reshards[r])) {
              Plan changed = plan;
              changed.reshards[r] = other;
              const auto cost = evaluate_plan(*scenario, changed);
              QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
              QVERIFY2(best_within(**ft, cost->memory_bytes()) <= cost->time_s() * (1 + 1e-9),
                       qPrintable(QString("%1 on %2, point %3: keeping '%4' of %5")
                                      .arg(model->name.c_str(), hardware)
                                      .arg(k)
                                      .arg(to_string(other.keep))
                                      .arg(model->tensors[other.tensor].name.c_str())));
              ++exchanged;
              ++kept[int(other.keep)];
            }
        }
      }
    }
    qInfo("%d exchanges, %d of which keep the resharded copy alone", exchanged, kept[int(Keep::after)]);
    QVERIFY(exchanged > 1000 && kept[int(Keep::after)] > 50);
  }

  // Plans that keep what relu or softmax made as its reader wants it, and nothing else of it, are on curves, come back
  // from their files, and are refused without the steps back.
  void a_copy_brought_back_is_in_the_file() {
    int found = 0;
    for (const auto& model : {mlp(), residual(), attention()})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4", "v100-16gb-2x2"}) {
        // With rings, whose cheap small steps make such copies worth it.
        const auto scenario = scenario_on(model, hardware, [](Settings& settings) {
          without_choices(settings);
          settings.collectives = Collectives::rings;
        });
        const auto ft = run("ft:micro-batches=1", scenario);
        QVERIFY(ft.has_value());
        const PlanLowering lowering(*scenario);
        const TensorUses uses = analyse_tensor_uses(*model);
        for (std::size_t k = 0; k < (*ft)->points.size(); ++k) {
          Plan plan = (*ft)->plans->sharding(k);
          for (std::size_t r = 0; r < plan.reshards.size(); ++r) {
            PlanReshard& reshard = plan.reshards[r];
            const bool read = std::any_of(uses.flows.begin(), uses.flows.end(), [&](const TensorFlow& flow) {
              return flow.tensor == reshard.tensor && flow.producer_copy_is_here() &&
                     (!flow.shared() || !reshard.consumer.valid());
            });
            if (!read || reshard.keep != Keep::after) continue;
            ++found;
            QVERIFY(!reshard.restored.empty());
            QCOMPARE(reshard.cost[MemoryPart::copies], std::int64_t(0));
            QCOMPARE(plan.operators[reshard.producer.index].cost[MemoryPart::activations], std::int64_t(0));
            const auto document = write_plan(*scenario, plan);
            QCOMPARE(QString::fromStdString(document["reshards"][r]["keep"]), QString("after"));
            const auto again = read_plan(document, "p.json", *scenario);
            QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
            QVERIFY(again->cost.memory == plan.cost.memory);
            QVERIFY(lowering.lower(plan).has_value());
            reshard.restored.clear();
            QVERIFY(!evaluate_plan(*scenario, plan).has_value());
            break;
          }
        }
      }
    qInfo("%d copies brought back", found);
    QVERIFY(found > 0);
  }
};

QTEST_APPLESS_MAIN(ReuseTest)
#include "reuse_test.moc"
