// SPDX-License-Identifier: Apache-2.0
// Steps of several micro-batches beside their prediction: on a machine that takes what is predicted nothing differs,
// and one that takes longer is learnt from as if every operator had been timed by itself.
#include <QTest>

#include "core/plan/one_stage.h"
#include "core/validation/validate_plans.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "validation/synthetic_machine.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

void scale(Spread& time, double times) {
  for (double* seconds : {&time.min_s, &time.q1_s, &time.median_s, &time.q3_s}) *seconds *= times;
}

/// What the machine says of a job in micro-batches.
StepMeasurement carried_out(SyntheticMachine& machine, const Scenario& one, const StepJob& job) {
  machine.micro_batches = job.micro_batches;
  StepMeasurement made = machine.run(one, job.plan);
  double step_s = 0;
  for (MeasuredPhase& phase : made.phases) {
    scale(phase.time, phase.phase == StepPhase::update ? 1 : job.micro_batches);
    step_s += phase.time.q1_s;
  }
  made.planned_bytes = made.received_bytes = 0;
  for (MeasuredExchange& exchange : made.exchanges) {
    double times = job.micro_batches;
    if (exchange.reshard < 0) {
      const PlanOperator& op = job.plan.operators[exchange.op.index];
      times = times_an_iteration(op.parameters, op.choice.update, job.micro_batches)[std::size_t(exchange.step)];
    }
    scale(*exchange.time, times);
    exchange.planned_bytes *= times, exchange.received_bytes *= times;
    made.planned_bytes += exchange.planned_bytes, made.received_bytes += exchange.received_bytes;
    step_s += exchange.time->q1_s;
  }
  made.step = {step_s, step_s, step_s, step_s, 10};
  return made;
}

}  // namespace

class ValidatedMicroBatchesTest : public QObject {
  Q_OBJECT

 private slots:
  void predicted_and_learnt() {
    for (const auto& model : {test::attention(8), test::convolution(16)}) {
      const auto scenario = scenario_on(model, "v100-16gb-1x4", [](Settings& s) {
        s.bucket_bytes = 0, s.offload = false;
        s.split_loss = false;  // of its statistics the plans share a single size, from which no other is learnt
      });
      const auto one = one_stage_of(*scenario, 1, 4);
      QVERIFY(one.has_value());
      const auto result = run("ft:micro-batches=4", scenario);
      QVERIFY(result.has_value());
      SyntheticMachine exact = as_predicted(**one), slow = exact;
      slow.compute = [same = exact.compute](const auto&... of) { return 2 * same(of...); };
      slow.sums = 2;
      slow.exchange = [same = exact.exchange](const auto&... of) { return 3 * same(of...); };
      for (SyntheticMachine* machine : {&exact, &slow}) {
        std::vector<ValidatedPlan> plans;
        for (const std::size_t point : sampled_points(**result, 20, 0)) {
          const auto runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
            if (job.micro_batches != 4 || job.model->batch * 4 != model->batch) return usage_error("another job");
            return carried_out(*machine, **one, job);
          };
          auto made = validate_point(**result, point, {}, "2026-01-01", runner, {});
          QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
          const ValidationReport& report = made->report;
          QVERIFY(report.bytes_sent.measured && close(report.bytes_sent.predicted, *report.bytes_sent.measured));
          if (machine == &exact) {
            for (const auto& rows : {report.operators, report.collectives, report.phases})
              for (const ComparedValue& row : rows)
                QVERIFY2(row.measured && close(row.predicted, *row.measured),
                         qPrintable(QString("%1: %2 and %3")
                                        .arg(row.name.c_str())
                                        .arg(row.predicted)
                                        .arg(row.measured.value_or(-1))));
            QVERIFY2(close(report.step.predicted, *report.step.measured),
                     qPrintable(QString("%1 and %2").arg(report.step.predicted).arg(*report.step.measured)));
            QVERIFY(close(report.step.predicted, (*result)->points[point].time_s));
          } else {
            QVERIFY(*report.step.measured > 1.9 * report.step.predicted);
          }
          plans.push_back(std::move(*made));
        }
        const auto calibrated = calibrate_plans(*scenario, plans);
        QVERIFY2(calibrated.has_value(), calibrated ? "" : calibrated.error().message().c_str());
        // Each is predicted from the others alone, which need not have the same sizes; of so many some are near.
        for (const ValidationReport& report : calibrated->reports) {
          const double off = report.step.predicted / *report.step.measured - 1;
          QVERIFY2(std::abs(off) < 0.05, qPrintable(QString::number(off)));
        }
      }
    }
  }
};

QTEST_APPLESS_MAIN(ValidatedMicroBatchesTest)
#include "micro_batches_test.moc"
