// SPDX-License-Identifier: Apache-2.0
// Files that are written in pieces: whole or not there. Whole texts at once: json_test.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "core/base/file_writer.h"
#include "core/base/json.h"

using namespace turnpoint;

namespace {

int g_syncs = 0;

}  // namespace

// What FileWriter calls; the disk itself cannot be asked.
extern "C" int fsync(int file) {
  ++g_syncs;
  return static_cast<int>(syscall(SYS_fsync, file));
}

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

  // What is committed is on the disk, and so is its name.
  void a_commit_outlives_a_power_cut() {
    QTemporaryDir folder;
    g_syncs = 0;
    QVERIFY(write_file_atomically(folder.filePath("f").toStdString(), "text"));
    QCOMPARE(g_syncs, 2);  // the file and its folder
  }

  // Where the file system has nameless files, as this one has if a name is nowhere to be seen while one is written.
  void a_killed_writer_leaves_nothing() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = FileWriter::open(path);
      (void)writer->write(std::string(1 << 20, 'x'));
      ::raise(SIGKILL);
    }
    int status = 0;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QVERIFY(WIFSIGNALED(status));
    if (names_in(folder).size() == 1) QSKIP("this file system has no files without a name");
    QVERIFY2(names_in(folder).isEmpty(), qPrintable(names_in(folder).join(' ')));
  }

  void what_is_unfinished_can_be_removed_at_the_end() {
    QTemporaryDir folder;
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = FileWriter::open(folder.filePath("f").toStdString());
      (void)writer->write("x");
      remove_unfinished_files();
      ::_exit(0);
    }
    int status = 0;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QVERIFY(names_in(folder).isEmpty());
  }

  void permissions_stay() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    QVERIFY(write_file_atomically(path, "old"));
    QCOMPARE(::chmod(path.c_str(), 0640), 0);
    QVERIFY(write_file_atomically(path, "new"));
    QCOMPARE(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
  }

  void a_pipe_that_nobody_writes_to_is_refused() {
    QTemporaryDir folder;
    const auto path = folder.filePath("pipe").toStdString();
    QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
    const auto empty = read_file(path);
    QVERIFY(!empty);
    QCOMPARE(empty.error().what, std::string("is a pipe that nothing is written to"));
    std::jthread writer([&] {
      std::FILE* pipe = std::fopen(path.c_str(), "w");
      std::fputs("first ", pipe);
      std::fflush(pipe);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::fputs("second", pipe);
      std::fclose(pipe);
    });
    const auto text = read_file(path);
    QVERIFY2(text, text ? "" : text.error().message().c_str());
    QCOMPARE(*text, std::string("first second"));
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
