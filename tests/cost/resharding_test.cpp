// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <random>

#include "core/cost/resharding.h"
#include "cost/meshes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

ReshardingModel paper_model(Mesh mesh) {
  const Cluster cluster = cluster_of(1, 4);
  return ReshardingModel(std::move(mesh), CollectiveModel(cluster, {}, CollectiveModel::Pricing::one_latency), 900e9);
}

double bytes_of(const ReshardPath& path) {
  double bytes = 0;
  for (const auto& step : path.steps) bytes += step.bytes;
  return bytes;
}

void compare(const ReshardPath& path, std::vector<ReshardMove> moves, double bytes, double time_s) {
  std::vector<ReshardMove> found;
  for (const auto& step : path.steps) found.push_back(step.move);
  QCOMPARE(found, moves);
  QCOMPARE(bytes_of(path), bytes);
  QVERIFY2(std::abs(path.time_s - time_s) < 1e-12, qPrintable(QString::number(path.time_s * 1e6)));
}

const std::vector<std::int64_t> kPaperShape = {200, 100};

// All layouts of one tensor with up to `partial` allowed, by plain counting.
std::vector<Layout> all_layouts(const Mesh& mesh, const std::vector<std::int64_t>& shape, bool partial) {
  std::vector<Layout> layouts(1);
  for (int a = 0; a < mesh.count(); ++a) {
    std::vector<Layout> next;
    for (const Layout& layout : layouts) {
      for (int value = partial ? P : R; value < static_cast<int>(shape.size()); ++value) {
        Layout extended = layout;
        extended.axis[a] = static_cast<std::int8_t>(value);
        std::vector<std::int64_t> split(shape.size(), 1);
        bool legal = true;
        for (int b = 0; b <= a; ++b)
          if (extended.axis[b] >= 0) split[extended.axis[b]] *= mesh.axes[b].size;
        for (std::size_t d = 0; d < shape.size(); ++d) legal = legal && shape[d] % split[d] == 0;
        if (legal) next.push_back(extended);
      }
    }
    layouts = std::move(next);
  }
  return layouts;
}

}  // namespace

class ReshardingTest : public QObject {
  Q_OBJECT

