// SPDX-License-Identifier: Apache-2.0
// Steps of several micro-batches: the partitioned step is the unpartitioned one, sends and holds what the plan says,
// and the gradient of the update is the sum of those of the micro-batches by themselves.
#include <QtTest>
#include <map>

#include "core/plan/micro_batch.h"
#include "core/search/registry.h"
#include "core/validation/step_of.h"
#include "gpu_probe/step/values/numbers.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// By operator and input: the gradients of a whole step's parameters.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> gradients_of(const Model& model,
                                                                                    std::uint64_t seed,
                                                                                    int micro_batches) {
  step::StepOptions options;
  options.record = true;
  options.seed = seed;
  options.micro_batches = micro_batches;
  // The same weights whatever the seed of the data is.
  options.initial = [](TensorId id, std::int64_t index, double) {
    return step::counter_uniform(99, id.index, std::uint64_t(index)) - 0.5;
  };
  const auto run = step::run_step(step::in_double(), model, unsplit_plan(model), options);
  if (!run) qFatal("%s", run.error().message().c_str());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> found;
  for (const step::Recorded& recorded : run->ranks[0].recorded)
    if (recorded.kind == step::Compared::parameter_gradient) found[{recorded.op.index, recorded.slot}] = recorded.data;
  return found;
}

}  // namespace

class StepMicroBatchesTest : public QObject {
  Q_OBJECT

 private slots:
  void plans_are_carried_out_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void plans_are_carried_out() {
    QFETCH(int, model);
    const ModelPtr whole = test::step_models()[std::size_t(model)].make();
    QVERIFY2(micro_batch_model(whole, 2).has_value(), "its batch cannot be cut");
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(whole, hardware);
      for (const std::string method :
           {"ft:micro-batches=2", "fsdp:micro-batches=2:zero=1", "fsdp:micro-batches=2:zero=2",
            "fsdp:micro-batches=2:zero=3", "manual:micro-batches=2", "update-sharding:of=manual:micro-batches=2"}) {
        const auto result = test::run(method, scenario);
        if (!result) continue;
        const std::size_t count = (*result)->points.size(), step = std::max<std::size_t>(1, count / 3);
        for (std::size_t p = 0; p < count; p += step) {
          const std::string fault = test::step_fault(*scenario, (*result)->plans->sharding(p), &statistics);
          QVERIFY2(fault.empty(), (method + " on " + hardware + ", point " + std::to_string(p) + ": " + fault).c_str());
        }
      }
    }
    qInfo("%d plans, %d collectives, %d reruns, largest difference %.1e", statistics.plans, statistics.collectives,
          statistics.reruns, statistics.worst);
    QVERIFY(statistics.plans >= 15);
  }

  void gradients_are_sums() {
    const ModelPtr model = test::attention(4, 8);
    const std::uint64_t seed = 5;
    const auto together = gradients_of(*model, seed, 3);
    std::vector<decltype(gradients_of(*model, 1, 1))> alone;
    for (const std::uint64_t each : {seed, step::mixed(seed + 1), step::mixed(seed + 2)})
      alone.push_back(gradients_of(*model, each, 1));
    QVERIFY(together.size() > 5);
    double largest = 0, apart = 0;
    for (const auto& [where, sum] : together)
      for (std::size_t i = 0; i < sum.size(); ++i) {
        double expected = 0;
        for (const auto& one : alone) expected += one.at(where)[i];
        QVERIFY(std::abs(sum[i] - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
        largest = std::max(largest, std::abs(sum[i]));
        apart = std::max(apart, std::abs(alone[0].at(where)[i] - alone[1].at(where)[i]));
      }
    QVERIFY2(largest > 1e-3 && apart > 1e-3, "data that do not differ prove nothing");
  }

  // The job says how many there are, as files have it, and what it proves takes so many times as long.
  void jobs_carry_the_number() {
    const auto scenario = test::scenario_on(test::attention(8), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=4", scenario);
    QVERIFY(result.has_value());
    const auto job = step_job_of(*scenario, (*result)->plans->sharding(0), {});
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    QCOMPARE(job->micro_batches, 4);
    QCOMPARE(job->model->batch, std::int64_t(2));
    const auto read = parse_step_job(write_step_job(*job), "job");
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
    QCOMPARE(read->micro_batches, 4);
    QCOMPARE(fingerprint(*read), fingerprint(*job));
    StepJob once = *job;
    once.micro_batches = 1;
    QVERIFY(fingerprint(once) != fingerprint(*job));
    QVERIFY(test::close(proof_needs(*job).seconds, 4 * proof_needs(once).seconds));
    std::string text = write_step_job(*job);
    text.replace(text.find("\"micro_batches\":4"), 17, "\"micro_batches\":0");
    const auto none = parse_step_job(text, "job");
    QVERIFY(!none && none.error().message().find("micro_batches") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(StepMicroBatchesTest)
#include "step_micro_batches_test.moc"
