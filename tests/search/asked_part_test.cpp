// SPDX-License-Identifier: Apache-2.0
// What a question can be about, by patterns that name it and nothing else, and questions as commands.
#include <QProcess>
#include <QtTest>

#include "core/search/explain/asked_part.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

ModelPtr named(const std::vector<std::string>& names) {
  auto model = std::make_shared<Model>();
  for (const std::string& name : names) {
    Operator op;
    op.name = name;
    model->operators.push_back(op);
  }
  return model;
}

std::vector<std::uint32_t> indices(const AskedPart& part) {
  std::vector<std::uint32_t> found;
  for (const OperatorId op : part.operators) found.push_back(op.index);
  return found;
}

using Indices = std::vector<std::uint32_t>;

}  // namespace

class AskedPartTest : public QObject {
  Q_OBJECT

 private slots:
  void parts() {
    const auto model = named({"embed", "layer1/q", "layer1/k", "layer10/q", "layer10/k", "head"});
    QCOMPARE(asked_operator(*model, OperatorId(1)).pattern, std::string("layer1/q"));
    QCOMPARE(indices(asked_operator(*model, OperatorId(1))), Indices{1});
    const auto layer = asked_layer(*model, OperatorId(1)), other = asked_layer(*model, OperatorId(4));
    QVERIFY(layer && other);
    QCOMPARE(layer->pattern, std::string("layer1/*"));
    QCOMPARE(indices(*layer), (Indices{1, 2}));  // and not layer10
    QCOMPARE(indices(*other), (Indices{3, 4}));
    const auto alike = asked_in_every_layer(*model, OperatorId(3));
    QVERIFY(alike);
    QCOMPARE(alike->pattern, std::string("layer*/q"));
    QCOMPARE(indices(*alike), (Indices{1, 3}));
    for (const std::uint32_t alone : {0u, 5u}) {
      QVERIFY(!asked_layer(*model, OperatorId(alone)));
      QVERIFY(!asked_in_every_layer(*model, OperatorId(alone)));
    }
    QCOMPARE(asked_whole(*model).operators.size(), std::size_t(6));
  }

  void commas_end_rules_and_are_no_part_of_patterns() {
    const auto model = named({"a,b", "acb"});
    const AskedPart part = asked_operator(*model, OperatorId(0));
    QCOMPARE(part.pattern, std::string("a?b"));
    const auto read = parse_force(to_string(std::vector<ForceRule>{{part.pattern, {ForcedChoice::Kind::keep, 0}}}));
    QVERIFY(read);
    QCOMPARE(read->size(), std::size_t(1));
    QCOMPARE((*read)[0].pattern, part.pattern);
    QCOMPARE(indices(part), (Indices{0, 1}));  // what a terminal would take it for
  }

  void quoting_is_what_a_shell_undoes() {
    for (const char* text : {"plain", "", "it's", "a b", "$HOME", "`id`", "a\"b", "*: tp=4", "x\\y", "~", "a;b", "#"}) {
      QProcess shell;
      shell.start(QStringLiteral("sh"),
                  {QStringLiteral("-c"), QStringLiteral("printf %s ") + QString::fromStdString(shell_quoted(text))});
      QVERIFY(shell.waitForFinished());
      QCOMPARE(shell.readAllStandardOutput(), QByteArray(text));
    }
    QCOMPARE(shell_quoted("builtin:gpt2"), std::string("builtin:gpt2"));
  }
};

QTEST_APPLESS_MAIN(AskedPartTest)
#include "asked_part_test.moc"
