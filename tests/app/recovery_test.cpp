// SPDX-License-Identifier: Apache-2.0
// Unsaved work outlives the window, whatever ends it, and is offered by the next one.
#include <QProcess>
#include <QToolButton>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/recovery.h"
#include "core/base/json.h"
#include "send_signal.h"
#include "views/notes/notes_view.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kChildFolder = "TURNPOINT_TEST_RECOVERY";
constexpr int kNever_ms = 1 << 30;

QStringList copies_in(const QString& folder) {
  return QDir(folder).entryList({QStringLiteral("*.turnpoint")}, QDir::Files);
}

QToolButton* restore_button(const WindowFixture& f) {
  auto* button = f.window->voice().bar().findChild<QToolButton*>(QStringLiteral("message_action"));
  return button && button->isVisible() ? button : nullptr;
}

/// Another window of this program, which is edited and never saved until it is killed.
struct Child {
  explicit Child(const QString& folder, bool quick = true) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QString::fromLatin1(kChildFolder), folder);
    environment.insert(QStringLiteral("TURNPOINT_TEST_QUICK"), quick ? QStringLiteral("1") : QString());
    process.setProcessEnvironment(environment);
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(QCoreApplication::applicationFilePath(),
                  {QStringLiteral("app_recovery_test"), QStringLiteral("a_window_that_is_edited")});
  }
  ~Child() {
    if (process.state() == QProcess::NotRunning) return;
    process.kill();
    process.waitForFinished();
  }
  bool wait_for_edits(int count) {
    return QTest::qWaitFor(
        [&] {
          output += process.readAll();
          return output.count("edited") >= count;
        },
        60000);
  }
  QProcess process;
  QByteArray output;
};

}  // namespace

class RecoveryTest : public QObject {
  Q_OBJECT

 private slots:
  // Run by Child, and by tests/kills/run.py with a file to save into.
  void a_window_that_is_edited() {
    const QString folder = qEnvironmentVariable(kChildFolder);
    if (folder.isEmpty()) QSKIP("a part of the other tests");
    WindowFixture f;
    QVERIFY(f.open());
    f.window->sessions().keep_recovery(folder, qEnvironmentVariableIsEmpty("TURNPOINT_TEST_QUICK") ? kNever_ms : 5);
    std::mt19937 random(unsigned(QCoreApplication::applicationPid()));
    for (int i = 1; i < 100000; ++i) {
      f.document().set_option("inter-bandwidth-scale", 0.25 + 0.001 * i, 0);
      part<views::NotesView>(f.window)->set_notes(QString(), QStringLiteral("note %1").arg(i));
      QTest::qWait(int(random() % 30));
      if (const QString file = qEnvironmentVariable("TURNPOINT_TEST_SAVES"); !file.isEmpty() && i % 3 == 0) {
        QVERIFY(f.window->sessions().save(file));
        std::printf("saved %d\n", i);
      }
      std::printf("edited %d\n", i);
      std::fflush(stdout);
    }
  }

  void a_killed_window_leaves_its_work_to_the_next() {
    QTemporaryDir home;
    std::mt19937 random(7);
    for (int round = 0; round < 6; ++round) {
      const QString folder = home.filePath(QString::number(round));
      {
        Child child(folder);
        QVERIFY2(child.wait_for_edits(3), child.output.constData());
        QTest::qWait(int(random() % 200));
        // A window that runs keeps its copy to itself.
        QVERIFY(app::left_behind(folder).empty());
        QVERIFY(QTest::qWaitFor([&] { return copies_in(folder).size() == 1; }, 60000));
        QVERIFY(send_signal(child.process.processId(), SIGKILL));
        QVERIFY(child.process.waitForFinished());
      }
      WindowFixture f;
      f.window->sessions().keep_recovery(folder, kNever_ms);
      QToolButton* restore = restore_button(f);
      QVERIFY2(restore, qPrintable(QStringLiteral("round %1").arg(round)));
      restore->click();
      QVERIFY(f.settle());
      QVERIFY(f.document().scenario());
      QVERIFY(f.scenario_settings().factors.inter_bandwidth > 0.25);
      QVERIFY(part<views::NotesView>(f.window)->notes().startsWith(QStringLiteral("note ")));
      QVERIFY(f.window->isWindowModified());
      // It is in this window's hands now, under its name, and leaves with it.
      QCOMPARE(copies_in(folder).size(), qsizetype(1));
      QVERIFY(f.window->close());
      QCOMPARE(copies_in(folder).size(), qsizetype(0));
    }
  }

