// SPDX-License-Identifier: Apache-2.0
// The unpartitioned step itself: its gradients are those of its loss (central differences along random directions), and
// its forward arithmetic is what the formulas say, written down a second time here.
#include <QtTest>
#include <cmath>
#include <map>

#include "core/model/split_loss.h"
#include "gpu_probe/step/values/numbers.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

step::StepRun whole_run(const Model& model, const step::StepOptions& options) {
  auto run = step::run_step(step::in_double(), model, step::whole_plan(model), options);
  if (!run) qFatal("%s", run.error().message().c_str());
  return std::move(*run);
}

TensorId root_of(const Model& model, const step::Recorded& r) {
  const TensorId id = model.operators[r.op].inputs[r.slot].tensor;
  return model.tensors[id].tied_to.valid() ? model.tensors[id].tied_to : id;
}

const std::vector<double>& output_of(const step::StepRun& run, const Model& model, const std::string& op) {
  for (const auto& r : run.ranks.front().recorded)
    if (r.kind == step::Compared::activation && r.slot == 0 && model.operators[r.op].name == op) return r.data;
  qFatal("no such operator");
}

}  // namespace

class StepGradientsTest : public QObject {
  Q_OBJECT

 private slots:
  // A model from a file may describe a maximum whose result has places that no loop reaches: they take no gradient, and
  // backward touches nothing outside the input.
  void a_maximum_with_places_that_no_loop_reaches() {
    const ModelPtr network = test::turned_table();
    QVERIFY(network);
    Model model = *network;
    for (auto& op : model.operators)
      if (op.name == "largest") {
        QCOMPARE(op.outputs[0].walks.size(), std::size_t(2));
        op.outputs[0].walks[1].clear();
      }
    step::StepOptions options;
    options.record = true;
    const step::StepRun run = whole_run(model, options);
    QVERIFY(std::isfinite(run.loss));
    std::size_t gradients = 0;
    for (const auto& r : run.ranks.front().recorded)
      if (r.kind == step::Compared::parameter_gradient) {
        ++gradients;
        for (const double value : r.data) QVERIFY(std::isfinite(value) && std::abs(value) < 1e6);
      }
    QVERIFY(gradients > 0);
  }

  void gradients_are_those_of_the_loss_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void gradients_are_those_of_the_loss() {
    QFETCH(int, model);
    const ModelPtr network = split_loss(test::step_models()[std::size_t(model)].make());
    QVERIFY(network);
    step::StepOptions options;
    options.record = true;
    const step::StepRun run = whole_run(*network, options);
    // Along one random direction per parameter: what the gradients say the loss does.
    const auto direction = [](TensorId id, std::int64_t index) {
      return 2 * step::counter_uniform(77, id.index, static_cast<std::uint64_t>(index)) - 1;
    };
    std::map<TensorId, double> slope;
    for (const auto& r : run.ranks.front().recorded) {
      if (r.kind != step::Compared::parameter_gradient) continue;
      const TensorId id = root_of(*network, r);
      for (std::size_t i = 0; i < r.data.size(); ++i)
        slope[id] += r.data[i] * direction(id, r.first + static_cast<std::int64_t>(i));
    }
    QVERIFY(!slope.empty());
    options.record = false;
    double worst = 0;
    for (const auto& [id, expected] : slope) {
      // Two widths, of which what the third derivative adds cancels: it is large where small numbers are normalised.
      const auto rise = [&, id = id](double width) {
        double loss[2];
        for (const int side : {0, 1}) {
          options.initial = [&](TensorId parameter, std::int64_t index, double drawn) {
            return parameter == id ? drawn + (side ? width : -width) * direction(id, index) : drawn;
          };
          loss[side] = whole_run(*network, options).loss;
        }
        return (loss[1] - loss[0]) / (2 * width);
      };
      constexpr double kStep = 1e-5;
      const double found = (4 * rise(kStep) - rise(2 * kStep)) / 3;
      const double error = std::abs(found - expected) / std::max({std::abs(expected), std::abs(found), 1e-3});
      worst = std::max(worst, error);
      QVERIFY2(error < 1e-6, qPrintable(QString("%1: the loss rises by %2, its gradient says %3")
                                            .arg(network->tensors[id].name.c_str())
                                            .arg(found, 0, 'g', 12)
                                            .arg(expected, 0, 'g', 12)));
    }
    qInfo("%zu parameters, largest relative error %.1e", slope.size(), worst);
  }

  /// In two operators a loss is what it is in one, and so are the gradients of all parameters.
  void a_loss_by_words_is_the_loss() {
    int compared = 0;
    for (const auto& model : test::step_models()) {
      const ModelPtr whole = model.make(), by_words = split_loss(whole);
      if (by_words == whole) continue;
      step::StepOptions options;
      options.record = true;
      const auto of = [&](const Model& network) {
        std::map<std::pair<TensorId, std::int64_t>, std::vector<double>> gradients;
        const step::StepRun run = whole_run(network, options);
        for (const auto& r : run.ranks.front().recorded)
          if (r.kind == step::Compared::parameter_gradient) gradients[{root_of(network, r), r.first}] = r.data;
        return std::pair(run.loss, gradients);
      };
      const auto [loss, gradients] = of(*whole);
      const auto [same_loss, same_gradients] = of(*by_words);
      QVERIFY2(std::abs(loss - same_loss) < 1e-13 * std::abs(loss), model.name);
      QCOMPARE(gradients.size(), same_gradients.size());
      for (const auto& [place, data] : gradients) {
        const auto& other = same_gradients.at(place);
        QCOMPARE(other.size(), data.size());
        for (std::size_t i = 0; i < data.size(); ++i) QVERIFY2(std::abs(data[i] - other[i]) < 1e-13, model.name);
      }
      ++compared;
    }
    QVERIFY(compared >= 4);
  }

