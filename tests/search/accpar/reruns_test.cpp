// SPDX-License-Identifier: Apache-2.0
// What of a partition runs again in backward where memory is short. Oracles: the evaluator, the simulated clock, every
// set of operators of small networks by brute force, and what a device holds with nothing or everything run again.
#include <QtTest>

#include "core/cost/tensor_use.h"
#include "core/plan/evaluator.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan_io/ratio_json.h"
#include "core/plan_io/result_json.h"
#include "core/schedule/plan_schedule.h"
#include "core/search/accpar/reruns.h"
#include "core/search/registry.h"
#include "core/search/reopen.h"
#include "plan/ratio_plans.h"
#include "plan_io/schema_check.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;
using accpar::Recompute;

namespace {

constexpr const char* kMixed = "v100-16gb-1x4+a100-80gb-1x4";

RatioPlanPtr plan_of(const ResultPtr& result) { return std::get<RatioPlanPtr>(result->plans->plan(0)); }

accpar::WithReruns with(const Scenario& scenario, const RatioPlan& plan, Recompute how) {
  auto made = accpar::with_reruns(scenario, plan, how, {});
  if (!made) qFatal("%s", made.error().message().c_str());
  return *made;
}

ScenarioPtr with_limit(const ScenarioPtr& scenario, std::int64_t bytes) {
  auto changed = std::make_shared<Scenario>(*scenario);
  changed->settings.memory_limit = bytes;
  return changed;
}

bool simulated_fits(const Scenario& scenario, const RatioPlan& plan) {
  const auto cost = simulate_plan(scenario, plan);
  return cost && *cost->all_have_room;
}

}  // namespace

class RerunsTest : public QObject {
  Q_OBJECT

 private slots:
  // A network that does not fit: the devices that lack room run as much again as they need, the others nothing.
  void unlike_devices_run_again_what_they_need() {
    const auto scenario = scenario_on(builtin("resnet50", 2000), kMixed);
    const ResultPtr plain = answer_of("owt", scenario), needed = answer_of("owt:recompute", scenario);
    QVERIFY(!simulated_fits(*scenario, *plan_of(plain)));
    const RatioPlan& plan = *plan_of(needed);
    QVERIFY(simulated_fits(*scenario, plan));
    QVERIFY(needed->points.front().fits);
    QCOMPARE(plan.reruns.size(), std::size_t(1));
    QCOMPARE(plan.reruns[0].devices, (std::vector<std::uint32_t>{0, 1, 2, 3}));
    for (std::uint32_t d = 0; d < 8; ++d) {
      const bool same = plan.device_memory[d] == plan_of(plain)->device_memory[d];
      QCOMPARE(same, d >= 4);
    }
    QVERIFY(needed->points.front().time_s > plain->points.front().time_s);
    // Fewer seconds than what brings the peaks lowest.
    const ResultPtr all = answer_of("owt:recompute=all", scenario);
    QVERIFY(needed->points.front().time_s < all->points.front().time_s);
    QVERIFY(plan_of(all)->device_memory[0] < plan.device_memory[0]);
    const auto peak = [](const ResultPtr& result) { return *result->points.front().simulated_memory_bytes; };
    QVERIFY(peak(all) < peak(needed));
    const auto& said = needed->explanations;
    QVERIFY(std::any_of(said.begin(), said.end(), [](const std::string& words) {
      return words.starts_with("4 \u00d7 V100-SXM2-16GB run ") || words.starts_with("4 \u00d7 V100-16GB run ");
    }));
    const auto says = [](const ResultPtr& result, const char* words) {
      return std::any_of(result->explanations.begin(), result->explanations.end(),
                         [&](const std::string& one) { return one.find(words) != std::string::npos; });
    };
    QVERIFY(says(plain, "with owt:recompute operators run again"));
    QVERIFY(!says(needed, "with owt:recompute") && says(needed, " operators are cut as layers"));
    // Where there is room, nothing runs again.
    const auto roomy = scenario_on(builtin("resnet50", 64), kMixed);
    QVERIFY(plan_of(answer_of("owt:recompute=needed", roomy))->reruns.empty());
  }

