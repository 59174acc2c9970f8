// SPDX-License-Identifier: Apache-2.0
// What fits by its simulated peak: the plans that are named have one, and it is under the limit.
#include "core/schedule/fitting.h"

#include <QtTest>
#include <set>

#include "core/base/text.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr std::int64_t kMiB = std::int64_t(1) << 20;

class NoPlans : public PlanSource {
 public:
  AnyPlan plan(std::size_t) const override { return std::make_shared<const Plan>(); }
  PlanKind kind(std::size_t) const override { return PlanKind::sharding; }
};

/// A curve of `count` plans, of 1000 MiB to twice that by their sums, under a limit.
ResultPtr curve(std::size_t count, std::int64_t limit_mib, double bend = 4) {
  const auto base = scenario_on(mlp(), "v100-16gb-2x4");
  auto scenario = std::make_shared<Scenario>(*base);
  scenario->settings.memory_limit = limit_mib * kMiB;
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = "ft";
  result->plans = std::make_shared<NoPlans>();
  for (std::size_t i = 0; i < count; ++i) {
    const double at = double(i) / double(count - 1);
    ResultPoint point;
    point.memory_bytes = std::int64_t((1000 + 1000 * at) * double(kMiB));
    point.time_s = 1 + std::pow(1 - at, bend) + 0.001 * (1 - at);
    point.compute_s = point.time_s / 2, point.network_s = point.time_s / 2;
    point.fits = point.memory_bytes <= limit_mib * kMiB;
    result->points.push_back(point);
  }
  result->turning_point = find_turning_point(result->points);
  result->near_best = find_near_best(result->points);
  return result;
}

using Peak = std::function<std::int64_t(std::size_t)>;

struct Judged {
  ResultPtr result;
  std::size_t simulated = 0;
};
Judged judged(const ResultPtr& result, const Peak& peak, const Result* before = nullptr,
              std::size_t until_any_fits = kUntilAnyFits) {
  Judged answer;
  const auto found = judge_fits(
      result,
      [&](std::span<const std::size_t> indices) -> Expected<std::vector<SimulatedCost>> {
        std::vector<SimulatedCost> costs;
        for (const std::size_t i : indices) costs.push_back({result->points[i].time_s, peak(i)});
        answer.simulated += indices.size();
        return costs;
      },
      before, until_any_fits);
  if (!found) qFatal("%s", found.error().message().c_str());
  answer.result = *found;
  return answer;
}

}  // namespace

class FittingTest : public QObject {
  Q_OBJECT
 private slots:
  void where_the_peaks_fit_the_named_plans_alone_are_simulated() {
    const auto raw = curve(100000, 4000);
    const auto now = judged(raw, [&](std::size_t i) { return raw->points[i].memory_bytes * 3 / 2; });
    QVERIFY(now.result->fits_by_peak);
    QVERIFY2(now.simulated <= 5, qPrintable(QString::number(now.simulated)));
    QCOMPARE(now.result->fastest_that_fits(), std::optional<std::size_t>(99999));
    QVERIFY(now.result->turning_point == raw->turning_point);
    QCOMPARE(*now.result->points[*raw->turning_point].simulated_memory_bytes,
             raw->points[*raw->turning_point].memory_bytes * 3 / 2);
    QVERIFY(!raw->fits_by_peak && !raw->points[0].simulated_memory_bytes);  // results stay what they were
  }

  // Sums fit, all of them; peaks half as high again do not from two thirds of the limit on.
  void the_fastest_that_fits_moves_to_one_that_truly_does() {
    const auto raw = curve(50000, 2100);
    const Peak peak = [&](std::size_t i) { return raw->points[i].memory_bytes * 3 / 2; };
    QCOMPARE(raw->fastest_that_fits(), std::optional<std::size_t>(49999));
    const auto now = judged(raw, peak);
    const auto fastest = now.result->fastest_that_fits();
    QVERIFY(fastest.has_value());
    QVERIFY(peak(*fastest) <= 2100 * kMiB);
    // And no plan that is a thousandth faster fits: 1400 MiB of sum are at 0.4 of the curve.
    QVERIFY(raw->points[*fastest].time_s <= raw->points[19999].time_s * 1.001);
    QVERIFY2(now.simulated < 60, qPrintable(QString::number(now.simulated)));
    const auto turning = now.result->turning_point;
    QVERIFY(turning.has_value());
    QVERIFY(now.result->points[*turning].simulated_memory_bytes.has_value());
    QVERIFY(peak(*turning) <= 2100 * kMiB);
    for (std::size_t i = 0; i < 50000; i += 113) QVERIFY(!now.result->points[i].fits || peak(i) <= 2100 * kMiB);
  }

