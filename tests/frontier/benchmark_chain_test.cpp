// SPDX-License-Identifier: Apache-2.0
// The benchmark's problems and its count of the published algorithm's work, which its figures stand on.
#include "frontier/benchmark_chain.h"

#include <QTest>

#include "core/frontier/published.h"
#include "core/frontier/solver.h"
#include "frontier/chain_counts.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

class BenchmarkChainTest : public QObject {
  Q_OBJECT

 private slots:
  /// The first numbers of random.Random(1) in Python 3.
  void random_numbers_are_those_of_python() {
    PythonRandom r(1);
    QCOMPARE(r.uniform(0, 1), 0.13436424411240122);
    QCOMPARE(r.uniform(0, 1), 0.8474337369372327);
    QCOMPARE(r.range(0, 1u << 28), 33880218u);
    QCOMPARE(r.range(5, 8), 6u);
  }

  /// Checksums of what the generator in Python writes.
  void chains_are_those_of_the_generator() {
    QCOMPARE(checksum(benchmark_chain(1, 3, 4, 3)), std::uint64_t(0xb0bc7f3173bfd5f3));
    QCOMPARE(checksum(benchmark_chain(7, 5, 9, 4)), std::uint64_t(0x9b9398777ada2403));
    QCOMPARE(checksum(benchmark_chain((std::uint64_t(1) << 32) + 5, 2, 3, 2)), std::uint64_t(0xce1cd92fb83bf2ea));
    QCOMPARE(checksum(benchmark_chain(1, 40, 200, 12)), std::uint64_t(0x56499dbea271fee));
    QCOMPARE(checksum(benchmark_chain(1, 200, 100, 12)), std::uint64_t(0xdf2afb4d573c07fb));
    QCOMPARE(checksum(benchmark_chain(1, 300, 200, 35)), std::uint64_t(0x4bf9b0c957f53722));
  }

  /// Step by step what the published algorithm forms and keeps, and the engine's frontier at the end.
  void counts_are_those_of_the_published_algorithm() {
    ThreadPool pool(2);
    RunContext context;
    context.threads = 2;
    for (const auto& [seed, n, configs, layouts] :
         {std::array<std::uint32_t, 4>{1, 16, 16, 6}, {2, 30, 12, 5}, {3, 10, 24, 6}, {4, 1, 5, 2}, {5, 2, 9, 3}}) {
      const Problem problem = benchmark_chain(seed, n, configs, layouts);
      const ChainCounts counts = count_chain(problem, pool);
      PublishedReport report;
      const auto published = solve_published(problem, {}, context, &report);
      QVERIFY(published.has_value());
      QVERIFY(counts.step_products == report.step_products);
      QVERIFY(counts.step_kept == report.step_kept);
      QCOMPARE(counts.products, report.products);
      QCOMPARE(counts.frontier.size(), published->points.size());
      if (n > 2 && n < 30) {
        PublishedOptions pairs;
        pairs.algorithm = PublishedAlgorithm::elimination;
        PublishedReport eliminated;
        QVERIFY(solve_published(problem, pairs, context, &eliminated).has_value());
        // Its sums are formed in another order, so two times may be equal in the one and not in the other.
        const double expected = count_elimination(problem, pool);
        QVERIFY2(std::abs(eliminated.products - expected) <= 1e-6 * expected,
                 (std::to_string(eliminated.products) + " and " + std::to_string(expected)).c_str());
      }
      const auto engine = Solver().solve(problem, {}, context);
      QVERIFY(engine.has_value() && engine->exact);
      QVERIFY(equal_frontiers(counts.frontier, costs_of(*engine), false));
    }
  }
};

QTEST_APPLESS_MAIN(BenchmarkChainTest)
#include "benchmark_chain_test.moc"
