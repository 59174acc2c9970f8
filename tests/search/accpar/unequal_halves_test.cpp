// SPDX-License-Identifier: Apache-2.0
// AccPar on unlike devices, and on numbers of devices that are no power of two: ratio plans that hold everything, that
// gain from the faster devices, and that files bring back.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/ratio_evaluator.h"
#include "core/plan_io/ratio_json.h"
#include "core/plan_io/result_json.h"
#include "core/search/reopen.h"
#include "plan_io/schema_check.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

RatioPlanPtr plan_of(const ResultPtr& result) { return std::get<RatioPlanPtr>(result->plans->plan(0)); }

constexpr const char* kMixed = "v100-16gb-1x4+a100-80gb-1x4";
constexpr const char* kUnlikeNodes = "v100-16gb-1x4+a100-80gb-1x2";

}  // namespace

class UnequalHalvesTest : public QObject {
  Q_OBJECT

 private slots:
  void plans_evaluate_to_their_points() {
    const auto models = networks_to_cut(11, 10);
    int plans = 0;
    for (const auto& [name, model] : models)
      for (const char* hardware : {"v100-16gb-1x3", "v100-16gb-1x6", "v100-16gb-3x2x1@0.5", kMixed, kUnlikeNodes})
        for (const char* method : {"accpar", "accpar:ratio=paper", "accpar:ratio=equal", "hypar", "owt"}) {
          const auto scenario = scenario_on(model, hardware);
          const auto result = run(method, scenario);
          const std::string what = name + " on " + hardware + " by " + method;
          if (!result) {
            QVERIFY2(result.error().message().find("smaller than its group") != std::string::npos,
                     (what + result.error().message()).c_str());
            continue;
          }
          const ResultPoint& point = (*result)->points.front();
          const auto again = evaluate_ratio_plan(*scenario, *plan_of(*result));
          QVERIFY2(again.has_value(), (what + (again ? "" : again.error().message())).c_str());
          QVERIFY2(again->most_memory() == point.memory_bytes && close(again->cost.time_s(), point.time_s),
                   what.c_str());
          // Weights are somewhere, once at least.
          std::int64_t held = 0;
          for (const std::int64_t bytes : again->device_memory) held += bytes;
          QVERIFY2(held >= model->parameters * 16, what.c_str());
          ++plans;
        }
    QVERIFY2(plans > 250, qPrintable(QString::number(plans)));
  }

  // Shares by speed beat equal shares, and these data parallelism at the weakest device's speed.
  void unlike_devices_are_used_for_what_they_are() {
    for (const char* model : {"alexnet", "vgg11", "resnet50"}) {
      const auto scenario = scenario_on(builtin(model, 256), kMixed);
      const auto time = [&](const char* method) { return answer_of(method, scenario)->points.front().time_s; };
      const double shares = time("accpar"), equal = time("accpar:ratio=equal");
      QVERIFY2(shares < equal * 0.99, model);
      QVERIFY2(equal < time("data-parallel") * 1.01, model);
    }
    // The first cut stands between the kinds, the faster ones have more of it.
    const auto scenario = scenario_on(builtin("vgg11", 256), kMixed);
    const RatioPlanPtr plan = plan_of(answer_of("accpar", scenario));
    QVERIFY(plan->cuts.front().ratio < 0.5 && plan->cuts.front().ratio > 0.3);
    for (std::uint32_t d = 0; d < 4; ++d) QCOMPARE(plan->order[d], d);
  }

  // Four old devices beside two new ones: the newer two carry more than a third of the work, and the whole is faster
  // than on the four of either kind alone.
  void nodes_of_unlike_size_are_used_for_what_they_are() {
    const auto model = builtin("vgg11", 240);
    const auto time = [&](const char* method, const char* hardware) {
      return answer_of(method, scenario_on(model, hardware))->points.front().time_s;
    };
    const RatioPlanPtr plan = plan_of(answer_of("accpar", scenario_on(model, kUnlikeNodes)));
    QCOMPARE(plan->whole(), static_cast<std::uint32_t>(plan->parts.size() - 1));
    const RatioPlan::Part& whole = plan->parts.back();
    QCOMPARE(plan->parts[whole.halves[0]].devices, 4u);
    QCOMPARE(plan->parts[whole.halves[1]].devices, 2u);
    QVERIFY2(plan->cuts.front().ratio > 0.3 && plan->cuts.front().ratio < 0.66,
             qPrintable(QString::number(plan->cuts.front().ratio)));
    QVERIFY(time("accpar", kUnlikeNodes) < time("accpar:ratio=equal", kUnlikeNodes) * 0.95);
    QVERIFY(time("accpar", kUnlikeNodes) < time("accpar", "v100-16gb-1x4"));
  }

