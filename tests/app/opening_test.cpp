// SPDX-License-Identifier: Apache-2.0
// Opening one thing after another: what was said of the one before, and what was shown of it, goes.
#include <QLabel>
#include <QPushButton>
#include <QtTest>

#include "app/file_kind.h"
#include "app/plan_loader.h"
#include "app/schedule_loader.h"
#include "app/tabs/validation_tab.h"
#include "real_window.h"
#include "views/common/message_bar.h"
#include "views/common/theme_colors.h"
#include "views/frontier/chart_header.h"
#include "views/memory/memory_summary.h"
#include "views/plan/legend_table.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kConfig =
    R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_head": 4, "n_embd": 64})";

QString written(Real& real, const char* name, const char* text) {
  const QString path = real.folder.filePath(QString::fromLatin1(name));
  std::ofstream(path.toStdString()) << text;
  return path;
}

QString front(Real& real) {
  const views::Message* message = real.window->voice().bar().current();
  return message ? message->what + u'|' + message->where : QString();
}

}  // namespace

class OpeningTest : public QObject {
  Q_OBJECT

 private slots:
  void files_are_called_by_what_they_are() {
    Real real;
    using app::describe_file;
    QVERIFY(describe_file(written(real, "a.json", kConfig)).contains("config.json"));
    QCOMPARE(describe_file(written(real, "b.json", R"({"format": "turnpoint/plan@1"})")), QStringLiteral("a plan"));
    QVERIFY(describe_file(written(real, "c.json", R"({"format": "turnpoint/results@1"})")).contains("result"));
    QVERIFY(describe_file(written(real, "d.json", R"({"tasks": []})")).startsWith("a task graph"));
    QVERIFY(describe_file(written(real, "e.json", "[1, 2]")).isEmpty());
    QVERIFY(describe_file(real.folder.filePath("none.json")).isEmpty());
    QCOMPARE(app::kind_of_file(written(real, "f.json", R"({"format": "turnpoint/hardware-profile@1"})")),
             app::FileKind::hardware);
    QCOMPARE(app::kind_of_file(written(real, "g.log", "x")), app::FileKind::log);
    QCOMPARE(app::kind_of_file(written(real, "h.json", kConfig)), app::FileKind::model);
  }