  void a_convolution_by_its_formula() {
    ModelBuilder b("conv", "test", 2, 0);
    TensorId x = b.input("x", {2, 3, 5, 5}, {DimName::batch, DimName::channel, DimName::height, DimName::width},
                         ElementType::f32);
    const ConvolutionShape shape{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, false};
    b.convolution("conv", x, b.parameter("w", {4, 3, 3, 3}), {}, shape);
    const ModelPtr model = *b.finish({});
    std::map<std::int64_t, double> w;
    step::StepOptions options;
    options.record = true;
    options.initial = [&](TensorId, std::int64_t index, double drawn) { return w[index] = drawn; };
    const auto run = whole_run(*model, options);
    const auto &in = output_of(run, *model, "x"), &out = output_of(run, *model, "conv");
    for (int n = 0; n < 2; ++n)
      for (int o = 0; o < 4; ++o)
        for (int i = 0; i < 5; ++i)
          for (int j = 0; j < 5; ++j) {
            double y = 0;
            for (int c = 0; c < 3; ++c)
              for (int di = -1; di <= 1; ++di)
                for (int dj = -1; dj <= 1; ++dj)
                  if (i + di >= 0 && i + di < 5 && j + dj >= 0 && j + dj < 5)
                    y += in[std::size_t(((n * 3 + c) * 5 + i + di) * 5 + j + dj)] *
                         w[((o * 3 + c) * 3 + di + 1) * 3 + dj + 1];
            QVERIFY(std::abs(out[std::size_t(((n * 4 + o) * 5 + i) * 5 + j)] - y) < 1e-13);
          }
  }

  void attention_by_its_formula() {
    const int batch = 2, sequence = 3, hidden = 4;
    ModelBuilder b("attention", "test", batch, sequence);
    const std::vector<std::int64_t> shape{batch, sequence, hidden};
    const std::vector dims{DimName::batch, DimName::sequence, DimName::channel};
    const TensorId q = b.input("q", shape, dims, ElementType::f32), k = b.input("k", shape, dims, ElementType::f32);
    const TensorId v = b.linear("v", q, b.parameter("w", {hidden, hidden}), b.parameter("bias", {hidden}));
    const TensorId labels = b.input("labels", {batch, sequence}, {DimName::batch, DimName::sequence}, ElementType::i64);
    const TensorId y = b.matmul("context", b.softmax("softmax", b.matmul("scores", q, k, false, true), 2), v);
    const ModelPtr model = *b.finish({b.cross_entropy("loss", y, labels)});
    std::map<std::pair<TensorId, std::int64_t>, double> w;
    step::StepOptions options;
    options.record = true;
    options.initial = [&](TensorId id, std::int64_t index, double drawn) { return w[{id, index}] = drawn; };
    const auto run = whole_run(*model, options);
    const auto &qs = output_of(run, *model, "q"), &ks = output_of(run, *model, "k"),
               &target = output_of(run, *model, "labels");
    TensorId matrix, bias;
    for (std::size_t t = 0; t < model->tensors.size(); ++t) {
      if (model->tensors[TensorId(t)].name == "w") matrix = TensorId(t);
      if (model->tensors[TensorId(t)].name == "bias") bias = TensorId(t);
    }
    const auto at = [&](int n, int s, int c) { return std::size_t((n * sequence + s) * hidden + c); };
    double loss = 0;
    for (int n = 0; n < batch; ++n)
      for (int s = 0; s < sequence; ++s) {
        std::vector<double> weight(sequence), logits(hidden);
        double total = 0;
        for (int t = 0; t < sequence; ++t) {
          double score = 0;
          for (int c = 0; c < hidden; ++c) score += qs[at(n, s, c)] * ks[at(n, t, c)];
          total += weight[std::size_t(t)] = std::exp(score);
        }
        for (int t = 0; t < sequence; ++t)
          for (int c = 0; c < hidden; ++c) {
            double value = w[{bias, c}];
            for (int i = 0; i < hidden; ++i) value += qs[at(n, t, i)] * w[{matrix, i * hidden + c}];
            logits[std::size_t(c)] += weight[std::size_t(t)] / total * value;
          }
        double sum = 0;
        for (const double l : logits) sum += std::exp(l);
        loss += std::log(sum) - logits[std::size_t(int(target[std::size_t(n * sequence + s)]) % hidden)];
      }
    QVERIFY(std::abs(run.loss - loss / (batch * sequence)) < 1e-13);
  }
};

QTEST_APPLESS_MAIN(StepGradientsTest)
#include "step_gradients_test.moc"
