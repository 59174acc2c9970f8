// SPDX-License-Identifier: Apache-2.0
// Files that are written in pieces: whole or not there. Whole texts at once: json_test.
#include <QtTest>
#include <filesystem>

#include "core/base/file_writer.h"
#include "core/base/json.h"

using namespace turnpoint;

class FileWriterTest : public QObject {
  Q_OBJECT

 private:
  static QStringList names_in(const QTemporaryDir& folder) { return QDir(folder.path()).entryList(QDir::Files); }

 private slots:
  void the_file_appears_with_the_commit() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    QVERIFY(write_file_atomically(path, "old"));
    auto writer = FileWriter::open(path);
    QVERIFY(writer);
    QVERIFY(writer->write("new"));
    QVERIFY(writer->write(std::string(3 << 20, 'x')));
    QCOMPARE(*read_file(path), std::string("old"));
    QVERIFY(writer->commit());
    QVERIFY(*read_file(path) == "new" + std::string(3 << 20, 'x'));
    QCOMPARE(names_in(folder), QStringList{"f"});
  }

  void without_a_commit_nothing_happened() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    QVERIFY(write_file_atomically(path, "old"));
    {
      auto opened = FileWriter::open(path);
      QVERIFY(opened && opened->write(std::string(1 << 20, 'x')));
      const FileWriter moved = std::move(*opened);  // removes once
    }
    QCOMPARE(*read_file(path), std::string("old"));
    QCOMPARE(names_in(folder), QStringList{"f"});
  }

  void a_full_disk_is_said() {
    auto writer = FileWriter::open("/dev/full");
    QVERIFY(writer);
    auto written = writer->write(std::string(1 << 20, 'x'));
    if (written) written = writer->commit();
    QVERIFY(!written);
    QVERIFY2(written.error().message().starts_with("/dev/full: cannot be written: "),
             written.error().message().c_str());
    QVERIFY(std::filesystem::is_character_file("/dev/full"));
  }

  void a_folder_that_is_not_there() {
    const auto writer = FileWriter::open("/nowhere/at/all/f");
    QVERIFY(!writer);
    QVERIFY(writer.error().message().starts_with("/nowhere/at/all/f: cannot be written: "));
  }

  void a_failed_replacement_leaves_no_remains() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    auto writer = FileWriter::open(path);
    QVERIFY(writer && writer->write("text"));
    QVERIFY(QDir(folder.path()).mkdir("f"));
    const auto written = writer->commit();
    QVERIFY(!written);
    QVERIFY(written.error().message().find("cannot be replaced: ") != std::string::npos);
    QVERIFY(names_in(folder).isEmpty());
  }
};

QTEST_APPLESS_MAIN(FileWriterTest)
#include "file_writer_test.moc"
