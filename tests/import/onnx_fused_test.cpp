// SPDX-License-Identifier: Apache-2.0
// Operators that stand for several: their work, parameters and shapes against sums done by hand.
#include "import/onnx_bound.h"

namespace {

constexpr const char* kRuntime = "com.microsoft";
constexpr std::int64_t kBatch = 4;

double macs(const Bound& bound) { return summarise(*bound.model).macs_forward; }

}  // namespace

class OnnxFusedTest : public QObject {
  Q_OBJECT
 private slots:
  void attention_by_head_and_merged() {
    test::Model apart(23);
    apart.input("q", {"batch", "6", "5", "8"})
        .input("k", {"batch", "3", "7", "8"})
        .input("v", {"batch", "3", "7", "10"});
    apart.node("Attention", {"q", "k", "v"}, {"y", "", "", "scores"}).output("y").output("scores");
    BIND(a, apart, kBatch);
    QCOMPARE(a.result(0).shape, list({4, 6, 5, 10}));
    QCOMPARE(a.result(1).shape, list({4, 6, 5, 7}));
    QCOMPARE(macs(a), 4.0 * 6 * 5 * 7 * (8 + 10));  // scores and context
    QCOMPARE(a.count(OperatorKind::softmax), std::size_t{1});

    test::Model merged(23);
    merged.input("q", {"batch", "5", "48"}).input("k", {"batch", "7", "24"}).input("v", {"batch", "7", "24"});
    merged.input("past", {"batch", "3", "2", "8"});
    merged.node("Attention", {"q", "k", "v", "", "past", "past"}, {"y", "keys"},
                {attribute("q_num_heads", std::int64_t{6}), attribute("kv_num_heads", std::int64_t{3})});
    merged.output("y").output("keys");
    BIND(b, merged, kBatch);
    QCOMPARE(b.result(0).shape, list({4, 5, 48}));
    QCOMPARE(b.result(1).shape, list({4, 3, 9, 8}));
    QCOMPARE(macs(b), 2.0 * 4 * 6 * 5 * 9 * 8);
  }

  void attention_of_the_runtime() {
    test::Model packed;
    packed.input("x", {"batch", "5", "16"}).weight("w", {16, 48}).weight("b", {48});
    packed.node("Attention", {"x", "w", "b"}, {"y"}, {attribute("num_heads", std::int64_t{4})}, "a", kRuntime)
        .output("y");
    BIND(a, packed, kBatch);
    QCOMPARE(a.result().shape, list({4, 5, 16}));
    QCOMPARE(a.model->parameters, std::int64_t{16 * 48 + 48});
    QCOMPARE(macs(a), 4.0 * 5 * 16 * 48 + 2.0 * 4 * 4 * 5 * 5 * 4);

    test::Model many;
    many.input("q", {"batch", "5", "16"})
        .input("k", {"batch", "7", "16"})
        .input("v", {"batch", "7", "16"})
        .weight("b", {48});
    many.node("MultiHeadAttention", {"q", "k", "v", "b"}, {"y"}, {attribute("num_heads", std::int64_t{4})}, "a",
              kRuntime)
        .output("y");
    BIND(m, many, kBatch);
    QCOMPARE(m.result().shape, list({4, 5, 16}));
    QCOMPARE(m.model->parameters, std::int64_t{48});
    QCOMPARE(macs(m), 2.0 * 4 * 4 * 5 * 7 * 4);

    test::Model group;
    group.input("qkv", {"batch", "5", "64"});  // 4 query heads, 2 key and 2 value heads of 8
    group.node("GroupQueryAttention", {"qkv"}, {"y"},
               {attribute("num_heads", std::int64_t{4}), attribute("kv_num_heads", std::int64_t{2})}, "a", kRuntime);
    group.output("y");
    BIND(g, group, kBatch);
    QCOMPARE(g.result().shape, list({4, 5, 32}));
    QCOMPARE(macs(g), 2.0 * 4 * 4 * 5 * 5 * 8);
  }

  void normalisations_with_their_sum() {
    test::Model m;
    m.input("ids", {"batch", "5"}, test::kInt64)
        .weight("word", {100, 16})
        .weight("position", {64, 16})
        .weight("segment", {2, 16});
    for (const char* name : {"g", "b", "h", "c"}) m.weight(name, {16});
    m.node("EmbedLayerNormalization", {"ids", "", "word", "position", "segment", "g", "b"}, {"e"}, {}, "embed",
           kRuntime);
    m.node("SkipLayerNormalization", {"e", "e", "h", "c"}, {"y", "", "", "sum"}, {}, "skip", kRuntime)
        .output("y")
        .output("sum");
    BIND(bound, m, kBatch);
    QCOMPARE(bound.result(0).shape, list({4, 5, 16}));
    QCOMPARE(bound.result(1).shape, list({4, 5, 16}));
    QCOMPARE(bound.model->parameters, std::int64_t{(100 + 64 + 2) * 16 + 4 * 16});
    QCOMPARE(bound.count(OperatorKind::normalisation), std::size_t{2});
    QCOMPARE(bound.count(OperatorKind::embedding), std::size_t{3});
  }