  void settings_of_a_framework_become_a_split() {
    Real real;
    const QString path = written(real, "titan.toml",
                                 "[parallelism]\ntensor_parallel_degree = 1\n"
                                 "data_parallel_shard_degree = -1\n");
    QCOMPARE(app::kind_of_file(path), app::FileKind::settings);
    QVERIFY(app::describe_file(path).contains("training framework"));
    QVERIFY(app::describe_file(written(real, "m.gguf", "GGUF....")).contains("GGUF"));
    QVERIFY(real.open("builtin:lenet"));
    const auto before = real.window->work().document.scenario();
    real.window->opener().open_path(path);
    QVERIFY2(front(real).contains("torchtitan's split stands among the methods: dp="), qPrintable(front(real)));
    QVERIFY2(front(real).contains("zero=3"), qPrintable(front(real)));
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario(), before);
    const QString many = written(real, "many.toml", "[parallelism]\ntensor_parallel_degree = 4096\n");
    real.window->opener().open_path(many);
    QVERIFY2(front(real).contains("tp=4096"), qPrintable(front(real)));
  }

  void what_is_no_hardware_profile_is_not_taken_for_a_model() {
    Real real;
    QVERIFY(real.open("builtin:lenet"));
    const auto before = real.window->work().document.scenario();
    real.window->opener().open_hardware_file(written(real, "config.json", kConfig));
    QVERIFY2(front(real).contains("no hardware profile") && front(real).contains("seems to be a model's config.json"),
             qPrintable(front(real)));
    real.window->opener().open_hardware_file(written(real, "odd.json", "[1]"));
    QVERIFY2(front(real).contains("odd.json") && front(real).contains("hardware-profile@1"), qPrintable(front(real)));
    QVERIFY(real.settle());
    QCOMPARE(real.window->work().document.scenario(), before);
  }

  void a_good_file_answers_a_bad_one() {
    Real real;
    QVERIFY(real.open("builtin:lenet"));
    const auto* messages = &real.window->voice().bar();
    real.window->opener().open_path(written(real, "bad.onnx", "nothing"));
    QTRY_COMPARE(messages->count(), 1);
    real.window->opener().open_path(written(real, "worse.turnpoint", "{"));
    QTRY_COMPARE(messages->count(), 2);
    QVERIFY2(front(real).contains("worse.turnpoint"), qPrintable(front(real)));  // the newest is in front
    real.window->opener().open_scenario("builtin:alexnet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    QCOMPARE(messages->count(), 0);
  }

  void an_unknown_family_is_read_like_another_at_a_click() {
    Real real;
    real.window->opener().open_path(
        written(real, "new.json",
                R"({"model_type": "brandnew", "strange_rank": 7, "hidden_size": 64, "vocab_size": 99,
                                       "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 128})"));
    QTRY_COMPARE(real.window->voice().bar().count(), 1);
    const views::Message* message = real.window->voice().bar().current();
    QVERIFY2(front(real).contains("?as="), qPrintable(front(real)));
    QVERIFY2(message->action.startsWith("Read as "), qPrintable(message->action));
    const QString family = message->action.section(u' ', -1);
    message->act();
    QTRY_VERIFY(real.window->work().document.scenario());
    QVERIFY(real.window->work().document.state().model.ends_with("new.json?as=" + family.toStdString()));
    // The error is gone; a note of what was taken from the model may stand there for a while.
    message = real.window->voice().bar().current();
    QVERIFY2(!message || message->kind == views::Message::Kind::note, qPrintable(front(real)));
    const auto recent = real.settings.recent_models();
    QVERIFY(!recent.isEmpty() && recent.front().endsWith("new.json?as=" + family));
  }

  void another_model_has_no_plan_until_it_has_one() {
    Real real;
    QVERIFY(real.open("builtin:lenet"));
    auto& window = *real.window;
    QVERIFY(window.work().loader.plan() && !tab<app::ValidationTab>(window)->refusal().startsWith("Pick a plan"));
    QSignalSpy changed(&window.work().document, &app::Document::scenario_changed);
    bool seen = false, clean = true;
    connect(&window.work().document, &app::Document::scenario_changed, this, [&] {
      seen = true;
      clean = clean && !window.work().loader.plan() &&
              !part<views::PlanPanel>(window)->validate_button()->isEnabled() &&
              tab<app::ValidationTab>(window)->refusal().startsWith("Pick a plan") &&
              !window.work().document.selection().point() && part<views::FrontierChart>(window)->data().series.empty();
      for (const app::MethodRun& run : window.work().runner.runs())
        clean = clean && !run.result && run.state != app::MethodRun::State::done;
      clean = clean && real.child<QLabel>("no_plan")->isVisible();
    });
    real.window->opener().open_scenario("builtin:alexnet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    QVERIFY(seen && clean);
    QVERIFY(window.work().loader.plan());
    QVERIFY(!real.child<QLabel>("no_plan")->isVisible());
  }

  void the_headline_is_the_simulated_peak_and_never_that_of_another_plan() {
    Real real;
    auto& window = *real.window;
    window.opener().open_scenario("builtin:alexnet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    auto *peak = real.child<QLabel>("simulated_peak"), *memory = real.child<QLabel>("picked_memory");
    QVERIFY(peak->isVisible());
    QCOMPARE(memory->text(),
             part<views::FrontierChart>(window)->memory_words(window.work().schedules.loaded().memory->largest_peak()));
    part<views::FrontierChart>(window)->pick_first();
    QVERIFY(real.settle());
    const std::int64_t least = window.work().schedules.loaded().memory->largest_peak();
    QCOMPARE(memory->text(), part<views::FrontierChart>(window)->memory_words(least));
    const ResultPtr result = window.work().runner.find("ft")->result;
    const std::int64_t sum = result->points.front().memory_bytes;
    QVERIFY(least > sum);
    QVERIFY2(peak->text().endsWith("plain sum " + part<views::FrontierChart>(window)->memory_words(sum)),
             qPrintable(peak->text()));
    QVERIFY(!peak->toolTip().isEmpty());
    // The bar below has room for what is there at the peak alone, so that nobody takes that for free.
    const auto& parts = real.child<views::LegendTable>("memory_legend")->rows();
    QCOMPARE(parts.back().name, QStringLiteral("Passing at the peak"));
    QCOMPARE(parts.back().value, part<views::FrontierChart>(window)->memory_words(least - sum));
    // A plan in the middle that nobody has simulated: at once the sum, which says so, never the peak of another.
    window.work().document.selection().pick_point(views::PickedPoint{"ft", result->points.size() / 3 + 1});
    if (!part<views::FrontierChart>(window)
             ->data()
             .subject()
             ->result->points[result->points.size() / 3 + 1]
             .simulated_memory_bytes) {
      QVERIFY2(peak->text().contains("not simulated yet"), qPrintable(peak->text()));
      QCOMPARE(memory->text(), part<views::FrontierChart>(window)->memory_words(
                                   result->points[result->points.size() / 3 + 1].memory_bytes));
    }
    QVERIFY(real.settle());
    QCOMPARE(memory->text(),
             part<views::FrontierChart>(window)->memory_words(window.work().schedules.loaded().memory->largest_peak()));
  }

  /// A device between the sum and the peak of the smallest plan: all that is named moves to plans that truly fit.
  void what_is_named_fits_by_its_peak() {
    Real real;
    auto& window = *real.window;
    window.opener().open_scenario("builtin:alexnet?batch=2048", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    const ResultPtr free = part<views::FrontierChart>(window)->data().subject()->result;
    QVERIFY(free->fits_by_peak);
    const std::size_t last = free->points.size() - 1;
    const std::int64_t sum = free->points[last].memory_bytes, peak = *free->points[last].simulated_memory_bytes;
    QVERIFY(peak > sum);
    window.work().document.set_memory_limit((sum + peak) / 2, 0);
    QVERIFY(real.settle());
    const ResultPtr shown = part<views::FrontierChart>(window)->data().subject()->result;
    QVERIFY(shown->fits_by_peak);
    QCOMPARE(shown->scenario->memory_limit(), (sum + peak) / 2);
    QVERIFY(shown->fastest_that_fits() != std::optional(last));
    const auto& picked = window.work().document.selection().point();
    const auto fastest = shown->fastest_that_fits();
    if (fastest) {
      QCOMPARE(picked->index, *fastest);
      QVERIFY(window.work().schedules.loaded().memory->largest_peak() <= (sum + peak) / 2);
      const auto words = part<views::FrontierChart>(window)->describe();
      QVERIFY2(words.contains("peak") && !words.contains("plain sum"), qPrintable(words));
    } else {
      QVERIFY(part<views::FrontierChart>(window)->describe().contains("No plan without micro-batches fits"));
    }
  }

  void points_have_the_numbers_of_the_command_line() {
    Real real;
    QVERIFY(real.open("builtin:lenet"));
    part<views::FrontierChart>(real.window)->pick_first();
    QVERIFY(real.settle());
    const auto* where = real.child<QLabel>("picked_where");
    // Plans that can be told apart, counted from 1; the command line's number stands in the tool tip.
    const auto& points = real.window->work().runner.find("ft")->result->points;
    QVERIFY2(where->text().contains(QStringLiteral("lan 1 of ") + views::about_plans(views::distinct_plans(points))),
             qPrintable(where->text()));
    QVERIFY2(where->toolTip().contains("--point 0"), qPrintable(where->toolTip()));
  }
};

QTEST_MAIN(OpeningTest)
#include "opening_test.moc"
