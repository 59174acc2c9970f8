// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/completions.h"

#include <QtTest>
#include <algorithm>
#include <random>
#include <vector>

using namespace turnpoint;

class CompletionsTest : public QObject {
  Q_OBJECT

 private slots:
  void nothing_is_to_come_at_first() {
    Completions completions;
    completions.reset(5);
    QCOMPARE(completions.earliest(), Completions::kNever);
    completions.set(3, 2.5);
    completions.reset(5);
    QCOMPARE(completions.earliest(), Completions::kNever);
    QCOMPARE(completions.of(3), Completions::kNever);
  }

  void like_a_list_searched_each_time_data() {
    QTest::addColumn<unsigned>("count");
    for (const unsigned count : {1u, 2u, 7u, 8u, 9u, 32u, 64u, 65u, 513u, 5000u}) QTest::addRow("%u", count) << count;
  }
  void like_a_list_searched_each_time() {
    QFETCH(const unsigned, count);
    std::mt19937_64 random(count);
    // Few values, so that several slots often complete together; zero and the smallest and largest numbers among them.
    const double values[] = {0, 4e-324, 1e-30, 0.5, 1, 1.0000000000000002, 2, 1e300, Completions::kNever};
    Completions completions;
    completions.reset(count);
    std::vector<double> times(count, Completions::kNever);
    for (int step = 0; step < 3000; ++step) {
      const auto slot = std::uint32_t(random() % count);
      const double time = values[random() % std::size(values)];
      completions.set(slot, time);
      times[slot] = time;
      const double least = *std::min_element(times.begin(), times.end());
      QCOMPARE(completions.earliest(), least);
      QCOMPARE(completions.of(slot), time);
      if (least == Completions::kNever) continue;
      std::vector<std::uint32_t> found, expected;
      completions.each_at(least, [&](std::uint32_t s) { found.push_back(s); });
      for (std::uint32_t s = 0; s < count; ++s)
        if (times[s] == least) expected.push_back(s);
      QCOMPARE(found, expected);
    }
  }
};

QTEST_APPLESS_MAIN(CompletionsTest)
#include "completions_test.moc"
