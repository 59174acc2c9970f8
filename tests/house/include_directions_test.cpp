// SPDX-License-Identifier: Apache-2.0
// Includes go downwards only: app -> views -> core, and inside core base -> model -> hardware -> scenario -> cost,
// frontier, simulation -> plan -> search. Checked on our tree, and the checker on a tree that breaks every rule.
#include <QTemporaryDir>
#include <QtTest>

#include "house/rules.h"
#include "house/synthetic_tree.h"

using namespace turnpoint::house;

class IncludeDirectionsTest : public QObject {
  Q_OBJECT

 private slots:
  void ours() {
    const auto found = check_includes(TURNPOINT_SOURCE_DIR);
    for (const auto& violation : found) qWarning("%s", violation.text().c_str());
    QCOMPARE(found.size(), std::size_t(0));
  }

  void core_is_silent() {
    const auto found = check_core_is_silent(TURNPOINT_SOURCE_DIR);
    for (const auto& violation : found) qWarning("%s", violation.text().c_str());
    QCOMPARE(found.size(), std::size_t(0));
  }

  void the_scan_sees_our_files() {
    const auto files = read_tree(TURNPOINT_SOURCE_DIR, {"core", "app", "views"}, kCppEndings);
    QVERIFY(files.size() > 20);
    std::size_t includes = 0;
    for (const auto& file : files) includes += includes_of(file).size();
    QVERIFY(includes > files.size());
  }

  void the_table_has_no_cycle() {
    // Downwards only: repeatedly removing modules that include nothing that is left must empty the table.
    auto left = allowed_includes();
    for (bool removed = true; removed && !left.empty();) {
      removed = false;
      for (auto it = left.begin(); it != left.end();) {
        const bool lowest = std::none_of(it->second.begin(), it->second.end(),
                                         [&](const std::string& below) { return left.contains(below); });
        removed |= lowest;
        it = lowest ? left.erase(it) : std::next(it);
      }
    }
    QVERIFY2(left.empty(), left.empty() ? "" : left.begin()->first.c_str());
  }

  void folders_of_the_tree_form_no_circle() { QCOMPARE(texts(check_folder_circles(TURNPOINT_SOURCE_DIR)), std::vector<std::string>()); }

  void a_circle_of_folders_is_found() {
    SyntheticTree tree;
    tree.add("core/search/registry.h", {"\"core/search/a_method/a.h\""});
    tree.add("core/search/a_method/a.h");
    QCOMPARE(texts(check_folder_circles(tree.root())), std::vector<std::string>());
    tree.add("core/search/a_method/a.cpp", {"\"core/search/registry.h\""});
    QCOMPARE(texts(check_folder_circles(tree.root())),
             std::vector<std::string>({"core/search/a_method/a.cpp:2: closes a circle of folders: core/search -> "
                                       "core/search/a_method -> core/search"}));
  }

  void legal_includes_pass() {
    SyntheticTree tree;
    tree.add("core/base/a.h");
    tree.add("core/model/m.h", {"\"core/base/a.h\"", "<vector>"});
    tree.add("core/cost/c.cpp", {"\"core/model/m.h\"", "<nlohmann/json.hpp>"});
    tree.add("core/cost/c.h", {"<nlohmann/json_fwd.hpp>"});
    tree.add("core/plan/plan.h", {"\"core/cost/c.h\""});
    tree.add("core/import/i.h", {"\"core/model/m.h\""});
    tree.add("core/search/reopen.cpp", {"\"core/import/i.h\"", "\"core/plan/plan.h\""});
    tree.add("core/search/a_method/x.cpp", {"\"core/plan/plan.h\""});
    tree.add("views/v.h", {"\"core/plan/plan.h\"", "<QWidget>"});
    tree.add("views/v.cpp", {"\"views/v.h\"", "<qcustomplot.h>", "\"v.moc\""});
    tree.add("views/chart/plot.h", {"<qcustomplot.h>"});
    tree.add("views/chart/plot.cpp", {"\"views/chart/plot.h\""});
    tree.add("views/graph_layout/main.cpp", {"<gvc.h>"});
    tree.add("app/w.cpp", {"\"views/v.h\"", "<QApplication>"});
    tree.add("app/cli/main.cpp", {"\"core/plan/plan.h\"", "<CLI/CLI.hpp>"});
    tree.add("gpu_probe/p.cpp", {"\"core/plan/plan.h\"", "\"core/base/a.h\""});
    QCOMPARE(texts(check_includes(tree.root())), std::vector<std::string>());
  }

