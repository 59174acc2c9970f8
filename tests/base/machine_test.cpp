// SPDX-License-Identifier: Apache-2.0
// What is known of the machine: its memory, and whether another measurement is going on.
#include <QTemporaryDir>
#include <QtTest>
#include <optional>

#include "core/base/machine_memory.h"
#include "core/base/machine_use.h"

using namespace turnpoint;

class MachineTest : public QObject {
  Q_OBJECT

 private slots:
  void memory_of_the_system_file() {
    const auto memory = parse_memory_information(
        "MemTotal:       24642268 kB\nMemFree:         1 kB\nMemAvailable:   20000000 kB\nHugePages_Total:       0\n");
    QCOMPARE(memory.total, std::int64_t(24642268) * 1024);
    QCOMPARE(memory.available, std::int64_t(20000000) * 1024);
    for (const char* broken : {"", "MemTotal", "MemTotal: many kB\nMemAvailable: -5 kB\n", "MemAvailable:\n"}) {
      const auto none = parse_memory_information(broken);
      QCOMPARE(none.total + none.available, std::int64_t(0));
    }
  }

  void memory_of_this_machine() {
    const auto memory = machine_memory();
    QVERIFY(memory.total > (1 << 20));
    QVERIFY(memory.available > 0 && memory.available <= memory.total);
  }

  void one_measurement_is_alone() {
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("a/b/measuring").toStdString();
    for (int i = 0; i < 3; ++i) {
      MachineUse use(file);
      QVERIFY(!use.disturbed());
      QVERIFY(!use.disturbed());
    }
  }

  void two_at_once_both_know() {
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("measuring").toStdString();
    MachineUse first(file);
    QVERIFY(!first.disturbed());
    MachineUse second(file);
    QVERIFY(first.disturbed());
    QVERIFY(second.disturbed());
  }

  void one_that_came_and_went_is_known() {
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("measuring").toStdString();
    MachineUse first(file);
    { MachineUse second(file); }
    QVERIFY(first.disturbed());
    MachineUse last(file);
    QVERIFY(last.disturbed());  // the first still goes on
  }

  void one_that_ended_before_disturbs_nobody() {
    QTemporaryDir folder;
    const std::filesystem::path file = folder.filePath("measuring").toStdString();
    { MachineUse before(file); }
    MachineUse use(file);
    QVERIFY(!use.disturbed());
  }

  void no_place_for_the_file() {
    MachineUse use("/proc/nowhere/measuring");
    QVERIFY(!use.disturbed());
  }
};

QTEST_APPLESS_MAIN(MachineTest)
#include "machine_test.moc"
