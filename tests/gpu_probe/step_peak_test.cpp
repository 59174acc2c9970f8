// SPDX-License-Identifier: Apache-2.0
// The peak that reports predict (items in the order of their issue, one after the other) against what ranks hold when
// they execute the plan.
#include <QtTest>

#include "core/search/method.h"
#include "core/validation/compare.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

class StepPeakTest : public QObject {
  Q_OBJECT

 private slots:
  void peaks_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void peaks() {
    QFETCH(int, model);
    std::vector<double> ratios;
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2", "v100-16gb-2x2"}) {
      const ModelPtr made = test::step_models()[std::size_t(model)].make();
      const auto cluster = cluster_preset(hardware);
      Settings settings;
      settings.batch = made->batch;
      const auto scenario = make_scenario(made, *cluster, hardware, settings);
      QVERIFY(scenario.has_value());
      const auto result = (*make_searcher(**find_method("ft")))->run(*scenario, SearchPass::exact, {});
      QVERIFY(result.has_value());
      const std::size_t count = (*result)->points.size();
      for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 3)) {
        const Plan plan = (*result)->plans->plan(p);
        auto options = test::step_options(settings);
        options.record = false;
        const auto run = step::run_step(*made, plan, options);
        QVERIFY2(run.has_value(), run ? "" : run.error().message().c_str());
        std::int64_t held = 0;
        for (const auto& rank : run->ranks) held = std::max(held, rank.ledger.peak);
        const auto predicted = serial_peak(**scenario, plan);
        QVERIFY(predicted.has_value());
        ratios.push_back(double(*predicted) / double(held));
      }
    }
    std::sort(ratios.begin(), ratios.end());
    qInfo("predicted over held, %zu plans: %.3f to %.3f, median %.3f", ratios.size(), ratios.front(), ratios.back(),
          ratios[ratios.size() / 2]);
  }
};

QTEST_APPLESS_MAIN(StepPeakTest)
#include "step_peak_test.moc"
