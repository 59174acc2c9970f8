// SPDX-License-Identifier: Apache-2.0
// The table of operator kinds against numbers worked out by hand.
#include <QtTest>

#include "core/model/builder.h"

using namespace turnpoint;

namespace {

const Operator& maker(const Model& model, TensorId id) { return model.operators[model.tensors[id].producer]; }

const LoopDimension* find(const Operator& op, DimName name) {
  for (const auto& dim : op.dims) {
    if (dim.name == name) return &dim;
  }
  return nullptr;
}

using W = std::vector<std::uint8_t>;

}  // namespace

class BuilderTest : public QObject {
  Q_OBJECT
 private slots:
  void linear_counts_and_walks() {
    ModelBuilder b("m", "test", 8, 0);
    const auto x = b.input("x", {8, 16, 32}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
    const auto w1 = b.parameter("w1", {64, 32});
    const auto bias = b.parameter("b1", {64});
    const auto h = b.linear("fc1", x, w1, bias, true);
    const auto relu = b.elementwise("relu", "Relu", std::vector{h}, {1, true, {}});
    const auto y = b.linear("fc2", relu, b.parameter("w2", {64, 10}));
    const auto model = b.finish({y});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QCOMPARE(m.parameters, std::int64_t{64 * 32 + 64 + 64 * 10});
    const auto& fc1 = maker(m, h);
    QCOMPARE(fc1.forward_macs, 8.0 * 16 * 32 * 64);
    QCOMPARE(fc1.forward_flop, 2 * fc1.forward_macs + 8.0 * 16 * 64);
    QCOMPARE(fc1.backward_macs, fc1.forward_macs);  // data needs no gradient
    QCOMPARE(maker(m, y).backward_macs, 2 * maker(m, y).forward_macs);
    QVERIFY(find(fc1, DimName::in_channel)->role == DimRole::reduction);
    QVERIFY(find(fc1, DimName::out_channel)->splittable);
    QVERIFY(fc1.inputs[0].saved);  // for the weight's gradient
    QVERIFY(!fc1.outputs[0].saved && maker(m, relu).outputs[0].saved);
    QVERIFY((m.tensors[w1].dims == std::vector{DimName::out_channel, DimName::in_channel}));
    // saved: x, relu's output (read by fc2 as well: once)
    QCOMPARE(summarise(m).activation_bytes, std::int64_t{4 * (8 * 16 * 32 + 8 * 16 * 64)});
    QCOMPARE(m.uses[relu].size(), std::size_t{1});
  }

  void matmul_broadcasts_leading_dims() {
    ModelBuilder b("m", "test", 2, 0);
    const auto x = b.input("x", {2, 1, 5, 7}, {DimName::batch, DimName::head, DimName::sequence, DimName::channel},
                           ElementType::f32);
    const auto w = b.parameter("w", {3, 7, 4});
    const auto y = b.matmul("y", x, w);
    const auto model = b.finish({y});
    QVERIFY(model.has_value());
    QCOMPARE((*model)->tensors[y].shape, (std::vector<std::int64_t>{2, 3, 5, 4}));
    QCOMPARE(maker(**model, y).forward_macs, 2.0 * 3 * 5 * 7 * 4);
    QVERIFY(maker(**model, y).inputs[0].walks[1].empty());
    QCOMPARE(maker(**model, y).inputs[1].walks[0].size(), std::size_t{1});
  }

  void attention_key_sequence() {
    ModelBuilder b("m", "test", 2, 16);
    const auto x = b.input("x", {2, 16, 32}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
    const auto project = [&](const char* name) {
      const auto p = b.linear(name, x, b.parameter(std::string(name) + ".w", {32, 32}));
      const auto heads = b.reshape(std::string(name) + ".heads", p, {2, 16, 4, 8});
      return b.transpose(std::string(name) + ".t", heads, {0, 2, 1, 3});
    };
    const auto q = project("q"), k = project("k"), v = project("v");
    const auto scores = b.matmul("scores", q, k, false, true);
    const auto scaled =
        b.elementwise("scale", "Div", std::vector{scores, b.constant("c", {})}, {1, false, {true, true}});
    const auto masked = b.elementwise("mask", "Add", std::vector{scaled, b.constant("bias", {16, 16})});
    const auto weights = b.softmax("softmax", masked, -1);
    const auto context = b.matmul("context", weights, v);
    const auto merged = b.reshape("merge", b.transpose("back", context, {0, 2, 1, 3}), {2, 16, 32});
    const auto model = b.finish({merged});
    QVERIFY(model.has_value());
    const Model& m = **model;
    for (const auto id : {scores, scaled, masked, weights, context}) {
      QVERIFY2(find(maker(m, id), DimName::key_sequence), m.tensors[id].name.c_str());
      QVERIFY(!find(maker(m, id), DimName::key_sequence)->splittable);
    }
    QVERIFY(find(maker(m, context), DimName::key_sequence)->role == DimRole::reduction);
    QVERIFY(find(maker(m, scores), DimName::sequence)->splittable);
    QVERIFY(find(maker(m, scores), DimName::head)->splittable);
    QVERIFY((m.tensors[scores].dims ==
             std::vector{DimName::batch, DimName::head, DimName::sequence, DimName::key_sequence}));
    QVERIFY((m.tensors[merged].dims == std::vector{DimName::batch, DimName::sequence, DimName::channel}));
    QVERIFY(!maker(m, scaled).inputs[0].saved);  // dividing by a constant reads nothing back
    QCOMPARE(storage_of(m, q), maker(m, maker(m, q).inputs[0].tensor).inputs[0].tensor);
  }

  void softmax_after_a_weight_is_no_attention() {
    ModelBuilder b("m", "test", 2, 0);
    const auto x = b.input("x", {2, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
    const auto y = b.linear("fc", x, b.parameter("w", {32, 10}));
    const auto p = b.softmax("p", y, 1);
    const auto model = b.finish({p});
    QVERIFY(find(maker(**model, y), DimName::out_channel)->splittable);
    QVERIFY(!maker(**model, p).dims[1].splittable);
  }

  void reshape_factors() {
    ModelBuilder b("m", "test", 6, 0);
    const auto x = b.input("x", {6, 4}, {DimName::batch, DimName::channel}, ElementType::f32);
    const auto y = b.reshape("y", x, {3, 8});
    const auto heads = b.reshape(
        "h", b.input("z", {2, 5, 12}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32),
        {2, 5, 3, 4});
    const auto odd =
        b.reshape("odd", b.input("o", {3, 4}, {DimName::batch, DimName::channel}, ElementType::f32), {2, 6});
    const auto model = b.finish({y, heads, odd});
    QVERIFY(model.has_value());
    const auto& op = maker(**model, y);
    QCOMPARE(op.dims.size(), std::size_t{3});
    QCOMPARE(op.dims[0].size, std::int64_t{3});
    QCOMPARE(op.dims[1].size, std::int64_t{2});
    QCOMPARE(op.dims[2].size, std::int64_t{4});
    QCOMPARE(op.inputs[0].walks, (std::vector<W>{{0, 1}, {2}}));
    QCOMPARE(op.outputs[0].walks, (std::vector<W>{{0}, {1, 2}}));
    QVERIFY(op.dims[0].splittable && !op.dims[1].splittable && !op.dims[2].splittable);
    const auto& h = maker(**model, heads);
    QCOMPARE(h.inputs[0].walks, (std::vector<W>{{0}, {1}, {2, 3}}));
    QVERIFY(h.dims[2].name == DimName::head && h.dims[2].splittable && !h.dims[3].splittable);
    QVERIFY(maker(**model, odd).dims.empty());  // [3, 4] and [2, 6] cannot be cut alike
  }

  void chains_of_views_become_one() {
    ModelBuilder b("m", "test", 8, 0);
    const auto x = b.input("x", {8, 5, 12}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
    const auto heads = b.reshape("heads", x, {40, 3, 4});  // batch and sequence merged: the sequence could not be split
    const auto turned = b.transpose("turned", heads, {1, 0, 2});
    const auto apart = b.reshape("apart", turned, {3, 8, 5, 4});
    const auto y = b.elementwise("y", "Relu", std::vector{apart}, {1, true, {}});
    const auto model = b.finish({y}, true);
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QCOMPARE(m.operators.size(), std::size_t{3});
    const auto& view = m.operators[OperatorId(1)];
    QCOMPARE(view.name, std::string("apart"));
    QCOMPARE(view.dims.size(), std::size_t{4});
    QCOMPARE(m.tensors[view.inputs[0].tensor].name, std::string("x"));
    QVERIFY(m.tensors[view.outputs[0].tensor].producer == OperatorId(1));
    const auto loop_of = [&](std::int64_t size) {
      return *std::find_if(view.dims.begin(), view.dims.end(), [&](const auto& d) { return d.size == size; });
    };
    QVERIFY(loop_of(8).splittable && loop_of(5).splittable && loop_of(3).splittable && !loop_of(4).splittable);
    QCOMPARE(view.inputs[0].walks[2].size(), std::size_t{2});
    QCOMPARE(m.results.size(), std::size_t{1});
    QCOMPARE(m.uses[m.results[0]].size(), std::size_t{0});
  }

  void fused_projections_can_be_split() {
    for (const bool other_reader : {false, true}) {
      ModelBuilder b("m", "test", 2, 4);
      const auto x = b.input("x", {2, 4, 32}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
      const auto w = b.parameter("qkv", {96, 32}), bias = b.parameter("bias", {96});
      const auto y = b.linear("project", x, w, bias, true);
      const auto parts = b.split("cut", y, 2, std::vector<std::int64_t>{32, 32, 32});
      const auto sum = b.elementwise("sum", "Add", parts);
      const auto also = b.elementwise("also", "Relu", std::vector{other_reader ? y : sum}, {1, true, {}});
      QCOMPARE(b.interleave_parts(y, parts), !other_reader);
      const auto model = b.finish({also});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      if (other_reader) continue;
      const Model& m = **model;
      const auto& project = maker(m, y);
      QCOMPARE(find(project, DimName::out_channel)->size, std::int64_t{32});
      QVERIFY(find(project, DimName::out_channel)->splittable && !find(project, DimName::other)->splittable);
      QCOMPARE(m.tensors[y].shape, (std::vector<std::int64_t>{2, 4, 32, 3}));
      QCOMPARE(project.inputs[1].walks[0].size(), std::size_t{2});
      QCOMPARE(project.inputs[1].walks[0], project.inputs[2].walks[0]);
      QCOMPARE(project.forward_macs, 2.0 * 4 * 32 * 96);
      QVERIFY(find(maker(m, parts[1]), DimName::channel)->splittable);
      QCOMPARE(m.tensors[parts[2]].shape, (std::vector<std::int64_t>{2, 4, 32}));
      QCOMPARE(m.parameters, std::int64_t{96 * 33});
    }
  }

  void convolution_counts() {
    ModelBuilder b("m", "test", 2, 0);
    const auto x = b.input("x", {2, 3, 224, 224}, {DimName::batch, DimName::channel, DimName::height, DimName::width},
                           ElementType::f32);
    const auto y = b.convolution("conv1", x, b.parameter("w", {64, 3, 7, 7}), b.parameter("b", {64}),
                                 {{7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}, 1, false});
    const auto dw = b.convolution("dw", y, b.parameter("dw.w", {64, 1, 3, 3}), {},
                                  {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 64, false});
    const auto grouped = b.convolution("g", dw, b.parameter("g.w", {32, 16, 1, 1}), {},
                                       {{1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 4, false});
    const auto up = b.convolution("up", grouped, b.parameter("up.w", {32, 8, 2, 2}), {},
                                  {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1, true});
    const auto model = b.finish({up});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QCOMPARE(m.tensors[y].shape, (std::vector<std::int64_t>{2, 64, 112, 112}));
    QCOMPARE(maker(m, y).forward_macs, 2.0 * 64 * 112 * 112 * 3 * 49);
    QCOMPARE(maker(m, y).backward_macs, maker(m, y).forward_macs);
    QVERIFY(find(maker(m, y), DimName::height)->role == DimRole::window &&
            !find(maker(m, y), DimName::height)->splittable);
    QVERIFY(!find(maker(m, dw), DimName::in_channel));
    QCOMPARE(maker(m, dw).forward_macs, 2.0 * 64 * 112 * 112 * 9);
    QCOMPARE(find(maker(m, dw), DimName::group)->size, std::int64_t{64});
    const auto& g = maker(m, grouped);
    QCOMPARE(g.forward_macs, 2.0 * 32 * 56 * 56 * 16);
    QCOMPARE(g.inputs[0].walks[1].size(), std::size_t{2});
    QVERIFY(!find(g, DimName::out_channel)->splittable && find(g, DimName::group)->splittable);
    QVERIFY(find(g, DimName::height)->splittable);  // 1x1: no halo
    QCOMPARE(m.tensors[up].shape, (std::vector<std::int64_t>{2, 8, 112, 112}));
    QCOMPARE(maker(m, up).forward_macs, 2.0 * 32 * 56 * 56 * 8 * 4);
  }

  void normalisations_pooling_reduction() {
    ModelBuilder b("m", "test", 4, 0);
    const std::vector nchw{DimName::batch, DimName::channel, DimName::height, DimName::width};
    const auto x =
        b.convolution("c", b.input("x", {4, 8, 6, 6}, nchw, ElementType::f32), b.parameter("w", {8, 8, 1, 1}), {},
                      {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 1, false});
    const auto bn = b.batch_normalisation("bn", x, b.parameter("s", {8}), b.parameter("t", {8}), b.buffer("mean", {8}),
                                          b.buffer("var", {8}));
    const auto pool = b.pooling("max", "MaxPool", bn, {4, 8, 3, 3}, {2, 2}, true);
    const auto global = b.pooling("avg", "GlobalAveragePool", pool, {4, 8, 1, 1}, {}, false);
    const auto flat = b.reshape("flat", global, {4, 8});
    const auto ln = b.normalisation("ln", flat, -1, b.parameter("g", {8}), {});
    const auto mean = b.reduction("mean", "ReduceMean", ln, {0}, false);
    const auto model = b.finish({mean});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QCOMPARE(m.buffers, std::int64_t{16});
    QCOMPARE(m.parameters, std::int64_t{64 + 16 + 8});
    QVERIFY(find(maker(m, bn), DimName::batch)->splittable);
    QVERIFY(maker(m, bn).inputs[0].saved && maker(m, pool).inputs[0].saved && !maker(m, global).inputs[0].saved);
    QVERIFY(!find(maker(m, ln), DimName::channel)->splittable);
    QVERIFY(find(maker(m, mean), DimName::batch)->role == DimRole::reduction &&
            find(maker(m, mean), DimName::batch)->splittable);
    QVERIFY(find(maker(m, global), DimName::height)->role == DimRole::reduction);
  }

  void embedding_loss_and_ties() {
    ModelBuilder b("m", "test", 2, 8);
    const auto ids = b.input("ids", {2, 8}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const auto labels = b.input("labels", {2, 8}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const auto table = b.parameter("wte", {100, 16});
    const auto e = b.embedding("emb", table, ids);
    const auto logits =
        b.linear("head", e, b.tied_parameter("head.w", table, {100, 16}), {}, true, DimName::vocabulary);
    const auto loss = b.cross_entropy("loss", logits, labels);
    const auto model = b.finish({loss});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QCOMPARE(m.parameters, std::int64_t{1600});
    QVERIFY(find(maker(m, e), DimName::vocabulary)->role == DimRole::reduction);
    QVERIFY(find(maker(m, logits), DimName::vocabulary)->splittable);
    QVERIFY(!find(maker(m, loss), DimName::vocabulary)->splittable &&
            find(maker(m, loss), DimName::batch)->role == DimRole::reduction);
    QVERIFY(maker(m, ids).kind == OperatorKind::input && maker(m, ids).dims.size() == 1);
    QVERIFY(!m.tensors[ids].requires_gradient && m.tensors[e].requires_gradient);
    QVERIFY(!maker(m, e).outputs[0].saved && maker(m, loss).inputs[0].saved);
  }

  void recurrent_counts() {
    ModelBuilder b("m", "test", 4, 10);
    const auto x = b.input("x", {10, 4, 32}, {DimName::sequence, DimName::batch, DimName::channel}, ElementType::f32);
    const auto y = b.recurrent("lstm", "LSTM", x, b.parameter("w", {1, 256, 32}), b.parameter("r", {1, 256, 64}),
                               b.parameter("b", {1, 512}), 4, 1, 64, false);
    const auto model = b.finish({y});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const auto& op = maker(**model, y);
    QCOMPARE(op.forward_macs, 10.0 * 4 * 256 * (32 + 64));
    QCOMPARE(op.backward_macs, 10.0 * 4 * 256 * (32 + 2 * 64));  // the data's gradient is not needed
    QCOMPARE(op.outputs.size(), std::size_t{2});
    QVERIFY((*model)->tensors[op.outputs[1].tensor].role == TensorRole::internal && op.outputs[1].saved);
    QVERIFY(!find(op, DimName::time)->splittable && find(op, DimName::batch)->splittable &&
            !find(op, DimName::out_channel)->splittable);
  }

  void broadcasting_and_saved_operands() {
    ModelBuilder b("m", "test", 4, 0);
    const auto x = b.linear("fc", b.input("x", {4, 8}, {}, ElementType::f32), b.parameter("w", {8, 8}));
    const auto gate = b.elementwise("sig", "Sigmoid", std::vector{x}, {4, true, {}});
    const auto product = b.elementwise("mul", "Mul", std::vector{x, gate}, {1, false, {true, true}});
    const auto biased = b.elementwise("bias", "Add", std::vector{product, b.parameter("b", {8})});
    const auto parts = b.split("parts", biased, 1, std::vector<std::int64_t>{2, 6});
    const auto joined = b.concat("join", std::vector{parts[1], parts[0]}, 1);
    const auto cut = b.slice("cut", "Slice", joined, {4, 3});
    const auto twice = b.expand("expand", b.parameter("cls", {1, 1, 8}), {4, 1, 8});
    const auto model = b.finish({cut, twice});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const Model& m = **model;
    QVERIFY(maker(m, product).inputs[0].saved && maker(m, product).inputs[1].saved);
    QVERIFY(!maker(m, biased).inputs[0].saved);
    QVERIFY(maker(m, biased).inputs[1].walks[0] == maker(m, biased).outputs[0].walks[1]);
    QCOMPARE(maker(m, parts[0]).outputs.size(), std::size_t{2});
    QVERIFY(m.tensors[parts[1]].shape[1] == 6 && m.tensors[joined].shape[1] == 8);
    QVERIFY(!find(maker(m, cut), DimName::channel));
    QCOMPARE(m.tensors[twice].shape[0], std::int64_t{4});
  }

  void names_are_unique_in_linear_time() {
    ModelBuilder b("m", "test", 1, 0);
    TensorId last;
    for (int i = 0; i < 20000; ++i) last = b.parameter("same", {1});
    QCOMPARE(b.tensor(last).name, std::string("same_19999"));
  }

  // No tensor and no number of parameters is too large by itself; the bytes of plans are sums over all of them.
  void tensors_whose_bytes_no_64_bits_hold_are_refused() {
    const auto chain = [](int layers) {
      ModelBuilder b("m", "file.onnx", 1, 0);
      TensorId x = b.parameter("x", {std::int64_t{1} << 54});
      for (int i = 0; i < layers; ++i) x = b.elementwise("relu", "Relu", std::vector{x}, {1, true, {}});
      return b.finish({x});
    };
    const auto most = chain(3);  // made and taken: 2 + 2 + 2 + 1 times 2^54 elements
    QVERIFY2(most.has_value(), most ? "" : most.error().message().c_str());
    QCOMPARE(summarise(**most).activation_bytes, 3 * (std::int64_t{1} << 56));
    const auto beyond = chain(4);
    QVERIFY(!beyond.has_value());
    QCOMPARE(beyond.error().where, std::string("file.onnx"));
    QVERIFY(beyond.error().what.find("2^57") != std::string::npos);
  }

  void violations_are_reported_once() {
    ModelBuilder b("m", "file.onnx", 4, 0);
    const auto x = b.input("x", {4, 8}, {}, ElementType::f32);
    const auto y = b.linear("first", x, b.parameter("w", {9, 8}));
    const auto z = b.linear("second", y, b.parameter("w", {9, 8}));
    b.parameter("huge", {std::int64_t{1} << 40, std::int64_t{1} << 40});
    const auto model = b.finish({z});
    QVERIFY(!model.has_value());
    QVERIFY(model.error().where.find("'first'") != std::string::npos);
    QCOMPARE(b.error()->code, ErrorCode::bad_input);
  }
};

QTEST_APPLESS_MAIN(BuilderTest)
#include "builder_test.moc"
