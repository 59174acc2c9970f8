// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <sys/stat.h>
#include <unistd.h>
#include <QDir>
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

using namespace turnpoint;

namespace {

QString message_of(const Expected<nlohmann::json>& value) {
  return value ? QString("parsed") : QString::fromStdString(value.error().message());
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

}  // namespace

class JsonTest : public QObject {
  Q_OBJECT

 private slots:
  void good_text_is_parsed() {
    const auto value = parse_json("{\"a\": [1, 2.5, \"x\\\"]}\"], \"b\": null}", "here");
    QVERIFY2(value, qPrintable(message_of(value)));
    QCOMPARE(value->at("a").size(), std::size_t(3));
    QCOMPARE(value->at("a")[0].get<int>(), 1);
  }

  void mistakes_name_the_line_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<int>("line");
    QTest::newRow("empty") << QByteArray("") << 1;
    QTest::newRow("first line") << QByteArray("{\"a\" 1}") << 1;
    QTest::newRow("third line") << QByteArray("{\n\"a\": 1,\n\"b\" 2\n}\n") << 3;
    QTest::newRow("line break inside a string") << QByteArray("{\n\"a\": \"x\ny\"}") << 2;
    QTest::newRow("ends too early") << QByteArray("{\n\"a\": [1,\n2") << 3;
    QTest::newRow("two values") << QByteArray("{}\n{}") << 2;
    QTest::newRow("trailing comma") << QByteArray("[\n1,\n]") << 3;
    QTest::newRow("comment") << QByteArray("[\n// no\n1]") << 2;
    QTest::newRow("not UTF-8") << QByteArray("[\n\"\xff\"]") << 2;
    QTest::newRow("binary") << QByteArray("\x00\x01\x02", 3) << 1;
  }
  void mistakes_name_the_line() {
    QFETCH(QByteArray, text);
    QFETCH(int, line);
    const auto value = parse_json(std::string_view(text.constData(), static_cast<std::size_t>(text.size())), "a.json");
    const QString message = message_of(value);
    QVERIFY2(message.startsWith(QString("a.json: line %1: not valid JSON: ").arg(line)), qPrintable(message));
    QVERIFY2(!message.contains("json.exception"), qPrintable(message));
    QVERIFY(value.error().code == ErrorCode::bad_input);
  }

  void the_reason_is_kept_whole() {
    QCOMPARE(message_of(parse_json("[1,]", "a.json")),
             QString("a.json: line 1: not valid JSON: syntax error while parsing value - unexpected ']'; expected '[', "
                     "'{', or a literal"));
    QCOMPARE(message_of(parse_json("[1e999]", "a.json")),
             QString("a.json: not valid JSON: number overflow parsing '1e999'"));
  }

  void deep_nesting_is_refused_before_it_can_overflow_the_stack() {
    QVERIFY(parse_json(nested(64), "x"));
    QCOMPARE(message_of(parse_json(nested(65), "x")), QString("x: nested deeper than 64 levels"));
    QCOMPARE(message_of(parse_json(nested(2000000), "x")), QString("x: nested deeper than 64 levels"));
    QCOMPARE(message_of(parse_json(std::string(3000000, '['), "x")), QString("x: nested deeper than 64 levels"));
    QVERIFY(parse_json(nested(3), "x", 3));
    QVERIFY(!parse_json(nested(4), "x", 3));
    // Brackets inside strings do not nest.
    QVERIFY(parse_json("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]", "x"));
    // Siblings do not add up.
    std::string siblings = "[[]";
    for (int i = 0; i < 1000; ++i) siblings += ",[]";
    QVERIFY(parse_json(siblings + "]", "x"));
  }

  void files_that_cannot_be_read() {
    QTemporaryDir folder;
    const auto absent = read_json_file(folder.filePath("absent.json").toStdString());
    QVERIFY(message_of(absent).endsWith("absent.json: no such file"));
    QVERIFY(absent.error().code == ErrorCode::bad_input);
    QVERIFY(message_of(read_json_file(folder.path().toStdString())).endsWith(": is a folder, not a file"));
    const QString too_long = message_of(read_json_file(std::string(5000, 'x')));
    QVERIFY2(too_long.endsWith("File name too long") && too_long.size() < 400, qPrintable(too_long));
  }