  // Peaks below the plain sum: what has room by the simulated clock runs nothing again, whatever the sum says.
  void what_has_room_is_left_as_it_is() {
    int between = 0;
    for (const char* name : {"vgg16", "resnet50", "lenet", "transformer-s"}) {
      const auto scenario = scenario_on(builtin(name, 64), "v100-16gb-1x2+a100-40gb-1x2");
      const RatioPlan plan = *plan_of(answer_of("accpar", scenario));
      const std::int64_t sum = *std::max_element(plan.device_memory.begin(), plan.device_memory.end());
      const auto schedule = plan_schedule(*scenario, plan);
      QVERIFY(schedule && *schedule);
      std::int64_t peak = 0;
      for (const auto& device : (*schedule)->devices) peak = std::max(peak, device.peak_bytes);
      if (peak >= sum) continue;
      ++between;
      const auto enough = with_limit(scenario, peak);
      QVERIFY2(with(*enough, plan, Recompute::needed).plan.reruns.empty(), name);
      QVERIFY2(!with(*with_limit(scenario, peak * 9 / 10), plan, Recompute::needed).plan.reruns.empty(), name);
    }
    QVERIFY(between > 0);
  }

  void points_are_what_the_evaluator_says() {
    int again = 0;
    for (const auto& [name, model] : networks_to_cut(41, 10))
      for (const char* hardware : {"v100-16gb-1x3", kMixed})
        for (const char* method : {"accpar:recompute=all", "owt:recompute=all"}) {
          const auto scenario = scenario_on(model, hardware);
          const auto result = run(method, scenario);
          if (!result) continue;
          const RatioPlanPtr plan = plan_of(*result);
          const auto priced = evaluate_ratio_plan(*scenario, *plan);
          const std::string what = name + " on " + hardware + " by " + method;
          QVERIFY2(priced && priced->device_memory == plan->device_memory, what.c_str());
          const ResultPoint& point = (*result)->points.front();
          QVERIFY2(close(point.time_s, priced->cost.time_s()) && point.memory_bytes == priced->most_memory(),
                   what.c_str());
          RatioPlan bare = *plan;
          bare.reruns.clear();
          const auto before = evaluate_ratio_plan(*scenario, bare);
          for (std::size_t d = 0; d < plan->device_memory.size(); ++d)
            QVERIFY2(plan->device_memory[d] <= before->device_memory[d], what.c_str());
          // Nothing is exchanged once more; of which device an operator's time is told may change.
          const auto sent = [](const RatioPlan& of) {
            double bytes = 0;
            for (const auto* list : {&of.exchanges, &of.weights})
              for (const RatioPlan::Exchange& exchange : *list) bytes += exchange.all_bytes;
            return bytes;
          };
          QCOMPARE(sent(*priced), sent(*before));
          again += !plan->reruns.empty();
        }
    QVERIFY2(again > 15, qPrintable(QString::number(again)));
  }

  // Of all sets of operators of small networks none that holds as little as is asked for computes much less.
  void near_the_best_of_all_sets() {
    int judged = 0;
    for (const auto& [name, model] : networks_to_cut(43, 12)) {
      // Plain sums decide there.
      const auto scenario =
          scenario_on(model, "v100-16gb-1x1+a100-80gb-1x1", [](Settings& s) { s.accounting = Accounting::paper; });
      // Those that may run again in plans of equal devices, too.
      const TensorUses uses = analyse_tensor_uses(*scenario->model);
      std::vector<OperatorId> computing;
      for (std::size_t o = 0; o < scenario->model->operators.size(); ++o)
        if (uses.run_again[o] != RunAgain::never) computing.push_back(OperatorId(o));
      const auto found = run("owt", scenario);
      if (computing.empty() || computing.size() > 10 || !found) continue;
      const RatioPlan plain = *plan_of(*found);
      struct Way {
        std::int64_t bytes;
        double seconds;
      };
      std::vector<Way> ways;
      for (std::uint32_t set = 0; set < (1u << computing.size()); ++set) {
        RatioPlan plan = plain;
        plan.reruns = {{{0}, {}}};
        for (std::size_t i = 0; i < computing.size(); ++i)
          if (set >> i & 1) plan.reruns[0].operators.push_back(computing[i]);
        const auto priced = evaluate_ratio_plan(*scenario, plan);
        QVERIFY(priced.has_value());
        ways.push_back({priced->device_memory[0], priced->device_compute_s[0]});
      }
      const auto bytes_then = [](Way a, Way b) { return a.bytes < b.bytes; };
      const std::int64_t least = std::min_element(ways.begin(), ways.end(), bytes_then)->bytes;
      const std::int64_t most = plain.device_memory[0];
      if (least == most) continue;
      for (int part = 0; part <= 4; ++part) {
        const std::int64_t limit = least + (most - least) * part / 4;
        const auto made = with(*with_limit(scenario, limit), plain, Recompute::needed).plan;
        const std::int64_t held = made.device_memory[0];
        QVERIFY2(held <= limit || (part == 0 && most - held >= (most - least) * 3 / 4), name.c_str());
        double best = 1e9;
        for (const Way& way : ways)
          if (way.bytes <= std::max(held, limit)) best = std::min(best, way.seconds);
        QVERIFY2(made.device_compute_s[0] <= best * 1.1, name.c_str());
      }
      ++judged;
    }
    QVERIFY2(judged >= 5, qPrintable(QString::number(judged)));
  }

