// SPDX-License-Identifier: Apache-2.0
// Every built-in network, as large as it is: no comparison method lies below what ft's certificate allows. The small
// ones of baselines_test have no layers that repeat, few tensors and short elimination orders; these have all of it.
#include <QtTest>
#include <map>

#include "core/plan/beyond_switches.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

class WholeNetworksTest : public QObject {
  Q_OBJECT

 private slots:
  void no_comparison_method_lies_below_the_frontier_data() {
    QTest::addColumn<QString>("name");
    // Cells with many branches take minutes at their full number, and have all that is in them at this one.
    const std::map<std::string, std::string> cut{
        {"nasnet-large", "?layers=3"}, {"pnasnet-large", "?layers=3"}, {"mixtral-8x7b", "?layers=2"}};
    for (const BuiltinModel& model : builtin_models()) {
      const auto at = cut.find(model.name);
      const std::string name = model.name + (at == cut.end() ? "" : at->second);
      QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
  }

  // The switches are off, and memory is that of the papers: there every method's plans, tofu's stored-once tensors
  // too, are among those that ft searches.
  void no_comparison_method_lies_below_the_frontier() {
    QFETCH(QString, name);
    const auto scenario = scenario_on(builtin(name.toStdString(), 256), "v100-16gb-2x2", [](Settings& s) {
      s.accounting = Accounting::paper;
      s.update_sharding = s.recompute = s.offload = false;
    });
    const auto ft = run("ft:micro-batches=1", scenario);
    QVERIFY2(ft.has_value(), ft ? "" : ft.error().message().c_str());
    const double slack = (*ft)->exact ? 0 : (*ft)->gap.value_or(1);
    QVERIFY2(slack < 0.05, qPrintable(QString::number(slack)));
    int compared = 0;
    for (const char* method : {"tofu", "data-parallel", "optcnn", "mesh-tensorflow", "megatron", "fsdp"}) {
      const auto other = run(method, scenario);
      if (!other && other.error().code == ErrorCode::usage) continue;  // megatron on no transformer
      QVERIFY2(other.has_value(), other ? "" : other.error().message().c_str());
      if (!beyond_switches(**other).empty()) continue;
      for (const ResultPoint& point : (*other)->points) {
        const double best = best_within(**ft, point.memory_bytes);
        QVERIFY2(best * (1 - slack) <= point.time_s * (1 + 1e-9),
                 qPrintable(QString("%1: %2 s, the frontier has %3 s").arg(method).arg(point.time_s).arg(best)));
        ++compared;
      }
    }
    QVERIFY(compared >= 3);
  }
};

QTEST_APPLESS_MAIN(WholeNetworksTest)
#include "whole_networks_test.moc"
