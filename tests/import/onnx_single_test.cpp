// SPDX-License-Identifier: Apache-2.0
// Parameters of one element, which an exporter's constants look like.
#include "import/onnx_bound.h"

class OnnxSingleTest : public QObject {
  Q_OBJECT

 private slots:
  /// The last layer to one output has a bias of one number, which is a parameter like any other: one operator with its
  /// weight, a gradient, optimizer state. So is a single slope; a single number elsewhere is a constant.
  void parameters_of_one_element_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<std::vector<std::int64_t>>("weight");
    QTest::addColumn<std::vector<std::int64_t>>("bias");
    QTest::addColumn<qint64>("parameters");
    using Sizes = std::vector<std::int64_t>;
    QTest::newRow("product and sum") << "MatMul" << Sizes{16, 1} << Sizes{1} << qint64(17);
    QTest::newRow("product and a matrix") << "MatMul" << Sizes{16, 1} << Sizes{1, 1} << qint64(17);
    QTest::newRow("product and a scalar") << "MatMul" << Sizes{16, 1} << Sizes{} << qint64(16);
    QTest::newRow("wide product") << "MatMul" << Sizes{16, 4} << Sizes{1} << qint64(64);
    QTest::newRow("general product") << "Gemm" << Sizes{16, 1} << Sizes{1} << qint64(17);
    QTest::newRow("general product and a matrix") << "Gemm" << Sizes{16, 1} << Sizes{1, 1} << qint64(17);
    QTest::newRow("wide general product") << "Gemm" << Sizes{16, 4} << Sizes{1} << qint64(65);
    QTest::newRow("convolution") << "Conv" << Sizes{1, 16, 1, 1} << Sizes{1, 1, 1} << qint64(17);
    QTest::newRow("wide convolution") << "Conv" << Sizes{4, 16, 1, 1} << Sizes{1, 1, 1} << qint64(64);
    QTest::newRow("slope") << "PRelu" << Sizes{} << Sizes{1} << qint64(1);
  }
  void parameters_of_one_element() {
    QFETCH(QString, kind);
    QFETCH(std::vector<std::int64_t>, weight);
    QFETCH(std::vector<std::int64_t>, bias);
    QFETCH(qint64, parameters);
    test::Model m;
    if (kind == "Conv")
      m.input("x", {"batch", "16", "8", "8"});
    else
      m.input("x", {"batch", "16"});
    m.weight("b", bias);
    if (kind == "PRelu") {
      m.node("PRelu", {"x", "b"}, {"y"}).output("y");
    } else if (kind == "Gemm") {
      m.weight("w", weight).node("Gemm", {"x", "w", "b"}, {"y"}).output("y");
    } else {
      m.weight("w", weight).node(kind.toStdString(), {"x", "w"}, {"p"}).node("Add", {"b", "p"}, {"y"}).output("y");
    }
    BIND(bound, m);
    QCOMPARE(qint64(bound.model->parameters), parameters);
    qint64 trained = 0;
    for (const auto& tensor : bound.model->tensors)
      if (tensor.role == TensorRole::parameter && tensor.requires_gradient) trained += tensor.elements();
    QCOMPARE(trained, parameters);
    if (kind == "MatMul" && bias == std::vector<std::int64_t>{1} && weight.back() == 1)
      QCOMPARE(bound.maker().inputs.size(), std::size_t{3});
  }
};

QTEST_GUILESS_MAIN(OnnxSingleTest)
#include "onnx_single_test.moc"
