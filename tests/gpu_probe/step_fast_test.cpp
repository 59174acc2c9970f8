// SPDX-License-Identifier: Apache-2.0
// The fast kernels of the float step one by one: products over random loops and layouts against plain sums, and no kind
// of operator falls back to plain loops unnoticed.
#include <QtTest>
#include <random>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;
using namespace turnpoint::step;

namespace {

using Strides = std::vector<std::int64_t>;

/// Strides of a tensor whose dimensions are these loops in this order, the last one innermost; others 0.
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
std::int64_t offset(const Strides& index, const Strides& strides) {
  std::int64_t at = 0;
  for (std::size_t l = 0; l < index.size(); ++l) at += index[l] * strides[l];
  return at;
}

}  // namespace

class StepFastTest : public QObject {
  Q_OBJECT

 private slots:
  void products_over_any_loops() {
    const ComputeIn here(in_float());
    std::mt19937 random(3);
    int refused = 0;
    for (int trial = 0; trial < 400; ++trial) {
      // Loops: each is of a and b, a and y, b and y, or all three; now and then of one alone.
      const std::size_t count = 1 + random() % 6;
      Strides sizes;
      std::vector<std::size_t> a, b, y;
      bool alone = false;
      for (std::size_t l = 0; l < count; ++l) {
        sizes.push_back(std::int64_t(1 + random() % 5));
        const auto kind = random() % 40;
        if (kind % 4 != 1 || kind == 1) a.push_back(l);
        if (kind % 4 != 2 && kind != 1) b.push_back(l);
        if (kind % 4 != 3 && kind != 1) y.push_back(l);
        alone = alone || (kind == 1 && sizes.back() > 1);
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
        expected[std::size_t(offset(index, y_strides))] +=
            double(x[std::size_t(offset(index, a_strides))]) * double(w[std::size_t(offset(index, b_strides))]);
      });
      const bool done = fast::contract(sizes, {a_strides, x.data()}, {b_strides, w.data()}, y_strides, result.data());
      QCOMPARE(done, !alone);
      refused += !done;
      for (std::size_t i = 0; done && i < result.size(); ++i)
        QVERIFY2(std::abs(double(result[i]) - expected[i]) < 1e-4, qPrintable(QString("trial %1").arg(trial)));
    }
    QVERIFY(refused > 5 && refused < 200);
  }

  void copies_and_sums_over_any_loops() {
    std::mt19937 random(4);
    for (int trial = 0; trial < 300; ++trial) {
      const std::size_t count = 1 + random() % 5;
      Strides sizes;
      std::vector<std::size_t> from, to, part;
      for (std::size_t l = 0; l < count; ++l) {
        sizes.push_back(std::int64_t(1 + random() % (count > 3 ? 7 : 20)));
        from.push_back(l), to.push_back(l);
        if (random() % 2) part.push_back(l);
      }
      for (auto* order : {&from, &to, &part}) std::shuffle(order->begin(), order->end(), random);
      const Strides x_strides = strides_of(from, sizes), y_strides = strides_of(to, sizes),
                    sum_strides = strides_of(part, sizes);
      std::vector<float> x(elements_of(from, sizes)), y(x.size(), 99), sum(elements_of(part, sizes), 1);
      for (float& v : x) v = float(random() % 100);
      std::vector<double> expected(sum.size(), 1);
      fast::copy_strided(sizes, {x_strides, x.data()}, y_strides, y.data());
      fast::add_strided(sizes, {x_strides, x.data()}, sum_strides, sum.data());
      each(sizes, [&](const Strides& index) {
        const float v = x[std::size_t(offset(index, x_strides))];
        QCOMPARE(y[std::size_t(offset(index, y_strides))], v);
        expected[std::size_t(offset(index, sum_strides))] += double(v);
      });
      for (std::size_t i = 0; i < sum.size(); ++i) QVERIFY(std::abs(double(sum[i]) / expected[i] - 1) < 1e-5);
    }
  }

  // Forward of every operator of every small model, on data of any kind.
  void no_kind_is_left_out() {
    const ComputeIn here(in_float());
    Ledger ledger;
    int fast_ones = 0;
    for (const auto& small : test::step_models()) {
      const ModelPtr model = small.make();
      for (std::size_t i = 0; i < model->operators.size(); ++i) {
        const Operator& op = model->operators[OperatorId(i)];
        if (op.kind == OperatorKind::input) continue;
        const auto kernel = arithmetic().kernel_of(*model, OperatorId(i));
        QVERIFY(kernel.has_value());
        LocalOperator at;
        at.model = model.get();
        at.id = OperatorId(i);
        for (const auto& dim : op.dims) at.loops.push_back({0, dim.size, dim.size, 1});
        std::vector<Value> keep;
        std::vector<const Block*> in;
        std::vector<Block*> out;
        const auto make = [&](TensorId id) {
          const Shape& shape = model->tensors[id].shape;
          keep.push_back(make_block(ledger, {Shape(shape.size(), 0), shape}, 4));
          for (std::size_t j = 0; j < keep.back()->data.size(); ++j) keep.back()->as<float>()[j] = float(j % 7) * 0.25f;
          return keep.back().get();
        };
        for (const auto& access : op.inputs) in.push_back(make(access.tensor));
        for (const auto& access : op.outputs) out.push_back(make(access.tensor));
        const bool known = kernel->fast_forward && kernel->fast_forward(at, in, out);
        fast_ones += known;
        const bool needs_none = op.kind == OperatorKind::concat || op.kind == OperatorKind::gather ||
                                op.kind == OperatorKind::opaque || op.kind == OperatorKind::attention || op.detail == "ReduceMax" ||
                                !is_floating(model->tensors[op.outputs[0].tensor].type);
        QVERIFY2(known || needs_none, (std::string(small.name) + ": " + op.name + " " + op.detail).c_str());
      }
    }
    QVERIFY(fast_ones > 100);
  }
};

QTEST_APPLESS_MAIN(StepFastTest)
#include "step_fast_test.moc"
