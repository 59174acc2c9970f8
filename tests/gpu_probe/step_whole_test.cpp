// SPDX-License-Identifier: Apache-2.0
// The unpartitioned step of a proof: beside the ranks where memory allows, after them where not, carried out once.
#include "gpu_probe/step/whole_step.h"

#include <QtTest>
#include <new>
#include <thread>

#include "core/import/model_source.h"

using namespace turnpoint;
using turnpoint::step::StepRun;

namespace {

/// Of a network that any machine has memory for, or of one that none has.
StepJob whole_job(const char* name, std::int64_t batch) {
  const auto source = open_model(name);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, 0});
  if (!model) qFatal("%s", model.error().message().c_str());
  StepJob job;
  job.model = *model;
  job.plan = unsplit_plan(*job.model);
  return job;
}

}  // namespace

class StepWholeTest : public QObject {
  Q_OBJECT

 private slots:
  void a_small_step_runs_beside_who_asks() {
    const StepJob job = whole_job("builtin:lenet", 1);
    std::thread::id where = std::this_thread::get_id();
    step::WholeStep whole(job, [&]() -> Expected<StepRun> {
      where = std::this_thread::get_id();
      return Error{ErrorCode::device, "done", {}, {}};
    });
    QCOMPARE(whole.get().error().what, std::string("done"));
    QVERIFY(where != std::this_thread::get_id());
  }

  /// A proof of 70 billion parameters records petabytes: nothing begins before who asks has done its own part.
  void a_step_that_memory_does_not_hold_twice_waits() {
    const StepJob job = whole_job("builtin:llama-2-70b", 4096);
    QVERIFY(proof_needs(*job.model, job.plan).bytes > 1e14);
    std::thread::id where;
    step::WholeStep whole(job, [&]() -> Expected<StepRun> {
      where = std::this_thread::get_id();
      return Error{ErrorCode::device, "done", {}, {}};
    });
    QVERIFY(!whole.get().has_value());
    QVERIFY(where == std::this_thread::get_id());
  }

  void whoever_asks_again_gets_the_same_answer() {
    for (const StepJob& job : {whole_job("builtin:lenet", 1), whole_job("builtin:llama-2-70b", 4096)}) {
      int runs = 0;
      step::WholeStep whole(job, [&]() -> Expected<StepRun> {
        ++runs;
        return Error{ErrorCode::device, "done", {}, {}};
      });
      const auto* first = &whole.get();
      QVERIFY(first == &whole.get());
      QCOMPARE(runs, 1);
    }
  }

  void running_out_of_memory_is_an_answer() {
    for (const StepJob& job : {whole_job("builtin:lenet", 1), whole_job("builtin:llama-2-70b", 4096)}) {
      step::WholeStep whole(job, []() -> Expected<StepRun> { throw std::bad_alloc(); });
      QVERIFY(!whole.get().has_value());
      QCOMPARE(whole.get().error().code, ErrorCode::device);
      QVERIFY2(whole.get().error().message().find("out of memory") != std::string::npos,
               whole.get().error().message().c_str());
    }
  }
};

QTEST_APPLESS_MAIN(StepWholeTest)
#include "step_whole_test.moc"
