// SPDX-License-Identifier: Apache-2.0
// The window keeps its searchers from one scenario to the next. Whatever a searcher was asked before, it answers as one
// that was made for the question.
#include <QtTest>

#include "core/search/registry.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

struct Question {
  const char* hardware;
  void (*change)(Settings&);
};

/// Every neighbour differs in one thing; the first comes again at the end, and in between.
const Question kQuestions[] = {
    {"v100-16gb-2x2", [](Settings&) {}},
    {"v100-16gb-2x2", [](Settings& s) { s.precision = Precision::bf16; }},
    {"v100-16gb-2x2", [](Settings&) {}},
    {"v100-16gb-2x2", [](Settings& s) { s.recompute = false; }},
    {"v100-16gb-2x2", [](Settings& s) { s.update_sharding = false; }},
    {"v100-16gb-2x2", [](Settings& s) { s.offload = false; }},
    {"v100-16gb-2x2", [](Settings& s) { s.split_windows = true; }},
    {"v100-16gb-2x2", [](Settings& s) { s.optimizer = Optimizer::sgd; }},
    {"v100-16gb-2x2", [](Settings& s) { s.accounting = Accounting::paper; }},
    {"v100-16gb-2x2", [](Settings& s) { s.memory_limit = 20000; }},
    {"v100-16gb-1x4", [](Settings&) {}},
    {"a100-80gb-2x2", [](Settings&) {}},
    {"v100-16gb-2x2", [](Settings& s) { s.factors.latency = 8; }},
    {"v100-16gb-2x2", [](Settings& s) { s.factors.inter_bandwidth = 0.125; }},
    {"v100-16gb-2x2", [](Settings&) {}},
};

}  // namespace

class AskedInTurnTest : public QObject {
  Q_OBJECT

 private slots:
  void answers_are_those_of_a_fresh_searcher_data() {
    QTest::addColumn<QString>("method");
    for (const char* method : {"ft", "optcnn", "data-parallel", "tofu", "mesh-tensorflow", "fsdp"})
      QTest::newRow(method) << method;
  }

  void answers_are_those_of_a_fresh_searcher() {
    QFETCH(QString, method);
    const std::vector<ModelPtr> models = {test::mlp(), test::attention(), test::convolution(), test::mlp(32)};
    const Method& asked = **find_method(method.toStdString());
    const auto searcher = *make_searcher(asked, "");
    std::vector<ResultPtr> answers;
    for (const ModelPtr& model : models)
      for (const Question& question : kQuestions) {
        const auto scenario = test::scenario_on(model, question.hardware, question.change);
        const auto kept = searcher->run(scenario, SearchPass::exact, {}),
                   fresh = (*make_searcher(asked, ""))->run(scenario, SearchPass::exact, {});
        QVERIFY2(kept.has_value() && fresh.has_value(), kept ? "" : kept.error().message().c_str());
        QCOMPARE((*kept)->points.size(), (*fresh)->points.size());
        QVERIFY((*kept)->points == (*fresh)->points);
        QVERIFY((*kept)->exact == (*fresh)->exact && (*kept)->gap == (*fresh)->gap);
        QCOMPARE((*kept)->scenario, scenario);
        const std::size_t last = (*kept)->points.size() - 1;
        QVERIFY((*kept)->plans->sharding(last).cost.memory == (*fresh)->plans->sharding(last).cost.memory);
        answers.push_back(*kept);
      }
    // The questions are different ones: at least half of them have answers of their own.
    int differ = 0;
    for (std::size_t i = 1; i < answers.size(); ++i) differ += answers[i]->points != answers[i - 1]->points;
    QVERIFY2(2 * differ >= int(answers.size()), qPrintable(QString::number(differ)));
  }
};

QTEST_APPLESS_MAIN(AskedInTurnTest)
#include "asked_in_turn_test.moc"
