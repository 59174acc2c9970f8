// SPDX-License-Identifier: Apache-2.0
// Misses against a simulated cache that evicts at random, and caches found again in made-up times.
#include <QTest>
#include <cmath>
#include <random>
#include <vector>

#include "core/hardware/cache_misses.h"

using namespace turnpoint;

namespace {

/// Of `set` lines that are visited round and round, behind a cache of `places` that evicts at random.
double simulated_misses(int set, int places, unsigned seed) {
  constexpr int kSettling = 60, kRounds = 60;
  std::mt19937 random(seed);
  std::vector<int> line_at(std::size_t(places), -1), place_of(std::size_t(set), -1);
  int filled = 0, missed = 0;
  for (int round = 0; round < kSettling + kRounds; ++round)
    for (int line = 0; line < set; ++line) {
      if (place_of[std::size_t(line)] >= 0) continue;
      if (round >= kSettling) ++missed;
      const int place = filled < places ? filled++ : std::uniform_int_distribution<int>(0, places - 1)(random);
      if (line_at[std::size_t(place)] >= 0) place_of[std::size_t(line_at[std::size_t(place)])] = -1;
      line_at[std::size_t(place)] = line;
      place_of[std::size_t(line)] = place;
    }
  return double(missed) / (double(set) * kRounds);
}

}  // namespace

class CacheMissesTest : public QObject {
  Q_OBJECT

 private slots:
  void as_a_cache_that_evicts_at_random() {
    constexpr int kPlaces = 4000;
    for (const double ratio : {0.5, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 6.0}) {
      const double simulated = simulated_misses(int(ratio * kPlaces), kPlaces, 7);
      const double share = miss_share(ratio * kPlaces, kPlaces);
      QVERIFY2(std::abs(share - simulated) < 0.015,
               qPrintable(QString("%1: %2, simulated %3").arg(ratio).arg(share).arg(simulated)));
    }
  }

  // m = 1 - exp(-m W / C), rising, and nothing strange at the ends.
  void the_root_of_its_equation() {
    double before = 0;
    for (double ratio = 1.0001; ratio < 1e6; ratio *= 1.07) {
      const double share = miss_share(ratio, 1);
      QVERIFY(std::abs(1 - std::exp(-share * ratio) - share) < 1e-12);
      QVERIFY(share > 0 && share >= before && share <= 1);
      before = share;
    }
    QCOMPARE(miss_share(0, 1), 0.0);
    QCOMPARE(miss_share(1, 1), 0.0);
    QCOMPARE(miss_share(1, 0), 1.0);
  }

  // From passes with errors of 3 % a cache, and what lies on either side of it.
  void a_cache_is_found() {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> error(0.97, 1.03), exponent(21.5, 25);
    for (int trial = 0; trial < 200; ++trial) {
      const double cache = std::exp2(exponent(random)), warm = 1e-11, cold = warm * (trial % 2 ? 4 : 2);
      std::vector<CachePass> passes;
      for (double bytes = 1 << 20; bytes <= 1 << 28; bytes *= std::sqrt(2.0))
        passes.push_back({bytes, bytes * (warm + miss_share(bytes, cache) * (cold - warm)) * error(random)});
      const auto found = fit_cache(passes);
      QVERIFY(found);
      QVERIFY2(std::abs(found->cache_bytes / cache - 1) < 0.12,
               qPrintable(QString::number(found->cache_bytes / cache)));
      QVERIFY(std::abs(found->warm_s_per_byte / warm - 1) < 0.03 && std::abs(found->cold_s_per_byte / cold - 1) < 0.03);
    }
  }

  void where_none_can_be_seen() {
    std::vector<CachePass> passes{{1e6, 1e-5}, {4e6, 4e-5}, {16e6, 17e-5}, {64e6, 66e-5}};
    QVERIFY(!fit_cache(passes));
    passes.push_back({256e6, 1});
    QVERIFY(fit_cache(passes));
    passes.resize(3);
    passes.back().time_s = 1;
    QVERIFY(!fit_cache(passes));
    QVERIFY(!fit_cache({}));
  }
};

QTEST_APPLESS_MAIN(CacheMissesTest)
#include "cache_misses_test.moc"
