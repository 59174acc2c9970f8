// SPDX-License-Identifier: Apache-2.0
// Layers of models: by loop dimensions, with what follows them, and the shortcuts of their blocks.
#include <QtTest>

#include "core/import/source/model_source.h"
#include "core/model/fuse_attention.h"
#include "core/search/accpar/model_layers.h"
#include "search/accpar/networks.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::accpar;

namespace {

ModelPtr built_in(const std::string& name, std::int64_t batch = 64) {
  const auto source = open_model("builtin:" + name);
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, 0});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

ModelLayers layers_in(const ModelPtr& model) {
  auto layers = layers_of(*model);
  if (!layers) qFatal("%s", layers.error().message().c_str());
  return std::move(*layers);
}

const Layer& named(const ModelLayers& layers, const std::string& end) {
  for (const Layer& layer : layers.graph.layers)
    if (layer.name.ends_with(end)) return layer;
  qFatal("no layer '%s'", end.c_str());
}

std::string edges_of(const ModelLayers& layers) {
  std::string text;
  for (const Edge& edge : layers.graph.edges) {
    text += layers.graph.layers[edge.from].name + (edge.from_side == Side::in ? ".in" : "") + ">" +
            layers.graph.layers[edge.to].name + (edge.to_side == Side::out ? ".out " : " ");
  }
  return text;
}

/// The plan of what it costs is the same whoever finds it, wherever that can be asked.
bool programmes_agree(const ModelLayers& layers) {
  const Bisection devices = test::equal_devices(1, 1e14, 1e10);
  Options options;
  const auto exact = search(layers.graph, devices, options);
  options.programme = Programme::published;
  const auto published = search(layers.graph, devices, options);
  return exact && published && std::abs(exact->cuts[0].price - published->cuts[0].price) <= 1e-9 * exact->cuts[0].price;
}

}  // namespace

class AccParModelLayersTest : public QObject {
  Q_OBJECT

 private slots:
  void a_convolution_and_a_layer() {
    const ModelPtr model = test::convolution(32);
    const ModelLayers layers = layers_in(model);
    QCOMPARE(layers.graph.layers.size(), std::size_t(2));
    const Layer &conv = layers.graph.layers[0], &fc = layers.graph.layers[1];
    QVERIFY(conv.kind == LayerKind::convolution && fc.kind == LayerKind::fully_connected);
    QCOMPARE(conv.lengths, (std::array<double, 3>{32, 4, 16}));
    QCOMPARE(conv.input, 32.0 * 4 * 64);
    QCOMPARE(conv.input_error, 0.0);        // nobody trains the data
    QCOMPARE(conv.output, 32.0 * 16 * 64);  // before the pooling, where partial sums must be added
    QCOMPARE(conv.weights, 16.0 * 4 * 9);
    QCOMPARE(conv.products, (std::array<double, 3>{32.0 * 16 * 64 * 36, 0, 32.0 * 16 * 64 * 36}));
    QCOMPARE(fc.lengths, (std::array<double, 3>{32, 256, 32}));
    QCOMPARE(fc.weights, 256.0 * 32 + 32);
    QCOMPARE(layers.graph.edges.size(), std::size_t(1));
    QCOMPARE(layers.graph.edges[0].forward, 32.0 * 256);  // after the pooling, where it is moved
    QCOMPARE(layers.graph.edges[0].backward, 32.0 * 256);
    // Normalisation, function, pooling and view follow the convolution; the data follow nothing.
    int followers = 0;
    for (std::uint32_t o = 0; o < model->operators.size(); ++o) {
      const OperatorId id(o);
      const Operator& op = model->operators[id];
      if (op.kind == OperatorKind::input) QCOMPARE(layers.layer_of[id], kNoLayer);
      if (!layers.follows(id)) continue;
      ++followers;
      QCOMPARE(layers.layer_of[id], 0u);
    }
    QCOMPARE(followers, 4);
    // Loops by type name what a plan would split.
    const auto& conv_op = model->operators[layers.operators[0]];
    QCOMPARE(layers.loops[0][0].size(), std::size_t(1));
    QVERIFY(conv_op.dims[layers.loops[0][0][0]].name == DimName::batch);
    QVERIFY(conv_op.dims[layers.loops[0][1][0]].name == DimName::in_channel);
    QVERIFY(conv_op.dims[layers.loops[0][2][0]].name == DimName::out_channel);
  }

