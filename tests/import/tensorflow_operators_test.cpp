// SPDX-License-Identifier: Apache-2.0
// TensorFlow operators one by one: shapes, parameters and multiply-accumulates counted by hand.
#include "import/tensorflow_bound.h"

namespace {

const std::string kImage = placeholder("x", {-1, 8, 10, 3});
std::string same(const Shape& strides, const std::string& padding = "SAME") {
  return list("strides", strides) + text("padding", padding);
}

}  // namespace

class TensorflowOperatorsTest : public QObject {
  Q_OBJECT
 private slots:
  void convolutions() {
    BIND(m, kImage + weight("k", {3, 3, 3, 16}) + weight("b", {16}) +
                node("c", "Conv2D", {"x", "k"}, same({1, 2, 2, 1})) + node("y", "BiasAdd", {"c", "b"}));
    QCOMPARE(m.result().shape, (Shape{4, 16, 4, 5}));  // channels first
    QCOMPARE(m.macs(), 4.0 * 16 * 4 * 5 * 27);
    QCOMPARE(m.model->parameters, std::int64_t{27 * 16 + 16});
    QCOMPARE(m.model->operators.size(), std::size_t{2});  // data, and a convolution with its bias; no transpose

    BIND(valid, kImage + weight("k", {3, 3, 3, 16}) +
                    node("y", "Conv2D", {"x", "k"}, same({1, 1, 1, 1}, "VALID") + list("dilations", {1, 2, 2, 1})));
    QCOMPARE(valid.result().shape, (Shape{4, 16, 4, 6}));
    BIND(padded, kImage + weight("k", {3, 3, 3, 16}) +
                     node("y", "Conv2D", {"x", "k"},
                          same({1, 1, 1, 1}, "EXPLICIT") + list("explicit_paddings", {0, 0, 2, 1, 0, 3, 0, 0})));
    QCOMPARE(padded.result().shape, (Shape{4, 16, 9, 11}));
    BIND(grouped, placeholder("x", {-1, 8, 8, 12}) + weight("k", {1, 1, 3, 8}) +
                      node("y", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})));
    QCOMPARE(grouped.macs(), 4.0 * 64 * 8 * 3);
    BIND(first, placeholder("x", {-1, 3, 8, 10}) + weight("k", {3, 3, 3, 16}) + weight("b", {16}) +
                    node("c", "Conv2D", {"x", "k"}, same({1, 1, 2, 2}) + text("data_format", "NCHW")) +
                    node("y", "BiasAdd", {"c", "b"}, text("data_format", "NCHW")));
    QCOMPARE(first.result().shape, (Shape{4, 16, 4, 5}));
    BIND(depthwise,
         kImage + weight("k", {3, 3, 3, 2}) + node("y", "DepthwiseConv2dNative", {"x", "k"}, same({1, 1, 1, 1})));
    QCOMPARE(depthwise.result().shape, (Shape{4, 6, 8, 10}));
    QCOMPARE(depthwise.macs(), 4.0 * 6 * 80 * 9);
    QCOMPARE(depthwise.model->parameters, std::int64_t{54});
    BIND(transposed, placeholder("x", {-1, 4, 5, 16}) + weight("k", {3, 3, 7, 16}) + integers("size", {4, 8, 10, 7}) +
                         node("y", "Conv2DBackpropInput", {"size", "k", "x"}, same({1, 2, 2, 1})));
    QCOMPARE(transposed.result().shape, (Shape{4, 7, 8, 10}));
    BIND(volume, placeholder("x", {-1, 4, 6, 8, 2}) + weight("k", {3, 3, 3, 2, 5}) +
                     node("y", "Conv3D", {"x", "k"}, same({1, 1, 1, 1, 1})));
    QCOMPARE(volume.macs(), 4.0 * 4 * 6 * 8 * 5 * 54);
  }

  void one_kernel_in_two_orders() {
    // Read as a kernel and as it is: stored once.
    BIND(m, placeholder("x", {-1, 8, 8, 4}) + weight("k", {1, 1, 4, 4}) +
                node("c", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})) + integers("flat", {4, 4}) +
                node("matrix", "Reshape", {"k", "flat"}) + integers("rows", {-1, 4}) +
                node("r", "Reshape", {"c", "rows"}) + node("y", "MatMul", {"r", "matrix"}));
    QCOMPARE(m.model->parameters, std::int64_t{16});
    QCOMPARE(m.macs(), 2.0 * 4 * 64 * 16);
  }

  void pooling_and_flattening() {
    BIND(m, kImage + node("p", "MaxPool", {"x"}, list("ksize", {1, 3, 3, 1}) + same({1, 2, 2, 1})) +
                integers("shape", {-1, 60}) + node("flat", "Reshape", {"p", "shape"}) + weight("w", {60, 7}) +
                node("y", "MatMul", {"flat", "w"}));
    QCOMPARE(m.result().shape, (Shape{4, 7}));
    QCOMPARE(m.count(OperatorKind::pooling), std::size_t{1});
    BIND(mean, kImage + integers("axes", {1, 2}) +
                   node("c", "AvgPool", {"x"}, list("ksize", {1, 2, 2, 1}) + same({1, 2, 2, 1}, "VALID")) +
                   node("y", "Mean", {"c", "axes"}));
    QCOMPARE(mean.result().shape, (Shape{4, 3}));
    BIND(kept, kImage + integers("axes", {1, 2}) + node("y", "Mean", {"x", "axes"}, flag("keep_dims")) +
                   node("z", "Squeeze", {"y"}, list("squeeze_dims", {1, 2})));
    QCOMPARE(kept.result().shape, (Shape{4, 3}));
  }

  void batch_normalisation() {
    const std::string parts = kImage + weight("k", {1, 1, 3, 6}) + node("c", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})) +
                              weight("g", {6}) + weight("b", {6}) + weight("m", {6}) + weight("v", {6});
    BIND(fused, parts + node("y", "FusedBatchNormV3", {"c", "g", "b", "m", "v"}) + node("z", "Relu", {"y"}));
    // The same written out, as tf.nn.batch_normalization and Keras write it.
    BIND(written, parts + number("e", 0.001F) + node("ve", "AddV2", {"v", "e"}) + node("r", "Rsqrt", {"ve"}) +
                      node("s", "Mul", {"r", "g"}) + node("xs", "Mul", {"c", "s"}) + node("ms", "Mul", {"m", "s"}) +
                      node("o", "Sub", {"b", "ms"}) + node("y", "AddV2", {"xs", "o"}) + node("z", "Relu", {"y"}));
    for (const auto* m : {&fused, &written}) {
      QCOMPARE(m->model->parameters, std::int64_t{18 + 12});
      QCOMPARE(m->model->buffers, std::int64_t{12});
      QCOMPARE(m->count(OperatorKind::batch_normalisation), std::size_t{1});
      QCOMPARE(m->model->operators.size(), std::size_t{4});
    }
    // In training the statistics are the batch's; the running ones are state beside the graph.
    BIND(training, parts +
                       node("none", "Const", {},
                            attribute("value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 0 } } }")) +
                       node("y", "FusedBatchNorm", {"c", "g", "b", "none", "none"}, flag("is_training")));
    QCOMPARE(training.model->buffers, std::int64_t{12});
  }

  void layer_normalisation_and_activations() {
    BIND(m, placeholder("x", {-1, 5, 8}) + integers("last", {-1}) + weight("g", {8}) + weight("b", {8}) +
                number("e", 0.001F) + node("mean", "Mean", {"x", "last"}, flag("keep_dims")) +
                node("d", "SquaredDifference", {"x", "mean"}) + node("var", "Mean", {"d", "last"}, flag("keep_dims")) +
                node("ve", "AddV2", {"var", "e"}) + node("r", "Rsqrt", {"ve"}) + node("s", "Mul", {"r", "g"}) +
                node("xs", "Mul", {"x", "s"}) + node("ms", "Mul", {"mean", "s"}) + node("o", "Sub", {"b", "ms"}) +
                node("n", "AddV2", {"xs", "o"}) + number("half", 0.5F) + number("root", 0.7071F) + number("one", 1) +
                node("h", "Mul", {"half", "n"}) + node("a", "Mul", {"n", "root"}) + node("f", "Erf", {"a"}) +
                node("p", "AddV2", {"one", "f"}) + node("gelu", "Mul", {"h", "p"}) + node("sg", "Sigmoid", {"gelu"}) +
                node("y", "Mul", {"gelu", "sg"}));
    QCOMPARE(m.count(OperatorKind::normalisation), std::size_t{1});
    QCOMPARE(m.count("Gelu"), std::size_t{1});
    QCOMPARE(m.count("Swish"), std::size_t{1});
    QCOMPARE(m.model->operators.size(), std::size_t{4});
    QCOMPARE(m.model->parameters, std::int64_t{16});
  }

  void products() {
    BIND(m, placeholder("x", {-1, 6}) + weight("w", {10, 6}) + weight("b", {10}) +
                node("p", "MatMul", {"x", "w"}, flag("transpose_b")) + node("y", "BiasAdd", {"p", "b"}));
    QCOMPARE(m.result().shape, (Shape{4, 10}));
    QCOMPARE(m.model->parameters, std::int64_t{70});
    QCOMPARE(m.model->operators.size(), std::size_t{2});
    BIND(batched, placeholder("q", {-1, 2, 5, 8}) + placeholder("k", {-1, 2, 7, 8}) +
                      node("y", "BatchMatMulV2", {"q", "k"}, flag("adj_y")));
    QCOMPARE(batched.result().shape, (Shape{4, 2, 5, 7}));
    QCOMPARE(batched.macs(), 4.0 * 2 * 5 * 7 * 8);
    BIND(einsum, placeholder("q", {-1, 5, 8}) + weight("w", {8, 2, 3}) +
                     node("y", "Einsum", {"q", "w"}, text("equation", "abc,cde->abde")));
    QCOMPARE(einsum.result().shape, (Shape{4, 5, 2, 3}));
    QCOMPARE(einsum.macs(), 4.0 * 5 * 48);
  }

  void tables_and_losses() {
    BIND(m, placeholder("t", {-1, 5}, "DT_INT32") + variable("table", {100, 8}) + integer("axis", 0) +
                node("y", "GatherV2", {"table", "t", "axis"}));
    QCOMPARE(m.result().shape, (Shape{4, 5, 8}));
    QCOMPARE(m.count(OperatorKind::embedding), std::size_t{1});
    QCOMPARE(m.model->parameters, std::int64_t{800});
    BIND(sparse, placeholder("x", {-1, 6}) + placeholder("t", {-1}, "DT_INT64") + weight("w", {6, 10}) +
                     node("l", "MatMul", {"x", "w"}) + node("e", "SparseSoftmaxCrossEntropyWithLogits", {"l", "t"}) +
                     integers("all", {0}) + node("y", "Mean", {"e", "all"}));
    QCOMPARE(sparse.result().shape, (Shape{}));
    BIND(hot, placeholder("t", {-1, 5}, "DT_INT32") + integer("depth", 9) + number("on", 1) + number("off", 0) +
                  node("y", "OneHot", {"t", "depth", "on", "off"}));
    QCOMPARE(hot.result().shape, (Shape{4, 5, 9}));
    BIND(top, placeholder("x", {-1, 6}) + integer("k", 2) + node("y", "TopKV2", {"x", "k"}));
    QCOMPARE(top.result().shape, (Shape{4, 2}));
  }

  void views() {
    const std::string x = placeholder("x", {-1, 6, 8});
    const struct {
      std::string graph;
      Shape shape;
    } cases[] = {
        {integers("p", {0, 2, 1}) + node("y", "Transpose", {"x", "p"}), {4, 8, 6}},
        {integer("a", -1) + node("e", "ExpandDims", {"x", "a"}) + node("y", "Relu", {"e"}), {4, 6, 8, 1}},
        {integer("a", 2) + node("y", "ConcatV2", {"x", "x", "a"}), {4, 6, 16}},
        {node("y", "Pack", {"x", "x", "x"}, attribute("axis", "i: 1")), {4, 3, 6, 8}},
        {node("u", "Unpack", {"x"}, attribute("axis", "i: 1") + attribute("num", "i: 6")) + node("y", "Relu", {"u:5"}),
         {4, 8}},
        {integers("s", {2, 4}) + integer("a", 1) +
             node("u", "SplitV", {"x", "s", "a"}, attribute("num_split", "i: 2")) + node("y", "Relu", {"u:1"}),
         {4, 4, 8}},
        {integers("b", {0, 1, 2}) + integers("n", {-1, 2, 3}) + node("y", "Slice", {"x", "b", "n"}), {4, 2, 3}},
        {integers("p", {0, 0, 1, 2, 0, 3}, {3, 2}) + node("y", "Pad", {"x", "p"}), {4, 9, 11}},
        {integers("r", {1, 2, 3}) + node("y", "Tile", {"x", "r"}), {4, 12, 24}},
        {integers("i", {5, 0, 3}) + integer("a", 1) + node("y", "GatherV2", {"x", "i", "a"}), {4, 3, 8}},
        {integers("a", {1}) + node("y", "ReverseV2", {"x", "a"}), {4, 6, 8}},
    };
    for (const auto& c : cases) {
      BIND(m, x + c.graph);
      QVERIFY2(m.result().shape == c.shape, c.graph.c_str());
    }
  }

  void strided_slices() {
    const auto slice = [](const Shape& begin, const Shape& end, const Shape& steps, const std::string& masks) {
      return placeholder("x", {-1, 6, 8}) + integers("b", begin) + integers("e", end) + integers("s", steps) +
             node("y", "StridedSlice", {"x", "b", "e", "s"}, masks);
    };
    const auto mask = [](const std::string& key, int bits) { return attribute(key, "i: " + std::to_string(bits)); };
    BIND(plain, slice({0, 1, 0}, {0, 5, 8}, {1, 2, 1}, mask("begin_mask", 1) + mask("end_mask", 1)));
    QCOMPARE(plain.result().shape, (Shape{4, 2, 8}));
    BIND(last,
         slice({0, -1}, {0, 0}, {1, 1}, mask("begin_mask", 1) + mask("end_mask", 1) + mask("shrink_axis_mask", 2)));
    QCOMPARE(last.result().shape, (Shape{4, 8}));
    BIND(dots, slice({0, 0}, {0, 3}, {1, 1}, mask("ellipsis_mask", 1)));
    QCOMPARE(dots.result().shape, (Shape{4, 6, 3}));
    BIND(fresh, slice({0, 0, 0}, {0, 0, 0}, {1, 1, 1},
                      mask("begin_mask", 5) + mask("end_mask", 5) + mask("new_axis_mask", 2)));
    QCOMPARE(fresh.result().shape, (Shape{4, 1, 6, 8}));
    BIND(back, slice({0, 0}, {0, 0}, {1, -1}, mask("begin_mask", 3) + mask("end_mask", 3)));
    QCOMPARE(back.result().shape, (Shape{4, 6, 8}));
    // Bounds computed from a shape: all but the last two of the second dimension.
    BIND(computed,
         placeholder("x", {-1, 6, 8}) + node("shape", "Shape", {"x"}) + integers("b1", {1}) + integers("b2", {2}) +
             integers("one", {1}) +
             node("n", "StridedSlice", {"shape", "b1", "b2", "one"}, mask("shrink_axis_mask", 1)) + integer("two", 2) +
             node("end", "Sub", {"n", "two"}) + integer("zero", 0) + node("ends", "Pack", {"zero", "end"}) +
             integers("begins", {0, 0}) + integers("steps", {1, 1}) +
             node("y", "StridedSlice", {"x", "begins", "ends", "steps"}, mask("begin_mask", 1) + mask("end_mask", 1)));
    QCOMPARE(computed.result().shape, (Shape{4, 4, 8}));
  }

  void shape_arithmetic_follows_the_batch() {
    BIND(m,
         placeholder("x", {-1, 6, 8}) + node("shape", "Shape", {"x"}) + integers("b", {0}) + integers("e", {1}) +
             integers("s", {1}) +
             node("n", "StridedSlice", {"shape", "b", "e", "s"}, attribute("shrink_axis_mask", "i: 1")) +
             integer("rest", 48) + node("target", "Pack", {"n", "rest"}) + node("y", "Reshape", {"x", "target"}),
         12);
    QCOMPARE(m.result().shape, (Shape{12, 48}));
    // An image keeps its channels first inside, but its shape is the file's.
    BIND(image, kImage + weight("k", {1, 1, 3, 16}) + node("c", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})) +
                    node("shape", "Shape", {"c"}) + integers("b", {3}) + integers("e", {4}) + integers("s", {1}) +
                    node("n", "StridedSlice", {"shape", "b", "e", "s"}, attribute("shrink_axis_mask", "i: 1")) +
                    integer("rest", -1) + node("target", "Pack", {"rest", "n"}) +
                    node("y", "Reshape", {"c", "target"}));
    QCOMPARE(image.result().shape, (Shape{4, 8, 10, 16}));  // [320, 16], with its parts kept apart
  }

  void images_keep_one_order() {
    BIND(m, kImage + weight("k", {1, 1, 3, 6}) + weight("k2", {1, 1, 12, 5}) +
                node("c", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})) + weight("b", {6}) +
                node("a", "AddV2", {"c", "b"}) + node("r", "Relu6", {"a"}) + integer("axis", 3) +
                node("cat", "ConcatV2", {"r", "c", "axis"}) + node("d", "Conv2D", {"cat", "k2"}, same({1, 1, 1, 1})) +
                integers("size", {16, 20}) + node("y", "ResizeBilinear", {"d", "size"}));
    QCOMPARE(m.result().shape, (Shape{4, 5, 16, 20}));
    for (const auto& op : m.model->operators)
      QVERIFY2(op.detail != "Transpose" && op.name.find("channels") == std::string::npos, op.name.c_str());
    QCOMPARE(m.macs(), 4.0 * 80 * (18 + 60));
    BIND(blocks, kImage + weight("k", {1, 1, 3, 8}) + node("c", "Conv2D", {"x", "k"}, same({1, 1, 1, 1})) +
                     node("y", "DepthToSpace", {"c"}, attribute("block_size", "i: 2")));
    QCOMPARE(blocks.result().shape, (Shape{4, 2, 16, 20}));
  }

  void dropout_is_one_operator() {
    const std::string x = placeholder("x", {-1, 6}) + weight("w", {6, 6}) + node("h", "MatMul", {"x", "w"}) +
                          node("shape", "Shape", {"h"}) +
                          node("u", "RandomUniform", {"shape"}, attribute("dtype", "type: DT_FLOAT")) +
                          number("keep", 0.8F);
    BIND(one, x + node("s", "Add", {"keep", "u"}) + node("f", "Floor", {"s"}) + node("d", "RealDiv", {"h", "keep"}) +
                  node("y", "Mul", {"d", "f"}));
    BIND(two, x + node("g", "GreaterEqual", {"u", "keep"}) +
                  node("c", "Cast", {"g"}, attribute("DstT", "type: DT_FLOAT")) + node("d", "Mul", {"h", "keep"}) +
                  node("y", "Mul", {"d", "c"}));
    BIND(three, x + node("g", "GreaterEqual", {"u", "keep"}) + node("d", "Mul", {"h", "keep"}) + number("zero", 0) +
                    node("y", "SelectV2", {"g", "d", "zero"}));
    for (const auto* m : {&one, &two, &three}) {
      QCOMPARE(m->maker().detail, std::string("Dropout"));
      QCOMPARE(m->model->operators.size(), std::size_t{3});
    }
  }

  void recurrent_block() {
    const std::string none =
        node("z", "Const", {},
             attribute("value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 5 } } float_val: 0 }"));
    BIND(m, placeholder("x", {7, -1, 3}) + integer("len", 7) + weight("w", {8, 20}) + weight("b", {20}) + none +
                node("lstm", "BlockLSTM", {"len", "x", "z", "z", "w", "z", "z", "z", "b"}) +
                node("y", "Relu", {"lstm:6"}));
    QCOMPARE(m.count(OperatorKind::recurrent), std::size_t{1});
    QCOMPARE(m.model->parameters, std::int64_t{180});
    QCOMPARE(m.result().shape, (Shape{7, 4, 5}));
    QCOMPARE(m.macs(), 7.0 * 4 * 160);
  }

  void quantisation_is_elementwise() {
    BIND(m, placeholder("x", {-1, 6}) + number("lo", 0) + number("hi", 6) +
                node("q", "FakeQuantWithMinMaxVars", {"x", "lo", "hi"}) + weight("w", {6, 3}) +
                node("y", "MatMul", {"q", "w"}));
    QCOMPARE(m.count(OperatorKind::elementwise), std::size_t{1});
    QVERIFY(m.model->warnings.empty());
  }
};

QTEST_APPLESS_MAIN(TensorflowOperatorsTest)
#include "tensorflow_operators_test.moc"
