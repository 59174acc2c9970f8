// SPDX-License-Identifier: Apache-2.0
// Operator costs against figures worked by hand from resources/manual/costs.md, 3 to 5, and the bookkeeping of who
// keeps what.
#include <QtTest>
#include <cmath>

#include "core/import/source/model_source.h"
#include "cost/round_setting.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

class OperatorCostTest : public QObject {
  Q_OBJECT

 private slots:
  void data_parallel_linear_by_hand() {
    // fc1: x [64,32], W [32,64], b [64] on 4 devices: 16 samples each.
    const Setting s(test::mlp(), 1, 4, [](Settings& settings) { settings.optimizer = Optimizer::adam; });
    const CostBreakdown cost = s.data_parallel("fc1");
    const std::int64_t parameters = 32 * 64 + 64;
    QCOMPARE(cost.memory[static_cast<std::size_t>(MemoryPart::parameters)], parameters * 4);
    QCOMPARE(cost.memory[static_cast<std::size_t>(MemoryPart::gradients)], parameters * 4);
    QCOMPARE(cost.memory[static_cast<std::size_t>(MemoryPart::optimizer)], parameters * 8);
    // Ring all-reduce of all gradients of the operator in one message: 2 (g-1) (a + n/(g B)).
    const double sync = 2 * 3 * (1e-6 + parameters * 4.0 / 4 / 1e10);
    QVERIFY(close(cost.network_s(), sync));
    // Update: reads gradient, weight and two moments, writes weight and moments: 4 + 2 (4 + 8) bytes per parameter.
    QVERIFY(close(cost.compute[static_cast<std::size_t>(ComputePart::update)], parameters * 28.0 / 1e11 + 1e-6));
    // Forward: 16 x 32 x 64 MACs (and the bias) against x, W, b and y in memory; memory wins.
    const double forward_bytes = 4.0 * (16 * 32 + parameters + 16 * 64), forward_flop = 2.0 * 16 * 32 * 64 + 16 * 64;
    QVERIFY2(close(cost.compute[0], std::max(forward_bytes / 1e11, forward_flop / 1e12) + 1e-6),
             qPrintable(QString::number(cost.compute[0], 'g', 12)));
  }

  void paper_accounting_counts_one_copy() {
    const Setting s(test::mlp(), 1, 4, [](Settings& settings) { settings.accounting = Accounting::paper; });
    QCOMPARE(s.data_parallel("fc1").memory_bytes(), std::int64_t(32 * 64 + 64) * 4);
  }

  void sixteen_bit_keeps_a_master_copy() {
    Settings settings;
    settings.precision = Precision::bf16;
    const ParameterBytes bytes = parameter_bytes(settings, Accounting::full);
    QCOMPARE(bytes.weight, 2);
    QCOMPARE(bytes.gradient, 2);
    QCOMPARE(bytes.optimizer, 12);
    settings.gradients = Gradients::fp32;  // 18 bytes of a parameter, as Megatron-LM has
    QCOMPARE(parameter_bytes(settings, Accounting::full).gradient, 4);
    QCOMPARE(parameter_bytes(settings, Accounting::paper).gradient, 0);
    settings.optimizer_state = OptimizerState::bf16;  // two moments of 2 bytes, and the master copy
    QCOMPARE(parameter_bytes(settings, Accounting::full).optimizer, 8);
    settings.precision = Precision::fp32;
    QCOMPARE(parameter_bytes(settings, Accounting::full).optimizer, 4);
    settings.optimizer_state = OptimizerState::fp32;
    settings.optimizer = Optimizer::sgd;
    QCOMPARE(parameter_bytes(settings, Accounting::full).optimizer, 0);
    settings.optimizer = Optimizer::momentum;
    QCOMPARE(parameter_bytes(settings, Accounting::full).optimizer, 4);
  }

