// SPDX-License-Identifier: Apache-2.0
// Two plans beside each other as a table and as marks of operators, from a difference made by hand.
#include <QtTest>

#include "views/common/difference_marks.h"
#include "views/explain/difference_model.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

ModelPtr four_operators() {
  auto model = std::make_shared<Model>();
  for (const char* name : {"embed", "layer0/q", "layer0/k", "layer1/q"}) {
    Operator op;
    op.name = name;
    model->operators.push_back(op);
  }
  return model;
}

std::shared_ptr<const PlanDifference> by_hand() {
  auto made = std::make_shared<PlanDifference>();
  DifferenceParts first, second;
  first.memory_bytes = 1 << 20, first.compute_s = 0.002, first.weights_s = -0.0005;
  second.memory_bytes = -(3 << 20), second.compute_s = 1e-9;
  made->layers = {{"layer0", first}, {"layer1", second}};
  made->total += first;
  made->total += second;
  made->changes = {
      {false, {"layer0"}, {"q"}, "data parallel 2", "tensor parallel 2", {OperatorId(1)}},
      {true, {"layer0", "layer1"}, {"q.out"}, "stays in place", "all-gather among 2", {OperatorId(1), OperatorId(3)}}};
  return made;
}

}  // namespace

class DifferenceTest : public QObject {
  Q_OBJECT

 private slots:
  void marks() {
    const auto marks = marks_of(*by_hand(), *four_operators());
    QCOMPARE(*marks, (DifferenceMarks{DifferenceMark::none, DifferenceMark::itself, DifferenceMark::none,
                                      DifferenceMark::tensors}));
  }

  void table() {
    DifferenceModel table;
    table.set_difference(by_hand(), four_operators());
    QCOMPARE(table.rowCount(), 4);  // all, two layers, what changes
    const auto text = [&](int row, DifferenceModel::Column column) {
      return table.index(row, column).data().toString().replace(QChar(QChar::Nbsp), u' ');
    };
    QCOMPARE(text(0, DifferenceModel::time), QStringLiteral("+1.50 ms"));
    QCOMPARE(text(0, DifferenceModel::memory), QStringLiteral("\u22122.00 MiB"));
    QCOMPARE(text(1, DifferenceModel::layer), QStringLiteral("layer0"));
    QCOMPARE(text(1, DifferenceModel::weights), QStringLiteral("\u22120.50 ms"));
    QCOMPARE(text(2, DifferenceModel::weights), QStringLiteral("\u2013"));
    // What is nothing beside the whole is written by itself, never as a signed nought.
    QVERIFY2(text(2, DifferenceModel::computing).contains(u'1'), qPrintable(text(2, DifferenceModel::computing)));
    QVERIFY(table.is_empty(DifferenceModel::again) && !table.is_empty(DifferenceModel::weights));
    QCOMPARE(table.operators_of(table.index(1, 0)), (std::set{OperatorId(1), OperatorId(2)}));
    const QModelIndex changes = table.index(table.changes_row(), 0);
    QCOMPARE(table.rowCount(changes), 2);
    QCOMPARE(table.operators_of(table.index(1, 0, changes)), (std::set{OperatorId(1), OperatorId(3)}));
    QVERIFY(table.operators_of(table.index(0, 0)).empty());
    const auto tip = [&] { return table.headerData(0, Qt::Horizontal, Qt::ToolTipRole).toString(); };
    QVERIFY2(tip().contains(QStringLiteral("add up to the whole")), qPrintable(tip()));
    // Of stages there is no row by layer, and no word of rows that add up.
    auto whole = std::make_shared<PlanDifference>(*by_hand());
    whole->layers.clear();
    whole->of_stages = true;
    table.set_difference(whole, four_operators());
    QCOMPARE(table.rowCount(), 2);
    QVERIFY2(!tip().contains(QStringLiteral("add up to the whole")) && tip().contains(QStringLiteral("stages")),
             qPrintable(tip()));
    table.set_difference(by_hand(), four_operators());
    QVERIFY2(tip().contains(QStringLiteral("add up to the whole")), qPrintable(tip()));
    table.set_difference(nullptr, nullptr);
    QCOMPARE(table.rowCount(), 0);
  }
};

QTEST_MAIN(DifferenceTest)
#include "difference_test.moc"
