// SPDX-License-Identifier: Apache-2.0
// Updates sharded on the stages of a pipeline: each point is what the evaluator says, no update by itself could be
// shared out otherwise and make the step shorter, and where every update is shared out among all replicas the plan is
// the one that a split by hand with ZeRO's stage 1 makes.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/evaluator.h"
#include "core/plan/on_mesh.h"
#include "core/plan/one_stage.h"
#include "core/plan_io/result_json.h"
#include "core/search/reopen.h"
#include "core/search/update_sharding/planned_updates.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ModelPtr four_layers(std::int64_t batch = 32) { return builtin("gpt2?layers=4&hidden=512&sequence=32", batch); }

/// Splits by hand and others whose plans have stages, micro-batches or both.
constexpr const char* kScheduled[] = {
    "manual:pp=2:micro-batches=4",
    "manual:pp=4:micro-batches=4:recompute",
    "manual:tp=2:pp=2:micro-batches=2:recompute=selective",
    "manual:tp=2:pp=2:vp=2:micro-batches=4:sequence-parallel",
    "manual:tp=4:pp=2:cut=time",
    "manual:micro-batches=2",
    "manual:micro-batches=2:recompute=op",
    "megatron:micro-batches=2",
    "ft:micro-batches=2",
};

struct Found {
  ResultPtr base, sharded;
  Plan given, made;
  std::string what;
};

Found found(const std::string& of, const ScenarioPtr& scenario, const std::string& name) {
  Found one;
  one.what = of + " on " + name;
  one.base = answer_of(of, scenario);
  one.sharded = answer_of("update-sharding:of=" + of, scenario);
  one.given = one.base->plans->sharding(one.base->fastest_that_fits().value_or(one.base->points.size() - 1));
  one.made = one.sharded->plans->sharding(0);
  return one;
}

const ResultPoint& base_point(const Found& one) {
  return one.base->points[one.base->fastest_that_fits().value_or(one.base->points.size() - 1)];
}

std::vector<std::pair<std::string, ScenarioPtr>> scenarios() {
  std::vector<std::pair<std::string, ScenarioPtr>> all;
  for (const char* hardware : {"v100-16gb-2x8", "a100-80gb-1x8"})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam})
        all.emplace_back(hardware, scenario_on(four_layers(), hardware, [&](Settings& s) {
                           s.precision = precision;
                           s.optimizer = optimizer;
                         }));
  return all;
}

}  // namespace

class PipelinedUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  void a_pipelines_updates_cost_what_the_evaluator_says() {
    int sharded = 0, gains = 0, plans = 0;
    for (const auto& [name, scenario] : scenarios())
      for (const char* of : kScheduled) {
        // A search of seconds: once will do.
        const bool searched = std::string(of).starts_with("ft");
        if (searched && (name != "a100-80gb-1x8" || scenario->settings.optimizer != Optimizer::adam ||
                         scenario->settings.precision != Precision::fp32))
          continue;
        const Found one = found(of, scenario, name);
        const ResultPoint& point = one.sharded->points.front();
        QVERIFY2(one.made.pipeline.has_value(), one.what.c_str());
        const auto cost = evaluate_pipeline(*scenario, one.made);
        QVERIFY2(cost, cost ? "" : (one.what + cost.error().message()).c_str());
        QVERIFY2(cost->cost.memory_bytes() == point.memory_bytes && close(cost->cost.time_s(), point.time_s),
                 one.what.c_str());
        QVERIFY2(close(cost->cost.compute_s(), point.compute_s) && close(one.made.cost.time_s(), point.time_s),
                 one.what.c_str());
        QVERIFY2(cost->stage_memory_bytes == one.made.pipeline->stage_memory_bytes, one.what.c_str());
        QVERIFY2(point.simulated_time_s && *point.simulated_time_s > 0 && point.simulated_memory_bytes,
                 one.what.c_str());
        // Nothing but updates is another: stages, splits, what moves between operators and what runs again.
        QCOMPARE(one.made.pipeline->stages, one.given.pipeline->stages);
        QCOMPARE(one.made.pipeline->layer_of, one.given.pipeline->layer_of);
        QCOMPARE(one.made.reshards.size(), one.given.reshards.size());
        for (std::size_t o = 0; o < one.made.operators.size(); ++o) {
          const PlanOperator &was = one.given.operators[o], &is = one.made.operators[o];
          QVERIFY2(was.split == is.split && was.stage == is.stage && was.chunk == is.chunk &&
                       was.choice.recompute == is.choice.recompute && was.choice.offload == is.choice.offload,
                   one.what.c_str());
          QVERIFY2(is.choice.update != Update::sharded_weights, one.what.c_str());
          sharded += is.choice.update != Update::replicated && !is.parameters.empty();
        }
        QVERIFY2(point.time_s <= base_point(one).time_s * (1 + 1e-12), one.what.c_str());
        gains += point.time_s < base_point(one).time_s * (1 - 1e-6);
        ++plans;
      }
    QVERIFY2(sharded > 500 && gains > plans / 3, qPrintable(QString("%1 %2 %3").arg(sharded).arg(gains).arg(plans)));
  }

  /// Replicas of a weight are the devices of its stage that hold the same of it, counted here by hand.
  void replicas_are_those_of_the_stage() {
    const auto scenario = scenario_on(four_layers(), "v100-16gb-2x8");
    const ResultPtr result = answer_of("update-sharding:of=manual:tp=2:pp=2:micro-batches=4", scenario);
    int cut = 0, whole = 0;
    for (const WeightUpdate& one : result->weights) {
      const bool tensor = one.weight.find("mlp") != std::string::npos || one.weight.find("attn") != std::string::npos ||
                          one.weight.find("attention") != std::string::npos;
      const bool matrix =
          tensor && one.weight.find("weight") != std::string::npos && one.weight.find("norm") == std::string::npos;
      QVERIFY2(one.replicas == 4 || one.replicas == 8, one.weight.c_str());
      if (matrix) QVERIFY2(one.replicas == 4, one.weight.c_str());
      if (one.weight.find("norm") != std::string::npos) QVERIFY2(one.replicas == 8, one.weight.c_str());
      (one.replicas == 4 ? cut : whole) += 1;
      QVERIFY2(one.replicas % one.shards == 0, one.weight.c_str());
      if (one.sharded()) QVERIFY2(one.reason.find("its stage takes") != std::string::npos, one.reason.c_str());
    }
    QVERIFY(cut >= 16 && whole >= 8);
    const auto says = [&](const char* words) { return result->explanations.back().find(words) != std::string::npos; };
    QVERIFY(says("'manual:tp=2:pp=2:micro-batches=4'") && says("The devices of one stage share out its weights"));
  }

  /// Where every update is shared out among all its replicas the plan is ZeRO's stage 1 on the same split.
  void all_over_all_is_zero_one() {
    int met = 0;
    for (const auto& [split, hardware] : {std::pair<std::string, const char*>{"pp=2:micro-batches=8", "v100-16gb-2x2"},
                                          {"pp=4:micro-batches=4", "v100-16gb-2x4"},
                                          {"pp=2:vp=2:micro-batches=4", "v100-16gb-2x2"}}) {
      const auto scenario = scenario_on(builtin("gpt2?layers=8&sequence=1024", 64), hardware,
                                        [](Settings& s) { s.factors.intra_bandwidth = 4; });
      const ResultPtr result = answer_of("update-sharding:of=manual:" + split, scenario);
      if (!std::all_of(result->weights.begin(), result->weights.end(),
                       [](const WeightUpdate& one) { return one.shards == one.replicas; }))
        continue;
      ++met;
      const ResultPoint by_hand = answer_of("manual:" + split + ":zero=1", scenario)->points.front();
      const ResultPoint& point = result->points.front();
      QCOMPARE(point.memory_bytes, by_hand.memory_bytes);
      QVERIFY2(close(point.time_s, by_hand.time_s) && close(point.compute_s, by_hand.compute_s), split.c_str());
    }
    QVERIFY(met >= 2);
  }

  /// Brute force by the evaluator, which knows nothing of the choice: with any one update otherwise, over any number of
  /// replicas or whole, no stage ends sooner; without stages also where gradients are scattered after every
  /// micro-batch.
  void no_other_update_makes_the_step_shorter() {
    int tried = 0, slower = 0;
    for (const char* of : {"manual:pp=2:micro-batches=2", "manual:tp=2:pp=2:micro-batches=2", "manual:pp=2",
                           "manual:micro-batches=4", "manual:tp=4:micro-batches=2"}) {
      const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=256&sequence=16", 32), "v100-16gb-2x4",
                                        [](Settings& s) { s.optimizer = Optimizer::adam; });
      const Plan plan = answer_of(std::string("update-sharding:of=") + of, scenario)->plans->sharding(0);
      const auto stage = one_stage_of(*scenario, plan.pipeline->stages, plan.pipeline->micro_batches);
      QVERIFY(stage.has_value());
      const Mesh mesh = make_mesh(*(*stage)->cluster);
      const auto alone = on_one_stage(plan, mesh, plan.pipeline->stages);
      QVERIFY(alone.has_value());
      std::vector<MemoryChoice> chosen;
      for (const PlanOperator& op : alone->operators) chosen.push_back(op.choice);
      const auto time_with = [&](const std::vector<MemoryChoice>& choices) {
        const Plan other = on_mesh(update_sharding::with_choices(**stage, *alone, choices), plan.mesh,
                                   stage_axes(plan.mesh, plan.pipeline->stages));
        const auto cost = evaluate_pipeline(*scenario, other);
        if (!cost) qFatal("%s", cost.error().message().c_str());
        return cost->cost.time_s();
      };
      const double best = time_with(chosen);
      QVERIFY(close(best, plan.cost.time_s()));
      for (std::size_t o = 0; o < chosen.size(); ++o) {
        if (alone->operators[o].parameters.empty()) continue;
        for (const Update update : {Update::replicated, Update::sharded_state, Update::sharded}) {
          if (update == Update::sharded && plan.pipeline->stages > 1) continue;
          for (std::uint32_t axes = 1; axes < 1u << mesh.count(); ++axes) {
            std::vector<MemoryChoice> other = chosen;
            other[o].update = update, other[o].update_axes = update == Update::replicated ? 0 : axes;
            const double time = time_with(other);
            QVERIFY2(time >= best * (1 - 1e-12), (std::string(of) + " operator " + std::to_string(o)).c_str());
            slower += time > best * (1 + 1e-9);
            ++tried;
          }
        }
      }
    }
    QVERIFY2(tried > 300 && slower > tried / 4, qPrintable(QString("%1 of %2").arg(slower).arg(tried)));
  }

  void pipelines_come_back_from_files() {
    for (const char* of : {"manual:dp=2:pp=2:micro-batches=4",
                           "manual:pp=2:vp=2:micro-batches=2:recompute:checkpoint=50", "megatron:micro-batches=2"}) {
      const auto scenario = scenario_on(builtin("gpt2?layers=4&hidden=256&sequence=16", 16), "v100-16gb-1x4");
      const ResultPtr result = answer_of(std::string("update-sharding:of=") + of, scenario);
      const nlohmann::json document = nlohmann::json::parse(write_result(*result, true).dump());
      const auto opened = reopen_result(document, "r.json", {0}, {});
      QVERIFY2(opened, opened ? "" : opened.error().message().c_str());
      QCOMPARE((*opened)->method_options, std::string("of=") + of);
      QVERIFY((*opened)->weights == result->weights && (*opened)->points == result->points);
      QVERIFY((*opened)->traits == result->traits && result->traits.shards_updates && result->traits.micro_batches);
      const Plan was = result->plans->sharding(0), is = (*opened)->plans->sharding(0);
      for (std::size_t o = 0; o < was.operators.size(); ++o)
        QVERIFY2(was.operators[o].choice.update == is.operators[o].choice.update &&
                     was.operators[o].choice.update_axes == is.operators[o].choice.update_axes,
                 of);
      // Without its plan the file is searched again, parameters of the other method included.
      nlohmann::json bare = document;
      bare.erase("plans");
      const auto again = reopen_result(bare, "r.json", {0}, {});
      QVERIFY2(again, again ? "" : again.error().message().c_str());
      nlohmann::json changed = document;
      changed["plans"][0]["pipeline"]["stage_memory_bytes"][0] = 7;
      QVERIFY(!reopen_result(changed, "r.json", {0}, {}));
    }
  }

  /// What a device holds are weights, gradients and states, whether or not the accounting counts the latter two. A plan
  /// in two stages is split alike under both accountings, so that the sentence is the same but for what is shared out.
  void what_is_held_is_all_of_it_under_both_accountings() {
    const auto told = [](Accounting accounting) {
      const auto scenario =
          scenario_on(four_layers(), "v100-16gb-2x8", [&](Settings& s) { s.accounting = accounting; });
      const ResultPtr result = answer_of("update-sharding:of=manual:pp=2:micro-batches=4", scenario);
      const std::string all = result->explanations.back();
      const std::size_t at = all.find("with whole updates ");
      return at == std::string::npos ? all : all.substr(at);
    };
    const std::string full = told(Accounting::full);
    QVERIFY2(full.starts_with("with whole updates ") && full.find("ZeRO's stages 1, 2 and 3") != std::string::npos,
             full.c_str());
    QCOMPARE(told(Accounting::paper), full);
  }

  /// Parameters behind of=METHOD are METHOD's, but for the loop's; what METHOD refuses is refused in its words.
  void parameters_are_the_others() {
    const auto scenario = scenario_on(four_layers(), "v100-16gb-2x8");
    const auto refused = [&](const char* text, const char* words) {
      const auto result = run(std::string("update-sharding:") + text, scenario);
      return !result && result.error().message().find(words) != std::string::npos;
    };
    QVERIFY(refused("of=manual:pp=3", "pp=3"));
    QVERIFY(refused("of=manual:zero=1", "'manual:zero=1' does not only split operators"));
    QVERIFY(refused("of=manual:depth=1", "depth"));
    QVERIFY(refused("pp=2", "pp"));
    QVERIFY(refused("of=none:pp=2", "pp"));
    // A checkpoint at every step gathers Adam's moments, which takes more than their sharded update spares.
    const auto sharded = [&](const char* text) {
      int count = 0;
      const ResultPtr result = answer_of(std::string("update-sharding:") + text, scenario);
      for (const WeightUpdate& one : result->weights) count += one.sharded();
      return count;
    };
    const int never = sharded("of=manual:pp=2:micro-batches=4"),
              every = sharded("checkpoint=1:of=manual:pp=2:micro-batches=4");
    QVERIFY2(every < never, qPrintable(QString("%1 %2").arg(every).arg(never)));
    QCOMPARE(sharded("of=manual:checkpoint=1:pp=2:micro-batches=4"), every);
  }
};

QTEST_APPLESS_MAIN(PipelinedUpdatesTest)
#include "pipelined_updates_test.moc"
