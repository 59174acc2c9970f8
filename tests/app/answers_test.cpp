// SPDX-License-Identifier: Apache-2.0
// Every answer is to what is asked now: whatever is edited, undone, opened or switched at whatever moment, at rest each
// enabled method has the exact answer to the present scenario. What was answered before is not searched again.
#include <QUndoStack>
#include <QtTest>
#include <random>

#include "app/content_digest.h"
#include "app/document.h"
#include "app/kept_answers.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/search/registry.h"
#include "fake_backend.h"

using namespace turnpoint;
using namespace turnpoint::test;
using app::MethodRun;

namespace {

/// Document and searches without a window.
struct Searches {
  Searches() : document(backend, tasks), runner(backend, tasks, document) {
    FakeWorld& world = fake_world();
    world.coarse_ms = 3, world.exact_ms = 12, world.other_ms = 6, world.bind_ms = 1, world.plan_ms = 0;
    world.fail_search = world.held = false;
  }
  bool open(const std::string& model = "builtin:transformer-s") {
    document.open({model, "v100-16gb-2x8", Settings()});
    return settle();
  }
  bool settle() {
    return QTest::qWaitFor([&] { return !document.building() && runner.settled() && !tasks.busy(); }, 60000);
  }
  int started() const { return runner.coarse_started() + runner.exact_started(); }
  const MethodRun& run(const char* name) { return *runner.find(name); }

  FakeBackend backend;
  app::TaskManager tasks;
  app::Document document;
  app::SearchRunner runner;
};

/// Empty, or what is wrong with the first method whose answer is not that of a fresh search of the present scenario.
QString difference_from_fresh(Searches& s) {
  const ScenarioPtr& now = s.document.scenario();
  for (const MethodRun& run : s.runner.runs()) {
    if (!run.enabled || !run.refusal.empty()) continue;
    const QString name = QString::fromStdString(run.name);
    if (!run.result) return name + QStringLiteral(" has no result, state ") + QString::number(int(run.state));
    if (run.result->scenario != now) return name + QStringLiteral(" answers another scenario");
    if (run.coarse) return name + QStringLiteral(" is a sketch");
    if (run.state != MethodRun::State::done)
      return name + QStringLiteral(" is in state ") + QString::number(int(run.state));
    auto searcher = make_searcher(*run.method, run.parameters);
    const auto fresh = (*searcher)->run(now, SearchPass::exact, {});
    if (!fresh) return name + QStringLiteral(": a fresh search fails");
    if (run.result->points != (*fresh)->points || run.result->turning_point != (*fresh)->turning_point ||
        run.result->near_best != (*fresh)->near_best)
      return name + QStringLiteral(" has other figures than a fresh search");
  }
  return {};
}

/// One thing that a user may do at any moment.
void do_something(Searches& s, std::mt19937& random) {
  const auto any = [&](int count) { return int(random() % unsigned(count)); };
  static const char* const kSliders[] = {"inter-bandwidth-scale", "intra-bandwidth-scale", "device-speed-scale",
                                         "device-memory-scale"};
  static const double kFactors[] = {0.25, 0.5, 1, 2};
  static const char* const kMethods[] = {"ft", "data-parallel", "optcnn", "layered-expert"};
  switch (any(12)) {
    case 0:
    case 1: s.document.set_option(kSliders[any(4)], kFactors[any(4)], quint64(1 + any(2))); break;  // dragged
    case 2: s.document.set_option(kSliders[any(4)], kFactors[any(4)], 0); break;
    case 3: s.document.set_option("batch", any(2) ? 128 : 256, 0); break;
    case 4: s.document.set_option("price-per-hour", any(5), 0); break;
    case 5: s.document.undo_stack().undo(); break;
    case 6: s.document.undo_stack().redo(); break;
    case 7: s.document.open_model(any(2) ? "builtin:vgg16" : "builtin:transformer-s"); break;
    case 8: s.runner.set_enabled(kMethods[any(4)], any(3) > 0); break;
    case 9:
      if (any(2))
        (void)s.runner.add_split(any(2) ? "tp=2" : "tp=3");  // the second is refused
      else
        s.runner.remove_split("manual:tp=2");
      break;
    case 10:
      // As a session does.
      s.document.open({any(2) ? "builtin:vgg16" : "builtin:transformer-s", "v100-16gb-2x8", Settings()});
      s.runner.set_enabled_methods({"ft", any(2) ? "optcnn" : "data-parallel", "manual:tp=4"});
      break;
    case 11: s.runner.search_all(); break;
  }
}

}  // namespace

