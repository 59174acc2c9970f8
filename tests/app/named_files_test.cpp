// SPDX-License-Identifier: Apache-2.0
// Sessions, results and recent files mean the same files from every folder and after both were moved; pinned frontiers
// come and go with their models.
#include <QAction>
#include <QProcess>
#include <QtTest>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/recent_name.h"
#include "app/session.h"
#include "core/base/json.h"
#include "core/base/named_file.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;
namespace fs = std::filesystem;

namespace {

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string model_in(const fs::path& session) {
  return (*read_json_file(session))["scenario"]["model"].get<std::string>();
}

}  // namespace

class NamedFilesTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    root_ = fs::canonical(folder_->path().toStdString());
    before_ = fs::current_path();
  }
  void cleanup() { fs::current_path(before_); }

  void a_session_names_what_lies_below_it_by_where_it_lies() {
    write_text(root_ / "work/models/net.onnx", "x");
    write_text(root_ / "elsewhere/other.json", "x");
    app::Session session;
    session.scenario.model = (root_ / "work/models/net.onnx").string();
    session.scenario.hardware = (root_ / "elsewhere/other.json").string();
    session.searches.push_back({"search", "ft", session.scenario});
    QVERIFY(app::save_session(session, root_ / "work/s.turnpoint"));
    QCOMPARE(model_in(root_ / "work/s.turnpoint"), std::string("models/net.onnx"));
    // From another folder, and after both were moved.
    fs::current_path("/");
    auto again = app::load_session(root_ / "work/s.turnpoint");
    QVERIFY(again);
    QCOMPARE(again->scenario.model, session.scenario.model);
    QCOMPARE(again->scenario.hardware, session.scenario.hardware);
    QCOMPARE(again->searches[0].scenario.model, session.scenario.model);
    fs::rename(root_ / "work", root_ / "moved");
    again = app::load_session(root_ / "moved/s.turnpoint");
    QVERIFY(again);
    QCOMPARE(again->scenario.model, (root_ / "moved/models/net.onnx").string());
    // Moved alone, it finds a file of that name beside it; where there is none it says where it looked.
    fs::rename(root_ / "moved/models/net.onnx", root_ / "moved/net.onnx");
    again = app::load_session(root_ / "moved/s.turnpoint");
    QCOMPARE(again->scenario.model, (root_ / "moved/net.onnx").string());
    fs::remove(root_ / "moved/net.onnx");
    again = app::load_session(root_ / "moved/s.turnpoint");
    QCOMPARE(again->scenario.model, (root_ / "moved/models/net.onnx").string());
  }

  void what_is_no_file_stays_as_it_is() {
    write_text(root_ / "local", "x");  // a file that is called as hardware is
    app::Session session;
    session.scenario.model = "builtin:lenet";
    session.scenario.hardware = "v100-16gb-2x8";
    QVERIFY(app::save_session(session, root_ / "s.turnpoint"));
    const auto again = app::load_session(root_ / "s.turnpoint");
    QCOMPARE(again->scenario.model, session.scenario.model);
    QCOMPARE(again->scenario.hardware, session.scenario.hardware);
    QCOMPARE(resolve_name(root_, "local"), std::string("local"));
  }

  void a_family_behind_a_file_goes_where_the_file_goes() {
    write_text(root_ / "work/config.json", "{}");
    fs::current_path(root_ / "work");
    QCOMPARE(absolute_name("config.json?as=llama"), (root_ / "work/config.json?as=llama").string());
    QCOMPARE(absolute_name("gone.json?as=llama"), std::string("gone.json?as=llama"));
    app::Session session;
    session.scenario.model = absolute_name("config.json?as=llama");
    session.scenario.hardware = "v100-16gb-2x8";
    QVERIFY(app::save_session(session, root_ / "work/s.turnpoint"));
    QCOMPARE(model_in(root_ / "work/s.turnpoint"), std::string("config.json?as=llama"));
    fs::current_path("/");
    fs::rename(root_ / "work", root_ / "moved");
    const auto again = app::load_session(root_ / "moved/s.turnpoint");
    QVERIFY(again);
    QCOMPARE(again->scenario.model, (root_ / "moved/config.json?as=llama").string());
    const QString recent = QString::fromStdString(again->scenario.model);
    QCOMPARE(app::file_of(recent), QString::fromStdString((root_ / "moved/config.json").string()));
    QCOMPARE(app::recent_name(recent), QStringLiteral("moved?as=llama"));
  }

  void a_session_of_before_is_read_as_it_was_meant() {
    write_text(root_ / "cwd/net.onnx", "x");
    write_text(root_ / "s.turnpoint",
               R"({"format":"turnpoint/session@1","scenario":{"model":"net.onnx","hardware":"v100-16gb-2x8"}})");
    fs::current_path(root_ / "cwd");
    const auto session = app::load_session("../s.turnpoint");
    QVERIFY(session);
    QCOMPARE(session->scenario.model, (root_ / "cwd/net.onnx").string());
  }

  void results_are_exported_from_another_folder_and_after_a_move() {
    write_text(root_ / "a/gpt/config.json",
               R"({"model_type":"gpt2","n_layer":1,"n_embd":32,"n_head":2,"n_positions":64,"vocab_size":128})");
    const auto run = [&](const fs::path& where, const QStringList& arguments) {
      QProcess program;
      program.setWorkingDirectory(QString::fromStdString(where.string()));
      program.start(QStringLiteral(TURNPOINT_BINARY_DIR "/turnpoint-cli"), arguments);
      program.waitForFinished(120000);
      const QByteArray said = program.readAllStandardError();
      return program.exitCode() == 0 ? QByteArray() : said + " ";
    };
    const auto n = [](const char* text) { return QString::fromLatin1(text); };
    QCOMPARE(run(root_ / "a", {n("search"), n("gpt/config.json"), n("--hardware"), n("v100-16gb-1x2"), n("--batch"),
                               n("4"), n("--out"), n("r.json")}),
             QByteArray());
    const QStringList to_plan{n("export"), n("a/r.json"), n("--point"), n("0"),
                              n("--to"),   n("csv"),      n("--out"),   n("plan.csv")};
    QCOMPARE(run(root_, to_plan), QByteArray());
    fs::create_directories(root_ / "b");
    fs::rename(root_ / "a", root_ / "b/a");
    fs::copy_file(root_ / "b/a/gpt/config.json", root_ / "b/a/config.json");
    QCOMPARE(run(root_ / "b", to_plan), QByteArray());  // beside the result
  }

  void recent_files_are_whole_and_shared_by_windows() {
    write_text(root_ / "one.turnpoint", "x");
    write_text(root_ / "two.turnpoint", "x");
    const QString ini = QString::fromStdString((root_ / "settings.ini").string());
    const QString one = QString::fromStdString((root_ / "one.turnpoint").string()),
                  two = QString::fromStdString((root_ / "two.turnpoint").string());
    app::AppSettings settings(ini);
    fs::current_path(root_);
    settings.add_recent_session(QStringLiteral("one.turnpoint"));
    settings.add_recent_session(one);
    QCOMPARE(settings.recent_sessions(), QStringList{one});
    // Another process adds its own; this one has read the list before.
    QTest::qWait(20);
    write_text(root_ / "settings.ini", "[recent]\nsessions=" + two.toStdString() + ", " + one.toStdString() + "\n");
    write_text(root_ / "three.turnpoint", "x");
    settings.add_recent_session(QStringLiteral("three.turnpoint"));
    const QStringList now = app::AppSettings(ini).recent_sessions();
    QCOMPARE(now.size(), qsizetype(3));
    QVERIFY(now.contains(two) && now.contains(one));
    QVERIFY(now.front().endsWith(QStringLiteral("/three.turnpoint")));
  }

  void a_config_is_called_by_what_it_configures() {
    const auto name = [&](const char* path) {
      return app::recent_name(QString::fromStdString((root_ / path).string()));
    };
    write_text(root_ / "Llama-2-7b/config.json", "{}");
    QCOMPARE(name("Llama-2-7b/config.json"), QStringLiteral("Llama-2-7b"));
    write_text(root_ / "models--x/snapshots/0123456789abcdef0123456789abcdef01234567/config.json",
               R"({"_name_or_path": "meta-llama/Llama-3", "model_type": "llama"})");
    QCOMPARE(name("models--x/snapshots/0123456789abcdef0123456789abcdef01234567/config.json"),
             QStringLiteral("Llama-3"));
    write_text(root_ / "tmp/config.json", R"({"model_type": "bert"})");
    QCOMPARE(name("tmp/config.json"), QStringLiteral("bert"));
    QCOMPARE(name("light_resnet50.onnx"), QStringLiteral("light_resnet50.onnx"));
  }

  void pinned_frontiers_come_and_go_with_their_model() {
    WindowFixture f;
    QVERIFY(f.open());
    f.window->findChild<QAction*>(QStringLiteral("pin"))->trigger();
    QCOMPARE(f.chart().data().pinned.size(), std::size_t(1));
    QVERIFY2(f.chart().data().pinned[0].label.contains(QStringLiteral("transformer-s")),
             qPrintable(f.chart().data().pinned[0].label));
    f.document().open_model("builtin:vgg16");
    QVERIFY(f.settle());
    QVERIFY(f.chart().data().pinned.empty());
    f.window->findChild<QAction*>(QStringLiteral("pin"))->trigger();
    QCOMPARE(f.chart().data().pinned.size(), std::size_t(1));
    f.document().clear_pinned();  // what is hidden is not cleared unseen
    f.document().open_model("builtin:transformer-s");
    QVERIFY(f.settle());
    QCOMPARE(f.chart().data().pinned.size(), std::size_t(1));
    // Sessions keep whose they are.
    const QString path = f.folder.filePath(QStringLiteral("s.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    WindowFixture other;
    other.window->sessions().open(path);
    QVERIFY(other.settle());
    QCOMPARE(other.chart().data().pinned.size(), std::size_t(1));
    other.document().open_model("builtin:vgg16");
    QVERIFY(other.settle());
    QVERIFY(other.chart().data().pinned.empty());
  }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
  fs::path root_, before_;
};

QTEST_MAIN(NamedFilesTest)
#include "named_files_test.moc"
