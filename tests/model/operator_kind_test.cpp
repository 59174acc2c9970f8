// SPDX-License-Identifier: Apache-2.0
#include "core/model/operator_kind.h"

#include <QtTest>
#include <set>
#include <string>

using namespace turnpoint;

class OperatorKindTest : public QObject {
  Q_OBJECT

 private slots:
  void every_kind_has_a_name_of_its_own() {
    std::set<std::string_view> names, words;
    for (const OperatorKindRecord& record : operator_kinds()) {
      QVERIFY(!record.name.empty() && !record.words.empty() && !record.timed_as.empty());
      names.insert(record.name);
      words.insert(record.words);
      QVERIFY(operator_kind(record.name) == record.kind);
      QCOMPARE(&record_of(record.kind), &record);
      // Times are kept under the name of a kind.
      QVERIFY(operator_kind(record.timed_as).has_value());
    }
    QCOMPARE(names.size(), operator_kinds().size());
    QCOMPARE(words.size(), operator_kinds().size());
  }

  void what_is_no_kind_is_not_taken_for_one() {
    for (const char* name : {"", "element-wise", "Matmul", "batch normalisation", "fused attention"})
      QVERIFY2(!operator_kind(name), name);
  }

  void what_matrix_units_carry_out_is_a_product() {
    std::set<OperatorKind> products;
    for (const OperatorKindRecord& record : operator_kinds())
      if (record.products) products.insert(record.kind);
    const std::set<OperatorKind> expected = {OperatorKind::matmul, OperatorKind::convolution, OperatorKind::recurrent,
                                             OperatorKind::scan, OperatorKind::attention};
    QVERIFY(products == expected);
  }
};

QTEST_APPLESS_MAIN(OperatorKindTest)
#include "operator_kind_test.moc"
