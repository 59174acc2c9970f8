// SPDX-License-Identifier: Apache-2.0
// Micro-batches in methods that solve a frontier problem: against the independent evaluator, against hand-made splits,
// sums of gradients by hand, and the frontier over all numbers against those of each.
#include <QtTest>
#include <random>
#include <set>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/frontier/pareto.h"
#include "core/import/source/model_source.h"
#include "core/plan/evaluator.h"
#include "core/plan/one_stage.h"
#include "core/search/frontier_tracking/micro_batches.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ResultPtr answer(const std::string& method, const ScenarioPtr& scenario) {
  auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return *result;
}

std::string why_not(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  return result ? "" : result.error().message();
}

/// The plans' own sums and the evaluator agree with the points; how many were asked.
int check_plans(const Result& result, const Scenario& scenario, int micro_batches) {
  int checked = 0;
  for (std::size_t k = 0; k < result.points.size(); k += 1 + result.points.size() / 12) {
    const ResultPoint& point = result.points[k];
    const Plan plan = result.plans->sharding(k);
    const int parts = plan.micro_batches();
    if (micro_batches > 0 && parts != micro_batches) return 0;
    if (result.plans->kind(k) != (parts > 1 ? PlanKind::pipeline : PlanKind::sharding)) return 0;
    CostBreakdown own = plan.cost;
    const auto cost = evaluate_plan(scenario, plan);
    if (!cost) qFatal("%s", cost.error().message().c_str());
    for (const CostBreakdown& sum : {own, *cost})
      if (sum.memory_bytes() != point.memory_bytes || !test::close(sum.time_s(), point.time_s) ||
          !test::close(sum.compute_s(), point.compute_s))
        return 0;
    for (std::size_t i = 0; i < own.memory.size(); ++i)
      if (own.memory[i] != cost->memory[i]) return 0;
    for (std::size_t i = 0; i < own.compute.size(); ++i)
      if (!test::close(own.compute[i], cost->compute[i])) return 0;
    for (std::size_t i = 0; i < own.network.size(); ++i)
      if (!test::close(own.network[i], cost->network[i])) return 0;
    ++checked;
  }
  return checked;
}

frontier::CostList costs_of(const Result& result) {
  frontier::CostList costs;
  for (const ResultPoint& point : result.points) costs.push_back({point.memory_bytes, point.time_s});
  return costs;
}

ModelPtr small_decoder(std::int64_t batch = 16) { return builtin("gpt2?layers=2&hidden=64&sequence=16", batch); }

}  // namespace

class MicroBatchesTest : public QObject {
  Q_OBJECT

 private slots:
  /// One stage, searched or typed: backward is that of every micro-batch by itself, and adding up gradients, by hand.
  void every_micro_batch_adds_its_gradients() {
    for (const char* method : {"ft:micro-batches=4", "manual:micro-batches=4", "data-parallel:micro-batches=4"}) {
      const auto scenario = scenario_on(test::attention(16), "v100-16gb-1x4",
                                        [](Settings& s) { s.update_sharding = s.offload = s.recompute = false; });
      const auto& device = scenario->cluster->device;
      const ResultPtr result = answer(method, scenario);
      const Plan plan = result->plans->sharding(0);
      const auto one = one_stage_of(*scenario, 1, 4);
      QVERIFY(one.has_value());
      const Model& model = *(*one)->model;
      const ReshardingModel resharding(plan.mesh, collectives_of(**one), 1e12);
      const TensorUses uses = analyse_tensor_uses(model);
      const OperatorCostModel costs(**one, uses, resharding);
      double alone = 0, sums = 0;
      for (const PlanOperator& planned : plan.operators) {
        alone += costs.cost(planned.op, planned.split, planned.choice).breakdown[ComputePart::backward];
        const Operator& op = model.operators[planned.op];
        for (std::size_t k = 0; k < op.inputs.size(); ++k) {
          if (!uses.owns_parameter[planned.op.index][k]) continue;  // tied weights have one gradient
          const Tensor& tensor = model.tensors[op.inputs[k].tensor];
          const Layout layout = gradient_layout(op, op.inputs[k], false, planned.split, plan.mesh.count());
          const auto elements = static_cast<double>(local_elements(plan.mesh, layout, tensor.shape));
          sums += 12 * elements / (device.memory_bandwidth * device.memory_efficiency) + device.launch_s;
        }
      }
      auto cost = evaluate_plan(*scenario, plan);
      QVERIFY2(cost.has_value() && test::close(cost->time_s(), result->points.front().time_s), method);
      QVERIFY2(sums > 0 && test::close((*cost)[ComputePart::backward], 4 * alone + 3 * sums), method);
    }
  }