  void products_under_other_names() {
    test::Model m;
    m.input("x", {"batch", "16"}).weight("w", {24, 16}).weight("b", {24});
    m.node("FusedMatMul", {"x", "w"}, {"p"}, {attribute("transB", std::int64_t{1})}, "product", kRuntime);
    m.node("BiasGelu", {"p", "b"}, {"y"}, {}, "act", kRuntime).output("y");
    BIND(bound, m, kBatch);
    QCOMPARE(bound.result().shape, list({4, 24}));
    QCOMPARE(bound.model->parameters, std::int64_t{24 * 16 + 24});
    QCOMPARE(macs(bound), 4.0 * 16 * 24);

    test::Model q;
    constexpr std::uint64_t kInt8 = 3, kUint8 = 2;
    q.input("x", {"batch", "3", "8", "8"}, kUint8)
        .weight("w", {6, 3, 3, 3}, kInt8)
        .initializer(test::number("s", 0.1f));
    q.initializer(test::tensor("z", {}, kUint8, std::string_view("\1", 1)));
    q.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"y"}).output("y");
    BIND(quantised, q, kBatch);
    QCOMPARE(quantised.result().shape, list({4, 6, 6, 6}));
    QCOMPARE(macs(quantised), 4.0 * 6 * 36 * 27);
    QCOMPARE(quantised.model->parameters, std::int64_t{0});  // integers are not trained
  }

  void losses() {
    test::Model m;
    m.input("x", {"batch", "16"}).input("t", {"batch"}, test::kInt64).weight("w", {16, 10});
    m.node("MatMul", {"x", "w"}, {"scores"})
        .node("SoftmaxCrossEntropyLoss", {"scores", "t"}, {"loss", "log"})
        .output("loss")
        .output("log");
    BIND(bound, m, kBatch);
    QCOMPARE(bound.count(OperatorKind::cross_entropy), std::size_t{1});
    QCOMPARE(bound.result(1).shape, list({4, 10}));
    test::Model maps;
    maps.input("x", {"batch", "10", "6", "6"}).input("t", {"batch", "6", "6"}, test::kInt64);
    maps.node("Relu", {"x"}, {"r"})
        .node("NegativeLogLikelihoodLoss", {"r", "t"}, {"loss"}, {attribute("reduction", std::string("none"))});
    maps.output("loss");
    BIND(each, maps, kBatch);
    QCOMPARE(each.result().shape, list({4, 6, 6}));
  }

  void parts_of_nothing() {
    test::Model m;
    m.input("x", {"batch", "8"}).initializer(integers("sizes", {8, 0}));
    m.node("Split", {"x", "sizes"}, {"all", "none"}, {attribute("axis", std::int64_t{1})}).node("Relu", {"all"}, {"r"});
    m.node("Concat", {"r", "none"}, {"y"}, {attribute("axis", std::int64_t{1})}).output("y");
    BIND(bound, m, kBatch);
    QCOMPARE(bound.result().shape, list({4, 8}));
  }

  void einsum_of_one_operand() {
    const auto shape_of = [](const char* equation) {
      test::Model m;
      m.input("x", {"batch", "6", "8"}).node("Einsum", {"x"}, {"e"}, {attribute("equation", std::string(equation))});
      m.node("Relu", {"e"}, {"y"}).output("y");
      const auto bound = bind(m, kBatch);
      return bound.model ? bound.result().shape : Shape{-1};
    };
    QCOMPARE(shape_of("bij->bji"), list({4, 8, 6}));
    QCOMPARE(shape_of("bij->jb"), list({8, 4}));
    QCOMPARE(shape_of("bij->b"), list({4}));
    QCOMPARE(shape_of("cba"), list({8, 6, 4}));  // no arrow: indices in alphabetical order
    QCOMPARE(shape_of("bii->b"), list({-1}));
  }

  void what_does_not_fit_is_named() {
    const auto message = [](const test::Model& m) { return bind(m, kBatch).error; };
    test::Model heads(23);
    heads.input("q", {"batch", "5", "48"})
        .node("Attention", {"q", "q", "q"}, {"y"}, {attribute("q_num_heads", std::int64_t{7})}, "odd")
        .output("y");
    QVERIFY(message(heads).find("'odd'") != std::string::npos && message(heads).find("heads") != std::string::npos);
    test::Model sizes;
    sizes.input("x", {"batch", "5", "16"}).weight("w", {16, 48});
    sizes.node(
        "Attention", {"x", "w"}, {"y"},
        {attribute("num_heads", std::int64_t{4}), attribute("qkv_hidden_sizes", std::vector<std::int64_t>{1, 2, 3})},
        "odd", kRuntime);
    sizes.output("y");
    QVERIFY(message(sizes).find("'odd'") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(OnnxFusedTest)
#include "onnx_fused_test.moc"
