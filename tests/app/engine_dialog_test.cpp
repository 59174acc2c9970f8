// SPDX-License-Identifier: Apache-2.0
// What engines can be told of the picked plan: the dialog says what export says, follows the pick, offers what is
// nearest, and writes what it shows.
#include <QClipboard>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QThread>
#include <QTreeWidget>

#include "app/engine_dialog.h"
#include "core/export/nearest.h"
#include "real_window.h"
#include "views/plan/engine_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr int kLooking_ms = 60'000 * kSanitizerFactor;

struct Looking : Real {
  Looking() {
    window->opener().open_scenario("builtin:gpt2?layers=2&hidden=256&sequence=64", "v100-16gb-1x4", 0);
    ready = settle();
  }
  app::EngineDialog* dialog() { return window->exports().engine_dialog(); }
  views::EngineView* view() { return dialog()->view(); }
  app::Workspace& work() { return window->work(); }
  bool looked() {
    return QTest::qWaitFor(
        [&] {
          const auto& targets = view()->targets();
          return !targets.empty() && work().settled() &&
                 std::ranges::all_of(targets, [](const auto& t) { return t.looked_at && !t.looking_for_nearest; });
        },
        kLooking_ms);
  }
  const views::EngineTarget& target(const char* key) {
    for (const views::EngineTarget& each : view()->targets())
      if (each.key == QLatin1String(key)) return each;
    qFatal("no target %s", key);
  }
  void choose(const char* key) {
    const auto& targets = view()->targets();
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (targets[i].key == QLatin1String(key)) view()->list()->setCurrentItem(view()->list()->topLevelItem(int(i)));
  }
  void pick(const std::string& method, std::size_t point) {
    work().document.selection().pick_point(views::PickedPoint{method, point});
  }
  bool ready = false;
};

}  // namespace

class EngineDialogTest : public QObject {
  Q_OBJECT

