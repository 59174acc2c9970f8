// SPDX-License-Identifier: Apache-2.0
// What a search leaves behind for questions about forced choices: lines below the plans of each number of
// micro-batches. They are true, near, and change no answer by more than answers leave open.
#include <fmt/format.h>
#include <QtTest>
#include <cmath>

#include "core/frontier/pareto.h"
#include "core/search/explain/forced_answer.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

std::vector<ForceRule> asked_rules(const char* text) {
  auto read = parse_force(text);
  if (!read) qFatal("%s", read.error().message().c_str());
  return *read;
}

}  // namespace

class ForcedBoundsTest : public QObject {
  Q_OBJECT

 private slots:
  // What a search leaves behind for questions: lines below all that each number by itself has, and near it somewhere.
  void every_number_is_bounded() {
    int near = 0, met = 0;
    for (const auto& scenario :
         {test::scenario_on(test::mlp(), "v100-16gb-1x4"),
          test::scenario_on(test::builtin("gpt2?layers=2&hidden=256&sequence=64", 16), "v100-16gb-1x4")}) {
      const auto result = test::run("ft", scenario);
      QVERIFY(result);
      const std::vector<int> numbers = search::micro_batch_numbers(*scenario);
      QCOMPARE((*result)->bounds.size(), numbers.size());
      for (const NumberBound& bound : (*result)->bounds) {
        QVERIFY(std::ranges::find(numbers, bound.micro_batches) != numbers.end());
        const auto alone = test::run(fmt::format("ft:micro-batches={}", bound.micro_batches), scenario);
        QVERIFY(alone);
        double least = INFINITY;
        for (const ResultPoint& point : (*alone)->points) {
          const double above = point.time_s / frontier::time_above(bound.lines, double(point.memory_bytes));
          QVERIFY2(above >= 1 - 1e-9, qPrintable(QString("%1 micro-batches").arg(bound.micro_batches)));
          least = std::min(least, above);
        }
        near += least < 1.001;
        ++met;
      }
    }
    QVERIFY(met >= 8);
    QCOMPARE(near, met);
  }

  // What is known of numbers spares them a look; answers stay as certain as without it.
  void what_a_search_has_proven_spares_work() {
    const auto scenario = test::scenario_on(test::builtin("gpt2?layers=2&hidden=256&sequence=64", 16), "v100-16gb-1x4");
    const auto result = test::run("ft", scenario);
    QVERIFY(result);
    auto without = std::make_shared<Result>(**result);
    without->bounds.clear();
    int asked = 0;
    for (std::size_t k = 0; k < (*result)->points.size(); k += 1 + (*result)->points.size() / 5)
      for (const char* force : {"layer1/*: tp=2", "*: zero=3", "*: recompute"}) {
        const auto knows = PointExplainer::make(*result, k), looks = PointExplainer::make(without, k);
        QVERIFY(knows && looks);
        const auto first = (*knows)->force(asked_rules(force), {}), second = (*looks)->force(asked_rules(force), {});
        QVERIFY(first && second);
        for (const auto plan : {&ForcedAnswer::same_memory, &ForcedAnswer::fitting}) {
          const ForcedPlan &a = (*first).*plan, &b = (*second).*plan;
          QCOMPARE(a.within, b.within);
          if (!a.within) continue;
          QVERIFY(a.point.time_s * (1 - a.gap) <= b.point.time_s * (1 + 1e-9));
          QVERIFY(b.point.time_s * (1 - b.gap) <= a.point.time_s * (1 + 1e-9));
          ++asked;
        }
      }
    QVERIFY(asked > 12);
  }
};

QTEST_APPLESS_MAIN(ForcedBoundsTest)
#include "forced_bounds_test.moc"
