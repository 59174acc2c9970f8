// SPDX-License-Identifier: Apache-2.0
// What prices take shards of an update to sum is what the training program of each optimizer sums over them.
#include <QtTest>

#include "core/cost/summed_elements.h"
#include "core/search/update_sharding/clusters.h"
#include "core/search/update_sharding/training_program.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;

class SummedElementsTest : public QObject {
  Q_OBJECT

 private slots:
  void sums_are_those_of_the_training_program() {
    int clusters_met = 0, rounds_met = 0;
    for (const auto& [name, model] : networks_to_cut(3, 4))
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::lars,
                                        Optimizer::lamb, Optimizer::adafactor}) {
        const auto program = update_sharding::training_program_of(*model, optimizer, {}, 8);
        QVERIFY(program.has_value());
        const auto clusters = update_sharding::find_clusters(*program);
        QVERIFY(clusters.has_value());
        for (const auto& cluster : *clusters) {
          const std::vector<double> sums = summed_elements(optimizer, cluster.shape);
          QString what = QString("%1, %2:").arg(name.c_str(), to_string(optimizer));
          for (const auto size : cluster.shape) what += QString(" %1").arg(size);
          what += " sums";
          for (const double elements : cluster.round_elements) what += QString(" %1").arg(elements);
          QVERIFY2(sums == cluster.round_elements, qPrintable(what));
          ++clusters_met;
          rounds_met += int(sums.size());
        }
      }
    QVERIFY2(clusters_met > 300 && rounds_met > 150, qPrintable(QString("%1 %2").arg(clusters_met).arg(rounds_met)));
  }
};

QTEST_APPLESS_MAIN(SummedElementsTest)
#include "summed_elements_test.moc"
