// SPDX-License-Identifier: Apache-2.0
#include "app/task_strip.h"

#include <QApplication>
#include <QLabel>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "app/task_manager.h"

using namespace turnpoint;
using namespace turnpoint::app;

class TaskStripTest : public QObject {
  Q_OBJECT

 private slots:
  void the_strip_says_what_is_left_or_how_long_it_has_taken() {
    TaskManager tasks;
    TaskStrip strip(tasks);
    const auto words = [&] {
      QStringList all;
      for (const QLabel* label : strip.findChildren<QLabel*>()) all << label->text();
      return all.join(u' ');
    };
    tasks.start(
        QStringLiteral("search"), QStringLiteral("Search"),
        [](const RunContext& context) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1050));
          context.report("exact", 0.6);
          while (!context.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        },
        [](TaskOutcome) {});
    QTRY_VERIFY2_WITH_TIMEOUT(words().contains(QStringLiteral("60% \u00b7 1\u00a0s left")), qPrintable(words()), 3000);
    // A task that is over in a moment does not take its place.
    tasks.start(
        QStringLiteral("plan"), QStringLiteral("Plan"),
        [](const RunContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, [](TaskOutcome) {});
    QCOMPARE(strip.findChild<QToolButton*>()->text(), QStringLiteral("Search: exact"));
    QTRY_VERIFY2_WITH_TIMEOUT(words().contains(QStringLiteral("so far")), qPrintable(words()), 3000);
    strip.cancel_button()->click();
    QTRY_VERIFY(!tasks.busy());
  }

  // Whoever has cancelled a task sees that it was heard, and has nothing to press again.
  void a_task_that_was_cancelled_is_stopping_until_it_ends() {
    std::atomic<bool> may_end = false;
    TaskManager tasks;
    TaskStrip strip(tasks);
    tasks.start(
        QStringLiteral("search"), QStringLiteral("Search"),
        [&](const RunContext&) {
          for (int i = 0; i < 2000 && !may_end; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        },
        [](TaskOutcome) {});
    QTRY_VERIFY(!strip.isHidden());
    const auto says = [&](const QString& words) {
      const auto labels = strip.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(), [&](const QLabel* one) { return one->text() == words; });
    };
    QVERIFY(strip.cancel_button()->isEnabled() && !says(QStringLiteral("stopping")));
    strip.cancel_button()->click();
    QVERIFY(!strip.cancel_button()->isEnabled());
    QVERIFY(says(QStringLiteral("stopping")));
    may_end = true;
    QTRY_VERIFY(!tasks.busy());
  }
};

QTEST_MAIN(TaskStripTest)
#include "task_strip_test.moc"