  void a_residual_block() {
    const ModelLayers layers = layers_in(test::residual());
    QCOMPARE(QString::fromStdString(edges_of(layers)), "stem>fc1 fc1>fc2 fc1.in>fc2.out fc2>head ");
    for (const Edge& edge : layers.graph.edges)
      QCOMPARE(edge.forward, 64.0 * (edge.from == 1 && edge.from_side == Side::out ? 64 : 32));
    QVERIFY(programmes_agree(layers));
  }

  void attention_with_tied_tables() {
    const ModelLayers layers = layers_in(test::attention());
    QCOMPARE(QString::fromStdString(edges_of(layers)),
             "embed>q embed>k embed>v q>scores k>scores scores>context v>context context>out q.in>out.out out>head ");
    const Layer& scores = named(layers, "scores");
    QVERIFY(scores.kind == LayerKind::attention && named(layers, "embed").kind == LayerKind::embedding);
    QCOMPARE(scores.weights, 0.0);
    QCOMPARE(scores.summed(Type::batch), 0.0);  // keys of a sample are nobody else's
    QCOMPARE(named(layers, "embed").lengths, (std::array<double, 3>{8, 64, 32}));
    // Scores and values apart cross the identity around the block; as one kernel they are a fork in a fork.
    QVERIFY(!programmes_agree(layers));
    const ModelLayers fused = layers_in(fuse_attention(test::attention()));
    QCOMPARE(QString::fromStdString(edges_of(fused)),
             "embed>q embed>k embed>v q>context k>context v>context context>out q.in>out.out out>head ");
    QVERIFY(programmes_agree(fused));
  }

  void alexnet() {
    const ModelLayers layers = layers_in(built_in("alexnet"));
    QCOMPARE(layers.graph.layers.size(), std::size_t(8));
    QCOMPARE(layers.graph.edges.size(), std::size_t(7));
    const Layer& last = layers.graph.layers.back();
    QCOMPARE(last.lengths, (std::array<double, 3>{64, 4096, 1000}));
    // The fully connected layers are those of the golden tables.
    const LayerGraph golden = test::golden_alexnet(64);
    for (std::size_t l = 5; l < 8; ++l) {
      QCOMPARE(layers.graph.layers[l].lengths, golden.layers[l].lengths);
      QCOMPARE(layers.graph.layers[l].flop(Phase::forward), golden.layers[l].flop(Phase::forward));
      QCOMPARE(layers.graph.layers[l].flop(Phase::backward), golden.layers[l].flop(Phase::backward));
    }
    QVERIFY(programmes_agree(layers));
  }

  void vgg() {
    const std::pair<const char*, std::size_t> sizes[] = {{"vgg11", 11}, {"vgg13", 13}, {"vgg16", 16}, {"vgg19", 19}};
    for (const auto& [name, count] : sizes) {
      const ModelLayers layers = layers_in(built_in(name));
      QCOMPARE(layers.graph.layers.size(), count);
      QCOMPARE(layers.graph.edges.size(), count - 1);
      QVERIFY(programmes_agree(layers));
    }
    // Partial sums of a layer before a pooling are four times what its consumer reads.
    const ModelLayers layers = layers_in(built_in("vgg11"));
    QCOMPARE(layers.graph.layers[0].output, 4 * layers.graph.edges[0].forward);
  }