  // Pods whose nodes have less of the network outside cost more than pods that have all of it.
  void pods_are_levels_of_the_tree() {
    const auto model = builtin("vgg11", 240);
    double before = 0;
    for (const char* hardware : {"v100-16gb-12x1", "v100-16gb-3x4x1@0.5", "v100-16gb-3x4x1@0.1"}) {
      const auto scenario = scenario_on(model, hardware);
      const double now = answer_of("accpar:ratio=exact", scenario)->points.front().time_s;
      QVERIFY2(now >= before * 0.999, hardware);
      if (before > 0) {
        // The first cuts are between pods.
        const RatioPlanPtr plan = plan_of(answer_of("accpar:ratio=exact", scenario));
        QCOMPARE(plan->parts[plan->parts.back().halves[0]].devices % 4, 0u);
      }
      before = now;
    }
  }

  // Three equal devices: two thirds and one third, not halves.
  void odd_numbers_are_balanced() {
    const auto scenario = scenario_on(builtin("alexnet", 252), "v100-16gb-1x3");
    const RatioPlanPtr plan = plan_of(answer_of("accpar", scenario));
    QVERIFY(std::abs(plan->cuts.front().ratio - 2.0 / 3) < 0.05);
    QVERIFY(answer_of("accpar", scenario)->points.front().time_s <
            answer_of("accpar:ratio=equal", scenario)->points.front().time_s * 0.8);
  }

  void files_bring_plans_back() {
    SchemaCheck schemas{TURNPOINT_SOURCE_DIR "/resources/schemas"};
    for (const char* hardware : {"v100-16gb-1x3", kMixed}) {
      const auto scenario = scenario_on(builtin("lenet", 60), hardware);
      const ResultPtr result = answer_of("accpar", scenario);
      const nlohmann::json document = write_result(*result, true);
      const nlohmann::json& held = document["plans"][0];
      QCOMPARE(schemas.check("plan@1", held), std::string());
      const auto read = read_ratio_plan(held, "there", *scenario);
      QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
      QVERIFY(write_ratio_plan(*scenario, *read) == held);
      QCOMPARE(held["layers"].size(), plan_of(result)->layers.size());
      QCOMPARE(held["layers"][0]["levels"].size(), plan_of(result)->cuts.size());
      QCOMPARE(read->follows, plan_of(result)->follows);
      QVERIFY(std::count(read->follows.begin(), read->follows.end(), RatioPlan::kNoLayer) <
              std::ptrdiff_t(read->follows.size()));
    }
  }

  void broken_files_are_refused() {
    const auto scenario = scenario_on(builtin("lenet", 60), "v100-16gb-1x3");
    const nlohmann::json good = write_ratio_plan(*scenario, *plan_of(answer_of("accpar", scenario)));
    const auto refusal = [&](const char* pointer, const nlohmann::json& value) {
      nlohmann::json broken = good;
      broken[nlohmann::json::json_pointer(pointer)] = value;
      const auto read = read_ratio_plan(broken, "there", *scenario);
      return read ? std::string() : read.error().message();
    };
    QVERIFY(refusal("/model", "lenet").empty());
    const std::tuple<const char*, nlohmann::json, const char*> rows[] = {
        {"/kind", "sharding", "is no turnpoint/plan@1 of kind ratio"},
        {"/order", 3, "'order' must be a list"},
        {"/order/0", -1, "-1 is not a whole number"},
        {"/order/0", 2, "does not name each of 3 devices once"},
        {"/parts/0/devices", 0, "devices"},
        {"/cuts/0/ratio", 1.5, "ratio"},
        {"/cuts/0/ratio", 1, "a ratio between 0 and 1"},
        {"/cuts/0/next", nlohmann::json::array({0}), "lead to two others each"},
        {"/cuts/0/next/0", 0, "no cut of its own"},
        {"/cuts/0/shares", 1, "cut 0 has no list of shares"},
        {"/cuts/0/shares/0", nlohmann::json::array({1, 2}), "is not [operator, loop, units]"},
        {"/cuts/0/shares/0/0", 99999, "99999 is not a whole number up to"},
        {"/cuts/0/shares/0/2", 1e300, "are not a whole number"},
        {"/cuts/0/shares/0/2", 100000, "leaves one of two nothing"},
        {"/cuts", nlohmann::json::array({good["cuts"][0], good["cuts"][0], good["cuts"][0]}), "has more cuts than"},
        {"/layers", nlohmann::json(good["operators"].size() + 1, good["layers"][0]), "has more layers than"},
        {"/operators/0/follows", 99, "99 is not a whole number up to"},
        {"/operators", nlohmann::json(good["operators"].size() + 1, good["operators"][0]), "has more operators than"},
        {"/layers/0/name", "nobody", "the model has no operator 'nobody'"},
    };
    for (const auto& [pointer, value, words] : rows) {
      const std::string said = refusal(pointer, value);
      QVERIFY2(said.find(words) != std::string::npos, (std::string(pointer) + ": " + said).c_str());
    }
  }
};

QTEST_APPLESS_MAIN(UnequalHalvesTest)
#include "unequal_halves_test.moc"
