// SPDX-License-Identifier: Apache-2.0
// The layers that policies are made of: products and functions against plain ones, every derivative against
// differences, on seeded random sizes.
#include <QtTest>

#include <cmath>

#include "core/search/trinity/networks/layers.h"
#include "core/search/trinity/networks/product.h"
#include "search/trinity/gradient_check.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::trinity::networks;
using placement::Random;

namespace {

constexpr double kClose = 1e-6;
constexpr int kSeeds = 12;

std::size_t size_below(Random& random, std::size_t n) { return 1 + random.below(n); }

/// C = A B by definition.
template <class Real>
double product_error(Random& random, const Product& p) {
  std::vector<Real> a(p.m * p.k), b(p.k * p.n), c(p.m * p.n);
  for (auto* matrix : {&a, &b, &c})
    for (Real& one : *matrix) one = Real(2 * random.unit() - 1);
  const std::vector<Real> before = c;
  multiply(p, a.data(), b.data(), c.data());
  double worst = 0;
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t j = 0; j < p.n; ++j) {
      double sum = p.add ? double(before[i * p.n + j]) : 0;
      for (std::size_t k = 0; k < p.k; ++k)
        sum += double(p.transpose_a ? a[k * p.m + i] : a[i * p.k + k]) *
               double(p.transpose_b ? b[j * p.k + k] : b[k * p.n + j]);
      worst = std::max(worst, std::abs(sum - double(c[i * p.n + j])));
    }
  return worst;
}