class AnswersTest : public QObject {
  Q_OBJECT

 private slots:
  void whatever_happens_the_answers_are_those_of_the_present_scenario_data() {
    QTest::addColumn<unsigned>("seed");
    for (unsigned seed = 1; seed <= 24; ++seed) QTest::newRow(qPrintable(QString::number(seed))) << seed;
  }
  void whatever_happens_the_answers_are_those_of_the_present_scenario() {
    QFETCH(unsigned, seed);
    std::mt19937 random(seed);
    Searches s;
    QVERIFY(s.open());
    for (int round = 0; round < 4; ++round) {
      const int steps = 1 + int(random() % 12);
      for (int step = 0; step < steps; ++step) {
        fake_world().fail_search = random() % 8 == 0;
        do_something(s, random);
        if (const int wait = int(random() % 40)) QTest::qWait(wait);
      }
      fake_world().fail_search = false;
      // What failed here may be asked again; another scenario is asked by itself.
      QVERIFY(QTest::qWaitFor([&] { return !s.document.building(); }, 60000));
      s.document.set_option("latency-scale", round % 2 ? 2 : 0.5, 0);
      QVERIFY2(s.settle(), "it never comes to rest");
      const QString wrong = difference_from_fresh(s);
      QVERIFY2(wrong.isEmpty(), qPrintable(QStringLiteral("round %1: %2").arg(round).arg(wrong)));
    }
  }

