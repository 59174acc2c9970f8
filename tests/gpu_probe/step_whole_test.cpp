// SPDX-License-Identifier: Apache-2.0
// The unpartitioned step of a proof: beside who asks, carried out once, out of memory said as an error.
#include "gpu_probe/step/whole_step.h"

#include <QtTest>
#include <new>
#include <thread>

using namespace turnpoint;
using turnpoint::step::StepRun;

class StepWholeTest : public QObject {
  Q_OBJECT

 private slots:
  void it_runs_beside_who_asks() {
    std::thread::id where = std::this_thread::get_id();
    step::WholeStep whole([&]() -> Expected<StepRun> {
      where = std::this_thread::get_id();
      return Error{ErrorCode::device, "done", {}, {}};
    });
    QCOMPARE(whole.get().error().what, std::string("done"));
    QVERIFY(where != std::this_thread::get_id());
  }

  void whoever_asks_again_gets_the_same_answer() {
    int runs = 0;
    step::WholeStep whole([&]() -> Expected<StepRun> {
      ++runs;
      return Error{ErrorCode::device, "done", {}, {}};
    });
    const auto* first = &whole.get();
    QVERIFY(first == &whole.get());
    QCOMPARE(runs, 1);
  }

  void running_out_of_memory_is_an_answer() {
    step::WholeStep whole([]() -> Expected<StepRun> { throw std::bad_alloc(); });
    QVERIFY(!whole.get().has_value());
    QCOMPARE(whole.get().error().code, ErrorCode::device);
    QVERIFY2(whole.get().error().message().find("out of memory") != std::string::npos,
             whole.get().error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(StepWholeTest)
#include "step_whole_test.moc"