  void plans_cost_what_the_evaluator_says() {
    std::mt19937_64 random(7);
    int checked = 0;
    for (const auto& model : {test::mlp(), test::residual(), test::attention(), test::convolution(), small_decoder()})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-2x2", "h100-80gb-1x4"})
        for (const int parts : {2, 4}) {
          const auto scenario = scenario_on(model, hardware, [&](Settings& s) {
            s.precision = random() % 2 ? Precision::bf16 : Precision::fp32;
            s.gradients = random() % 3 ? Gradients::as_weights : Gradients::fp32;
            s.collectives = random() % 3 ? Collectives::library : Collectives::rings;
            s.recompute = random() % 4 > 0, s.update_sharding = random() % 4 > 0, s.offload = random() % 4 > 0;
          });
          for (const std::string method : {"ft", "data-parallel", "optcnn"}) {
            const auto result = answer(method + ":micro-batches=" + std::to_string(parts), scenario);
            QCOMPARE(result->method, method);
            const int now = check_plans(*result, *scenario, parts);
            QVERIFY2(now > 0, qPrintable(QString("%1 of %2 on %3 in %4 parts")
                                             .arg(method.c_str(), model->name.c_str(), hardware)
                                             .arg(parts)));
            checked += now;
          }
        }
    QVERIFY(checked > 200);
  }

  void ft_has_all_unless_told_and_others_one() {
    const auto scenario = scenario_on(test::attention(), "v100-16gb-1x4");
    QVERIFY(answer("ft", scenario)->points == answer("ft:micro-batches=all", scenario)->points);
    QVERIFY(answer("data-parallel", scenario)->points == answer("data-parallel:micro-batches=1", scenario)->points);
    QVERIFY(traits_of("ft", "").micro_batches && traits_of("data-parallel", "micro-batches=2").micro_batches &&
            traits_of("optcnn", "micro-batches=all").micro_batches);
    QVERIFY(!traits_of("ft", "micro-batches=1").micro_batches && !traits_of("data-parallel", "").micro_batches);
  }

  // The papers have no micro-batches, and their accounting is theirs.
  void the_papers_accounting_has_one() {
    const auto scenario =
        scenario_on(test::attention(), "v100-16gb-1x4", [](Settings& s) { s.accounting = Accounting::paper; });
    QVERIFY(search::micro_batch_numbers(*scenario) == std::vector<int>{1});
    const auto all = answer("ft", scenario);
    QVERIFY(all->points == answer("ft:micro-batches=1", scenario)->points);
    QVERIFY(all->exact && std::isinf(all->slowest_considered_s));
  }

  // What is slower than any plan of the whole batch says nothing of where memory pays.
  void plans_slower_than_the_whole_batch_are_not_considered() {
    const auto scenario = scenario_on(test::attention(16), "v100-16gb-2x2");
    const auto all = answer("ft", scenario), one = answer("ft:micro-batches=1", scenario);
    QVERIFY(one->exact && std::isinf(one->slowest_considered_s));
    QVERIFY(all->points[0].time_s > one->points[0].time_s && all->points[0].memory_bytes < one->points[0].memory_bytes);
    QVERIFY(test::close(all->slowest_considered_s, one->points[0].time_s));
    const std::size_t first = all->first_considered();
    QVERIFY(first > 0 && all->points[first].time_s <= all->slowest_considered_s);
    QVERIFY(all->points[first - 1].time_s > all->slowest_considered_s);
    QVERIFY(all->turning_point && *all->turning_point >= first && all->near_best && *all->near_best >= first);
    QVERIFY(all->turning_point == find_turning_point(all->points, all->slowest_considered_s));
    // To the end where that is asked for.
    const auto whole = answer("ft:gap=0", scenario);
    QVERIFY(whole->exact && *whole->gap == 0);
    for (const ResultPoint& point : all->points)
      QVERIFY(frontier::time_at(costs_of(*whole), point.memory_bytes) <= point.time_s * (1 + 1e-12));
    QCOMPARE(whole->points.front().memory_bytes, all->points.front().memory_bytes);
    // A device on which only slow plans fit has them considered.
    const auto tight = std::make_shared<Scenario>(*scenario);
    tight->settings.memory_limit = all->points[first].memory_bytes - 1;
    const auto small = answer("ft", tight);
    QCOMPARE(small->first_considered(), std::size_t(0));
    QVERIFY(small->near_best && small->points[*small->near_best].fits);
  }

