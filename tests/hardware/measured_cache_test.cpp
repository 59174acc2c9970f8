// SPDX-License-Identifier: Apache-2.0
// Times kept between runs: found again, per device, whatever became of the file, and with several programs at once.
#include <sys/wait.h>
#include <unistd.h>
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <set>

#include "core/base/json.h"
#include "core/hardware/measured_cache.h"
#include "core/hardware/probe_messages.h"

using namespace turnpoint;

namespace {
KeptTime kept(const std::string& signature, double time, const std::string& date = "2026-01-02T03:04:05Z") {
  return {signature, date, 0.2, "{\"time_s\":" + std::to_string(time) + "}"};
}
}  // namespace

class MeasuredCacheTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::filesystem::path place(const char* name) { return folder_.filePath(name).toStdString(); }

 private slots:
  void what_is_kept_is_found_by_the_same_device_only() {
    MeasuredCache cache(place("a/b"), "one");
    QVERIFY(cache.keep({kept("x", 0.5), kept("y", 0.25)}).has_value());
    MeasuredCache again(place("a/b"), "one"), other(place("a/b"), "two");
    QVERIFY(again.ignored().empty() && again.find("x") && !again.find("z"));
    QCOMPARE(again.find("y")->fields, std::string("{\"time_s\":0.25}"));
    QCOMPARE(again.find("x")->date, std::string("2026-01-02T03:04:05Z"));
    QCOMPARE(again.find("x")->item_s, 0.2);
    QVERIFY(other.times().empty() && other.ignored().empty());
    QVERIFY(again.keep({kept("x", 0.75, "2026-02-02T03:04:05Z")}).has_value());
    MeasuredCache newer(place("a/b"), "one");
    QCOMPARE(newer.find("x")->date, std::string("2026-02-02T03:04:05Z"));
    QCOMPARE(newer.times().size(), std::size_t(2));
  }

  void broken_files_are_ignored_and_put_aside_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("cut short") << QByteArray("{\"format\":\"turnpoint/measured-times@1\",\"iden");
    QTest::newRow("garbage") << QByteArray("\x01\x02\xff");
    QTest::newRow("another format") << QByteArray(R"({"format":"turnpoint/plan@1"})");
    QTest::newRow("another device") << QByteArray(
        R"({"format":"turnpoint/measured-times@1","identity":"two","times":[]})");
    QTest::newRow("no times") << QByteArray(
        R"({"format":"turnpoint/measured-times@1","identity":"one","times":[{"signature":"x"}]})");
    QTest::newRow("negative time") << QByteArray(
        R"({"format":"turnpoint/measured-times@1","identity":"one","times":[{"signature":"x","date":"","item_s":1,"measured":{"time_s":-1}}]})");
    QTest::newRow("deep") << QByteArray(100000, '[');
  }
  void broken_files_are_ignored_and_put_aside() {
    QFETCH(QByteArray, text);
    const auto folder = place("broken");
    MeasuredCache first(folder, "one");
    QVERIFY(first.keep({kept("x", 0.5)}).has_value());
    QFile file(QString::fromStdString(first.file().string()));
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(text);
    file.close();
    MeasuredCache cache(folder, "one");
    QVERIFY(!cache.ignored().empty());
    QVERIFY2(cache.ignored().find(first.file().filename().string()) != std::string::npos, cache.ignored().c_str());
    QVERIFY(cache.times().empty());
    QVERIFY(cache.keep({kept("y", 0.5)}).has_value());
    MeasuredCache mended(folder, "one");
    QVERIFY(mended.ignored().empty() && mended.find("y"));
    QFile aside(QString::fromStdString(first.file().string() + ".broken"));
    QVERIFY(aside.open(QIODevice::ReadOnly));
    QCOMPARE(aside.readAll(), text);
  }

  void programs_at_the_same_time_lose_nothing() {
    const auto folder = place("many");
    constexpr int kPrograms = 4, kTimes = 20;
    std::vector<pid_t> children;
    for (int p = 0; p < kPrograms; ++p) {
      const pid_t child = fork();
      if (child == 0) {
        bool good = true;
        for (int i = 0; i < kTimes; ++i) {
          MeasuredCache cache(folder, "one");
          good = good && cache.ignored().empty() &&
                 cache.keep({kept(std::to_string(p) + "-" + std::to_string(i), 1)}).has_value();
        }
        _exit(good ? 0 : 1);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      waitpid(child, &status, 0);
      QCOMPARE(status, 0);
    }
    QCOMPARE(MeasuredCache(folder, "one").times().size(), std::size_t(kPrograms * kTimes));
  }

  void a_folder_that_cannot_be_written_is_an_error_and_no_folder_keeps_nothing() {
    MeasuredCache none({}, "one");
    QVERIFY(none.times().empty() && none.ignored().empty());
    QVERIFY(!none.keep({kept("x", 1)}).has_value());
    MeasuredCache nowhere("/proc/nowhere", "one");
    const auto refused = nowhere.keep({kept("x", 1)});
    QVERIFY(!refused.has_value());
    QVERIFY(refused.error().message().find("/proc/nowhere") != std::string::npos);
  }

  void dates() {
    QCOMPARE(utc_date(0), std::string("1970-01-01T00:00:00Z"));
    QCOMPARE(seconds_of_date("1970-01-02T00:00:01Z"), 86401.0);
    QCOMPARE(seconds_of_date(utc_date(1.7e9)), 1.7e9);
    for (const char* wrong : {"", "yesterday", "2026-01-02", "2026-01-02T03:04:05Zx"})
      QCOMPARE(seconds_of_date(wrong), 0.0);
  }

  // Times of ranks on other hosts, otherwise spread, or exchanging over something else, are other times.
  void other_hosts_are_another_device() {
    const auto identity = [](const std::string& more) {
      ProbeMessages messages;
      const auto taken =
          messages.take(R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":4,)" +
                        more + R"("devices":[{"name":"core","node":"a","memory_bytes":1000}]})");
      return taken && messages.hello() ? messages.hello()->identity : "";
    };
    const std::string two = R"("nodes":[{"name":"a","ranks":2},{"name":"b","ranks":2}],)",
                      uneven = R"("nodes":[{"name":"a","ranks":3},{"name":"b","ranks":1}],)",
                      elsewhere = R"("nodes":[{"name":"a","ranks":2},{"name":"c","ranks":2}],)",
                      tcp = R"("transport":"TCP",)", mpi = R"("transport":"MPI",)";
    const std::set<std::string> all{identity(""), identity(two + tcp), identity(two + mpi), identity(uneven + tcp),
                                    identity(elsewhere + tcp)};
    QCOMPARE(all.size(), std::size_t(5));
    QVERIFY(!all.contains(""));
    QCOMPARE(identity(two + tcp), identity(two + tcp));
  }
};

QTEST_GUILESS_MAIN(MeasuredCacheTest)
#include "measured_cache_test.moc"