  void files_bring_them_back() {
    SchemaCheck schemas{TURNPOINT_SOURCE_DIR "/resources/schemas"};
    const auto scenario = scenario_on(builtin("resnet18", 60), "v100-16gb-1x3");
    const ResultPtr result = answer_of("accpar:recompute=all", scenario);
    const nlohmann::json held = write_result(*result, true)["plans"][0];
    QCOMPARE(schemas.check("plan@1", held), std::string());
    QVERIFY(!held["recompute"].empty());
    const auto read = read_ratio_plan(held, "there", *scenario);
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
    QVERIFY(write_ratio_plan(*scenario, *read) == held);
    QCOMPARE(read->device_memory, plan_of(result)->device_memory);
    const auto refusal = [&](const nlohmann::json& value) {
      nlohmann::json broken = held;
      broken["recompute"] = value;
      const auto made = read_ratio_plan(broken, "there", *scenario);
      return made ? std::string() : made.error().message();
    };
    const nlohmann::json all = nlohmann::json::array({0, 1, 2}), some = nlohmann::json::array({1, 2});
    QVERIFY(refusal({{{"devices", all}, {"operators", some}}}).empty());
    const std::pair<nlohmann::json, const char*> rows[] = {
        {{{{"devices", 0}, {"operators", some}}}, "must list operators for devices"},
        {{{{"devices", all}}}, "must list operators for devices"},
        {{{{"devices", {9}}, {"operators", some}}}, "is not said once of one of 3 devices"},
        {{{{"devices", all}, {"operators", {99999}}}}, "99999 is not a whole number up to"},
        {{{{"devices", all}, {"operators", {0}}}}, "computes nothing that could run again"},
        {{{{"devices", all}, {"operators", {2, 1}}}}, "is not in rising order"},
        {nlohmann::json(4, {{"devices", all}, {"operators", some}}), "must list operators for devices"},
    };
    for (const auto& [value, words] : rows) {
      const std::string said = refusal(value);
      QVERIFY2(said.find(words) != std::string::npos, (value.dump() + ": " + said).c_str());
    }
  }

  // On equal devices the plan is a sharding plan, with ft's choices of what runs again and nothing else of them.
  void equal_devices_too() {
    const auto scenario = scenario_on(builtin("resnet50", 64), "v100-16gb-1x4");
    for (const char* method : {"accpar", "hypar", "owt"}) {
      const std::string name = method;
      const ResultPtr plain = answer_of(name, scenario), all = answer_of(name + ":recompute=all", scenario);
      const auto peak = [&](const ResultPtr& result) { return *result->points.front().simulated_memory_bytes; };
      QVERIFY(peak(all) < peak(plain));
      const auto tight = with_limit(scenario, (peak(plain) + peak(all)) / 2);
      QVERIFY(peak(answer_of(name, tight)) > tight->memory_limit());
      const ResultPtr needed = answer_of(name + ":recompute", tight);
      QCOMPARE(needed->points.size(), std::size_t(1));
      QVERIFY2(peak(needed) <= tight->memory_limit(), method);
      QVERIFY2(needed->points.front().time_s < all->points.front().time_s, method);
      const Plan plan = needed->plans->sharding(0);
      const auto evaluated = evaluate_plan(*tight, plan);
      QVERIFY(evaluated && close(evaluated->time_s(), needed->points.front().time_s));
      int again = 0;
      for (const PlanOperator& op : plan.operators) {
        MemoryChoice others = op.choice;
        others.recompute = false;
        QVERIFY(others == MemoryChoice{});
        again += op.choice.recompute;
      }
      QVERIFY(again > 0);
      QCOMPARE(needed->method + ':' + needed->method_options, name + ":recompute");
    }
    QVERIFY(traits_of("accpar", "recompute").recomputes && traits_of("owt", "recompute=all").recomputes &&
            !traits_of("hypar", "").recomputes);
  }
};

QTEST_APPLESS_MAIN(RerunsTest)
#include "reruns_test.moc"
