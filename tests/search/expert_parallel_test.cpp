// SPDX-License-Identifier: Apache-2.0
// Expert parallelism as it is typed: all-to-all bytes, weights and the sums of their gradients by hand, which operators
// work expert by expert, and refusals.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/search/baselines/expert_loops.h"
#include "search/grouped_plans.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kMixtral = "mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=64";

/// The resharding of what this operator makes; `to` invalid: of all its readers together.
const PlanReshard& way_of(const Plan& plan, OperatorId from, OperatorId to) {
  for (const PlanReshard& reshard : plan.reshards)
    if (reshard.producer == from && reshard.consumer == to) return reshard;
  qFatal("no such resharding");
}

}  // namespace

class ExpertParallelTest : public QObject {
  Q_OBJECT

 private slots:
  // 32 samples on 16 devices, two each; 64 positions of 2 experts of 8: 16 slots an expert; of 1024 channels in two
  // bytes. Axes: the node, then three of the devices of a node, which have one expert each.
  void tokens_travel_by_all_to_all() {
    const auto scenario = bf16_on(kMixtral, 32, "h100-80gb-2x8");
    const Model& model = *scenario->model;
    const Plan plan = plan_of("manual:ep=8", scenario);
    const double bytes = 2.0 * 8 * 16 * 1024 * 2 * 7 / 8;
    const std::map<ReshardMove, double> once{{ReshardMove::all_to_all, bytes}};
    for (const std::string layer : {"layer0", "layer1"}) {
      const PlanReshard& there = way_of(plan, named(model, layer + "/mlp/dispatch"), {});
      const PlanReshard& back =
          way_of(plan, named(model, layer + "/mlp/experts_down"), named(model, layer + "/mlp/combine"));
      for (const PlanReshard* way : {&there, &back}) {
        QCOMPARE(received(way->forward), once);
        QCOMPARE(received(way->gradient), once);
        QCOMPARE(way->forward.front().axes, 14u);
      }
    }
    // Nothing else moves but gradients.
    for (const PlanReshard& reshard : plan.reshards)
      QVERIFY(model.operators[reshard.producer].name.find("/mlp/") != std::string::npos);
    QVERIFY(close(plan.cost.network[std::size_t(NetworkPart::all_to_all)], [&] {
      double sum = 0;
      for (const PlanReshard& reshard : plan.reshards) sum += reshard.time_s();
      return sum;
    }()));
  }

  // An expert's matrices lie on one device of each node, and their gradients are summed between nodes alone; all else
  // is as it was.
  void weights_of_experts_lie_on_few_devices() {
    const auto scenario = bf16_on(kMixtral, 32, "h100-80gb-2x8");
    const Model& model = *scenario->model;
    const Plan plan = plan_of("manual:ep=8", scenario), before = plan_of("manual", scenario);
    int experts = 0, others = 0;
    for (std::size_t i = 0; i < plan.operators.size(); ++i) {
      const PlanOperator &planned = plan.operators[i], &plain = before.operators[i];
      const Operator& op = model.operators[planned.op];
      CostBreakdown cost = planned.cost, whole = plain.cost;
      if (op.name.find("/mlp/experts_") == std::string::npos || planned.parameters.empty()) {
        if (op.name.find("/experts_") != std::string::npos) continue;
        QCOMPARE(planned.split, plain.split);
        ++others;
        continue;
      }
      ++experts;
      QCOMPARE(cost[MemoryPart::parameters], whole[MemoryPart::parameters] / 8);
      QCOMPARE(cost[MemoryPart::optimizer], whole[MemoryPart::optimizer] / 8);
      QCOMPARE(planned.parameters.size(), std::size_t(1));
      QCOMPARE(planned.parameters.front().group.partial, 1u);
      QCOMPARE(axes_of(planned, loop_of(op, DimName::expert)), 14u);
      QCOMPARE(axes_of(planned, loop_of(op, DimName::batch)), 1u);
      // One expert's matrix, summed by two devices in four bytes (or two, as the scenario has it): half of it twice.
      const double sent = received(planned.parameters.front().sync).at(ReshardMove::all_reduce);
      QVERIFY(close(sent, 1024.0 * 256 * parameter_bytes(scenario->settings, Accounting::full).gradient));
    }
    QVERIFY(experts == 6 && others > 20);
  }

