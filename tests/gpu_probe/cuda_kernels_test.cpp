// SPDX-License-Identifier: Apache-2.0
// Kernels of steps on a (emulated) CUDA device where the small networks of the other tests do not reach: sums shared by
// several blocks, every elementwise function with a broadcast, windows that overlap, convolutions without cuDNN, ties,
// products and moves over loops in any order.
#include <fmt/format.h>
#include <QtTest>
#include <random>

#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/values/block.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;
namespace cuda = step::in_cuda;
using step::Strides;

namespace {

constexpr double kLargest = 2e-4;

std::string fault(const Model& model) {
  step::StepOptions options;
  options.record = true;
  const Plan plan = step::whole_plan(model);
  const auto run = step::run_step(step::on_cuda(), model, plan, options);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), model, plan, options);
  if (!whole) return whole.error().message();
  const auto compared = step::compare(model, plan, *run, *whole);
  if (!compared) return compared.error().message();
  if (compared->elements[2] == 0) return "no gradient was compared";
  if (compared->largest() < kLargest) return {};
  return fmt::format("differs by {} at {}", compared->largest(), compared->where);
}

/// x of a linear layer, so that gradients go through what follows.
struct Network {
  ModelBuilder b;
  TensorId x;
  Network(std::int64_t rows, std::int64_t channels, std::int64_t inner = 4) : b("kernels", "test", rows, 0) {
    const TensorId data = b.input("x", {rows, inner}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("stem", data, b.parameter("w", {inner, channels}), b.parameter("bias", {channels}));
  }
  ModelPtr done(TensorId y) { return test::finished(b, y); }
};

ModelPtr function(const char* name, int operands, const ElementwiseTraits& traits) {
  Network n(40, 24);
  std::vector<TensorId> x{n.x};
  for (int k = 1; k < operands; ++k) x.push_back(n.b.parameter(fmt::format("p{}", k), {24}));
  return n.done(n.b.elementwise("f", name, x, traits));
}

ModelPtr convolution(std::vector<std::int64_t> size, std::int64_t groups, std::int64_t kernel, std::int64_t stride,
                     bool transposed) {
  const std::int64_t batch = 3, channels = 4, out = 6;
  ModelBuilder b("convolution", "test", batch, 0);
  std::vector<std::int64_t> shape{batch, channels},
      weight{transposed ? channels : out, (transposed ? out : channels) / groups};
  std::vector<DimName> dims{DimName::batch, DimName::channel};
  const DimName names[] = {DimName::depth, DimName::height, DimName::width};
  ConvolutionShape of;
  for (std::size_t d = 0; d < size.size(); ++d) {
    shape.push_back(size[d]);
    weight.push_back(kernel);
    dims.push_back(names[d + 3 - size.size()]);
    of.kernel.push_back(kernel), of.strides.push_back(stride), of.dilations.push_back(1);
    of.pads_begin.push_back(transposed ? 0 : (kernel - 1) / 2), of.pads_end.push_back(transposed ? 0 : kernel / 2);
  }
  of.groups = groups, of.transposed = transposed;
  TensorId x = b.input("x", shape, dims, ElementType::f32);
  // A gradient for the data, too.
  const std::array scaled{x, b.parameter("scale", std::vector<std::int64_t>(shape.size(), 1))};
  x = b.elementwise("scaled", "Mul", scaled, {1, false, {true, true}});
  return test::finished(b, b.convolution("conv", x, b.parameter("w", weight), b.parameter("b", {out}), of));
}

Strides strides_of(const std::vector<std::size_t>& order, const Strides& sizes) {
  Strides strides(sizes.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = sizes[order[i]] == 1 ? 0 : stride;
    stride *= sizes[order[i]];
  }
  return strides;
}
std::size_t elements_of(const std::vector<std::size_t>& order, const Strides& sizes) {
  std::size_t count = 1;
  for (const auto l : order) count *= std::size_t(sizes[l]);
  return count;
}
template <class Visit>
void each(const Strides& sizes, const Visit& visit) {
  Strides index(sizes.size(), 0);
  for (;;) {
    visit(index);
    std::size_t l = sizes.size();
    for (; l > 0; --l) {
      if (++index[l - 1] < sizes[l - 1]) break;
      index[l - 1] = 0;
    }
    if (l == 0) return;
  }
}
std::size_t offset(const Strides& index, const Strides& strides) {
  std::int64_t at = 0;
  for (std::size_t l = 0; l < index.size(); ++l) at += index[l] * strides[l];
  return std::size_t(at);
}

step::Array on_device(const std::vector<float>& numbers) {
  step::Array array = step::Array::scratch(numbers.size());
  step::put(std::vector<double>(numbers.begin(), numbers.end()), array.data());
  return array;
}

}  // namespace

class CudaKernelsTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::on_cuda()};

 private slots:
  void initTestCase() {
    if (const auto why = test::load_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
    qputenv("TURNPOINT_EMULATED_GPU_NO_CONVOLUTIONS", "1");
    const auto opened = step::open_gpu(0);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
  }

  void models_data() {
    QTest::addColumn<ModelPtr>("model");
    const auto row = [](const char* name, const ModelPtr& model) { QTest::newRow(name) << model; };
    row("sum", function("Add", 2, {}));
    row("difference", function("Sub", 3, {}));
    row("linear", function("Mystery", 3, {}));
    row("product", function("Mul", 3, {1, false, {true, true, true}}));
    row("relu", function("Relu", 2, {1, true, {}}));
    row("tanh", function("Tanh", 2, {1, true, {}}));
    row("tanh of linear", function("Mystery", 3, {1, true, {}}));
    row("sigmoid", function("Sigmoid", 2, {1, true, {}}));
    row("exponential", function("Exp", 2, {1, true, {}}));
    row("gelu", function("Gelu", 1, {1, false, {true}}));
    row("silu", function("Swish", 1, {1, false, {true}}));
    row("gated silu", function("Silu*x", 2, {1, false, {true, true}}));
    row("gated gelu", function("Gelu*x", 2, {1, false, {true, true}}));
    row("square of difference", function("SquaredDifference", 2, {1, false, {true, true}}));
    row("mixed", function("Highway", 3, {1, false, {true, true, false}}));
    row("mask", function("Dropout", 2, {1, false, {}, {}, true}));
    row("convolution 1-D", convolution({9}, 1, 3, 2, false));
    row("convolution 2-D", convolution({6, 5}, 2, 3, 1, false));
    row("convolution 2-D, strided", convolution({8, 6}, 1, 3, 2, false));
    row("convolution 2-D, even", convolution({5, 5}, 1, 2, 1, false));
    row("convolution 3-D", convolution({4, 3, 5}, 2, 3, 1, false));
    row("convolution 3-D, strided", convolution({4, 6, 4}, 1, 3, 2, false));
    row("transposed 2-D", convolution({3, 4}, 2, 2, 2, true));
    row("transposed 3-D", convolution({2, 3, 2}, 1, 2, 2, true));
    for (const bool largest : {false, true}) {
      Network n(6, 2 * 5 * 7);
      const TensorId image = n.b.reshape("image", n.x, {6, 2, 5, 7});
      row(largest ? "largest of windows that overlap" : "mean of windows that overlap",
          n.done(n.b.pooling("pool", largest ? "MaxPool" : "AveragePool", image, {6, 2, 3, 4}, {3, 3}, largest)));
    }
    for (const char* how : {"ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceMax"}) {
      Network n(2, 3000, 2);
      const bool linear = how[6] == 'S' ? how[9] == 0 : how[7] == 'e';
      row(how, n.done(n.b.reduction("r", how, n.x, {1}, false, linear)));
    }
    {
      Network n(2, 3000, 2);
      row("normalisation of long rows",
          n.done(n.b.normalisation("n", n.x, 1, n.b.parameter("g", {3000}), n.b.parameter("c", {3000}))));
    }
    for (const char* how : {"Softmax", "LogSoftmax"}) {
      Network n(3, 600);
      row(how, n.done(n.b.softmax("s", n.x, 1, how)));
    }
    {
      // Ties: what relu has cut to zero is equally large.
      ModelBuilder b("ties", "test", 2, 8);
      TensorId x = b.input("x", {2, 8, 4}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
      x = b.linear("stem", x, b.parameter("w", {4, 6}));
      const std::array routing{b.linear("routing", x, b.parameter("wr", {6, 3}))};
      const TensorId cut = b.elementwise("cut", "Relu", routing, {1, true, {}});
      row("routing with ties", test::finished(b, b.combine("back", b.dispatch("to", x, cut, 4), 8)));
    }
  }
  void models() {
    QFETCH(ModelPtr, model);
    QVERIFY(model);
    const std::string wrong = fault(*model);
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  void products_over_any_loops() {
    std::mt19937 random(3);
    for (int trial = 0; trial < 200; ++trial) {
      // Loops: each is of a and b, a and y, b and y, or all three; now and then of one alone.
      const std::size_t count = 1 + random() % 6;
      Strides sizes;
      std::vector<std::size_t> a, b, y;
      for (std::size_t l = 0; l < count; ++l) {
        sizes.push_back(std::int64_t(1 + random() % 4));
        const auto kind = random() % 40;
        if (kind % 4 != 1 || kind == 1) a.push_back(l);
        if (kind % 4 != 2 && kind != 1) b.push_back(l);
        if (kind % 4 != 3 && kind != 1) y.push_back(l);
      }
      for (auto* order : {&a, &b, &y}) std::shuffle(order->begin(), order->end(), random);
      const Strides a_strides = strides_of(a, sizes), b_strides = strides_of(b, sizes),
                    y_strides = strides_of(y, sizes);
      std::vector<float> x(elements_of(a, sizes)), w(elements_of(b, sizes)), result(elements_of(y, sizes), 99);
      std::uniform_real_distribution<float> draw(-1, 1);
      for (auto* data : {&x, &w})
        for (float& v : *data) v = draw(random);
      std::vector<double> expected(result.size(), 0);
      each(sizes, [&](const Strides& index) {
        expected[offset(index, y_strides)] += double(x[offset(index, a_strides)]) * double(w[offset(index, b_strides)]);
      });
      const step::Array left = on_device(x), right = on_device(w);
      step::Array product = on_device(result);
      cuda::contract(sizes, left.data(), a_strides, right.data(), b_strides, product.data(), y_strides, result.size());
      const auto found = step::numbers_of(product);
      const auto settled = step::settle();
      QVERIFY2(settled.has_value(), settled ? "" : settled.error().message().c_str());
      for (std::size_t i = 0; i < found.size(); ++i)
        QVERIFY2(std::abs(found[i] - expected[i]) < 1e-4, qPrintable(QString("trial %1").arg(trial)));
    }
  }

  void moves_over_any_loops() {
    std::mt19937 random(4);
    for (int trial = 0; trial < 200; ++trial) {
      const std::size_t count = 1 + random() % 5;
      Strides sizes;
      std::vector<std::size_t> from, to;
      for (std::size_t l = 0; l < count; ++l) {
        sizes.push_back(std::int64_t(1 + random() % 6));
        if (random() % 4 != 0) from.push_back(l);
        to.push_back(l);
      }
      for (auto* order : {&from, &to}) std::shuffle(order->begin(), order->end(), random);
      const Strides read = strides_of(from, sizes), write = strides_of(to, sizes);
      std::vector<float> x(elements_of(from, sizes)), y(elements_of(to, sizes));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i + 1);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(1000 * i);
      const bool add = random() % 2 != 0;
      step::Array source = on_device(x), target = on_device(y);
      cuda::move_strided(sizes, source.data(), read, target.data(), write, add);
      const auto found = step::numbers_of(target);
      each(sizes, [&](const Strides& index) {
        float& at = y[offset(index, write)];
        at = (add ? at : 0) + x[offset(index, read)];
      });
      for (std::size_t i = 0; i < y.size(); ++i) QCOMPARE(float(found[i]), y[i]);
    }
    QVERIFY(step::settle().has_value());
  }
};

QTEST_APPLESS_MAIN(CudaKernelsTest)
#include "cuda_kernels_test.moc"
