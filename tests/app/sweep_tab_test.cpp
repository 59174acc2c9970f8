// SPDX-License-Identifier: Apache-2.0
// The tab Sweep in a window: run, stopped, taken into the scenario, outdated, kept in a session, exported.
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QUndoStack>
#include <QtTest>
#include <fstream>

#include "app/tabs/sweep_tab.h"
#include "core/base/json.h"
#include "real_window.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;
using State = VariationCell::State;

namespace {

/// What a tab of either window has.
template <class Window>
struct Swept : Window {
  views::SweepView& view() { return *part<views::SweepView>(this->window); }
  app::SweepTab& page() { return *tab<app::SweepTab>(this->window); }
  const views::SweepData& data() { return view().chart()->data(); }
  void look() {
    this->window->template findChild<QDockWidget*>(QStringLiteral("sweep"))->raise();
    (void)QTest::qWaitFor([&] { return view().isVisible(); });
  }
  void type(const QString& values) {
    view().values_line()->selectAll();
    QTest::keyClicks(view().values_line(), values);
  }
  bool run() {
    view().run_button()->click();
    return QTest::qWaitFor([&] { return page().sweep() && !page().running(); }, 60000 * kSanitizerFactor);
  }
  /// From an opened model on.
  bool run_over(const QString& batches) {
    if (!this->open()) return false;
    look();
    type(batches);
    return run();
  }
  void pick(std::int64_t value, const char* method) {
    view().chart()->set_picked(views::SweepChart::Picked{value, method});
  }
};
using Fake = Swept<WindowFixture>;
using RealSweep = Swept<Real>;

}  // namespace

class SweepTabTest : public QObject {
  Q_OBJECT

 private slots:
  void before_anything_is_run() {
    Fake f;
    f.look();
    QVERIFY(f.data().nothing.startsWith("Open a model to see how time, peak memory and price change"));
    QVERIFY(!f.view().run_button()->isEnabled());
    QVERIFY(f.open());
    QVERIFY(f.data().nothing.startsWith("Run asks each checked method"));
    QCOMPARE(f.view().values_line()->text(), QString("64..1024"));
    QVERIFY(f.view().run_button()->isEnabled() && !f.view().use_button()->isEnabled());
    // The double's models have no hidden size.
    f.view().choose(Varied::hidden);
    QVERIFY(!f.view().run_button()->isEnabled() && f.view().state_words().contains("sizes that its file fixes"));
    f.view().choose(Varied::devices);
    QCOMPARE(f.view().values_line()->text(), QString("2..16"));
  }

  void each_checked_method_is_asked_at_each_value() {
    Fake f;
    QVERIFY(f.open());
    f.look();
    const int before = fake_world().exact_runs;
    QVERIFY(f.run());
    QCOMPARE(f.data().sweep->cells.size(), std::size_t(15));  // three methods are checked, five values
    QCOMPARE(fake_world().exact_runs - before, 4);            // the chart's own answer is not searched again
    QVERIFY(f.data().nothing.isEmpty() && !f.data().stale);
    QCOMPARE(f.data().current, std::int64_t(256));
    const app::MethodRun* run = f.runner().find("ft");
    const ResultPtr judged = f.window->work().judge.judged(*run);
    const VariationCell* own = f.data().sweep->find(256, "ft");
    QVERIFY(own && own->fits());
    QCOMPARE(own->fastest->time_s, judged->points[*judged->fastest_that_fits()].time_s);
    QCOMPARE(f.data().sweep->find(1024, "data-parallel")->state, State::nothing_fits);
    QVERIFY2(f.view().state_words().startsWith("15 answers in "), qPrintable(f.view().state_words()));
    QVERIFY(f.view().subject_words().startsWith("transformer-s on 2 × 8 V100-16GB, 256 tokens, fp32"));
  }

  void a_value_that_cannot_be_has_its_reason() {
    Fake f;
    QVERIFY(f.run_over("13,128"));
    const VariationCell* cell = f.data().sweep->find(13, "ft");
    QCOMPARE(cell->state, State::cannot_be);
    QCOMPARE(cell->reason, std::string("transformer-s: node 'reshape': batch 13 cannot be bound"));
    f.pick(13, "ft");
    QVERIFY(!f.view().use_button()->isEnabled());
    QVERIFY(f.view().use_button()->toolTip().contains("batch 13 cannot be bound"));
  }

