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

  // A learning method says more than there is room for: the words are cut in the strip, and whole in its hint.
  void long_words_are_whole_in_the_hint() {
    TaskManager tasks;
    TaskStrip strip(tasks);
    const QString phase = QStringLiteral("iteration 51, best 440 ms, no faster than it began, ").repeated(8) +
                          QStringLiteral("entropy 0.29");
    tasks.start(
        QStringLiteral("search"), QStringLiteral("Trinity"),
        [&](const RunContext& context) {
          while (!context.cancelled()) {
            context.report(phase.toUtf8().constData(), 0.5);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        },
        [](TaskOutcome) {});
    const auto* name = strip.findChild<QToolButton*>();
    QTRY_VERIFY2_WITH_TIMEOUT(name->toolTip().contains(phase), qPrintable(name->toolTip()), 5000);
    QVERIFY(name->text().startsWith(QStringLiteral("Trinity: ")));
    QVERIFY(!name->text().contains(QStringLiteral("entropy")));
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
