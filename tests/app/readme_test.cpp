// SPDX-License-Identifier: Apache-2.0
// The five minutes of README.md in the real window on the real core. Command, hardware and splits are read from the
// text itself, so that it cannot promise what the window refuses.
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QRegularExpression>
#include <QToolButton>
#include <QTreeView>
#include <nlohmann/json.hpp>

#include "app/command_palette.h"
#include "app/plan_loader.h"
#include "app/schedule_loader.h"
#include "core/base/json.h"
#include "core/export/format.h"
#include "core/import/source/model_source.h"
#include "real_window.h"
#include "test_data.h"
#include "views/graph/graph_scene.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"
#include "views/task_table/task_rows.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr int kLong_ms = 200'000;  // a machine that does other things as well

QString five_minutes() {
  QFile file(QStringLiteral(TURNPOINT_SOURCE_DIR "/README.md"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QString text = QString::fromUtf8(file.readAll());
  const auto from = text.indexOf(QStringLiteral("## Five minutes on a real model"));
  return text.mid(from, text.indexOf(QStringLiteral("\n## "), from + 5) - from);
}

QString first_match(const QString& text, const char* pattern) {
  return QRegularExpression(QString::fromLatin1(pattern)).match(text).captured(1);
}

/// One numbered step of the list.
QString step(int number) {
  const QString text = five_minutes();
  const auto from = text.indexOf(QStringLiteral("\n%1. ").arg(number));
  auto to = text.indexOf(QStringLiteral("\n%1. ").arg(number + 1));
  if (to < 0) to = text.indexOf(QStringLiteral("\n\n"), from);
  return text.mid(from, to - from);
}

QStringList code_spans(const QString& text) {
  QStringList spans;
  auto each = QRegularExpression(QStringLiteral("`([^`]+)`")).globalMatch(text);
  while (each.hasNext()) spans << each.next().captured(1);
  return spans;
}

bool first_plan(Real& real) {
  return QTest::qWaitFor([&] { return real.window->work().loader.plan() != nullptr; }, kLong_ms);
}

void raise(Real& real, const char* dock) {
  real.child<QDockWidget>(dock)->raise();
  QTest::qWait(50);
}

/// By the menu's entry and the dialog that it opens, as a user does it.
bool export_by_dialog(Real& real, QAction* entry, const QString& path) {
  if (!entry->isEnabled()) return false;
  entry->trigger();
  auto* dialog = real.window->findChild<QFileDialog*>();
  if (!dialog) return false;
  dialog->setDirectory(QFileInfo(path).absolutePath());
  dialog->findChild<QLineEdit*>()->setText(path);
  QMetaObject::invokeMethod(dialog, "accept");
  const bool there = QTest::qWaitFor([&] { return QFileInfo(path).size() > 0; }, 60000);
  QTest::qWait(20);  // the dialog deletes itself
  return there;
}

nlohmann::json json_of(const QString& path) {
  QFile file(path);
  (void)file.open(QIODevice::ReadOnly);
  return nlohmann::json::parse(file.readAll().toStdString());
}

/// Types the split into the line and presses Enter.
void add_split(Real& real, const QString& split) {
  auto* line = real.child<QLineEdit>("split_line");
  line->setFocus();
  QTest::keyClicks(line, split);
  QTest::keyClick(line, Qt::Key_Return);
}

}  // namespace

class ReadmeTest : public QObject {
  Q_OBJECT

 private slots:
  void five_minutes_do_what_they_say() {
    const auto folder = data_folder();
    if (folder.empty()) QSKIP("data folder absent: set TURNPOINT_DATA to run this test");
    const QString name = first_match(five_minutes(), "turnpoint (\\S+\\.onnx) --hardware");
    const QString model = QString::fromStdString((folder / "onnx" / "light" / name.toStdString()).string());
    if (!QFile::exists(model)) QSKIP("README's model is not in the data folder");
    const QString hardware = first_match(five_minutes(), "\\.onnx --hardware (\\S+)");
    QCOMPARE(hardware, QStringLiteral("v100-16gb-2x8"));

    // 1 and 2: the curve with its turning point
    Real real;
    real.window->opener().open_scenario(model.toStdString(), hardware.toStdString(), 0);
    QVERIFY(first_plan(real));
    const auto* subject = part<views::FrontierChart>(real.window)->data().subject();
    QVERIFY(subject && subject->result->points.size() > 2);
    QVERIFY(subject->result->turning_point);

    // 3: pin, drag, undo
    QTRY_VERIFY_WITH_TIMEOUT(action(real, "pin")->isEnabled(), kLong_ms);
    action(real, "pin")->trigger();
    QCOMPARE(real.window->work().document.pinned().size(), std::size_t(1));
    auto* slider =
        part<views::ScenarioPanel>(real.window)->slider_row(QStringLiteral("inter-bandwidth-scale"))->slider();
    slider->setFocus();
    QTest::keyClick(slider, Qt::Key_PageUp);
    QCOMPARE(real.window->work().document.scenario()->settings.factors.inter_bandwidth, 2.0);
    QTRY_VERIFY_WITH_TIMEOUT(
        real.window->work().runner.subject()->result->scenario == real.window->work().document.scenario(), kLong_ms);
    action(real, "undo")->trigger();
    QCOMPARE(real.window->work().document.scenario()->settings.factors.inter_bandwidth, 1.0);
    QTRY_VERIFY_WITH_TIMEOUT(
        real.window->work().runner.subject()->result->scenario == real.window->work().document.scenario(), kLong_ms);
    QVERIFY(first_plan(real));

    // 4: along the curve by keys; graph and plan table
    const auto before = *real.window->work().document.selection().point();
    part<views::FrontierChart>(real.window)->setFocus();
    QTest::keyClick(part<views::FrontierChart>(real.window), Qt::Key_Left);
    QVERIFY(real.window->work().document.selection().point()->index != before.index);
    raise(real, "plan_table");
    QTRY_VERIFY(real.child<QDockWidget>("plan_table")->findChild<QTreeView*>()->model()->rowCount() > 5);

    // 5: a split of one's own, from the text
    const QStringList splits = code_spans(step(5));
    QCOMPARE(splits.size(), 2);
    add_split(real, splits[0]);
    const std::string own = "manual:" + splits[0].toStdString();
    QTRY_VERIFY(real.window->work().runner.find(own));
    QCOMPARE(real.window->work().runner.find(own)->refusal, std::string());
    QTRY_VERIFY_WITH_TIMEOUT(real.window->work().runner.find(own)->result, kLong_ms);
    QVERIFY(!real.window->work().runner.find(own)->result->points.empty());

    // 6: time against devices
    raise(real, "parallelism");
    QTRY_VERIFY_WITH_TIMEOUT(part<views::ParallelismView>(real.window)->chart()->data().counts.size() > 1, kLong_ms);

    // 7: the plan as a schedule, in three tabs
    for (const char* tab : {"timeline", "memory", "task_table"}) {
      raise(real, tab);
      QTRY_VERIFY_WITH_TIMEOUT(real.schedule() && real.schedule()->item_count() > 0, kLong_ms);
    }
    QVERIFY(real.child<QDockWidget>("task_table")->findChild<QTreeView*>()->model()->rowCount() > 100);

    // 8: everything that the step names
    const QString exports = step(8);
    for (const char* word : {"JSON", "CSV", "SVG", "PNG", "trace"})
      QVERIFY2(exports.contains(QLatin1String(word)), word);
    raise(real, "graph");
    QTRY_VERIFY_WITH_TIMEOUT(real.window->work().loader.up_to_date(), kLong_ms);
    const auto at = [&](const char* file) { return real.folder.filePath(QString::fromLatin1(file)); };
    QVERIFY(export_by_dialog(real, action(real, "export_plan_json"), at("plan.json")));
    QVERIFY(json_of(at("plan.json")).contains("operators"));
    QVERIFY(export_by_dialog(real, action(real, "export_points_csv"), at("points.csv")));
    QVERIFY(export_by_dialog(real, action(real, "export_chart_svg"), at("chart.svg")));
    QVERIFY(export_by_dialog(real, action(real, "export_chart_png"), at("chart.png")));
    QVERIFY(export_by_dialog(real, action(real, "export_plan_trace"), at("trace.json")));
    const auto trace = json_of(at("trace.json"));
    QVERIFY(trace.at("traceEvents").size() > 100);
  }

  void the_other_split_of_the_text_suits_a_transformer() {
    Real real;
    real.window->opener().open_scenario("builtin:gpt2", "v100-16gb-2x8", 0);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000));
    real.window->work().runner.set_enabled_methods({});
    const QString split = code_spans(step(5)).value(1);
    QVERIFY(split.contains(QStringLiteral("pp=")));
    add_split(real, split);
    const std::string own = "manual:" + split.toStdString();
    QTRY_VERIFY(real.window->work().runner.find(own));
    QCOMPARE(real.window->work().runner.find(own)->refusal, std::string());
    QTRY_VERIFY_WITH_TIMEOUT(real.window->work().runner.find(own)->result, kLong_ms);
    real.window->work().document.selection().pick_point(views::PickedPoint{own, 0});
    QVERIFY(first_plan(real));
    // A trace of a pipeline holds its stages on their own devices.
    const auto text = export_text(*find_format("trace"), {{}, real.window->work().runner.find(own)->result, 0});
    QVERIFY2(text, text ? "" : text.error().what.c_str());
    QVERIFY(nlohmann::json::parse(*text).at("traceEvents").size() > 100);
    QCOMPARE(action(real, "export_plan_trace")->isEnabled(), true);
  }

  void what_cannot_be_exported_says_why() {
    Real real;
    for (const char* name : {"export_plan_json", "export_plan_trace", "export_chart_svg", "export_graph_png",
                             "export_results_json", "export_points_csv"}) {
      QAction* entry = action(real, name);
      QVERIFY2(!entry->isEnabled(), name);
      QVERIFY2(entry->toolTip().contains(u'\n'), name);  // its own words, then the reason
    }
  }

  void a_refused_split_shows_its_reason_in_its_row() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x8", 0);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000));
    real.window->work().runner.set_enabled_methods({});
    QTest::qWait(50);
    auto* list = real.child<views::MethodsList>("methods_list");
    const int plain = list->sizeHintForRow(0);
    add_split(real, QStringLiteral("dp=2:tp=4"));
    QTRY_VERIFY(!real.window->work().runner.find("manual:dp=2:tp=4")->refusal.empty());
    QTest::qWait(50);
    const int row = list->model()->rowCount() - 1;
    QVERIFY2(list->sizeHintForRow(row) > 2 * plain - 4, qPrintable(QString::number(list->sizeHintForRow(row))));
    QVERIFY(!list->isRowHidden(row));
    QCOMPARE(list->height(), list->sizeHint().height());  // the dock scrolls, never the list
  }

  void operators_without_a_name_are_called_by_their_kind() {
    const auto folder = data_folder();
    if (folder.empty()) QSKIP("data folder absent: set TURNPOINT_DATA to run this test");
    const auto source = open_model((folder / "onnx" / "light" / "light_resnet50.onnx").string());
    QVERIFY(source);
    const auto model = (*source)->bind({32, 0});
    QVERIFY(model);
    int convolutions = 0;
    for (const Operator& op : (*model)->operators) {
      if (op.kind != OperatorKind::convolution) continue;
      QCOMPARE(op.name, "Conv " + std::to_string(++convolutions));
    }
    QCOMPARE(convolutions, 53);
    for (std::size_t i = 0; i < (*model)->operators.size(); ++i) {
      const OperatorId op{static_cast<std::uint32_t>(i)};
      if ((*model)->operators[op].kind != OperatorKind::convolution) continue;
      QCOMPARE(views::kind_line(**model, op), QStringLiteral("64\u00d7112\u00d7112"));  // the first one's result
      break;
    }
  }

  void the_palette_finds_settings_methods_and_models_or_says_that_there_is_none() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x8", 0);
    QVERIFY(first_plan(real));
    app::CommandPalette* palette = part<app::CommandPalette>(real.window);
    const auto search = [&](const char* words) {
      action(real, "find")->trigger();
      palette->field()->setText(QString::fromLatin1(words));
      return palette->list()->count() > 0 ? palette->list()->item(0)->text() : QString();
    };
    QCOMPARE(search("batch"), QStringLiteral("Batch"));
    QTest::keyClick(palette->field(), Qt::Key_Return);
    QVERIFY(!palette->isVisible());
    QTRY_COMPARE(real.window->focusWidget(), real.child<QWidget>("batch"));
    QCOMPARE(search("precision"), QStringLiteral("Precision"));
    QVERIFY(search("optcnn").contains(QStringLiteral("OptCNN")));
    QCOMPARE(search("llama-2-7b"), QStringLiteral("llama-2-7b"));
    QCOMPARE(search("find"), QStringLiteral("Find operator or action\u2026"));
    QVERIFY(!palette->list()->item(0)->text().contains(QStringLiteral("Ctrl")));  // keys have their own column
    QVERIFY(palette->list()->isVisible());
    QCOMPARE(search("zzzz"), QString());
    QVERIFY(palette->nothing()->isVisible());
    QVERIFY(palette->nothing()->text().contains(QStringLiteral("zzzz")));
  }

  void tasks_without_time_are_shown_when_asked_for() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x8", 0);
    QVERIFY(first_plan(real));
    raise(real, "task_table");
    auto* table = real.child<QDockWidget>("task_table")->findChild<QTreeView*>();
    raise(real, "timeline");
    QTRY_VERIFY_WITH_TIMEOUT(real.schedule() != nullptr, kLong_ms);
    raise(real, "task_table");
    const SchedulePtr schedule = real.schedule();
    int timed = 0;
    for (TaskIndex t = 0; t < schedule->graph->task_count(); ++t) timed += views::task_duration_s(*schedule, t) > 0;
    QVERIFY(std::size_t(timed) < schedule->graph->task_count());
    QTRY_COMPARE(table->model()->rowCount(), timed);
    real.child<QToolButton>("tasks_without_time")->click();
    QTRY_COMPARE(table->model()->rowCount(), int(schedule->graph->task_count()));
  }

  void the_start_page_can_be_reached_and_left() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x8", 0);
    QVERIFY(first_plan(real));
    action(real, "close_model")->trigger();
    QVERIFY(real.child<QWidget>("start_page")->isVisible());
    QVERIFY(!action(real, "close_model")->isEnabled());
    QVERIFY(!action(real, "export_plan_json")->isEnabled());
    QTRY_VERIFY(real.window->work().tasks.tasks().empty());
    action(real, "undo")->trigger();
    QVERIFY(!real.child<QWidget>("start_page")->isVisible());
    QCOMPARE(real.window->work().document.scenario()->model->name, std::string("lenet"));
    action(real, "close_model")->trigger();
    real.window->opener().open_sample(2);
    QVERIFY(QTest::qWaitFor([&] { return real.window->work().document.scenario() != nullptr; }, 60000));
  }
};

QTEST_MAIN(ReadmeTest)
#include "readme_test.moc"
