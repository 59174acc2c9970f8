// SPDX-License-Identifier: Apache-2.0
// Every number of the record says its unit and its reason; whatever it is, what an exact search of a small problem finds
// is right.
#include <QTest>

#include <QFile>
#include <QRegularExpression>
#include <cmath>
#include <set>

#include "core/frontier/solver.h"
#include "frontier/policy_numbers.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

class PolicyTest : public QObject {
  Q_OBJECT

 private slots:
  // No number is missing from the list: together they are as large as the record.
  void every_number_is_listed() {
    std::size_t bytes = 0;
    std::set<std::string> names;
    for (const PolicyNumber& number : policy_numbers()) {
      bytes += number.bytes;
      QVERIFY2(names.insert(number.name).second, number.name.c_str());
    }
    QCOMPARE(bytes, sizeof(Policy));
  }

  void every_number_is_in_range() {
    for (const PolicyNumber& number : policy_numbers()) {
      const double value = number.value(Policy());
      QVERIFY2(std::isfinite(value) && value > 0 && value < 1e12, number.name.c_str());
      Policy other;
      number.multiply(other, 2);
      QVERIFY2(number.value(other) == 2 * value, number.name.c_str());
      if (number.name.find("share") != std::string::npos) QVERIFY2(value < 1, number.name.c_str());
    }
    const Policy policy;
    for (std::size_t i = 1; i < policy.gaps.size(); ++i) QVERIFY(policy.gaps[i] < policy.gaps[i - 1]);
    for (const Look& look : {policy.drag, policy.rest}) QVERIFY(look.open <= look.most_open);
    QVERIFY(policy.rest.open <= policy.drag.open && policy.rest.apart <= policy.drag.apart);
    QVERIFY(policy.fewest_buckets <= policy.first_buckets && policy.first_buckets <= policy.drag.buckets);
  }

  // `type name = value;  ///< unit: reason`
  void every_number_says_unit_and_reason() {
    QFile file(QStringLiteral(TURNPOINT_SOURCE_DIR "/core/frontier/policy.h"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QRegularExpression number(QStringLiteral("^  (?:double|std::size_t|std::array<double, 3>) \\w+[^(]*;")),
        told(QStringLiteral("///< [^:]+: \\S.{10,}$"));
    int numbers = 0;
    for (const QString& line : QString::fromUtf8(file.readAll()).split('\n')) {
      if (!number.match(line).hasMatch()) continue;
      ++numbers;
      QVERIFY2(told.match(line).hasMatch(), qPrintable(line));
    }
    QVERIFY(numbers > 20);
  }

  // Whatever a number is, an exact search finds the same frontier: numbers decide on work and never on what is right.
  void no_number_changes_what_is_right() {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const Problem problem = random_problem(seed, 6, {}, static_cast<std::uint32_t>(seed % 3));
      SolveOptions options;
      options.direct_terms = 0;
      if (seed % 2) options.restrict_terms = 0;
      const auto plain = Solver().solve(problem, options, {});
      for (const PolicyNumber& number : policy_numbers())
        for (const double factor : {0.5, 2.0}) {
          SolveOptions other = options;
          number.multiply(other.policy, factor);
          const auto answer = Solver().solve(problem, other, {});
          QCOMPARE(bool(answer), bool(plain));
          if (!plain) continue;
          QVERIFY2(answer->exact == plain->exact, number.name.c_str());
          QVERIFY2(answer->points.size() == plain->points.size(), number.name.c_str());
          for (std::size_t i = 0; i < plain->points.size(); ++i)
            QVERIFY2(
                answer->points[i].memory == plain->points[i].memory && answer->points[i].time == plain->points[i].time,
                number.name.c_str());
        }
    }
  }
};

QTEST_APPLESS_MAIN(PolicyTest)
#include "policy_test.moc"