 private slots:
  // resources/manual/mathematics.md, F6: fp32 [200,100], 4 devices, 5 us, 10 GB/s, one latency per collective.
  void paper_figure_5() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    compare(model.path(kPaperShape, 4, layout_of({1, 1}), layout_of({0, 0})), {ReshardMove::all_to_all}, 15000, 6.5e-6);
  }
  void paper_figure_5_by_gathering_is_dearer() {
    const auto model = paper_model(mesh_of({}, {4}));
    compare(model.path(kPaperShape, 4, layout_of({1}), layout_of({R})), {ReshardMove::all_gather}, 60000, 11e-6);
    compare(model.path(kPaperShape, 4, layout_of({R}), layout_of({0})), {ReshardMove::slice}, 0, 0);
    compare(model.path(kPaperShape, 4, layout_of({1}), layout_of({0})), {ReshardMove::all_to_all}, 15000, 6.5e-6);
  }
  void paper_swapped_axes() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    compare(model.path(kPaperShape, 4, layout_of({0, 1}), layout_of({1, 0})), {ReshardMove::permute}, 20000, 7e-6);
    // The figure's other price, two all-to-alls of the local block over one axis each. It cannot be a path here: after
    // the first, the outer axis of rows would have to leave before the inner one.
    const CollectiveModel collectives(cluster_of(1, 4), {}, CollectiveModel::Pricing::one_latency);
    const auto one = collectives.time(Collective::all_to_all, model.mesh().group(1), 20000).value;
    QVERIFY(std::abs(2 * one - 12e-6) < 1e-15);
  }
  void paper_gather_both() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    compare(model.path(kPaperShape, 4, layout_of({0, 1}), layout_of({R, R})),
            {ReshardMove::all_gather, ReshardMove::all_gather}, 60000, 16e-6);
  }
  void paper_partial_to_split() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    compare(model.path(kPaperShape, 4, layout_of({0, P}), layout_of({0, 1})), {ReshardMove::reduce_scatter}, 20000,
            7e-6);
  }
  void paper_partial_to_replicated() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    compare(model.path(kPaperShape, 4, layout_of({0, P}), layout_of({0, R})), {ReshardMove::all_reduce}, 40000, 9e-6);
  }
  void paper_free_slice_first() {
    const auto model = paper_model(mesh_of({}, {2, 2}));
    const auto path = model.path(kPaperShape, 4, layout_of({0, R}), layout_of({R, 1}));
    compare(path, {ReshardMove::slice, ReshardMove::all_gather}, 20000, 7e-6);
    QCOMPARE(path.steps[0].result, layout_of({0, 1}));
    QCOMPARE(path.steps[1].result, layout_of({R, 1}));
  }

  // With ring latencies all-reduce costs exactly reduce-scatter plus all-gather: fewer collectives win.
  void ties_prefer_fewer_collectives() {
    const ReshardingModel model(mesh_of({2}, {2, 2, 2}), CollectiveModel(cluster_of(2, 8), {}), 900e9);
    const auto path = model.path({256, 1024}, 4, layout_of({0, P, R, R}), layout_of({0, R, R, R}));
    QCOMPARE(path.steps.size(), std::size_t(1));
    QCOMPARE(path.steps[0].move, ReshardMove::all_reduce);
  }

  void times_paths_and_routes_agree_exactly() {
    const std::vector<std::pair<Mesh, std::vector<std::int64_t>>> cases = {
        {mesh_of({2}, {2, 2}), {64, 6, 10}}, {mesh_of({2}, {2, 3}), {12, 18}}, {mesh_of({3}, {2}), {6, 6, 12, 5}}};
    for (const auto& [mesh, shape] : cases) {
      const Cluster cluster = cluster_of(mesh.axes[0].size, mesh.devices() / mesh.axes[0].size, 12.5e9, 130e9);
      const ReshardingModel model(mesh, CollectiveModel(cluster, {}), 900e9);
      WhatIf slower;
      slower.inter_bandwidth = 0.25;
      const ReshardingModel other(model, CollectiveModel(cluster, slower));
      const auto from = all_layouts(mesh, shape, true), to = all_layouts(mesh, shape, false);
      const auto times = model.times(shape, 4, from, to), slow = other.times(shape, 4, from, to);
      const auto routes = model.routes(shape, 4, from, to);
      QCOMPARE(model.reprice(routes), times);
      QCOMPARE(other.reprice(other.routes(shape, 4, from, to)), slow);
      const auto old_paths = other.reprice(routes);
      for (std::size_t i = 0; i < from.size(); ++i) {
        for (std::size_t j = 0; j < to.size(); ++j) {
          const auto path = model.path(shape, 4, from[i], to[j]);
          QCOMPARE(path.time_s, times[i * to.size() + j]);
          double sum = 0;
          for (const auto& step : path.steps) sum += step.time_s;
          QVERIFY(std::abs(sum - path.time_s) <= 1e-12 * sum);
          QCOMPARE(path.steps.empty() ? from[i] : path.steps.back().result, to[j]);
          QVERIFY(old_paths[i * to.size() + j] >= slow[i * to.size() + j] * (1 - 1e-12));
        }
      }
    }
  }

  // Under a slider: of what was the cheapest at other link speeds, the best is taken.
  void routes_of_several_models_are_the_best_of_their_paths() {
    const Mesh mesh = mesh_of({2}, {2, 2});
    const std::vector<std::int64_t> shape = {64, 6, 10};
    const auto with = [&](double inter, double intra) {
      WhatIf factors;
      factors.inter_bandwidth = inter, factors.intra_bandwidth = intra;
      return ReshardingModel(mesh, CollectiveModel(cluster_of(2, 4, 12.5e9, 130e9), factors), 900e9);
    };
    const ReshardingModel slow = with(0.05, 1), fast = with(40, 1), between = with(1, 1);
    const auto from = all_layouts(mesh, shape, true), to = all_layouts(mesh, shape, false);
    const auto both = fast.routes(shape, 4, from, to, slow.routes(shape, 4, from, to));
    const auto times = between.reprice(both);
    int slow_wins = 0, fast_wins = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < to.size(); ++j) {
        const auto a = between.path_of(slow, shape, 4, from[i], to[j]),
                   b = between.path_of(fast, shape, 4, from[i], to[j]);
        QCOMPARE(a.steps.empty() ? from[i] : a.steps.back().result, to[j]);
        slow_wins += a.time_s < b.time_s, fast_wins += b.time_s < a.time_s;
        const double best = std::min(a.time_s, b.time_s);
        QVERIFY(std::abs(times[i * to.size() + j] - best) <= 1e-12 * best);
      }
    }
    QVERIFY(slow_wins > 0 && fast_wins > 0);
    QCOMPARE(slow.reprice(both), slow.times(shape, 4, from, to));
    QCOMPARE(fast.reprice(both), fast.times(shape, 4, from, to));
  }

  // F7: lower bandwidth never makes a resharding cheaper.
  void times_fall_with_bandwidth() {
    const Mesh mesh = mesh_of({2}, {2, 2});
    const std::vector<std::int64_t> shape = {64, 48};
    const auto from = all_layouts(mesh, shape, true), to = all_layouts(mesh, shape, false);
    std::vector<double> before;
    for (const double factor : {0.125, 0.5, 1.0, 3.0, 8.0}) {
      WhatIf factors;
      factors.inter_bandwidth = factor;
      const ReshardingModel model(mesh, CollectiveModel(cluster_of(2, 4, 12.5e9, 130e9), factors), 900e9);
      const auto times = model.times(shape, 4, from, to);
      for (std::size_t i = 0; i < before.size(); ++i) QVERIFY(times[i] <= before[i] * (1 + 1e-12));
      before = times;
    }
  }

  // One collective is one ring over its group: (g-1)(a + s/B), twice that for an all-reduce
  // (resources/manual/mathematics.md, 0).
  void a_step_is_a_ring() {
    const Mesh mesh = mesh_of({2}, {2, 2, 2});
    const CollectiveModel collectives(cluster_of(2, 8, 12.5e9, 130e9), {});
    const ReshardingModel model(mesh, collectives, 900e9);
    const double gathered = model.step(ReshardMove::all_gather, 0b1111, 1e8).time_s;
    QVERIFY(gathered > 15.0 / 16 * 1e8 / 12.5e9 && gathered < 15.0 / 16 * 1e8 / 12.5e9 * 1.1);
    QCOMPARE(model.step(ReshardMove::reduce_scatter, 0b1111, 1e8).time_s, gathered);
    const ReshardStep reduced = model.step(ReshardMove::all_reduce, 0b1111, 1e8);
    QVERIFY(std::abs(reduced.time_s - 2 * gathered) < 1e-12);
    QCOMPARE(reduced.bytes, 2 * 15.0 / 16 * 1e8);
    QCOMPARE(model.step(ReshardMove::slice, 0b0110, 1e8).time_s, 0.0);
  }

  // Beyond the full graph's size the pair's own values are searched; the answer must still be a real path.
  void many_axes_stay_possible() {
    const Mesh mesh = mesh_of({2, 2, 2, 2}, {2, 2, 2});
    const std::vector<std::int64_t> shape = {256, 512, 1024};
    const ReshardingModel model(mesh, CollectiveModel(cluster_of(16, 8, 12.5e9, 130e9), {}), 900e9);
    const auto from = layout_of({0, 0, 0, 0, 0, P, 1}), to = layout_of({1, 0, R, 2, 2, 2, 0});
    const auto path = model.path(shape, 4, from, to);
    QVERIFY(std::isfinite(path.time_s));
    QCOMPARE(path.steps.back().result, to);
    QCOMPARE(model.times(shape, 4, {from}, {to}).front(), path.time_s);
    QCOMPARE(model.reprice(model.routes(shape, 4, {from}, {to})).front(), path.time_s);
  }
};

QTEST_APPLESS_MAIN(ReshardingTest)
#include "resharding_test.moc"
