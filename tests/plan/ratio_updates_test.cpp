// SPDX-License-Identifier: Apache-2.0
// Ratio plans whose updates are shared out: halves of two equal devices save what the sharding plan with sharded
// updates saves, unlike shares cost what a formula says by hand, and halves that hold nothing alike share out nothing.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/evaluator.h"
#include "core/plan/ratio_change.h"
#include "core/plan_io/ratio_json.h"
#include "core/search/update_sharding/planned_updates.h"
#include "plan/ratio_plans.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Every operator with weights that both halves hold has the first one update this share.
RatioPlan shared_out(const Scenario& scenario, RatioPlan plan, double first) {
  const RatioCharges charges(scenario, plan);
  const auto places = places_of(plan, *scenario.model, charges);
  if (!places) qFatal("%s", places.error().message().c_str());
  for (const RatioPlace& place : *places) {
    if (place.is_device()) continue;
    plan.cuts[place.cut].updates.assign(place.held.size(), 0);
    for (std::size_t o = 0; o < place.held.size(); ++o)
      if (place.held[o] == RatioPlace::Held::alike) plan.cuts[place.cut].updates[o] = first;
  }
  return plan;
}

RatioPlan priced(const Scenario& scenario, const RatioPlan& plan) {
  auto made = evaluate_ratio_plan(scenario, plan);
  if (!made) qFatal("%s", made.error().message().c_str());
  return std::move(*made);
}

/// Over three devices in two cuts, the outer one by batch.
RatioPlan one_and_two(const Scenario& scenario) {
  RatioPlan row = cut_by("batch", 3, scenario);
  row.order = {0, 1, 2};
  row.parts = {{1, {}}, {1, {}}, {1, {}}, {2, {1, 2}}, {3, {0, 3}}};
  row.cuts[0].part = 4, row.cuts[0].next[1] = 1;
  row.cuts.push_back(row.cuts[0]);
  row.cuts[1].part = 3, row.cuts[1].next = {RatioPlan::kNoCut, RatioPlan::kNoCut};
  return row;
}

}  // namespace

class RatioUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  // At a ratio of one half on equal devices both kinds of plan say the same of the same updates.
  void halves_of_equal_devices_are_a_sharding_plan() {
    int plans = 0, shared = 0, turn = 0;
    constexpr Optimizer kOptimizers[] = {Optimizer::adam, Optimizer::lamb, Optimizer::adafactor, Optimizer::lars};
    for (const auto& [name, model] : networks_to_cut(7, 20))
      for (const char* hardware : {"v100-16gb-1x2", "a100-80gb-2x1"})
        for (const Precision precision : {Precision::fp32, Precision::bf16})
          for (const char* method : {"data-parallel", "accpar", "hypar"}) {
            const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
              s.collectives = Collectives::rings;
              s.bucket_bytes = 0;
              s.precision = precision;
              s.gradients = precision == Precision::bf16 ? Gradients::fp32 : Gradients::as_weights;
              s.optimizer = kOptimizers[++turn % 4];
            });
            const auto result = run(method, scenario);
            QVERIFY2(result.has_value(), name.c_str());
            const Plan whole = (*result)->plans->sharding(0);
            const RatioPlan halves = in_halves(*scenario->model, whole), parts = shared_out(*scenario, halves, 0.5);
            std::vector<MemoryChoice> choices;
            for (const PlanOperator& op : whole.operators) {
              choices.push_back(op.choice);
              if (parts.cuts[0].updates[op.op.index] == 0) continue;
              choices.back().update = Update::sharded, choices.back().update_axes = 1;
              ++shared;
            }
            const Plan sharded = update_sharding::with_choices(*scenario, whole, choices);
            const auto as_sharding = evaluate_plan(*scenario, sharded);
            QVERIFY(as_sharding.has_value());
            const std::string what = name + " on " + hardware + " by " + method;
            RatioPlan before = priced(*scenario, halves), after = priced(*scenario, parts);
            CostBreakdown was = whole.cost, is = *as_sharding;
            QVERIFY2(close(after.cost[ComputePart::update], is[ComputePart::update]), what.c_str());
            for (const ComputePart part : {ComputePart::forward, ComputePart::backward})
              QCOMPARE(after.cost[part], before.cost[part]);
            for (const MemoryPart part : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer})
              QCOMPARE(after.cost[part], is[part]);
            // What operators exchange otherwise the two kinds may price otherwise; of updates they say the same.
            const double gained = before.cost.network_s() - after.cost.network_s(),
                         expected = was.network_s() - is.network_s();
            QVERIFY2(std::abs(gained - expected) < 1e-9 * was.network_s() + 1e-15, what.c_str());
            if (std::string(method) == "data-parallel" && precision == Precision::fp32)
              QVERIFY2(close(after.cost.time_s(), is.time_s()), what.c_str());
            ++plans;
          }
    QVERIFY2(plans > 300 && shared > 1000, qPrintable(QString("%1 %2").arg(plans).arg(shared)));
  }

  // A V100 updates a third of 80 weights, an A100 two thirds, each rounded up. Either receives its share of the other's
  // gradients, then the other's share of the new weights; the larger of both decides.
  void unlike_shares_by_hand() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    RatioPlan plan = cut_by("batch", 3, *scenario);
    const RatioPlan whole = priced(*scenario, plan);
    plan.cuts[0].updates = {0, 1.0 / 3};
    const RatioPlan made = priced(*scenario, plan);
    CostBreakdown cost = made.operators.back().cost;
    const LinkLevel& link = scenario->cluster->links[kInterNode];
    const double two_thirds = 80 * 4 * 2.0 / 3 / link.bandwidth + link.latency_s;
    QVERIFY(close(cost[NetworkPart::reduce_scatter], two_thirds));
    QVERIFY(close(cost[NetworkPart::all_gather], two_thirds));
    QCOMPARE(cost[NetworkPart::all_reduce], 0.0);
    // Weights whole, gradients and Adam's moments of the own share.
    QCOMPARE(made.device_memory[0], 80 * 4 + 27 * 12 + 3 * 10 * 4);
    QCOMPARE(made.device_memory[1], 80 * 4 + 54 * 12 + 9 * 10 * 4);
    QCOMPARE(made.weights.size(), std::size_t(1));
    QVERIFY(close(made.weights[0].all_bytes, 2 * 80 * 4.0));
    for (const std::uint32_t d : {0u, 1u}) {
      const DeviceType& type = device_of(*scenario->cluster, d);
      const double bytes_per_second = type.memory_bandwidth * type.memory_efficiency, spared = d == 0 ? 53 : 26;
      // Gradient read, weight and two moments read and written.
      const double gained = whole.device_compute_s[d] - made.device_compute_s[d];
      QVERIFY(std::abs(gained * bytes_per_second / (spared * 28) - 1) < 1e-6);
    }
  }

  // LAMB sums two norms over the shards, 8 bytes in two hops, of which the only weight pays all; Adafactor 10 rows and
  // 8 columns, then one number.
  void norms_are_summed_over_shards() {
    for (const auto& [optimizer, rounds] : {std::pair(Optimizer::lamb, std::vector<double>{8}),
                                            std::pair(Optimizer::adafactor, std::vector<double>{72, 4}),
                                            std::pair(Optimizer::adam, std::vector<double>{})}) {
      const auto scenario = scenario_on(one_product(), "v100-16gb-1x2", [&](Settings& s) {
        s.collectives = Collectives::rings;
        s.bucket_bytes = 0;
        s.optimizer = optimizer;
      });
      RatioPlan plan = cut_by("batch", 6, *scenario);
      plan.cuts[0].updates = {0, 0.5};
      const RatioPlan made = priced(*scenario, plan);
      const LinkLevel& link = scenario->cluster->links[kIntraNode];
      double sums = 0;
      for (const double bytes : rounds) sums += bytes / link.bandwidth + 2 * link.latency_s;
      CostBreakdown cost = made.cost, alone;
      const RatioCharges charges(*scenario, made);
      alone = charges.device_cost(OperatorId(1), 0, {6, 10, 8});
      QVERIFY(close(cost[ComputePart::update], alone[ComputePart::update] + sums));
      QVERIFY(close(cost.network_s(), 80 * 4 / link.bandwidth + 2 * link.latency_s));
    }
  }

  // Shares of three devices in two cuts multiply; a cut without any leaves both its halves the same share.
  void cuts_inside_cuts() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x3");
    RatioPlan plan = one_and_two(*scenario);
    const std::int64_t rows[] = {3, 3, 6};
    const auto states = [&](double outer, double inner) {
      plan.cuts[0].updates = {0, outer}, plan.cuts[1].updates = {0, inner};
      const RatioPlan made = priced(*scenario, plan);
      std::vector<std::int64_t> elements;
      for (std::size_t d = 0; d < 3; ++d) elements.push_back((made.device_memory[d] - 80 * 4 - rows[d] * 10 * 4) / 12);
      return elements;
    };
    using Elements = std::vector<std::int64_t>;
    QCOMPARE(states(0, 0), (Elements{80, 80, 80}));
    QCOMPARE(states(0.25, 0), (Elements{20, 60, 60}));
    QCOMPARE(states(0, 0.25), (Elements{80, 20, 60}));
    QCOMPARE(states(0.25, 0.25), (Elements{20, 15, 45}));
    QCOMPARE(states(1.0 / 3, 0.5), (Elements{27, 27, 27}));
  }

  // What both halves do is repeated work: there is nothing to sum, but new weights are gathered.
  void repeated_work_is_gathered_alone() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x2");
    RatioPlan plan = cut_by("batch", 6, *scenario);
    plan.cuts[0].share = {{}, {}};
    plan.cuts[0].updates = {0, 0.25};
    CostBreakdown cost = priced(*scenario, plan).cost;
    const LinkLevel& link = scenario->cluster->links[kIntraNode];
    QVERIFY(close(cost.network_s(), 0.75 * 80 * 4 / link.bandwidth + link.latency_s));
    QCOMPARE(cost[NetworkPart::all_gather], cost.network_s());
  }

  void files_come_back() {
    std::mt19937_64 random(41);
    int shared = 0;
    for (const auto& [name, model] : networks_to_cut(43, 10))
      for (const char* hardware : {"v100-16gb-1x3", "v100-16gb-1x2+a100-80gb-1x1"}) {
        const auto scenario = scenario_on(model, hardware);
        const RatioPlan plan =
            priced(*scenario, with_random_updates(random, *scenario, RandomRatioPlan(random, *scenario).plan()));
        const nlohmann::json document = nlohmann::json::parse(write_ratio_plan(*scenario, plan).dump());
        const auto back = read_ratio_plan(document, "plan.json", *scenario);
        QVERIFY2(back.has_value(), back ? "" : back.error().message().c_str());
        QCOMPARE(write_ratio_plan(*scenario, *back), document);
        QCOMPARE(back->cost.time_s(), plan.cost.time_s());
        shared += plan.shards_updates();
        for (const char* wrong :
             {"[]", "[[0]]", "[[0, 1]]", "[[0, 0]]", "[[0, -0.5]]", "[[9999, 0.5]]", "[[0, 0.5]]"}) {
          nlohmann::json changed = document;
          changed["cuts"][0]["updates"] = nlohmann::json::parse(wrong);
          const bool none = std::string(wrong) == "[]";
          // The first operator is the data, of which there are no weights.
          QVERIFY2(read_ratio_plan(changed, "plan.json", *scenario).has_value() == none, wrong);
        }
      }
    QVERIFY(shared > 20);
  }

  void an_update_is_shared_out_once() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x3");
    RatioPlan plan = one_and_two(*scenario);
    plan.cuts[0].updates = {0, 0.3};
    const auto made = evaluate_ratio_plan(*scenario, plan);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    nlohmann::json document = nlohmann::json::parse(write_ratio_plan(*scenario, *made).dump());
    QVERIFY(read_ratio_plan(document, "plan.json", *scenario).has_value());
    document["cuts"][0]["updates"].push_back({1, 0.3});
    const auto twice = read_ratio_plan(document, "plan.json", *scenario);
    QVERIFY(!twice.has_value());
    QCOMPARE(twice.error().what, std::string("cut 0 shares out the update of operator 1 twice"));
  }

  void what_cannot_be_shared_out_is_refused() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x3");
    const auto refusal = [&](const std::function<void(RatioPlan&)>& change) {
      RatioPlan plan = one_and_two(*scenario);
      change(plan);
      const auto made = evaluate_ratio_plan(*scenario, plan);
      return made ? std::string() : made.error().message();
    };
    const std::int8_t out = loop_of(scenario->model->operators[OperatorId(1)], "out-channel");
    const std::pair<std::function<void(RatioPlan&)>, const char*> cases[] = {
        {[](RatioPlan& p) {
           p.cuts[0].updates = {0, 0.3};
         },
         ""},
        {[](RatioPlan& p) {
           p.cuts[0].updates = {0.3, 0};
         },
         "cut 0 shares out the update of 'x', of which its halves hold no weights alike"},
        {[](RatioPlan& p) { p.cuts[0].updates = {0.3}; }, "cut 0 shares out updates of 1 operators, and there are 2"},
        {[](RatioPlan& p) {
           p.cuts[1].updates = {0, 1};
         },
         "cut 1 gives the first half 1 of the update of 'fc'"},
        {[](RatioPlan& p) {
           p.cuts[1].updates = {0, -0.1};
         },
         "which is not between 0 and 1"},
        {[](RatioPlan& p) {
           p.cuts[1].updates = {0, std::nan("")};
         },
         "which is not between 0 and 1"},
        // The pair divides the weights, the single device has them whole.
        {[&](RatioPlan& p) {
           p.cuts[0].updates = {0, 0.3};
           p.cuts[1].share[1] = {out, 4};
         },
         "cut 0 shares out the update of 'fc', whose weights its halves divide further in unlike ways"},
        {[&](RatioPlan& p) {
           p.cuts[1].updates = {0, 0.3};
           p.cuts[1].share[1] = {out, 4};
         },
         "cut 1 shares out the update of 'fc', of which its halves hold no weights alike"},
    };
    for (const auto& [change, words] : cases) {
      const std::string said = refusal(change);
      QVERIFY2(said.empty() == (std::string(words).empty()) && said.find(words) != std::string::npos,
               (said + " / " + words).c_str());
    }
  }

  // Moved by hand, halves that divide weights alike keep their shares; where they do not any more, the update is whole.
  void moved_ratios_keep_what_can_be_shared_out() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x4");
    RatioPlan plan = cut_by("batch", 6, *scenario);
    plan.order = {0, 1, 2, 3};
    plan.parts = {{1, {}}, {2, {0, 0}}, {4, {1, 1}}};
    plan.cuts[0].part = 2, plan.cuts[0].next = {1, 1};
    plan.cuts.push_back({1, 0.5, std::vector<RatioPlan::Share>(2), {RatioPlan::kNoCut, RatioPlan::kNoCut}});
    plan.cuts[1].share[1] = {loop_of(scenario->model->operators[OperatorId(1)], "out-channel"), 4};
    plan.cuts[0].updates = {0, 0.3};
    plan = priced(*scenario, plan);
    const auto outer = with_ratio(*scenario, plan, 0, 0.25);
    QVERIFY(outer.has_value());
    QCOMPARE(outer->cuts.size(), std::size_t(3));
    QCOMPARE(outer->cuts[0].updates, (std::vector<double>{0, 0.3}));
    // Of one pair the border moves: its devices hold other columns than those of the other pair.
    const auto inner = with_ratio(*scenario, *outer, 1, 0.25);
    QVERIFY2(inner.has_value(), inner ? "" : inner.error().message().c_str());
    QCOMPARE(inner->cuts[1].share[1].first, 2);
    QVERIFY(!inner->shards_updates());
  }
};

QTEST_APPLESS_MAIN(RatioUpdatesTest)
#include "ratio_updates_test.moc"