  void answers_appear_as_they_come_and_stay_when_it_is_stopped() {
    Fake f;
    QVERIFY(f.open());
    f.look();
    fake_world().exact_ms = 200;
    f.view().run_button()->click();
    QVERIFY(f.page().running());
    QTRY_VERIFY_WITH_TIMEOUT(f.data().sweep && f.data().sweep->cells.size() >= 11, 60000);
    QVERIFY(f.page().running());
    QCOMPARE(f.view().run_button()->text(), QString("Stop"));
    QVERIFY(!f.data().sweep->complete());
    fake_world().held = true;
    f.view().run_button()->click();
    QTRY_VERIFY_WITH_TIMEOUT(!f.page().running(), 10000);
    fake_world().held = false;
    const std::size_t kept = f.data().sweep->cells.size();
    QVERIFY(kept >= 11 && kept < 15);
    QCOMPARE(f.view().state_words(), QString("stopped with %1 of 15 answers").arg(kept));
    QVERIFY(f.run());
    QVERIFY(f.data().sweep->complete());
  }

  void what_is_picked_becomes_the_scenario_and_can_be_undone() {
    Fake f;
    QVERIFY(f.run_over("128,256"));
    f.pick(128, "data-parallel");
    QCOMPARE(f.view().use_button()->text(), QString("Use batch 128"));
    f.view().use_button()->click();
    QVERIFY(f.settle());
    QCOMPARE(f.scenario_settings().batch, std::int64_t(128));
    QTRY_VERIFY(f.document().selection().point() &&
                *f.document().selection().point() == views::PickedPoint({"data-parallel", 0}));
    // It is of this scenario still, whichever batch is the present one.
    QVERIFY(!f.data().stale && f.data().current == 128);
    QCOMPARE(f.view().use_button()->text(), QString("Pick its plan"));
    f.document().undo_stack().undo();
    QVERIFY(f.settle());
    QCOMPARE(f.scenario_settings().batch, std::int64_t(256));
    QVERIFY(!f.data().stale && f.data().current == 256);
    // Of the curve, the plan that the sweep names.
    f.pick(256, "ft");
    f.view().use_button()->click();
    QTRY_VERIFY(f.document().selection().point() && f.document().selection().point()->method == "ft");
    QCOMPARE(f.document().selection().point()->index, f.data().sweep->find(256, "ft")->fastest->point);
  }

  void another_scenario_makes_it_outdated() {
    Fake f;
    QVERIFY(f.run_over("128,256"));
    f.pick(128, "ft");
    f.document().set_option("inter-bandwidth-scale", 2, 0);
    QVERIFY(f.settle());
    QVERIFY(f.data().stale);
    QVERIFY(f.view().subject_words().startsWith("Of another scenario than the one that is open: transformer-s on"));
    QVERIFY(!f.view().use_button()->isEnabled());
    f.document().undo_stack().undo();
    QVERIFY(f.settle());
    QVERIFY(!f.data().stale && f.view().use_button()->isEnabled());
    // Devices are of the scenario, since it is the batch that is varied.
    f.document().set_option("devices", 8, 0);
    QVERIFY(f.settle() && f.data().stale);
  }

  void without_a_model_it_stays_to_be_read() {
    Fake f;
    QVERIFY(f.run_over("128,256"));
    f.pick(128, "ft");
    f.document().close_model();
    QTRY_VERIFY(!f.document().scenario());
    QVERIFY(f.data().stale && f.data().sweep->complete());
    QVERIFY(!f.view().use_button()->isEnabled() && !f.view().run_button()->isEnabled());
    f.document().undo_stack().undo();
    QVERIFY(f.settle());
    QVERIFY(!f.data().stale && f.view().run_button()->isEnabled());
  }

  void a_price_is_taken_at_once() {
    Fake f;
    QVERIFY(f.run_over("128,256"));
    QCOMPARE(views::figure_title(f.data(), views::SweepFigure::third), QString("Tokens per second"));
    f.view().price_box()->setValue(2);
    QVERIFY(f.settle());
    QVERIFY(!f.data().stale);
    QCOMPARE(views::figure_title(f.data(), views::SweepFigure::third), QString("Price per million tokens"));
    const VariationCell* cell = f.data().sweep->find(256, "ft");
    const double tokens = 256.0 * 256, price = 16 * 2 * cell->fastest->time_s / 3600 / tokens * 1e6;
    QVERIFY(std::abs(views::shown_value(f.data(), *cell, views::SweepFigure::third).value() / price - 1) < 1e-12);
  }

