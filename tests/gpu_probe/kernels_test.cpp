// SPDX-License-Identifier: Apache-2.0
// The CPU kernels against sums written out in double, and every backward against the slope of its forward.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/kernels.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

using Floats = std::vector<float>;

Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats numbers(static_cast<std::size_t>(count));
  for (auto& x : numbers) x = uniform(engine);
  return numbers;
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// |d/dt f(x + t v) . g  -  dx . v| relative, by central differences: dx must be the gradient of f . g.
double slope_error(const std::function<Floats(const Floats&)>& f, const Floats& x, const Floats& g, const Floats& dx,
                   float step = 1e-2f) {
  const Floats v = random_floats(static_cast<std::int64_t>(x.size()), 99);
  Floats above = x, below = x;
  for (std::size_t i = 0; i < x.size(); ++i) above[i] += step * v[i], below[i] -= step * v[i];
  const double slope = (dot(f(above), g) - dot(f(below), g)) / (2.0 * static_cast<double>(step)), claimed = dot(dx, v);
  return std::abs(slope - claimed) / std::max(1e-3, std::abs(claimed));
}

}  // namespace

class KernelsTest : public QObject {
  Q_OBJECT

 private slots:
  void products_data() {
    QTest::addColumn<int>("m");
    QTest::addColumn<int>("n");
    QTest::addColumn<int>("k");
    for (const auto& [m, n, k] :
         {std::tuple{1, 1, 1}, {6, 32, 8}, {7, 33, 9}, {100, 65, 300}, {97, 1030, 257}, {5, 31, 600}})
      QTest::addRow("%d x %d x %d", m, n, k) << m << n << k;
  }
  void products() {
    QFETCH(int, m);
    QFETCH(int, n);
    QFETCH(int, k);
    for (const GemmFunction function : {static_cast<GemmFunction>(gemm), blas().function})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const float beta : {0.0f, 1.0f}) {
            const Floats a = random_floats(m * k, 1), b = random_floats(k * n, 2);
            Floats c = random_floats(m * n, 3);
            // Overwriting must not look at what was there.
            if (beta == 0) std::fill(c.begin(), c.end(), std::nanf(""));
            const Floats before = c;
            function({m, n, k, ta, tb}, a.data(), b.data(), beta, c.data());
            double worst = 0;
            for (int i = 0; i < m; ++i)
              for (int j = 0; j < n; ++j) {
                double sum = beta == 0 ? 0 : static_cast<double>(before[static_cast<std::size_t>(i * n + j)]);
                for (int l = 0; l < k; ++l)
                  sum += static_cast<double>(a[static_cast<std::size_t>(ta ? l * m + i : i * k + l)]) *
                         static_cast<double>(b[static_cast<std::size_t>(tb ? j * k + l : l * n + j)]);
                const double wrong = std::abs(sum - static_cast<double>(c[static_cast<std::size_t>(i * n + j)]));
                worst = std::isnan(wrong) ? 1e9 : std::max(worst, wrong);
              }
            QVERIFY2(worst < 1e-5 * k, QByteArray::number(worst));
          }
  }

  void convolutions_data() {
    QTest::addColumn<QList<qint64>>("sizes");
    QTest::newRow("plain") << QList<qint64>{2, 3, 8, 9, 4, 3, 3, 8, 9, 1, 1, 1, 1, 1, 1, 1};
    QTest::newRow("strided") << QList<qint64>{1, 4, 9, 7, 6, 3, 3, 5, 4, 2, 2, 1, 1, 1, 1, 1};
    QTest::newRow("grouped, dilated") << QList<qint64>{2, 4, 9, 9, 6, 3, 3, 5, 5, 1, 1, 0, 0, 2, 2, 2};
    QTest::newRow("one by seven") << QList<qint64>{1, 2, 4, 12, 3, 1, 7, 4, 12, 1, 1, 0, 3, 1, 1, 1};
  }
  void convolutions() {
    QFETCH(QList<qint64>, sizes);
    ProbeCall call;
    call.kind = CallKind::convolution;
    std::copy(sizes.begin(), sizes.end(), call.size.begin());
    const ConvolutionSizes z(call);
    const std::int64_t cg = z.c / z.groups, kg = z.k / z.groups;
    const Floats x = random_floats(z.n * z.c * z.h * z.w, 1), w = random_floats(z.k * cg * z.r * z.s, 2),
                 g = random_floats(z.n * z.k * z.p * z.q, 3);
    Floats columns(static_cast<std::size_t>(cg * z.r * z.s * z.p * z.q)), y(g.size()), dx(x.size()), dw(w.size());
    convolution_forward(z, gemm, x.data(), w.data(), y.data(), columns.data());
    double worst = 0;
    for (std::int64_t n = 0; n < z.n; ++n)
      for (std::int64_t k = 0; k < z.k; ++k)
        for (std::int64_t p = 0; p < z.p; ++p)
          for (std::int64_t q = 0; q < z.q; ++q) {
            double sum = 0;
            for (std::int64_t c = 0; c < cg; ++c)
              for (std::int64_t r = 0; r < z.r; ++r)
                for (std::int64_t s = 0; s < z.s; ++s) {
                  const std::int64_t i = p * z.stride_h - z.pad_h + r * z.dilation_h,
                                     j = q * z.stride_w - z.pad_w + s * z.dilation_w;
                  if (i < 0 || j < 0 || i >= z.h || j >= z.w) continue;
                  sum += static_cast<double>(
                             x[static_cast<std::size_t>(((n * z.c + k / kg * cg + c) * z.h + i) * z.w + j)]) *
                         static_cast<double>(w[static_cast<std::size_t>(((k * cg + c) * z.r + r) * z.s + s)]);
                }
            worst = std::max(
                worst,
                std::abs(sum - static_cast<double>(y[static_cast<std::size_t>(((n * z.k + k) * z.p + p) * z.q + q)])));
          }
    QVERIFY2(worst < 1e-4, QByteArray::number(worst));
    // Both are linear: <y(x, w), g> = <x, dx> = <w, dw>.
    convolution_data(z, gemm, w.data(), g.data(), dx.data(), columns.data());
    convolution_filter(z, gemm, x.data(), g.data(), dw.data(), columns.data());
    const double wanted = dot(y, g);
    QVERIFY(std::abs(dot(x, dx) - wanted) < 1e-4 * std::max(1.0, std::abs(wanted)));
    QVERIFY(std::abs(dot(w, dw) - wanted) < 1e-4 * std::max(1.0, std::abs(wanted)));
  }

  void rows_and_their_gradients() {
    constexpr std::int64_t kRows = 5, kColumns = 37, kAll = kRows * kColumns;
    const Floats x = random_floats(kAll, 1), g = random_floats(kAll, 2);
    Floats y(kAll), dx(kAll);
    softmax(kRows, kColumns, x.data(), y.data());
    for (std::int64_t r = 0; r < kRows; ++r) {
      double sum = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        sum += static_cast<double>(y[static_cast<std::size_t>(r * kColumns + i)]);
        const double ratio = std::exp(static_cast<double>(x[static_cast<std::size_t>(r * kColumns + i)] -
                                                          x[static_cast<std::size_t>(r * kColumns)]));
        QVERIFY(std::abs(static_cast<double>(y[static_cast<std::size_t>(r * kColumns + i)]) /
                             static_cast<double>(y[static_cast<std::size_t>(r * kColumns)]) -
                         ratio) < 1e-4 * ratio);
      }
      QVERIFY(std::abs(sum - 1) < 1e-5);
    }
    softmax_backward(kRows, kColumns, y.data(), g.data(), dx.data());
    const auto soft = [&](const Floats& at) {
      Floats out(at.size());
      softmax(kRows, kColumns, at.data(), out.data());
      return out;
    };
    QVERIFY(slope_error(soft, x, g, dx) < 1e-2);

    layer_norm(kRows, kColumns, x.data(), y.data());
    for (std::int64_t r = 0; r < kRows; ++r) {
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const auto v = static_cast<double>(y[static_cast<std::size_t>(r * kColumns + i)]);
        sum += v, squares += v * v;
      }
      QVERIFY(std::abs(sum) < 1e-3);
      QVERIFY(std::abs(squares / kColumns - 1) < 1e-2);
    }
    layer_norm_backward(kRows, kColumns, x.data(), g.data(), dx.data());
    const auto norm = [&](const Floats& at) {
      Floats out(at.size());
      layer_norm(kRows, kColumns, at.data(), out.data());
      return out;
    };
    QVERIFY(slope_error(norm, x, g, dx) < 1e-2);

    const std::vector<std::int64_t> labels{0, 36, 7, 20, 3};
    Floats loss(kRows), ones(kRows, 1);
    const auto entropy = [&](const Floats& at) {
      Floats out(kRows);
      cross_entropy(kRows, kColumns, at.data(), labels.data(), out.data());
      return out;
    };
    softmax(kRows, kColumns, x.data(), y.data());
    loss = entropy(x);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto wanted = -std::log(static_cast<double>(y[r * kColumns + static_cast<std::size_t>(labels[r])]));
      QVERIFY(std::abs(static_cast<double>(loss[r]) - wanted) < 1e-4);
    }
    cross_entropy_backward(kRows, kColumns, x.data(), labels.data(), dx.data());
    QVERIFY(slope_error(entropy, x, ones, dx) < 1e-2);

    Floats rows(kRows), columns(kColumns);
    row_sum(kRows, kColumns, x.data(), rows.data());
    column_sum(kRows, kColumns, x.data(), columns.data());
    double all = 0, by_rows = 0, by_columns = 0;
    for (const float v : x) all += static_cast<double>(v);
    for (const float v : rows) by_rows += static_cast<double>(v);
    for (const float v : columns) by_columns += static_cast<double>(v);
    QVERIFY(std::abs(all - by_rows) < 1e-4 && std::abs(all - by_columns) < 1e-4);
    QVERIFY(std::abs(rows[0] - std::accumulate(x.begin(), x.begin() + kColumns, 0.0f)) < 1e-4f);
  }

  void channels_and_their_gradients() {
    constexpr std::int64_t n = 3, c = 4, plane = 10;
    const Floats x = random_floats(n * c * plane, 4), g = random_floats(n * c * plane, 5);
    const auto norm = [&](const Floats& at) {
      Floats out(at.size());
      batch_norm(n, c, plane, at.data(), out.data());
      return out;
    };
    const Floats y = norm(x);
    for (std::int64_t channel = 0; channel < c; ++channel) {
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < plane; ++j) {
          const auto v = static_cast<double>(y[static_cast<std::size_t>((i * c + channel) * plane + j)]);
          sum += v, squares += v * v;
        }
      QVERIFY(std::abs(sum) < 1e-3 && std::abs(squares / (n * plane) - 1) < 1e-2);
    }
    Floats dx(x.size());
    batch_norm_backward(n, c, plane, x.data(), g.data(), dx.data());
    QVERIFY(slope_error(norm, x, g, dx) < 1e-2);
  }

  void windows_and_lookups() {
    ProbeCall call;
    call.kind = CallKind::pooling;
    call.size = {2, 5, 5, 3, 3, 3, 3, 2, 2, 1, 1};
    Floats x = random_floats(50, 6), y(18), dx(50);
    pool_largest(windows_of(call), x.data(), y.data());
    QCOMPARE(y[0], std::max({x[0], x[1], x[5], x[6]}));
    QCOMPARE(y[4], std::max({x[6], x[7], x[8], x[11], x[12], x[13], x[16], x[17], x[18]}));
    const Floats g = random_floats(18, 7);
    pool_largest_backward(windows_of(call), x.data(), g.data(), dx.data());
    QVERIFY(std::abs(dot(dx, Floats(50, 1)) - dot(g, Floats(18, 1))) < 1e-5);
    const auto pool = [&](const Floats& at) {
      Floats out(18);
      pool_largest(windows_of(call), at.data(), out.data());
      return out;
    };
    QVERIFY(slope_error(pool, x, g, dx, 1e-4f) < 5e-2);

    const Floats table = random_floats(40, 8);
    const std::vector<std::int64_t> index{3, 0, 3, 9};
    Floats rows(16), back(40, 0);
    embedding(4, 4, table.data(), index.data(), rows.data());
    for (std::size_t i = 0; i < 16; ++i) QCOMPARE(rows[i], table[static_cast<std::size_t>(index[i / 4]) * 4 + i % 4]);
    embedding_backward(4, 4, index.data(), rows.data(), back.data());
    for (std::size_t i = 0; i < 4; ++i) QCOMPARE(back[12 + i], 2 * table[12 + i]);
    QCOMPARE(back[4], 0.0f);
  }

  void an_adam_step() {
    Floats g{0.5f, -2.0f}, w{1.0f, 1.0f}, m{0, 0}, v{0, 0};
    adam(2, {}, g.data(), w.data(), m.data(), v.data());
    // The first step moves every weight by the rate, against the gradient's sign.
    QVERIFY(std::abs(w[0] - 0.999f) < 1e-6f && std::abs(w[1] - 1.001f) < 1e-6f);
    QVERIFY(std::abs(m[0] - 0.05f) < 1e-6f && std::abs(v[1] - 0.004f) < 1e-6f);
  }

  void elementwise_adds_all() {
    const Floats a = random_floats(3000, 1), b = random_floats(3000, 2);
    Floats y(3000), z(3000);
    const float* in[] = {a.data(), b.data()};
    float* out[] = {y.data(), z.data()};
    elementwise(3000, in, 2, out, 2);
    for (std::size_t i = 0; i < 3000; ++i) QCOMPARE(y[i], 1.0f + a[i] + b[i]);
    QCOMPARE(y, z);
  }
};

QTEST_APPLESS_MAIN(KernelsTest)
#include "kernels_test.moc"
