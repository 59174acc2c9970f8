// SPDX-License-Identifier: Apache-2.0
// The first thing that must hold: a small network's step on 2 and 4 ranks is the unpartitioned step.
#include <QtTest>

#include "gpu_probe/step_checks.h"
#include "plan/hand_plan.h"

using namespace turnpoint;

class StepSmallTest : public QObject {
  Q_OBJECT

 private slots:
  void any_configuration_of_a_chain() {
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(test::mlp(8), hardware);
      QVERIFY(scenario);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Plan plan = test::hand_plan(*scenario, seed);
        const std::string fault = test::step_fault(*scenario, plan, &statistics);
        QVERIFY2(fault.empty(), (std::string(hardware) + ", seed " + std::to_string(seed) + ": " + fault).c_str());
      }
    }
    qInfo("%d plans, %d collectives, largest difference %.1e", statistics.plans, statistics.collectives,
          statistics.worst);
  }
};

QTEST_APPLESS_MAIN(StepSmallTest)
#include "step_small_test.moc"
