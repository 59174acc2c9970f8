// SPDX-License-Identifier: Apache-2.0
// What is told of a ratio plan: parts, types and costs as a plan made by hand has them, and of other results the one
// with most layers of the same type, counted here place by place.
#include "core/search/explain/ratio_story.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/search/method/ratio_result.h"
#include "plan/ratio_plans.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Three products of 12 samples, one after the other.
ModelPtr three_products() {
  ModelBuilder b("products", "test", 12, 0);
  TensorId x = b.input("x", {12, 8}, {DimName::batch, DimName::channel}, ElementType::f32);
  for (const char* name : {"one", "two", "three"}) x = b.linear(name, x, b.parameter(std::string(name) + "/w", {8, 8}));
  return finished(b, x);
}

OperatorId named(const Model& model, const std::string& name) {
  for (std::uint32_t o = 0; o < model.operators.size(); ++o)
    if (model.operators[OperatorId(o)].name == name) return OperatorId(o);
  return {};
}

constexpr PartitionType kI = PartitionType::batch, kII = PartitionType::reduction, kIII = PartitionType::output;

/// A third of the first cut's work to the V100; types by layer, all cuts alike.
RatioPlan plan_of(const Scenario& scenario, std::array<PartitionType, 3> types) {
  RatioPlan plan = cut_by("batch", 4, scenario);
  plan.cuts[0].ratio = 1.0 / 3;
  const char* const loops[] = {"batch", "in-channel", "out-channel"};
  const char* const names[] = {"one", "two", "three"};
  for (std::size_t l = 0; l < 3; ++l) {
    const OperatorId op = named(*scenario.model, names[l]);
    plan.layers.push_back({op, {types[l]}});
    plan.cuts[0].share[op.index] = {loop_of(scenario.model->operators[op], loops[int(types[l])]), 4};
  }
  auto priced = evaluate_ratio_plan(scenario, std::move(plan));
  if (!priced) qFatal("%s", priced.error().message().c_str());
  return *std::move(priced);
}

ResultPtr result_with(const ScenarioPtr& scenario, const char* method, RatioPlan plan, double time_s = 0) {
  const auto result = search::result_of(scenario, std::move(plan));
  result->method = method;
  if (time_s > 0) result->points.front().time_s = time_s;
  return result;
}

}  // namespace

class RatioStoryTest : public QObject {
  Q_OBJECT