  void a_session_keeps_it() {
    Fake f;
    QVERIFY(f.open());
    f.look();
    f.view().choose(Varied::devices);
    f.type("8,16,32");
    QVERIFY(f.run());
    const std::string written = write_variation(*f.page().sweep());
    const QString path = f.folder.filePath("s.turnpoint");
    QVERIFY(f.window->sessions().save(path));
    Fake other;
    other.window->sessions().open(path);
    QVERIFY(other.settle());
    other.look();
    QVERIFY(other.page().sweep() && write_variation(*other.page().sweep()) == written);
    QVERIFY(!other.data().stale && other.data().current == 16);
    QVERIFY(other.view().quantity() == Varied::devices && other.view().values_line()->text() == "8,16,32");
    other.window->sessions().begin_anew();
    QVERIFY(!other.page().sweep());
    // One that was tampered with is said to be so, and the rest of the session opens.
    std::ifstream file(path.toStdString());
    auto document = nlohmann::json::parse(file);
    document["window"]["views"]["sweep"]["sweep"] = "{}";
    std::ofstream(path.toStdString()) << document.dump();
    other.window->sessions().open(path);
    QVERIFY(other.settle() && !other.page().sweep());
    QVERIFY(part<views::MessageBar>(other.window)->isVisible());
  }

  void its_answers_are_asked_about_before_they_are_lost() {
    Fake f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    QVERIFY(f.window->sessions().save(f.folder.filePath("s.turnpoint")));
    f.look();
    f.type("128,256");
    QVERIFY(f.run());
    const auto question = [&] { return f.window->findChild<QMessageBox*>(QStringLiteral("ask_save")); };
    QVERIFY(!f.window->close());
    QTRY_VERIFY(question());
    QCOMPARE(question()->informativeText(), QStringLiteral("Changed since it was opened or saved: the sweep."));
    question()->button(QMessageBox::Cancel)->click();
    QTRY_VERIFY(!question());
    QVERIFY(f.window->sessions().save(f.folder.filePath("s.turnpoint")));
    QVERIFY(f.window->close());
  }

  void it_is_exported() {
    Fake f;
    QVERIFY(f.run_over("128,256"));
    const QString csv = f.folder.filePath("s.csv"), json = f.folder.filePath("s.json"),
                  svg = f.folder.filePath("s.svg");
    QVERIFY(f.page().export_to(csv) && f.page().export_to(json) && f.page().export_picture(svg));
    QCOMPARE(*read_file(csv.toStdString()), variation_csv(*f.data().sweep));
    QVERIFY(read_variation(*read_file(json.toStdString()), "s.json"));
    QVERIFY(read_file(svg.toStdString())->find("Peak memory") != std::string::npos);
    emit f.view().export_requested("copy");
    QCOMPARE(QGuiApplication::clipboard()->text(), views::sweep_rows(f.data()));
  }