 private slots:
  /// Every engine, with what export says of the picked plan: text, notes, command, or the reason against it.
  void engines_say_what_exports_say() {
    Looking real;
    QVERIFY(real.ready);
    real.pick("data-parallel", 0);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.looked());
    const ResultPtr result = real.work().runner.find("data-parallel")->result;
    int runs = 0, engines = 0;
    for (const ExportFormat& format : export_formats()) {
      if (!format.engine) continue;
      ++engines;
      const views::EngineTarget& target = real.target(std::string(format.key).c_str());
      const auto file = engine_file(format, {{}, result, 0});
      QCOMPARE(target.refusal, file ? QString() : QString::fromStdString(file.error().message()));
      if (!file) continue;
      ++runs;
      QCOMPARE(target.text, QString::fromStdString(file->text));
      QCOMPARE(target.start, QString::fromStdString(file->start));
      QCOMPARE(std::size_t(target.otherwise.size()), file->otherwise.size());
    }
    QCOMPARE(int(real.view()->targets().size()), engines);
    QVERIFY(runs >= 3 && runs < engines);
  }

  void what_is_shown_is_copied_and_saved() {
    Looking real;
    QVERIFY(real.ready);
    real.pick("data-parallel", 0);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.looked());
    real.choose("megatron");
    QVERIFY(real.view()->preview()->isVisible());
    QCOMPARE(real.view()->preview()->toPlainText(), real.target("megatron").text);
    real.view()->copy_button()->click();
    QCOMPARE(QApplication::clipboard()->text(), real.target("megatron").text);
    real.dialog()->findChild<QPushButton*>(QStringLiteral("engine_copy_start"))->click();
    QCOMPARE(QApplication::clipboard()->text(), real.target("megatron").start);
    QVERIFY(real.view()->start()->text().startsWith(QStringLiteral("torchrun --nnodes 1 --nproc-per-node 4 megatron")));
    auto* measure = real.dialog()->findChild<QPushButton*>(QStringLiteral("engine_copy_measure"));
    QVERIFY(!measure->isVisible());  // nobody measures Megatron-LM here
    real.choose("pytorch");
    QVERIFY(measure->isVisible());
    measure->click();
    QCOMPARE(QApplication::clipboard()->text(),
             QStringLiteral("turnpoint-cli search 'builtin:gpt2?layers=2&hidden=256&sequence=64' --hardware "
                            "v100-16gb-1x4 --batch 256 --sequence 64 --precision fp32 --method data-parallel --out "
                            "result.json\nturnpoint-cli validate result.json --point 0 --engine pytorch --launcher "
                            "'torchrun --nnodes 1 --nproc-per-node 4' --model-code MODEL.py:FUNCTION --out "
                            "report.json\n"));
    real.choose("jax:explicit");
    QVERIFY(real.target("jax:explicit").measure.contains(QStringLiteral("--engine jax --out report.json")));
    real.choose("megatron");
    real.view()->save_button()->click();
    auto* ask = real.window->findChild<QFileDialog*>();
    QVERIFY(ask);
    const QString path = real.folder.filePath(QStringLiteral("megatron.py"));
    emit ask->fileSelected(path);
    ask->close();
    QVERIFY(real.settle());
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(QString::fromUtf8(file.readAll()), real.target("megatron").text);
  }

  /// A plan that an engine cannot run comes with the fastest of the chart that fits and that it can; picking that one
  /// takes the dialog along.
  void the_nearest_can_be_picked() {
    Looking real;
    QVERIFY(real.ready);
    const ResultPtr curve = real.work().runner.find("ft")->result;
    // A point that DeepSpeed refuses; there is one, since splits along the curve are mixtures.
    std::optional<std::size_t> refused;
    for (std::size_t k = 0; k < curve->points.size() && !refused; ++k)
      if (!engine_file(*find_format("deepspeed"), {{}, curve, k})) refused = k;
    QVERIFY(refused.has_value());
    real.pick("ft", *refused);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.looked());
    const views::EngineTarget target = real.target("deepspeed");
    QVERIFY(!target.refusal.isEmpty() && target.nearest_point.has_value());
    const app::MethodRun* run = real.work().runner.find(target.nearest_point->method);
    QVERIFY(run && engine_file(*find_format("deepspeed"), {{}, run->result, target.nearest_point->index}));
    const ResultPoint& nearest = run->result->points[target.nearest_point->index];
    QVERIFY(nearest.fits);
    for (const app::MethodRun& other : real.work().runner.runs()) {  // none that is drawn is faster
      if (!other.enabled || !other.result || (other.name != "ft" && other.result->points.size() > 16)) continue;
      for (std::size_t k = 0; k < other.result->points.size(); ++k)
        if (other.result->points[k].fits && other.result->points[k].time_s < nearest.time_s)
          QVERIFY2(!engine_file(*find_format("deepspeed"), {{}, other.result, k}), other.name.c_str());
    }
    real.choose("deepspeed");
    QVERIFY(!real.view()->preview()->isVisible() && real.view()->nearest_button()->isVisible());
    real.view()->nearest_button()->click();
    QVERIFY(real.work().document.selection().point() == target.nearest_point);
    QVERIFY(real.looked());
    QVERIFY(real.target("deepspeed").refusal.isEmpty());
    QCOMPARE(real.view()->chosen()->key, QStringLiteral("deepspeed"));
    QVERIFY(real.view()->preview()->isVisible());
  }

  /// Data parallelism, which every engine runs, is no way out where it lacks room and others do not.
  void what_does_not_fit_is_not_offered() {
    Looking real;
    QVERIFY(real.ready);
    const auto& whole = real.work().runner.find("data-parallel")->result->points[0];
    real.work().document.set_memory_limit(whole.memory_bytes * 3 / 4, 0);
    QVERIFY(real.settle());
    QVERIFY(!real.work().runner.find("data-parallel")->result->points[0].fits);
    const ResultPtr curve = real.work().runner.find("ft")->result;
    QVERIFY(curve->points.front().fits);
    real.pick("ft", 0);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.looked());
    const auto split = nearest_split(*curve, 0, {});
    QVERIFY(split && *split && (*split)->point.fits);
    const Result& near = *(*split)->result;
    int refusing = 0, offered = 0, without = 0;
    for (const views::EngineTarget& target : real.view()->targets()) {
      if (target.refusal.isEmpty()) continue;
      ++refusing;
      if (target.nearest_point) {
        const ResultPtr beside = real.work().runner.find(target.nearest_point->method)->result;
        QVERIFY2(beside->points[target.nearest_point->index].fits, qPrintable(target.name));
        continue;
      }
      const ExportFormat& format = *find_format(target.key.toStdString());
      const bool runs =
          format.accepts(near.plans->kind(0)) && format.engine(*near.scenario, near.plans->sharding(0)).has_value();
      ++(runs ? offered : without);
      const QString none = target.name + QStringLiteral(" can run no plan of this curve, nor a marker, that fits.");
      const QString more = QStringLiteral(" A split of your own that it can run comes nearest: %1, ")
                               .arg(QString::fromStdString((*split)->name));
      QVERIFY2(runs ? target.nearest.startsWith(none + more) : target.nearest == none, qPrintable(target.nearest));
    }
    QVERIFY(refusing > 0 && offered > 0 && without > 0);
  }

  /// Somebody stops the looking: the dialog says so, and looks again when it is asked to.
  void what_was_stopped_can_be_looked_at_again() {
    Looking real;
    QVERIFY(real.ready);
    real.pick("data-parallel", 0);
    // Work of the same purpose that lasts until it is stopped: the look has not begun when it is stopped, too.
    real.work().tasks.start(
        QStringLiteral("engines"), QStringLiteral("Waiting"),
        [](const RunContext& context) {
          while (!context.cancelled()) QThread::msleep(1);
        },
        [](app::TaskOutcome) {});
    action(real, "engine_dialog")->trigger();
    real.work().tasks.cancel_purpose(QStringLiteral("engines"));
    QVERIFY(real.settle());
    QVERIFY(real.target("megatron").stopped && real.view()->isEnabled());
    real.choose("megatron");
    QCOMPARE(real.view()->verdict()->text(), QStringLiteral("Looking at the plan was stopped."));
    QVERIFY(!real.view()->preview()->isVisible() && real.view()->nearest_button()->isVisible());
    real.view()->nearest_button()->click();
    QVERIFY(real.looked());
    QVERIFY(!real.target("megatron").text.isEmpty());
  }

  /// A method that is switched on later is among what is nearest.
  void what_is_drawn_later_is_looked_through() {
    Looking real;
    QVERIFY(real.ready);
    const auto checked = [&](bool on) {
      real.work().runner.set_enabled("data-parallel", on);
      return real.settle();
    };
    QVERIFY(checked(false));
    const ResultPtr curve = real.work().runner.find("ft")->result;
    std::optional<std::size_t> refused;
    for (std::size_t k = 0; k < curve->points.size() && !refused; ++k)
      if (!engine_file(*find_format("jax"), {{}, curve, k})) refused = k;
    QVERIFY(refused.has_value());
    real.pick("ft", *refused);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.looked());
    const auto before = real.target("jax").nearest_point;
    QVERIFY(!before || before->method != "data-parallel");
    QVERIFY(checked(true));
    QVERIFY(real.looked());
    const auto after = real.target("jax").nearest_point;
    QVERIFY(after.has_value());
    const auto seconds = [&](const views::PickedPoint& point) {
      return real.work().runner.find(point.method)->result->points[point.index].time_s;
    };
    QVERIFY(seconds(*after) <= real.work().runner.find("data-parallel")->result->points[0].time_s);
    QVERIFY(!before || seconds(*after) <= seconds(*before));
  }

  /// The split that is offered for an engine that runs no plan: none that lacks room where a plan does not.
  void an_offered_split_fits_where_plans_do() {
    Looking real;
    QVERIFY(real.ready);
    const ResultPtr curve = real.work().runner.find("ft")->result;
    const ExportFormat& engine = *find_format("megatron");
    const auto near = nearest_split(*curve, 0, {});
    QVERIFY(near && *near);
    for (const bool fits : {true, false}) {
      auto changed = std::make_shared<Scenario>(*curve->scenario);
      changed->settings.memory_limit = fits ? 0 : (*near)->point.memory_bytes - 1;
      Result result = *curve;
      result.scenario = changed;
      const auto split = nearest_split(result, 0, {});
      QVERIFY(split && *split);
      QCOMPARE((*split)->point.fits, fits);
      QCOMPARE(offered_split(engine, *(*split)->result, true).has_value(), fits);
      QVERIFY(offered_split(engine, *(*split)->result, false).has_value());
    }
  }

  void without_a_plan_it_says_so() {
    Looking real;
    QVERIFY(real.ready);
    real.work().document.selection().pick_point(std::nullopt);
    action(real, "engine_dialog")->trigger();
    QVERIFY(real.view()->targets().empty() && !real.view()->list()->isVisible());
    QCOMPARE(real.dialog()->findChild<QLabel*>(QStringLiteral("engine_plan"))->text(),
             QStringLiteral("No plan is picked: click a point of the chart."));
    real.pick("data-parallel", 0);  // and follows when there is one
    QVERIFY(real.looked());
    real.dialog()->close();
    real.pick("ft", 0);  // closed, it looks at nothing
    QTest::qWait(50);
    QVERIFY(!real.work().tasks.newest() || real.work().tasks.newest()->purpose != QStringLiteral("engines"));
  }
};

QTEST_MAIN(EngineDialogTest)
#include "engine_dialog_test.moc"
