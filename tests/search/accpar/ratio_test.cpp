// SPDX-License-Identifier: Apache-2.0
// Ratios between unlike halves: the paper's formula, the balance of the real functions, the least sum, whole units.
#include <QtTest>

#include "core/search/accpar/ratio.h"
#include "search/accpar/networks.h"

using namespace turnpoint;
using namespace turnpoint::accpar;

namespace {

double ratio_sum(const std::vector<RatioTerm>& terms, double ratio) {
  double sum = 0;
  for (const RatioTerm& term : terms) sum += term.at(ratio);
  return sum;
}

/// One level of a tree of two unlike devices.
Bisection two_devices(double flops_i, double flops_j, double link) {
  return *bisect(group("pair", link, {device("i", flops_i, 1), device("j", flops_j, 1)}));
}

Cut first_cut(const LayerGraph& graph, const Bisection& devices, const Options& options) {
  auto found = search(graph, devices, options);
  if (!found) qFatal("%s", found.error().message().c_str());
  return found->cuts.front();
}

}  // namespace

class AccParRatioTest : public QObject {
  Q_OBJECT

 private slots:
  void a5_compute_only() {
    const std::vector<RatioTerm> terms{{{ShareTime{420, 0, 0, 0}, ShareTime{180, 0, 0, 0}}}};
    QCOMPARE(paper_ratio(terms), 0.3);
    QVERIFY(std::abs(balanced_ratio(terms) - 0.3) < 1e-12);
    QVERIFY(std::abs(least_ratio(terms) - 0.3) < 1e-12);
  }

  void a5_with_communication() {
    const std::vector<RatioTerm> terms{{{ShareTime{10, 2, 1, 0}, ShareTime{4, 1, 0.5, 0}}}};
    QCOMPARE(paper_ratio(terms), 5.0 / 17);
    for (const double ratio : {balanced_ratio(terms), least_ratio(terms)}) {
      QVERIFY(std::abs(ratio - 0.16) < 1e-12);
      QVERIFY(std::abs(terms[0].halves[0].at(ratio) - 4.44) < 1e-9);
      QVERIFY(std::abs(terms[0].halves[1].at(1 - ratio) - 4.44) < 1e-9);
    }
    const double paper = paper_ratio(terms);
    QVERIFY(std::abs(terms[0].halves[0].at(paper) - 5.647) < 1e-3);
    QVERIFY(std::abs(terms[0].halves[1].at(1 - paper) - 3.971) < 1e-3);
  }

  /// The same from a network: halves of 180 and 420 and a link that costs nothing to speak of.
  void a5_from_a_network() {
    const LayerGraph graph = test::connected_chain(1000, {1000, 1000, 1000});
    Options options;
    options.whole_units = false;
    const Cut cut = first_cut(graph, two_devices(180, 420, 1e12), options);
    QVERIFY(std::abs(cut.ratio - 0.3) < 1e-3);
    options.ratio = Ratio::equal;
    QCOMPARE(first_cut(graph, two_devices(180, 420, 1e12), options).ratio, 0.5);
  }

  /// No ratio on a fine grid has a smaller sum; and the terms add up to the price of the level.
  void the_least_sum_is_least() {
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> some(0.05, 4);
    for (int i = 0; i < 100; ++i) {
      const LayerGraph graph = i % 2 ? test::random_residual(random, 20) : test::random_chain(random, 8);
      const Halves halves{Rates{some(random), 30 * some(random)}, Rates{some(random), 30 * some(random)}};
      std::vector<Type> types;
      for (std::size_t l = 0; l < graph.layers.size(); ++l) types.push_back(kAllTypes[random() % 3]);
      const auto terms = ratio_terms(graph, types, halves);
      const double best = ratio_sum(terms, least_ratio(terms));
      for (int step = 1; step < 1000; ++step) {
        const double ratio = step / 1000.0, sum = ratio_sum(terms, ratio);
        QVERIFY(best <= sum * (1 + 1e-12));
        if (step % 250 == 0) {
          const double cost = level_cost(graph, types, std::vector<double>(types.size(), ratio), halves);
          QVERIFY(std::abs(cost - sum) <= 1e-9 * cost);
        }
      }
      const double balance = balanced_ratio(terms);
      double first = 0, second = 0;
      for (const RatioTerm& term : terms) first += term.halves[0].at(balance), second += term.halves[1].at(1 - balance);
      if (balance > 2 * kLeastRatio && balance < 1 - 2 * kLeastRatio) QVERIFY(std::abs(first - second) <= 1e-6 * first);
    }
  }

