// SPDX-License-Identifier: Apache-2.0
#include "views/graph/layout_service.h"

#include <QElapsedTimer>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <random>

#include "send_signal.h"

using namespace turnpoint::views;

namespace {

const QString kProgram = QStringLiteral(TURNPOINT_BINARY_DIR "/turnpoint-layout");

LevelRequest diamond(double width = 60) {
  LevelRequest request;
  request.nodes.assign(4, QSizeF(width, 28));
  request.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}};
  return request;
}

LevelRequest random_level(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  LevelRequest request;
  for (int i = 0; i < nodes; ++i) {
    request.nodes.emplace_back(20 + random() % 60, 20 + random() % 20);
    for (unsigned k = random() % 3; k > 0 && i > 0; --k)
      request.edges.emplace_back(std::max(0, i - 1 - int(random() % (random() % 8 == 0 ? 40u : 4u))), i);
  }
  return request;
}

/// What must hold of any layout, Graphviz's or ours.
QString broken_rule(const LevelRequest& request, const LevelLayout& layout) {
  if (layout.nodes.size() != request.nodes.size() || layout.edges.size() != request.edges.size()) return "sizes";
  const QRectF all = QRectF(QPointF(0, 0), layout.size).adjusted(-1, -1, 1, 1);
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    if (!all.contains(layout.nodes[i])) return QString("node %1 outside").arg(i);
    if (QSizeF d = layout.nodes[i].size() - request.nodes[i]; qAbs(d.width()) + qAbs(d.height()) > 0.1)
      return QString("node %1 resized").arg(i);
    for (std::size_t j = 0; j < i; ++j)
      if (layout.nodes[i].adjusted(1, 1, -1, -1).intersects(layout.nodes[j]))
        return QString("nodes %1 and %2 overlap").arg(i).arg(j);
  }
  for (std::size_t e = 0; e < layout.edges.size(); ++e) {
    const auto [from, to] = request.edges[e];
    const auto& line = layout.edges[e];
    if (line.size() < 2) return QString("edge %1 has no line").arg(e);
    if (!layout.nodes[std::size_t(from)].adjusted(-3, -3, 3, 3).contains(line.front()))
      return QString("edge %1 starts elsewhere").arg(e);
    if (!layout.nodes[std::size_t(to)].adjusted(-3, -3, 3, 3).contains(line.back()))
      return QString("edge %1 ends elsewhere").arg(e);
    if (layout.nodes[std::size_t(from)].center().x() >= layout.nodes[std::size_t(to)].center().x())
      return QString("edge %1 against the direction").arg(e);
  }
  return {};
}

QByteArray run_program(const QByteArray& input, int& code) {
  QProcess process;
  process.start(kProgram, {});
  process.write(input);
  process.closeWriteChannel();
  if (!process.waitForFinished(20000)) return "timeout";
  code = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1;
  return process.readAllStandardOutput();
}

/// A program that takes requests and does what `body` says.
QString fake_program(const QTemporaryDir& folder, const QByteArray& body) {
  const QString path = folder.filePath("fake" + QString::number(qHash(body)));
  QFile file(path);
  if (!file.open(QFile::WriteOnly)) return {};
  file.write("#!/bin/sh\n" + body + "\n");
  file.setPermissions(QFile::ReadOwner | QFile::ExeOwner | QFile::WriteOwner);
  return path;
}

bool gone(qint64 pid) { return ::kill(pid_t(pid), 0) != 0; }

}  // namespace

class LayoutServiceTest : public QObject {
  Q_OBJECT
 private slots:
  void a_good_request_is_answered() {
    LayoutService service;
    service.set_program(kProgram);
    QSignalSpy done(&service, &LayoutService::finished);
    service.want({diamond()});
    QCOMPARE(service.busy(), true);
    QVERIFY(done.wait(10000));
    const auto layout = service.find(diamond().text());
    QVERIFY(layout);
    QCOMPARE(service.trouble(), QString());
    QVERIFY(!layout->own);
    QCOMPARE(broken_rule(diamond(), *layout), QString());
    // y runs downwards and rank by rank: 0 left of 1 and 2, those left of 3.
    QVERIFY(layout->nodes[0].right() < layout->nodes[1].left());
    QCOMPARE(layout->nodes[1].left(), layout->nodes[2].left());
    // Answered from the cache without a process.
    service.want({diamond()});
    QCOMPARE(service.busy(), false);
    QCOMPARE(service.levels_answered(), 1);
  }

