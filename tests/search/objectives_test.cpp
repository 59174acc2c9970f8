// SPDX-License-Identifier: Apache-2.0
// Objectives against exhaustive filtering of whole frontiers, and against methods made up to be as unruly as allowed.
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/plan/evaluator.h"
#include "core/search/objectives.h"
#include "core/search/registry.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

using test::scenario_on;

ScenarioPtr with_limit(const ScenarioPtr& scenario, std::int64_t limit) {
  auto other = std::make_shared<Scenario>(*scenario);
  other->settings.memory_limit = limit;
  return other;
}

Contender of(const char* name) {
  const auto method = find_method(name);
  if (!method) qFatal("no method %s", name);
  return contender(**method);
}

ResultPtr frontier_of(const char* name, const ScenarioPtr& scenario) {
  const auto result = of(name).make()->run(scenario, SearchPass::exact, {});
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

/// The fastest point within a limit, looked for one by one.
std::optional<ResultPoint> filtered(const Result& result, std::int64_t limit) {
  std::optional<ResultPoint> best;
  for (const auto& point : result.points)
    if (point.memory_bytes <= limit && (!best || point.time_s < best->time_s)) best = point;
  return best;
}

/// Limits below, on, between and above the points of a frontier.
std::vector<std::int64_t> limits_around(const Result& result) {
  std::vector<std::int64_t> limits;
  const std::size_t stride = std::max<std::size_t>(1, result.points.size() / 4);
  for (std::size_t i = 0; i < result.points.size(); i += stride)
    for (const int off : {-1, 0, 1}) limits.push_back(std::max<std::int64_t>(1, result.points[i].memory_bytes + off));
  limits.push_back(result.points.back().memory_bytes * 2);
  std::sort(limits.begin(), limits.end());
  return limits;
}

std::vector<std::pair<const char*, ModelPtr>> models() {
  return {{"mlp", test::mlp()},
          {"residual", test::residual()},
          {"attention", test::attention()},
          {"convolution", test::convolution()}};
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// A method whose one plan needs what a table says, per count of devices; `inexact` counts have a lower bound of 1
/// byte. On counts without an entry it gives up.
struct MadeUp {
  std::map<int, std::int64_t> memory;
  std::vector<int> refused, inexact;
  std::vector<int>* asked = nullptr;

  Contender contender() const;
};

class MadeUpRun : public Searcher {
 public:
  explicit MadeUpRun(MadeUp of) : of_(std::move(of)) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const int devices = scenario->cluster->devices();
    if (of_.asked) of_.asked->push_back(devices);
    context.report("made up", 0.5);
    if (!of_.memory.contains(devices)) return Error{ErrorCode::infeasible, "took too long", {}, {}};
    auto result = std::make_shared<Result>();
    result->scenario = scenario;
    result->method = "made-up";
    result->exact = std::find(of_.inexact.begin(), of_.inexact.end(), devices) == of_.inexact.end();
    result->gap = result->exact ? 0.0 : 0.5;
    const std::int64_t memory = of_.memory.at(devices);
    result->points = {{memory, 1.0 / devices, 1.0 / devices, 0, memory <= scenario->memory_limit()}};
    if (!result->exact) result->lower_bound = {{1, 0.5 / devices}};
    return ResultPtr(result);
  }

 private:
  MadeUp of_;
};

Contender MadeUp::contender() const {
  return {"made-up",
          [refused = refused](const Scenario& s) {
            const int devices = s.cluster->devices();
            return std::find(refused.begin(), refused.end(), devices) == refused.end() ? std::string()
                                                                                       : std::string("not these");
          },
          [self = *this] { return std::make_unique<MadeUpRun>(self); }};
}

}  // namespace

class ObjectivesTest : public QObject {
  Q_OBJECT