 private slots:
  void a_plan_by_hand() {
    const auto scenario = rings_on(three_products(), "v100-16gb-1x1+a100-80gb-1x1");
    RatioPlan plan = plan_of(*scenario, {kI, kI, kIII});
    plan.cuts[0].share[plan.layers[1].op.index] = {};  // both do the second
    const ResultPtr result = result_with(scenario, "by-hand", *evaluate_ratio_plan(*scenario, plan));
    const auto story = ratio_story_of(*result, 0, {});
    QVERIFY(story.has_value());
    QCOMPARE(story->cuts.size(), std::size_t(1));
    QCOMPARE(story->cuts[0].first, std::string("V100-16GB"));
    QCOMPARE(story->cuts[0].second, std::string("A100-80GB"));
    QCOMPARE(story->cuts[0].types, (std::array<int, 3>{1, 0, 1}));
    QCOMPARE(story->cuts[0].uncut, 1);
    QCOMPARE(story->layers.size(), std::size_t(3));
    QCOMPARE(story->layers[1].types, std::vector<std::string>{"both"});
    QVERIFY(!story->nearest);
    std::string all;
    for (const std::string& line : describe(*story, *result)) all += line + '\n';
    for (const char* says :
         {"2 devices cut in two at 1 level, 3 layers.",
          "Cut 1: 33.33 % to V100-16GB, 66.67 % to A100-80GB; of its layers 1 by batch (I), 1 by output (III), 1 done "
          "by "
          "both halves.",
          "  one: I\n  two: both\n  three: III\n", "1 \u00d7 V100-16GB: at most ", "No other result of this file"})
      QVERIFY2(all.find(says) != std::string::npos, (all + "lacks " + says).c_str());
    const auto document = explanation_json(*story, *result);
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("explanation@1", document), std::string());
    // The parts are the step.
    double seconds = 0;
    for (const char* of : {"compute_s", "network_s"})
      for (const auto& [part, time] : document[of].items()) seconds += time.get<double>();
    QVERIFY(close(seconds, result->points[0].time_s));
  }

  void nearest_has_most_layers_of_the_same_type() {
    const auto scenario = rings_on(three_products(), "v100-16gb-1x1+a100-80gb-1x1");
    const ResultPtr result = result_with(scenario, "asked", plan_of(*scenario, {kI, kII, kIII}));
    const auto nearest = [&](const std::vector<ResultPtr>& others) {
      const auto story = ratio_story_of(*result, 0, others);
      return story->nearest ? story->nearest->method + ' ' + std::to_string(story->nearest->same) + '/' +
                                  std::to_string(story->nearest->all)
                            : std::string();
    };
    const ResultPtr one = result_with(scenario, "one", plan_of(*scenario, {kI, kI, kI}), 1e-9),
                    two = result_with(scenario, "two", plan_of(*scenario, {kI, kII, kI}), 2),
                    quick = result_with(scenario, "quick", plan_of(*scenario, {kI, kI, kIII}), 1);
    QCOMPARE(nearest({one}), std::string("one 1/3"));
    QCOMPARE(nearest({one, two}), std::string("two 2/3"));
    QCOMPARE(nearest({one, two, quick}), std::string("quick 2/3"));
    QCOMPARE(nearest({result, quick}), std::string("asked 3/3"));
    // The other way round in the tree nothing can be compared.
    RatioPlan turned = plan_of(*scenario, {kI, kII, kIII});
    turned.order = {1, 0};
    QCOMPARE(nearest({result_with(scenario, "turned", turned)}), std::string());
  }

  // Four devices: the first cut once, the second on either side of it.
  void places_count_as_often_as_there_are_devices() {
    const auto scenario = rings_on(three_products(), "v100-16gb-1x4");
    const auto four = [&](std::array<PartitionType, 3> outer, std::array<PartitionType, 3> inner, bool own) {
      RatioPlan plan = cut_by("batch", 6, *scenario);
      plan.order = {0, 1, 2, 3};
      plan.parts = {{1, {}}, {2, {0, 0}}, {4, {1, 1}}};
      plan.cuts[0].part = 2, plan.cuts[0].next = {1, own ? 2u : 1u};
      plan.cuts.push_back({1, 0.5, plan.cuts[0].share, {RatioPlan::kNoCut, RatioPlan::kNoCut}});
      if (own) plan.cuts.push_back(plan.cuts[1]);
      const char* const names[] = {"one", "two", "three"};
      for (std::size_t l = 0; l < 3; ++l) {
        plan.layers.push_back({named(*scenario->model, names[l]), {outer[l], inner[l]}});
        if (own) plan.layers.back().type.push_back(kIII);
      }
      return plan;
    };
    const ResultPtr asked = result_with(scenario, "asked", four({kI, kI, kII}, {kI, kI, kI}, false));
    // Outer cut: two of three alike; one inner cut as it is, three alike; the other none.
    const ResultPtr other = result_with(scenario, "other", four({kI, kI, kIII}, {kI, kI, kI}, true));
    const auto story = ratio_story_of(*asked, 0, {other});
    QVERIFY(story && story->nearest);
    QCOMPARE(story->nearest->same, std::int64_t(5));
    QCOMPARE(story->nearest->all, std::int64_t(9));
    QCOMPARE(story->layers.size(), std::size_t(2));
    QCOMPARE(story->layers[0].layers, 2);
    QCOMPARE(story->layers[0].types, (std::vector<std::string>{"I", "I"}));
  }

  void found_plans_beside_data_parallelism() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x2+a100-40gb-1x2");
    const ResultPtr asked = answer_of("owt", scenario), plain = answer_of("data-parallel", scenario);
    const AnyPlan any = asked->plans->plan(0);
    const RatioPlan& plan = *std::get<RatioPlanPtr>(any);
    std::int64_t same = 0, all = 0;
    const auto story = ratio_story_of(*asked, 0, {plain});
    QVERIFY(story && story->nearest);
    // Three places: the first cut, and its two halves, of which each may have a cut of its own.
    for (const std::uint32_t c : {0u, plan.cuts[0].next[0], plan.cuts[0].next[1]})
      for (const RatioPlan::Layer& layer : plan.layers)
        ++all, same += layer.type[c] == kI && plan.cuts[c].share[layer.op.index].loop >= 0;
    QCOMPARE(story->nearest->all, all);
    QCOMPARE(story->nearest->same, same);
    QVERIFY(same > 0 && same < all);
    // A plan of another kind is no neighbour, and nothing to be told in these words.
    QVERIFY(!ratio_story_of(*asked, 0, {answer_of("optcnn", scenario)})->nearest);
    QVERIFY(!ratio_story_of(*plain, 0, {}));
  }
};

QTEST_APPLESS_MAIN(RatioStoryTest)
#include "ratio_story_test.moc"