  void what_is_not_wanted_now_is_offered_again_until_it_is_dismissed() {
    QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("r"));
    {
      Child child(folder);
      QVERIFY(child.wait_for_edits(2));
      QVERIFY(QTest::qWaitFor([&] { return copies_in(folder).size() == 1; }, 60000));
    }
    {
      WindowFixture f;
      f.window->sessions().keep_recovery(folder, kNever_ms);
      QVERIFY(restore_button(f));
      // Another window meanwhile is not offered the same.
      QVERIFY(app::left_behind(folder).empty());
      f.window->close();
    }
    QCOMPARE(copies_in(folder).size(), qsizetype(1));
    {
      WindowFixture f;
      f.window->sessions().keep_recovery(folder, kNever_ms);
      QVERIFY(restore_button(f));
      f.window->voice().bar().dismiss();
      QVERIFY(!restore_button(f));
    }
    QCOMPARE(copies_in(folder).size(), qsizetype(0));
    QCOMPARE(QDir(folder).entryList(QDir::Files).size(), qsizetype(0));
  }

  void the_real_program_writes_at_once_when_it_is_told_to_end() {
    QTemporaryDir home;
    const QString session = home.filePath(QStringLiteral("s.turnpoint"));
    std::ofstream(session.toStdString())
        << R"({"format":"turnpoint/session@1","scenario":{"model":"builtin:lenet","hardware":"v100-16gb-1x2"}})";
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("HOME"), home.path());
    environment.insert(QStringLiteral("TMPDIR"), home.filePath(QStringLiteral("tmp")));
    environment.insert(QStringLiteral("XDG_STATE_HOME"), home.filePath(QStringLiteral("state")));
    environment.insert(QStringLiteral("XDG_CONFIG_HOME"), home.filePath(QStringLiteral("config")));
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    QDir(home.path()).mkdir(QStringLiteral("tmp"));
    for (const int signal : {SIGTERM, SIGHUP, SIGKILL}) {
      QProcess program;
      program.setProcessEnvironment(environment);
      program.start(QStringLiteral(TURNPOINT_BINARY_DIR "/turnpoint"), {session});
      QVERIFY(program.waitForStarted());
      // The session is among the recent ones once it is open.
      const QString settings = home.filePath(QStringLiteral("config/turnpoint/turnpoint.conf"));
      QVERIFY(QTest::qWaitFor([&] { return QFile::exists(settings); }, 60000));
      QTest::qWait(500);
      QVERIFY(send_signal(program.processId(), signal));
      QVERIFY(program.waitForFinished(20000));
      // A clean end where a signal may be answered; nothing was unsaved, so nothing is kept, and nothing is left in
      // /tmp.
      if (signal != SIGKILL) QVERIFY(program.exitStatus() == QProcess::NormalExit && program.exitCode() == 0);
      QCOMPARE(QDir(environment.value(QStringLiteral("TMPDIR"))).entryList({QStringLiteral("turnpoint-*")}),
               QStringList());
      QVERIFY(copies_in(home.filePath(QStringLiteral("state/turnpoint/recovery"))).isEmpty());
      QFile::remove(settings);
    }
  }

  void a_signal_saves_what_is_unsaved() {
    QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("r"));
    {
      WindowFixture f;
      QVERIFY(f.open());
      f.window->sessions().keep_recovery(folder, kNever_ms);
      f.window->sessions().set_asks_before_leaving(true);
      f.document().set_option("inter-bandwidth-scale", 0.5, 0);
      QVERIFY(copies_in(folder).isEmpty());
      f.window->sessions().end_by_signal();
      QVERIFY(!f.window->isVisible());
    }
    const auto left = app::left_behind(folder);
    QCOMPARE(left.size(), std::size_t(1));
    QCOMPARE(left[0].session.scenario.settings.factors.inter_bandwidth, 0.5);
  }

  void saved_work_needs_no_copy() {
    QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("r"));
    WindowFixture f;
    QVERIFY(f.open());
    f.window->sessions().keep_recovery(folder, 20);
    QTest::qWait(100);
    QVERIFY(copies_in(folder).isEmpty());  // nothing was done yet
    QVERIFY(!f.window->isWindowModified());
    f.document().set_option("inter-bandwidth-scale", 0.5, 0);
    QTRY_COMPARE(copies_in(folder).size(), qsizetype(1));
    QTRY_VERIFY(f.window->isWindowModified());
    QVERIFY(f.window->sessions().save(home.filePath(QStringLiteral("mine.turnpoint"))));
    QVERIFY(copies_in(folder).isEmpty());
    QVERIFY(!f.window->isWindowModified());
    QVERIFY2(f.window->windowTitle().startsWith(QStringLiteral("mine: ")), qPrintable(f.window->windowTitle()));
  }

  void a_damaged_copy_is_removed() {
    QTemporaryDir home;
    std::ofstream(home.filePath(QStringLiteral("1-2.turnpoint")).toStdString()) << "{\"format\": \"turnpoi";
    QVERIFY(app::left_behind(home.path()).empty());
    QVERIFY(copies_in(home.path()).isEmpty());
  }
};

QTEST_MAIN(RecoveryTest)
#include "recovery_test.moc"