 private slots:
  void names_are_those_of_the_command_line() {
    for (const char* name : {"frontier", "mini-time", "mini-parallelism", "profile", "largest-batch"}) {
      const auto objective = parse_objective(name);
      QVERIFY(objective.has_value());
      QCOMPARE(to_string(*objective), name);
    }
    const auto unknown = parse_objective("mini-memory");
    QVERIFY(!unknown.has_value());
    QVERIFY(unknown.error().code == ErrorCode::usage);
    QVERIFY(unknown.error().what.find("mini-memory") != std::string::npos);
  }

  void counts_are_those_the_cluster_can_be_cut_to() {
    const auto counts = [](const char* hardware, auto of) { return of(**open_hardware(hardware)); };
    QCOMPARE(counts("v100-16gb-2x4", every_count), (std::vector<int>{1, 2, 3, 4, 8}));
    QCOMPARE(counts("v100-16gb-3x2", every_count), (std::vector<int>{1, 2, 4, 6}));
    QCOMPARE(counts("v100-16gb-2x8", doubling_counts), (std::vector<int>{1, 2, 4, 8, 16}));
    QCOMPARE(counts("v100-16gb-3x6", doubling_counts), (std::vector<int>{1, 2, 4, 6, 12, 18}));
    QCOMPARE(counts("v100-16gb-1x1", doubling_counts), (std::vector<int>{1}));
    QCOMPARE(counts("tpu-v2-2x2+tpu-v3-2x2", doubling_counts), (std::vector<int>{8}));
    for (const char* hardware : {"v100-16gb-2x4", "v100-16gb-3x6", "h100-80gb-1x8"}) {
      const ClusterPtr cluster = *open_hardware(hardware);
      for (const int n : every_count(*cluster)) {
        const auto cut = with_devices(cluster, n);
        QVERIFY(cut.has_value());
        QCOMPARE((*cut)->devices(), n);
      }
      for (const int n : doubling_counts(*cluster)) {
        const auto all = every_count(*cluster);
        QVERIFY(std::find(all.begin(), all.end(), n) != all.end());
      }
    }
  }

  void mini_time_is_the_filtered_frontier() {
    for (const auto& [name, model] : models()) {
      for (const char* method : {"ft", "data-parallel", "optcnn"}) {
        const auto scenario = scenario_on(model, "v100-16gb-2x2");
        const auto whole = frontier_of(method, scenario);
        double before = INFINITY;
        for (const std::int64_t limit : limits_around(*whole)) {
          const auto one = mini_time(of(method), with_limit(scenario, limit), {});
          QVERIFY(one.has_value());
          QCOMPARE((*one)->points.size(), std::size_t(1));
          QCOMPARE((*one)->objective, std::string("mini-time"));
          const ResultPoint& point = (*one)->points.front();
          const auto expected = filtered(*whole, limit);
          QCOMPARE(point.fits, expected.has_value());
          if (!expected) {
            QCOMPARE(point.memory_bytes, whole->points.front().memory_bytes);  // the least any plan needs
            continue;
          }
          QCOMPARE(point.memory_bytes, expected->memory_bytes);
          QVERIFY(close(point.time_s, expected->time_s));
          // resources/manual/mathematics.md, F7: more memory never costs time.
          QVERIFY2(point.time_s <= before * (1 + 1e-9), name);
          before = point.time_s;
          const auto cost = evaluate_plan(*(*one)->scenario, (*one)->plans->sharding(0));
          QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
          QCOMPARE(cost->memory_bytes(), point.memory_bytes);
          QVERIFY(close(cost->time_s(), point.time_s));
        }
      }
    }
  }

