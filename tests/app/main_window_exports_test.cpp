// SPDX-License-Identifier: Apache-2.0
// The window's exports follow the list of formats: menu, dialogs, what is grey and why, the files.
#include <QFileDialog>
#include <QMenu>

#include "app/plan_loader.h"
#include "core/export/format.h"
#include "real_window.h"
#include "views/common/message_bar.h"
#include "views/memory/memory_view.h"
#include "views/timeline/timeline_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

QAction* action_of(Real& real, const ExportFormat& format) { return real.window->actions()[format]; }

QByteArray written(Real& real, const ExportFormat& format) {
  const QString path = real.folder.filePath(QString::fromUtf8(format.file));
  real.window->exports().export_to(format, path);
  (void)real.settle();
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Every format is offered where it accepts the picked plan, and writes it; where not, its tip ends with the reason.
void check_offers(Real& real, PlanKind kind) {
  for (const ExportFormat& format : export_formats()) {
    if (!format.for_plans() && !real.window->work().runner.subject()) continue;  // no method with a frontier is on
    const QAction* action = action_of(real, format);
    const QString tip = action->toolTip();
    if (format.for_plans() && !format.accepts(kind)) {
      const auto reason = QString::fromStdString(refusal_of(format, kind, FormatNames::names));
      QVERIFY2(!action->isEnabled() && tip.endsWith(u'\n' + reason + u'.'), qPrintable(tip));
      continue;
    }
    QVERIFY2(action->isEnabled() && !tip.contains(u'\n'), qPrintable(tip));
    if (!format.engine) {
      QVERIFY2(written(real, format).size() > 40, format.title().c_str());
      continue;
    }
    // An engine takes this plan or not; where not, nothing is written and the window says why.
    const auto text = format.plan(*real.window->work().document.scenario(), *real.window->work().loader.plan());
    QCOMPARE(written(real, format), text ? QByteArray::fromStdString(*text) : QByteArray());
    if (text) continue;
    auto* bar = real.window->findChild<views::MessageBar*>();
    QVERIFY2(bar->current() && bar->current()->kind == views::Message::Kind::error, format.title().c_str());
    const QString said = bar->current()->what + u' ' + bar->current()->where;
    QVERIFY2(said.contains(QString::fromStdString(text.error().what), Qt::CaseInsensitive), qPrintable(said));
    QVERIFY2(text.error().hint.empty() || said.contains(QString::fromStdString(text.error().hint), Qt::CaseInsensitive),
             qPrintable(said));
  }
}

}  // namespace

class MainWindowExportsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { QApplication::setStyle(QStringLiteral("Fusion")); }

  void the_menu_lists_every_format_once() {
    Real real;
    QStringList listed;
    for (const QMenu* menu : real.window->findChildren<QMenu*>())
      if (menu->actions().contains(real.window->actions()[*find_format("json")]))
        for (const QAction* entry : menu->actions())
          if (!entry->isSeparator()) listed << entry->objectName();
    QStringList expected{QStringLiteral("engine_dialog")};
    for (const bool plans : {true, false})
      for (const ExportFormat& format : export_formats())
        if (format.for_plans() == plans) expected << action_of(real, format)->objectName();
    QCOMPARE(listed.first(expected.size()), expected);
    QCOMPARE(listed.size(), expected.size() + 5);  // pictures of chart and graph
    QCOMPARE(expected[1], QStringLiteral("export_plan_json"));
    QVERIFY(expected.contains(QStringLiteral("export_points_csv")));
  }

  void without_a_result_every_entry_says_why() {
    Real real;
    for (const ExportFormat& format : export_formats()) {
      const QAction* action = action_of(real, format);
      const char* reason =
          format.for_plans() ? "\nNo plan is picked: click a point of the chart." : "\nThere is no result yet.";
      QVERIFY2(!action->isEnabled() && action->toolTip().endsWith(QLatin1String(reason)), format.title().c_str());
    }
  }

  void sharding_plans_and_their_files() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    check_offers(real, PlanKind::sharding);
    // The dialog asks for the format's own files.
    for (const ExportFormat& format : export_formats()) {
      if (format.for_plans() && !format.accepts(PlanKind::sharding)) continue;
      action_of(real, format)->trigger();
      auto* dialog = real.window->findChild<QFileDialog*>();
      QVERIFY(dialog);
      const QString suffix = QString::fromUtf8(format.suffix());
      QCOMPARE(dialog->defaultSuffix(), suffix);
      QCOMPARE(dialog->nameFilters(), QStringList(QStringLiteral("%1 files (*.%2)").arg(suffix.toUpper(), suffix)));
      QCOMPARE(QFileInfo(dialog->selectedFiles().value(0)).fileName(), QString::fromUtf8(format.file));
      dialog->reject();
      QTRY_VERIFY(!real.window->findChild<QFileDialog*>());  // it deletes itself
    }
  }

  void pipelines() {
    Real real;
    real.window->opener().open_scenario("builtin:gpt2", "v100-16gb-1x4", 0);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000));
    const std::string split = "manual:dp=2:pp=2:micro-batches=4";
    QVERIFY(real.window->work().runner.add_split(split));
    real.window->work().runner.set_enabled_methods({split});
    QTRY_VERIFY_WITH_TIMEOUT(real.window->work().runner.find(split)->result, 60000);
    real.window->work().document.selection().pick_point(views::PickedPoint{split, 0});
    QTRY_VERIFY_WITH_TIMEOUT(real.window->work().loader.plan() && real.window->work().loader.plan()->pipeline, 60000);
    check_offers(real, PlanKind::pipeline);
  }

  void placements() {
    Real real;
    QVERIFY(real.open(QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json")));
    check_offers(real, PlanKind::placement);
    QVERIFY(!action(real, "export_plan_svg")->isEnabled());
    QVERIFY(written(real, *find_format("json")).contains("\"kind\": \"placement\""));
    QVERIFY(written(real, *find_format("trace")).contains("traceEvents"));
    QCOMPARE(written(real, *find_format("csv")).count("\r\n"), 5);
    const QString picture = real.folder.filePath("timeline.png"), drawing = real.folder.filePath("memory.svg");
    QVERIFY(tab<app::Tab>(real.window, "timeline")->export_picture(picture));
    QVERIFY(tab<app::Tab>(real.window, "memory")->export_picture(drawing));
    QVERIFY(QFile(picture).size() > 1000 && QFile(drawing).size() > 500);
  }
};

QTEST_MAIN(MainWindowExportsTest)
#include "main_window_exports_test.moc"
