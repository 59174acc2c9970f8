// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts and convolutional recurrent cells as operators: shapes, work, splits, refusals.
#include <QTest>

#include "core/model/builder.h"

using namespace turnpoint;

namespace {

struct Mixture {
  ModelBuilder b{"mixture", "test", 4, 6};
  TensorId x = b.parameter("x", {4, 6, 10}, {DimName::batch, DimName::sequence, DimName::channel});
  TensorId routing = b.parameter("routing", {4, 6, 3}, {DimName::batch, DimName::sequence, DimName::expert});
};

}  // namespace

class BuilderExpertsTest : public QObject {
  Q_OBJECT

 private slots:
  void dispatch_and_combine() {
    Mixture m;
    const TensorId tokens = m.b.dispatch("dispatch", m.x, m.routing, 4);
    QCOMPARE(m.b.tensor(tokens).shape, (std::vector<std::int64_t>{4, 3, 4, 10}));
    const TensorId y = m.b.combine("combine", tokens, 6);
    QCOMPARE(m.b.tensor(y).shape, (std::vector<std::int64_t>{4, 6, 10}));
    const auto model = m.b.finish({y});
    QVERIFY(model.has_value());
    const Operator& dispatch = (*model)->operators[OperatorId(0)];
    const Operator& combine = (*model)->operators[OperatorId(1)];
    // The routing is kept for its own gradient, the experts' results for the routing's.
    QVERIFY(!dispatch.inputs[0].saved && dispatch.inputs[1].saved && combine.inputs[0].saved);
    QCOMPARE(combine.forward_flop, 2.0 * 4 * 3 * 4 * 10);
    QCOMPARE(dispatch.forward_macs + combine.forward_macs, 0.0);
    // A split of the experts leaves the combination a partial sum; tokens in one slot stay together.
    for (const auto& dim : combine.dims)
      if (dim.name == DimName::expert) QCOMPARE(dim.role, DimRole::reduction);
    for (const auto& dim : dispatch.dims) QCOMPARE(dim.splittable, dim.name != DimName::sequence);
  }

  void idle_parameters_are_not_active() {
    Mixture m;
    m.b.add_idle_parameters(100);
    m.b.add_idle_parameters(11);
    const auto model = m.b.finish({m.b.dispatch("dispatch", m.x, m.routing, 4)});
    QCOMPARE((*model)->parameters, std::int64_t(4 * 6 * 13));
    QCOMPARE((*model)->active_parameters, std::int64_t(4 * 6 * 13 - 111));
    Mixture huge;
    for (int i = 0; i < 40; ++i) huge.b.add_idle_parameters(std::int64_t(1) << 62);
    QVERIFY(huge.b.finish({huge.x}).has_value());
  }

  void wrong_operands_are_named() {
    const auto message = [](auto&& build) {
      Mixture m;
      build(m);
      const auto model = m.b.finish({m.x});
      return model ? std::string() : model.error().message();
    };
    QVERIFY(message([](Mixture& m) { m.b.dispatch("here", m.x, m.x, 0); }).find("node 'here'") != std::string::npos);
    QVERIFY(message([](Mixture& m) { m.b.dispatch("here", m.b.parameter("p", {3}), m.routing, 4); }).find("routing") !=
            std::string::npos);
    QVERIFY(message([](Mixture& m) { m.b.combine("here", m.x, 6); }).find("four dimensions") != std::string::npos);
    QVERIFY(message([](Mixture& m) { m.b.dispatch("here", m.x, m.routing, std::int64_t(1) << 59); }).find("2^60") !=
            std::string::npos);
    QVERIFY(message([](Mixture& m) {
              const TensorId w[] = {m.b.parameter("w", {5, 6, 3})};
              m.b.convolutional_recurrent("here", "Cell", m.x, w, 4, 2, 0);
            }).find("batch, time, channels") != std::string::npos);
  }

  void convolutional_cells() {
    ModelBuilder b("cell", "test", 2, 5);
    const TensorId x = b.input("x", {2, 5, 3, 7, 7},
                               {DimName::batch, DimName::sequence, DimName::channel, DimName::height, DimName::width},
                               ElementType::f32);
    const TensorId weights[] = {b.parameter("w", {4 * 8, 3, 3, 3}), b.parameter("r", {4 * 8, 8, 3, 3})};
    const TensorId y = b.convolutional_recurrent("cell", "ConvLSTM", x, weights, 8, 6, 1000);
    QCOMPARE(b.tensor(y).shape, (std::vector<std::int64_t>{2, 5, 8, 7, 7}));
    const auto model = b.finish({y});
    QVERIFY(model.has_value());
    const Operator& cell = (*model)->operators[(*model)->tensors[y].producer];
    const double positions = 2 * 5 * 49, input = positions * 32 * 3 * 9, state = positions * 32 * 8 * 9;
    QCOMPARE(cell.forward_macs, input + state + 1000);
    QCOMPARE(cell.backward_macs, 2 * (input + state + 1000) - input);  // x needs no gradient
    QCOMPARE(summarise(**model).activation_bytes, std::int64_t(4 * positions * (3 + 8 + 8 * 6)));
    for (const auto& dim : cell.dims)
      QCOMPARE(dim.splittable, dim.name == DimName::batch || dim.name == DimName::out_channel);
    ModelBuilder other("cell", "test", 2, 5);
    const TensorId z = other.input("x", {2, 5, 3, 7, 7}, {}, ElementType::f32);
    const TensorId uneven[] = {other.parameter("v", {30, 3, 3, 3})};
    other.convolutional_recurrent("cell", "ConvLSTM", z, uneven, 8, 6, 0);
    QVERIFY(other.finish({z}).error().message().find("does not fit its hidden channels") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(BuilderExpertsTest)
#include "builder_experts_test.moc"
