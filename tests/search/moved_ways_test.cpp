// SPDX-License-Identifier: Apache-2.0
// Prices under a slider: a resharding goes the best way that an earlier position knows where one is near, the cheapest
// of all where none is, and what other hardware knows is of no use.
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "core/search/frontier_tracking/moved_ways.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using search::MovedWays;
using search::PairTable;
using test::close;
using test::scenario_on;

namespace {

constexpr const char* kHardware = "v100-16gb-2x4";

ScenarioPtr at(const ScenarioPtr& scenario, double inter, double intra = 1) {
  auto next = std::make_shared<Scenario>(*scenario);
  next->settings.factors.inter_bandwidth = inter;
  next->settings.factors.intra_bandwidth = intra;
  return next;
}

/// Nothing runs again, so that a table's entries follow from the ways of its tensor alone.
ScenarioPtr plain(const ModelPtr& model, const char* hardware) {
  auto next = std::make_shared<Scenario>(*scenario_on(model, hardware));
  next->settings.recompute = false;
  return next;
}

using Models = std::vector<std::shared_ptr<const ReshardingModel>>;

/// The best way of any of these, one by one.
double best_of(const Models& finders, const ReshardingModel& now, const PairTable& table, const Layout& from,
               const Layout& to) {
  double best = HUGE_VAL;
  for (const auto& finder : finders)
    best = std::min(best, now.path_of(*finder, table.shape, table.element_bytes, from, to).time_s);
  return best;
}

struct Setup {
  ScenarioPtr scenario;
  std::shared_ptr<const search::Structure> structure;
  ThreadPool pool{2};
  MovedWays ways;

  explicit Setup(const ModelPtr& model) : scenario(plain(model, kHardware)) {
    auto built = search::build_structure(*scenario, {}, {});
    if (!built) qFatal("%s", built.error().message().c_str());
    structure = *built;
  }
  MovedWays::Priced price(const ScenarioPtr& there, MovedWays::Search search = MovedWays::Search::far) {
    auto priced = ways.price(there, structure, nullptr, search, pool, {});
    if (!priced) qFatal("%s", priced.error().message().c_str());
    return std::move(*priced);
  }
  search::PricedProblem anew(const ScenarioPtr& there) {
    return std::move(*search::price_problem(search::Prices(there, structure), pool, {}));
  }
};

// Of ways as fast but for rounding one or the other is taken.
bool equal(const frontier::CostTable& a, const frontier::CostTable& b) {
  const auto x = a.points(), y = b.points();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& one, const auto& other) {
    return one.memory == other.memory && std::abs(one.time - other.time) <= 1e-12 * other.time;
  });
}

bool equal(const frontier::Problem& a, const frontier::Problem& b) {
  const auto alike = [](const auto& x, const auto& y) { return equal(x.costs, y.costs); };
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), alike) &&
         std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end(), alike);
}

}  // namespace

class MovedWaysTest : public QObject {
  Q_OBJECT

