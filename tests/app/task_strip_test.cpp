// SPDX-License-Identifier: Apache-2.0
#include "app/task_strip.h"

#include <QApplication>
#include <QLabel>
#include <QTest>
#include <QToolButton>
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
};

QTEST_MAIN(TaskStripTest)
#include "task_strip_test.moc"
