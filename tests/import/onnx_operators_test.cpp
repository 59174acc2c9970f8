// SPDX-License-Identifier: Apache-2.0
// Operator kinds, opset differences, shape arithmetic and batch re-binding on small graphs with answers worked out by
// hand.
#include "import/onnx_bound.h"

class OnnxOperatorsTest : public QObject {
  Q_OBJECT
 private slots:
  /// kind, opset, input shape (batch first), extra initializers and attributes -> shape of the result at batch 4.
  void shapes_data() {
    QTest::addColumn<int>("opset");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("shape");
    QTest::addColumn<QString>("constants");   // "2,3;0" int64 vectors given as further inputs; "-" absent
    QTest::addColumn<QString>("attributes");  // "axis=1;axes=[1,2];mode='x'"
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, int opset, const char* kind, const char* shape, const char* constants,
                        const char* attributes, const char* expected) {
      QTest::newRow(name) << opset << kind << shape << constants << attributes << expected;
    };
    row("flatten", 13, "Flatten", "3,4,5", "", "axis=1", "4,60");
    row("flatten negative, the batch kept apart", 13, "Flatten", "3,4,5", "", "axis=-1", "4,3,4,5");
    row("reshape zero and minus one", 13, "Reshape", "3,4,5", "0,-1,10", "", "4,6,10");
    row("reshape attribute", 1, "Reshape", "3,4", "", "shape=[-1,12]", "4,12");
    row("squeeze attribute", 11, "Squeeze", "1,5", "", "axes=[1]", "4,5");
    row("squeeze input", 13, "Squeeze", "1,5", "1", "", "4,5");
    row("squeeze all", 13, "Squeeze", "1,5,1", "", "", "4,5");
    row("unsqueeze attribute", 11, "Unsqueeze", "5", "", "axes=[1,3]", "4,1,5,1");
    row("unsqueeze input", 13, "Unsqueeze", "5", "-1", "", "4,5,1");
    row("slice attribute", 9, "Slice", "10", "", "starts=[2];ends=[100];axes=[1]", "4,8");
    row("slice input", 13, "Slice", "10", "2;9;1;3", "", "4,3");
    row("slice backwards", 13, "Slice", "10", "-1;-11;1;-1", "", "4,10");
    row("pad attribute", 2, "Pad", "3,8,8", "", "pads=[0,0,1,1,0,0,2,2]", "4,3,11,11");
    row("pad input", 13, "Pad", "3,8,8", "0,0,1,1,0,0,2,2", "", "4,3,11,11");
    row("softmax", 13, "Softmax", "10", "", "axis=-1", "4,10");
    row("reduce attribute", 11, "ReduceMean", "3,8,8", "", "axes=[2,3];keepdims=0", "4,3");
    row("reduce input", 18, "ReduceMean", "3,8,8", "2,3", "keepdims=1", "4,3,1,1");
    row("reduce all", 13, "ReduceSum", "3,8", "", "keepdims=0", "");
    row("transpose default", 13, "Transpose", "3,8", "", "", "8,3,4");
    row("tile", 13, "Tile", "3", "1,2", "", "4,6");
    row("expand", 13, "Expand", "1,5", "1,7,1", "", "4,7,5");
    row("max pool", 12, "MaxPool", "3,7,7", "", "kernel_shape=[3,3];strides=[2,2]", "4,3,3,3");
    row("max pool ceil", 12, "MaxPool", "3,8,8", "", "kernel_shape=[3,3];strides=[2,2];ceil_mode=1", "4,3,4,4");
    row("max pool ceil in padding", 12, "MaxPool", "3,5,5", "",
        "kernel_shape=[2,2];strides=[2,2];pads=[1,1,1,1];ceil_mode=1", "4,3,3,3");
    row("average pool same", 11, "AveragePool", "3,7,7", "", "kernel_shape=[3,3];strides=[2,2];auto_pad='SAME_UPPER'",
        "4,3,4,4");
    row("global pool", 12, "GlobalAveragePool", "3,7,7", "", "", "4,3,1,1");
    row("depth to space", 13, "DepthToSpace", "12,4,4", "", "blocksize=2", "4,3,8,8");
    row("space to depth", 13, "SpaceToDepth", "3,4,4", "", "blocksize=2", "4,12,2,2");
    row("gather scalar-like", 13, "Gather", "5,6", "2", "axis=1", "4,1,6");
    row("top k", 11, "TopK", "10", "3", "axis=1", "4,3");
    row("arg max", 13, "ArgMax", "10", "", "axis=1;keepdims=0", "4");
    row("cast", 13, "Cast", "10", "", "to=7", "4,10");
    row("identity", 13, "Identity", "10", "", "", "4,10");
    row("unknown", 13, "Frobnicate", "10,3", "", "", "4,10,3");
  }

  void shapes() {
    QFETCH(int, opset);
    QFETCH(QString, kind);
    QFETCH(QString, shape);
    QFETCH(QString, constants);
    QFETCH(QString, attributes);
    QFETCH(QString, expected);
    test::Model m(static_cast<std::uint64_t>(opset));
    std::vector<std::string> dims{"batch"};
    for (const auto& dim : shape.split(',', Qt::SkipEmptyParts)) dims.push_back(dim.toStdString());
    m.input("x", dims).node("Relu", {"x"}, {"r"});
    std::vector<std::string> inputs{"r"};
    int next = 0;
    for (const auto& text : constants.split(';', Qt::SkipEmptyParts)) {
      std::vector<std::int64_t> values;
      for (const auto& v : text.split(',')) values.push_back(v.toLongLong());
      std::string name = "c";
      name += std::to_string(next++);
      m.initializer(integers(name, values));
      inputs.push_back(name);
    }
    std::vector<Message> made;
    for (const auto& text : attributes.split(';', Qt::SkipEmptyParts)) {
      const auto key = text.section('=', 0, 0).toStdString();
      const auto value = text.section('=', 1);
      if (value.startsWith('[')) {
        std::vector<std::int64_t> values;
        for (const auto& v : value.mid(1, value.size() - 2).split(',')) values.push_back(v.toLongLong());
        made.push_back(attribute(key, values));
      } else if (value.startsWith('\'')) {
        made.push_back(attribute(key, value.mid(1, value.size() - 2).toStdString()));
      } else {
        made.push_back(attribute(key, std::int64_t{value.toLongLong()}));
      }
    }
    m.node(kind.toStdString(), inputs, {"y"}, made, "tested").output("y");
    BIND(bound, m);
    Shape wanted;
    for (const auto& size : expected.split(',', Qt::SkipEmptyParts)) wanted.push_back(size.toLongLong());
    QCOMPARE(bound.result().shape, wanted);
    if (kind == "Frobnicate") {
      QCOMPARE(bound.model->warnings.size(), std::size_t{1});
      QVERIFY(bound.model->warnings[0].find("Frobnicate") != std::string::npos);
      QVERIFY(bound.maker().kind == OperatorKind::opaque);
    } else {
      QVERIFY(bound.model->warnings.empty());
    }
  }

  void convolutions() {
    test::Model m;
    m.input("x", {"batch", "3", "32", "32"}).weight("w", {8, 3, 3, 3}).weight("b", {8}).weight("t", {8, 4, 2, 2});
    m.node("Conv", {"x", "w", "b"}, {"c"}, {attribute("pads", list({1, 1, 1, 1})), attribute("strides", list({2, 2}))},
           "/net/conv/Conv");
    m.node("ConvTranspose", {"c", "t"}, {"y"},
           {attribute("strides", list({2, 2})), attribute("output_padding", list({1, 1}))})
        .output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, (Shape{4, 4, 33, 33}));
    const auto& conv = bound.model->operators[OperatorId(1)];
    QCOMPARE(conv.scope, std::string("net/conv"));
    QCOMPARE(conv.forward_macs, 4.0 * 8 * 16 * 16 * 27);
    QCOMPARE(bound.model->parameters, std::int64_t{8 * 27 + 8 + 8 * 4 * 4});
    test::Model same;
    same.input("x", {"batch", "3", "33", "33"}).weight("w", {8, 3, 3, 3});
    same.node("Conv", {"x", "w"}, {"y"},
              {attribute("auto_pad", std::string("SAME_LOWER")), attribute("strides", list({2, 2}))})
        .output("y");
    BIND(padded, same);
    QCOMPARE(padded.result().shape, (Shape{4, 8, 17, 17}));
  }

  void linear_layers_fold_their_bias() {
    test::Model m;
    m.input("x", {"batch", "seq", "16"}).weight("w", {16, 32}).weight("b", {32}).weight("v", {8, 32}).weight("c", {8});
    m.node("MatMul", {"x", "w"}, {"p"})
        .node("Add", {"b", "p"}, {"h"})
        .node("Transpose", {"v"}, {"vt"}, {attribute("perm", list({1, 0}))});
    m.node("MatMul", {"h", "vt"}, {"q"}).node("Add", {"q", "c"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->operators.size(), std::size_t{3});  // input and two products
    QCOMPARE(bound.maker().inputs.size(), std::size_t{3});
    QCOMPARE(bound.model->parameters, std::int64_t{16 * 32 + 32 + 8 * 32 + 8});
    QCOMPARE(bound.result().shape, (Shape{4, 8, 8}));
    QVERIFY((bound.result().dims == std::vector{DimName::batch, DimName::sequence, DimName::channel}));
    QCOMPARE(summarise(*bound.model).macs_forward, 4.0 * 8 * (16 * 32 + 32 * 8));
    QCOMPARE(summarise(*bound.model).macs_backward, 4.0 * 8 * (16 * 32 + 2 * 32 * 8));
  }

  void gemm_forms() {
    test::Model m;
    m.input("x", {"batch", "16"}).weight("w", {32, 16}).weight("b", {32}).weight("full", {1, 32});
    m.node("Gemm", {"x", "w", "b"}, {"h"}, {attribute("transB", std::int64_t{1})})
        .node("Gemm", {"x", "w", "full"}, {"g"}, {attribute("transB", std::int64_t{1})});
    m.node("Add", {"h", "g"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, (Shape{4, 32}));
    QCOMPARE(bound.model->parameters, std::int64_t{32 * 16 + 32 + 32});
    QCOMPARE(bound.count(OperatorKind::matmul), std::size_t{2});
  }

  void attention_with_merged_batch_and_heads() {
    // As exporters write it for three-dimensional products: batch 2 baked in, 4 heads of 8, sequence 6.
    test::Model m;
    m.input("x", {"6", "2", "32"})
        .weight("wq", {32, 32})
        .weight("wk", {32, 32})
        .weight("wv", {32, 32})
        .weight("wo", {32, 32});
    m.initializer(integers("heads", {6, 8, 8}))
        .initializer(integers("rows", {12, 32}))
        .initializer(integers("back", {6, 2, 32}));
    for (const char* name : {"q", "k", "v"}) {
      const std::string n(name);
      m.node("MatMul", {"x", std::string("w").append(n)}, {std::string("p").append(n)});
      m.node("Reshape", {std::string("p").append(n), "heads"}, {std::string("h").append(n)});
      m.node("Transpose", {std::string("h").append(n)}, {std::string("t").append(n)},
             {attribute("perm", n == "k" ? list({1, 2, 0}) : list({1, 0, 2}))});
    }
    m.node("MatMul", {"tq", "tk"}, {"scores"})
        .node("Softmax", {"scores"}, {"p"}, {attribute("axis", std::int64_t{-1})});
    m.node("MatMul", {"p", "tv"}, {"context"})
        .node("Transpose", {"context"}, {"ct"}, {attribute("perm", list({1, 0, 2}))});
    m.node("Reshape", {"ct", "rows"}, {"flat"})
        .node("MatMul", {"flat", "wo"}, {"o"})
        .node("Reshape", {"o", "back"}, {"y"})
        .output("y");
    // The leading dimension is the sequence here: 6 is what gets re-bound, so ask for 6 and for 12.
    for (const std::int64_t batch : {6, 12}) {
      BIND(bound, m, batch);
      QCOMPARE(bound.result().shape, (Shape{batch, 2, 32}));
      QCOMPARE(summarise(*bound.model).macs_forward,
               static_cast<double>(batch) * 2 * 4 * 32 * 32 + 2.0 * 2 * 4 * static_cast<double>(batch * batch) * 8);
    }
  }

  void baked_batch_is_rebound() {
    test::Model m;
    m.input("x", {"8", "3", "4", "4"}).weight("w", {12, 3, 2, 2}).weight("cls", {1, 1, 12}).weight("pos", {1, 5, 12});
    m.initializer(integers("flat", {8, 12, 4}))
        .initializer(integers("batch", {8, 1, 1}))
        .initializer(integers("heads", {5, 32, 3}))
        .initializer(integers("rows", {40, 12}));
    m.node("Conv", {"x", "w"}, {"c"}, {attribute("strides", list({2, 2}))}).node("Reshape", {"c", "flat"}, {"r"});
    m.node("Transpose", {"r"}, {"t"}, {attribute("perm", list({0, 2, 1}))}).node("Expand", {"cls", "batch"}, {"e"});
    m.node("Concat", {"e", "t"}, {"cat"}, {attribute("axis", std::int64_t{1})}).node("Add", {"cat", "pos"}, {"a"});
    m.node("Transpose", {"a"}, {"s"}, {attribute("perm", list({1, 0, 2}))})
        .node("Reshape", {"s", "heads"}, {"h"})
        .node("Relu", {"h"}, {"hr"});
    m.node("Reshape", {"hr", "rows"}, {"y"}).output("y").output("a");
    for (const std::int64_t batch : {1, 2, 8, 56, 256}) {
      BIND(bound, m, batch);
      QCOMPARE(bound.result(1).shape, (Shape{batch, 5, 12}));
      QCOMPARE(bound.model->batch, batch);
      if (batch == 1) continue;
      // Rows are positions x batch: kept apart, so that the batch can be split.
      QCOMPARE(bound.result(0).shape, (Shape{5, batch, 12}));
      QVERIFY(bound.dim(bound.maker(1), DimName::batch)->splittable);
    }
  }

  void batch_that_cannot_be_rebound_is_named() {
    test::Model m;
    m.input("x", {"8", "16"}).weight("state", {8, 16});
    m.node("Add", {"x", "state"}, {"y"}, {}, "adds a state per sample").output("y");
    QVERIFY(bind(m, 8).model);
    const auto other = bind(m, 3);
    QVERIFY(!other.model && other.error.find("adds a state per sample") != std::string::npos);
  }

  void batch_of_one_reaches_constant_parts() {
    test::Model m;
    m.input("x", {"1", "4", "12"}).weight("cls", {1, 1, 12});
    m.node("Concat", {"cls", "x"}, {"c"}, {attribute("axis", std::int64_t{1})}).node("Relu", {"c"}, {"y"}).output("y");
    BIND(bound, m, 16);
    QCOMPARE(bound.result().shape, (Shape{16, 5, 12}));
  }

  void shape_arithmetic_is_folded() {
    test::Model m;
    m.input("x", {"batch", "seq", "32"});
    m.initializer(test::integer("zero", 0))
        .initializer(test::integer("one", 1))
        .initializer(integers("axis0", {0}))
        .initializer(integers("tail", {4, 8}));
    m.initializer(test::integer("two", 2)).initializer(integers("minus", {-1}));
    m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"b"}).node("Gather", {"s", "one"}, {"n"});
    m.node("Mul", {"n", "two"}, {"n2"})
        .node("Div", {"n2", "two"}, {"n3"})
        .node("Cast", {"n3"}, {"n4"}, {attribute("to", std::int64_t{7})});
    m.node("Unsqueeze", {"b", "axis0"}, {"bu"}).node("Unsqueeze", {"n4", "axis0"}, {"nu"});
    m.node("Concat", {"bu", "nu", "tail"}, {"target"}, {attribute("axis", std::int64_t{0})})
        .node("Reshape", {"x", "target"}, {"r"});
    m.node("Relu", {"r"}, {"y"}).output("y");
    BIND(bound, m, 3, 10);
    QCOMPARE(bound.result().shape, (Shape{3, 10, 4, 8}));
    QCOMPARE(bound.model->operators.size(), std::size_t{3});
    QVERIFY(
        (bound.result().dims == std::vector{DimName::batch, DimName::sequence, DimName::head, DimName::head_channel}));
    QCOMPARE(bound.model->sequence, std::int64_t{10});
    QCOMPARE(bound.model->symbolic_dimensions, (std::vector<std::string>{"batch", "seq"}));
  }

  void masks_from_ranges_are_constants() {
    test::Model m;
    m.input("x", {"batch", "seq", "seq"});
    m.initializer(test::integer("zero", 0))
        .initializer(test::integer("one", 1))
        .initializer(integers("column", {1}))
        .initializer(test::number("low", -1e9f))
        .initializer(test::number("nil", 0));
    m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "one"}, {"n"}).node("Range", {"zero", "n", "one"}, {"i"});
    m.node("Unsqueeze", {"i", "column"}, {"j"})
        .node("Less", {"j", "i"}, {"future"})
        .node("Where", {"future", "low", "nil"}, {"mask"});
    m.node("Add", {"x", "mask"}, {"a"}).node("Softmax", {"a"}, {"y"}).output("y");
    BIND(bound, m, 2, 512);  // 512 x 512: too large to keep, its shape is enough
    QCOMPARE(bound.model->operators.size(), std::size_t{3});
    QVERIFY(!bound.model->tensors[bound.model->operators[OperatorId(1)].inputs[1].tensor].requires_gradient);
  }

  void embeddings_and_ties() {
    test::Model m;
    m.input("ids", {"batch", "seq"}, test::kInt64).weight("table", {100, 16});
    m.node("Gather", {"table", "ids"}, {"e"})
        .node("Transpose", {"table"}, {"tt"}, {attribute("perm", list({1, 0}))})
        .node("MatMul", {"e", "tt"}, {"y"})
        .output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t{1600});
    QCOMPARE(bound.count(OperatorKind::embedding), std::size_t{1});
    QCOMPARE(bound.maker().inputs[1].tensor, bound.model->operators[OperatorId(1)].inputs[0].tensor);
    QCOMPARE(bound.result().shape, (Shape{4, 8, 100}));
  }

  void weights_that_are_graph_inputs() {
    test::Model m;
    m.input("x", {"batch", "16"}).input("w", {"16", "32"}).input("b", {"32"});
    m.node("Identity", {"w"}, {"wi"}).node("MatMul", {"x", "wi"}, {"p"}).node("Add", {"p", "b"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t{16 * 32 + 32});
    QCOMPARE(bound.count(OperatorKind::input), std::size_t{1});
  }

  void normalisations() {
    test::Model m;
    m.input("x", {"batch", "6", "8", "8"}).weight("s", {6}).weight("b", {6}).weight("mean", {6}).weight("var", {6});
    m.node("BatchNormalization", {"x", "s", "b", "mean", "var"}, {"n"})
        .node("InstanceNormalization", {"n", "s", "b"}, {"i"})
        .node("GlobalMaxPool", {"i"}, {"y"})
        .output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t{12});
    QCOMPARE(bound.model->buffers, std::int64_t{12});
    QCOMPARE(bound.count(OperatorKind::batch_normalisation), std::size_t{1});
    test::Model ln;  // written out, as exporters before opset 17 did
    ln.input("x", {"batch", "seq", "16"})
        .weight("g", {16})
        .weight("b", {16})
        .initializer(test::number("two", 2))
        .initializer(test::number("eps", 1e-5f));
    ln.node("ReduceMean", {"x"}, {"m"}, {attribute("axes", list({-1}))})
        .node("Sub", {"x", "m"}, {"d"})
        .node("Pow", {"d", "two"}, {"p"});
    ln.node("ReduceMean", {"p"}, {"v"}, {attribute("axes", list({-1}))})
        .node("Add", {"v", "eps"}, {"ve"})
        .node("Sqrt", {"ve"}, {"r"})
        .node("Div", {"d", "r"}, {"q"});
    ln.node("Mul", {"q", "g"}, {"w"}).node("Add", {"w", "b"}, {"y"}).output("y");
    test::Model eleven = ln;
    BIND(folded, eleven);
    QCOMPARE(folded.model->operators.size(), std::size_t{2});
    QVERIFY(folded.maker().kind == OperatorKind::normalisation);
    QCOMPARE(folded.model->parameters, std::int64_t{32});
  }

  void gelu_is_one_operator() {
    for (const bool half_first : {true, false}) {
      test::Model m;
      m.input("x", {"batch", "16"})
          .initializer(test::number("root", 1.41421356f))
          .initializer(test::number("one", 1))
          .initializer(test::number("half", 0.5f));
      m.node("Div", {"x", "root"}, {"d"}).node("Erf", {"d"}, {"e"}).node("Add", {"e", "one"}, {"a"});
      if (half_first)
        m.node("Mul", {"x", "half"}, {"h"}).node("Mul", {"h", "a"}, {"y"}).output("y");
      else
        m.node("Mul", {"x", "a"}, {"h"}).node("Mul", {"h", "half"}, {"y"}).output("y");
      BIND(bound, m);
      QCOMPARE(bound.model->operators.size(), std::size_t{2});
      QCOMPARE(bound.maker().detail, std::string("Gelu"));
    }
  }

  void recurrent_layers() {
    test::Model m;
    m.input("x", {"seq", "batch", "16"}).weight("w", {2, 128, 16}).weight("r", {2, 128, 32}).weight("b", {2, 256});
    m.node("LSTM", {"x", "w", "r", "b"}, {"y", "h"},
           {attribute("hidden_size", std::int64_t{32}), attribute("direction", std::string("bidirectional"))})
        .output("y")
        .output("h");
    BIND(bound, m, 4, 10);
    QCOMPARE(bound.result(0).shape, (Shape{10, 2, 4, 32}));
    QCOMPARE(bound.result(1).shape, (Shape{2, 4, 32}));
    QCOMPARE(summarise(*bound.model).macs_forward, 2.0 * 10 * 4 * 128 * (16 + 32));
    test::Model gru;
    gru.input("x", {"batch", "seq", "16"}).weight("w", {1, 96, 16}).weight("r", {1, 96, 32});
    gru.node("GRU", {"x", "w", "r"}, {"y"},
             {attribute("hidden_size", std::int64_t{32}), attribute("layout", std::int64_t{1})})
        .output("y");
    BIND(first, gru, 4, 10);
    QCOMPARE(first.result().shape, (Shape{4, 10, 1, 32}));
  }

  void einsum() {
    test::Model m;
    m.input("x", {"batch", "seq", "32"}).weight("w", {32, 4, 8});
    m.node("Einsum", {"x", "w"}, {"y"}, {attribute("equation", std::string("bsi, ihd -> bshd"))}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, (Shape{4, 8, 4, 8}));
    QCOMPARE(bound.maker().forward_macs, 4.0 * 8 * 32 * 32);
    QCOMPARE(bound.model->parameters, std::int64_t{1024});
  }

  void local_functions_are_inlined() {
    test::Model m;
    Message f;
    f.text(1, "Silu").text(4, "v").text(5, "out").text(10, "own");
    f.message(7, test::Model::make_node("Sigmoid", {"v"}, {"g"}))
        .message(7, test::Model::make_node("Mul", {"v", "g"}, {"out"}));
    m.function(f)
        .input("x", {"batch", "16"})
        .node("Silu", {"x"}, {"a"}, {}, "first", "own")
        .node("Silu", {"a"}, {"y"}, {}, "second", "own")
        .output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->operators.size(), std::size_t{5});
    QCOMPARE(bound.maker().scope, std::string("second"));
    QVERIFY(bound.model->warnings.empty());
  }

  void branches() {
    const auto branch = [](const char* name, const char* kind, const char* weight) {
      Message graph;
      graph.message(1, test::Model::make_node("MatMul", {"x", weight}, {"p"}))
          .message(1, test::Model::make_node(kind, {"p"}, {"out"}));
      graph.message(5, test::tensor(weight, {16, 16}, test::kFloat)).message(12, Message().text(1, "out"));
      return Message().text(1, name).message(6, graph).number(20, 5);
    };
    const std::vector<Message> both{branch("then_branch", "Relu", "w"), branch("else_branch", "Tanh", "v")};
    for (const int which : {0, 1, 2}) {
      test::Model m;
      m.input("x", {"batch", "16"}).input("flag", {}, test::kBool);
      m.initializer(test::integer("four", 4))
          .initializer(test::integer("zero", 0))
          .node("Shape", {"x"}, {"s"})
          .node("Gather", {"s", "zero"}, {"n"});
      m.node(which == 1 ? "Less" : "Equal", {"n", "four"}, {"known"});
      m.node("If", {which == 2 ? "flag" : "known"}, {"y"}, both, "choice").output("y");
      BIND(bound, m);  // batch 4: Equal holds, Less does not
      QCOMPARE(bound.maker().detail, std::string(which == 1 ? "Tanh" : "Relu"));
      QCOMPARE(bound.model->parameters, std::int64_t{256});
      QCOMPARE(bound.model->warnings.size(), std::size_t(which == 2 ? 1 : 0));
      QVERIFY(bound.maker().name.find(which == 1 ? "choice/else/" : "choice/then/") == 0);
    }
  }

  void dropout_by_opset() {
    const auto operators = [](std::uint64_t opset, const std::vector<std::string>& inputs) {
      test::Model m(opset);
      m.input("x", {"batch", "16"})
          .initializer(test::number("ratio", 0.1f))
          .initializer(test::number("nothing", 0))
          .initializer(test::tensor("yes", {}, test::kBool, std::string_view("\1", 1)));
      m.node("Relu", {"x"}, {"r"}).node("Dropout", inputs, {"d", "mask"}).node("Tanh", {"d"}, {"y"}).output("y");
      const auto bound = bind(m);
      return bound.model ? bound.model->operators.size() : 0;
    };
    QCOMPARE(operators(10, {"r"}), std::size_t{3});
    QCOMPARE(operators(13, {"r"}), std::size_t{3});
    QCOMPARE(operators(13, {"r", "nothing", "yes"}), std::size_t{3});
    QCOMPARE(operators(13, {"r", "ratio", "yes"}), std::size_t{4});
  }

  void dead_nodes_and_unused_weights_do_not_count() {
    test::Model m;
    m.input("x", {"batch", "16"}).weight("w", {16, 16}).weight("unused", {1000, 1000}).weight("dead", {16, 77});
    m.node("MatMul", {"x", "w"}, {"y"}).node("MatMul", {"x", "dead"}, {"nobody"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t{256});
    QCOMPARE(bound.model->operators.size(), std::size_t{2});
  }

  void default_sequence_is_the_longest_that_fits() {
    test::Model m;
    m.input("ids", {"batch", "seq"}, test::kInt64).weight("table", {100, 16}).weight("positions", {512, 16});
    m.initializer(integers("zero", {0})).initializer(integers("one", {1})).initializer(integers("axis", {0}));
    m.node("Gather", {"table", "ids"}, {"e"}).node("Shape", {"ids"}, {"s"}).node("Slice", {"s", "one", "two"}, {"n"});
    m.initializer(integers("two", {2}));
    m.node("Slice", {"positions", "zero", "n", "axis"}, {"p"}).node("Add", {"e", "p"}, {"y"}).output("y");
    BIND(bound, m, 2, 0);
    QCOMPARE(bound.model->sequence, std::int64_t{512});
    const auto longer = bind(m, 2, 513);
    QVERIFY(!longer.model && longer.error.find("Add") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(OnnxOperatorsTest)
#include "onnx_operators_test.moc"