 private slots:
  void near_a_known_position_the_best_known_way_is_gone_data() {
    QTest::addColumn<int>("model");
    for (int m = 0; m < 3; ++m) QTest::addRow("%d", m) << m;
  }
  void near_a_known_position_the_best_known_way_is_gone() {
    constexpr std::size_t kEach = 7;  // entry of a row
    QFETCH(int, model);
    Setup setup(model == 0 ? test::mlp() : model == 1 ? test::residual() : test::attention());
    Models finders;
    for (const double inter : {1.0, 0.0625, 16.0})
      finders.push_back(setup.price(at(setup.scenario, inter), MovedWays::Search::always).prices->resharding());
    const auto there = at(setup.scenario, 0.2, 2);
    const auto moved = setup.price(there);
    const auto& s = *setup.structure;
    const ReshardingModel& now = *moved.prices->resharding();
    for (std::size_t p = 0; p < s.pairs.size(); ++p) {
      const PairTable& table = s.tables[s.pairs[p].table];
      for (std::size_t r = 0; r < table.from.size(); ++r)
        for (std::size_t c = (p + r) % kEach; c < table.to.size(); c += kEach) {
          const Layout &from = table.from[r], &to = table.to[c];
          search::PairTimes times;
          times.forward =
              best_of(finders, now, table, pair_starts_at_output(table.kind) ? from : from.without_partial(),
                      to.without_partial());
          if (table.gradient && !search::gradients_meet(table, from, to))
            times.backward = best_of(finders, now, table, to, from.without_partial());
          if (table.restores)
            times.restore = best_of(finders, now, table, to.without_partial(), from.without_partial());
          const auto expected = search::pair_alternatives(table, s.mesh, from, to, times);
          const auto found = moved.problem.problem.edges[p].costs[r * table.to.size() + c];
          QCOMPARE(found.size(), static_cast<std::size_t>(expected.count));
          for (int i = 0; i < expected.count; ++i) {
            QCOMPARE(found[static_cast<std::size_t>(i)].memory, expected.item[i].memory);
            QVERIFY(close(found[static_cast<std::size_t>(i)].time, expected.item[i].time));
          }
          const ReshardPath path = moved.prices->path(table, from.without_partial(), to.without_partial());
          QVERIFY(close(path.time_s, best_of(finders, now, table, from.without_partial(), to.without_partial())));
          QCOMPARE(path.steps.empty() ? from.without_partial() : path.steps.back().result, to.without_partial());
        }
    }
  }

  void where_the_hand_rests_or_no_position_is_near_ways_are_searched() {
    Setup setup(test::attention());
    const auto there = at(setup.scenario, 0.25, 4);
    setup.price(setup.scenario);
    // Near, and some way is no longer the best.
    QVERIFY(!equal(setup.price(there).problem.problem, setup.anew(there).problem));
    QVERIFY(equal(setup.price(there, MovedWays::Search::always).problem.problem, setup.anew(there).problem));
    const auto far = at(setup.scenario, 0.01, 4);
    QVERIFY(equal(setup.price(far).problem.problem, setup.anew(far).problem));
  }

  void positions_are_known_once_and_not_when_cancelled() {
    Setup setup(test::mlp());
    for (int i = 0; i < 3; ++i) setup.price(setup.scenario, MovedWays::Search::always);
    QCOMPARE(setup.ways.positions(), std::size_t(1));
    for (int i = 1; i <= 40; ++i) {
      setup.price(at(setup.scenario, 1 + 0.01 * i), MovedWays::Search::always);
      QVERIFY(setup.ways.positions() <= 32);
    }
    std::stop_source stop;
    stop.request_stop();
    RunContext cancelled;
    cancelled.stop = stop.get_token();
    const auto none = setup.ways.price(at(setup.scenario, 64), setup.structure, nullptr, MovedWays::Search::always,
                                       setup.pool, cancelled);
    QVERIFY(!none);
    QCOMPARE(setup.ways.positions(), std::size_t(0));
    const auto near = at(setup.scenario, 1.5);
    QVERIFY(equal(setup.price(near).problem.problem, setup.anew(near).problem));
  }

  void other_hardware_forgets_what_was_known() {
    Setup setup(test::attention());
    setup.price(at(setup.scenario, 0.25, 4));
    auto other = std::make_shared<Scenario>(*setup.scenario);
    other->cluster = plain(setup.scenario->model, "a100-80gb-2x4")->cluster;
    QVERIFY(equal(setup.price(other).problem.problem, setup.anew(other).problem));
    auto settings = std::make_shared<Scenario>(*setup.scenario);
    settings->settings.collectives = Collectives::rings;
    setup.price(at(setup.scenario, 0.25, 4));
    QVERIFY(equal(setup.price(settings).problem.problem, setup.anew(settings).problem));
  }
};

QTEST_APPLESS_MAIN(MovedWaysTest)
#include "moved_ways_test.moc"