  // Products with a weight at the 8-bit peak, with what is cast before: read in 2 bytes, written in 1. All else is
  // bf16.
  void eight_bits_by_hand() {
    const auto change = [](Precision precision) {
      return [precision](Settings& settings) { settings.precision = precision; };
    };
    ModelBuilder b("wide", "test", 4096, 0);
    TensorId x0 = b.input("x", {4096, 2048}, {DimName::batch, DimName::channel}, ElementType::f32);
    x0 = b.linear("fc1", x0, b.parameter("w1", {2048, 4096}), b.parameter("b1", {4096}));
    const std::array in{x0};
    x0 = b.elementwise("relu", "Relu", in, {1, true, {}});
    const auto model = test::finished(b, b.linear("fc2", x0, b.parameter("w2", {4096, 2048})));
    const Setting halves(model, 1, 4, change(Precision::bf16)), bytes(model, 1, 4, change(Precision::fp8));
    for (const char* name : {"fc1", "fc2"}) {
      const Operator& op = model->operators[bytes.find(name)];
      QVERIFY(multiplies_eight_bits(*model, op));
      const Tensor &x = model->tensors[op.inputs[0].tensor], &w = model->tensors[op.inputs[1].tensor],
                   &y = model->tensors[op.outputs[0].tensor];
      const CostBreakdown in_halves = halves.data_parallel(name), in_bytes = bytes.data_parallel(name);
      const double cast = 3.0 * (double(x.elements()) / 4 + double(w.elements())) / 1e11 + 1e-6,
                   cast_back = 3.0 * (double(y.elements()) / 4) / 1e11 + 1e-6;
      QVERIFY(close(in_halves.compute[0], op.forward_flop / 4 / 4e12 + 1e-6));
      QVERIFY(close(in_bytes.compute[0], op.forward_flop / 4 / 8e12 + 1e-6 + cast));
      QVERIFY(close(in_bytes.compute[1], op.backward_flop / 4 / 8e12 + 1e-6 + cast_back));
      QCOMPARE(in_bytes.memory_bytes(), in_halves.memory_bytes());
      QVERIFY(close(in_bytes.network_s(), in_halves.network_s()));
    }
    QVERIFY(!multiplies_eight_bits(*model, model->operators[bytes.find("relu")]));
    const auto source = open_model("builtin:gpt2?layers=1&hidden=64&sequence=16");
    QVERIFY(source.has_value());
    const auto bound = (*source)->bind({4, 0});
    QVERIFY(bound.has_value());
    const Setting gpt(*bound, 1, 1);
    const auto in_eight = [&](const char* name) {
      return multiplies_eight_bits(*gpt.scenario.model, gpt.scenario.model->operators[gpt.find(name)]);
    };
    QVERIFY(in_eight("layer0/attention/out") && !in_eight("layer0/attention/scores") && !in_eight("head/logits"));
    QVERIFY(close(bytes.data_parallel("relu").time_s(), halves.data_parallel("relu").time_s()));
  }