  // Of what is left out every plan is slower than any of the whole batch, and the result says what it is. Where there
  // is less room nothing is.
  void what_is_left_out_is_slower() {
    const auto scenario = scenario_on(test::attention(16), "v100-16gb-2x2");
    const auto all = answer("ft", scenario);
    const std::string& says = all->explanations.back();
    QVERIFY2(says.starts_with("Not searched: 4, 8 micro-batches."), says.c_str());
    QCOMPARE(all->bounds.size(), search::micro_batch_numbers(*scenario).size());
    for (const int left_out : {4, 8}) {
      const auto alone = answer("ft:micro-batches=" + std::to_string(left_out), scenario);
      QVERIFY(alone->points.back().time_s > all->slowest_considered_s);
      const auto bound = std::ranges::find(all->bounds, left_out, &NumberBound::micro_batches);
      QVERIFY(bound != all->bounds.end() && bound->lines.size() == 1 && bound->lines[0].per_byte == 0);
      QVERIFY(bound->lines[0].time > all->slowest_considered_s &&
              bound->lines[0].time <= alone->points.back().time_s * (1 + 1e-9));
    }
    const auto tight = std::make_shared<Scenario>(*scenario);
    tight->settings.memory_limit = all->points[all->first_considered()].memory_bytes * 5 / 4;
    for (const std::string& other : answer("ft", tight)->explanations) QVERIFY(!other.starts_with("Not searched"));
  }

  // Less stays open where people look than elsewhere.
  void the_turning_point_is_certain_to_a_tenth_of_a_per_cent() {
    const auto scenario = scenario_on(test::builtin("resnet18?width=16", 128), "a100-40gb-1x4");
    const auto there = [](const Result& result) { return *gap_at(result, *result.turning_point); };
    const auto asked = answer("ft:gap=0.0031", scenario), usual = answer("ft", scenario);
    QVERIFY2(there(*asked) > 0.001, "nothing is open there: take another network");
    QVERIFY(there(*usual) <= 0.001 && *usual->gap <= search::kOpenGap * (1 + 1e-9));
    const auto finer = answer("ft:gap=0.0005", scenario);
    for (const ResultPoint& point : finer->points)
      QVERIFY(point.time_s >= frontier::time_at(usual->lower_bound, point.memory_bytes) * (1 - 1e-9));
  }

  // Plans under a slider are real, no better than what is certain, and near the frontier where it is considered.
  void moves_of_a_slider() {
    using Move = std::pair<ModelPtr, std::vector<double>>;
    for (const auto& [model, moves] : {Move{small_decoder(8), {0.25}}, Move{test::attention(8), {6.0}}}) {
      const auto searcher = std::move(*make_searcher(**find_method("ft")));
      const auto scenario = scenario_on(model, "v100-16gb-2x2");
      QVERIFY(searcher->run(scenario, SearchPass::coarse, {}) && searcher->run(scenario, SearchPass::exact, {}));
      for (const double faster : moves) {
        auto position = std::make_shared<Scenario>(*scenario);
        position->settings.factors.inter_bandwidth = faster;
        const auto drawn = searcher->run(position, SearchPass::coarse, {});
        QVERIFY(drawn && check_plans(**drawn, *position, 0) > 3);
        const auto exact = answer("ft", position);
        const frontier::CostList reached = costs_of(**drawn), best = costs_of(*exact);
        QVERIFY((*drawn)->gap && !(*drawn)->lower_bound.empty());
        for (const auto& point : best)
          QVERIFY(frontier::time_at((*drawn)->lower_bound, point.memory) <= point.time * (1 + 1e-9));
        const double range = best[exact->first_considered()].time - best.back().time,
                     grain = 0.04 * double(best.back().memory - best.front().memory);
        for (std::size_t i = exact->first_considered(); i < best.size(); ++i)
          QVERIFY(frontier::time_at(reached, best[i].memory + std::int64_t(grain)) <= best[i].time + 0.04 * range);
      }
    }
  }

