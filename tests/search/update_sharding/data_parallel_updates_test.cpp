// SPDX-License-Identifier: Apache-2.0
// A data-parallel plan with sharded updates is what its decisions say: among whom, when weights are gathered and in
// which precision, how shards are padded; it costs the sum of the decisions, and every file and clock keeps that.
#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "core/model/shard_format.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/schedule/plan_schedule.h"
#include "core/search/update_sharding/data_parallel_updates.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct Told {
  UpdateSeconds whole, chosen;
  int sharded = 0, followers = 0, padded = 0;
};

enum class Numbers { fp32, bf16, rounded };
void take(Numbers numbers, Settings& s) {
  s.precision = numbers == Numbers::bf16 ? Precision::bf16 : Precision::fp32;
  s.gathers = numbers == Numbers::rounded ? Gathers::bf16 : Gathers::as_read;
}

/// Weights that nothing comes of have no gradient, and so no decision.
bool all_is_read(const Model& model) {
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    const TensorId id(t);
    const bool result = std::find(model.results.begin(), model.results.end(), id) != model.results.end();
    if (model.tensors[id].producer.valid() && model.uses[id].empty() && !result) return false;
  }
  return true;
}

Told told_of(const Result& result) {
  Told told;
  for (const WeightUpdate& one : result.weights) {
    told.whole += one.whole, told.chosen += one.chosen;
    told.sharded += one.sharded(), told.padded += one.padding > 0;
    told.followers += one.reason.find("as an operator updates its weights together") != std::string::npos;
  }
  return told;
}

}  // namespace

class DataParallelUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  // The price of the plan less that of data parallelism is the sum of what decisions gain, to rounding.
  void plans_cost_what_decisions_count() {
    std::mt19937_64 random(24);
    std::vector<ModelPtr> models = {builtin("resnet50", 2048), builtin("transformer-big", 2048)};
    while (models.size() < 22)
      if (ModelPtr model = random_model(random, 64, 8); all_is_read(*model)) models.push_back(std::move(model));
    int plans = 0, first = 0, rounded = 0;
    for (const ModelPtr& model : models)
      for (const char* hardware : {"tpu-v3-core-2x8", "tpu-v3-core-256x8", "v100-16gb-2x8"})
        for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam, Optimizer::lars, Optimizer::lamb})
          for (const Numbers numbers : {Numbers::fp32, Numbers::bf16, Numbers::rounded}) {
            const bool gpu = std::string(hardware).starts_with("v100"), large = model->batch == 2048;
            if (!large && std::string(hardware) == "tpu-v3-core-256x8") continue;
            // Of an operator whose weights travel together in two precisions a message is another one.
            if (gpu && large && numbers == Numbers::rounded) continue;
            const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
              s.optimizer = optimizer;
              take(numbers, s);
              s.factors.intra_bandwidth = gpu ? 2 : 1;
              if (!large) s.factors.device_speed = 0.01, s.factors.latency = 0.01;
            });
            const ResultPtr result = answer_of("update-sharding", scenario);
            const Plan plan = result->plans->sharding(0);
            const Told told = told_of(*result);
            if (told.sharded == 0) continue;
            const double gain = told.whole.total() - told.chosen.total(),
                         priced = result->whole_updates->time_s() - plan.cost.time_s();
            QVERIFY2(std::abs(gain - priced) <= 1e-9 * gain,
                     qPrintable(QString("%1 on %2, %3: told %4, priced %5")
                                    .arg(model->name.c_str(), hardware, to_string(optimizer))
                                    .arg(gain, 0, 'g', 12)
                                    .arg(priced, 0, 'g', 12)));
            ++plans;
            for (const PlanOperator& op : plan.operators) {
              first += op.choice.gather == WeightGather::before_forward;
              rounded += op.choice.gather == WeightGather::before_forward_bf16;
            }
          }
    qInfo("%d plans; %d operators gather first, %d in bf16", plans, first, rounded);
    QVERIFY(plans > 200 && first > 1000 && rounded > 1000);
  }

  // What decisions cannot say of a plan: next to nothing that Adafactor keeps of a matrix, several weights of an
  // operator that are together more than a message, a table that two operators read.
  void what_decisions_leave_out_is_little() {
    for (const auto& [name, optimizer, most] :
         {std::tuple{"transformer-big", Optimizer::adafactor, 5e-3}, std::tuple{"alexnet", Optimizer::adam, 5e-4},
          std::tuple{"gpt2?layers=4&sequence=128", Optimizer::adam, 1e-2}})
      for (const char* hardware : {"tpu-v3-core-4x8", "v100-16gb-2x8"}) {
        const auto scenario = scenario_on(builtin(name, 2048), hardware, [&](Settings& s) {
          s.optimizer = optimizer;
          if (std::string(hardware).starts_with("v100")) s.factors.intra_bandwidth = 2;
        });
        const ResultPtr result = answer_of("update-sharding", scenario);
        const Told told = told_of(*result);
        const double gain = told.whole.total() - told.chosen.total(),
                     priced = result->whole_updates->time_s() - result->plans->sharding(0).cost.time_s();
        QVERIFY2(told.sharded > 0 && std::abs(gain - priced) <= most * gain,
                 qPrintable(QString("%1 on %2: told %3, priced %4").arg(name, hardware).arg(gain).arg(priced)));
      }
  }

  // Gathers in 16 bits need half the bytes and leave the shard in fp32 beside a copy in bf16; those of biases, which no
  // product reads as a factor, stay as they are. Worked by hand for one layer of 64 x 32 with its bias on 4 devices.
  void gathers_in_16_bits_by_hand() {
    ModelBuilder b("one", "test", 64, 0);
    const TensorId x = b.input("x", {64, 64}, {DimName::batch, DimName::channel}, ElementType::f32);
    const TensorId y = b.linear("layer", x, b.parameter("w", {64, 32}), b.parameter("bias", {32}));
    const ModelPtr model = *b.finish({y});
    const auto scenario = scenario_on(model, "v100-16gb-1x4", [](Settings& s) {
      s.gathers = Gathers::bf16;
      s.factors.device_speed = 1e-3, s.factors.latency = 1e-3;
    });
    const ResultPtr result = answer_of("update-sharding", scenario);
    Plan plan = result->plans->sharding(0);
    int seen = 0;
    for (PlanOperator& op : plan.operators) {
      if (op.parameters.empty()) continue;
      QCOMPARE(op.choice.gather, WeightGather::before_forward_bf16);
      // Whole in 16 bits and a quarter of it in fp32, and a bias of 32 in fp32.
      QCOMPARE(op.cost[MemoryPart::parameters], std::int64_t(2048 * 2 + 2048 / 4 * 4 + 32 * 4));
      QCOMPARE(op.cost[MemoryPart::optimizer], std::int64_t((2048 + 32) / 4 * 8));
      double gathered = 0;
      for (const ParameterSteps& steps : op.parameters)
        for (const ReshardStep& step : steps.spread) gathered += step.bytes;
      QVERIFY(close(gathered, 0.75 * (2048 * 2 + 32 * 4)));
      ++seen;
    }
    QCOMPARE(seen, 1);
    const auto evaluated = evaluate_plan(*scenario, plan);
    QVERIFY(evaluated && close(evaluated->time_s(), plan.cost.time_s()) &&
            evaluated->memory_bytes() == plan.cost.memory_bytes());
    // An embedding reads its table in full precision, wherever products could be spared bytes.
    const auto mixed = scenario_on(builtin("transformer-big", 2048), "tpu-v3-core-4x8",
                                   [](Settings& s) { s.gathers = Gathers::bf16; });
    const Plan both = answer_of("update-sharding", mixed)->plans->sharding(0);
    int in_full = 0, in_half = 0;
    for (const PlanOperator& op : both.operators) {
      const OperatorKind kind = mixed->model->operators[op.op].kind;
      if (op.parameters.empty() || op.choice.update == Update::replicated) continue;
      const bool rounds = op.choice.gather == WeightGather::before_forward_bf16;
      if (kind == OperatorKind::embedding || kind == OperatorKind::normalisation) {
        QVERIFY(!rounds);
        ++in_full;
      }
      if (kind == OperatorKind::matmul && rounds) ++in_half;
    }
    QVERIFY(in_full > 10 && in_half > 90);
  }

  // ft offers them, too, where the scenario lets gathers round, and nowhere else; searched and evaluated prices agree.
  void the_search_offers_the_same() {
    std::mt19937_64 random(7);
    int rounded = 0;
    for (int turn = 0; turn < 12; ++turn) {
      const ModelPtr model = random_model(random, 64, 6);
      for (const bool may : {false, true}) {
        const auto scenario = scenario_on(model, turn % 2 ? "tpu-v3-core-1x8" : "v100-16gb-2x2", [&](Settings& s) {
          s.gathers = may ? Gathers::bf16 : Gathers::as_read;
          s.factors.device_speed = 0.01;
        });
        const ResultPtr found = answer_of("ft", scenario);
        for (std::size_t p = 0; p < found->points.size(); p += 3) {
          const Plan plan = found->plans->sharding(p);
          const auto cost = evaluate_plan(*scenario, plan);
          QVERIFY(cost && close(cost->time_s(), found->points[p].time_s) &&
                  cost->memory_bytes() == found->points[p].memory_bytes);
          for (const PlanOperator& op : plan.operators) {
            QVERIFY(may || op.choice.gather == WeightGather::after_update);
            QVERIFY(op.choice.tiles == (op.choice.shares_out() && turn % 2));
            rounded += op.choice.gather == WeightGather::before_forward_bf16;
          }
        }
      }
    }
    QVERIFY2(rounded > 50, qPrintable(QString::number(rounded)));
  }

  // Gathered behind the update, weights end the step; gathered before forward, they begin it, all but the first beside
  // computing. Memory and the sum of all durations are the same.
  void before_forward_the_clock_has_them_first() {
    const auto scenario = scenario_on(builtin("gpt2?layers=4&sequence=128", 256), "h100-80gb-2x8", [](Settings& s) {
      s.precision = Precision::bf16;
      s.factors.intra_bandwidth = 2, s.factors.device_speed = 0.1;
    });
    const Plan first = answer_of("update-sharding", scenario)->plans->sharding(0);
    Plan behind = first;
    int gathers = 0;
    for (PlanOperator& op : behind.operators) {
      gathers += op.choice.gather == WeightGather::before_forward;
      op.choice.gather = WeightGather::after_update;
    }
    QVERIFY(gathers > 20);
    const auto one = plan_schedule(*scenario, first), other = plan_schedule(*scenario, behind);
    QVERIFY(one && other);
    // Of the plan behind, the last gather ends the step; of the other computing does.
    const auto ends = [](const Schedule& schedule, LaneKind kind) {
      double last = 0;
      for (const Schedule::Lane& lane : schedule.lanes)
        for (std::uint32_t i = lane.begin; i < lane.end; ++i)
          if (lane.kind == kind) last = std::max(last, schedule.end_s[i]);
      return last;
    };
    QVERIFY(ends(**one, LaneKind::compute) == (*one)->makespan_s);
    QVERIFY(ends(**other, LaneKind::compute) < (*other)->makespan_s);
    QVERIFY((*one)->makespan_s < (*other)->makespan_s);
    QCOMPARE((*one)->item_count(), (*other)->item_count());
    QCOMPARE((*one)->devices[0].persistent_bytes, (*other)->devices[0].persistent_bytes);
    const PlanLowering lowering(*scenario);
    const auto cost = simulate_plan(lowering, first);
    QVERIFY(cost && close(cost->time_s, (*one)->makespan_s));
  }

  // A file says all of it, and what it says is checked.
  void files_keep_what_was_decided() {
    for (const Numbers numbers : {Numbers::bf16, Numbers::rounded}) {
      const auto scenario =
          scenario_on(builtin("transformer-big", 512), "tpu-v3-core-2x8", [&](Settings& s) { take(numbers, s); });
      const ResultPtr result = answer_of("update-sharding", scenario);
      const Plan plan = result->plans->sharding(0);
      const std::string text = write_plan(*scenario, plan).dump();
      QVERIFY(text.find("\"gathered\":\"before-forward\"") != std::string::npos);
      QCOMPARE(text.find("\"rounded\":true") != std::string::npos, numbers == Numbers::rounded);
      const auto read = read_plan(nlohmann::json::parse(text), "plan", *scenario);
      QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
      for (std::size_t o = 0; o < plan.operators.size(); ++o)
        QVERIFY(read->operators[o].choice == plan.operators[o].choice);
      const auto refused = [&](std::string from, std::string to) {
        std::string other = text;
        for (std::size_t at = other.find(from); at != std::string::npos; at = other.find(from, at + to.size()))
          other.replace(at, from.size(), to);
        const auto made = read_plan(nlohmann::json::parse(other), "plan", *scenario);
        return made ? QString() : QString::fromStdString(made.error().message());
      };
      QVERIFY(refused("before-forward", "some-day").contains("'some-day' is not known"));
      QVERIFY(refused("\"weights\":\"replicated\"", "\"weights\":\"sharded\"").contains("gathered"));
      QVERIFY(!refused("\"tiles\":true", "\"tiles\":false").isEmpty());
      if (numbers != Numbers::rounded) continue;
      QVERIFY(!refused("\"rounded\":true", "\"rounded\":false").isEmpty());
      QVERIFY(refused("before-forward", "after-update").contains("is of weights that are gathered before forward"));
    }
  }
};

QTEST_APPLESS_MAIN(DataParallelUpdatesTest)
#include "data_parallel_updates_test.moc"