  // In 16 bits a loss writes probabilities of 4 bytes beside logits of 2, and backward reads those: 2 + 4 and 4 + 2
  // bytes an element move. The other half of them is kept, or made again from the logits.
  void a_loss_keeps_probabilities_in_fp32() {
    ModelBuilder b("loss", "test", 64, 0);
    const TensorId x = b.input("x", {64, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
    const TensorId labels = b.input("labels", {64}, {DimName::batch}, ElementType::i64);
    const TensorId logits = b.linear("head", x, b.parameter("w", {32, 1000}));
    const auto model = test::finished(b, b.cross_entropy("loss", logits, labels));
    const auto of = [&](Precision precision, LossPrecision loss) {
      return Setting(model, 1, 4, [&](Settings& s) { s.precision = precision, s.loss = loss; });
    };
    const Setting full = of(Precision::bf16, LossPrecision::fp32),
                  half = of(Precision::bf16, LossPrecision::as_activations);
    const double elements = 64 * 1000 / 4;
    CostBreakdown more = full.data_parallel("loss"), less = half.data_parallel("loss");
    QCOMPARE(more[MemoryPart::activations] - less[MemoryPart::activations], std::int64_t(2 * elements));
    QVERIFY(close(more[ComputePart::forward] - less[ComputePart::forward], 4 * elements / 1e11));
    QVERIFY(close(more[ComputePart::backward] - less[ComputePart::backward], 2 * elements / 1e11));
    MemoryChoice again;
    again.recompute = true;
    const OperatorId id = full.find("loss");
    const Configuration split = data_parallel_configuration(model->operators[id], full.resharding->mesh());
    CostBreakdown remade = full.costs->cost(id, split, again).breakdown;
    QCOMPARE(remade[MemoryPart::activations], less[MemoryPart::activations]);
    QVERIFY(close(remade[ComputePart::recompute], more[ComputePart::forward]));
    QVERIFY(close(of(Precision::fp32, LossPrecision::fp32).data_parallel("loss").time_s(),
                  of(Precision::fp32, LossPrecision::as_activations).data_parallel("loss").time_s()));
    QVERIFY(full.data_parallel("head").memory_bytes() == half.data_parallel("head").memory_bytes());
  }

  // Backward fills a gradient of the whole table with zeros, in a kernel of its own; the papers know nothing of it.
  void an_embedding_clears_the_gradient_of_its_table() {
    ModelBuilder b("lookup", "test", 64, 0);
    const TensorId ids = b.input("ids", {64}, {DimName::batch}, ElementType::i64);
    const TensorId found = b.embedding("embed", b.parameter("table", {1000, 32}), ids);
    const auto model = test::finished(b, b.linear("head", found, b.parameter("w", {32, 8})));
    CostBreakdown full = Setting(model, 1, 4).data_parallel("embed"),
                  paper =
                      Setting(model, 1, 4, [](Settings&s) { s.accounting = Accounting::paper; }).data_parallel("embed");
    QVERIFY(close(full[ComputePart::forward], paper[ComputePart::forward]));
    QVERIFY(close(full[ComputePart::backward] - paper[ComputePart::backward], 1000 * 32 * 4 / 1e11 + 1e-6));
  }

  // A recurrent layer launches its kernels for every time step and direction: so often a fit's launch counts.
  void time_steps_are_launched() {
    for (const int directions : {1, 2}) {
      ModelBuilder b("layer", "test", 8, 0);
      const TensorId x = b.input("x", {8, 5, 16}, {DimName::batch, DimName::time, DimName::channel}, ElementType::f32);
      const auto model =
          test::finished(b, b.recurrent("lstm", "LSTM", x, b.parameter("w", {directions, 64, 16}),
                                        b.parameter("r", {directions, 64, 16}), std::nullopt, 4, directions, 16, true));
      const Setting s(model, 1, 4, {}, [](Cluster& cluster) {
        cluster.fits = {{"recurrent", "forward", Precision::fp32, 3e-6, 0, 0, 4}};
      });
      CostBreakdown cost = s.data_parallel("lstm");
      QVERIFY(close(cost[ComputePart::forward], 5 * directions * 3e-6));
    }
  }

  void repeats_multiply_work_and_need_no_synchronisation() {
    const Setting s(test::mlp(), 1, 4);
    const OperatorId id = s.find("fc1");
    const auto repeated = s.costs->cost(id, Configuration()).breakdown;
    QCOMPARE(repeated.network_s(), 0.0);
    QVERIFY(repeated.compute[0] > s.data_parallel("fc1").compute[0]);
  }

  void tied_parameters_count_once() {
    const Setting s(test::attention(), 1, 4);
    QCOMPARE(s.uses.ties.size(), std::size_t(1));
    const OperatorId head = s.find("head");
    QCOMPARE(s.costs->cost(head, Configuration()).breakdown.memory[0], std::int64_t(0));
    QCOMPARE(s.costs->cost(s.find("embed"), Configuration()).breakdown.memory[0], std::int64_t(64 * 32 * 4));
  }

  void who_keeps_what() {
    const auto model = test::residual();
    const TensorUses uses = analyse_tensor_uses(*model);
    for (const auto& flow : uses.flows) {
      const std::string producer = model->operators[flow.producer].name;
      if (producer ==
          "stem") {  // read by fc1, whose weight gradient needs it, and by the addition, which needs nothing
        QVERIFY(flow.shared());
        QVERIFY(!flow.producer_saves);
        for (std::size_t c = 0; c < flow.consumers.size(); ++c)
          QCOMPARE(bool(flow.consumer_saves[c]), model->operators[flow.consumers[c].op].name == "fc1");
      }
      if (producer == "relu1") QVERIFY(flow.producer_saves && flow.consumer_saves.front());
      if (producer == "fc1") QVERIFY(!flow.producer_saves && !flow.consumer_saves.front());
    }
  }

  void views_pass_on_what_is_kept() {
    const auto model = test::convolution();
    bool seen = false;
    for (const auto& flow : analyse_tensor_uses(*model).flows) {
      if (model->operators[flow.producer].name != "pool") continue;
      seen = true;
      QVERIFY(flow.consumer_saves.front());  // the linear layer reads the flattened view
    }
    QVERIFY(seen);
  }
};

QTEST_APPLESS_MAIN(OperatorCostTest)
#include "operator_cost_test.moc"
