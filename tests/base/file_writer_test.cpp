// SPDX-License-Identifier: Apache-2.0
// Files that are written in pieces: whole or not there. Whole texts at once: json_test.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/base/file_writer.h"
#include "core/base/json.h"
#include "send_signal.h"

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

  // A writer that replaces a file and is killed in that instant leaves the new one beside it, and nobody holds its lock.
  void what_a_killed_writer_left_goes_with_the_next() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    for (const char* name : {"f.part1-0", "f.part123456-12", "f.part1-", "f.part-1", "f.part1-0x", "f.parts", "g.part1-0"}) {
      QFile file(folder.filePath(name));
      QVERIFY(file.open(QIODevice::WriteOnly));
    }
    const int held = ::open((path + ".part2-0").c_str(), O_CREAT | O_WRONLY, 0600);
    QCOMPARE(::flock(held, LOCK_EX), 0);
    QVERIFY(write_file_atomically(path, "text"));
    QCOMPARE(names_in(folder), QStringList({"f", "f.part-1", "f.part1-", "f.part1-0x", "f.part2-0", "f.parts", "g.part1-0"}));
    ::close(held);
  }

  // Killed at every step of a commit: linkat, rename and what stands between.
  void killed_at_any_moment_the_file_is_the_old_or_the_new() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    for (int round = 0; round < 200; ++round) {
      const bool replaces = round % 2 != 0;
      std::filesystem::remove(path);
      if (replaces) QVERIFY(write_file_atomically(path, "old"));
      const pid_t child = ::fork();
      if (child == 0)
        for (;;) (void)write_file_atomically(path, "new");
      ::usleep(static_cast<unsigned>(round * 37));
      QVERIFY(test::send_signal(child, SIGKILL));
      QCOMPARE(::waitpid(child, nullptr, 0), child);
      const auto text = read_file(path);
      QVERIFY(text ? *text == "new" || (replaces && *text == "old") : !replaces);
    }
    QVERIFY(write_file_atomically(path, "last"));
    QCOMPARE(names_in(folder), QStringList{"f"});
  }

  // Many writers of one path: each file is whole, none takes another's for what a killed one left.
  void writers_of_one_path_do_not_disturb_each_other() {
    QTemporaryDir folder;
    const auto path = folder.filePath("f").toStdString();
    std::atomic<int> failures = 0;
    {
      std::vector<std::jthread> writers;
      for (int w = 0; w < 8; ++w)
        writers.emplace_back([&, w] {
          for (int i = 0; i < 100; ++i)
            if (!write_file_atomically(path, std::string(1000, static_cast<char>('a' + w)))) ++failures;
        });
    }
    QCOMPARE(failures.load(), 0);
    const auto text = read_file(path);
    QVERIFY(text && text->size() == 1000 && text->find_first_not_of(text->front()) == std::string::npos);
    QCOMPARE(names_in(folder), QStringList{"f"});
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
