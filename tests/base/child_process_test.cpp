// SPDX-License-Identifier: Apache-2.0
// Programs that are listened to: their lines, their complaints, their ends, and that nothing of them stays.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <vector>

#include "core/base/child_process.h"

using namespace turnpoint;

class ChildProcessTest : public QObject {
  Q_OBJECT

  static ChildCommand shell(const std::string& script, const std::string& input = {}) {
    return {{"sh", "-c", script}, {"TURNPOINT_WORD=own", "HOME=/elsewhere"}, input};
  }
  static std::vector<std::string> lines_of(ChildProcess& child) {
    std::vector<std::string> lines;
    while (child.talks())
      if (!child.listen([&](const std::string& line) { return lines.push_back(line), Expected<void>(); })) break;
    return lines;
  }

 private slots:
  void what_it_says() {
    ChildProcess child;
    QCOMPARE(child.start(shell("cat; echo $TURNPOINT_WORD $HOME; env | grep -c ^HOME=; echo one >&2; echo '==' >&2; "
                               "printf rest; exit 3",
                               "given\nto it\n")),
             0);
    // What is given to it stands in the place of what this process has.
    QCOMPARE(lines_of(child), std::vector<std::string>({"given", "to it", "own /elsewhere", "1"}));
    QVERIFY(child.cut_short());
    QVERIFY(child.wait_for_end(10));
    QCOMPARE(child.describe_end(), std::string("ended with code 3"));
    QCOMPARE(child.complaints(), std::string("one\n==\n"));
    QCOMPARE(child.last_words(), std::string("one"));
  }

  void its_last_words() {
    ChildProcess child;
    QCOMPARE(child.start(shell("printf 'one\\n==\\ntwo\\nthree\\n--\\n' >&2")), 0);
    QVERIFY(child.wait_for_end(10));
    QCOMPARE(child.last_words(), std::string("three"));
    QCOMPARE(child.last_words(2), std::string("two | three"));
    QCOMPARE(child.last_words(9), std::string("one | two | three"));
  }

  void what_is_not_there() {
    ChildProcess child;
    QCOMPARE(child.start({{"no-such-program"}, {}, {}}), ENOENT);
    QVERIFY(!child.talks() || lines_of(child).empty());
  }

  void an_error_of_the_reader_comes_back() {
    ChildProcess child;
    QCOMPARE(child.start(shell("echo a; echo b")), 0);
    std::vector<std::string> lines;
    Expected<void> heard;
    while (heard && child.talks())
      heard = child.listen([&](const std::string& line) {
        lines.push_back(line);
        return Expected<void>(usage_error("enough"));
      });
    QVERIFY(!heard && heard.error().what == "enough");
    QCOMPARE(lines, std::vector<std::string>({"a"}));
  }

  // What a program leaves behind goes with it, though it ended well itself.
  void nothing_of_it_stays_where_it_has_ended() {
    QTemporaryDir folder;
    const QString alive = folder.filePath("alive"), seen = folder.filePath("seen");
    ChildProcess child;
    QCOMPARE(child.start(shell("(while :; do touch " + alive.toStdString() + "; sleep 0.05; done) & while [ ! -e " +
                               seen.toStdString() + " ]; do sleep 0.05; done; exit 3")),
             0);
    QTRY_VERIFY(QFile::exists(alive));
    QVERIFY(!child.ended());
    QVERIFY(QFile(seen).open(QIODevice::WriteOnly));
    QVERIFY(child.wait_for_end(10));
    QCOMPARE(child.describe_end(), std::string("ended with code 3"));
    QTest::qWait(200);
    QFile::remove(alive);
    QTest::qWait(300);
    QVERIFY(!QFile::exists(alive));
  }

  // A pipe holds 64 KiB: a program that has more to say ends only where somebody reads.
  void what_it_says_at_its_end_does_not_hold_it_up() {
    ChildProcess child;
    QCOMPARE(child.start(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo 'the last' >&2")), 0);
    QVERIFY(child.wait_for_end(10));
    QCOMPARE(child.describe_end(), std::string("ended with code 0"));
  }

  void a_line_without_end_names_the_program() {
    ChildProcess child;
    QCOMPARE(child.start(shell("head -c 9000000 /dev/zero; sleep 10")), 0);
    Expected<void> heard;
    while (heard && child.talks()) heard = child.listen([](const std::string&) { return Expected<void>(); });
    QVERIFY(!heard);
    QCOMPARE(heard.error().what, std::string("sh printed a line without end"));
  }

  // It and what it has started.
  void nothing_of_it_stays() {
    QTemporaryDir folder;
    const std::string file = folder.filePath("alive").toStdString();
    {
      ChildProcess child;
      QCOMPARE(child.start(shell("trap '' TERM; (while :; do touch " + file + "; sleep 0.05; done) & wait")), 0);
      QTRY_VERIFY(QFile::exists(QString::fromStdString(file)));
      child.ask_to_end();
      QVERIFY(!child.wait_for_end(0.2));  // it does not want to
      QVERIFY(child.quiet_s() > 0.1);
    }
    QTest::qWait(200);
    QFile::remove(QString::fromStdString(file));
    QTest::qWait(300);
    QVERIFY(!QFile::exists(QString::fromStdString(file)));
  }
};

QTEST_APPLESS_MAIN(ChildProcessTest)
#include "child_process_test.moc"