  void edits_close_to_each_other_leave_nobody_cancelled() {
    Searches s;
    QVERIFY(s.open());
    fake_world().other_ms = 120;
    for (const double factor : {0.9, 0.5, 0.27}) {
      s.document.set_option("inter-bandwidth-scale", factor, 0);
      QTest::qWait(60);  // another method is searching
    }
    QVERIFY(s.settle());
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // What plans are made of is large: the window must not grow with every model that was looked at.
  void answers_of_the_model_before_are_kept_and_no_others() {
    Searches s;
    QVERIFY(s.open("builtin:transformer-s"));
    QVERIFY(s.open("builtin:lenet"));
    const std::size_t two = s.runner.kept().size();
    int started = s.started();
    QVERIFY(s.open("builtin:transformer-s"));
    QCOMPARE(s.started(), started);
    QVERIFY(s.open("builtin:alexnet"));
    QCOMPARE(s.runner.kept().size(), two);
    started = s.started();
    QVERIFY(s.open("builtin:lenet"));
    QVERIFY(s.started() > started);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void the_users_own_cancel_stays_until_the_scenario_changes_or_all_are_asked() {
    Searches s;
    fake_world().other_ms = 400;
    QVERIFY(QTest::qWaitFor([&] {
      if (!s.document.scenario() && !s.document.building())
        s.document.open({"builtin:transformer-s", "v100-16gb-2x8", Settings()});
      return s.runner.find("data-parallel")->state == MethodRun::State::running;
    }));
    s.runner.cancel("data-parallel");
    QVERIFY(s.settle());
    QVERIFY(s.run("data-parallel").state == MethodRun::State::cancelled);
    QVERIFY(s.run("optcnn").state == MethodRun::State::done);
    s.runner.set_enabled("layered-expert", true);  // something else happens
    QVERIFY(s.settle());
    QVERIFY(s.run("data-parallel").state == MethodRun::State::cancelled);
    fake_world().other_ms = 5;
    s.runner.search_all();
    QVERIFY(s.settle());
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void what_failed_is_tried_again_when_the_scenario_differs() {
    Searches s;
    QVERIFY(s.open());
    fake_world().fail_search = true;
    s.document.set_option("inter-bandwidth-scale", 0.5, 0);
    QVERIFY(s.settle());
    QVERIFY(s.run("optcnn").state == MethodRun::State::failed);
    QVERIFY(s.run("optcnn").error.has_value());
    fake_world().fail_search = false;
    s.document.set_option("inter-bandwidth-scale", 0.25, 0);
    QVERIFY(s.settle());
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // Neither while the slider moves nor while the curve is sketched, when nothing has taken the place of the words.
  void what_failed_or_was_stopped_is_not_said_of_the_next_scenario() {
    Searches s;
    QVERIFY(s.open());
    for (const quint64 drag : {quint64(0), quint64(7)}) {
      fake_world().fail_search = true;
      s.document.set_option("inter-bandwidth-scale", drag ? 0.5 : 0.9, 0);
      QVERIFY(s.settle());
      QVERIFY(s.run("optcnn").state == MethodRun::State::failed && s.run("optcnn").error);
      s.runner.search("data-parallel");
      s.runner.cancel("data-parallel");
      QVERIFY(s.settle());
      QVERIFY(s.run("data-parallel").state == MethodRun::State::cancelled);
      fake_world().fail_search = false;
      s.document.set_option("inter-bandwidth-scale", drag ? 0.3 : 0.7, drag);
      for (const char* name : {"ft", "optcnn", "data-parallel"}) {
        const MethodRun& run = s.run(name);
        QVERIFY2(run.state != MethodRun::State::failed && run.state != MethodRun::State::cancelled, name);
        QVERIFY2(!run.error, name);
      }
      QVERIFY(s.settle());
      QCOMPARE(difference_from_fresh(s), QString());
    }
  }

  // A curve that stayed coarse because its exact pass was stopped is no answer to the next scenario, either.
  void a_price_edit_after_a_cancelled_exact_pass_searches() {
    Searches s;
    fake_world().exact_ms = 5000;
    s.document.open({"builtin:transformer-s", "v100-16gb-2x8", Settings()});
    QVERIFY(QTest::qWaitFor([&] { return s.runner.exact_started() > 0 && s.run("ft").coarse; }, 60000));
    s.runner.cancel("ft");
    QVERIFY(s.settle());
    QVERIFY(s.run("ft").state == MethodRun::State::cancelled && s.run("ft").coarse);
    fake_world().exact_ms = 10;
    s.document.set_option("price-per-hour", 3, 0);
    QVERIFY(s.settle());
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void an_answer_about_another_model_is_dropped() {
    Searches s;
    QVERIFY(s.open());
    bool foreign = false;
    connect(&s.runner, &app::SearchRunner::result_changed, this, [&](const QString& name) {
      const MethodRun* run = s.runner.find(name.toStdString());
      foreign = foreign || (run->result && run->result->scenario->model != s.document.scenario()->model);
    });
    fake_world().coarse_ms = 250;
    s.document.set_option("inter-bandwidth-scale", 0.5, 7);  // its sketch is held up
    QTest::qWait(40);
    s.document.open_model("builtin:vgg16");
    QVERIFY(s.settle());
    QVERIFY(!foreign);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // Cancelled in the task strip, the newest request goes and the sketch before it goes on; nobody asks for the method
  // in the next model, so nothing takes the place of that sketch either.
  void a_sketch_that_nobody_stopped_is_dropped_in_another_model() {
    Searches s;
    QVERIFY(s.open());
    bool foreign = false;
    const auto is_foreign = [&] {
      const MethodRun& run = s.run("ft");
      return run.result && run.result->scenario->model != s.document.scenario()->model;
    };
    connect(&s.runner, &app::SearchRunner::result_changed, this, [&] { foreign = foreign || is_foreign(); });
    fake_world().held = true;
    s.document.set_option("inter-bandwidth-scale", 0.5, 0);   // its sketch runs
    s.document.set_option("inter-bandwidth-scale", 0.25, 0);  // its sketch waits
    const auto newest = s.tasks.newest();
    QVERIFY(newest && newest->waiting && newest->purpose == app::search_purpose("ft"));
    s.tasks.cancel(newest->id);
    QVERIFY(s.run("ft").state == MethodRun::State::cancelled);
    s.runner.set_enabled("ft", false);
    s.document.open_model("builtin:vgg16");
    QVERIFY(QTest::qWaitFor([&] { return !s.document.building(); }, 60000));
    fake_world().held = false;
    QVERIFY(s.settle());
    s.runner.set_enabled("ft", true);
    QVERIFY(!is_foreign() && !foreign);
    QVERIFY(s.settle());
    QVERIFY(!foreign);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // Once for a scenario, when nothing else is to do; a slider that is moved before does not wait for it.
  void the_curve_gets_ready_for_sliders_while_nobody_waits() {
    FakeWorld& world = fake_world();
    world.ready_begun = world.ready_done = 0;
    world.ready_ms = 1;
    Searches s;
    QVERIFY(s.open());
    QCOMPARE(world.ready_begun.load(), 1);
    QCOMPARE(world.ready_done.load(), 1);
    s.document.set_option("device-memory-scale", 0.5, 0);
    s.runner.set_enabled("optcnn", false);
    QVERIFY(s.settle());
    const int answered = world.ready_begun;
    world.ready_ms = 60000;
    s.document.set_option("inter-bandwidth-scale", 0.5, 0);
    QVERIFY(QTest::qWaitFor([&] { return s.runner.settled() && s.runner.getting_ready(); }, 60000));
    QVERIFY(s.runner.up_to_date());
    s.document.set_option("inter-bandwidth-scale", 0.25, 7);
    const auto follows = [&] {
      const MethodRun& run = s.run("ft");
      return run.result && run.result->scenario == s.document.scenario();
    };
    QVERIFY(QTest::qWaitFor(follows, 10000));
    QCOMPARE(world.ready_done.load(), answered);
    world.ready_ms = 1;
    QVERIFY(s.settle());
    QVERIFY(world.ready_done > answered && !s.runner.getting_ready());
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // Whatever else runs takes its place, and it goes on afterwards; what the user stopped stays stopped.
  void getting_ready_gives_way_and_goes_on() {
    FakeWorld& world = fake_world();
    world.ready_begun = world.ready_done = 0;
    world.ready_ms = 60000;
    Searches s;
    s.document.open({"builtin:transformer-s", "v100-16gb-2x8", Settings()});
    QVERIFY(QTest::qWaitFor([&] { return s.runner.getting_ready(); }, 60000));
    bool ended = false;
    s.tasks.start(
        QStringLiteral("validate"), QStringLiteral("another"), [](const RunContext&) { QTest::qSleep(50); },
        [&](app::TaskOutcome) { ended = true; });
    QVERIFY(QTest::qWaitFor([&] { return ended && s.runner.getting_ready() && world.ready_begun == 2; }, 10000));
    QCOMPARE(world.ready_done.load(), 0);
    s.tasks.cancel_all();
    QVERIFY(QTest::qWaitFor([&] { return !s.tasks.busy(); }, 10000));
    QTest::qWait(50);
    QVERIFY(!s.runner.getting_ready());
    QCOMPARE(world.ready_begun.load(), 2);
    // Memory runs out: the next search has a searcher of its own, and is right.
    world.ready_ms = -1;
    s.document.set_option("inter-bandwidth-scale", 0.5, 0);
    QVERIFY(QTest::qWaitFor([&] { return world.ready_begun == 3 && !s.tasks.busy(); }, 60000));
    world.ready_ms = 1;
    s.document.set_option("inter-bandwidth-scale", 0.25, 0);
    QVERIFY(QTest::qWaitFor([&] { return world.ready_done == 1 && s.runner.settled(); }, 60000));
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void the_sequence_is_not_carried_into_another_model() {
    Searches s;
    QVERIFY(s.open());
    s.document.set_option("sequence", 512, 0);
    QVERIFY(s.settle());
    QCOMPARE(s.document.scenario()->model->sequence, std::int64_t(512));
    s.document.open_model("builtin:vgg16");
    QVERIFY(s.settle());
    QCOMPARE(s.document.scenario()->settings.sequence, std::int64_t(0));
    QCOMPARE(s.document.scenario()->model->sequence, std::int64_t(256));
  }

  void the_number_of_devices_is_not_carried_to_other_hardware() {
    Searches s;
    QVERIFY(s.open());
    QCOMPARE(s.document.scenario()->cluster->devices(), 16);
    s.document.set_option("devices", 4, 0);
    QVERIFY(s.settle());
    QCOMPARE(s.document.scenario()->cluster->devices(), 4);
    s.document.open_hardware("v100-16gb-1x8");
    QVERIFY(s.settle());
    QCOMPARE(s.document.scenario()->settings.devices, 0);
    QCOMPARE(s.document.scenario()->cluster->devices(), 8);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void going_back_searches_nothing() {
    Searches s;
    QVERIFY(s.open());
    s.document.set_option("inter-bandwidth-scale", 0.5, 0);
    QVERIFY(s.settle());
    s.document.set_option("batch", 128, 0);
    QVERIFY(s.settle());
    s.document.open_model("builtin:vgg16");
    QVERIFY(s.settle());
    const int before = s.started();
    for (int i = 0; i < 3; ++i) {
      s.document.undo_stack().undo();
      QVERIFY(s.runner.settled() && s.runner.up_to_date());  // at once
      QCOMPARE(difference_from_fresh(s), QString());
    }
    for (int i = 0; i < 3; ++i) s.document.undo_stack().redo();
    QCOMPARE(difference_from_fresh(s), QString());
    // The same model opened anew is another object with the same content.
    const ModelPtr first = s.document.scenario()->model;
    s.document.open_model("builtin:transformer-s");
    QVERIFY(s.settle());
    s.document.open_model("builtin:vgg16");
    QVERIFY(s.settle());
    QVERIFY(s.document.scenario()->model != first);
    QCOMPARE(difference_from_fresh(s), QString());
    QCOMPARE(s.started(), before);
    // Whoever asks for a search has it.
    s.runner.search_all();
    QVERIFY(s.settle());
    QVERIFY(s.started() > before);
  }

  void device_memory_and_price_search_nothing() {
    Searches s;
    QVERIFY(s.open());
    const int before = s.started();
    const auto turning = s.run("ft").result->turning_point;
    s.document.set_option("device-memory-scale", 0.5, 3);
    QVERIFY(s.run("ft").result->turning_point != turning);  // the fake's curve bends where half the memory ends
    for (const double factor : {0.4, 0.3, 0.6}) s.document.set_option("device-memory-scale", factor, 3);
    s.document.set_option("memory-limit", 9e9, 0);
    s.document.set_option("price-per-hour", 2, 0);
    QVERIFY(s.settle());
    QCOMPARE(s.started(), before);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  // Of slow plans an answer knows little, unless devices have no room for others: then it is not enough any more.
  void slow_plans_are_searched_for_once_they_count() {
    Searches s;
    fake_world().leaves_slow_plans = true;
    QVERIFY(s.open());
    const ResultPtr large = s.run("ft").result;
    QVERIFY(!large->exact && large->gap && *large->gap > 0 && *large->gap < 0.002);
    const int before = s.started();
    s.document.set_option("memory-limit", double(large->points.back().memory_bytes), 0);
    QVERIFY(s.settle());
    QCOMPARE(s.started(), before);
    s.document.set_option("memory-limit", double(large->points[10].memory_bytes), 0);
    QVERIFY(s.run("ft").coarse && *s.run("ft").result->gap > 0.09);
    QVERIFY(s.settle());
    QVERIFY(s.started() > before && !s.run("ft").coarse);
    QVERIFY(*s.run("ft").result->gap < 0.002);
    QCOMPARE(difference_from_fresh(s), QString());
    fake_world().leaves_slow_plans = false;
  }

  void a_running_search_goes_on_while_only_the_memory_changes() {
    Searches s;
    fake_world().exact_ms = 300;
    s.document.open({"builtin:transformer-s", "v100-16gb-2x8", Settings()});
    QVERIFY(QTest::qWaitFor([&] { return s.runner.exact_started() > 0 && s.run("ft").coarse; }, 60000));
    const int cancelled = fake_world().cancelled_runs;
    s.document.set_option("device-memory-scale", 0.5, 3);
    QVERIFY(s.settle());
    QCOMPARE(fake_world().cancelled_runs.load(), cancelled);
    QCOMPARE(difference_from_fresh(s), QString());
  }

  void the_oldest_answers_go_first() {
    const auto answer = [](std::size_t points) {
      auto result = std::make_shared<Result>();
      result->points.resize(points);
      return ResultPtr(result);
    };
    app::KeptAnswers kept(std::size_t(3500) * sizeof(ResultPoint));
    kept.keep("a", answer(1000));
    kept.keep("b", answer(1000));
    kept.keep("c", answer(1000));
    QVERIFY(kept.find("a"));  // used: b is the oldest now
    kept.keep("d", answer(1000));
    QVERIFY(kept.find("a") && !kept.find("b") && kept.find("c") && kept.find("d"));
    kept.keep("huge", answer(10000));
    QVERIFY(!kept.find("huge"));
    QCOMPARE(kept.size(), std::size_t(3));
    kept.keep("a", answer(10));
    QCOMPARE(kept.size(), std::size_t(3));
    QVERIFY(kept.bytes() < std::size_t(3500) * sizeof(ResultPoint));
  }

  void two_splits_are_two_questions() {
    Searches s;
    QVERIFY(s.open());
    const Method& manual = s.backend.methods().back();
    const auto asked = [&](const char* split) { return app::question_of(manual, split, *s.document.scenario(), "m"); };
    QVERIFY(asked("tp=2") == asked("tp=2") && asked("tp=2") != asked("tp=4"));
  }

  void a_digest_tells_contents_apart() {
    Scenario scenario;
    auto model = std::make_shared<Model>(fake_model("m", 256, 0));
    scenario.model = model;
    scenario.cluster = *FakeBackend().open_hardware("v100-16gb-2x8");
    const std::string first = app::content_digest(scenario);
    model->source = "elsewhere";
    QCOMPARE(app::content_digest(scenario), first);
    std::set<std::string> seen{first};
    const auto changes = [&](auto change) {
      change();
      return seen.insert(app::content_digest(scenario)).second;
    };
    QVERIFY(changes([&] { model->operators[OperatorId(3)].forward_flop += 1; }));
    QVERIFY(changes([&] { model->operators[OperatorId(3)].dims[1].splittable = false; }));
    QVERIFY(changes([&] { model->operators[OperatorId(3)].inputs[0].walks[0] = {1}; }));
    QVERIFY(changes([&] { model->tensors[TensorId(2)].type = ElementType::bf16; }));
    QVERIFY(changes([&] { model->tensors[TensorId(2)].requires_gradient = false; }));
    QVERIFY(changes([&] { model->batch = 1; }));
    QVERIFY(changes([&] { scenario.cluster = *FakeBackend().open_hardware("v100-16gb-1x8"); }));
  }
};

QTEST_MAIN(AnswersTest)
#include "answers_test.moc"