  // With slow links numbers count that were of no use before. Where the hand rests they are found, once the search has
  // got ready; without, plans are drawn all the same.
  void a_hand_at_rest_finds_the_numbers_that_count_there() {
    const auto scenario =
        scenario_on(*(*open_model("builtin:gpt2?layers=1&hidden=64"))->bind({16, 32}), "v100-16gb-2x2");
    const auto position = std::make_shared<Scenario>(*scenario);
    position->settings.factors.inter_bandwidth = 0.125;
    const auto exact = answer("ft", position);
    const auto numbers = [](const Result& result) {
      std::set<int> found;
      for (std::size_t i = result.first_considered(); i < result.points.size(); ++i)
        found.insert(result.plans->sharding(i).micro_batches());
      return found;
    };
    const frontier::CostList best = costs_of(*exact);
    const double range = best[exact->first_considered()].time - best.back().time;
    const auto grain = std::int64_t(0.005 * double(best.back().memory - best.front().memory));
    for (const bool ready : {false, true}) {
      const auto searcher = std::move(*make_searcher(**find_method("ft")));
      const auto before = searcher->run(scenario, SearchPass::exact, {});
      QVERIFY(before.has_value());
      QVERIFY2(2 * *numbers(**before).rbegin() < *numbers(*exact).rbegin(), "slow links change nothing here");
      if (ready) QVERIFY(searcher->get_ready(scenario, {}).has_value());
      QVERIFY(searcher->run(position, SearchPass::coarse, {}).has_value());
      const auto rests = searcher->run(position, SearchPass::coarse, {});
      QVERIFY(rests && check_plans(**rests, *position, 0) > 3);
      if (!ready) {  // a hand that moves on before the exact answer
        std::stop_source stop;
        stop.request_stop();
        QVERIFY(!searcher->run(position, SearchPass::exact, {stop.get_token(), {}, 0}).has_value());
        const auto beyond = std::make_shared<Scenario>(*position);
        beyond->settings.factors.inter_bandwidth = 4;
        const auto moved_on = searcher->run(beyond, SearchPass::coarse, {});
        QVERIFY(moved_on && check_plans(**moved_on, *beyond, 0) > 3);
        continue;
      }
      // Those at least that show.
      QVERIFY(*numbers(**rests).rbegin() > 2 * *numbers(**before).rbegin());
      const frontier::CostList reached = costs_of(**rests);
      for (std::size_t i = exact->first_considered(); i < best.size(); ++i)
        QVERIFY(frontier::time_at(reached, best[i].memory + grain) <= best[i].time + 0.005 * range);
    }
  }

  // Under other prices a number that a move leaves out may have the best plans: what is certain allows for them.
  void numbers_that_a_move_leaves_out_are_bounded_too() {
    const auto searcher = std::move(*make_searcher(**find_method("ft")));
    const auto scenario = scenario_on(small_decoder(8), "v100-16gb-2x2");
    QVERIFY(searcher->run(scenario, SearchPass::coarse, {}) && searcher->run(scenario, SearchPass::exact, {}));
    auto position = std::make_shared<Scenario>(*scenario);
    position->settings.factors.intra_bandwidth = 0.3;
    const auto drawn = searcher->run(position, SearchPass::coarse, {});
    QVERIFY(drawn && !(*drawn)->exact && !(*drawn)->lower_bound.empty());
    for (const auto& point : costs_of(*answer("ft", position)))
      QVERIFY(frontier::time_at((*drawn)->lower_bound, point.memory) <= point.time * (1 + 1e-9));
  }

