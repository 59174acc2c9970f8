// SPDX-License-Identifier: Apache-2.0
// A ratio plan that a hand changed, kept: a row and a point of its own, picked, exported, saved, opened and taken out.
#include <QFile>
#include <QPushButton>
#include <nlohmann/json.hpp>

#include "core/export/format.h"
#include "real_window.h"
#include "views/common/format.h"
#include "views/devices/device_chart.h"
#include "views/devices/devices_view.h"
#include "views/scenario/methods_list.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kUnlike = "v100-16gb-1x4+a100-80gb-1x2";

RatioPlanPtr ratio_on_show(Real& real) {
  const auto& plan = real.window->work().loader.picked_plan();
  const auto* ratio = plan ? std::get_if<RatioPlanPtr>(&*plan) : nullptr;
  return ratio ? *ratio : nullptr;
}

views::DevicesView* devices(Real& real) { return real.child<views::DevicesView>("devices_view"); }

/// The window with the plan of one method picked, its devices on show; `variant`: of a method with parameters.
bool show_devices(Real& real, const std::string& variant = {}) {
  real.window->opener().open_scenario("builtin:lenet", kUnlike, 0);
  if (!QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000)) return false;
  real.window->work().runner.set_enabled_methods({"owt"});
  if (!real.settle()) return false;
  if (!variant.empty() && (!real.window->work().runner.add_split(variant) || !real.settle())) return false;
  real.window->work().document.selection().pick_point(views::PickedPoint{variant.empty() ? "owt" : variant, 0});
  real.window->docks().raise(QStringLiteral("devices"));
  return real.settle() && QTest::qWaitFor([&] { return devices(real)->chart()->isVisible(); }, 5000);
}

/// Moves the uppermost border this many steps, and keeps what comes of it.
bool keep_moved(Real& real, int steps) {
  for (int i = 0; i < std::abs(steps); ++i) {
    QTest::keyClick(devices(real)->chart(), steps > 0 ? Qt::Key_Right : Qt::Key_Left);
    if (!real.settle()) return false;
  }
  if (!devices(real)->keep_button()->isEnabled()) return false;
  devices(real)->keep_button()->click();
  return real.settle();
}

}  // namespace

class KeptRatioTest : public QObject {
  Q_OBJECT

 private slots:
  void it_is_a_point_beside_the_one_it_began_from() {
    Real real;
    QVERIFY(show_devices(real));
    const RatioPlanPtr found = ratio_on_show(real);
    QVERIFY(found && !devices(real)->keep_button()->isEnabled());
    const auto series = part<views::FrontierChart>(real.window)->data().series.size();
    QVERIFY(keep_moved(real, 4));
    auto& runner = real.window->work().runner;
    const auto splits = runner.splits();
    QCOMPARE(splits.size(), std::size_t(1));
    QVERIFY2(splits.front().starts_with("owt:by-hand=0@"), splits.front().c_str());
    // It is picked, and is what was on show.
    QCOMPARE(real.window->work().document.selection().point()->method, splits.front());
    const RatioPlanPtr kept = ratio_on_show(real);
    QVERIFY(kept && kept->cuts.front().ratio > found->cuts.front().ratio + 0.03);
    QCOMPARE(devices(real)->chart()->blocks().blocks[1].ratio, kept->cuts.front().ratio);
    QVERIFY(!devices(real)->keep_button()->isEnabled());
    const ResultPoint& point = real.point(splits.front());
    QCOMPARE(point.time_s, kept->cost.time_s());
    QCOMPARE(point.memory_bytes, kept->most_memory());
    QVERIFY(point.simulated_time_s.has_value());
    const auto& drawn = part<views::FrontierChart>(real.window)->data().series;
    QCOMPARE(drawn.size(), series + 1);
    QVERIFY2(drawn.back().title.startsWith(QStringLiteral("OWT by-hand=0@")), qPrintable(drawn.back().title));
    const auto& words = runner.find(splits.front())->result->explanations;
    QVERIFY(words.back().find("The plan of One Weird Trick") != std::string::npos);
    // Moved on from there it is another one.
    QVERIFY(keep_moved(real, -1));
    QCOMPARE(runner.splits().size(), std::size_t(2));
    QVERIFY(ratio_on_show(real)->cuts.front().ratio < kept->cuts.front().ratio);
  }