  void files_above_the_limit_are_refused() {
    QTemporaryDir folder;
    const auto path = folder.filePath("big").toStdString();
    QVERIFY(write_file_atomically(path, std::string(1 << 21, 'x')));
    QVERIFY(read_file(path, 1 << 21));
    const auto refused = read_file(path, (1 << 21) - 1);
    QVERIFY(!refused);
    QVERIFY(refused.error().what == "larger than 1 MiB");
    QVERIFY(!read_file("/dev/zero", 1 << 20));  // endless
  }

  void contents_survive_the_round_trip() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    for (const std::string& contents : {std::string(), std::string("a\0b\r\n", 5), std::string(300000, '\xfe')}) {
      QVERIFY(write_file_atomically(path, contents));
      const auto read = read_file(path);
      QVERIFY(read);
      QVERIFY(*read == contents);
    }
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files), QStringList{"f"});
  }

  void a_failed_write_leaves_the_old_file_and_no_remains() {
    QTemporaryDir folder;
    QDir(folder.path()).mkdir("sub");
    const auto inside = write_file_atomically(folder.filePath("absent/f").toStdString(), "x");
    QVERIFY(!inside);
    QVERIFY(inside.error().what.starts_with("cannot be written: "));
    const auto onto_folder = write_file_atomically(folder.filePath("sub").toStdString(), "x");
    QVERIFY(!onto_folder);
    QCOMPARE(QDir(folder.path()).entryList(QDir::AllEntries | QDir::NoDotAndDotDot), QStringList{"sub"});
    QVERIFY(!write_file_atomically("/dev/full", std::string(1 << 20, 'x')));
  }

  void a_reader_never_sees_half_a_file() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    const std::string a(1 << 20, 'a'), b(1 << 19, 'b');
    QVERIFY(write_file_atomically(path, a));
    std::atomic<bool> done{false};
    std::atomic<int> torn{0}, reads{0};
    {
      std::jthread reader([&] {
        while (!done) {
          const auto text = read_file(path);
          if (!text || (*text != a && *text != b)) ++torn;
          ++reads;
        }
      });
      // Two writers of one path at once do not share a temporary file.
      const auto write = [&](const std::string& contents) {
        for (int i = 0; i < 40; ++i)
          if (!write_file_atomically(path, contents)) ++torn;
      };
      {
        std::jthread first([&] { write(a); });
        std::jthread second([&] { write(b); });
      }
      done = true;
    }
    QCOMPARE(torn.load(), 0);
    QVERIFY(reads.load() > 0);
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files), QStringList{"f"});
  }

  void links_keep_pointing_and_permissions_stay() {
    QTemporaryDir folder;
    const auto file = folder.filePath("real").toStdString(), link = folder.filePath("link").toStdString();
    QVERIFY(write_file_atomically(file, "old"));
    QCOMPARE(::chmod(file.c_str(), 0640), 0);
    QCOMPARE(::symlink(file.c_str(), link.c_str()), 0);
    QVERIFY(write_file_atomically(link, "new"));
    QVERIFY(std::filesystem::is_symlink(link));
    QVERIFY(*read_file(file) == "new");
    struct stat status {};
    QCOMPARE(::stat(file.c_str(), &status), 0);
    QCOMPARE(status.st_mode & 0777, mode_t(0640));
  }

  // As root, replacing /dev/null by a file of that name would break the machine.
  void pipes_and_devices_are_written_in_place() {
    QTemporaryDir folder;
    const auto pipe = folder.filePath("pipe").toStdString();
    QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
    std::string received;
    {
      std::jthread reader([&] {
        const auto text = read_file(pipe);
        if (text) received = *text;
      });
      QVERIFY(write_file_atomically(pipe, "through the pipe"));
    }
    QVERIFY(received == "through the pipe");
    QVERIFY(std::filesystem::is_fifo(pipe));
    QVERIFY(write_file_atomically("/dev/null", "gone"));
    QVERIFY(std::filesystem::is_character_file("/dev/null"));
  }
};

QTEST_APPLESS_MAIN(JsonTest)
#include "json_test.moc"