  // Peaks that jump about: whatever is named fits, and what no neighbour vouches for is not said to.
  void peaks_need_not_rise_along_the_curve() {
    for (int seed = 1; seed <= 40; ++seed) {
      const auto raw = curve(3000, 2000);
      const Peak peak = [&](std::size_t i) {
        const std::size_t mixed = (i * 2654435761u + std::size_t(seed) * 40503u) % 1000;
        return raw->points[i].memory_bytes * std::int64_t(1000 + mixed) / 1000;
      };
      const auto now = judged(raw, peak);
      for (const auto& named : {now.result->fastest_that_fits(), now.result->turning_point, now.result->near_best}) {
        if (!named) continue;
        QVERIFY(now.result->points[*named].simulated_memory_bytes.has_value());
        QVERIFY(peak(*named) <= 2000 * kMiB);
      }
      QVERIFY(now.result->fastest_that_fits().has_value());
    }
  }

  void where_no_peak_fits_the_words_name_the_smallest_and_the_space() {
    const auto raw = curve(1000, 1500);
    const auto now = judged(raw, [&](std::size_t) { return 1700 * kMiB; });
    QVERIFY(!now.result->fastest_that_fits());
    QCOMPARE(*now.result->points[*least_peak(*now.result)].simulated_memory_bytes, 1700 * kMiB);
    const auto words = describe_turning_point(*now.result);
    QCOMPARE(words[0], std::string("No plan without micro-batches fits 1.5 GiB"));
    QVERIFY2(words[1].find("1.7 GiB peak") != std::string::npos, words[1].c_str());
  }

  // One plan of two hundred, wherever it is; whoever looks at fewer plans does not see it.
  void of_a_short_curve_the_one_plan_that_fits_is_found() {
    const auto raw = curve(200, 1500);
    for (std::size_t one = 0; one < 200; ++one) {
      const Peak peak = [&](std::size_t i) { return (i == one ? 1400 : 1700) * kMiB; };
      const auto now = judged(raw, peak);
      QVERIFY2(now.result->fastest_that_fits() == std::optional(one), qPrintable(QString::number(one)));
      QVERIFY(now.simulated <= 200 && simulated_plans(*now.result) == now.simulated);
    }
    const auto few = judged(
        raw, [&](std::size_t i) { return (i == 101 ? 1400 : 1700) * kMiB; }, nullptr, 0);
    QVERIFY(!few.result->fastest_that_fits());
  }

  // Of a long one the plans that fit are found where the peaks around them fall, or where they are a hundredth of it.
  void of_a_long_curve_plans_that_fit_are_looked_for_beside_the_smallest_peaks() {
    const auto raw = curve(20000, 1500);
    for (std::size_t low = 100; low < 20000; low += 997) {
      const Peak slope = [&](std::size_t i) {
        const std::size_t away = i > low ? i - low : low - i;
        return 1499 * kMiB + std::int64_t(std::min<std::size_t>(away, 3000)) * kMiB;  // two plans fit
      };
      QVERIFY2(judged(raw, slope).result->fastest_that_fits(), qPrintable(QString::number(low)));
      const Peak valley = [&](std::size_t i) { return (i >= low && i < low + 200 ? 1400 : 1700) * kMiB; };
      const auto now = judged(raw, valley);
      const auto fastest = now.result->fastest_that_fits();
      QVERIFY2(fastest && *fastest >= low && *fastest < low + 200, qPrintable(QString::number(low)));
      QVERIFY(now.simulated < 400);
    }
    const auto hopeless = judged(raw, [&](std::size_t) { return 1700 * kMiB; });
    QVERIFY(hopeless.simulated >= kUntilAnyFits && hopeless.simulated < kUntilAnyFits + 60);
  }

