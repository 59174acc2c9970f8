// SPDX-License-Identifier: Apache-2.0
// Figures of answers outlive the window: the next one draws them at once, and the search that finds the plans follows.
#include <QDir>
#include <QFile>
#include <QtTest>
#include <thread>

#include "app/figures_store.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ResultPtr figures_of(int points, double scale = 1) {
  auto result = std::make_shared<Result>();
  result->method = "ft";
  result->exact = true;
  for (int i = 0; i < points; ++i)
    result->points.push_back({1000000 + i * 100, scale * (2 - i * 1e-4), scale, scale * (1 - i * 1e-4), true});
  result->turning_point = find_turning_point(result->points);
  result->near_best = find_near_best(result->points);
  return result;
}

}  // namespace

class FiguresStoreTest : public QObject {
  Q_OBJECT

 private slots:
  void as_many_points_stay_as_can_be_told_apart() {
    const ResultPtr whole = figures_of(9000);
    const ResultPtr thin = app::thinned(*whole);
    QVERIFY(thin->points.size() < 1000);
    QCOMPARE(thin->points.capacity(), thin->points.size());  // not the room of the 9,000
    QVERIFY(thin->points.front() == whole->points.front() && thin->points.back() == whole->points.back());
    QVERIFY(!thin->plans);
    // Every point that is gone has a neighbour before it within a thousandth.
    std::size_t at = 0;
    for (const ResultPoint& point : whole->points) {
      while (at + 1 < thin->points.size() && thin->points[at + 1].memory_bytes <= point.memory_bytes) ++at;
      const ResultPoint& near = thin->points[at];
      QVERIFY(double(point.memory_bytes) <= double(near.memory_bytes) * (1.001 + 1e-12));
      QVERIFY(point.time_s >= near.time_s * (0.999 - 1e-12));
    }
    if (whole->turning_point) QVERIFY(thin->points[*thin->turning_point] == whole->points[*whole->turning_point]);
    QVERIFY(thin->points[*thin->near_best] == whole->points[*whole->near_best]);
  }

  void a_store_finds_what_another_has_kept() {
    const QTemporaryDir folder;
    const QString inner = folder.filePath(QStringLiteral("not/yet"));
    app::FiguresStore(inner).keep("a", figures_of(300));
    app::FiguresStore store(inner);
    const ResultPtr found = store.find("a");
    QVERIFY(found);
    const ResultPtr thin = app::thinned(*figures_of(300));
    QCOMPARE(found->points.size(), thin->points.size());
    for (std::size_t i = 0; i < thin->points.size(); ++i) {
      QCOMPARE(found->points[i].memory_bytes, thin->points[i].memory_bytes);
      QCOMPARE(found->points[i].time_s, thin->points[i].time_s);
      QCOMPARE(found->points[i].network_s, thin->points[i].network_s);
    }
    QVERIFY(!store.find("b"));
    QVERIFY(!app::FiguresStore().find("a"));
  }

  void a_damaged_file_is_taken_away_and_does_no_harm() {
    const QTemporaryDir folder;
    app::FiguresStore(folder.path()).keep("a", figures_of(300));
    const QString path = QDir(folder.path()).entryInfoList(QDir::Files).first().filePath();
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadWrite));
    const QByteArray whole = file.readAll();
    for (qsizetype cut = 0; cut < whole.size(); cut += 1 + whole.size() / 40) {
      QFile damaged(path);
      QVERIFY(damaged.open(QIODevice::WriteOnly | QIODevice::Truncate));
      damaged.write(whole.first(cut));
      damaged.close();
      QVERIFY(!app::FiguresStore(folder.path()).find("a"));
      QVERIFY(!QFile::exists(path));
    }
  }

  void the_oldest_make_room() {
    const QTemporaryDir folder;
    constexpr std::int64_t kMost = 60000;
    {
      app::FiguresStore store(folder.path(), kMost);
      for (int i = 0; i < 30; ++i) store.keep(std::to_string(i), figures_of(3000, 1 + i));
    }
    std::int64_t bytes = 0;
    for (const QFileInfo& file : QDir(folder.path()).entryInfoList(QDir::Files)) bytes += file.size();
    QVERIFY(bytes <= kMost && bytes > 0);
    QVERIFY(app::FiguresStore(folder.path()).find("29"));
  }

  void many_threads_keep_at_once() {
    const QTemporaryDir folder;
    app::FiguresStore store(folder.path());
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&store, t] {
        for (int i = 0; i < 20; ++i) {
          store.keep(std::to_string(i), figures_of(100 + t));
          (void)store.find(std::to_string(19 - i));
        }
      });
    threads.clear();
    for (int i = 0; i < 20; ++i) QVERIFY(app::FiguresStore(folder.path()).find(std::to_string(i)));
  }

  void the_next_window_has_its_curve_at_once_and_then_its_plans() {
    const QTemporaryDir folder;
    std::vector<ResultPoint> points;
    {
      WindowFixture f;
      f.runner().keep_figures_in(folder.path());
      QVERIFY(f.open());
      points = f.runner().find("ft")->result->points;
    }
    WindowFixture f;
    fake_world().coarse_ms = fake_world().exact_ms = fake_world().other_ms = 2000;
    f.runner().keep_figures_in(folder.path());
    f.window->opener().open_scenario("builtin:transformer-s", "v100-16gb-2x8", 0);
    QTRY_VERIFY_WITH_TIMEOUT(f.runner().find("ft")->result, 1500);
    QCOMPARE(f.runner().find("ft")->result->points.size(), points.size());
    QVERIFY(f.runner().find("ft")->carried);
    QCOMPARE(f.runner().find("ft")->result->scenario, f.document().scenario());
    fake_world().coarse_ms = fake_world().exact_ms = fake_world().other_ms = 5;
    QVERIFY(QTest::qWaitFor([&] { return f.window->work().settled(); }, 20000));
    QVERIFY(!f.runner().find("ft")->carried);
    QVERIFY(f.runner().find("ft")->result->plans);
  }
};

QTEST_MAIN(FiguresStoreTest)
#include "figures_store_test.moc"
