// SPDX-License-Identifier: Apache-2.0
// The peak that reports predict (items in the order of their issue, one after the other) against what the allocator of
// a CPU rank counts while turnpoint-probe carries out the plan.
#include <QtTest>

#include "core/plan/step_client.h"
#include "core/search/method.h"
#include "core/validation/compare.h"
#include "core/validation/step_of.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

class PeakTest : public QObject {
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
    std::string worst;
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2"}) {
      const ModelPtr made = test::step_models()[std::size_t(model)].make();
      const auto cluster = cluster_preset(hardware);
      Settings settings;
      settings.batch = made->batch;
      const auto scenario = make_scenario(made, *cluster, hardware, settings);
      QVERIFY(scenario.has_value());
      const auto result = (*make_searcher(**find_method("ft")))->run(*scenario, SearchPass::exact, {});
      QVERIFY(result.has_value());
      const std::size_t count = (*result)->points.size();
      for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 2)) {
        const Plan plan = (*result)->plans->plan(p);
        StepChoice choice;
        choice.prove = false;
        choice.steps = 3;
        const auto job = step_job_of(**scenario, plan, choice);
        QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
        ProbeLaunch launch;
        launch.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
        const auto measured = measure_step(launch, *job, {});
        QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
        const auto predicted = serial_peak(**scenario, plan);
        QVERIFY(predicted.has_value());
        qDebug("%s point %zu: predicted %lld held %lld", hardware, p, (long long)*predicted,
               (long long)measured->memory.peak);
        ratios.push_back(double(*predicted) / double(measured->memory.peak));
      }
    }
    std::sort(ratios.begin(), ratios.end());
    qInfo("predicted over held, %zu plans: %.3f to %.3f, median %.3f", ratios.size(), ratios.front(), ratios.back(),
          ratios[ratios.size() / 2]);
  }
};

QTEST_APPLESS_MAIN(PeakTest)
#include "peak_test.moc"