  void data_parallel_is_the_split_of_ones_own() {
    for (const auto& model : {test::mlp(), small_decoder(), test::attention(16)})
      for (const int parts : {2, 4}) {
        const auto scenario = scenario_on(model, "v100-16gb-2x2");
        const std::string of = ":micro-batches=" + std::to_string(parts);
        const auto found = answer("data-parallel" + of, scenario), typed = answer("manual:dp=4" + of, scenario);
        QCOMPARE(found->points.size(), std::size_t(1));
        QCOMPARE(found->points[0].memory_bytes, typed->points[0].memory_bytes);
        QVERIFY(test::close(found->points[0].time_s, typed->points[0].time_s));
        QVERIFY(test::close(found->points[0].compute_s, typed->points[0].compute_s));
      }
  }

  void rules_of_practice_are_splits_of_ones_own() {
    const auto scenario = scenario_on(builtin("gpt2?layers=1&hidden=256&sequence=16", 32), "v100-16gb-2x2");
    for (const int zero : {1, 2, 3}) {
      const std::string of = ":micro-batches=4:zero=" + std::to_string(zero);
      const auto found = answer("fsdp" + of, scenario), typed = answer("manual:dp=4" + of, scenario);
      QCOMPARE(found->method, std::string("fsdp"));
      QVERIFY(found->points == typed->points);
      QCOMPARE(check_plans(*found, *scenario, 4), 1);
    }
    const auto megatron = answer("megatron:micro-batches=4", scenario);
    QVERIFY(check_plans(*megatron, *scenario, 4) > 0);
    for (const ResultPoint& point : megatron->points) {
      bool same = false;
      for (const std::string groups : {"dp=4", "dp=2:tp=2"})
        same = same || answer("manual:" + groups + ":micro-batches=4", scenario)->points[0] == point;
      QVERIFY(same);
    }
    const std::string why = why_not("megatron:micro-batches=64", scenario);
    QVERIFY2(why.find("a batch of 32 cannot be divided among 4 groups and 64 micro-batches") != std::string::npos,
             why.c_str());
    QVERIFY(why_not("fsdp:micro-batches=5", scenario).find("cannot be cut into 5") != std::string::npos);
  }

