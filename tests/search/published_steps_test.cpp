// SPDX-License-Identifier: Apache-2.0
// The steps of the paper of update sharding: sharding is never slower, the Transformer's step on 2,048 cores falls by
// about what was published, and with shares Adam needs hardly more memory than plain gradient descent.
// update_sharding_bench prints the figures.
#include <QtTest>

#include "core/schedule/simulated_points.h"
#include "search/published_steps.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ResultPtr result_of(const char* method, const PublishedStep& step, Optimizer optimizer,
                    const StepOptions& options = {}) {
  const auto scenario = published_scenario(step, optimizer, options);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  const auto result = published_result(method, *scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

double change_of(const PublishedStep& step, const StepOptions& options = {}) {
  const auto time_s = [&](const char* method) {
    return result_of(method, step, step.optimizer, options)->points.front().time_s;
  };
  return change_percent(time_s("data-parallel"), time_s("update-sharding"));
}

std::int64_t peak_of(const char* method, const PublishedStep& step, Optimizer optimizer) {
  const std::size_t first[] = {0};
  const auto cost = simulate_points(*result_of(method, step, optimizer), first, {});
  if (!cost) qFatal("%s", cost.error().message().c_str());
  return cost->front().memory_bytes;
}

}  // namespace

class PublishedStepsTest : public QObject {
  Q_OBJECT

 private slots:
  void steps_get_shorter_as_published() {
    for (const PublishedStep& step : kPublishedSteps) {
      const double change = change_of(step);
      const QString what = QString("%1 on %2: %3 %").arg(step.network).arg(step.cores).arg(change);
      // Every one of these has an update worth sharing, so that no gain at all would be as wrong as a loss.
      QVERIFY2(change < -0.5 && change >= step.least_percent && change <= step.most_percent, qPrintable(what));
    }
  }

  // The larger the replicas' share of a batch is, the smaller is the update's part of the step.
  void more_work_beside_the_update_leaves_less_to_gain() {
    const PublishedStep& transformer = kPublishedSteps[3];
    QCOMPARE(std::string(transformer.network), std::string("transformer-big"));
    double before = -100;
    for (const std::int64_t sequence : {64, 128, 256, 1024}) {
      const double change = change_of(transformer, {.sequence = sequence});
      QVERIFY2(change > before && change < 0, qPrintable(QString::number(change)));
      before = change;
    }
    QVERIFY(change_of(kPublishedSteps[2]) > change_of(transformer) / 2);  // 32 cores: sixteen sentences each
  }

  void adam_needs_hardly_more_memory_than_gradient_descent() {
    for (const PublishedStep& step : kPublishedSteps) {
      const auto more = [&](const char* method) {
        return double(peak_of(method, step, Optimizer::adam)) / double(peak_of(method, step, Optimizer::sgd)) - 1;
      };
      const double whole = more("data-parallel"), shared = more("update-sharding");
      const QString what = QString("%1 on %2: %3 and %4").arg(step.network).arg(step.cores).arg(whole).arg(shared);
      QVERIFY2(shared >= 0 && shared < 0.1 && whole > 4 * shared, qPrintable(what));
    }
  }
};

QTEST_APPLESS_MAIN(PublishedStepsTest)
#include "published_steps_test.moc"