  void exact_is_no_worse_than_paper_or_equal() {
    std::mt19937_64 random(12);
    std::uniform_real_distribution<double> speed(1, 10);
    int better = 0;
    for (int i = 0; i < 100; ++i) {
      const LayerGraph graph = test::random_chain(random, 6);
      const Bisection devices = two_devices(speed(random), speed(random), speed(random) / 20);
      const auto price = [&](Ratio ratio) {
        Options options;
        options.ratio = ratio;
        options.whole_units = false;
        const Cut cut = first_cut(graph, devices, options);
        if (cut.rounds > 5) qFatal("more than five rounds");
        return cut.price;
      };
      const double exact = price(Ratio::exact), paper = price(Ratio::paper), equal = price(Ratio::equal);
      better += exact < paper * (1 - 1e-9);
      // Both begin with the same ratio and keep the best of their rounds.
      QVERIFY(exact <= paper * (1 + 1e-9));
      QVERIFY(exact <= equal * (1 + 1e-9));
    }
    QVERIFY(better > 20);
    qInfo("exact ratios were better than the paper's in %d of 100 chains", better);
  }

  void whole_units() {
    const auto share = [](double units, double ratio) {
      const LayerGraph graph = chain({fully_connected("fc", units, 1, 1)});
      return shares_of(graph, Space::batch, ratio, true)[0][0] * units;
    };
    QCOMPARE(share(10, 0.3), 3.0);
    QCOMPARE(share(10, 0.34), 3.0);
    QCOMPARE(share(10, 0.37), 4.0);   // 4 / 0.37 is earlier than 7 / 0.63
    QCOMPARE(share(10, 0.001), 1.0);  // a part has one unit at least
    QCOMPARE(share(10, 0.999), 9.0);
    QCOMPARE(share(3, 0.5), 2.0);  // of two that finish together the first
    QCOMPARE(share(2, 0.9), 1.0);
    QCOMPARE(share(1, 0.5), 0.0);  // cannot be cut
    // Whatever the number, the slower half is as early as it can be.
    std::mt19937_64 random(13);
    std::uniform_real_distribution<double> some(0.01, 0.99);
    for (int i = 0; i < 1000; ++i) {
      const double units = double(2 + random() % 40), ratio = some(random), first = share(units, ratio);
      QCOMPARE(first, std::round(first));
      const auto finish = [&](double n) { return std::max(n / ratio, (units - n) / (1 - ratio)); };
      for (double n = 1; n < units; ++n) QVERIFY(finish(first) <= finish(n) * (1 + 1e-12));
    }
  }

  void a_ratio_set_by_hand() {
    const LayerGraph graph = test::connected_chain(100, {100, 100});
    Options options;
    options.first_ratio = 0.2;
    const Cut cut = first_cut(graph, two_devices(1, 1, 1), options);
    QCOMPARE(cut.ratio, 0.2);
    for (const double share : cut.shares) QCOMPARE(share, 0.2);
    for (const double ratio : {0.0, 1.0, -0.5, 2.0, std::nan("")}) {
      options.first_ratio = ratio;
      const auto refused = search(graph, two_devices(1, 1, 1), options);
      QVERIFY(!refused);
      QCOMPARE(refused.error().message(), "the ratio of the first cut must lie between 0 and 1");
    }
  }
};

QTEST_APPLESS_MAIN(AccParRatioTest)
#include "ratio_test.moc"
