// SPDX-License-Identifier: Apache-2.0
// A method that learns in the real window on the real core: its course, its best placement so far on the views, and
// sessions from which it goes on.
#include <QDir>
#include <QDockWidget>
#include <QPushButton>
#include <QtTest>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/plan_loader.h"
#include "app/recovery.h"
#include "app/session.h"
#include "core/search/placement_search.h"
#include "real_window.h"
#include "views/common/message_bar.h"
#include "views/learning/learning_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr int kLong_ms = 60000 * test::kSanitizerFactor;
const char* const kEndless = "trinity:from=round-robin:iterations=1000000";
const char* const kShort = "trinity:from=round-robin:iterations=60";

struct LearningWindow : Real {
  app::SearchRunner& runner() { return window->work().runner; }
  const app::MethodRun& run(const char* name) { return *runner().find(name); }
  bool only(const char* name) {
    const std::vector<app::MethodRun> runs = runner().runs();
    for (const app::MethodRun& each : runs)
      if (each.enabled) runner().set_enabled(each.name, false);
    return runner().add_split(name).has_value();
  }
  bool waits_for_iterations(const char* name, std::uint64_t count) {
    return QTest::qWaitFor(
        [&] {
          const app::MethodRun* run = runner().find(name);
          return run && run->learning && !run->learning->points().empty() &&
                 run->learning->points().back().iteration >= count;
        },
        kLong_ms);
  }
  bool waits_for_end(const char* name) {
    const auto ended = [&] {
      const app::MethodRun* run = runner().find(name);
      return run && (run->result || run->error) && runner().settled() && !window->work().tasks.busy();
    };
    return QTest::qWaitFor(ended, kLong_ms);
  }
  bool waits_for_state(const char* name) {
    return QTest::qWaitFor([&] { return run(name).learning && run(name).learning->state(); }, kLong_ms);
  }
  QString save(const char* file) {
    const QString path = folder.filePath(QString::fromLatin1(file));
    return window->sessions().save(path) ? path : QString();
  }
  /// Errors and warnings, which come before notes; they are gone then.
  QStringList errors() {
    QStringList all;
    auto* bar = part<views::MessageBar>(window);
    while (bar->current() && bar->current()->kind != views::Message::Kind::note) {
      all << bar->current()->what + u' ' + bar->current()->where;
      bar->dismiss();
    }
    return all;
  }
};

const PlacementPlan& answer_of(const app::MethodRun& run) {
  const std::size_t point = run.result->fastest_that_fits().value_or(run.result->points.size() - 1);
  return *std::get<PlacementPlanPtr>(run.result->plans->plan(point));
}

}  // namespace

class LearningWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void its_course_and_its_best_are_on_show_while_it_learns() {
    LearningWindow real;
    QVERIFY(real.open(real.random_graph(3, 80)));
    QVERIFY(real.only(kEndless));
    real.child<QDockWidget>("learning")->raise();
    auto* view = part<views::LearningView>(real.window);
    QVERIFY(real.waits_for_iterations(kEndless, 3));
    QTRY_VERIFY_WITH_TIMEOUT(view->chart()->data().points.size() >= 3, kLong_ms);
    QVERIFY2(view->words().contains(QStringLiteral("than it began")), qPrintable(view->words()));
    // What it has so far is a sketch that says so, and not an answer.
    QTRY_VERIFY_WITH_TIMEOUT(real.run(kEndless).result != nullptr, kLong_ms);
    const app::MethodRun& run = real.run(kEndless);
    QVERIFY(run.state == app::MethodRun::State::running && run.coarse);
    QVERIFY(std::any_of(run.result->notes.begin(), run.result->notes.end(),
                        [](const std::string& note) { return note.find("has not ended") != std::string::npos; }));
    view->show_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(placement_on_show(*real.window) != nullptr, kLong_ms);
    QCOMPARE(placement_on_show(*real.window)->makespan_s, real.point(kEndless).time_s);
    QTRY_VERIFY_WITH_TIMEOUT(!view->show_button()->isEnabled(), kLong_ms);
    // It gets better from a poor start, and the views follow.
    const double first = placement_on_show(*real.window)->makespan_s;
    QTRY_VERIFY_WITH_TIMEOUT(placement_on_show(*real.window) && placement_on_show(*real.window)->makespan_s < first,
                             kLong_ms);
    real.runner().cancel(kEndless);
    QVERIFY(real.settle());
    QVERIFY(!run.coarse && search::stopped_early(*run.result));
    QVERIFY(real.point(kEndless).time_s <= placement_on_show(*real.window)->makespan_s);
    // The course stays; asked for again, it goes on from where it was, not from the beginning.
    const std::uint64_t until = run.learning->points().back().iteration;
    QVERIFY(until > 3 && run.learning->state());
    real.runner().search(kEndless);
    QTRY_VERIFY_WITH_TIMEOUT(run.learning->points().back().iteration > until, kLong_ms);
    real.window->work().tasks.cancel_all();
    QVERIFY(real.settle());
    QVERIFY(run.learning->points().front().iteration <= 2);
  }

  /// Saved while it learns and after it has; the answer is that of a search without a break.
  void a_session_goes_on_from_there() {
    LearningWindow real;
    const QString graph = real.random_graph(4, 60);
    QVERIFY(real.open(graph));
    QVERIFY(real.only(kShort));
    QVERIFY(real.waits_for_state(kShort));
    const QString during = real.save("during.turnpoint");
    QVERIFY(!during.isEmpty());
    QVERIFY(real.settle());
    QVERIFY(real.run(kShort).state == app::MethodRun::State::done);
    const QString after = real.save("after.turnpoint");
    const PlacementPlan whole = answer_of(real.run(kShort));
    const auto course = real.run(kShort).learning->points();
    QCOMPARE(course.size(), std::size_t(60));
    for (const QString& path : {during, after}) {
      const auto session = app::load_session(path.toStdString());
      QVERIFY2(session, session ? "" : session.error().message().c_str());
      QCOMPARE(session->learning.size(), std::size_t(1));
      LearningWindow other;
      other.window->sessions().open(path);
      QVERIFY(other.waits_for_end(kShort));
      const auto& error = other.run(kShort).error;
      QVERIFY2(!error, error ? error->message().c_str() : "");
      QCOMPARE(other.errors(), QStringList());
      QVERIFY(other.run(kShort).result && other.run(kShort).result->plans);
      QVERIFY(other.settle());
      const PlacementPlan again = answer_of(other.run(kShort));
      QCOMPARE(again.makespan_s, whole.makespan_s);
      QCOMPARE(again.placement.device, whole.placement.device);
      QCOMPARE(again.placement.order, whole.placement.order);
      QCOMPARE(again.stages.back().name, whole.stages.back().name);
      QVERIFY(other.run(kShort).learning->points() == course);
    }
  }

  /// Nothing else is unsaved: what was learnt is copied all the same, in the background and when a signal ends it, and
  /// not once a session has it.
  void a_killed_window_leaves_what_was_learnt() {
    LearningWindow real;
    QVERIFY(real.open(real.random_graph(4, 60)));
    QVERIFY(real.only(kEndless));
    const QString saved = real.save("saved.turnpoint");  // the methods that are on are saved now
    QVERIFY(real.waits_for_state(kEndless));
    const QString folder = real.folder.filePath("recovery");
    real.window->sessions().keep_recovery(folder, 50);
    const auto copies = [&] { return QDir(folder).entryList({"*.turnpoint"}, QDir::Files); };
    const auto learnt = [&]() -> std::shared_ptr<const std::string> {
      const auto session = copies().isEmpty() ? Expected<app::Session>(bad_input("none"))
                                              : app::load_session(QDir(folder).filePath(copies()[0]).toStdString());
      return session && session->learning.size() == 1 ? session->learning[0].state : nullptr;
    };
    QTRY_VERIFY_WITH_TIMEOUT(learnt() != nullptr, kLong_ms);
    const std::string first = *learnt();
    QTRY_VERIFY_WITH_TIMEOUT(learnt() && *learnt() != first, kLong_ms);  // it goes with the times
    real.runner().cancel(kEndless);
    QVERIFY(real.settle());
    QVERIFY(QFile::exists(saved));
    QVERIFY(!real.save("saved.turnpoint").isEmpty());
    QTest::qWait(300);
    QVERIFY(copies().isEmpty());  // a session has it
    real.runner().search(kEndless);
    // At once, before it has learnt anything more: it goes on from what it had.
    QCOMPARE(real.runner().learning().size(), std::size_t(1));
    const auto state = real.runner().learning()[0].state;
    QTRY_VERIFY_WITH_TIMEOUT(real.runner().learning().size() == 1 && real.runner().learning()[0].state != state,
                             kLong_ms);
    real.window->sessions().end_by_signal();
    const auto left = app::left_behind(folder);
    QCOMPARE(left.size(), std::size_t(1));
    QCOMPARE(left[0].session.learning.size(), std::size_t(1));
    QVERIFY(left[0].session.learning[0].method == kEndless && !left[0].session.learning[0].state->empty());
  }

  void a_changed_graph_is_one_message_and_nothing_is_lost() {
    LearningWindow real;
    const QString graph = real.random_graph(5, 60);
    QVERIFY(real.open(graph));
    QVERIFY(real.only(kShort));
    QVERIFY(real.settle());
    const QString path = real.save("changed.turnpoint");
    const auto before = app::load_session(path.toStdString());
    QVERIFY(before && before->learning.size() == 1);
    std::ofstream(graph.toStdString()) << write_task_graph(*random_task_graph(6, 60));
    LearningWindow other;
    other.window->sessions().open(path);
    QVERIFY(other.waits_for_end(kShort));
    QVERIFY(other.run(kShort).error);
    const QStringList said = other.errors();
    QCOMPARE(said.size(), 1);
    QVERIFY2(said[0].contains(QStringLiteral("of another task graph")), qPrintable(said[0]));
    // It is still in the session that is saved now.
    const QString kept = other.save("kept.turnpoint");
    const auto after = app::load_session(kept.toStdString());
    QVERIFY(after && after->learning.size() == 1);
    QVERIFY(*after->learning[0].state == *before->learning[0].state);
    // Searched again it learns anew, and what it has learnt takes the place of the old.
    other.runner().search(kShort);
    QVERIFY(other.settle());
    QVERIFY(other.run(kShort).state == app::MethodRun::State::done);
    const auto anew = app::load_session(other.save("anew.turnpoint").toStdString());
    QVERIFY(anew && anew->learning.size() == 1);
    QVERIFY(*anew->learning[0].state != *before->learning[0].state);
  }

  void broken_states_in_files() {
    LearningWindow real;
    QVERIFY(real.open(real.random_graph(7, 30)));
    const QString path = real.save("plain.turnpoint");
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const auto document = nlohmann::json::parse(file.readAll().toStdString());
    QVERIFY(!document.contains("learning"));
    for (const char* text :
         {R"([1])", R"([{"method": "trinity"}])", R"([{"method": "trinity", "state": "%%"}])", R"({})"}) {
      auto broken = document;
      broken["learning"] = nlohmann::json::parse(text);
      const auto read = app::read_session(broken, "s.turnpoint");
      QVERIFY2(!read && read.error().code == ErrorCode::bad_input, text);
      QVERIFY(read.error().what.find('\n') == std::string::npos);
    }
  }
};

QTEST_MAIN(LearningWindowTest)
#include "learning_window_test.moc"