  void resnets() {
    const ModelLayers small = layers_in(built_in("resnet18")), large = layers_in(built_in("resnet50"));
    QCOMPARE(small.graph.layers.size(), std::size_t(21));  // 18, and three projections
    QCOMPARE(large.graph.layers.size(), std::size_t(54));  // 50, and four projections
    const auto count = [](const ModelLayers& layers, Side from, Side to) {
      return std::count_if(layers.graph.edges.begin(), layers.graph.edges.end(),
                           [&](const Edge& edge) { return edge.from_side == from && edge.to_side == to; });
    };
    QCOMPARE(count(small, Side::in, Side::out), 5);  // identities
    QCOMPARE(count(small, Side::out, Side::out), 3);
    QCOMPARE(count(large, Side::in, Side::out), 12);
    QCOMPARE(count(large, Side::out, Side::out), 4);
    // A sum has the state of the block's own path; the projection joins it.
    for (const Edge& edge : large.graph.edges)
      if (edge.from_side == Side::out && edge.to_side == Side::out)
        QVERIFY(large.graph.layers[edge.from].name.ends_with("shortcut"));
    QVERIFY(programmes_agree(small));
    QVERIFY(programmes_agree(large));
  }

  void a_transformer() {
    const ModelPtr model = built_in("gpt2", 8);
    const ModelLayers plain = layers_in(model);
    const ModelLayers fused = layers_in(fuse_attention(model));
    QCOMPARE(plain.graph.layers.size(), fused.graph.layers.size() + 12);
    const Layer& attention = named(fused, "layer0/attention/context");
    QVERIFY(attention.kind == LayerKind::attention);
    QCOMPARE(attention.groups, 12.0);
    QCOMPARE(attention.units(Type::output), 12.0);
    QCOMPARE(attention.summed(Type::output), 0.0);
    QCOMPARE(attention.weights, 0.0);
    QCOMPARE(named(fused, "layer0/attention/q").lengths[2], 12.0);  // whole heads
    QVERIFY(programmes_agree(fused));
    // Every block has its two identities, from the first layer that reads the normalised stream.
    const auto identities = std::count_if(fused.graph.edges.begin(), fused.graph.edges.end(),
                                          [](const Edge& edge) { return edge.from_side == Side::in; });
    QCOMPARE(identities, 24);
    // Heads cut through projections, attention and output cost two sums a block, as Megatron does it.
    const Bisection devices = test::equal_devices(2, 1e14, 1e10);
    QVERIFY(search(fused.graph, devices, Options()).has_value());
  }

  void experts() {
    const ModelLayers layers = layers_in(built_in("mixtral-8x7b?layers=1&hidden=1024&width=512", 8));
    const Layer& up = named(layers, "mlp/experts_up");
    QVERIFY(up.kind == LayerKind::experts);
    QCOMPARE(up.groups, 8.0);
    QCOMPARE(up.units(Type::output), 8.0);
  }

  void every_operator_has_its_layer() {
    for (const char* name : {"inception-v3", "lstm-lm", "gnmt", "ncf", "wide-resnet"}) {
      const ModelPtr model = built_in(name);
      const ModelLayers layers = layers_in(model);
      QVERIFY(validate(layers.graph).has_value());
      QCOMPARE(layers.operators.size(), layers.graph.layers.size());
      std::size_t none = 0;
      for (std::uint32_t o = 0; o < model->operators.size(); ++o) {
        const OperatorId id(o);
        if (layers.layer_of[id] != kNoLayer)
          QVERIFY(layers.layer_of[id] < layers.graph.layers.size());
        else
          none += model->operators[id].kind != OperatorKind::input;
      }
      QVERIFY2(none == 0, name);
      for (std::size_t l = 0; l < layers.operators.size(); ++l) {
        QCOMPARE(layers.layer_of[layers.operators[l]], std::uint32_t(l));
        QVERIFY(layers.graph.layers[l].lengths[0] == 64);
      }
    }
  }

  void a_model_without_layers() {
    ModelBuilder b("relu", "test", 4, 0);
    const std::array x{b.input("x", {4, 8}, {DimName::batch, DimName::channel}, ElementType::f32)};
    const auto model = b.finish({b.elementwise("relu", "Relu", x, {1, true, {}})});
    QVERIFY(model.has_value());
    const auto refused = layers_of(**model);
    QVERIFY(!refused);
    QVERIFY(refused.error().message().find("has no layer that can be partitioned") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(AccParModelLayersTest)
#include "model_layers_test.moc"