  void many_levels_use_one_process() {
    LayoutService service;
    service.set_program(kProgram);
    QSignalSpy done(&service, &LayoutService::finished), ready(&service, &LayoutService::level_ready);
    std::vector<LevelRequest> levels;
    for (unsigned s = 1; s <= 20; ++s) levels.push_back(random_level(s, 5 + int(s) * 3));
    levels.push_back(levels.front());
    service.want(levels);
    QVERIFY(done.wait(30000));
    QCOMPARE(ready.count(), 20);
    QCOMPARE(service.processes_started(), 1);
    for (const auto& level : levels) {
      const auto layout = service.find(level.text());
      QVERIFY(layout && !layout->own);
      QCOMPARE(broken_rule(level, *layout), QString());
    }
  }

  void own_layout_keeps_the_rules() {
    for (unsigned seed = 1; seed <= 200; ++seed) {
      const auto level = random_level(seed, 1 + int(seed % 120));
      const QString broken = broken_rule(level, layered_layout(level));
      QVERIFY2(broken.isEmpty(), qPrintable(QString("seed %1: %2").arg(seed).arg(broken)));
    }
    LevelRequest odd = diamond();
    odd.edges = {{3, 0}, {1, 1}, {2, 1}};
    QCOMPARE(layered_layout(odd).edges.size(), std::size_t(3));
    QCOMPARE(layered_layout({}).nodes.size(), std::size_t(0));
  }

  void garbage_ends_with_one_error_line_and_code_3_data() {
    QTest::addColumn<QByteArray>("input");
    QTest::newRow("words") << QByteArray("hello there\n");
    QTest::newRow("binary") << QByteArray("\x00\xff\x01layout\n", 10);
    QTest::newRow("version") << QByteArray("layout 2 1 0 12 28 line\nnode 1 1\nend\n");
    QTest::newRow("too many") << QByteArray("layout 1 99999999 0 12 28 line\n");
    QTest::newRow("negative") << QByteArray("layout 1 -1 0 12 28 line\n");
    QTest::newRow("nan") << QByteArray("layout 1 1 0 12 28 line\nnode nan 10\nend\n");
    QTest::newRow("cut") << QByteArray("layout 1 2 1 12 28 line\nnode 10 10\n");
    QTest::newRow("edge out of range") << QByteArray(
        "layout 1 2 1 12 28 line\nnode 10 10\nnode 10 10\nedge 0 2\nend\n");
    QTest::newRow("no end") << QByteArray("layout 1 1 0 12 28 line\nnode 10 10\nlayout\n");
    QTest::newRow("trailing") << QByteArray("layout 1 1 0 12 28 line extra\nnode 10 10\nend\n");
  }
  void garbage_ends_with_one_error_line_and_code_3() {
    QFETCH(QByteArray, input);
    int code = 0;
    const QByteArray said = run_program(input, code);
    QVERIFY2(said.startsWith("error ") && said.count('\n') == 1, said.constData());
    QCOMPARE(code, 3);
  }

  void empty_input_is_a_clean_end() {
    int code = -1;
    QCOMPARE(run_program("", code), QByteArray());
    QCOMPARE(code, 0);
  }

  void random_bytes_never_hang_or_crash() {
    const QByteArray good = diamond().text() + diamond(80).text();
    for (unsigned seed = 1; seed <= 60; ++seed) {
      std::mt19937 random(seed);
      QByteArray bad = good;
      for (int k = 0; k < 3; ++k) bad[qsizetype(random() % unsigned(bad.size()))] = char(random() % 128);
      int code = -2;
      run_program(bad, code);
      QVERIFY2(code == 0 || code == 3, qPrintable(QString("seed %1: code %2").arg(seed).arg(code)));
    }
  }

  void a_deep_level_does_not_overflow_the_stack() {
    LevelRequest level;
    level.nodes.assign(1500, QSizeF(20, 20));
    for (int i = 1; i < 1500; ++i) level.edges.emplace_back(i - 1, i);
    int code = -1;
    const QByteArray said = run_program(level.text(), code);
    QCOMPARE(code, 0);
    QVERIFY(parse_level_layout(said, level).has_value());
  }

