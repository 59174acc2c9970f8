// SPDX-License-Identifier: Apache-2.0
// The Validation tab and "Measure this machine" in the real window, on the real core: whatever stands where the probe
// should is one error and a window that goes on; what cannot be run says why; reports are kept, saved and opened.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QFileInfo>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "app/measure_dialog.h"
#include "app/plan_loader.h"
#include "app/real_window.h"
#include "app/session.h"
#include "app/tabs/hardware_tab.h"
#include "app/tabs/validation_tab.h"
#include "app/task_manager.h"
#include "core/base/json.h"
#include "validation/reports.h"
#include "views/common/message_bar.h"
#include "views/hardware/hardware_view.h"
#include "views/plan/plan_panel.h"
#include "views/plan/validated_section.h"
#include "views/validation/validation_bars.h"
#include "views/validation/validation_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const QByteArray kHello =
    R"(echo '{"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"statistic":"q1","devices":[{"name":"core","memory_bytes":1000000000}]}')"
    "\n";

/// A small network on two devices: what any machine can run.
constexpr const char* kModel = "builtin:lenet?batch=32";
constexpr const char* kHardware = "v100-16gb-1x2";

struct Validating : Real {
  Validating() { window->opener().open_scenario(kModel, kHardware, 0); }
  views::ValidationView& view() { return *part<views::ValidationView>(window); }
  app::ValidationTab& page() { return *tab<app::ValidationTab>(window); }
  QAction* run() { return action(*this, "validate"); }
  bool quiet() {
    return QTest::qWaitFor([&] { return !window->work().validations.running() && window->work().settled(); }, 300000);
  }
  const views::Message* message() { return window->voice().bar().current(); }
  /// The error on show, whole; empty without one.
  QString error() {
    const auto* shown = message();
    return shown && shown->kind == views::Message::Kind::error ? shown->what + u'|' + shown->where : QString();
  }
};

}  // namespace

class ValidationPageTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> home_;

  /// A script in the place of turnpoint-probe.
  void fake(const QByteArray& body) {
    const QString path = home_->filePath(QStringLiteral("probe"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("#!/bin/sh\n" + body);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    qputenv("TURNPOINT_PROBE", path.toLocal8Bit());
  }

 private slots:
  void init() {
    home_ = std::make_unique<QTemporaryDir>();
    qputenv("XDG_DATA_HOME", home_->path().toLocal8Bit());
    qputenv("XDG_CACHE_HOME", home_->path().toLocal8Bit());
    qputenv("TURNPOINT_PROBE", TURNPOINT_BINARY_DIR "/turnpoint-probe");
  }
  void cleanup() { qunsetenv("TURNPOINT_PROBE"); }

  void bad_probes_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QString>("said");
    QTest::newRow("crash") << kHello + "kill -SEGV $$\n"
                           << "signal 11";
    QTest::newRow("crash at once") << QByteArray("echo out of luck >&2\nexit 9\n") << "out of luck";
    QTest::newRow("garbage") << QByteArray("echo hello world\n") << "no message";
    QTest::newRow("cut short") << kHello + "printf '{\"type\":\"oper'\n"
                               << "middle of a line";
    QTest::newRow("its own error")
        << kHello + "echo '{\"type\":\"error\",\"code\":\"device\",\"what\":\"no driver\",\"hint\":\"install one\"}'\n"
        << "no driver";
  }
  void bad_probes() {
    QFETCH(QByteArray, body);
    QFETCH(QString, said);
    fake("cat > /dev/null\n" + body);
    Validating f;
    QVERIFY(f.settle());
    QVERIFY2(f.run()->isEnabled(), qPrintable(f.run()->toolTip()));
    f.run()->trigger();
    QVERIFY(f.quiet());
    QVERIFY2(f.error().contains(said, Qt::CaseInsensitive), qPrintable(f.error()));
    QCOMPARE(f.window->voice().bar().count(), 1);
    QVERIFY(f.page().reports().empty() && f.view().is_empty());
    QVERIFY(f.run()->isEnabled());
    // The same of measuring: one error, and the hardware stays what it was.
    f.window->voice().bar().dismiss();
    tab<app::HardwareTab>(f.window)->measure({});
    QVERIFY(!part<views::HardwareView>(f.window)->measure_button()->isEnabled());
    QVERIFY(f.quiet());
    QTRY_VERIFY2(f.error().contains(said, Qt::CaseInsensitive), qPrintable(f.error()));
    QCOMPARE(f.window->voice().bar().count(), 1);
    QCOMPARE(f.window->work().document.state().hardware, std::string(kHardware));
    QVERIFY(part<views::HardwareView>(f.window)->measure_button()->isEnabled());
  }

  void a_probe_that_hangs_can_be_stopped() {
    fake("cat > /dev/null\n" + kHello + "sleep 3600\n");
    Validating f;
    QVERIFY(f.settle());
    f.run()->trigger();
    QTRY_VERIFY(f.window->work().tasks.busy());
    QTest::qWait(300);
    QVERIFY2(f.window->work().validations.phase().startsWith("Running"),
             qPrintable(f.window->work().validations.phase()));
    auto* stop = f.window->findChild<QToolButton*>("validation_stop");
    QVERIFY(stop && stop->isVisible());
    stop->click();
    QVERIFY(f.quiet());
    QVERIFY(!stop->isVisible());
    QVERIFY2(!f.message(), "stopping is no error");
    QVERIFY(f.page().reports().empty());
  }

  void the_newest_request_wins() {
    fake("cat > /dev/null\n" + kHello + "sleep 3600\n");
    Validating f;
    QVERIFY(f.settle());
    f.run()->trigger();
    QTest::qWait(300);
    fake("cat > /dev/null\necho no luck >&2\nexit 3\n");
    f.run()->trigger();
    QVERIFY(QTest::qWaitFor([&] { return !f.window->work().validations.running(); }, 60000));
    QVERIFY2(f.error().contains("no luck"), qPrintable(f.error()));
    QCOMPARE(f.window->voice().bar().count(), 1);
  }

  void a_plan_is_run_compared_and_calibrates() {
    Validating f;
    QVERIFY(f.settle());
    f.run()->trigger();
    QVERIFY(f.view().isVisible());
    QVERIFY(f.quiet());
    QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
    QCOMPARE(f.page().reports().size(), std::size_t(1));
    const ValidationReport& report = *f.page().reports()[0];
    QCOMPARE(report.model, f.window->work().document.scenario()->model->name);
    QCOMPARE(report.ranks, 2);
    QVERIFY(report.step.measured && *report.step.measured > 0 && report.execution.measured);
    QVERIFY(report.numerics && report.numerics->holds());
    QVERIFY(report.bytes_sent.measured);
    QCOMPARE(*report.bytes_sent.measured, report.bytes_sent.predicted);
    const auto content = views::make_validation_content(f.view().current(), nullptr, report_model(f));
    int linked = 0;
    for (const auto& row : content->rows) linked += row.op.valid();
    QVERIFY(linked > 5);
    QCOMPARE(linked, int(report.operators.size()));
    // Fed back: another profile is the hardware, and the same run would have been predicted better by it.
    QVERIFY2(action(f, "calibrate")->isEnabled(), qPrintable(action(f, "calibrate")->toolTip()));
    action(f, "calibrate")->trigger();
    QVERIFY(f.quiet());
    QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
    QCOMPARE(f.page().reports().size(), std::size_t(2));
    QVERIFY(f.page().reports()[1]->calibrated && !f.page().reports()[0]->calibrated);
    QVERIFY(std::abs(*f.page().reports()[1]->execution.error()) < std::abs(*f.page().reports()[0]->execution.error()));
    QCOMPARE(f.view().current(), f.page().reports()[0]);
    QCOMPARE(f.view().compared(), f.page().reports()[1]);
    QTRY_VERIFY(f.window->work().document.state().hardware.ends_with("-calibrated.json"));
    QVERIFY(f.quiet());
    QVERIFY(f.view().isVisible());
    // What is run on it is predicted with what runs showed.
    QVERIFY2(f.run()->isEnabled(), qPrintable(f.run()->toolTip()));
    f.run()->trigger();
    QVERIFY(f.quiet());
    QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
    QCOMPARE(f.page().reports().size(), std::size_t(3));
    QVERIFY(f.page().reports()[2]->calibrated);
  }

  void several_plans_are_run_one_after_the_other() {
    Validating f;
    QVERIFY(f.settle());
    const std::size_t plans = f.page().sample().size();
    QVERIFY(plans >= 3 && plans <= app::ValidationTab::kSample);
    action(f, "validate_sample")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(f.page().reports().size() >= 3, 60000);
    f.view().list()->setCurrentRow(1);
    const auto shown = f.view().current();
    QVERIFY(f.quiet());
    QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
    QCOMPARE(f.page().reports().size(), plans);
    QCOMPARE(f.view().page(), views::ValidationView::Page::plans);
    QVERIFY2(f.view().current() == shown, "those that came later have not pushed it away");
    QCOMPARE(f.view().comparable().size(), plans);
  }

  void this_machine_is_measured_and_becomes_the_hardware() {
    Validating f;
    QVERIFY(f.settle());
    MeasureOptions options;
    options.backend = ProbeBackend::cpu;
    options.ranks = 2;
    options.budget_s = 3;
    options.item_s = 0.01;
    for (const int time : {1, 2}) {
      tab<app::HardwareTab>(f.window)->measure(options);
      QVERIFY(tab<app::HardwareTab>(f.window)->measuring());
      QVERIFY(QTest::qWaitFor([&] { return !tab<app::HardwareTab>(f.window)->measuring(); }, 60000));
      QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
      QTRY_COMPARE(f.window->work().document.state().hardware, std::string("local"));
      QVERIFY(f.quiet());
      const ClusterPtr cluster = f.window->work().document.scenario()->cluster;
      QCOMPARE(cluster->devices(), 2);
      QVERIFY(!cluster->operators.empty());
      QVERIFY(part<views::HardwareView>(f.window)->isVisible());
      QTRY_VERIFY(part<views::HardwareView>(f.window)->content() &&
                  part<views::HardwareView>(f.window)->content()->cluster == cluster);
      bool told = false, fitted = false, reused = false;
      for (const auto& remark : part<views::HardwareView>(f.window)->content()->remarks) {
        told |= remark.what.contains("measured by turnpoint-probe");
        fitted |= remark.what.contains("times fitted within");
        reused |= remark.what.contains("times were measured before");
      }
      QVERIFY(told);
      QCOMPARE(reused, time == 2);
      QCOMPARE(fitted, !cluster->fits.empty());  // on a busy machine there may be too few times
      if (time == 1) first_ = cluster;
    }
    QVERIFY2(first_ != f.window->work().document.scenario()->cluster, "measured anew, it is read anew");
    first_.reset();
  }

  void an_absent_probe_is_said_before_anything_starts() {
    qputenv("TURNPOINT_PROBE", "/nowhere/turnpoint-probe");
    Validating f;
    QVERIFY(f.settle());
    QVERIFY(!f.run()->isEnabled());
    QVERIFY2(f.page().refusal().contains("/nowhere"), qPrintable(f.page().refusal()));
    QCOMPARE(f.run()->toolTip(), f.page().refusal());
    action(f, "measure")->trigger();
    QVERIFY2(f.error().contains("/nowhere"), qPrintable(f.error()));
    QVERIFY(!f.window->findChild<QWidget*>("measure_dialog"));
  }

  void what_cannot_be_run_says_why() {
    Validating f;
    QVERIFY2(f.page().refusal().contains("Open a model"), qPrintable(f.page().refusal()));
    QVERIFY(f.settle());
    QCOMPARE(f.page().refusal(), QString());
    f.window->work().document.set_option("precision", 1, 0);
    QVERIFY(f.settle());
    QVERIFY2(f.page().refusal().contains("fp32"), qPrintable(f.page().refusal()));
    f.window->work().document.set_option("precision", 0, 0);
    f.window->work().document.set_option("intra-bandwidth-scale", 2, 0);
    QVERIFY(f.settle());
    QVERIFY2(f.page().refusal().contains("What-if"), qPrintable(f.page().refusal()));
    f.window->work().document.reset_factors();
    f.window->work().document.open_hardware("v100-16gb-2x8");
    QVERIFY(f.settle());
    QVERIFY2(f.page().refusal().contains("16 devices"), qPrintable(f.page().refusal()));
    // Of a plan of several micro-batches in the same words.
    f.window->work().document.selection().pick_point(views::PickedPoint{"ft", 0});
    QVERIFY(f.settle());
    QVERIFY(kind_of(*f.window->work().loader.picked_plan()) == PlanKind::pipeline);
    QVERIFY2(f.page().refusal().contains("Choose fewer devices"), qPrintable(f.page().refusal()));
    // One device's part of it can be run all the same.
    f.view().restore_state({{"way", "cpu_slice"}});
    QCOMPARE(f.page().refusal(), QString());
    QVERIFY(f.open(f.random_graph(7, 20)));
    QVERIFY2(f.page().refusal().contains("task graph"), qPrintable(f.page().refusal()));
  }

  /// The Plan dock: how to get a report, then the report of the picked plan and of no other.
  void the_plan_dock_shows_the_newest_run() {
    Validating v;
    QVERIFY(v.quiet());
    const auto words = [&] { return part<views::PlanPanel>(v.window)->validated()->text(); };
    QTRY_VERIFY2(words().contains("Not run yet") && words().contains("Ctrl+R"), qPrintable(words()));
    QVERIFY(part<views::PlanPanel>(v.window)->validate_button()->isEnabled());
    part<views::PlanPanel>(v.window)->validate_button()->click();
    QVERIFY(v.quiet());
    QTRY_VERIFY2(!v.page().reports().empty(), qPrintable(v.error()));
    QTRY_VERIFY2(words().contains("Time ") && words().contains("Peak ") && words().contains("2 CPU ranks"),
                 qPrintable(words()));
    QVERIFY(v.page().report_of_picked() == v.page().reports().front());
    part<views::FrontierChart>(v.window)->step_pick(-1, views::FrontierChart::Stride::every);
    QTRY_VERIFY2(words().contains("Not run yet"), qPrintable(words()));
    part<views::FrontierChart>(v.window)->step_pick(1, views::FrontierChart::Stride::every);
    QTRY_VERIFY2(words().contains("Time "), qPrintable(words()));
    v.page().read(app::Session());  // of a session without reports
    QVERIFY2(words().contains("Not run yet"), qPrintable(words()));
  }

  /// Hours of work are refused before they begin, with what would have to change.
  void too_much_for_this_machine() {
    Validating v;
    v.window->opener().open_scenario("builtin:transformer?layers=1&hidden=40960&batch=4", kHardware, 0);
    QVERIFY(v.quiet());
    // Time or memory, whichever this machine has less of.
    const auto refused = [&] { return v.page().refusal(); };
    QTRY_VERIFY2(refused().contains("on this machine") && refused().contains("smaller model"), qPrintable(refused()));
    QVERIFY2(!refused().contains("--"), qPrintable(refused()));
    QVERIFY(!v.run()->isEnabled());
    QVERIFY(!part<views::PlanPanel>(v.window)->validate_button()->isEnabled());
  }

  void a_placement_is_run() {
    Validating v;
    constexpr const char* kPlacing = "heft:recurrent=whole";
    QVERIFY(v.window->work().runner.add_split(kPlacing));
    QVERIFY(v.quiet());
    v.window->work().document.selection().pick_point(views::PickedPoint{kPlacing, 0});
    QVERIFY(v.quiet());
    QTRY_VERIFY(placement_on_show(*v.window));
    auto* run = v.run();
    QTRY_VERIFY2(run->isEnabled(), qPrintable(tab<app::ValidationTab>(v.window)->refusal()));
    run->trigger();
    QVERIFY(v.quiet());
    QTRY_VERIFY2(!v.page().reports().empty(), qPrintable(v.error()));
    const auto report = tab<app::ValidationTab>(v.window)->reports().front();
    QVERIFY(report->placement && report->numerics && report->numerics->holds());
    QTRY_VERIFY(part<views::PlanPanel>(v.window)->validated()->text().contains("Time "));
  }

  void the_dialog_asks_what_measuring_needs() {
    Validating f;
    QVERIFY(f.settle());
    action(f, "measure")->trigger();
    auto* dialog = f.window->findChild<app::MeasureDialog*>();
    QVERIFY(dialog && dialog->isVisible());
    MeasureOptions options = dialog->options();
    QVERIFY(options.backend == ProbeBackend::automatic && options.ranks == 0 && !options.model);
    dialog->backend()->setCurrentIndex(1);
    dialog->ranks()->setValue(3);
    dialog->budget()->setValue(7);
    dialog->with_model()->setChecked(true);
    QVERIFY(!options.fresh);
    dialog->fresh()->setChecked(true);
    QVERIFY(dialog->options().fresh);
    options = dialog->options();
    QVERIFY(options.backend == ProbeBackend::cpu && options.ranks == 3 && options.budget_s == 7);
    QCOMPARE(options.model, f.window->work().document.scenario()->model);
    dialog->backend()->setCurrentIndex(2);
    QVERIFY(!dialog->ranks()->isEnabled());
    QCOMPARE(dialog->options().ranks, 0);
    dialog->reject();
    QVERIFY(!tab<app::HardwareTab>(f.window)->measuring());
  }

  void ways_become_choices() {
    using Way = views::ValidationWay;
    Scenario scenario;
    scenario.cluster = open_hardware("v100-16gb-1x2").value();
    QCOMPARE(app::step_choice(Way::cpu_ranks, true, scenario, 300).budget_s, 300.0);
    const auto ranks = app::step_choice(Way::cpu_ranks, false, scenario);
    QVERIFY(ranks.backend == ProbeBackend::cpu && ranks.mode == StepMode::ranks && !ranks.prove);
    const auto part = app::step_choice(Way::cpu_slice, true, scenario);
    QVERIFY(part.backend == ProbeBackend::cpu && part.mode == StepMode::slice && part.prove);
    const auto gpu = app::step_choice(Way::cuda_slice, true, scenario);
    QVERIFY(gpu.backend == ProbeBackend::cuda && gpu.mode == StepMode::slice);
    // The part of the only device is the whole.
    scenario.cluster = open_hardware("v100-16gb-1x1").value();
    QVERIFY(app::step_choice(Way::cuda_slice, true, scenario).mode == StepMode::ranks);
  }

  void one_part_of_a_large_plan_is_measured_and_its_exchanges_are_not() {
    Validating f;
    f.window->opener().open_scenario(kModel, "v100-16gb-2x8", 0);
    QVERIFY(f.settle());
    QVERIFY(!f.run()->isEnabled());
    f.view().restore_state({{"way", "cpu_slice"}});
    QVERIFY2(f.run()->isEnabled(), qPrintable(f.run()->toolTip()));
    f.run()->trigger();
    QVERIFY(f.quiet());
    QVERIFY2(f.error().isEmpty(), qPrintable(f.error()));
    QCOMPARE(f.page().reports().size(), std::size_t(1));
    const ValidationReport& report = *f.page().reports()[0];
    QCOMPARE(report.mode, std::string("slice"));
    QVERIFY(report.execution.measured && !report.network.measured && !report.bytes_sent.measured);
    for (const ComparedValue& value : report.collectives) QVERIFY2(!value.measured, value.name.c_str());
    const auto content = views::make_validation_content(f.view().current(), nullptr, nullptr);
    for (std::size_t i = 0; i < content->rows.size(); ++i)
      for (const auto& bar : f.view().bars()->bars(int(i)))
        QCOMPARE(bar.kind == views::ValidationBars::Bar::Kind::modelled, !content->rows[i].value->measured);
  }

  void a_way_that_the_probe_does_not_have_is_one_error() {
    Validating f;
    QVERIFY(f.settle());
    f.view().restore_state({{"way", "cuda_slice"}});
    QVERIFY(f.run()->isEnabled());
    f.run()->trigger();
    QVERIFY(f.quiet());
    if (!f.page().reports().empty()) QSKIP("this machine has a GPU that carried it out");
    QVERIFY2(f.error().contains("libcuda"), qPrintable(f.error()));
    QCOMPARE(f.window->voice().bar().count(), 1);
  }

  void reports_are_opened_saved_exported_and_kept_in_sessions() {
    Validating f;
    QVERIFY(f.settle());
    const QString path = f.folder.filePath("one.json"), session = f.folder.filePath("s.turnpoint");
    QVERIFY(write_file_atomically(path.toStdString(), write_validation(ranks_report()).dump()).has_value());
    f.window->opener().open_path(path);
    QCOMPARE(f.page().reports().size(), std::size_t(1));
    QVERIFY(f.view().isVisible() && !f.view().is_empty());
    QVERIFY(!action(f, "calibrate")->isEnabled());
    const auto text_of = [&](const QString& name) {
      const QString target = f.folder.filePath(name);
      name.endsWith(".json") ? f.page().save(target) : f.page().export_report(target);
      QFile file(target);
      return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    QVERIFY(text_of("a.csv").contains("fc1: all_reduce"));
    QVERIFY(text_of("a.md").contains("fc1"));
    const auto again = read_validation(nlohmann::json::parse(text_of("a.json")), "a.json");
    QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
    QCOMPARE(write_validation(*again), write_validation(ranks_report()));
    QVERIFY(!f.page().save("/nowhere/a.json"));
    QVERIFY(f.error().contains("/nowhere"));

    f.view().show_page(views::ValidationView::Page::table);
    QVERIFY(f.window->sessions().save(session));
    Real other;
    other.window->sessions().open(session);
    QVERIFY(other.settle());
    QCOMPARE(tab<app::ValidationTab>(other.window)->reports().size(), std::size_t(1));
    QCOMPARE(write_validation(*part<views::ValidationView>(other.window)->current()), write_validation(ranks_report()));
    QCOMPARE(part<views::ValidationView>(other.window)->page(), views::ValidationView::Page::table);
    // A session from before there were reports has none.
    auto old = load_session_document(session);
    old.erase("reports");
    QVERIFY(write_file_atomically(session.toStdString(), old.dump()).has_value());
    other.window->sessions().open(session);
    QVERIFY(other.settle());
    QVERIFY(tab<app::ValidationTab>(other.window)->reports().empty());
    old["reports"] = {{{"format", "no"}}};
    const auto broken = app::parse_session(old.dump(), "s");
    QVERIFY(!broken.has_value());
    QVERIFY2(broken.error().message().find("report 0") != std::string::npos, broken.error().message().c_str());
  }

  void a_broken_report_is_one_error() {
    Validating f;
    QVERIFY(f.settle());
    const QString path = f.folder.filePath("bad.json");
    QVERIFY(write_file_atomically(path.toStdString(), R"({"format":"turnpoint/validation@1","plan":7})").has_value());
    f.window->opener().open_path(path);
    QVERIFY2(f.error().contains("bad.json"), qPrintable(f.error()));
    QVERIFY(f.page().reports().empty());
  }

  void the_window_is_as_narrow_as_before() {
    Validating f;
    QVERIFY(f.settle());
    for (int i = 0; i < 3; ++i) {
      const QString path = f.folder.filePath("long.json");
      ValidationReport report = ranks_report();
      report.plan = std::string(200, 'x');
      report.operators[0].name = std::string(300, 'o');
      QVERIFY(write_file_atomically(path.toStdString(), write_validation(report).dump()).has_value());
      f.window->opener().open_path(path);
    }
    for (const auto page :
         {views::ValidationView::Page::bars, views::ValidationView::Page::table, views::ValidationView::Page::plans}) {
      f.view().show_page(page);
      f.window->resize(1200, 800);
      QTest::qWait(50);
      QCOMPARE(f.window->size(), QSize(1200, 800));
    }
  }

 private:
  ClusterPtr first_;

  static ModelPtr report_model(Validating& f) { return f.window->work().document.scenario()->model; }
  static nlohmann::json load_session_document(const QString& path) {
    auto document = read_json_file(path.toStdString());
    return document ? *document : nlohmann::json();
  }
};

QTEST_MAIN(ValidationPageTest)
#include "validation_page_test.moc"
