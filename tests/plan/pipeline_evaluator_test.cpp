// SPDX-License-Identifier: Apache-2.0
// What the evaluator works out of a pipeline's plan alone, against what its method's own bookkeeping by layers says,
// and pipelines that cannot be carried out.
#include <QtTest>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "core/plan/evaluator.h"
#include "core/plan/reprice.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;
using nlohmann::json;

namespace {

/// Parts that differ; times to 1e-9 of the whole, of which waiting is what is left.
QString differences(const CostBreakdown& a, const CostBreakdown& b) {
  QString all;
  const double whole = std::max(a.time_s(), b.time_s());
  const auto near = [&](double x, double y) { return std::abs(x - y) <= 1e-9 * whole; };
  for (std::size_t i = 0; i < a.memory.size(); ++i)
    if (a.memory[i] != b.memory[i]) all += QString("memory %1: %2 %3; ").arg(i).arg(a.memory[i]).arg(b.memory[i]);
  for (std::size_t i = 0; i < a.compute.size(); ++i)
    if (!near(a.compute[i], b.compute[i]))
      all += QString("compute %1: %2 %3; ").arg(i).arg(a.compute[i]).arg(b.compute[i]);
  for (std::size_t i = 0; i < a.network.size(); ++i)
    if (!near(a.network[i], b.network[i]))
      all += QString("network %1: %2 %3; ").arg(i).arg(a.network[i]).arg(b.network[i]);
  return all;
}

bool same_times(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return test::close(x, y); });
}

Plan plan_of(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return (*result)->plans->sharding(0);
}

ModelPtr small_gpt(std::int64_t batch) { return builtin("gpt2?layers=4&hidden=256&sequence=32", batch); }

/// A pipeline of two stages on one node of eight, with what is broken about it.
struct Broken {
  const char* name;
  std::function<void(Plan&, const Model&)> breaks;
  const char* refusal;
};

const std::vector<Broken>& broken_pipelines() {
  static const std::vector<Broken> all{
      {"a stage too many", [](Plan& p, const Model&) { p.operators.back().stage = 2; }, "is on stage 2 of 2"},
      {"no stage", [](Plan& p, const Model&) { p.operators.back().stage = -1; }, "is on stage -1 of 2"},
      {"against the flow", [](Plan& p, const Model&) { p.operators.front().stage = 1; },
       "reads what a later stage makes"},
      {"a layer cut",
       [](Plan& p, const Model&) {
         p.pipeline->recompute = true;
         for (int& layer : p.pipeline->layer_of) layer = std::min(layer, 0);
       },
       "is on another stage than the rest"},
      {"split between stages",
       [](Plan& p, const Model& m) {
         for (PlanOperator& op : p.operators)
           if (!m.operators[op.op].dims.empty()) op.split.axis[0] = 0;
       },
       "reaches across the stages"},
      {"updates shared out between stages",
       [](Plan& p, const Model&) {
         for (PlanOperator& op : p.operators) op.choice.update = Update::sharded, op.choice.update_axes = 1;
       },
       "reaches across the stages"},
      {"a sum across stages",
       [](Plan& p, const Model&) {
         for (PlanOperator& op : p.operators)
           for (ParameterSteps& group : op.parameters)
             for (ReshardStep& step : group.sync) step.axes |= 1;
       },
       "reaches across the stages"},
      {"parts of no machine", [](Plan& p, const Model&) { p.pipeline->stages = 3; },
       "neither whole nodes nor equal parts"},
      {"a run of no stage", [](Plan& p, const Model&) { p.operators.back().chunk = 1; }, "is in run 1 of 1"},
      {"runs that do not go round",
       [](Plan& p, const Model&) { p.pipeline->chunks = 2, p.pipeline->micro_batches = 1; }, "do not go round"},
      {"a batch that is not divisible", [](Plan& p, const Model&) { p.pipeline->micro_batches = 7; },
       "cannot be cut into 7 micro-batches"},
      {"no micro-batches", [](Plan& p, const Model&) { p.pipeline->micro_batches = 0; },
       "without stages, micro-batches"},
      {"layers of another model", [](Plan& p, const Model&) { p.pipeline->layer_of.pop_back(); },
       "without stages, micro-batches or layers"},
      {"gradients that nobody sums",
       [](Plan& p, const Model&) {
         for (PlanOperator& op : p.operators)
           for (ParameterSteps& group : op.parameters) group.sync.clear();
       },
       "gradients are not summed"},
      {"a resharding gone", [](Plan& p, const Model&) { p.reshards.clear(); }, "resharding is missing"},
  };
  return all;
}

}  // namespace

