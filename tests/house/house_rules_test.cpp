// SPDX-License-Identifier: Apache-2.0
// The other rules of the house: licence lines, ASCII, lengths, no leftovers, what lies at the top level, the presets,
// the two commands, the documents' links, what code cites of them, and the files that desktops read. Each check is also
// run on a tree that breaks it.
#include <QDir>
#include <QProcess>
#include <QStandardPaths>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "house/rules.h"
#include "house/synthetic_tree.h"
#include "sanitized.h"

using namespace turnpoint::house;

namespace {

const std::string kRoot = TURNPOINT_SOURCE_DIR;

std::string whole_file(const std::string& name) {
  const auto text = turnpoint::read_file(std::filesystem::path(kRoot) / name);
  return text ? *text : std::string();
}

void expect_none(const std::vector<Violation>& found) {
  for (const auto& violation : found) qWarning("%s", violation.text().c_str());
  QCOMPARE(found.size(), std::size_t(0));
}

/// Runs a program of the distribution; skips the test where it is not installed.
#define RUN_OR_SKIP(process, program, arguments)                                             \
  QProcess process;                                                                          \
  if (QStandardPaths::findExecutable(program).isEmpty()) QSKIP(program " is not installed"); \
  process.setProcessChannelMode(QProcess::MergedChannels);                                   \
  process.start(program, arguments);                                                         \
  QVERIFY(process.waitForFinished(60000));                                                   \
  const QByteArray output = process.readAll();                                               \
  QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, output.constData())

}  // namespace

class HouseRulesTest : public QObject {
  Q_OBJECT

 private slots:
  void licence_lines() { expect_none(check_licence_lines(kRoot)); }
  void ascii() { expect_none(check_ascii(kRoot)); }
  void lengths() { expect_none(check_lengths(kRoot)); }
  void no_leftovers() { expect_none(check_no_leftovers(kRoot)); }
  void sent_signals() { expect_none(check_signals(kRoot)); }
  void top_level() { expect_none(check_top_level(kRoot)); }
  void links() { expect_none(check_links(kRoot)); }
  void citations() { expect_none(check_citations(kRoot)); }

