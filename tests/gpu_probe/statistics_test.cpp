// SPDX-License-Identifier: Apache-2.0
// Quartiles of repeated times, worked out by hand, and when there are enough of them.
#include "gpu_probe/measure/statistics.h"

#include <QTest>
#include <cmath>

using namespace turnpoint::probe;

class StatisticsTest : public QObject {
  Q_OBJECT

 private slots:
  void quartiles_lie_between_the_sorted_times() {
    const Spread five = spread_of({5, 1, 4, 2, 3});
    QCOMPARE(five.least, 1.0);
    QCOMPARE(five.q1, 2.0);
    QCOMPARE(five.median, 3.0);
    QCOMPARE(five.q3, 4.0);
    QCOMPARE(five.samples, 5);
    QCOMPARE(five.relative(), 2.0 / 3);
    const Spread four = spread_of({40, 10, 30, 20});  // a quarter of the way from 10 to 20 is left, and so on
    QCOMPARE(four.q1, 17.5);
    QCOMPARE(four.median, 25.0);
    QCOMPARE(four.q3, 32.5);
    const Spread one = spread_of({7});
    QVERIFY(one.least == 7 && one.q1 == 7 && one.median == 7 && one.q3 == 7 && one.samples == 1);
    QCOMPARE(one.relative(), 0.0);
    const Spread none = spread_of({});
    QVERIFY(none.samples == 0 && none.median == 0 && none.relative() == 0);
  }

  void three_samples_are_enough_once_the_time_is_up() {
    QVERIFY(!enough({1, 2, 3}, 9.9, 10));
    QVERIFY(enough({1, 2, 3}, 10, 10));
    QVERIFY(!enough({1, 2}, 10, 10));
    QVERIFY(!enough({1, 2}, 39.9, 10));
    QVERIFY(enough({30}, 40, 10));  // one alone took four times what an item may
    QVERIFY(!enough({}, 40, 10));
  }

  void ten_samples_are_enough_where_they_agree() {
    std::vector<double> agree(9, 1.0);
    QVERIFY(!enough(agree, 0.1, 10));
    agree.push_back(1.5);  // a single one may be far off
    QVERIFY(enough(agree, 0.1, 10));
    std::vector<double> scattered;
    for (int i = 0; i < kMostSamples - 1; ++i) scattered.push_back(1 + 0.1 * (i % 7));
    QVERIFY(!enough(scattered, 0.1, 10));
    scattered.push_back(1);
    QVERIFY(enough(scattered, 0.1, 10));
  }

  // Times of kernels of some microseconds scatter by more than 1 % however many there are; their median is soon known.
  void a_median_is_settled_by_the_square_root_of_the_samples() {
    const auto scattered = [](int samples, double quartiles) {
      std::vector<double> times;
      for (int i = 0; i < samples; ++i) times.push_back(1 + quartiles * (i % 4 - 1.5));  // between quartiles: twice it
      return times;
    };
    QVERIFY(!settled(scattered(10, 0)));
    QVERIFY(settled(scattered(20, 0)));
    const double wide = spread_of(scattered(400, 0.05)).relative();
    const int needed = int(std::ceil(std::pow(0.93 * wide / 0.005, 2) / 10)) * 10;
    QVERIFY(needed > 100 && needed < 1000);
    QVERIFY(!settled(scattered(needed / 2 / 20 * 20, 0.05)));
    QVERIFY(settled(scattered(needed + 20 - needed % 20, 0.05)));
    QVERIFY(!settled(scattered(needed + 25, 0.05)));  // looked at now and then only
  }
};

QTEST_GUILESS_MAIN(StatisticsTest)
#include "statistics_test.moc"