  void time_never_rises_with_bandwidth() {
    // The other half of F7, through the objective.
    const auto base = scenario_on(test::attention(), "v100-16gb-2x2");
    const std::int64_t limit = frontier_of("ft", base)->points.front().memory_bytes * 3 / 2;
    double before = INFINITY;
    for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      auto faster = std::make_shared<Scenario>(*with_limit(base, limit));
      faster->settings.factors.inter_bandwidth = faster->settings.factors.intra_bandwidth = factor;
      const auto one = mini_time(of("ft"), faster, {});
      QVERIFY(one.has_value() && (*one)->points.front().fits);
      QVERIFY((*one)->points.front().time_s <= before * (1 + 1e-9));
      before = (*one)->points.front().time_s;
    }
  }

  void mini_parallelism_is_the_first_count_that_fits() {
    for (const auto& [name, model] : models()) {
      std::size_t part = 0;
      for (const char* method : {"ft", "data-parallel", "optcnn"}) {
        const auto scenario = scenario_on(model, "v100-16gb-2x4");
        std::map<int, ResultPtr> whole;
        std::vector<std::int64_t> limits;
        for (const int n : every_count(*scenario->cluster)) {
          whole[n] = frontier_of(method, *on_devices(scenario, n));
          limits.push_back(whole[n]->points.front().memory_bytes);
          limits.push_back(whole[n]->points.front().memory_bytes - 1);
        }
        // Each method is asked every third limit, all three together all of them.
        for (std::size_t l = part++; l < limits.size(); l += 3) {
          const std::int64_t limit = limits[l];
          const auto first = std::find_if(whole.begin(), whole.end(), [&](const auto& entry) {
            return filtered(*entry.second, limit).has_value();
          });
          std::vector<int> tried;
          const auto one = mini_parallelism(of(method), with_limit(scenario, limit), {}, &tried);
          QVERIFY(one.has_value());
          QCOMPARE((*one)->points.size(), std::size_t(1));
          const ResultPoint& point = (*one)->points.front();
          QCOMPARE(point.fits, first != whole.end());
          QVERIFY((*one)->exact);
          QVERIFY(!tried.empty());
          if (first == whole.end()) {
            for (const auto& [n, result] : whole)
              QVERIFY2(point.memory_bytes <= result->points.front().memory_bytes, name);
            continue;
          }
          QCOMPARE((*one)->scenario->cluster->devices(), first->first);
          QCOMPARE((*one)->scenario->settings.devices == 0 ? scenario->cluster->devices()
                                                           : (*one)->scenario->settings.devices,
                   first->first);
          QVERIFY(close(point.time_s, filtered(*first->second, limit)->time_s));
          QCOMPARE(tried.back(), first->first);
        }
      }
    }
  }

  void together_devices_hold_everything_at_least_once() {
    // What lets mini-parallelism leave counts out.
    for (const auto& [name, model] : models())
      for (const char* method : {"ft", "data-parallel", "optcnn"})
        for (const auto accounting : {Accounting::full, Accounting::paper}) {
          const auto scenario = scenario_on(model, "v100-16gb-2x4", [&](Settings& s) { s.accounting = accounting; });
          const auto least = [&](int n) {
            return static_cast<double>(frontier_of(method, *on_devices(scenario, n))->points.front().memory_bytes);
          };
          const double alone = least(1);
          for (const int n : every_count(*scenario->cluster)) QVERIFY2(n * least(n) >= alone, name);
        }
  }

  void a_count_that_needs_more_than_fewer_devices_misleads_nobody() {
    const auto scenario = with_limit(scenario_on(test::mlp(), "v100-16gb-2x4"), 50);
    // Bisection would look at 3 or 4 first, find that nothing fits, and go up to 8.
    MadeUp unruly{{{1, 90}, {2, 40}, {3, 95}, {4, 80}, {8, 30}}, {}, {}, nullptr};
    auto one = mini_parallelism(unruly.contender(), scenario, {});
    QVERIFY(one.has_value());
    QCOMPARE((*one)->scenario->cluster->devices(), 2);
    QVERIFY((*one)->points.front().fits);
    QCOMPARE((*one)->objective, std::string("mini-parallelism"));
    // Nothing fits: the plan with the least memory, wherever that is, fewest devices on ties.
    unruly.memory = {{1, 90}, {2, 70}, {3, 95}, {4, 70}, {8, 71}};
    one = mini_parallelism(unruly.contender(), scenario, {});
    QVERIFY(one.has_value() && !(*one)->points.front().fits);
    QCOMPARE((*one)->scenario->cluster->devices(), 2);
    QCOMPARE((*one)->points.front().memory_bytes, std::int64_t(70));
  }

  void refused_counts_are_left_out() {
    const auto scenario = with_limit(scenario_on(test::mlp(), "v100-16gb-2x4"), 50);
    std::vector<int> asked;
    MadeUp picky{{{1, 10}, {2, 10}, {3, 10}, {4, 10}, {8, 10}}, {1, 2, 3}, {}, &asked};
    auto one = mini_parallelism(picky.contender(), scenario, {});
    QVERIFY(one.has_value());
    QCOMPARE((*one)->scenario->cluster->devices(), 4);
    QCOMPARE(asked, std::vector<int>{4});
    const auto some = profile(picky.contender(), scenario, {1, 2, 4, 8}, {});
    QVERIFY(some.has_value());
    QCOMPARE(some->size(), std::size_t(2));
    picky.refused = {1, 2, 3, 4, 8};
    one = mini_parallelism(picky.contender(), scenario, {});
    QVERIFY(!one.has_value() && one.error().code == ErrorCode::usage);
    const auto none = profile(picky.contender(), scenario, {1, 2}, {});
    QVERIFY(!none.has_value());
    QVERIFY(none.error().what.find("not these") != std::string::npos);
  }

  void uncertain_counts_are_said_to_be_so() {
    const auto scenario = with_limit(scenario_on(test::mlp(), "v100-16gb-2x4"), 50);
    MadeUp vague{{{1, 90}, {2, 90}, {3, 90}, {4, 40}, {8, 30}}, {}, {2}, nullptr};
    const auto one = mini_parallelism(vague.contender(), scenario, {});
    QVERIFY(one.has_value());
    QCOMPARE((*one)->scenario->cluster->devices(), 4);
    QVERIFY(!(*one)->exact);  // on two devices the bound would have let a plan of 50 bytes be
    MadeUp vague_at_the_end{{{1, 40}, {2, 90}, {3, 90}, {4, 40}, {8, 30}}, {}, {2}, nullptr};
    QVERIFY((*mini_parallelism(vague_at_the_end.contender(), scenario, {}))->exact);
  }

  void counts_where_the_search_gave_up_are_named() {
    const auto scenario = with_limit(scenario_on(test::mlp(), "v100-16gb-2x4"), 50);
    MadeUp slow{{{1, 90}, {4, 40}}, {}, {}, nullptr};
    const auto one = mini_parallelism(slow.contender(), scenario, {});
    QVERIFY(one.has_value());
    QCOMPARE((*one)->scenario->cluster->devices(), 4);
    QVERIFY(!(*one)->exact);  // two or three devices may do
    QCOMPARE((*one)->notes, std::vector<std::string>{"no answer on 2, 3 devices, where a plan may fit: took too long"});
    const auto all = profile(slow.contender(), scenario, {1, 2, 4}, {});
    QVERIFY(all.has_value());
    QCOMPARE(all->size(), std::size_t(3));
    QVERIFY((*all)[1]->points.empty() && !(*all)[1]->exact && !(*all)[1]->gap);
    QCOMPARE((*all)[1]->notes, std::vector<std::string>{"no answer: took too long"});
    QCOMPARE((*all)[1]->objective, std::string("profile"));
    QCOMPARE((*all)[2]->points.size(), std::size_t(1));
    slow.memory.clear();
    const auto none = mini_parallelism(slow.contender(), scenario, {});
    QVERIFY(!none.has_value() && none.error().code == ErrorCode::infeasible);
  }

  void the_gap_of_one_plan_counts_all_plans_within_the_limit() {
    Result result;
    result.scenario = with_limit(scenario_on(test::mlp(), "v100-16gb-1x2"), 100);
    result.gap = 0.9;
    result.points = {{20, 10, 10, 0, true}, {60, 5, 5, 0, true}, {120, 1, 1, 0, false}};
    result.lower_bound = {{10, 9}, {50, 4.5}, {90, 4}, {110, 0.5}};
    const auto one = fastest_within_limit(std::make_shared<Result>(result));
    QCOMPARE(one->points.front().time_s, 5.0);
    QVERIFY(close(*one->gap, 0.2));  // a plan of 90 to 100 bytes might take 4
    result.lower_bound.clear();
    QCOMPARE(*fastest_within_limit(std::make_shared<Result>(result))->gap, 0.9);
    result.gap.reset();
    QVERIFY(!fastest_within_limit(std::make_shared<Result>(result))->gap);
    result.gap = 0;
    QCOMPARE(*fastest_within_limit(std::make_shared<Result>(result))->gap, 0.0);
  }

  void profile_is_mini_time_at_every_count_with_its_price() {
    for (const auto& [name, model] : models()) {
      const auto scenario = scenario_on(model, "v100-16gb-2x4", [](Settings& s) { s.price_per_hour = 3.6; });
      const auto counts = doubling_counts(*scenario->cluster);
      std::vector<int> seen;
      double fraction = 0;
      RunContext context;
      context.progress = [&](const Progress& progress) {
        QVERIFY(progress.phase.find("device") != std::string::npos);
        QVERIFY(progress.fraction >= 0 && progress.fraction <= 1);
        fraction = std::max(fraction, progress.fraction);
      };
      const auto results = profile(of("ft"), scenario, counts, context,
                                   [&](const ResultPtr& r) { seen.push_back(r->scenario->cluster->devices()); });
      QVERIFY(results.has_value());
      QCOMPARE(seen, counts);
      QVERIFY(fraction > 0.5);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const Result& result = *(*results)[i];
        const auto alone = mini_time(of("ft"), *on_devices(scenario, counts[i]), {});
        QVERIFY(alone.has_value());
        QVERIFY(result.points == (*alone)->points);
        const double time = result.points.front().time_s;
        QVERIFY2(close(*result.price_per_iteration, counts[i] * 3.6 / 3600 * time), name);
        QVERIFY(close(*price_per_sample(*result.scenario, time) * static_cast<double>(model->batch),
                      *result.price_per_iteration));
      }
    }
    const auto unpriced = scenario_on(test::mlp(), "v100-16gb-1x2");
    QVERIFY(!unpriced->price_per_hour());
    QVERIFY(!(*mini_time(of("ft"), unpriced, {}))->price_per_iteration);
  }

  void a_typed_price_goes_before_the_hardwares() {
    auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x2"));
    cluster->device.price_per_hour = 2.0;
    auto scenario = std::make_shared<Scenario>(*scenario_on(test::mlp(), "v100-16gb-1x2"));
    scenario->cluster = cluster;
    QCOMPARE(*scenario->price_per_hour(), 2.0);
    QCOMPARE(*price_of(*scenario, 3600), 4.0);
    scenario->settings.price_per_hour = 0.5;
    QCOMPARE(*price_of(*scenario, 3600), 1.0);
  }

  void all_of_them_stop_when_asked() {
    const auto scenario = scenario_on(test::attention(), "v100-16gb-2x4");
    std::stop_source stop;
    stop.request_stop();
    RunContext context;
    context.stop = stop.get_token();
    const auto a = mini_time(of("ft"), scenario, context);
    const auto b = mini_parallelism(of("ft"), scenario, context);
    const auto c = profile(of("ft"), scenario, doubling_counts(*scenario->cluster), context);
    QVERIFY(!a && a.error().code == ErrorCode::cancelled);
    QVERIFY(!b && b.error().code == ErrorCode::cancelled);
    QVERIFY(!c && c.error().code == ErrorCode::cancelled);
    // Between two counts, too.
    std::stop_source later;
    context.stop = later.get_token();
    const auto half = profile(of("ft"), scenario, {1, 2, 4}, context, [&](const ResultPtr&) { later.request_stop(); });
    QVERIFY(!half && half.error().code == ErrorCode::cancelled);
  }
};

QTEST_APPLESS_MAIN(ObjectivesTest)
#include "objectives_test.moc"
