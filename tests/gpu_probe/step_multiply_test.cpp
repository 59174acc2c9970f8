// SPDX-License-Identifier: Apache-2.0
// Products by blocks, of which the proof is made, against the same sums number by number.
#include "gpu_probe/step/kernels/multiply.h"

#include <QtTest>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <random>

using namespace turnpoint::step::in_double;

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