  /// On the real core: sizes and numbers of micro-batches.
  void a_hidden_size_is_another_model() {
    RealSweep real;
    real.window->opener().open_scenario("builtin:gpt2?layers=1&hidden=128&batch=16&sequence=64", "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    real.look();
    real.view().choose(Varied::hidden);
    QCOMPARE(real.view().values_line()->text(), QString("32..512"));
    real.type("64,100,256");
    QVERIFY(real.run());
    QCOMPARE(real.data().sweep->find(100, "ft")->state, State::cannot_be);
    real.pick(64, "ft");
    QCOMPARE(real.view().use_button()->text(), QString("Use hidden size 64"));
    real.view().use_button()->click();
    QVERIFY(real.settle());
    const app::Document& document = real.window->work().document;
    QCOMPARE(document.state().model, std::string("builtin:gpt2?hidden=64&layers=1&batch=16&sequence=64"));
    QVERIFY(!real.data().stale && real.data().current == 64);
    const VariedPlan plan = *real.data().sweep->find(64, "ft")->fastest;
    QTRY_VERIFY(document.selection().point() && document.selection().point()->index == plan.point);
    QCOMPARE(real.window->work().runner.find("ft")->result->points[plan.point].time_s, plan.time_s);
  }

  void another_size_leaves_what_the_user_chose() {
    RealSweep real;
    real.window->opener().open_scenario("builtin:gpt2?layers=1&hidden=128&batch=16&sequence=64", "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    app::Document& document = real.window->work().document;
    const Settings opened = document.scenario()->settings;
    Settings chosen = opened;
    chosen.precision = opened.precision == Precision::fp32 ? Precision::bf16 : Precision::fp32;
    document.set_option("precision", double(int(chosen.precision)), 0);
    document.set_option("batch", 8, 0);
    document.set_option("sequence", 32, 0);
    document.set_option("memory-limit", double(8ll << 30), 0);
    QVERIFY(real.settle());
    chosen = document.scenario()->settings;
    QVERIFY(chosen.precision != opened.precision && chosen.batch == 8 && chosen.sequence == 32);
    QCOMPARE(chosen.memory_limit, std::int64_t(8) << 30);
    real.look();
    real.view().choose(Varied::hidden);
    real.type("64,128");
    QVERIFY(real.run());
    real.pick(64, "ft");
    real.view().use_button()->click();
    QVERIFY(real.settle());
    QCOMPARE(document.state().model, std::string("builtin:gpt2?hidden=64&layers=1&batch=16&sequence=64"));
    QVERIFY(document.scenario()->settings == chosen);
    QVERIFY(!real.data().stale && real.data().current == 64);
    document.undo_stack().undo();
    QVERIFY(real.settle());
    QVERIFY(document.scenario()->settings == chosen && !real.data().stale && real.data().current == 128);
  }

  /// A config and a profile that are written anew under the same names.
  void a_file_with_another_content_is_another_scenario_data() {
    QTest::addColumn<Varied>("quantity");
    QTest::addColumn<bool>("model");
    for (const Varied quantity : {Varied::batch, Varied::hidden})
      for (const bool model : {true, false})
        QTest::addRow("%s, %s", quantity_of(quantity).key, model ? "model" : "hardware") << quantity << model;
  }
  void a_file_with_another_content_is_another_scenario() {
    QFETCH(Varied, quantity);
    QFETCH(bool, model);
    RealSweep real;
    const std::string config = real.folder.filePath("config.json").toStdString();
    const std::string profile = real.folder.filePath("profile.json").toStdString();
    const auto write = [&](int layers, double flops) {
      std::ofstream(config) << R"({"model_type": "gpt2", "n_embd": 64, "n_head": 2, "vocab_size": 100,
                                   "n_positions": 32, "n_layer": )"
                            << layers << "}";
      auto cluster = std::make_shared<Cluster>(**open_hardware("v100-16gb-1x2"));
      cluster->device.peak_fp32 *= flops;
      std::ofstream(profile) << write_hardware_profile(*cluster);
    };
    write(1, 1);
    real.window->opener().open_scenario(config, profile, 0);
    QVERIFY(real.settle());
    real.look();
    real.view().choose(quantity);
    real.type("64,128");
    QVERIFY(real.run() && !real.data().stale);
    const QString session = real.folder.filePath("s.turnpoint");
    QVERIFY(real.window->sessions().save(session));
    const auto again = [&] {
      RealSweep other;
      other.window->sessions().open(session);
      if (!other.settle()) return QString("not settled");
      other.look();
      return QString(!other.page().sweep() ? "none" : other.data().stale ? "stale" : "same");
    };
    QCOMPARE(again(), QString("same"));
    write(model ? 2 : 1, model ? 1 : 2);
    QCOMPARE(again(), QString("stale"));
  }

  void a_task_graph_is_placed_on_other_numbers_of_devices() {
    RealSweep real;
    QVERIFY(real.open(real.random_graph(7, 40)));
    real.look();
    real.view().choose(Varied::batch);
    QVERIFY(!real.view().run_button()->isEnabled());
    QVERIFY(real.view().state_words().endsWith("is a task graph, which has no batch to choose"));
    real.view().choose(Varied::devices);
    real.type("1,2");
    QVERIFY(real.run());
    const std::string method = real.data().sweep->methods.front();
    QVERIFY(real.data().sweep->find(2, method));
    const VariationCell cell = *real.data().sweep->find(2, method);
    QVERIFY2(cell.fits() && cell.clock == Clock::simulated, cell.reason.c_str());
    real.pick(2, method.c_str());
    real.view().use_button()->click();
    QVERIFY(real.settle());
    const app::Workspace& work = real.window->work();
    QCOMPARE(work.document.scenario()->cluster->devices(), 2);
    QVERIFY(!real.data().stale);
    QCOMPARE(work.runner.find(method)->result->points[cell.fastest->point].time_s, cell.fastest->time_s);
  }

  void a_number_of_micro_batches_is_a_variant() {
    RealSweep real;
    real.window->opener().open_scenario("builtin:gpt2?layers=1&hidden=128&batch=16&sequence=64", "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    real.look();
    real.view().choose(Varied::micro_batches);
    real.type("1,4");
    QVERIFY(real.run());
    QVERIFY(real.data().sweep->find(4, "fsdp")->fits());
    real.pick(4, "fsdp");
    QVERIFY2(real.view().use_button()->text().endsWith(", 4 micro-batches"),
             qPrintable(real.view().use_button()->text()));
    real.view().use_button()->click();
    QVERIFY(real.settle());
    const app::MethodRun* run = real.window->work().runner.find("fsdp:micro-batches=4");
    QVERIFY(run && run->enabled && run->result);
    QCOMPARE(run->result->points[0].time_s, real.data().sweep->find(4, "fsdp")->fastest->time_s);
    const auto& picked = real.window->work().document.selection().point();
    QTRY_VERIFY(picked && picked->method == "fsdp:micro-batches=4");
  }
};

QTEST_MAIN(SweepTabTest)
#include "sweep_tab_test.moc"