  void missing_licence_lines_are_found() {
    SyntheticTree tree;
    tree.add("core/base/good.h");
    tree.write("core/base/bad.h", "#pragma once\n");
    tree.write("tests/empty_test.cpp", "");
    tree.write("packaging/start", "#!/usr/bin/env bash\necho\n");
    tree.write("packaging/check", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n");
    QCOMPARE(texts(check_licence_lines(tree.root())),
             (std::vector<std::string>{"core/base/bad.h:1: does not begin with the SPDX line",
                                       "tests/empty_test.cpp:1: does not begin with the SPDX line",
                                       "packaging/start:2: has no SPDX line after its interpreter line"}));
  }

  void other_characters_are_found_outside_comments_only() {
    SyntheticTree tree;
    tree.write("core/base/x.cpp",
               "// \u00b5 in a comment\nconst char* unit = \"\u00b5s\";\nconst char* escaped = \"\\u00b5s\";\n");
    QCOMPARE(texts(check_ascii(tree.root())),
             std::vector<std::string>{"core/base/x.cpp:2: is not ASCII outside a comment"});
  }

  void long_files_are_found() {
    SyntheticTree tree;
    std::string text;
    for (std::size_t i = 0; i < kLongestFile; ++i) text += "//\n";
    tree.write("core/base/longest.cpp", text);
    tree.write("core/base/longer.cpp", text + "//\n");
    QCOMPARE(texts(check_lengths(tree.root())),
             std::vector<std::string>{"core/base/longer.cpp:501: is longer than 500 lines"});
  }

  void leftovers_are_found() {
    SyntheticTree tree;
    const std::string todo = std::string("TO") + "DO", fixme = std::string("FIX") + "ME",
                      home = std::string("/ho") + "me/somebody";
    tree.write("core/base/x.cpp", "// " + todo + ": later\nint mastodon;\n");
    tree.write("README.md", "Fine.\n" + fixme + "\n");
    tree.write("tests/CMakeLists.txt", "set(x \"" + home + "\")\n");
    tree.write("tests/data/bad/x.json", todo);
    QCOMPARE(texts(check_no_leftovers(tree.root())),
             (std::vector<std::string>{"README.md:2: names unfinished work", "core/base/x.cpp:1: names unfinished work",
                                       "tests/CMakeLists.txt:1: names a folder of one machine"}));
  }

  void signals_that_could_reach_the_tests_themselves_are_found() {
    SyntheticTree tree;
    const std::string call = std::string("::ki") + "ll(";
    tree.write("tests/send_signal.h", call + "process, SIGTERM);\n");
    tree.write("tests/x_test.cpp", call + "pid, 0);\n" + call + "static_cast<pid_t>(p.processId()), SIGINT);\n");
    QCOMPARE(texts(check_signals(tree.root())),
             std::vector<std::string>{"tests/x_test.cpp:2: sends a signal without send_signal.h"});
  }

  void strange_and_missing_entries_are_found() {
    SyntheticTree tree;
    for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "README.md", "ARCHITECTURE.md", "CHANGELOG.md",
                             "LICENSE", ".clang-format", "build/x", "app/x", "core/x", "views/x", "gpu_probe/x",
                             "resources/x", "tests/x", "docs/x", "notes.txt"})
      tree.write(name, "");
    QCOMPARE(texts(check_top_level(tree.root())),
             (std::vector<std::string>{
                 "NOTICE:0: is missing at the top level", "docs:0: does not belong at the top level",
                 "notes.txt:0: does not belong at the top level", "packaging:0: is missing at the top level"}));
  }

  void dead_links_are_found() {
    SyntheticTree tree;
    tree.write("NOTICE", "");
    tree.write("README.md", "[a](NOTICE) [b](https://example.org/x) [c](#here) [d](NOTICE#part)\n![e](gone.png)\n");
    QCOMPARE(texts(check_links(tree.root())),
             std::vector<std::string>{"README.md:2: links to a file that does not exist: gone.png"});
    tree.write("resources/manual/page.md", "[a](../../NOTICE) [b](NOTICE)\n");
    QCOMPARE(texts(check_links(tree.root())).back(),
             std::string("resources/manual/page.md:1: links to a file that does not exist: NOTICE"));
  }

  void dead_citations_are_found() {
    SyntheticTree tree;
    tree.write("resources/manual/rules.md", "## Rule 4: memory\n## 5. Clock\n### 1.7 Figures\n- **F6** case\n");
    const std::string manual = "// (resources/manual/";
    tree.write("core/base/good.h", manual + "rules.md, rule 4)\n" + manual + "rules.md, 5, says)\n" + manual +
                                       "rules.md, 1.7).\n" + manual + "rules.md, F6)\n" + manual + "rules.md)\n");
    tree.write("core/base/bad.h", manual + "gone.md)\n" + manual + "rules.md, 6)\n");
    QCOMPARE(texts(check_citations(tree.root())),
             (std::vector<std::string>{"core/base/bad.h:1: cites a page that does not exist: gone.md",
                                       "core/base/bad.h:2: cites rules.md, 6, which is not there"}));
  }

  void the_page_of_figures_agrees_with_its_files() {
    RUN_OR_SKIP(
        python, "python3",
        (QStringList{QDir(kRoot.c_str()).filePath("resources/figures/make_page.py"), QStringLiteral("--check")}));
  }

  void presets() {
    const auto document = turnpoint::read_json_file(std::filesystem::path(kRoot) / "CMakePresets.json");
    QVERIFY2(document, document ? "" : document.error().message().c_str());
    const auto names = [&](const char* list) {
      std::set<std::string> result;
      for (const auto& preset : document->at(list)) result.insert(preset.at("name").get<std::string>());
      return result;
    };
    const auto configure = names("configurePresets"), build = names("buildPresets"), test = names("testPresets");
    for (const char* name : {"release", "debug", "asan", "tsan", "fuzz", "coverage"}) {
      QVERIFY2(configure.contains(name), name);
      QVERIFY2(build.contains(name), name);
      if (std::string(name) != "fuzz") QVERIFY2(test.contains(name), name);
    }
  }

  void the_readme_names_both_commands() {
    const std::string readme = whole_file("README.md");
    for (const char* command : {"packaging/start", "packaging/check"}) {
      QVERIFY2(readme.find(command) != std::string::npos, command);
      QVERIFY2(QFileInfo(QDir(kRoot.c_str()).filePath(command)).isExecutable(), command);
    }
    QVERIFY(whole_file(".ci/run").find("packaging/check") != std::string::npos);
    QVERIFY(QFileInfo(QDir(kRoot.c_str()).filePath(".ci/run")).isExecutable());
  }

  void the_notice_keeps_the_licences_apart() {
    const std::string notice = whole_file("NOTICE");
    for (const char* word : {"Apache-2.0", "GPL-3.0-or-later", "QCustomPlot", "EPL", "turnpoint-layout"})
      QVERIFY2(notice.find(word) != std::string::npos, word);
    QVERIFY(whole_file("LICENSE").find("Apache License") != std::string::npos);
  }

  void shell_scripts_are_clean() {
    const QDir root(kRoot.c_str());
    RUN_OR_SKIP(
        shellcheck, "shellcheck",
        (QStringList{"-x", "-P", root.path(), root.filePath("packaging/start"), root.filePath("packaging/check"),
                     root.filePath("packaging/engines"), root.filePath("packaging/common.sh"), root.filePath(".ci/run")}));
  }

  void start_and_check_refuse_unknown_arguments() {
    for (const char* name : {"packaging/start", "packaging/check", "packaging/engines"}) {
      QProcess process;
      process.start(QDir(kRoot.c_str()).filePath(name), {"--no-such-option"});
      QVERIFY(process.waitForFinished(10000));
      QCOMPARE(process.exitCode(), 2);
      QVERIFY(process.readAllStandardError().contains("unknown argument --no-such-option"));
      process.start(QDir(kRoot.c_str()).filePath(name), {"--help"});
      QVERIFY(process.waitForFinished(10000));
      QCOMPARE(process.exitCode(), 0);
      QVERIFY(process.readAllStandardOutput().contains(name));
    }
  }

  void check_runs_the_sanitizers() {
    const QString check = QDir(kRoot.c_str()).filePath("packaging/check");
    for (const QStringList& wrong : {QStringList{"--sanitize"}, QStringList{"--sanitize", "--"}}) {
      QProcess process;
      process.start(check, wrong);
      QVERIFY(process.waitForFinished(10000));
      QCOMPARE(process.exitCode(), 2);
      QVERIFY(process.readAllStandardError().contains("--sanitize is followed by address or thread"));
    }
    for (const char* file : {"README.md", "ARCHITECTURE.md"})
      QVERIFY2(whole_file(file).find("packaging/check --sanitize address") != std::string::npos, file);
  }

  void functions_have_the_time_that_a_sanitizer_needs() {
    QVERIFY(qEnvironmentVariableIntValue("QTEST_FUNCTION_TIMEOUT") >= 300'000 * turnpoint::test::kSanitizerFactor);
  }

  void the_desktop_entry_is_valid() {
    RUN_OR_SKIP(validate, "desktop-file-validate",
                {QDir(kRoot.c_str()).filePath("packaging/org.turnpoint.Turnpoint.desktop")});
    QCOMPARE(output, QByteArray());
  }

  // A newcomer waits for the programs alone, and a double click on what they write opens them.
  void packages_hold_what_they_need() {
    const std::string start = whole_file("packaging/start");
    QVERIFY(start.find("programs=(turnpoint turnpoint-cli turnpoint-layout turnpoint-probe)") != std::string::npos);
    QVERIFY(start.find("configure_and_build release build \"${programs[@]}\"") != std::string::npos);
    const std::string entry = whole_file("packaging/org.turnpoint.Turnpoint.desktop");
    const std::string types = whole_file("packaging/org.turnpoint.Turnpoint.mime.xml");
    for (const std::string type : {"application/x-turnpoint-session", "application/x-onnx"}) {
      QVERIFY(entry.find(type + ";") != std::string::npos);
      QVERIFY(types.find("<mime-type type=\"" + type + "\">") != std::string::npos);
    }
    for (const char* pattern : {"*.turnpoint", "*.onnx"})
      QVERIFY(types.find(std::string("<glob pattern=\"") + pattern) != std::string::npos);
    const std::string install = whole_file("packaging/install.cmake");
    for (const char* name : {"training steps (turnpoint-probe)", "libdnnl3", "turnpoint-mpi", "turnpoint-layout.1", "mime/packages",
                             "RENAME turnpoint-export-model", "turnpoint-export-model.1"})
      QVERIFY2(install.find(name) != std::string::npos, name);
    const auto document = turnpoint::read_json_file(std::filesystem::path(kRoot) / "CMakePresets.json");
    const auto& package = document->at("packagePresets").at(0);
    for (const auto& preset : document->at("configurePresets"))
      if (preset.at("name") == package.at("configurePreset"))
        QCOMPARE(preset.at("cacheVariables").at("TURNPOINT_HARDENED").get<std::string>(), std::string("ON"));
    QVERIFY(!package.at("configurePreset").get<std::string>().starts_with("release"));
  }

  void the_appstream_metainfo_is_valid() {
    RUN_OR_SKIP(validate, "appstreamcli",
                (QStringList{"validate", "--no-net",
                             QDir(kRoot.c_str()).filePath("packaging/org.turnpoint.Turnpoint.metainfo.xml")}));
  }

  void the_metainfo_agrees_with_the_other_files() {
    const std::string metainfo = whole_file("packaging/org.turnpoint.Turnpoint.metainfo.xml");
    const std::string entry = whole_file("packaging/org.turnpoint.Turnpoint.desktop");
    const std::string cmake = whole_file("CMakeLists.txt");
    std::smatch version;
    QVERIFY(std::regex_search(cmake, version, std::regex(R"(project\(Turnpoint VERSION ([0-9.]+))")));
    QVERIFY(metainfo.find("<release version=\"" + version[1].str() + "\"") != std::string::npos);
    QVERIFY(whole_file("CHANGELOG.md").find("## [Unreleased]") != std::string::npos);
    QVERIFY(metainfo.find("<launchable type=\"desktop-id\">org.turnpoint.Turnpoint.desktop</launchable>") !=
            std::string::npos);
    QVERIFY(entry.find("\nIcon=turnpoint\n") != std::string::npos);
    QVERIFY(entry.find("\nExec=turnpoint %f\n") != std::string::npos);
    QVERIFY(QFileInfo::exists(QDir(kRoot.c_str()).filePath("packaging/turnpoint.svg")));
  }
};

QTEST_APPLESS_MAIN(HouseRulesTest)
#include "house_rules_test.moc"