  void each_broken_direction_is_found_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("include");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* file, const char* include, const char* message) {
      QTest::addRow("%s includes %s", file, include) << file << include << message;
    };
    row("core/base/x.h", "\"core/model/m.h\"", "core/base must not include core/model: \"core/model/m.h\"");
    row("core/model/x.h", "\"core/hardware/h.h\"", "core/model must not include core/hardware: \"core/hardware/h.h\"");
    row("core/frontier/x.cpp", "\"core/model/m.h\"", "core/frontier must not include core/model: \"core/model/m.h\"");
    row("core/cost/x.cpp", "\"core/frontier/f.h\"", "core/cost must not include core/frontier: \"core/frontier/f.h\"");
    row("core/plan/x.cpp", "\"core/search/s.h\"", "core/plan must not include core/search: \"core/search/s.h\"");
    row("core/search/a_method/x.cpp", "\"core/import/i.h\"",
        "core/search must not include core/import: \"core/import/i.h\"");
    row("core/plan/x.cpp", "\"core/import/i.h\"", "core/plan must not include core/import: \"core/import/i.h\"");
    row("core/export/x.cpp", "\"core/search/s.h\"", "core/export must not include core/search: \"core/search/s.h\"");
    row("core/import/x.cpp", "\"core/cost/c.h\"", "core/import must not include core/cost: \"core/cost/c.h\"");
    row("core/search/x.cpp", "\"views/v.h\"", "core/search must not include views: \"views/v.h\"");
    row("core/search/x.cpp", "<QString>", "core/search must not include Qt: <QString>");
    row("core/search/x.cpp", "<QtCore/qstring.h>", "core/search must not include Qt: <QtCore/qstring.h>");
    row("core/search/x.cpp", "<qobject.h>", "core/search must not include Qt: <qobject.h>");
    row("app/cli/x.cpp", "<QCoreApplication>", "app/cli must not include Qt: <QCoreApplication>");
    row("app/cli/x.cpp", "\"views/v.h\"", "app/cli must not include views: \"views/v.h\"");
    row("views/x.cpp", "\"app/w.h\"", "views must not include app: \"app/w.h\"");
    row("views/x.cpp", "<gvc.h>", "Graphviz belongs to views/graph_layout alone");
    row("app/x.cpp", "\"views/chart/plot.h\"", "brings qcustomplot.h into another folder: \"views/chart/plot.h\"");
    row("views/x.h", "<nlohmann/json.hpp>", "headers include nlohmann/json_fwd.hpp only");
    row("views/graph_layout/x.cpp", "\"views/v.h\"", "views/graph_layout must not include views: \"views/v.h\"");
    row("gpu_probe/x.cpp", "\"core/search/s.h\"", "gpu_probe must not include core/search: \"core/search/s.h\"");
    row("core/base/x.cpp", "\"x.h\"", "is not a path from the repository root: \"x.h\"");
    row("core/base/x.cpp", "\"core/base/absent.h\"", "is not a path from the repository root: \"core/base/absent.h\"");
  }
  void each_broken_direction_is_found() {
    QFETCH(QString, file);
    QFETCH(QString, include);
    QFETCH(QString, message);
    SyntheticTree tree;
    for (const char* header : {"core/model/m.h", "core/hardware/h.h", "core/frontier/f.h", "core/search/s.h",
                               "core/import/i.h", "core/cost/c.h", "views/v.h", "app/w.h"})
      tree.add(header);
    tree.add("views/chart/plot.h", {"<qcustomplot.h>"});
    tree.add(file.toStdString(), {include.toStdString()});
    QCOMPARE(texts(check_includes(tree.root())),
             std::vector<std::string>{file.toStdString() + ":2: " + message.toStdString()});
  }

  void comments_are_not_includes() {
    SyntheticTree tree;
    tree.write("core/base/x.h", "// SPDX\n// #include <QString>\n/*\n#include <QWidget>\n*/ #include <QObject>\n");
    QCOMPARE(texts(check_includes(tree.root())),
             std::vector<std::string>{"core/base/x.h:5: core/base must not include Qt: <QObject>"});
  }

  void files_outside_every_module_are_found() {
    SyntheticTree tree;
    tree.add("core/x.h");
    tree.add("core/unheard_of/x.h");
    QCOMPARE(texts(check_includes(tree.root())),
             (std::vector<std::string>{"core/unheard_of/x.h:0: belongs to no module of the include table",
                                       "core/x.h:0: belongs to no module of the include table"}));
  }

  void printing_in_core_is_found() {
    SyntheticTree tree;
    tree.write("core/base/x.cpp",
               "// std::cout\nstd::snprintf(b, 1, \"\");\nstd::cout << 1;\nstd::printf(\"x\");\nexit(1);\n");
    QCOMPARE(texts(check_core_is_silent(tree.root())),
             (std::vector<std::string>{"core/base/x.cpp:3: core neither prints nor exits: std::cout",
                                       "core/base/x.cpp:4: core neither prints nor exits: printf(",
                                       "core/base/x.cpp:5: core neither prints nor exits: exit("}));
  }
};

QTEST_APPLESS_MAIN(IncludeDirectionsTest)
#include "include_directions_test.moc"