  // Groups of four, and two devices share each expert's channels.
  void tensor_groups_split_each_expert() {
    const auto scenario = bf16_on(kMixtral, 32, "h100-80gb-1x8");
    const Model& model = *scenario->model;
    const Plan plan = plan_of("manual:tp=2:ep=4", scenario);
    const PlanOperator &up = plan.operators[named(model, "layer0/mlp/experts_up").index],
                       &down = plan.operators[named(model, "layer0/mlp/experts_down").index];
    for (const PlanOperator* op : {&up, &down}) {
      const Operator& what = model.operators[op->op];
      QCOMPARE(axes_of(*op, loop_of(what, DimName::expert)), 3u);
      CostBreakdown cost = op->cost;
      QCOMPARE(cost[MemoryPart::parameters],
               std::int64_t(8 / 4) * 1024 * 256 / 2 * parameter_bytes(scenario->settings, Accounting::full).weight);
    }
    QCOMPARE(axes_of(up, loop_of(model.operators[up.op], DimName::out_channel)), 4u);
    QCOMPARE(axes_of(down, loop_of(model.operators[down.op], DimName::in_channel)), 4u);
  }

  // A shard of an expert's update is among those that hold it.
  void zero_shards_experts_among_their_holders() {
    const auto scenario = bf16_on(kMixtral, 32, "h100-80gb-2x8");
    const Plan plan = plan_of("manual:ep=8:zero=1", scenario), whole = plan_of("manual:ep=8", scenario);
    const auto optimizer = [&](const Plan& of, const char* name) {
      CostBreakdown cost = of.operators[named(*scenario->model, name).index].cost;
      return double(cost[MemoryPart::optimizer]);
    };
    QVERIFY(close(optimizer(plan, "layer0/mlp/experts_up"), optimizer(whole, "layer0/mlp/experts_up") / 2));
    QVERIFY(close(optimizer(plan, "layer0/attention/q"), optimizer(whole, "layer0/attention/q") / 16));
  }

  // With one sample a replica a context group gathers the tokens, 64 of 1024 channels of which it lacks half, and sums
  // what its experts made.
  void context_groups_gather_for_their_experts() {
    const auto scenario = bf16_on(kMixtral, 4, "h100-80gb-1x8");
    const Model& model = *scenario->model;
    const Plan plan = plan_of("manual:cp=2:ep=2", scenario);
    const double bytes = 64.0 * 1024 * 2 / 2;
    const PlanReshard& in = way_of(plan, named(model, "layer0/mlp/norm"), named(model, "layer0/mlp/dispatch"));
    QCOMPARE(received(in.forward), (std::map<ReshardMove, double>{{ReshardMove::all_gather, bytes}}));
    QCOMPARE(received(in.gradient), (std::map<ReshardMove, double>{{ReshardMove::reduce_scatter, bytes}}));
    const PlanReshard& out = way_of(plan, named(model, "layer0/mlp/combine"), named(model, "layer0/mlp/add"));
    QCOMPARE(received(out.forward), (std::map<ReshardMove, double>{{ReshardMove::reduce_scatter, bytes}}));
    QCOMPARE(received(out.gradient), (std::map<ReshardMove, double>{{ReshardMove::all_gather, bytes}}));
    for (const char* name : {"layer0/mlp/experts_up", "layer0/mlp/dispatch", "layer0/mlp/combine"}) {
      const OperatorId id = named(model, name);
      QCOMPARE(axes_of(plan.operators[id.index], loop_of(model.operators[id], DimName::expert)), 4u);
      QCOMPARE(axes_of(plan.operators[id.index], loop_of(model.operators[id], DimName::batch)), 3u);
    }
  }

