// SPDX-License-Identifier: Apache-2.0
// A new method is a folder and a line in the registry: nobody else knows a method by name, and no method knows the
// registry. Checked on our tree, and the checker on a tree that breaks every rule.
#include <QTemporaryDir>
#include <QtTest>

#include "core/search/registry.h"
#include "house/method_rules.h"
#include "house/synthetic_tree.h"

using namespace turnpoint::house;

namespace {

void expect_clean(const std::vector<Violation>& found) {
  for (const auto& violation : found) qWarning("%s", violation.text().c_str());
  QCOMPARE(found.size(), std::size_t(0));
}

}  // namespace

class MethodsTest : public QObject {
  Q_OBJECT

 private slots:
  void nobody_knows_our_methods_by_name() {
    std::vector<std::string> names;
    for (const auto& method : turnpoint::methods()) names.push_back(method.name);
    QVERIFY(names.size() >= 19);
    expect_clean(check_method_names(TURNPOINT_SOURCE_DIR, names));
  }

  void only_registries_know_our_methods() { expect_clean(check_method_includes(TURNPOINT_SOURCE_DIR)); }

  void names_are_found() {
    SyntheticTree tree;
    tree.write("core/search/a/a.cpp", "name = \"ft\";\n");
    tree.write("core/import/settings.cpp", "if (x == \"megatron\") y(\"ft\");\n");
    tree.write("core/search/reopen.cpp", "// \"ft\"\nf(\"ft-published\", \"so ft is\");\n");
    tree.write("app/a.cpp", "if (m == \"ft\" || m == \"ft:limit=2\") w += \",megatron:\" + s;\n");
    tree.write("views/a.cpp", "if (m == u\"megatron\") s(\"ftp\");\n");
    const std::string what = ": knows a method by its name: ";
    QCOMPARE(texts(check_method_names(tree.root(), {"ft", "megatron"})),
             (std::vector<std::string>{"app/a.cpp:1" + what + "\"ft\"", "app/a.cpp:1" + what + "\"ft:limit=2\"",
                                       "app/a.cpp:1" + what + "\",megatron:\"",
                                       "core/import/settings.cpp:1" + what + "\"ft\"",
                                       "views/a.cpp:1" + what + "\"megatron\""}));
  }

  void wrong_includes_are_found() {
    SyntheticTree tree;
    tree.add("core/search/a_method/a.h", {"\"core/search/method/method.h\""});
    tree.add("core/search/pardnn/p.cpp", {"\"core/search/placement/judge.h\""});
    tree.add("core/search/placement_registry.cpp", {"\"core/search/placement/simple_methods.h\""});
    tree.add("core/search/registry.cpp", {"\"core/search/a_method/a.h\"", "\"core/search/registry.h\""});
    tree.add("core/search/reopen.cpp", {"\"core/search/placement/placed.h\"", "\"core/search/a_method/a.h\""});
    tree.add("app/x.cpp", {"\"core/search/registry.h\"", "\"core/search/a_method/a.h\""});
    QCOMPARE(texts(check_method_includes(tree.root())),
             (std::vector<std::string>{
                 "app/x.cpp:3: only registries include methods: \"core/search/a_method/a.h\"",
                 "core/search/reopen.cpp:3: only registries include methods: \"core/search/a_method/a.h\""}));
  }
};

QTEST_APPLESS_MAIN(MethodsTest)
#include "methods_test.moc"
