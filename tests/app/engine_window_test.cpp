// SPDX-License-Identifier: Apache-2.0
// Plans run by an engine from the Validation tab: without its environment the reason is said; a script in the place of
// its Python gives a report, or one error, and the window goes on.
#include <QAction>
#include <QClipboard>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QProcess>
#include <QTemporaryDir>
#include <QToolButton>

#include "app/real_window.h"
#include "app/tabs/validation_tab.h"
#include "views/common/message_bar.h"
#include "views/validation/validation_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct UnderEngine : Real {
  UnderEngine() { window->opener().open_scenario("builtin:lenet?batch=32", "v100-16gb-1x2", 0); }
  views::ValidationView& view() { return *part<views::ValidationView>(window); }
  QAction* run() { return action(*this, "validate"); }
  /// By its button, as a person does.
  void choose(const char* way) { view().findChild<QToolButton*>(QLatin1String(way))->click(); }
  QToolButton* copy() { return child<QToolButton>("engine_copy_command"); }
  QLineEdit* field(const char* name) { return child<QLineEdit>(name); }
  bool quiet() {
    return QTest::qWaitFor([&] { return !window->work().validations.running() && window->work().settled(); }, 60000);
  }
};

const QByteArray kReport =
    R"(echo '{"type": "result", "engine": "jax 9.9", "backend": "cpu", "ranks": 2, "cores": 2, "times_s": [0.3, 0.1],)"
    R"( "losses": [2.5, 2.25], "memory": {"parameters": 64, "peak": 4096},)"
    R"( "collectives": [{"kind": "broadcast", "ranks": [0, 1], "count": 3, "bytes": 96}],)"
    R"( "numerics": {"loss_error": 1e-7, "gradient_error": 2e-7, "precision": "fp32", "where": "w"}}')"
    "\n";

}  // namespace

class EngineWindowTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> home_;

  void fake(const char* engine, const QByteArray& body) {
    const QString folder = home_->filePath(engine);
    QVERIFY(QDir().mkpath(folder + "/bin"));
    QFile python(folder + "/bin/python"), packages(folder + "/packages");
    QVERIFY(python.open(QIODevice::WriteOnly) && packages.open(QIODevice::WriteOnly));
    python.write("#!/bin/sh\n" + body);
    python.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  }

  bool write(const QString& path, const QByteArray& text) {
    QFile file(path);
    return file.open(QIODevice::WriteOnly) && file.write(text) == text.size() &&
           file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  }
  /// What a shell makes of the copied lines: the words of all commands, one after another.
  QStringList copied_words(UnderEngine& f) {
    f.copy()->click();
    if (!write(home_->filePath("turnpoint-cli"), "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")) return {};
    QProcess shell;
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("PATH", home_->path() + u':' + environment.value("PATH"));
    shell.setProcessEnvironment(environment);
    shell.setWorkingDirectory(home_->path());
    shell.start("sh", {"-ec", QApplication::clipboard()->text()});
    if (!shell.waitForFinished(60000) || shell.exitCode() != 0) return {};
    return QString::fromUtf8(shell.readAllStandardOutput()).split(u'\n');
  }

 private slots:
  void init() {
    home_ = std::make_unique<QTemporaryDir>();
    qputenv("XDG_DATA_HOME", home_->path().toLocal8Bit());
    qputenv("XDG_CACHE_HOME", home_->path().toLocal8Bit());
    qputenv("TURNPOINT_ENGINES", home_->path().toLocal8Bit());
    qputenv("TURNPOINT_PROBE", TURNPOINT_BINARY_DIR "/turnpoint-probe");
  }
  void cleanup() {
    qunsetenv("TURNPOINT_ENGINES");
    qunsetenv("TURNPOINT_PROBE");
  }

  void what_is_missing_is_said() {
    UnderEngine f;
    QVERIFY(f.settle());
    QVERIFY2(f.run()->isEnabled(), qPrintable(f.run()->toolTip()));
    f.choose("jax");
    QVERIFY(!f.run()->isEnabled());
    QVERIFY2(f.run()->toolTip().contains("packaging/engines jax"), qPrintable(f.run()->toolTip()));
    fake("pytorch", "exit 1\n");
    f.choose("pytorch");
    QVERIFY(!f.run()->isEnabled());
    QVERIFY2(f.run()->toolTip().contains("PyTorch needs the model itself"), qPrintable(f.run()->toolTip()));
    f.choose("cpu_ranks");
    QVERIFY(f.run()->isEnabled());
  }

  /// The fields reach a terminal whole, whatever stands in them, and the lines do what Run does: no launcher is added.
  void the_copied_lines_do_what_run_does() {
    UnderEngine f;
    QVERIFY(f.settle());
    f.choose("pytorch");
    QVERIFY2(!f.copy()->isEnabled() && f.copy()->toolTip().contains("PyTorch needs the model itself"),
             qPrintable(f.copy()->toolTip()));
    const QString code = home_->filePath("a'b; rm x.py");
    QVERIFY(write(code, {}));
    f.field("engine_model_code")->setText(code + ":make");
    QTRY_VERIFY(f.copy()->isEnabled());
    // A machine without PyTorch runs nothing, but another one may.
    QVERIFY2(!f.run()->isEnabled() && f.run()->toolTip().contains("packaging/engines pytorch"),
             qPrintable(f.run()->toolTip()));
    QStringList words = copied_words(f);
    QCOMPARE(words.value(words.indexOf("--model-code") + 1), code + ":make");
    QVERIFY2(!words.contains("--launcher"), qPrintable(words.join(u' ')));
    const QString launcher = "mpirun -n 2 \"a'b; rm x\" $HOME";
    f.field("engine_launcher")->setText(launcher);
    words = copied_words(f);
    QVERIFY(words.contains("--launcher"));
    QCOMPARE(words.value(words.indexOf("--launcher") + 1), launcher);
    QCOMPARE(words.value(words.indexOf("--model-code") + 1), code + ":make");
    QCOMPARE(words.count("search"), 1);
    QCOMPARE(words.count("validate"), 1);
    QVERIFY(QFile::exists(code));
  }

  /// Where Run is refused for good, there are no lines that would be refused as well.
  void what_cannot_be_run_has_no_lines() {
    UnderEngine f;
    QVERIFY(f.settle());
    f.choose("jax");
    QVERIFY2(f.copy()->isEnabled(), qPrintable(f.copy()->toolTip()));
    const auto none = [&](const char* why) {
      return !f.copy()->isEnabled() && f.copy()->toolTip().contains(QLatin1String(why));
    };
    QVERIFY(write(home_->filePath("model.py"), {}));
    f.choose("pytorch");
    f.field("engine_model_code")->setText(home_->filePath("model.py:make"));
    QTRY_VERIFY(f.copy()->isEnabled());
    f.field("engine_launcher")->setText("mpirun 'a'b; rm x'");
    QTRY_VERIFY2(none("is not closed"), qPrintable(f.copy()->toolTip()));
    QCOMPARE(f.run()->toolTip(), f.copy()->toolTip());
    f.field("engine_launcher")->clear();
    QTRY_VERIFY(f.copy()->isEnabled());
    f.choose("jax");
    f.window->work().document.set_option("intra-bandwidth-scale", 0.5, 0);
    QVERIFY(f.settle());
    QVERIFY2(none("What-if sliders are set"), qPrintable(f.copy()->toolTip()));
    f.window->work().document.set_option("intra-bandwidth-scale", 1, 0);
    QVERIFY(f.settle());
    QVERIFY2(f.copy()->isEnabled(), qPrintable(f.copy()->toolTip()));
    f.window->work().runner.set_enabled("layered-expert", true);
    QVERIFY(f.settle());
    f.window->work().document.selection().pick_point(views::PickedPoint{"layered-expert", 0});
    QVERIFY(f.settle());
    QVERIFY2(none("is not for placements"), qPrintable(f.copy()->toolTip()));
    QVERIFY(f.open(f.random_graph(3, 40)));
    QVERIFY2(none("A task graph has no operators"), qPrintable(f.copy()->toolTip()));
  }

  void a_run_becomes_a_report() {
    fake("jax", "grep -q 'def step(' \"$2/plan.py\" || exit 9\n" + kReport);
    UnderEngine f;
    QVERIFY(f.settle());
    f.choose("jax");
    QVERIFY2(f.run()->isEnabled(), qPrintable(f.run()->toolTip()));
    f.run()->trigger();
    QVERIFY(f.quiet());
    const auto report = f.view().current();
    QVERIFY2(report, f.window->voice().bar().current() ? qPrintable(f.window->voice().bar().current()->what) : "");
    QCOMPARE(report->engine, std::string("jax 9.9"));
    QVERIFY(std::abs(*report->step.measured - 0.2) < 1e-12);
    const QString rows = f.view().rows_as_text();
    QVERIFY2(rows.contains("broadcast among 2 ranks 0, 1"), qPrintable(rows));
    const auto content = views::make_validation_content(report, nullptr, nullptr);
    QVERIFY2(content->facts.contains("2 CPU ranks on 2 cores, jax 9.9"), qPrintable(content->facts));
    QVERIFY(content->notes.contains("loss 2.5 in the first of 2 steps, 2.25 in the last"));
    QVERIFY(content->verdict_good);
    // Its operators have no times that a profile could take.
    QVERIFY(!action(f, "calibrate")->isEnabled());
  }

  void an_engine_that_fails_is_one_error() {
    fake("jax", "echo '{\"type\": \"error\", \"what\": \"out of luck\"}'; sleep 60\n");
    UnderEngine f;
    QVERIFY(f.settle());
    f.choose("jax");
    f.run()->trigger();
    QVERIFY(f.quiet());
    const views::Message* shown = f.window->voice().bar().current();
    QVERIFY(shown && shown->kind == views::Message::Kind::error);
    QVERIFY2(shown->what.contains("out of luck", Qt::CaseInsensitive), qPrintable(shown->what));
    QVERIFY(f.view().is_empty() && f.run()->isEnabled());
  }

  void a_run_can_be_stopped() {
    fake("jax", "touch \"" + home_->filePath("started").toLocal8Bit() + "\"; exec sleep 600\n");
    UnderEngine f;
    QVERIFY(f.settle());
    f.choose("jax");
    f.run()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(home_->filePath("started")), 30000);
    emit f.view().stop_requested();
    QVERIFY(f.quiet());
    QVERIFY(f.view().is_empty() && !f.window->voice().bar().current());
  }
};

QTEST_MAIN(EngineWindowTest)
#include "engine_window_test.moc"