  // Devices that share a sequence and have the same experts share the slots that each expert fills: 16 of a sample.
  void context_groups_share_the_slots_of_whole_experts() {
    const auto scenario = bf16_on(kMixtral, 4, "h100-80gb-1x8");
    const Model& model = *scenario->model;
    const OperatorId up = named(model, "layer0/mlp/experts_up");
    const auto parameters = [&](const Plan& plan) {
      CostBreakdown cost = plan.operators[up.index].cost;
      return cost[MemoryPart::parameters];
    };
    const auto elements = model.tensors[model.operators[up].inputs[1].tensor].elements();
    const Plan one = plan_of("manual:cp=2", scenario);
    QCOMPARE(axes_of(one.operators[up.index], loop_of(model.operators[up], DimName::sequence)), 4u);
    QCOMPARE(axes_of(one.operators[up.index], loop_of(model.operators[up], DimName::batch)), 3u);
    QCOMPARE(parameters(one), 2 * elements);
    QCOMPARE(one.operators[up.index].parameters.front().group.partial, 7u);
    // The group gathers the tokens: 64 of 1024 channels in two bytes, of which half come from others.
    const PlanReshard& in = way_of(one, named(model, "layer0/mlp/norm"), named(model, "layer0/mlp/dispatch"));
    QCOMPARE(received(in.forward), (std::map<ReshardMove, double>{{ReshardMove::all_gather, 64.0 * 1024 * 2 / 2}}));
    // Groups of four, experts over the inner two of them.
    const auto two_samples = bf16_on(kMixtral, 2, "h100-80gb-1x8");
    const Plan two = plan_of("manual:cp=4:ep=2", two_samples);
    QCOMPARE(axes_of(two.operators[up.index], loop_of(model.operators[up], DimName::expert)), 4u);
    QCOMPARE(axes_of(two.operators[up.index], loop_of(model.operators[up], DimName::sequence)), 2u);
    QCOMPARE(axes_of(two.operators[up.index], loop_of(model.operators[up], DimName::batch)), 1u);
    QCOMPARE(parameters(two), elements);
    QCOMPARE(two.operators[up.index].parameters.front().group.partial, 3u);
    // With samples to deal out they go whole.
    const Plan many = plan_of("manual:cp=2", bf16_on(kMixtral, 64, "h100-80gb-1x8"));
    QCOMPARE(axes_of(many.operators[up.index], loop_of(model.operators[up], DimName::batch)), 7u);
    const PlanReshard& whole = way_of(many, named(model, "layer0/mlp/norm"), named(model, "layer0/mlp/dispatch"));
    QCOMPARE(received(whole.forward),
             (std::map<ReshardMove, double>{{ReshardMove::all_to_all, 64.0 * 64 * 1024 * 2 / 8 / 2}}));
  }

  // What is not asked for is not searched: slots lie whole in every configuration of `ft`.
  void slots_are_split_by_those_alone_who_ask() {
    const auto scenario = bf16_on(kMixtral, 4, "h100-80gb-1x8");
    int products = 0;
    for (const Operator& op : scenario->model->operators) {
      const int filled = loop_of(op, DimName::sequence);
      if (op.name.find("/experts_") == std::string::npos || filled < 0) continue;
      QVERIFY(can_split(op, filled, false));
      const auto all = enumerate_configurations(*scenario->model, op, make_mesh(*scenario->cluster), false);
      for (const Configuration& one : all) QVERIFY(std::ranges::find(one.axis, filled) == one.axis.end());
      ++products;
    }
    QCOMPARE(products, 8);
  }

  // Of all ways that tokens can take the fastest one: never slower than with one of them alone could be guessed here,
  // and with many samples each device takes whole ones instead of gathering.
  void many_samples_are_dealt_out_whole() {
    const auto scenario = bf16_on(kMixtral, 64, "h100-80gb-1x8");
    const Model& model = *scenario->model;
    const Plan plan = plan_of("manual:cp=8:ep=8", scenario);
    const OperatorId dispatch = named(model, "layer0/mlp/dispatch");
    QCOMPARE(axes_of(plan.operators[dispatch.index], loop_of(model.operators[dispatch], DimName::batch)), 7u);
    // 64 samples of 64 positions of 1024 channels in two bytes, an eighth of it here, seven parts of eight from others.
    const PlanReshard& in = way_of(plan, named(model, "layer0/mlp/norm"), dispatch);
    QCOMPARE(received(in.forward),
             (std::map<ReshardMove, double>{{ReshardMove::all_to_all, 64.0 * 64 * 1024 * 2 / 8 * 7 / 8}}));
  }

