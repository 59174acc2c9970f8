// SPDX-License-Identifier: Apache-2.0
// The parts of the engine against plain twins: presolve, elimination, vectorised bounds, list products.
#include <QTest>
#include <cmath>
#include <limits>
#include <map>

#include "core/frontier/bounds.h"
#include "core/frontier/lists.h"
#include "core/frontier/open_points.h"
#include "frontier/layered.h"
#include "frontier/parts.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::detail;
using namespace turnpoint::frontier::test;

namespace {

LaneBlock block_of(const Problem& problem, std::uint64_t seed) {
  Generator g(seed);
  double m = 1, t = 1e-9;
  for (const Node& n : problem.nodes)
    for (const CostPoint& p : n.costs.points()) m = std::max(m, double(p.memory)), t = std::max(t, p.time);
  LaneBlock block;
  for (std::size_t l = 0; l < kLanes; ++l) {
    const double share = l == 0 ? 1 : l == 1 ? 0 : g.real(0, 1);
    block.weight_memory[l] = share / m;
    block.weight_time[l] = (1 - share) / t;
  }
  return block;
}

}  // namespace

class KernelsTest : public QObject {
  Q_OBJECT

 private slots:
  void open_points_agree_with_plain_loop() {
    Generator g(5);
    std::size_t open_bits = 0, closed_bits = 0;
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::int64_t> memory;
      std::vector<double> time, limits;
      const std::size_t count = g.number(1, 64), buckets = g.number(1, 40);
      for (std::size_t i = 0; i < count; ++i) {
        memory.push_back(g.number(0, 1000));
        time.push_back(g.number(0, 20));
      }
      for (std::size_t k = 0; k < buckets; ++k)
        limits.push_back(k % 7 == 6 ? std::numeric_limits<double>::infinity() : double(g.number(0, 40)));
      const OpenLimits open{limits.data(), buckets, static_cast<int>(g.number(0, 6))};
      const std::int64_t m0 = std::int64_t(g.number(0, 1000)) - 500;  // sums below the first bucket, too
      const double t0 = g.number(0, 20);
      const std::uint64_t truth = open_points_scalar(memory.data(), time.data(), count, m0, t0, open);
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t k = (m0 + memory[i]) >> open.shift;
        const bool wanted = k >= 0 && k < std::int64_t(buckets) && t0 + time[i] < limits[static_cast<std::size_t>(k)];
        QCOMPARE((truth >> i & 1) != 0, wanted);
        ++(wanted ? open_bits : closed_bits);
      }
      for (const OpenPoints kernel : supported_open_points())
        QCOMPARE(kernel(memory.data(), time.data(), count, m0, t0, open), truth);
    }
    QVERIFY(open_bits > 1000 && closed_bits > 1000);
  }

  void equal_classes_are_merged() {
    // Three layouts of which two cost the same; four configurations, two of them alike but for their own cost.
    Problem p;
    Node a, b;
    for (const double t : {4.0, 3.0, 2.0, 1.0}) a.costs.add(CostPoint{static_cast<std::int64_t>(t), t});
    b.costs.add(CostPoint{0, 0});
    p.nodes = {a, b};
    Edge e{0, 1, {0, 1, 2, 2}, {0}, 3, 1, {}};
    for (const double t : {5.0, 7.0, 5.0}) e.costs.add(CostPoint{0, t});
    p.edges = {e};
    const Parts parts(p);
    QCOMPARE(parts.graph.factors[0].rows, 2u);
    QCOMPARE(parts.graph.variables[0].states, 2u);
    QVERIFY(parts.graph.state_of[0] == (std::vector<std::uint32_t>{0, 1, 0, 0}));
    // Configuration 3 dominates 0 and 2 within the state.
    QVERIFY(parts.graph.origins[0].config == (std::vector<std::uint32_t>{3, 1}));
  }

  void repeated_layers_are_computed_once() {
    const Parts repeated(residual_blocks(1, 12, 3, 20, 8, 6, 1, false)),
        different(residual_blocks(1, 12, 3, 20, 8, 6, 12, false));
    QCOMPARE(repeated.plan.steps.size(), different.plan.steps.size());
    QVERIFY(repeated.dag.steps.size() * 2 < different.dag.steps.size());
  }

  void tables_stay_below_the_limit() {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Problem problem = random_problem(seed, 9, {}, static_cast<std::uint32_t>(seed % 9));
      for (const std::size_t limit : {std::size_t(3), std::size_t(20), std::size_t(1000)}) {
        const Parts parts(problem, limit);
        if (!parts.plan.too_wide) QVERIFY(parts.plan.largest_table <= limit);
      }
    }
  }

  /// A chain must not need tables over two operators.
  void chains_stay_thin() {
    const Parts parts(layered_chain(1, 60, 40, 9));
    QVERIFY(!parts.plan.too_wide);
    QVERIFY(parts.plan.largest_table <= 9);
  }

  void vector_bounds_equal_the_scalar_twin() {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      ProblemShape shape;
      shape.integer_times = seed % 2;
      shape.large_memory = seed % 3 == 0;
      const Problem problem = random_problem(seed, 1 + seed % 8, shape, static_cast<std::uint32_t>(seed % 9));
      Parts parts(problem);
      LaneBlock block = block_of(problem, seed);
      const bool feasible = block.inside(parts.dag, parts.control);
      const std::vector<Choice> best = feasible ? block.trace(parts.dag) : std::vector<Choice>();
      for (int l = 0; l < kLanes; ++l) {
        const auto i = static_cast<std::size_t>(l);
        const double exact = scalar_bound(parts.dag, block.weight_memory[i], block.weight_time[i]);
        QCOMPARE(std::isfinite(exact), feasible);
        if (!feasible) break;
        const std::string where = "seed " + std::to_string(seed) + " lane " + std::to_string(l);
        QVERIFY2(std::abs(block.bound(l) - exact) <= 1e-6 * (1 + exact), where.c_str());
        QVERIFY2(block.bound(l) - block.margin(l, 0) <= exact * (1 + 1e-12), where.c_str());
        const Point plan = make_point(parts.graph, best[i]);
        const double cost = block.weight_memory[i] * double(plan.memory) + block.weight_time[i] * plan.time;
        QVERIFY2(std::abs(cost - exact) <= 1e-5 * (1 + exact), where.c_str());
        QVERIFY2((evaluate(problem, plan) == CostPoint{plan.memory, plan.time}), where.c_str());
      }
    }
  }

  /// Costs are whole numbers of 30 bits and weights powers of two: weighted costs are exact in doubles and rounded in
  /// the floats that bounds are made of. What becomes a line of the certificate lies below every plan, to the last bit.
  void half_planes_lie_below_every_plan() {
    std::size_t rounded_up = 0;
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      Generator g(seed);
      Problem problem = random_problem(seed, 4 + seed % 3, {}, static_cast<std::uint32_t>(seed % 9));
      const auto make_rough = [&](CostTable& costs) {
        const auto rough = [&] { return g.number(1u << 29, 1u << 30); };
        for (CostPoint& p : costs.mutable_points()) p.memory = rough(), p.time = rough();
      };
      for (Node& node : problem.nodes) make_rough(node.costs);
      for (Edge& edge : problem.edges) make_rough(edge.costs);
      const CostList plans = brute_force(problem);
      Parts parts(problem);
      LaneBlock block;
      for (std::size_t l = 0; l < kLanes; ++l) {
        block.weight_memory[l] = l == 0 ? 0 : std::ldexp(1, -int(l % 4));
        block.weight_time[l] = l == 1 ? 0 : std::ldexp(1, -int(l / 4));
      }
      if (!block.inside(parts.dag, parts.control)) continue;
      std::vector<HalfPlane> planes;
      append_half_planes(block, planes);
      QCOMPARE(planes.size(), std::size_t(kLanes));
      for (std::size_t l = 0; l < kLanes; ++l) {
        double least = kInfinity;
        for (const CostPoint& p : plans)
          least = std::min(least, block.weight_memory[l] * double(p.memory) + block.weight_time[l] * p.time);
        rounded_up += block.bound(static_cast<int>(l)) > least;
        const double above = planes[l].bound - least;
        QVERIFY2(above <= 0,
                 qPrintable(QString("seed %1, lane %2: %3 above %4").arg(seed).arg(l).arg(above).arg(least)));
        QVERIFY(planes[l].bound > least * (1 - 1e-5));
      }
    }
    QVERIFY2(rounded_up > 100, qPrintable(QString::number(rounded_up)));  // else nothing was at stake
  }

  /// The best plan through each state of each node, against problems in which only that state is allowed.
  void marginals_equal_restricted_problems() {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      ProblemShape shape;
      shape.forbidden = 0.1;
      const Problem problem = random_problem(seed + 1000, 6, shape, static_cast<std::uint32_t>(seed % 9));
      Parts parts(problem);
      // Tables shared by several nodes hold the best over all of them.
      std::map<std::uint32_t, int> uses;
      for (std::size_t v = 0; v < parts.graph.variables.size(); ++v) ++uses[parts.dag.unique_of[v]];
      LaneBlock block = block_of(problem, seed);
      if (!block.inside(parts.dag, parts.control)) continue;
      Lanes all;
      all.fill(1e29);
      block.outside(parts.dag, separate(all), parts.control);
      for (std::uint32_t v = 0; v < parts.graph.variables.size(); ++v) {
        if (uses[parts.dag.unique_of[v]] > 1) continue;
        const LaneValues marginals = block.marginals(parts.dag.unique_of[v]);
        for (std::uint32_t s = 0; s < parts.graph.variables[v].states; ++s) {
          std::vector<std::vector<std::uint32_t>> allowed(parts.graph.variables.size());
          allowed[v] = {s};
          const Graph part = restrict_states(parts.graph, allowed);
          const Elimination plan = eliminate(part, 1u << 24);
          Dag dag;
          build_dag(part, plan, dag);
          for (std::size_t l = 0; l < kLanes; ++l) {
            const double exact = scalar_bound(dag, block.weight_memory[l], block.weight_time[l]),
                         found = marginals[s * kLanes + l];
            if (!std::isfinite(exact))
              QVERIFY(found > 1e28);
            else
              QVERIFY(std::abs(found + block.bound(static_cast<int>(l)) - exact) <= 1e-5 * (1 + exact));
          }
        }
      }
    }
  }

  /// Products of long lists, through buckets, blocks and windows of memory, against the definition.
  void long_products_equal_the_definition() {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Generator g(seed);
      Problem problem;  // two nodes without an edge: the root is the product of their lists
      CostList lists[2];
      for (CostList& list : lists) {
        Node node;
        const std::uint32_t count = seed % 2 ? 1500 : 40;
        for (std::uint32_t c = 0; c < count; ++c) {
          const CostPoint p{g.number(0, 1u << 30), seed % 3 ? g.real(0, 1) : double(g.number(0, 4000))};
          node.costs.add(p);
          list.push_back(p);
        }
        problem.nodes.push_back(node);
      }
      const CostList truth = product(reduce(lists[0]), reduce(lists[1]));
      for (const int threads : {1, 3}) {
        Parts parts(problem);
        ThreadPool pool(threads);
        std::vector<ListTable> tables;
        QVERIFY(run_lists(parts.dag, {}, pool, parts.control, nullptr, tables) == ListResult::done);
        const ListTable& root = tables[parts.dag.root];
        CostList found;
        for (std::size_t i = 0; i < root.points(); ++i) found.push_back({root.memory[i], root.time[i]});
        QVERIFY2(found == truth, ("seed " + std::to_string(seed)).c_str());
        std::vector<std::uint32_t> some;
        for (std::uint32_t i = 0; i < root.points(); i += 7) some.push_back(i);
        std::vector<Choice> choices;
        trace_lists(parts.dag, tables, some, choices);
        std::vector<Point> plans(some.size());
        make_points(parts.graph, choices, plans);
        for (std::size_t i = 0; i < some.size(); ++i) {
          const CostPoint& cost = found[some[i]];
          QVERIFY(plans[i].memory == cost.memory && std::abs(plans[i].time - cost.time) < 1e-12);
          QVERIFY(evaluate(problem, plans[i]) == (CostPoint{plans[i].memory, plans[i].time}));
        }
      }
    }
  }

  void too_many_points_end_the_pass() {
    Parts parts(layered_chain(1, 20, 40, 6));
    ListOptions options;
    options.max_points = 500;
    std::vector<ListTable> tables;
    QVERIFY(run_lists(parts.dag, options, parts.pool, parts.control, nullptr, tables) == ListResult::too_large);
  }
};

QTEST_APPLESS_MAIN(KernelsTest)
#include "kernels_test.moc"