class PipelineEvaluatorTest : public QObject {
  Q_OBJECT

 private slots:
  // By hand: the table of 50,257 words and 1,024 channels lies whole on both stages, on two devices each, on rings. The
  // copy of the last stage is summed among its two devices, between both stages, updated (28 bytes an element with Adam
  // in fp32) and, sharded, gathered: behind the update, or where the weights stay sharded once for the head's forward
  // and once for its backward, beside one gather for the table's own reader. With seven of eight layers the last stage
  // ends last, so that its times are told.
  void a_copy_is_paid_on_its_stage() {
    for (const int zero : {0, 1, 2, 3}) {
      const auto scenario = scenario_on(builtin("gpt2?layers=8&hidden=1024&sequence=4", 4), "v100-16gb-1x4",
                                        [](Settings& s) { s.collectives = Collectives::rings; });
      const std::string text = "manual:dp=2:pp=2:cut=time:micro-batches=2:zero=" + std::to_string(zero);
      const auto result = run(text, scenario);
      QVERIFY2(result.has_value(), text.c_str());
      Plan plan = (*result)->plans->sharding(0);
      for (PlanOperator& op : plan.operators)
        if (const std::string& name = scenario->model->operators[op.op].name;
            name.starts_with("layer") && !name.starts_with("layer0/"))
          op.stage = 1;
      const auto made = evaluate_pipeline(*scenario, plan);
      QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
      QCOMPARE(made->tied.size(), std::size_t(1));
      const auto& tie = made->tied[0];
      const LinkLevel& link = scenario->cluster->links[kIntraNode];
      const DeviceType& device = scenario->cluster->device;
      // Shards of weights are whole rows, of which 50,258 are even.
      const double elements = 50257.0 * 1024, shards = zero == 3 ? elements + 1024 : elements;
      const double whole = link.latency_s + elements * 4 / 2 / link.bandwidth,
                   once = link.latency_s + shards * 4 / 2 / link.bandwidth;
      QVERIFY(test::close(tie.time_s, 2 * whole));
      QCOMPARE(tie.sync.size(), std::size_t(1));
      QVERIFY2(test::close(tie.sync[0].time_s, zero ? once : 2 * once), text.c_str());
      QCOMPARE(tie.sync[0].move, zero ? ReshardMove::reduce_scatter : ReshardMove::all_reduce);
      QCOMPARE(tie.spread.size(), std::size_t(zero == 1 || zero == 2 ? 1 : 0));
      for (const ReshardStep& step : tie.spread) QVERIFY(test::close(step.time_s, once));
      QCOMPARE(tie.gather.size(), std::size_t(zero == 3 ? 2 : 0));
      for (const ReshardStep& step : tie.gather)
        QVERIFY(step.move == ReshardMove::all_gather && step.axes == 2u && test::close(step.time_s, once));
      const auto& own = plan.operators[tie.owner_op.index].parameters;
      QCOMPARE(own.size(), std::size_t(1));
      QCOMPARE(own[0].gather.size(), std::size_t(zero == 3 ? 1 : 0));
      QCOMPARE(tie.parameter_bytes, std::int64_t(shards) * 4 / (zero == 3 ? 2 : 1));
      const double update =
          shards / (zero ? 2 : 1) * 28 / (device.memory_bandwidth * device.memory_efficiency) + device.launch_s;
      QVERIFY2(test::close(tie.update_s, update), text.c_str());
      // The axis between the stages is the machine's first.
      QCOMPARE(plan.mesh.axes.size(), std::size_t(2));
      QCOMPARE(tie.sync[0].axes, 2u);
      if (zero > 1) continue;  // where every micro-batch scatters, the first stage ends last all the same
      double updates = update, reduce = 0, scatter = 0, gather = zero ? once : 0;
      (zero ? scatter : reduce) += tie.sync[0].time_s;
      for (PlanOperator op : plan.operators) {
        if (op.stage != 1) continue;
        updates += op.cost[ComputePart::update];
        for (const ParameterSteps& group : op.parameters) {
          for (const ReshardStep& step : group.sync)
            (step.move == ReshardMove::all_reduce ? reduce : scatter) += step.time_s;
          for (const ReshardStep& step : group.spread) gather += step.time_s;
        }
      }
      CostBreakdown cost = made->cost;
      QVERIFY2(test::close(cost[ComputePart::update], updates), text.c_str());
      QVERIFY2(test::close(cost[NetworkPart::all_reduce], reduce + tie.time_s), text.c_str());
      QVERIFY2(test::close(cost[NetworkPart::reduce_scatter], scatter), text.c_str());
      QVERIFY2(test::close(cost[NetworkPart::all_gather], gather), text.c_str());
    }
  }

