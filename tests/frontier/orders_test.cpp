// SPDX-License-Identifier: Apache-2.0
// Orders of elimination that solvers share.
#include "core/frontier/orders.h"

#include <QTest>

#include "core/frontier/solver.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

/// The same choices at other costs.
Problem dearer(Problem problem) {
  for (Node& node : problem.nodes)
    for (CostPoint& point : node.costs.mutable_points()) point = {point.memory * 2, point.time * 3};
  for (Edge& edge : problem.edges)
    for (CostPoint& point : edge.costs.mutable_points()) point = {point.memory * 2, point.time * 3};
  return problem;
}

detail::Graph graph_of(const Problem& problem) {
  ThreadPool pool(1);
  return detail::build_graph(problem, pool);
}

}  // namespace

class OrdersTest : public QObject {
  Q_OBJECT

 private slots:
  void one_order_for_one_structure() {
    constexpr std::size_t kTable = 1 << 20;
    Orders orders;
    const Problem chain = random_problem(1, 6, {}, 0), other = random_problem(2, 7, {}, 0);
    const auto first = orders.of(graph_of(chain), kTable, {}, {});
    QCOMPARE(orders.of(graph_of(dearer(chain)), kTable, {}, {}), first);
    QVERIFY(orders.of(graph_of(other), kTable, {}, {}) != first);
    QVERIFY(orders.of(graph_of(chain), kTable / 2, {}, {}) != first);
    QCOMPARE(orders.of(graph_of(chain), kTable, {}, {}), first);
    const detail::Elimination own = detail::eliminate(graph_of(chain), kTable);
    QVERIFY(first->steps.size() == own.steps.size() && first->terms == own.terms && first->root == own.root);
  }

  // What was stopped is not finished: nobody gets it.
  void a_stopped_one_is_not_kept() {
    Orders orders;
    const detail::Graph graph = graph_of(random_problem(3, 6, {}, 2));
    std::stop_source stop;
    stop.request_stop();
    const auto unfinished = orders.of(graph, 1 << 20, stop.get_token(), {});
    const auto whole = orders.of(graph, 1 << 20, {}, {});
    QVERIFY(whole != unfinished);
    QCOMPARE(whole->steps.size(), detail::eliminate(graph, 1 << 20).steps.size());
  }

  void solvers_that_share_answer_as_those_that_do_not() {
    const auto orders = std::make_shared<Orders>();
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      ProblemShape shape;
      shape.forbidden = 0;
      const Problem one = random_problem(seed, 5, shape, static_cast<std::uint32_t>(seed % 9));
      for (const Problem& problem : {one, dearer(one)}) {
        SolveOptions options;
        options.direct_terms = 0;
        const auto shared = Solver(orders).solve(problem, options, {}), alone = Solver().solve(problem, options, {});
        QCOMPARE(shared.has_value(), alone.has_value());
        if (shared) QVERIFY(costs_of(*shared) == costs_of(*alone));
      }
    }
  }
};

QTEST_APPLESS_MAIN(OrdersTest)
#include "orders_test.moc"
