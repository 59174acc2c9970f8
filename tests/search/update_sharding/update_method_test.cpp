// SPDX-License-Identifier: Apache-2.0
// Update sharding as a method: plans cost what the evaluator says, are no slower than data parallelism and need no more
// memory, and leave whole what readers need whole at every step.
#include <QRegularExpression>
#include <QtTest>
#include <random>
#include <set>

#include "core/base/text.h"
#include "core/model/shard_format.h"
#include "core/plan/evaluator.h"
#include "core/search/update_sharding/planned_updates.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

int sharded_operators(const Plan& plan) {
  int count = 0;
  for (const auto& op : plan.operators) count += op.choice.update == Update::sharded;
  return count;
}

/// So that a scatter and a gather take little more than an all-reduce, and sharding an update pays.
void faster_links(Settings& s) { s.factors.intra_bandwidth = 2; }

}  // namespace

class UpdateMethodTest : public QObject {
  Q_OBJECT

 private slots:
  void never_worse_than_data_parallel() {
    int gains = 0, plans = 0, turn = 0;
    for (const auto& [name, model] : {std::pair<std::string, ModelPtr>{"alexnet", builtin("alexnet", 256)},
                                      {"resnet50", builtin("resnet50", 256)},
                                      {"gpt2", builtin("gpt2?layers=3&sequence=128", 256)},
                                      {"lenet", builtin("lenet", 256)},
                                      {"attention", attention(256)}})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-2x8", "h100-80gb-16x8", "tpu-v3-16x2"})
        for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::lamb})
          for (const Precision precision : {Precision::fp32, Precision::bf16}) {
            if (++turn % 3 == 0) continue;  // two of three, so that each value meets each other one
            const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
              s.optimizer = optimizer;
              s.precision = precision;
            });
            const std::string what = name + " on " + hardware + ", " + to_string(optimizer);
            const ResultPoint whole = answer_of("data-parallel", scenario)->points.front();
            const ResultPtr result = answer_of("update-sharding", scenario);
            const ResultPoint& point = result->points.front();
            // A tied table's gradient travels in as few collectives as will do, which may cost a little more.
            QVERIFY2(point.time_s <= whole.time_s * 1.002 && point.memory_bytes <= whole.memory_bytes, what.c_str());
            gains += point.time_s < whole.time_s * 0.999;
            const auto cost = evaluate_plan(*scenario, result->plans->sharding(0));
            QVERIFY2(cost && cost->memory_bytes() == point.memory_bytes && close(cost->time_s(), point.time_s),
                     (what + (cost ? "" : cost.error().message())).c_str());
            ++plans;
          }
    QVERIFY2(gains > plans / 8, qPrintable(QString("%1 of %2 gain").arg(gains).arg(plans)));
  }

  // What is said of memory is what the plan holds: parameters, gradients and optimizer state of a replica.
  void what_a_replica_holds_is_told() {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const auto scenario = scenario_on(builtin("gpt2", 64), "tpu-v3-16x2", [&](Settings& s) {
        s.optimizer = Optimizer::adam;
        s.precision = precision;
      });
      const ResultPtr result = answer_of("update-sharding", scenario), whole = answer_of("data-parallel", scenario);
      const auto states = [](const ResultPtr& of) {
        CostBreakdown cost = of->plans->sharding(0).cost;
        return double(cost[MemoryPart::parameters] + cost[MemoryPart::gradients] + cost[MemoryPart::optimizer]);
      };
      const QString said = QString::fromStdString(result->explanations.front());
      const QRegularExpression figures(
          "One replica holds ([0-9.]+) ([MG])iB of weights, gradients and states in the training loop; unsharded it "
          "would hold ([0-9.]+) ([MG])iB");
      const auto found = figures.match(said);
      QVERIFY2(found.hasMatch(), qPrintable(said));
      const auto bytes = [&](int at) {
        return found.captured(at).toDouble() * (found.captured(at + 1) == "G" ? 1073741824.0 : 1048576.0);
      };
      QVERIFY2(std::abs(bytes(1) / states(result) - 1) < 0.06, qPrintable(said));
      QVERIFY2(std::abs(bytes(3) / states(whole) - 1) < 0.06, qPrintable(said));
      QVERIFY(said.contains("as in ZeRO's stage 2. ZeRO's stages 1, 2 and 3 over all replicas would hold"));
    }
  }

  // On another method's splits, too, stage by stage of ZeRO as `fsdp` has it; of a pipeline and of unlike devices what
  // the fullest device holds.
  void what_a_device_holds_is_told_on_other_splits() {
    const auto parts = [](CostBreakdown cost, bool gradients = true) {
      return format_bytes(cost[MemoryPart::parameters] + (gradients ? cost[MemoryPart::gradients] : 0) +
                          cost[MemoryPart::optimizer]);
    };
    const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=256&sequence=64", 64), "v100-16gb-2x4");
    const auto cost_of = [&](const std::string& method) {
      return answer_of(method, scenario)->plans->sharding(0).cost;
    };
    const ResultPtr result = answer_of("update-sharding:of=data-parallel", scenario);
    const CostBreakdown whole = cost_of("data-parallel");
    const std::string& said = result->explanations.front();
    const std::string figures = "One device holds " + parts(result->plans->sharding(0).cost) +
                                " of weights, gradients and states in the training loop; unsharded it would hold " +
                                parts(whole) + ". Where a checkpoint reads them whole, weights and states take " +
                                parts(whole, false) + ". ";
    QVERIFY2(said.find(figures) != std::string::npos, (said + '\n' + figures).c_str());
    const std::string stages = "ZeRO's stages 1, 2 and 3 over all replicas would hold " +
                               parts(cost_of("fsdp:zero=1")) + ", " + parts(cost_of("fsdp:zero=2")) + " and " +
                               parts(cost_of("fsdp:zero=3")) + '.';
    QVERIFY2(said.find(stages) != std::string::npos, (said + '\n' + stages).c_str());
    for (const char* of : {"manual:pp=2:dp=4:micro-batches=4", "accpar"}) {
      const auto here = of[0] == 'a' ? scenario_on(builtin("alexnet", 240), "v100-16gb-1x2+a100-40gb-1x2") : scenario;
      const ResultPtr made = answer_of(std::string("update-sharding:of=") + of, here);
      const AnyPlan any = made->plans->plan(0);
      const CostBreakdown cost = visit_plan(
          any, [](const Plan& plan) { return plan.cost; }, [](const RatioPlan& plan) { return plan.cost; },
          [](const PlacementPlan&) { return CostBreakdown(); });
      const std::string fullest = "The fullest device holds " + parts(cost) +
                                  " of weights, gradients and states in the training loop; with whole updates " +
                                  parts(*made->whole_updates) + ". Where a checkpoint reads them whole, weights and " +
                                  "states take " + parts(*made->whole_updates, false) +
                                  ". ZeRO's stages 1, 2 and 3 over all devices that hold the same of a weight would "
                                  "leave ";
      QVERIFY2(made->explanations.back().find(fullest) != std::string::npos,
               (made->explanations.back() + '\n' + fullest).c_str());
      // Of stages what the same split by hand holds with `zero`.
      if (of[0] == 'a') continue;
      const std::string by_hand = "leave " + parts(cost_of(std::string(of) + ":zero=1")) + ", " +
                                  parts(cost_of(std::string(of) + ":zero=2")) + " and " +
                                  parts(cost_of(std::string(of) + ":zero=3")) + " on the fullest one.";
      QVERIFY2(made->explanations.back().find(by_hand) != std::string::npos,
               (made->explanations.back() + '\n' + by_hand).c_str());
    }
  }

  // The splits are the other method's, every update what takes least there, and the whole is never slower.
  void updates_on_the_splits_of_another_method() {
    int sharded = 0;
    for (const auto& [name, model] : {std::pair<std::string, ModelPtr>{"alexnet", builtin("alexnet", 256)},
                                      {"gpt2", builtin("gpt2?layers=2&sequence=128", 256)},
                                      {"attention", attention(256)}})
      for (const char* hardware : {"v100-16gb-2x8", "a100-80gb-1x4"})
        for (const std::string of : {"optcnn", "data-parallel", "accpar", "megatron"}) {
          const auto scenario = scenario_on(model, hardware);
          const auto base = run(of, scenario);
          if (!base) continue;  // no attention
          const ResultPtr result = answer_of("update-sharding:of=" + of, scenario);
          const std::string what = name + " on " + hardware + " of " + of;
          const std::size_t at = (*base)->fastest_that_fits().value_or((*base)->points.size() - 1);
          const Plan given = (*base)->plans->sharding(at), made = result->plans->sharding(0);
          for (std::size_t o = 0; o < given.operators.size(); ++o)
            QVERIFY2(given.operators[o].split == made.operators[o].split, what.c_str());
          const ResultPoint& point = result->points.front();
          QVERIFY2(point.time_s <= (*base)->points[at].time_s * 1.002, what.c_str());
          const auto cost = evaluate_plan(*scenario, made);
          QVERIFY2(cost && cost->memory_bytes() == point.memory_bytes && close(cost->time_s(), point.time_s),
                   what.c_str());
          UpdateSeconds whole, chosen;
          for (const WeightUpdate& one : result->weights) {
            whole += one.whole, chosen += one.chosen, sharded += one.sharded();
            QVERIFY2(one.chosen.total() <= one.whole.total() * (1 + 1e-12) && !one.reason.empty(), what.c_str());
            QVERIFY2(one.shards <= one.replicas && one.replicas <= scenario->cluster->devices(), what.c_str());
          }
          QVERIFY2(!result->weights.empty() && result->explanations.front().find("'" + of + "'") != std::string::npos,
                   what.c_str());
        }
    QVERIFY(sharded > 20);
    // Weights are gathered as they are read, whatever their gradients are summed in.
    for (const Gradients gradients : {Gradients::as_weights, Gradients::fp32}) {
      const auto half = scenario_on(builtin("alexnet", 256), "v100-16gb-2x8", [&](Settings& s) {
        s.precision = Precision::bf16;
        s.gradients = gradients;
      });
      for (const char* method : {"update-sharding", "update-sharding:of=data-parallel"}) {
        const ResultPtr result = answer_of(method, half);
        for (const WeightUpdate& one : result->weights)
          QVERIFY2(!one.sharded() || (one.gather_bytes == 2 && one.reason.find("in bf16") != std::string::npos),
                   (method + one.weight + one.reason).c_str());
      }
    }
    // A checkpoint at every step gathers the state again.
    const auto scenario = scenario_on(builtin("alexnet", 256), "v100-16gb-2x8", faster_links);
    const auto shards = [&](const char* method) {
      return sharded_operators(answer_of(method, scenario)->plans->sharding(0));
    };
    QVERIFY(shards("update-sharding:of=data-parallel:checkpoint=1") < shards("update-sharding:of=data-parallel"));
    for (const char* bad : {"of=nothing", "of=pardnn", "of=update-sharding", "of=optcnn:every=3"}) {
      const auto searcher = make_searcher(**find_method("update-sharding"), bad);
      QVERIFY2(!searcher && searcher.error().code == ErrorCode::usage, bad);
    }
    // Parts of unlike size are no reason to refuse (ratio_plan_updates_test.cpp).
    for (const char* of : {"accpar", "hypar", "owt"})
      for (const char* hardware : {"v100-16gb-1x3", "v100-16gb-1x2+a100-40gb-1x2", "v100-16gb-1x4"})
        QCOMPARE(refusal_of(**find_method("update-sharding"), std::string("of=") + of,
                            *scenario_on(builtin("alexnet", 240), hardware)),
                 std::string());
  }

  // Weights are gathered in the precision in which they are read, by this method and in ft alike: in 16 bits where all
  // readers have 16, on whatever hardware, and whole where products are of whole numbers, on TPUs, too.
  void gathers_have_the_precision_of_readers() {
    std::mt19937 random(24);
    int sharded[2] = {}, machines = 0;
    for (int turn = 0; turn < 60; ++turn) {
      const char* const presets[] = {"tpu-v3-core-1x8", "tpu-v3-core-2x8", "v100-16gb-1x4", "h100-80gb-2x4"};
      const bool half = random() % 2;
      const auto scenario =
          scenario_on(random() % 2 ? attention(64) : mlp(64), presets[random() % 4], [&](Settings& s) {
            s.precision = half ? Precision::bf16 : Precision::fp32;
            s.gradients = random() % 2 ? Gradients::fp32 : Gradients::as_weights;
            s.optimizer = random() % 2 ? Optimizer::adam : Optimizer::momentum;
            s.factors.intra_bandwidth = std::pow(10.0, int(random() % 5) - 2);
            s.factors.device_speed = std::pow(10.0, int(random() % 3) - 2);
          });
      const int bytes = half ? 2 : 4;
      for (const char* method : {"update-sharding", "update-sharding:of=data-parallel"}) {
        const ResultPtr result = answer_of(method, scenario);
        for (const WeightUpdate& one : result->weights)
          QVERIFY2(!one.sharded() || one.gather_bytes == bytes, one.reason.c_str());
      }
      const ResultPtr found = answer_of("ft", scenario);
      for (std::size_t p = 0; p < found->points.size(); ++p) {
        const Plan plan = found->plans->sharding(p);
        for (const PlanOperator& op : plan.operators)
          for (const ParameterSteps& group : op.parameters) {
            const std::uint32_t shards = group.group.shards(op.choice);
            if (!shards) continue;
            double elements = 0;  // of this operator's own parameters in the group, on one device
            for (const std::uint32_t input : group.group.inputs) {
              const Access& access = scenario->model->operators[op.op].inputs[input];
              const Layout layout =
                  gradient_layout(scenario->model->operators[op.op], access, false, op.split, plan.mesh.count());
              elements += double(local_elements(plan.mesh, layout, scenario->model->tensors[access.tensor].shape));
            }
            const double size = plan.mesh.size_of(shards), received = elements * bytes * (size - 1) / size;
            for (const ParameterRole role : {ParameterRole::gather, ParameterRole::spread})
              for (const ReshardStep& step : group.steps(role)) {
                // A later gather leaves out what is read less often.
                if (role == ParameterRole::gather && group.group.inputs.size() > 1) continue;
                ++sharded[half];
                QVERIFY2(close(step.bytes, received), scenario->hardware.c_str());
              }
          }
      }
      ++machines;
    }
    qInfo("%d machines; %d gathers in fp32, %d in bf16", machines, sharded[0], sharded[1]);
    QVERIFY(sharded[0] > 100 && sharded[1] > 100);
  }

  // TPUs hold tensors in tiles, which shards leave whole; other memories have none.
  void padding_is_that_of_the_hardware_s_shards() {
    int padded = 0, sharded = 0, otherwise = 0;
    for (const auto& [hardware, layout] : {std::pair{"tpu-v3-core-16x8", ShardLayout::reshape_and_pad},
                                           std::pair{"v100-16gb-16x8", ShardLayout::flat}}) {
      // With so slow a memory an update is worth sharing out with padding, too.
      const auto scenario = scenario_on(builtin("gpt2?layers=4&sequence=128", 256), hardware,
                                        [](Settings& s) { s.factors.device_speed = 0.001; });
      const ResultPtr result = answer_of("update-sharding", scenario);
      for (const WeightUpdate& one : result->weights) {
        if (!one.sharded()) continue;
        const auto& tensors = scenario->model->tensors;
        std::size_t t = 0;
        while (tensors[TensorId(t)].name != one.weight) ++t;
        const auto format = shard_format(tensors[TensorId(t)].shape, one.shards, layout);
        QVERIFY2(format && close(one.padding, format->padding()), one.weight.c_str());
        ++sharded;
        padded += one.padding > 0;
        const bool flat = layout == ShardLayout::flat;
        const auto other = shard_format(tensors[TensorId(t)].shape, one.shards,
                                        flat ? ShardLayout::reshape_and_pad : ShardLayout::flat);
        otherwise += other && !close(one.padding, other->padding());
      }
    }
    qInfo("%d of %d weights are padded, %d would be padded otherwise on other hardware", padded, sharded, otherwise);
    QVERIFY(sharded > 100 && otherwise > 0);
  }

  // What the plan does beyond the scenario's switches is said once, of splits and updates together; whatever else the
  // other method notes is said as it says it.
  void notes_of_the_other_method_are_told_once() {
    const auto scenario = scenario_on(builtin("gpt2?layers=2&sequence=128", 240), "v100-16gb-2x8", [](Settings& s) {
      s.recompute = s.update_sharding = false;
      s.precision = Precision::bf16;
    });
    for (const std::string of : {"megatron:recompute", "manual:tp=2:recompute", "accpar:recompute", "data-parallel",
                                 "manual:dp=16:recompute=selective"}) {
      const ResultPtr other = answer_of(of, scenario), result = answer_of("update-sharding:of=" + of, scenario);
      int beyond = 0;
      for (const std::string& note : result->notes) {
        QVERIFY2(std::count(result->notes.begin(), result->notes.end(), note) == 1, (of + ": " + note).c_str());
        beyond += note.find("which this scenario switches off") != std::string::npos;
      }
      QVERIFY2(beyond == 1, of.c_str());
      for (const std::string& note : other->notes)
        QVERIFY2(note.find("which this scenario switches off") != std::string::npos ||
                     std::count(result->notes.begin(), result->notes.end(), note) == 1,
                 (of + ": " + note).c_str());
    }
  }

  // What boxes and lists offer behind "of=" is what the method takes, in the order of the registry.
  void splits_on_offer_are_those_of_others() {
    const Method& method = **find_method("update-sharding");
    const OptionRecord& of = method.options.front();
    QCOMPARE(std::string(of.key), std::string("of"));
    std::vector<std::string> names;
    for (const auto name : of.choices) names.emplace_back(name);
    QCOMPARE(names.front(), std::string("none"));
    for (const char* there : {"ft", "data-parallel", "optcnn", "megatron", "manual", "accpar", "owt"})
      QVERIFY2(std::count(names.begin(), names.end(), there) == 1, there);
    for (const char* absent : {"fsdp", "update-sharding", "pardnn"})
      QVERIFY2(std::count(names.begin(), names.end(), absent) == 0, absent);
    const auto scenario = scenario_on(builtin("alexnet", 256), "v100-16gb-2x8");
    for (const std::string& name : names) {
      const auto searcher = make_searcher(method, "of=" + name + ":checkpoint=10");
      QVERIFY2(searcher.has_value(), name.c_str());
      // What the other cannot split, nobody shards updates on.
      const std::string refused = refusal_of(method, "of=" + name, *scenario);
      QVERIFY2(refused == (name == "none" ? std::string() : refusal_of(**find_method(name), "", *scenario)),
               name.c_str());
    }
    const ResultPtr plain = answer_of("update-sharding", scenario),
                    none = answer_of("update-sharding:of=none", scenario);
    QCOMPARE(none->points.front().time_s, plain->points.front().time_s);
    QVERIFY(none->weights.size() == plain->weights.size() && none->explanations == plain->explanations);
  }

  // Of 24 and of 2 x 12 replicas every divisor is looked at: with updates shared out among the devices of any other set
  // of axes the evaluator finds no shorter step.
  void the_best_of_all_divisors_is_found() {
    std::set<int> found;
    for (const char* hardware : {"v100-16gb-1x24", "v100-16gb-2x12", "v100-16gb-3x8", "tpu-v3-core-3x8"})
      for (const double speed : {0.05, 0.3, 1.0})
        for (const double latency : {0.01, 1.0, 30.0}) {
          const auto scenario = scenario_on(builtin("alexnet", 96), hardware, [&](Settings& s) {
            s.optimizer = Optimizer::adam;
            s.factors.device_speed = speed;
            s.factors.latency = latency;
          });
          const ResultPtr result = answer_of("update-sharding", scenario);
          const Plan plan = result->plans->sharding(0);
          for (const WeightUpdate& one : result->weights) found.insert(one.shards);
          for (std::uint32_t axes = 0; axes < 1u << plan.mesh.count(); ++axes) {
            std::vector<MemoryChoice> choices;
            for (const PlanOperator& op : plan.operators) {
              choices.push_back(op.choice);
              choices.back().update = axes ? Update::sharded : Update::replicated;
              choices.back().update_axes = axes;
            }
            const auto other = evaluate_plan(*scenario, update_sharding::with_choices(*scenario, plan, choices));
            QVERIFY(other.has_value());
            QVERIFY2(other->time_s() >= plan.cost.time_s() * (1 - 1e-4),
                     qPrintable(QString("%1 at speed %2 and latency %3: %4 s over axes %5 instead of %6 s")
                                    .arg(hardware)
                                    .arg(speed)
                                    .arg(latency)
                                    .arg(other->time_s())
                                    .arg(axes)
                                    .arg(plan.cost.time_s())));
          }
        }
    QString all;
    for (const int shards : found) all += QString(" %1").arg(shards);
    qInfo("weights over%s", qPrintable(all));
    QVERIFY2(found.contains(2) || found.contains(4) || found.contains(8), qPrintable(all));
  }

  // What sharding is compared with is the same plan with whole updates: data parallelism, or the other method's own.
  void the_step_with_whole_updates_is_the_plan_before() {
    const auto same = [](const ResultPtr& result, const ResultPtr& whole) {
      CostBreakdown before = *result->whole_updates, own = whole->plans->sharding(0).cost;
      for (std::size_t i = 0; i < before.compute.size(); ++i)
        if (!close(before.compute[i], own.compute[i])) return false;
      for (std::size_t i = 0; i < before.network.size(); ++i)
        if (!close(before.network[i], own.network[i])) return false;
      return before.memory == own.memory;
    };
    for (const char* hardware : {"v100-16gb-2x8", "tpu-v3-core-4x8"})
      for (const char* name : {"alexnet", "resnet50", "gpt2?layers=2&sequence=128"}) {
        const auto scenario = scenario_on(builtin(name, 256), hardware);
        const ResultPtr whole = answer_of("data-parallel", scenario);
        for (const char* method : {"update-sharding", "update-sharding:checkpoint=10"}) {
          const ResultPtr result = answer_of(method, scenario);
          QVERIFY2(result->whole_updates && result->whole_updates->time_s() >= result->points.front().time_s * 0.998,
                   name);
          // A tied table is summed in as few collectives as will do; where it is summed otherwise the step may differ.
          if (std::string(name).starts_with("gpt2")) continue;
          QVERIFY2(same(result, whole), (std::string(name) + " on " + hardware).c_str());
        }
        for (const std::string of : {"data-parallel", "accpar", "manual:tp=2", "manual:pp=2:micro-batches=4"}) {
          const auto base = run(of, scenario);
          if (!base) continue;  // no layers to be cut into stages
          QVERIFY2(same(answer_of("update-sharding:of=" + of, scenario), *base), (of + " of " + name).c_str());
        }
      }
  }

  // A checkpoint at every step reads weights and moments whole; one in a thousand is worth its gather.
  void what_the_loop_reads_decides() {
    const auto scenario = scenario_on(builtin("alexnet", 256), "v100-16gb-2x8", faster_links);
    const ResultPtr every = answer_of("update-sharding:checkpoint=1", scenario),
                    rarely = answer_of("update-sharding:checkpoint=1000", scenario),
                    never = answer_of("update-sharding", scenario);
    QCOMPARE(sharded_operators(every->plans->sharding(0)), 0);
    QVERIFY(every->points == answer_of("data-parallel", scenario)->points);
    QVERIFY(sharded_operators(rarely->plans->sharding(0)) > 0);
    QVERIFY(rarely->points == never->points);
    // The scenario says the same, unless the method's own parameter says otherwise.
    const auto set = scenario_on(builtin("alexnet", 256), "v100-16gb-2x8", [](Settings& s) {
      faster_links(s);
      s.checkpoint_every = 1;
    });
    QVERIFY(answer_of("update-sharding", set)->points == every->points);
    for (const char* text :
         {"update-sharding:checkpoint=1000", "update-sharding:checkpoint=never", "update-sharding:checkpoint=0"})
      QVERIFY2(answer_of(text, set)->points == rarely->points, text);
    QVERIFY(answer_of("update-sharding:of=data-parallel:checkpoint=0", set)->points ==
            answer_of("update-sharding:of=data-parallel", scenario)->points);
    QCOMPARE(sharded_operators(answer_of("update-sharding:of=data-parallel", set)->plans->sharding(0)), 0);
    const std::string said = every->explanations.back();
    QVERIFY2(said.find("The update of 0 of 16 weights is sharded. ") == 0 &&
                 said.find("because 'checkpoint' hands it to the host") != std::string::npos,
             said.c_str());
    QVERIFY(never->explanations.back().find("'classifier/fc1.weight' is sharded over 8 of 16 replicas") !=
            std::string::npos);
  }

  // Over two and four it would pay, too, but less.
  void the_least_time_decides_over_how_many() {
    const ResultPtr result =
        answer_of("update-sharding", scenario_on(builtin("alexnet", 256), "v100-16gb-1x8", faster_links));
    // Every weight says how, what that takes and why.
    QCOMPARE(result->weights.size(), std::size_t(16));
    int sharded = 0;
    for (const WeightUpdate& one : result->weights) {
      sharded += one.sharded();
      QVERIFY(!one.reason.empty() && one.replicas == result->scenario->cluster->devices());
      const bool follows = one.reason.find("as an operator updates its weights together") != std::string::npos;
      QVERIFY((follows || one.chosen.total() <= one.whole.total() * (1 + 1e-12)) && one.whole.total() > 0);
      QVERIFY(one.sharded() || one.chosen == one.whole);
    }
    QVERIFY(sharded > 0);
    QVERIFY2(result->explanations.back().find("'classifier/fc1.weight' is sharded over 8: ") != std::string::npos,
             result->explanations.back().c_str());
    const Model& model = *result->scenario->model;
    int found = 0;
    for (const auto& op : result->plans->sharding(0).operators)
      found += model.operators[op.op].name == "classifier/fc1" && op.choice.update_axes == 7u;
    QCOMPARE(found, 1);
  }

  void one_device_has_nothing_to_share() {
    const auto scenario = scenario_on(builtin("lenet", 32), "v100-16gb-1x1");
    QVERIFY(answer_of("update-sharding", scenario)->points == answer_of("data-parallel", scenario)->points);
  }

  void bad_parameters() {
    const Method& method = **find_method("update-sharding");
    for (const char* text : {"checkpoint=-1", "checkpoint=often"})
      QVERIFY2(!make_searcher(method, text).has_value(), text);
  }
};

QTEST_APPLESS_MAIN(UpdateMethodTest)
#include "update_method_test.moc"
