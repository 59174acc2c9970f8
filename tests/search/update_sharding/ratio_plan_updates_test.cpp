// SPDX-License-Identifier: Apache-2.0
// Updates sharded on ratio plans: a plan costs what its decisions say, no other way to share out one update makes the
// step shorter, and what is told of every weight adds up to what the step gains.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/plan_io/result_json.h"
#include "core/search/reopen.h"
#include "core/search/update_sharding/ratio_plan_updates.h"
#include "plan/ratio_plans.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const char* const kUnlikeDevices[] = {
    "v100-16gb-1x1+a100-80gb-1x1", "v100-16gb-1x2+a100-40gb-1x2", "v100-16gb-1x3", "v100-16gb-1x5",
    "v100-16gb-1x1+a100-80gb-1x2", "tpu-v2-1x2+tpu-v3-1x2"};

const RatioPlan& ratio_of(const ResultPtr& result, AnyPlan& held) {
  held = result->plans->plan(0);
  return *std::get<RatioPlanPtr>(held);
}

/// What a cut may give its first half of an update: nothing that is shared out, or the shares that are looked through.
std::vector<double> ways_at(const Scenario& scenario, const RatioPlan& plan, const RatioPlace& place) {
  const std::uint32_t devices = plan.parts[place.part].devices,
                      in_first = plan.parts[plan.parts[place.part].halves[0]].devices;
  double bandwidth[2] = {0, 0};
  for (std::uint32_t d = 0; d < devices; ++d) {
    const DeviceType& type = device_of(*scenario.cluster, plan.order[place.first + d]);
    bandwidth[d < in_first ? 0 : 1] += type.memory_bandwidth * type.memory_efficiency;
  }
  return {0, 0.5, double(in_first) / devices, bandwidth[0] / (bandwidth[0] + bandwidth[1])};
}

}  // namespace

class RatioPlanUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  void what_is_told_is_what_the_step_gains() {
    int sharded = 0, uneven = 0, gains = 0, plans = 0, turn = 0;
    constexpr Optimizer kOptimizers[] = {Optimizer::adam, Optimizer::lamb, Optimizer::adafactor};
    for (const auto& [name, model] : {std::pair<std::string, ModelPtr>{"alexnet", builtin("alexnet", 240)},
                                      {"gpt2", builtin("gpt2?layers=2&hidden=256&sequence=64", 30)},
                                      {"attention", attention(60)},
                                      {"lenet", builtin("lenet", 60)}})
      for (const char* hardware : kUnlikeDevices)
        for (const std::string of : {"accpar", "hypar", "owt", "accpar:ratio=equal"})
          for (const Precision precision : {Precision::fp32, Precision::bf16}) {
            const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
              s.precision = precision;
              s.factors.intra_bandwidth = 30, s.factors.inter_bandwidth = 100;
              s.factors.device_speed = precision == Precision::fp32 ? 1 : 0.1;
              s.optimizer = kOptimizers[++turn % 3];
            });
            const std::string what = name + " on " + hardware + " of " + of;
            const auto base = run(of, scenario);
            if (!base) continue;  // a type that a layer lacks
            if ((*base)->plans->kind(0) != PlanKind::ratio) continue;
            const ResultPtr result = answer_of("update-sharding:of=" + of, scenario);
            AnyPlan held_base, held;
            const RatioPlan &given = ratio_of(*base, held_base), &made = ratio_of(result, held);
            const ResultPoint &before = (*base)->points.front(), &point = result->points.front();
            const auto cost = evaluate_ratio_plan(*scenario, made);
            QVERIFY2(cost && close(cost->cost.time_s(), point.time_s) && cost->most_memory() == point.memory_bytes,
                     what.c_str());
            QVERIFY2(point.time_s <= before.time_s * (1 + 1e-12) && point.memory_bytes <= before.memory_bytes,
                     what.c_str());
            QVERIFY2(point.simulated_time_s && point.simulated_memory_bytes, what.c_str());
            QVERIFY2(result->whole_updates && close(result->whole_updates->time_s(), given.cost.time_s()),
                     what.c_str());
            double told = 0;
            for (const WeightUpdate& one : result->weights) {
              told += one.whole.total() - one.chosen.total();
              sharded += one.sharded();
              QVERIFY2(one.shards <= one.replicas && one.replicas <= scenario->cluster->devices(), what.c_str());
              QVERIFY2(one.sharded() || one.chosen == one.whole, what.c_str());
              for (const double part : {one.whole.reduce, one.whole.update, one.whole.gather, one.chosen.reduce,
                                        one.chosen.update, one.chosen.gather})
                QVERIFY2(part >= 0, what.c_str());
              uneven += one.reason.find("in shares of") != std::string::npos;
              QVERIFY2(one.reason.starts_with(one.sharded() ? "sharded over " : "whole: "), one.reason.c_str());
            }
            QVERIFY2(std::abs(told - (before.time_s - point.time_s)) < 1e-9 * before.time_s, what.c_str());
            gains += point.time_s < before.time_s * (1 - 1e-6);
            // Whatever else the plan does stays as it is.
            QCOMPARE(made.order, given.order);
            QCOMPARE(made.layers.size(), given.layers.size());
            QVERIFY2(std::abs(made.cost.memory_bytes() - given.cost.memory_bytes()) >= 0, what.c_str());
            for (std::size_t t = 0; t < given.exchanges.size(); ++t)
              QCOMPARE(made.exchanges[t].all_bytes, given.exchanges[t].all_bytes);
            ++plans;
          }
    qInfo("%d plans, %d gain; %d updates sharded, %d in uneven shares", plans, gains, sharded, uneven);
    QVERIFY(plans > 100 && gains > plans / 2 && sharded > 500 && uneven > 50);
  }

  // Brute force by the evaluator, which knows nothing of the choice: with any one update shared out otherwise, at any
  // cuts and in any of the shares that are looked through, the step is no shorter.
  void no_other_way_is_shorter() {
    int tried = 0, longer = 0;
    for (const auto& [name, model] : {std::pair<std::string, ModelPtr>{"mlp", mlp(60)},
                                      {"attention", attention(60)},
                                      {"lenet", builtin("lenet", 60)}})
      for (const char* hardware : kUnlikeDevices) {
        const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
          s.factors.intra_bandwidth = 30, s.factors.inter_bandwidth = 100, s.factors.device_speed = 0.1;
          s.optimizer = tried % 2 ? Optimizer::lamb : Optimizer::adam;
        });
        for (const std::string of : {"accpar", "hypar"}) {
          const auto base = run(of, scenario);
          if (!base) continue;
          AnyPlan held;
          const auto made = update_sharding::updates_on(*scenario, ratio_of(*base, held), {}, {});
          QVERIFY(made.has_value());
          const RatioCharges charges(*scenario, made->plan);
          const auto places = places_of(made->plan, *scenario->model, charges);
          QVERIFY(places.has_value());
          const std::string what = name + " on " + hardware + " of " + of;
          for (std::size_t o = 0; o < scenario->model->operators.size(); ++o) {
            RatioPlan other = made->plan;
            const std::function<void(std::size_t)> try_all = [&](std::size_t p) {
              if (p == places->size()) {
                const double seconds = evaluate_ratio_plan(*scenario, other)->cost.time_s();
                QVERIFY2(seconds >= made->plan.cost.time_s() * (1 - 1e-9), (what + std::to_string(o)).c_str());
                longer += seconds > made->plan.cost.time_s() * (1 + 1e-9);
                ++tried;
                return;
              }
              const RatioPlace& place = (*places)[p];
              if (place.is_device() || place.held[o] != RatioPlace::Held::alike) return try_all(p + 1);
              for (const double way : ways_at(*scenario, made->plan, place)) {
                other.cuts[place.cut].updates[o] = way;
                try_all(p + 1);
              }
            };
            try_all(0);
          }
        }
      }
    qInfo("%d ways, %d longer", tried, longer);
    QVERIFY(tried > 2000 && longer > tried / 2);
  }

  // Two equal devices beside one: each updates a third. A V100 beside an A100 of three times its bandwidth: over links
  // that cost nothing by bandwidth, over slow ones in equal shares, as either would wait for the larger one.
  void shares_follow_speed_and_links() {
    const auto told = [](const char* hardware, double links) {
      const auto scenario = scenario_on(mlp(1200), hardware, [&](Settings& s) {
        s.factors.intra_bandwidth = s.factors.inter_bandwidth = links;
        s.factors.device_speed = 0.01;
        s.factors.latency = 1e-6;
      });
      RatioPlan plan = cut_by("batch", 600, *scenario);
      for (std::size_t o = 0; o < plan.cuts[0].share.size(); ++o) plan.cuts[0].share[o] = {0, 600};
      const std::uint32_t devices = std::uint32_t(scenario->cluster->devices());
      if (devices == 3) {
        plan.order = {0, 1, 2};
        plan.parts = {{1, {}}, {2, {0, 0}}, {3, {1, 0}}};
        plan.cuts[0].part = 2, plan.cuts[0].next[0] = 1;
        plan.cuts.push_back({1, 0.5, plan.cuts[0].share, {RatioPlan::kNoCut, RatioPlan::kNoCut}});
        for (RatioPlan::Share& share : plan.cuts[1].share) share.first = 300;
      }
      const auto made = update_sharding::updates_on(*scenario, *evaluate_ratio_plan(*scenario, plan), {}, {});
      if (!made) qFatal("%s", made.error().message().c_str());
      return std::pair(made->plan.cuts[0].updates[1], made->weights.front());
    };
    const auto [third, of_three] = told("v100-16gb-1x3", 1e6);
    QVERIFY(close(third, 2.0 / 3));
    QCOMPARE(of_three.shards, 3);
    QVERIFY2(of_three.reason.starts_with("sharded over 3 of 3 replicas in equal shares"), of_three.reason.c_str());
    const auto [by_speed, fast] = told("v100-16gb-1x1+a100-80gb-1x1", 1e9);
    const auto cluster = open_hardware("v100-16gb-1x1+a100-80gb-1x1");
    const DeviceType &v100 = device_of(**cluster, 0), &a100 = device_of(**cluster, 1);
    const double speeds[] = {v100.memory_bandwidth * v100.memory_efficiency,
                             a100.memory_bandwidth * a100.memory_efficiency};
    QVERIFY(close(by_speed, speeds[0] / (speeds[0] + speeds[1])));
    QVERIFY2(fast.reason.find(QString("in shares of %1 to ").arg(100 * by_speed, 0, 'f', 1).toStdString()) !=
                 std::string::npos,
             fast.reason.c_str());
    const auto [even, slow] = told("v100-16gb-1x1+a100-80gb-1x1", 1e-3);
    QCOMPARE(even, 0.5);
    QVERIFY2(slow.reason.find("in equal shares") != std::string::npos, slow.reason.c_str());
  }

  // Checkpoints gather Adam's moments: at every step that takes more than a shared update spares.
  void checkpoints_count() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x2+a100-40gb-1x2");
    const auto sharded = [&](const char* loop) {
      int count = 0;
      for (const WeightUpdate& one : answer_of(std::string("update-sharding:of=accpar") + loop, scenario)->weights)
        count += one.sharded();
      return count;
    };
    QVERIFY(sharded("") > 0);
    QVERIFY(sharded(":checkpoint=1") < sharded(""));
    QCOMPARE(sharded(":checkpoint=100000"), sharded(""));
  }

  // What ZeRO would hold. Of 80 weights in fp32 with two moments: 4 and 4 and 8 bytes each, that of either device half.
  // Of other plans stage 2 is the plan in which whoever holds the same shares out its update evenly, as the evaluator
  // has it; stages 1 and 3 add and take away the other devices' gradients and weights.
  void zero_beside_it() {
    const auto scenario = scenario_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1", [](Settings& s) {
      s.optimizer = Optimizer::adam, s.accounting = Accounting::full, s.precision = Precision::fp32;
    });
    const auto made = update_sharding::updates_on(*scenario, cut_by("batch", 4, *scenario), {}, {});
    QVERIFY(made.has_value());
    QCOMPARE(made->held.zero, (std::array<std::int64_t, 3>{80 * 8 + 40 * 8, 80 * 4 + 40 * 12, 40 * 16}));
    // Each half has outputs of its own, and nothing that the other has: no stage saves anything.
    RatioPlan outputs = cut_by("batch", 4, *scenario);
    outputs.cuts[0].share[1] = {loop_of(scenario->model->operators[OperatorId(1)], "out-channel"), 2};
    const auto alone = update_sharding::updates_on(*scenario, outputs, {}, {});
    QVERIFY(alone.has_value());
    QCOMPARE(alone->held.zero, (std::array<std::int64_t, 3>{60 * 16, 60 * 16, 60 * 16}));
  }

  void zero_two_is_every_update_in_equal_parts() {
    int apart = 0;
    for (const auto& model : {builtin("alexnet", 240), builtin("gpt2?layers=2&hidden=256&sequence=64", 30)})
      for (const char* hardware : kUnlikeDevices)
        for (const char* of : {"accpar", "hypar"}) {
          const auto scenario = scenario_on(model, hardware, [](Settings& s) { s.optimizer = Optimizer::adam; });
          const ResultPtr base = answer_of(of, scenario);
          AnyPlan held;
          const auto made = update_sharding::updates_on(*scenario, ratio_of(base, held), {}, {});
          QVERIFY(made.has_value());
          RatioPlan even = made->plan;
          for (RatioPlan::Cut& cut : even.cuts) cut.updates.clear();
          const RatioCharges charges(*scenario, even);
          const auto places = places_of(even, *model, charges);
          QVERIFY(places.has_value());
          for (const RatioPlace& place : *places) {
            if (place.is_device()) continue;
            RatioPlan::Cut& cut = even.cuts[place.cut];
            cut.updates.assign(model->operators.size(), 0);
            for (std::size_t o = 0; o < cut.updates.size(); ++o)
              if (place.held[o] == RatioPlace::Held::alike) cut.updates[o] = ways_at(*scenario, even, place)[2];
          }
          const auto priced = evaluate_ratio_plan(*scenario, even);
          QVERIFY2(priced, priced ? "" : priced.error().message().c_str());
          CostBreakdown cost = priced->cost;
          QCOMPARE(made->held.zero[1],
                   cost[MemoryPart::parameters] + cost[MemoryPart::gradients] + cost[MemoryPart::optimizer]);
          QVERIFY(made->held.zero[0] >= made->held.zero[1] && made->held.zero[1] >= made->held.zero[2]);
          apart += made->held.zero[0] > made->held.zero[2];
        }
    QVERIFY(apart >= 6);
  }

  // A weight whose copies either half divides in a way of its own is whole, and says so.
  // The papers' accounting counts no gradients and no states, and a device holds them all the same.
  void what_is_held_is_told_in_full() {
    const auto scenario = scenario_on(builtin("alexnet", 256), "v100-16gb-1x2+a100-40gb-1x2",
                                      [](Settings& s) { s.accounting = Accounting::paper; });
    const ResultPtr result = answer_of("update-sharding:of=accpar", scenario);
    Scenario counted = *scenario;
    counted.settings.accounting = Accounting::full;
    AnyPlan held;
    const auto all = evaluate_ratio_plan(counted, ratio_of(result, held));
    QVERIFY(all.has_value());
    const auto text = [](CostBreakdown cost) {
      return format_bytes(cost[MemoryPart::parameters] + cost[MemoryPart::gradients] + cost[MemoryPart::optimizer]);
    };
    const std::string told = result->explanations.back(),
                      inside = "The fullest device holds " + text(all->cost) + " of";
    QVERIFY2(told.find(inside) != std::string::npos, told.c_str());
    QVERIFY(text(all->cost) != text(ratio_of(result, held).cost));
  }

  void what_is_held_in_unlike_ways_stays_whole() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x3");
    RatioPlan plan = cut_by("batch", 4, *scenario);
    plan.order = {0, 1, 2};
    plan.parts = {{1, {}}, {2, {0, 0}}, {3, {0, 1}}};
    plan.cuts[0].part = 2, plan.cuts[0].next[1] = 1;
    plan.cuts.push_back({1, 0.5, std::vector<RatioPlan::Share>(2), {RatioPlan::kNoCut, RatioPlan::kNoCut}});
    plan.cuts[1].share[1] = {loop_of(scenario->model->operators[OperatorId(1)], "out-channel"), 4};
    const auto made = update_sharding::updates_on(*scenario, *evaluate_ratio_plan(*scenario, plan), {}, {});
    QVERIFY(made.has_value());
    QVERIFY(!made->plan.shards_updates());
    QVERIFY2(made->weights.front().reason.find("divide it further in unlike ways") != std::string::npos,
             made->weights.front().reason.c_str());
  }

  // Parts moved by hand: updates are those that the method decides for such splits, not the found plan's in their old
  // shares; a hand that begins from the found plan, and one that moves on from there, ends where the parameters do.
  void moved_parts_have_updates_of_their_own() {
    const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x4+a100-80gb-1x2", [](Settings& s) {
      s.factors.intra_bandwidth = 30, s.factors.inter_bandwidth = 100;
    });
    int other_than_kept = 0;
    for (const std::string of : {"accpar", "hypar", "owt"}) {
      const std::string parameters = "of=" + of + ":checkpoint=1000";
      const ResultPtr found = answer_of("update-sharding:" + parameters, scenario);
      AnyPlan was, is, then;
      const RatioPlan& before = ratio_of(found, was);
      const RatioMoves once = {{0, 0.2}}, twice = {{0, 0.2}, {1, 0.4}};
      const auto moved = plan_moved_by_hand("update-sharding", parameters, *scenario, before, once, {});
      QVERIFY2(moved, moved ? "" : moved.error().message().c_str());
      // The splits are those of the found plan with that border moved, updates apart.
      RatioPlan whole = before;
      for (RatioPlan::Cut& cut : whole.cuts) cut.updates.clear();
      const auto splits = with_moves(*scenario, whole, once);
      QVERIFY(splits && splits->cuts.size() == moved->cuts.size());
      for (std::size_t c = 0; c < splits->cuts.size(); ++c) QVERIFY(splits->cuts[c].share == moved->cuts[c].share);
      const auto decided = update_sharding::updates_on(*scenario, *splits, {.checkpoint_every = 1000}, {});
      QVERIFY(decided && test::close(decided->plan.cost.time_s(), moved->cost.time_s()));
      const auto kept = with_moves(*scenario, before, once);
      QVERIFY(moved->cost.time_s() <= kept->cost.time_s() * (1 + 1e-9));
      other_than_kept += moved->cost.time_s() < kept->cost.time_s() * (1 - 1e-9);
      // The variant is this plan.
      const std::string variant = with_moves_by_hand(parameters, once);
      const ResultPtr result = answer_of("update-sharding:" + variant, scenario);
      QCOMPARE(ratio_of(result, is).cost.time_s(), moved->cost.time_s());
      QVERIFY(result->weights == decided->weights);
      QCOMPARE(result->whole_updates->time_s(), splits->cost.time_s());
      QVERIFY2(
          result->explanations.back().find("moved by hand, for which updates are decided anew") != std::string::npos,
          result->explanations.back().c_str());
      // Moved further from there, or at once.
      const auto further =
          plan_moved_by_hand("update-sharding", variant, *scenario, ratio_of(result, is), {twice.back()}, {});
      const ResultPtr both = answer_of("update-sharding:" + with_moves_by_hand(parameters, twice), scenario);
      QVERIFY(further.has_value());
      QCOMPARE(further->cost.time_s(), ratio_of(both, then).cost.time_s());
    }
    QVERIFY(other_than_kept > 0);
  }

  // Halves of unlike devices that are cut alike have one cut in a method's plan and one each here, by which moves
  // count.
  void moves_count_its_own_cuts() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x2+a100-40gb-1x2");
    RatioPlan plan = cut_by("batch", 2, *scenario);
    const std::int8_t loop = plan.cuts[0].share[1].loop;
    plan.order = {0, 1, 2, 3};
    plan.parts = {{1, {}}, {2, {0, 0}}, {4, {1, 1}}};
    plan.cuts[0].part = 2, plan.cuts[0].next = {1, 1};
    plan.cuts.push_back({1, 0.5, std::vector<RatioPlan::Share>(2), {RatioPlan::kNoCut, RatioPlan::kNoCut}});
    plan.cuts[0].share[1] = {loop, 4}, plan.cuts[1].share[1] = {loop, 2};
    const auto numbered = update_sharding::numbered_as_updated(*scenario, *evaluate_ratio_plan(*scenario, plan));
    QVERIFY(numbered && numbered->cuts.size() == 3);
    const auto moved = plan_moved_by_hand("update-sharding", "of=hypar", *scenario, *numbered, {{2, 0.25}}, {});
    QVERIFY2(moved, moved ? "" : moved.error().message().c_str());
    QCOMPARE(moved->cuts[1].share[1].first, std::int64_t(2));
    QCOMPARE(moved->cuts[2].share[1].first, std::int64_t(1));
    QCOMPARE(moved->cuts[2].ratio, 0.25);
  }

  void moves_of_what_has_no_parts_are_refused() {
    const auto unlike = scenario_on(builtin("lenet", 240), "v100-16gb-1x2+a100-40gb-1x2"),
               alike = scenario_on(builtin("lenet", 240), "v100-16gb-1x4");
    const Method& method = **find_method("update-sharding");
    QVERIFY(refusal_of(method, "of=accpar:by-hand=0@0.4", *alike).find("no ratio to move") != std::string::npos);
    QVERIFY(refusal_of(method, "of=accpar:by-hand=0@0.4", *unlike).empty());
    for (const char* parameters : {"of=ft:by-hand=0@0.4", "by-hand=0@0.4", "of=accpar:by-hand=0", "of=accpar:by-hand="})
      QVERIFY2(!make_searcher(method, parameters), parameters);
    const auto none = run("update-sharding:of=accpar:by-hand=77@0.5", unlike);
    QVERIFY(!none && none.error().what.find("none of number 77") != std::string::npos);
  }

  void results_come_back_from_files() {
    for (const char* of : {"accpar", "hypar", "accpar:by-hand=0@0.4", "accpar:recompute=needed"}) {
      const auto scenario = scenario_on(builtin("alexnet", 240), "v100-16gb-1x2+a100-40gb-1x2");
      const ResultPtr result = answer_of(std::string("update-sharding:of=") + of, scenario);
      const nlohmann::json document = nlohmann::json::parse(write_result(*result, true).dump());
      const auto opened = reopen_result(document, "r.json", {0}, {});
      QVERIFY2(opened, opened ? "" : opened.error().message().c_str());
      QVERIFY((*opened)->weights == result->weights && (*opened)->points == result->points);
      AnyPlan was, is;
      const RatioPlan &before = ratio_of(result, was), &after = ratio_of(*opened, is);
      QVERIFY(before.shards_updates());
      for (std::size_t c = 0; c < before.cuts.size(); ++c)
        for (std::size_t o = 0; o < before.operators.size(); ++o)
          QCOMPARE(after.cuts[c].update_of(OperatorId(o)), before.cuts[c].update_of(OperatorId(o)));
      // Without its plan the file is searched again; a plan that says otherwise is refused.
      nlohmann::json bare = document;
      bare.erase("plans");
      QVERIFY(reopen_result(bare, "r.json", {0}, {}));
      nlohmann::json changed = document;
      auto& updates = changed["plans"][0]["cuts"][0]["updates"];
      QVERIFY(updates.is_array() && !updates.empty());
      updates[0][1] = updates[0][1].get<double>() * 0.9;
      QVERIFY(!reopen_result(changed, "r.json", {0}, {}));
    }
  }
};

QTEST_APPLESS_MAIN(RatioPlanUpdatesTest)
#include "ratio_plan_updates_test.moc"