template <class Real>
double largest_error(void (*ours)(Real*, std::size_t), double (*exact)(double), double from, double to) {
  std::vector<Real> x;
  for (int i = 0; i <= 4001; ++i) x.push_back(Real(from + (to - from) * i / 4001));
  std::vector<Real> y = x;
  ours(y.data(), y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = exact(double(x[i]));
    worst = std::max(worst, std::abs(double(y[i]) - wanted) / std::max(1.0, std::abs(wanted)));
  }
  return worst;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

class NetworksTest : public QObject {
  Q_OBJECT

 private slots:
  void products_are_those_of_the_definition() {
    Random random(1);
    for (int i = 0; i < 200; ++i) {
      const Product p{size_below(random, 40), size_below(random, 70), size_below(random, 50),
                      random.below(2) == 1,   random.below(2) == 1,   random.below(2) == 1};
      QVERIFY(product_error<float>(random, p) < 2e-5);
      QVERIFY(product_error<double>(random, p) < 1e-12);
    }
  }

  void functions_are_close_to_the_exact_ones() {
    QVERIFY(largest_error<float>(exponentials, std::exp, -80, 10) < 3e-7);
    QVERIFY(largest_error<float>(hyperbolic_tangents, std::tanh, -30, 30) < 3e-7);
    QVERIFY(largest_error<float>(hyperbolic_tangents, std::tanh, -0.5, 0.5) < 3e-7);
    QVERIFY(largest_error<float>(sigmoids, sigmoid, -60, 60) < 3e-7);
    QVERIFY(largest_error<double>(sigmoids, sigmoid, -60, 60) < 1e-15);
    // Far outside they stay numbers.
    std::vector<float> far = {-1e9f, 1e9f, -200, 200};
    hyperbolic_tangents(far.data(), far.size());
    QCOMPARE(far, (std::vector<float>{-1, 1, -1, 1}));
  }

  void dense_layers() {
    for (int seed = 0; seed < kSeeds; ++seed) {
      Random random(std::uint64_t(seed) + 100);
      Places places;
      const std::size_t rows = size_below(random, 5), in = size_below(random, 6), out = size_below(random, 7);
      const Dense dense = Dense::make(places, in, out);
      std::vector<double> weights = random_numbers(random, places.size()), x = random_numbers(random, rows * in);
      const std::vector<double> factor = random_numbers(random, rows * out);
      const auto loss = [&] {
        std::vector<double> y(rows * out);
        dense.forward(weights.data(), x.data(), rows, y.data());
        relu(y);
        return weighed(factor, y.data());
      };
      std::vector<double> y(rows * out), dy = factor, dx(rows * in), gradient(places.size());
      dense.forward(weights.data(), x.data(), rows, y.data());
      relu(y);
      relu_backward(y, dy);
      dense.backward(weights.data(), x.data(), dy.data(), rows, gradient.data(), dx.data());
      QVERIFY(gradient_error(weights, gradient, loss) < kClose);
      QVERIFY(gradient_error(x, dx, loss) < kClose);
    }
  }

  void long_short_term_memory() {
    for (int seed = 0; seed < kSeeds; ++seed) {
      Random random(std::uint64_t(seed) + 200);
      Places places;
      const std::size_t steps = size_below(random, 5), rows = size_below(random, 3), in = size_below(random, 4),
                        hidden = size_below(random, 5);
      const Lstm lstm = Lstm::make(places, in, hidden);
      std::vector<double> weights = random_numbers(random, places.size()),
                          x = random_numbers(random, steps * rows * in);
      Lstm::State<double> initial{random_numbers(random, rows * hidden), random_numbers(random, rows * hidden)};
      const std::vector<double> factor = random_numbers(random, steps * rows * hidden),
                                last_h = random_numbers(random, rows * hidden),
                                last_c = random_numbers(random, rows * hidden);
      const auto loss = [&] {
        Lstm::Trace<double> trace;
        lstm.forward(weights.data(), x.data(), steps, rows, initial, trace);
        const auto last = trace.last();
        return weighed(factor, trace.outputs()) + weighed(last_h, last.h.data()) + weighed(last_c, last.c.data());
      };
      Lstm::Trace<double> trace;
      lstm.forward(weights.data(), x.data(), steps, rows, initial, trace);
      Lstm::State<double> d_state{last_h, last_c};
      std::vector<double> gradient(places.size()), dx(x.size());
      lstm.backward(weights.data(), x.data(), trace, factor.data(), d_state, gradient.data(), dx.data());
      QVERIFY(gradient_error(weights, gradient, loss) < kClose);
      QVERIFY(gradient_error(x, dx, loss) < kClose);
      QVERIFY(gradient_error(initial.h, d_state.h, loss) < kClose);
      QVERIFY(gradient_error(initial.c, d_state.c, loss) < kClose);
    }
  }

  /// One step of one number, by hand.
  void a_step_of_long_short_term_memory() {
    Places places;
    const Lstm lstm = Lstm::make(places, 1, 1);
    // Gates: input, forget, output, candidate; the forget gate's bias is one more than its weight says.
    const std::vector<double> weights = {0.5, -0.3, 0.8, 1.1, 0.2, 0.4, -0.6, 0.7, 0.1, 0.2, 0.3, 0.4};
    const double x = 2;
    Lstm::Trace<double> trace;
    lstm.forward(weights.data(), &x, 1, 1, {{0.5}, {-0.25}}, trace);
    const double in = sigmoid(1.0 + 0.1 + 0.1), forget = sigmoid(-0.6 + 0.2 + 0.2 + 1), out = sigmoid(1.6 - 0.3 + 0.3),
                 candidate = std::tanh(2.2 + 0.35 + 0.4);
    const double c = forget * -0.25 + in * candidate;
    QVERIFY(std::abs(trace.last().c[0] - c) < 1e-12);
    QVERIFY(std::abs(trace.last().h[0] - out * std::tanh(c)) < 1e-12);
  }

  void attention() {
    for (int seed = 0; seed < kSeeds; ++seed) {
      Random random(std::uint64_t(seed) + 300);
      Places places;
      const std::size_t hidden = size_below(random, 4), rows = size_below(random, 3), of_keys = size_below(random, 4),
                        of_queries = size_below(random, 4);
      const Attention attention = Attention::make(places, hidden);
      std::vector<double> weights = random_numbers(random, places.size(), 2),
                          keys = random_numbers(random, of_keys * rows * hidden),
                          queries = random_numbers(random, of_queries * rows * hidden);
      const std::vector<double> factor = random_numbers(random, of_queries * rows * hidden);
      const auto loss = [&] {
        Attention::Trace<double> trace;
        attention.forward(weights.data(), attention.look_at(weights.data(), keys.data(), of_keys, rows), queries.data(),
                          of_queries, trace);
        return weighed(factor, trace.context.data());
      };
      Attention::Trace<double> trace;
      const auto looked = attention.look_at(weights.data(), keys.data(), of_keys, rows);
      attention.forward(weights.data(), looked, queries.data(), of_queries, trace);
      for (std::size_t row = 0; row < of_queries * rows; ++row) {
        double sum = 0;
        for (std::size_t s = 0; s < of_keys; ++s) sum += trace.share[row * of_keys + s];
        QVERIFY(std::abs(sum - 1) < 1e-12);
      }
      std::vector<double> gradient(places.size()), d_keys(keys.size()), d_queries(queries.size());
      attention.backward(weights.data(), looked, queries.data(), of_queries, trace, factor.data(), gradient.data(),
                         d_keys.data(), d_queries.data());
      QVERIFY(gradient_error(weights, gradient, loss) < kClose);
      QVERIFY(gradient_error(keys, d_keys, loss) < kClose);
      QVERIFY(gradient_error(queries, d_queries, loss) < kClose);
    }
  }

  /// Worked cases of the clipped softmax (Trinity, eq. 9).
  void clipped_softmax() {
    const auto shares = [](std::vector<double> scores) {
      clip_scores(Clipping{5, 10}, scores);
      std::vector<double> made(scores.size());
      log_softmax(scores.data(), 1, scores.size(), made.data());
      for (double& one : made) one = std::exp(one);
      return made;
    };
    const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
      for (std::size_t i = 0; i < b.size(); ++i)
        if (std::abs(a[i] - b[i]) > 5e-7) return false;
      return a.size() == b.size();
    };
    QVERIFY(near(shares({10, 0}), {0.978289, 0.021711}));
    QVERIFY(near(shares({2, -1, 0, 4}), {0.244460, 0.055359, 0.091120, 0.609062}));

    Random random(7);
    std::vector<double> scores = random_numbers(random, 12, 4);
    const std::vector<double> factor = random_numbers(random, 12);
    const Clipping clipping{3, 1.5};
    std::vector<double> clipped = scores, d = factor;
    clip_scores(clipping, clipped);
    clip_scores_backward(clipping, clipped, d);
    QVERIFY(gradient_error(scores, d, [&] {
              std::vector<double> z = scores;
              clip_scores(clipping, z);
              return weighed(factor, z.data());
            }) < kClose);
  }

  void dropout_keeps_the_mean() {
    Random random(5);
    std::vector<float> mask(20000);
    draw_dropout(0.3, random, mask);
    double sum = 0;
    std::size_t dropped = 0;
    for (const float one : mask) {
      sum += double(one);
      dropped += one == 0;
      QVERIFY(one == 0 || std::abs(double(one) - 1 / 0.7) < 1e-6);
    }
    QVERIFY(std::abs(double(dropped) / 20000 - 0.3) < 0.02);
    QVERIFY(std::abs(sum / 20000 - 1) < 0.02);
  }

  void clipping_a_gradient() {
    std::vector<float> gradient = {3, 4};
    QCOMPARE(norm(gradient), 5.0);
    clip_norm(gradient, 10);
    QCOMPARE(gradient, (std::vector<float>{3, 4}));
    clip_norm(gradient, 1);
    QVERIFY(std::abs(norm(gradient) - 1) < 1e-6 && std::abs(double(gradient[0]) - 0.6) < 1e-6);
  }

  void adam() {
    // The first step is the rate whatever the gradient; the second by hand.
    std::vector<float> values = {1, 1};
    Adam adam(2);
    adam.step({0.5f, -100.0f}, 0.1, values);
    QVERIFY(std::abs(double(values[0]) - 0.9) < 1e-5 && std::abs(double(values[1]) - 1.1) < 1e-5);
    adam.step({-0.5f, -100.0f}, 0.1, values);
    const double m = (0.9 * 0.05 - 0.05) / (1 - 0.81);
    const double v = (0.999 * 0.00025 + 0.00025) / (1 - 0.999 * 0.999);
    QVERIFY(std::abs(double(values[0]) - (0.9 - 0.1 * m / std::sqrt(v))) < 1e-5);
    const std::vector<float> before = values;
    adam.step({NAN, 1}, 0.1, values);
    QCOMPARE(values, before);
    // A bowl has its bottom found.
    std::vector<float> bowl = {5, -3};
    Adam down(2);
    for (int i = 0; i < 2000; ++i) down.step({2 * (bowl[0] - 1), 8 * (bowl[1] - 2)}, 0.02, bowl);
    QVERIFY(std::abs(double(bowl[0]) - 1) < 1e-3 && std::abs(double(bowl[1]) - 2) < 1e-3);
  }
};

QTEST_APPLESS_MAIN(NetworksTest)
#include "networks_test.moc"
