// SPDX-License-Identifier: Apache-2.0
// Spearman's correlation against its definition, worked out by counting; errors over several plans by hand.
#include <QtTest>
#include <cmath>
#include <random>

#include "core/validation/validation_report.h"
#include "validation/reports.h"

using namespace turnpoint;

namespace {

/// Rank = 1 + how many are smaller + half of the other equal ones; then the correlation of the ranks, all pairs
/// compared.
std::optional<double> by_definition(const std::vector<double>& a, const std::vector<double>& b) {
  const std::size_t n = a.size();
  const auto rank = [n](const std::vector<double>& v, std::size_t i) {
    double value = 1;
    for (std::size_t k = 0; k < n; ++k) value += v[k] < v[i] ? 1 : k != i && v[k] == v[i] ? 0.5 : 0;
    return value;
  };
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) {
      const double x = rank(a, i) - rank(a, k), y = rank(b, i) - rank(b, k);
      both += x * y, first += x * x, second += y * y;
    }
  if (first == 0 || second == 0) return std::nullopt;
  return both / std::sqrt(first * second);
}

}  // namespace

class ErrorSummaryTest : public QObject {
  Q_OBJECT

 private slots:
  void spearman_by_definition() {
    std::mt19937_64 random(5);
    int tied = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      const std::size_t n = 3 + random() % 20;
      const std::uint64_t values = 1 + random() % (trial % 2 ? 6 : 1000000);
      std::vector<double> a, b;
      for (std::size_t i = 0; i < n; ++i) {
        a.push_back(double(random() % values));
        b.push_back(random() % 2 ? a.back() : double(random() % values));
      }
      const auto expected = by_definition(a, b), found = spearman(a, b);
      QCOMPARE(found.has_value(), expected.has_value());
      if (!found) continue;
      QVERIFY2(std::abs(*found - *expected) < 1e-12, qPrintable(QString("%1 %2").arg(*found).arg(*expected)));
      tied += trial % 2;
    }
    QVERIFY(tied > 500);
  }

  void spearman_of_known_orders() {
    QCOMPARE(*spearman({1, 2, 3, 4}, {10, 20, 30, 1000}), 1.0);
    QCOMPARE(*spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1.0);
    QCOMPARE(*spearman({1, 2, 3, 4, 5}, {5, 6, 7, 8, 7}), 0.8207826816681233);  // a published worked case
    QVERIFY(!spearman({1, 2}, {1, 2}));
    QVERIFY(!spearman({1, 1, 1}, {1, 2, 3}));
    QVERIFY(!spearman({1, 2, 3}, {1, 2}));
  }

  void errors_of_several_plans() {
    std::vector<ValidationReport> reports(3, test::sample_report());
    const double step[3][2] = {{1.1, 1}, {1.5, 2}, {3, 3}};  // +10 %, -25 %, 0
    for (std::size_t i = 0; i < 3; ++i) reports[i].step = test::compared("step", step[i][0], step[i][1]);
    reports[1].network = {"network", 1, {}, 0, 0, ValueSource::modelled};
    reports[2].memory.pop_back();  // without a peak
    const ErrorSummary summary = summarise(reports);
    QCOMPARE(summary.rows.size(), std::size_t(4));
    QCOMPARE(summary.rows[0].name, std::string("step"));
    QCOMPARE(summary.rows[0].plans, 3);
    QVERIFY(std::abs(summary.rows[0].mean - 0.35 / 3) < 1e-12);
    QVERIFY(std::abs(summary.rows[0].median - 0.1) < 1e-12);
    QVERIFY(std::abs(summary.rows[0].worst - 0.25) < 1e-12);
    QCOMPARE(summary.rows[2].name, std::string("network"));
    QCOMPARE(summary.rows[2].plans, 2);
    QCOMPARE(summary.rows[3].name, std::string("memory"));
    QCOMPARE(summary.rows[3].plans, 2);
    QVERIFY(std::abs(summary.rows[3].worst - 0.1 / 2.1) < 1e-12);
    QCOMPARE(*summary.rank_correlation, 1.0);
    const QString text = QString::fromStdString(write_summary_markdown(reports));
    QVERIFY(text.contains("| step | 3 | 11.7 % | 10.0 % | 25.0 % |"));
    QVERIFY(text.contains("1.000 over 3 plans"));
    QVERIFY(!summarise(std::vector<ValidationReport>{}).rank_correlation);
    // The median of an even number is the mean of the middle two, without their signs: 0, 10, 25 and 50 %.
    reports.push_back(test::sample_report());
    reports.back().step = test::compared("step", 1, 2);
    QVERIFY(std::abs(summarise(reports).rows[0].median - 0.175) < 1e-12);
    QVERIFY(std::abs(summarise(reports).rows[0].worst - 0.5) < 1e-12);
  }
};

QTEST_APPLESS_MAIN(ErrorSummaryTest)
#include "error_summary_test.moc"