  // By hand, of one micro-batch: it goes through both stages and back, each pass with its gathers, those of the copy
  // among them on the last stage; gradients are scattered in backward; the first stage then sums the table's gradient
  // with the last one and updates. An owner that gathers for the other stage's reader, too, is refused.
  void gathers_of_a_copy_take_time_on_its_stage() {
    const auto scenario = scenario_on(builtin("gpt2?layers=8&hidden=1024&sequence=4", 4), "v100-16gb-1x4",
                                      [](Settings& s) { s.collectives = Collectives::rings; });
    Plan plan = plan_of("manual:dp=2:pp=2:micro-batches=1:zero=3", scenario);
    const auto made = evaluate_pipeline(*scenario, plan);
    QVERIFY(made.has_value());
    const auto& tie = made->tied.at(0);
    double expected = made->send_s[0] + made->send_back_s[0] + tie.time_s;
    for (const auto* steps : {&tie.gather, &tie.sync})
      for (const ReshardStep& step : *steps) expected += step.time_s;
    for (const PlanReshard& reshard : plan.reshards) expected += reshard.time_s();
    for (PlanOperator op : plan.operators) {
      expected += op.cost[ComputePart::forward] + op.cost[ComputePart::backward];
      if (op.stage == 0) expected += op.cost[ComputePart::update];
      for (const ReshardStep& step : all_steps(op.parameters)) expected += step.time_s;
    }
    QVERIFY2(test::close(made->cost.time_s(), expected),
             qPrintable(QString("%1 %2").arg(made->cost.time_s()).arg(expected)));
    auto& own = plan.operators[tie.owner_op.index].parameters[0].gather;
    own.push_back(own.front());
    QVERIFY(!evaluate_pipeline(*scenario, plan));
  }

  // By hand: both norms of the copy are summed over its two shards, as a part of the message that carries those of all
  // matrices; vectors have none. A whole update of it sums nothing.
  void a_copy_sums_norms_over_its_shards() {
    for (const int zero : {0, 1, 3}) {
      const auto with = [&](Optimizer optimizer) {
        return scenario_on(builtin("gpt2?layers=8&hidden=1024&sequence=4", 4), "v100-16gb-1x4", [&](Settings& s) {
          s.collectives = Collectives::rings;
          s.optimizer = optimizer;
        });
      };
      const std::string text = "manual:dp=2:pp=2:micro-batches=2:zero=" + std::to_string(zero);
      const auto lamb = with(Optimizer::lamb), adam = with(Optimizer::adam);
      const auto tied = [&](const ScenarioPtr& scenario) {
        const auto made = evaluate_pipeline(*scenario, plan_of(text, scenario));
        return made ? made->tied.at(0).update_s : -1;
      };
      double matrices = 0;
      for (const Tensor& tensor : lamb->model->tensors)
        matrices += tensor.role == TensorRole::parameter && tensor.shape.size() >= 2 && !tensor.tied_to.valid();
      const LinkLevel& link = lamb->cluster->links[kIntraNode];
      const double message = 2 * (link.latency_s + matrices * 2 * 4 / 2 / link.bandwidth);
      QVERIFY(matrices > 30 && tied(adam) > 0);
      QVERIFY2(test::close(tied(lamb) - tied(adam), zero ? message / matrices : 0),
               qPrintable(QString("%1 %2").arg(tied(lamb) - tied(adam)).arg(message / matrices)));
    }
  }