  // Stage 1 of ZeRO too: whole gradients that are summed once.
  void no_split_without_stages_lies_below() {
    int compared = 0;
    for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x2"}) {
      const auto scenario = scenario_on(builtin("gpt2?layers=1&hidden=256&sequence=16", 32), hardware);  // 4 heads
      for (const int parts : {2, 8}) {
        const std::string of = ":micro-batches=" + std::to_string(parts);
        const auto best = answer("ft" + of, scenario);
        for (const std::string split : {"dp=4", "dp=2:tp=2", "tp=4"})
          for (const int zero : {0, 1, 2, 3}) {
            const std::string text = "manual:" + split + of + ":zero=" + std::to_string(zero);
            const auto typed = run(text, scenario);
            if (!typed) continue;
            const ResultPoint& point = (*typed)->points[0];
            const auto found = std::find_if(best->points.rbegin(), best->points.rend(),
                                            [&](const ResultPoint& p) { return p.memory_bytes <= point.memory_bytes; });
            QVERIFY2(found != best->points.rend() && found->time_s <= point.time_s * (1 + 1e-9), text.c_str());
            ++compared;
          }
      }
    }
    QVERIFY(compared >= 36);
  }

  void over_all_numbers_it_is_the_lower_envelope() {
    int exact = 0;
    for (const auto& model : {test::mlp(32), small_decoder(8), test::convolution(8)}) {
      // In rings, since every number is to be exact here.
      const auto scenario =
          scenario_on(model, "v100-16gb-1x4", [](Settings& s) { s.collectives = Collectives::rings; });
      const auto numbers = search::micro_batch_numbers(*scenario);
      QVERIFY(numbers.size() >= 4 && numbers[0] == 1);
      const auto all = answer("ft:micro-batches=all", scenario);
      frontier::CostList envelope, reached;
      for (const int parts : numbers) {
        const auto one = answer("ft:micro-batches=" + std::to_string(parts), scenario);
        QVERIFY(one->exact);
        envelope = frontier::unite(envelope, costs_of(*one));
      }
      reached = costs_of(*all);
      exact += all->exact;
      if (all->exact) {
        QCOMPARE(*all->gap, 0.0);
        for (const auto& list : {reached, envelope})  // sums made in another order differ in their last bit
          for (const auto& point : list)
            QVERIFY(test::close(frontier::time_at(reached, point.memory), frontier::time_at(envelope, point.memory)));
      } else {
        QVERIFY2(all->gap && *all->gap > 0 && *all->gap < 0.02, std::to_string(all->gap.value_or(-1)).c_str());
        for (const auto& point : reached) QVERIFY(frontier::time_at(envelope, point.memory) <= point.time * (1 + 1e-9));
        bool slower = false;  // the bound holds of slow plans as well, the gap does not speak of them
        for (const auto& point : envelope) {
          QVERIFY(frontier::time_at(all->lower_bound, point.memory) <= point.time * (1 + 1e-9));
          const double have = std::min(frontier::time_at(reached, point.memory), all->slowest_considered_s);
          QVERIFY(have * (1 - *all->gap) <= point.time * (1 + 1e-9));
          slower = slower || point.time > all->slowest_considered_s;
        }
        QVERIFY(slower);
        QVERIFY(std::abs(*all->gap - considered_gap(*all)) < 1e-12);
        // A device that may have no room for plans that are as fast: slower ones count as much.
        const auto tight = std::make_shared<Scenario>(*scenario);
        tight->settings.memory_limit = all->points[all->first_considered()].memory_bytes * 5 / 4;
        const auto small = answer("ft", tight);
        QVERIFY(gap_between(small->lower_bound, costs_of(*small)) < 0.003 * (1 + 1e-6));
        QVERIFY(gap_between(all->lower_bound, reached) > 0.03 && all->points.size() < small->points.size());
      }
      QVERIFY(check_plans(*all, *scenario, 0) > 5);
    }
    QVERIFY(exact > 0);
  }

  // The same searcher at other prices, and for another model, says what a fresh one says.
  void a_searcher_is_asked_again() {
    const Method& ft = **find_method("ft");
    for (const std::string text : {"micro-batches=2", "micro-batches=all"}) {
      const auto kept = std::move(*make_searcher(ft, text));
      for (const auto& model : {test::attention(), test::mlp(16), test::attention()})
        for (const double faster : {1.0, 4.0}) {
          const auto scenario =
              scenario_on(model, "v100-16gb-2x2", [&](Settings& s) { s.factors.inter_bandwidth = faster; });
          const auto again = kept->run(scenario, SearchPass::exact, {});
          QVERIFY(again.has_value());
          const auto fresh = answer("ft:" + text, scenario);
          QVERIFY((*again)->points == fresh->points);
          QCOMPARE((*again)->scenario, scenario);
          QCOMPARE((*again)->method_options, text);
        }
    }
  }

  void what_cannot_be_cut_is_refused() {
    const auto scenario = scenario_on(test::attention(8), "v100-16gb-1x2");
    const auto says = [&](const std::string& method, const char* words) {
      const std::string said = why_not(method, scenario);
      QVERIFY2(said.find(words) != std::string::npos, said.c_str());
    };
    says("ft:micro-batches=3", "a batch of 8 cannot be cut into 3 micro-batches");
    says("ft:micro-batches=16", "a batch of 8 cannot be cut into 16 micro-batches");
    says("ft:micro-batches=-1", "micro-batches");
    says("ft:micro-batches=two", "a number or all");
    says("optcnn:parts=2", "parts");
    // A micro-batch smaller than the devices are many.
    const auto small = answer("data-parallel:micro-batches=8", scenario);
    QVERIFY2(small->notes.back().find("a micro-batch of 1 cannot be divided over 2 devices") != std::string::npos,
             small->notes.back().c_str());
  }
};

QTEST_APPLESS_MAIN(MicroBatchesTest)
#include "micro_batches_test.moc"