  void a_missing_program_falls_back() {
    LayoutService service;
    for (const QString& path : {QString(), QStringLiteral("/nowhere/turnpoint-layout")}) {
      service.set_program(path);
      QSignalSpy done(&service, &LayoutService::finished);
      const auto level = diamond(60 + path.size());
      service.want({level, diamond(90 + path.size())});
      QVERIFY(done.wait(5000));
      QVERIFY(service.find(level.text())->own);
      QVERIFY2(service.trouble().contains("turnpoint-layout"), qPrintable(service.trouble()));
    }
  }

  void a_program_that_dies_falls_back_and_is_started_again() {
    QTemporaryDir folder;
    LayoutService service;
    service.set_program(fake_program(folder, "read line; kill -SEGV $$"));
    QSignalSpy done(&service, &LayoutService::finished);
    service.want({diamond(60), diamond(61)});
    QVERIFY(done.wait(10000));
    QVERIFY(service.find(diamond(60).text())->own && service.find(diamond(61).text())->own);
    QCOMPARE(service.processes_started(), 2);
    QVERIFY2(service.trouble().contains("died"), qPrintable(service.trouble()));
  }

  void an_error_line_and_nonsense_fall_back_with_the_reason() {
    QTemporaryDir folder;
    LayoutService service;
    QSignalSpy done(&service, &LayoutService::finished);
    service.set_program(fake_program(folder, "read line; echo error no plugin; exit 3"));
    service.want({diamond(60)});
    QVERIFY(done.wait(10000));
    QCOMPARE(service.trouble(), QString("no plugin"));
    service.set_program(fake_program(folder, "read line; printf 'ok 1 1\\nnode nan 0 0 0\\nend\\n'; sleep 60"));
    service.want({diamond(61)});
    QVERIFY(done.wait(10000));
    QVERIFY2(service.trouble().contains("nonsense"), qPrintable(service.trouble()));
    QVERIFY(service.find(diamond(61).text())->own);
  }

  void a_killed_process_falls_back() {
    QTemporaryDir folder;
    LayoutService service;
    service.set_program(fake_program(folder, "read line; exec sleep 60"));
    QSignalSpy done(&service, &LayoutService::finished);
    service.want({diamond()});
    QTRY_VERIFY(service.process_id() > 0);
    QTest::qWait(50);
    QVERIFY(turnpoint::test::send_signal(service.process_id(), SIGKILL));
    QVERIFY(done.wait(5000));
    QVERIFY(service.find(diamond().text())->own);
  }

  void a_slow_program_is_killed_at_the_timeout() {
    QTemporaryDir folder;
    LayoutService service;
    service.set_program(fake_program(folder, "read line; exec sleep 60"));
    service.set_timeout(300);
    QSignalSpy done(&service, &LayoutService::finished);
    QElapsedTimer clock;
    clock.start();
    service.want({diamond()});
    QTRY_VERIFY(service.process_id() > 0);
    const qint64 pid = service.process_id();
    QVERIFY(done.wait(5000));
    QVERIFY(clock.elapsed() >= 270);
    QVERIFY(service.find(diamond().text())->own);
    QVERIFY2(service.trouble().contains("longer than"), qPrintable(service.trouble()));
    QTRY_VERIFY(gone(pid));
  }

  void a_newer_request_kills_the_running_one() {
    QTemporaryDir folder;
    LayoutService service;
    service.set_program(fake_program(folder, "read line; exec sleep 60"));
    service.want({diamond(60)});
    QTRY_VERIFY(service.process_id() > 0);
    const qint64 first = service.process_id();
    service.want({diamond(60), diamond(61)});  // still wanted: goes on
    QCOMPARE(service.process_id(), first);
    service.want({diamond(62)});
    QTRY_VERIFY(gone(first));
    QVERIFY(!service.find(diamond(60).text()));
    QTRY_VERIFY(service.process_id() > 0);
    const qint64 second = service.process_id();
    service.cancel();
    QTRY_VERIFY(gone(second));
    QCOMPARE(service.busy(), false);
  }

  void the_end_of_the_service_ends_the_process() {
    QTemporaryDir folder;
    qint64 pid = 0;
    {
      LayoutService service;
      service.set_program(fake_program(folder, "read line; exec sleep 60"));
      service.want({diamond()});
      QTRY_VERIFY(service.process_id() > 0);
      pid = service.process_id();
    }
    QTRY_VERIFY(gone(pid));
  }
};

QTEST_GUILESS_MAIN(LayoutServiceTest)
#include "layout_service_test.moc"