  // What experts make is summed in a tensor group besides, and its gradient passes by the layout that it is made in on
  // its way to being summed itself.
  void a_file_brings_back_the_way_of_a_gradient() {
    const auto scenario = bf16_on(kMixtral, 64, "a100-80gb-4x4");
    const Plan plan = plan_of("manual:tp=2:ep=4:sequence-parallel", scenario);
    const auto back = read_plan(write_plan(*scenario, plan), "file", *scenario);
    QVERIFY2(back.has_value(), back ? "" : back.error().message().c_str());
    int passes = 0;
    for (std::size_t r = 0; r < plan.reshards.size(); ++r) {
      QCOMPARE(received(back->reshards[r].gradient), received(plan.reshards[r].gradient));
      for (const ReshardStep& step : plan.reshards[r].gradient)
        passes += step.result == plan.reshards[r].from && &step != &plan.reshards[r].gradient.back();
    }
    QVERIFY(passes > 0);
  }

  void operators_of_experts_are_found() {
    for (const auto& model : {builtin(kMixtral, 8), small_mixture(8)}) {
      const auto found = search::find_expert_loops(*model);
      QCOMPARE(found.experts, 8);
      for (std::size_t i = 0; i < model->operators.size(); ++i) {
        const Operator& op = model->operators[OperatorId(i)];
        const std::string leaf = op.name.substr(op.name.find_last_of('/') + 1);
        const bool inside = leaf == "experts_gate" || leaf == "experts_up" || leaf == "experts_down" ||
                            leaf == "experts_act" || leaf == "experts_mul" || leaf.starts_with("experts_silu");
        const bool border = leaf == "dispatch" || leaf == "combine";
        QVERIFY2(found.of[i].inside == inside, op.name.c_str());
        QVERIFY2((found.of[i].loop >= 0) == (inside || border), op.name.c_str());
        if (inside || border) QCOMPARE(op.dims[std::size_t(found.of[i].loop)].name, DimName::expert);
      }
    }
    for (const char* dense : {"gpt2?layers=2&sequence=32", "vgg16"}) {
      const auto found = search::find_expert_loops(*builtin(dense, 8));
      QCOMPARE(found.experts, 0);
      for (const auto& one : found.of) QVERIFY(one.loop < 0 && !one.inside);
    }
  }

  // Settings of torchtitan and MaxText may name a degree for experts whatever they train.
  void without_experts_there_is_nothing_to_split() {
    const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=512&sequence=32", 32), "v100-16gb-1x8");
    for (const std::string text : {"manual:zero=1", "manual:cp=2:zero=3", "manual:pp=2:micro-batches=2"}) {
      const auto plain = run(text, scenario), with = run(text + ":ep=3", scenario);
      QVERIFY2(plain && with, text.c_str());
      QCOMPARE((*with)->points, (*plain)->points);
      const auto noted = [](const Result& result) {
        return std::ranges::count_if(result.notes, [](const std::string& note) {
          return note.find("has no experts that ep=3 could split") != std::string::npos;
        });
      };
      QCOMPARE(noted(**with), 1);
      QCOMPARE(noted(**plain), 0);
    }
  }

  void refusals_name_the_numbers() {
    const auto mixture = scenario_on(small_mixture(48), "v100-16gb-1x8");
    const auto three = scenario_on(small_mixture(48), "v100-16gb-2x3");
    const std::vector<std::tuple<ScenarioPtr, std::string, QString>> cases = {
        {mixture, "manual:ep=3", "8 experts cannot be divided among ep=3 devices"},
        {mixture, "manual:ep=16", "8 experts cannot be divided among ep=16 devices"},
        {mixture, "manual:tp=2:ep=8", "ep=8 does not divide the devices of dp=4 that share the batch"},
        {mixture, "manual:tp=2:cp=2:ep=8", "ep=8 does not divide the devices of dp=2 times cp=2 that share the batch"},
        {mixture, "manual:ep=0", "ep must be"},
        {three, "manual:ep=2", "ep=2 groups are neither equal parts of a node nor whole nodes on 2 nodes of 3 devices"},
        {scenario_on(test::mlp(), "v100-16gb-1x2"), "manual:ep=2", "no attention"},
    };
    for (const auto& [scenario, text, part] : cases) {
      const auto result = run(text, scenario);
      QVERIFY2(!result.has_value(), text.c_str());
      QCOMPARE(result.error().code, ErrorCode::usage);
      const auto message = QString::fromStdString(result.error().what);
      QVERIFY2(message.contains(part), qPrintable(QString::fromStdString(text) + ": " + message));
    }
  }
};

QTEST_APPLESS_MAIN(ExpertParallelTest)
#include "expert_parallel_test.moc"