  void what_is_known_is_not_simulated_again_under_another_limit() {
    const auto raw = curve(10000, 2100);
    const Peak peak = [&](std::size_t i) { return raw->points[i].memory_bytes * 3 / 2; };
    const auto first = judged(raw, peak);
    auto wider = std::make_shared<Result>(*raw);
    const auto again = judged(wider, peak, first.result.get());
    QCOMPARE(again.simulated, std::size_t(0));
    QVERIFY(again.result->fastest_that_fits() == first.result->fastest_that_fits());
    wider->plans = std::make_shared<NoPlans>();  // other plans: nothing is known of them
    QVERIFY(judged(wider, peak, first.result.get()).simulated > 0);
  }

  void words_name_peaks_or_say_that_they_are_sums() {
    const auto raw = curve(1000, 2100);
    QCOMPARE(describe_turning_point(*raw).back(), std::string("By the plain sum; peak not simulated yet"));
    QCOMPARE(describe_fastest(*raw).back(), std::string("By the plain sum; peak not simulated yet"));
    const auto now = judged(raw, [&](std::size_t i) { return raw->points[i].memory_bytes * 3 / 2; });
    const auto& turning = now.result->points[*now.result->turning_point];
    const auto words = describe_turning_point(*now.result);
    QCOMPARE(words.front(), "Turning point " + format_bytes(turning.memory_bytes * 3 / 2) + " peak \u00b7 " +
                                format_seconds(turning.time_s));
    for (const auto& line : words) QVERIFY(line.find("plain sum") == std::string::npos);
    const auto& fastest = now.result->points[*now.result->fastest_that_fits()];
    QCOMPARE(describe_fastest(*now.result).front(), "Fastest that fits " +
                                                        format_bytes(*fastest.simulated_memory_bytes) +
                                                        " peak \u00b7 " + format_seconds(fastest.time_s));
  }

  // A searched network: the plans' own simulation, and a limit between their sums and their peaks.
  void a_searched_frontier_is_judged_by_its_own_schedules() {
    const auto found = run("ft", scenario_on(test::attention(16, 32), "v100-16gb-2x4",
                                             [](Settings& s) { s.collectives = Collectives::rings; }));
    QVERIFY(found.has_value());
    const PlanLowering lowering(*(*found)->scenario);
    const std::size_t last = (*found)->points.size() - 1;
    const auto peak = simulate_plan(lowering, (*found)->plans->sharding(last));
    QVERIFY(peak.has_value());
    QVERIFY(peak->memory_bytes > (*found)->points[last].memory_bytes);
    auto scenario = std::make_shared<Scenario>(*(*found)->scenario);
    scenario->settings.memory_limit = ((*found)->points[last].memory_bytes + peak->memory_bytes) / 2;
    auto limited = std::make_shared<Result>(**found);
    limited->scenario = scenario;
    for (auto& point : limited->points) point.fits = point.memory_bytes <= scenario->memory_limit();
    QCOMPARE(limited->fastest_that_fits(), std::optional(last));
    QVERIFY(can_judge_fits(*limited));
    RunContext context;
    context.threads = 2;
    const auto now = judge_fits(ResultPtr(limited), context);
    QVERIFY(now.has_value());
    const auto fastest = (*now)->fastest_that_fits();
    QVERIFY(fastest != std::optional(last));
    if (!fastest) return;
    const auto own = simulate_plan(lowering, (*found)->plans->sharding(*fastest));
    QVERIFY(own.has_value() && own->memory_bytes <= scenario->memory_limit());
    QCOMPARE((*now)->points[*fastest].simulated_memory_bytes, std::optional(own->memory_bytes));
  }
};

QTEST_APPLESS_MAIN(FittingTest)
#include "fitting_test.moc"
