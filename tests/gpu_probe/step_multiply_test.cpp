// SPDX-License-Identifier: Apache-2.0
// Products by a library or by blocks, of which the proof is made, against the same sums number by number.
#include "gpu_probe/step/kernels/multiply.h"

#include <QtTest>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <random>

#include "gpu_probe/cpu/double_products.h"

using namespace turnpoint::step;
using turnpoint::probe::double_products;
using turnpoint::probe::DoubleProducts;
using turnpoint::probe::StridedProduct;

namespace {

/// Dense strides in this order of the loops, the last one side by side; 0 for loops that are not walked.
std::vector<std::int64_t> dense(const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> strides(sizes.size(), 0);
  std::int64_t step = 1;
  for (auto loop = order.rbegin(); loop != order.rend(); ++loop) {
    strides[*loop] = step;
    step *= sizes[*loop];
  }
  return strides;
}

std::size_t elements(const Multiplied& loops, std::size_t which) {
  std::int64_t last = 0;
  for (std::size_t l = 0; l < loops.sizes.size(); ++l) last += loops.strides[which][l] * (loops.sizes[l] - 1);
  return static_cast<std::size_t>(last + 1);
}

std::vector<double> numbers(std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

/// As cblas_dgemm, number by number.
void plain_dgemm(int, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a, const double* b,
                 int lead_b, double beta, double* c, int lead_c) {
  constexpr int kTransposed = 112;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[ta == kTransposed ? l * lead_a + i : i * lead_a + l] *
               b[tb == kTransposed ? j * lead_b + l : l * lead_b + j];
      c[i * lead_c + j] = alpha * sum + beta * c[i * lead_c + j];
    }
}

/// Kinds of mistakes that libraries have made.
void forgets_the_edge(int o, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a,
                      const double* b, int lead_b, double beta, double* c, int lead_c) {
  plain_dgemm(o, ta, tb, m, n < 300 ? n : n / 8 * 8 - 8, k, alpha, a, lead_a, b, lead_b, beta, c, lead_c);
}
void mistakes_transposes(int o, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a,
                         const double* b, int lead_b, double beta, double* c, int lead_c) {
  plain_dgemm(o, m == n && ta == 112 && tb == 112 ? 111 : ta, tb, m, n, k, alpha, a, lead_a, b, lead_b, beta, c, lead_c);
}
void rounds_to_single(int o, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a,
                      const double* b, int lead_b, double beta, double* c, int lead_c) {
  plain_dgemm(o, ta, tb, m, n, k, alpha, a, lead_a, b, lead_b, beta, c, lead_c);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) c[i * lead_c + j] = static_cast<float>(c[i * lead_c + j]);
}
void overwrites(int o, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a, const double* b,
                int lead_b, double, double* c, int lead_c) {
  plain_dgemm(o, ta, tb, m, n, k, alpha, a, lead_a, b, lead_b, 0, c, lead_c);
}
void writes_between_rows(int o, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lead_a,
                         const double* b, int lead_b, double beta, double* c, int lead_c) {
  plain_dgemm(o, ta, tb, m, n, k, alpha, a, lead_a, b, lead_b, beta, c, lead_c);
  c[n] = 0;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

class StepMultiplyTest : public QObject {
  Q_OBJECT

 private slots:
  // Batches, heads, sums over two loops, operands in every order of their dimensions.
  void blocks_are_the_same_sums() {
    std::mt19937_64 random(7);
    for (int round = 0; round < 300; ++round) {
      // Of each kind of loop one or two: of rows, of columns, summed, of all three.
      Multiplied loops;
      std::array<std::vector<std::size_t>, 3> walked;
      constexpr bool kWalks[4][3] = {{true, false, true}, {false, true, true}, {true, true, false}, {true, true, true}};
      for (std::size_t kind = 0; kind < 4; ++kind)
        for (std::uint64_t i = random() % 3; i > 0 || (kind < 3 && loops.sizes.size() <= kind); i = i > 0 ? i - 1 : 0) {
          const std::size_t loop = loops.sizes.size();
          loops.sizes.push_back(1 + static_cast<std::int64_t>(random() % (kind == 3 ? 3 : 40)));
          for (std::size_t o = 0; o < 3; ++o)
            if (kWalks[kind][o]) walked[o].push_back(loop);
        }
      for (std::size_t o = 0; o < 3; ++o) {
        std::shuffle(walked[o].begin(), walked[o].end(), random);
        loops.strides[o] = dense(loops.sizes, walked[o]);
      }
      if (std::accumulate(loops.sizes.begin(), loops.sizes.end(), 1.0, std::multiplies<>()) > 3e6) continue;
      const auto a = numbers(elements(loops, 0), random), b = numbers(elements(loops, 1), random);
      auto plain = numbers(elements(loops, 2), random);
      auto blocks = plain;  // both add to what is there
      multiply_add_plainly(loops, a.data(), b.data(), plain.data());
      multiply_add(loops, a.data(), b.data(), blocks.data());
      for (std::size_t i = 0; i < plain.size(); ++i)
        QVERIFY2(std::abs(plain[i] - blocks[i]) <= 1e-9 * (1 + std::abs(plain[i])),
                 qPrintable(QString("round %1, element %2: %3 and %4").arg(round).arg(i).arg(plain[i]).arg(blocks[i])));
    }
  }

  // The machine's library, where it has one, a plain one in its place, and none: with operands that lie by rows, by
  // columns, with room between, every second number (which no library takes), and the same one again and again.
  void libraries_and_blocks_are_the_same_sums() {
    if (!double_products().library) qInfo("only own blocks: %s", double_products().why.c_str());
    std::mt19937_64 random(9);
    for (int round = 0; round < 80; ++round) {
      const auto size = [&](std::uint64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
      StridedProduct p{size(90), size(70), size(110), 0, 0, 0, 0, 0};
      const auto lie = [&](std::int64_t rows, std::int64_t columns, std::int64_t& row, std::int64_t& column) {
        const std::int64_t apart = random() % 4 == 0 ? 2 : 1, room = static_cast<std::int64_t>(random() % 3);
        const bool by_rows = random() % 2 == 0;
        (by_rows ? column : row) = apart;
        (by_rows ? row : column) = apart * ((by_rows ? columns : rows) + room);
        return static_cast<std::size_t>((rows - 1) * row + (columns - 1) * column + 1);
      };
      const std::size_t of_a = lie(p.m, p.k, p.a_row, p.a_column), of_b = lie(p.k, p.n, p.b_row, p.b_column);
      p.c_row = p.n + static_cast<std::int64_t>(random() % 3);
      const auto a = numbers(of_a, random), b = numbers(of_b, random);
      auto plain = numbers(static_cast<std::size_t>(p.m * p.c_row), random);
      const auto before = plain;
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j)
          for (std::int64_t l = 0; l < p.k; ++l)
            plain[static_cast<std::size_t>(i * p.c_row + j)] += a[static_cast<std::size_t>(i * p.a_row + l * p.a_column)] *
                                                              b[static_cast<std::size_t>(l * p.b_row + j * p.b_column)];
      for (const DoubleProducts& products : {double_products(), DoubleProducts{plain_dgemm}, DoubleProducts()}) {
        auto got = before;
        products.add(p, a.data(), b.data(), got.data());
        for (std::size_t i = 0; i < plain.size(); ++i)
          QVERIFY2(std::abs(plain[i] - got[i]) <= 1e-12 * (1 + std::abs(plain[i])) * static_cast<double>(p.k),
                   qPrintable(QString("round %1, element %2: %3 and %4").arg(round).arg(i).arg(plain[i]).arg(got[i])));
      }
    }
  }

  void a_library_that_multiplies_wrongly_is_not_taken() {
    QVERIFY(turnpoint::probe::checked(plain_dgemm, "plain").library == plain_dgemm);
    for (const auto wrong : {forgets_the_edge, mistakes_transposes, rounds_to_single, overwrites, writes_between_rows}) {
      const DoubleProducts products = turnpoint::probe::checked(wrong, "liboff.so.0");
      QVERIFY(!products.library && products.refused);
      QVERIFY2(products.why.starts_with("liboff.so.0: multiplies wrongly here ("), products.why.c_str());
    }
  }

  void blocks_take_a_fraction_of_the_time() {
    std::mt19937_64 random(8);
    const Multiplied loops{{192, 256, 384}, {dense({192, 256, 384}, {0, 2}), dense({192, 256, 384}, {1, 2}),
                                             dense({192, 256, 384}, {0, 1})}};
    const auto a = numbers(elements(loops, 0), random), b = numbers(elements(loops, 1), random);
    std::vector<double> y(elements(loops, 2), 0);
    double begin = processor_seconds();
    multiply_add_plainly(loops, a.data(), b.data(), y.data());
    const double plain = processor_seconds() - begin;
    begin = processor_seconds();
    for (int i = 0; i < 4; ++i) multiply_add(loops, a.data(), b.data(), y.data());
    const double blocks = (processor_seconds() - begin) / 4;
    qInfo("%.2f ns a multiplication number by number, %.2f ns by blocks", plain * 1e9 / (192.0 * 256 * 384),
          blocks * 1e9 / (192.0 * 256 * 384));
    QVERIFY2(blocks < plain / 2, qPrintable(QString("%1 s and %2 s").arg(plain).arg(blocks)));
  }
};

QTEST_APPLESS_MAIN(StepMultiplyTest)
#include "step_multiply_test.moc"
