// SPDX-License-Identifier: Apache-2.0
// The longest sequence that fits: it fits, and an eighth more does not, by searches of this file's own.
#include <QtTest>

#include "core/search/fitting_batch.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_with(const ModelSource& source, std::int64_t sequence, std::int64_t limit) {
  Settings settings;
  settings.batch = 8;
  settings.sequence = sequence;
  settings.memory_limit = limit;
  auto scenario = scenario_of(source, "v100-16gb-1x2", settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

bool fits(const ScenarioPtr& scenario) {
  const auto searcher = make_searcher(default_method(), "micro-batches=1");
  const auto result = (*searcher)->run(scenario, SearchPass::exact, {});
  if (!result) qFatal("%s", result.error().message().c_str());
  const auto judged = judged_by_peaks(*result, {}, 1000);
  return judged && (*judged)->fastest_that_fits().has_value();
}

}  // namespace

class LongestSequenceTest : public QObject {
  Q_OBJECT

 private slots:
  void it_fits_and_an_eighth_more_does_not_data() {
    QTest::addColumn<int>("from");
    QTest::newRow("from a short one") << 32;
    QTest::newRow("from one that does not fit") << 1024;
  }
  void it_fits_and_an_eighth_more_does_not() {
    QFETCH(int, from);
    const auto source = open_model("builtin:gpt2?layers=1&hidden=128");
    QVERIFY(source);
    constexpr std::int64_t kLimit = 300 << 20;
    const ScenarioPtr scenario = scenario_with(**source, from, kLimit);
    const auto found = longest_sequence(**source, scenario, {});
    QVERIFY2(found, found ? "" : found.error().message().c_str());
    QVERIFY(*found);
    const std::int64_t longest = (*found)->sequence;
    QVERIFY2(longest > 32 && longest < 1024, qPrintable(QString::number(longest)));
    QVERIFY(fits(scenario_with(**source, longest, kLimit)));
    QVERIFY(!fits(scenario_with(**source, longest + longest / 7 + 1, kLimit)));
    QCOMPARE((*found)->end, LongestSequence::End::too_large);
  }

  /// The scenario's own is tried, however short.
  void from_one_that_is_shorter_than_any_looked_at() {
    const auto source = open_model("builtin:gpt2?layers=1&hidden=128");
    const ScenarioPtr scenario = scenario_with(**source, 8, std::int64_t(300) << 20);
    const auto found = longest_sequence(**source, scenario, {});
    QVERIFY(found && *found);
    QVERIFY((*found)->sequence > 32);
    const auto tight = longest_sequence(**source, scenario_with(**source, 8, 1 << 20), {});
    QVERIFY(tight && !*tight);
  }

  void none_fits() {
    const auto source = open_model("builtin:gpt2?layers=1&hidden=128");
    QVERIFY(source);
    const auto found = longest_sequence(**source, scenario_with(**source, 64, 1 << 20), {});
    QVERIFY(found);
    QVERIFY(!*found);
  }

  void what_has_no_sequence_is_refused() {
    const auto source = open_model("builtin:alexnet");
    QVERIFY(source);
    const auto found = longest_sequence(**source, scenario_with(**source, 0, 0), {});
    QVERIFY(!found);
    QCOMPARE(found.error().code, ErrorCode::usage);
  }
};

QTEST_APPLESS_MAIN(LongestSequenceTest)
#include "longest_sequence_test.moc"
