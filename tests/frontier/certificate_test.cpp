// SPDX-License-Identifier: Apache-2.0
// What is proven holds to the last bit: costs are whole numbers too large for 24 bits, so that sums are exact and every
// rounding the wrong way shows; and problems bend far from their hull while the work allowed is little, so that what
// was not looked through must not count as proven. No comparison has a tolerance.
#include <QTest>
#include <cmath>

#include "core/frontier/solver.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

RunContext one_thread() {
  RunContext context;
  context.threads = 1;
  return context;
}

/// The same plans in the same order of cost, every entry moved up by whole numbers beyond 24 bits and made odd.
void make_large(Problem& problem) {
  const auto move = [](CostTable& costs) {
    for (CostPoint& p : costs.mutable_points()) {
      p.time = 0x1p24 + 2 * p.time + 1;
      p.memory = (std::int64_t(1) << 33) + 2 * p.memory + 1;
    }
  };
  for (Node& node : problem.nodes) move(node.costs);
  for (Edge& edge : problem.edges) move(edge.costs);
}

/// Least time of a plan of at most this memory; infinite where there is none.
double least_time(const std::vector<CostPoint>& staircase, std::int64_t memory) {
  double least = std::numeric_limits<double>::infinity();
  for (const CostPoint& p : staircase)
    if (p.memory <= memory) least = std::min(least, p.time);
  return least;
}

/// Empty if nothing that the answer says of the true frontier is wrong, by however little.
std::string wrong(const Answer& answer, const CostList& truth) {
  const CostList costs = costs_of(answer);
  if (answer.exact) return costs == truth ? std::string() : "an exact answer that is not the optimum";
  for (const CostPoint& p : costs)
    if (least_time(truth, p.memory) > p.time) return "a point below the optimum";
  for (const CostPoint& p : truth) {
    // Nothing is said below the first step: a plan that lies there refutes the bound.
    if (least_time(answer.lower_bound, p.memory) > p.time) return "a plan below the lower bound";
    const double achieved = least_time(costs, p.memory);
    if (std::isfinite(achieved) && achieved - p.time > answer.gap * achieved * (1 + 1e-15)) return "a gap too small";
  }
  return {};
}

}  // namespace

class CertificateTest : public QObject {
  Q_OBJECT

  std::size_t bounded_ = 0;

  QString solved(const Problem& problem, const CostList& truth, const SolveOptions& options) {
    const auto answer = Solver().solve(problem, options, one_thread());
    if (!answer) return QString::fromStdString(answer.error().message());
    bounded_ += !answer->exact;
    return QString::fromStdString(wrong(*answer, truth));
  }

 private slots:
  void whole_numbers_beyond_24_bits() {
    bounded_ = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      ProblemShape shape;
      shape.integer_times = true;
      Generator g(seed);
      const auto kind = static_cast<std::uint32_t>(seed % 9);
      Problem problem = random_problem(seed, 3 + g.number(0, 3), shape, kind == 4 ? 0 : kind);
      make_large(problem);
      QVERIFY(validate(problem).has_value());
      const CostList truth = brute_force(problem);
      if (truth.empty()) continue;
      for (int mode = 0; mode < 5; ++mode) {
        SolveOptions options;
        options.direct_terms = 0;
        if (mode == 1) options.max_products = g.number(1, 100);
        if (mode == 2) options.max_table = g.number(1, 4);
        if (mode == 3) options.max_table = g.number(1, 4), options.max_products = g.number(1, 100);
        if (mode == 4) options.pass = Pass::coarse, options.buckets = 4;
        const QString said = solved(problem, truth, options);
        QVERIFY2(said.isEmpty(), qPrintable(QString("seed %1, mode %2: %3").arg(seed).arg(mode).arg(said)));
      }
    }
    QVERIFY(bounded_ > 50);  // else nothing was at stake
  }

  void far_from_the_hull_with_little_work() {
    bounded_ = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Generator g(seed);
      const Problem problem = bent(seed, 5 + g.number(0, 3));
      const CostList truth = brute_force(problem);
      for (const double work : {1.0, 10.0, 100.0, 300.0, 1000.0, 3000.0})
        for (const std::size_t table : {std::size_t(1) << 22, std::size_t(2)}) {
          SolveOptions options;
          options.direct_terms = 0;
          options.max_products = work;
          options.max_table = table;
          const QString said = solved(problem, truth, options);
          QVERIFY2(said.isEmpty(), qPrintable(QString("seed %1, work %2: %3").arg(seed).arg(work).arg(said)));
        }
    }
    QVERIFY(bounded_ > 100);
  }
};

QTEST_APPLESS_MAIN(CertificateTest)
#include "certificate_test.moc"