  // Oracle: core/search/baselines/pipeline, which sums by layer what its method's plan says of itself. Random splits of
  // five kinds of transformer, on nodes and parts of nodes.
  void agrees_with_the_method() {
    std::mt19937 random(5);
    int pipelines = 0, reruns = 0, tied = 0, sharded = 0, interleaved = 0, copies = 0, first = 0, beside = 0;
    for (const auto& [name, batch] :
         {std::pair("gpt2?layers=4&hidden=128&sequence=32", 64), std::pair("llama-2-7b?layers=4&sequence=32", 64),
          std::pair("transformer?layers=2&sequence=32", 32), std::pair("bert-large?layers=4&sequence=32", 32),
          std::pair("mixtral-8x7b?layers=2&sequence=32", 32)}) {
      const ModelPtr model = builtin(name, batch);
      for (const char* hardware : {"v100-16gb-1x8", "v100-16gb-2x4", "h100-80gb-4x2"}) {
        const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
          if (random() % 2) s.precision = Precision::bf16;
          if (random() % 3 == 0) s.gradients = Gradients::fp32;
          if (random() % 3 == 0) s.accounting = Accounting::paper;
        });
        for (int trial = 0; trial < 26; ++trial) {
          const auto pick = [&](std::initializer_list<const char*> from) {
            return std::string(*(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size())));
          };
          const std::string text =
              "manual:tp=" + pick({"1", "2", "4"}) + ":pp=" + pick({"1", "2", "2", "4"}) +
              ":micro-batches=" + pick({"1", "2", "4"}) + ":zero=" + pick({"0", "1", "2", "3", "3"}) +
              pick({"", "", ":recompute", ":recompute=selective"}) +
              pick({"", ":sequence-parallel", ":sequence-parallel:tp-comm-overlap"}) +
              pick({"", "", ":vp=2", ":cut=time"}) + pick({"", "", ":schedule=gpipe"}) + pick({"", "", ":reduce-last"});
          const auto result = run(text, scenario);
          if (!result) continue;
          const Plan plan = (*result)->plans->sharding(0);
          if (!plan.pipeline) continue;
          const std::string what = std::string(name) + " on " + hardware + ", " + text;
          const auto made = evaluate_pipeline(*scenario, plan);
          QVERIFY2(made.has_value(), (what + ": " + (made ? "" : made.error().message())).c_str());
          const QString differs = differences(plan.cost, made->cost);
          QVERIFY2(differs.isEmpty(), qPrintable(QString::fromStdString(what) + ": " + differs));
          const PlanPipeline& pipeline = *plan.pipeline;
          QCOMPARE(made->stage_memory_bytes, pipeline.stage_memory_bytes);
          QVERIFY2(same_times(made->send_s, pipeline.send_s) && same_times(made->send_back_s, pipeline.send_back_s),
                   what.c_str());
          QVERIFY2(std::abs(made->bubble_s - pipeline.bubble_s) <= 1e-9 * plan.cost.time_s(), what.c_str());
          QCOMPARE(made->tied.size(), pipeline.tied.size());
          for (std::size_t t = 0; t < made->tied.size(); ++t) {
            QVERIFY2(test::close(made->tied[t].time_s, pipeline.tied[t].time_s), what.c_str());
            QCOMPARE(made->tied[t].optimizer_bytes, pipeline.tied[t].optimizer_bytes);
            QCOMPARE(made->tied[t].gradient_bytes, pipeline.tied[t].gradient_bytes);
            QVERIFY2(test::close(made->tied[t].update_s, pipeline.tied[t].update_s), what.c_str());
            QCOMPARE(made->tied[t].gather.size(), pipeline.tied[t].gather.size());
            copies += !pipeline.tied[t].gather.empty();
            QCOMPARE(made->tied[t].sync.size(), pipeline.tied[t].sync.size());
            for (std::size_t i = 0; i < made->tied[t].sync.size(); ++i)
              QCOMPARE(made->tied[t].sync[i].axes, pipeline.tied[t].sync[i].axes);
          }
          const auto read = read_plan(json::parse(write_plan(*scenario, plan).dump()), "p.json", *scenario);
          QVERIFY2(read.has_value(), (what + ": " + (read ? "" : read.error().message())).c_str());
          QVERIFY2(write_plan(*scenario, *read) == write_plan(*scenario, plan), what.c_str());
          ++pipelines, reruns += pipeline.recompute, tied += !pipeline.tied.empty();
          sharded += text.find("zero=3") != std::string::npos, interleaved += pipeline.chunks > 1;
          first += pipeline.forwards_first, beside += pipeline.beside_products;
        }
      }
    }
    qInfo("%d pipelines: %d run layers again, %d have tied weights, %d shard their weights, %d interleave", pipelines,
          reruns, tied, sharded, interleaved);
    QVERIFY(pipelines > 80 && reruns > 25 && tied > 10 && sharded > 15 && interleaved > 10 && copies > 5);
    QVERIFY2(first > 10 && beside > 10, qPrintable(QString("%1 %2").arg(first).arg(beside)));
  }

  // One stage, one micro-batch, nothing computed again: a sharding plan, priced by the sum alone.
  void one_stage_is_a_sharding_plan() {
    const auto scenario = scenario_on(small_gpt(16), "v100-16gb-2x4");
    for (const char* method : {"manual:dp=8", "manual:tp=4", "manual:dp=4:tp=2:zero=3", "ft:micro-batches=1"}) {
      Plan plan = plan_of(method, scenario);
      const auto sum = evaluate_plan(*scenario, plan);
      QVERIFY(sum.has_value());
      plan.pipeline = PlanPipeline{};
      plan.pipeline->layer_of.assign(plan.operators.size(), -1);
      const auto laid_out = evaluate_plan(*scenario, plan);
      QVERIFY2(laid_out.has_value(), laid_out ? "" : laid_out.error().message().c_str());
      QCOMPARE(differences(*sum, *laid_out), QString());
    }
  }

  void broken_pipelines_are_refused_data() {
    QTest::addColumn<int>("number");
    for (std::size_t i = 0; i < broken_pipelines().size(); ++i) QTest::newRow(broken_pipelines()[i].name) << int(i);
  }
  void broken_pipelines_are_refused() {
    QFETCH(int, number);
    const Broken& broken = broken_pipelines()[std::size_t(number)];
    const auto scenario = scenario_on(small_gpt(16), "v100-16gb-1x8");
    Plan plan = plan_of("manual:dp=2:tp=2:pp=2:micro-batches=4", scenario);
    QVERIFY(evaluate_plan(*scenario, plan).has_value());
    broken.breaks(plan, *scenario->model);
    const auto cost = evaluate_plan(*scenario, plan);
    QVERIFY(!cost.has_value());
    QVERIFY2(QString::fromStdString(cost.error().message()).contains(broken.refusal), cost.error().message().c_str());
  }

  // On faster links everything that crosses them is cheaper, and priced as a plan that was searched there.
  void is_priced_again_on_other_links() {
    const auto scenario = scenario_on(small_gpt(16), "v100-16gb-2x4");
    const char* const text = "manual:dp=2:tp=2:pp=2:micro-batches=2:zero=1";
    const Plan plan = plan_of(text, scenario);
    const auto faster = scenario_on(small_gpt(16), "v100-16gb-2x4", [](Settings& s) { s.factors.inter_bandwidth = 3; });
    const auto priced = repriced(*faster, plan);
    QVERIFY2(priced.has_value(), priced ? "" : priced.error().message().c_str());
    const Plan there = plan_of(text, faster);
    QCOMPARE(differences(priced->cost, there.cost), QString());
    QVERIFY(same_times(priced->pipeline->send_s, there.pipeline->send_s));
    QVERIFY(priced->pipeline->send_s[0] < plan.pipeline->send_s[0]);
    for (std::size_t i = 0; i < there.operators.size(); ++i) {
      QCOMPARE(differences(priced->operators[i].cost, there.operators[i].cost), QString());
      QCOMPARE(priced->operators[i].stage, there.operators[i].stage);
    }
    for (std::size_t r = 0; r < there.reshards.size(); ++r)
      QCOMPARE(differences(priced->reshards[r].cost, there.reshards[r].cost), QString());
  }
};

QTEST_GUILESS_MAIN(PipelineEvaluatorTest)
#include "pipeline_evaluator_test.moc"