  // Of a plan whose updates are shared out: what is on show while the border moves is what is kept, whose updates are
  // decided for the new parts.
  void updates_follow_the_parts() {
    Real real;
    const std::string variant = "update-sharding:of=owt";
    QVERIFY(show_devices(real, variant));
    const RatioPlanPtr found = ratio_on_show(real);
    QVERIFY(found && found->cuts.size() > 1);
    for (int i = 0; i < 4; ++i) {
      QTest::keyClick(devices(real)->chart(), Qt::Key_Left);
      QVERIFY(real.settle());
    }
    const double shown = devices(real)->chart()->blocks().blocks[1].ratio;
    const QString words = devices(real)->words();
    QVERIFY(shown < found->cuts.front().ratio - 0.03);
    QVERIFY2(words.contains(QStringLiteral("against what was found")), qPrintable(words));
    QVERIFY(devices(real)->keep_button()->isEnabled());
    devices(real)->keep_button()->click();
    QVERIFY(real.settle());
    const std::string name = real.window->work().runner.splits().back();
    QVERIFY2(name.starts_with(variant + ":by-hand=0@"), name.c_str());
    const RatioPlanPtr kept = ratio_on_show(real);
    QVERIFY(kept && std::abs(kept->cuts.front().ratio - shown) < 1e-12);
    QVERIFY2(words.contains(views::time_text(kept->cost.time_s())), qPrintable(words));
    const Result& result = *real.window->work().runner.find(name)->result;
    QVERIFY(!result.weights.empty() && result.whole_updates && result.whole_updates->time_s() >= kept->cost.time_s());
  }

  void it_is_exported_as_a_ratio_plan() {
    Real real;
    QVERIFY(show_devices(real));
    QVERIFY(keep_moved(real, 3));
    const QString path = real.folder.filePath(QStringLiteral("kept.json"));
    real.window->exports().export_to(*find_format("json"), path);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(path) && real.settle(), 20000);
    QFile file(path);
    QVERIFY(file.open(QFile::ReadOnly));
    const auto document = nlohmann::json::parse(file.readAll().toStdString());
    QCOMPARE(document["kind"].get<std::string>(), std::string("ratio"));
    QVERIFY(std::abs(document["cuts"][0]["ratio"].get<double>() - ratio_on_show(real)->cuts.front().ratio) < 1e-12);
  }

  void sessions_keep_it_and_the_list_takes_it_out() {
    Real real;
    QVERIFY(show_devices(real));
    QVERIFY(keep_moved(real, 2));
    const RatioPlanPtr kept = ratio_on_show(real);
    const std::string name = real.window->work().runner.splits().front();
    const QString path = real.folder.filePath(QStringLiteral("a.turnpoint"));
    QVERIFY(real.window->sessions().save(path));
    Real again;
    again.window->sessions().open(path);
    QVERIFY(QTest::qWaitFor([&] { return again.window->work().runner.find(name) != nullptr; }, 60000));
    QVERIFY(again.settle());
    QCOMPARE(again.window->work().document.selection().point()->method, name);
    QVERIFY(ratio_on_show(again));
    QCOMPARE(ratio_on_show(again)->cost.time_s(), kept->cost.time_s());
    QVERIFY(ratio_on_show(again)->device_memory == kept->device_memory);
    emit again.child<views::MethodsList>("methods_list")->remove_requested(QString::fromStdString(name));
    QVERIFY(again.settle());
    QVERIFY(!again.window->work().runner.find(name) && again.window->work().runner.splits().empty());
    QVERIFY(!part<views::FrontierChart>(again.window)->data().series.empty());
  }

  // On devices in equal halves the row stays, with the reason why it has no plan.
  void where_halves_are_equal_it_waits() {
    Real real;
    QVERIFY(show_devices(real));
    QVERIFY(keep_moved(real, 2));
    const std::string name = real.window->work().runner.splits().front();
    real.window->work().document.open_hardware("v100-16gb-1x4");
    QVERIFY(real.settle());
    QVERIFY(real.window->work().runner.find(name)->refusal.find("no ratio to move") != std::string::npos);
    real.window->work().document.undo_stack().undo();
    QVERIFY(real.settle());
    QVERIFY(real.window->work().runner.find(name)->refusal.empty() && real.window->work().runner.find(name)->result);
  }
};

QTEST_MAIN(KeptRatioTest)
#include "kept_ratio_test.moc"
