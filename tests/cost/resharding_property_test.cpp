// SPDX-License-Identifier: Apache-2.0
// Paths are executable (every step moves real elements to where the layout says they are) and optimal (against a
// second, plain implementation of moves and shortest paths).
#include <QTest>
#include <random>

#include "core/cost/resharding.h"
#include "cost/device_arrays.h"
#include "cost/meshes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct Case {
  std::vector<int> across, inside;
  std::vector<std::int64_t> shape;
};

const std::vector<Case> kSmall = {{{2}, {2, 2}, {8, 4}}, {{2}, {3}, {12, 6}},     {{3}, {2}, {6, 4, 12}},
                                  {{2, 2}, {2}, {8, 8}}, {{}, {2, 2}, {4, 2, 4}}, {{2}, {2}, {4, 6, 2}},
                                  {{}, {2, 3}, {6, 6}}};

bool divides(const Mesh& mesh, const std::vector<std::int64_t>& shape, const Layout& layout) {
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] % mesh.size_of(layout.mask(static_cast<std::int8_t>(d))) != 0) return false;
  return true;
}

std::vector<Layout> all_layouts(const Mesh& mesh, const std::vector<std::int64_t>& shape) {
  std::vector<Layout> layouts;
  const int values = static_cast<int>(shape.size()) + 2;
  int total = 1;
  for (int a = 0; a < mesh.count(); ++a) total *= values;
  for (int number = 0; number < total; ++number) {
    Layout layout;
    for (int a = 0, rest = number; a < mesh.count(); ++a, rest /= values)
      layout.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(rest % values - 2);
    if (divides(mesh, shape, layout)) layouts.push_back(layout);
  }
  return layouts;
}

Layout random_layout(std::mt19937_64& random, const Mesh& mesh, const std::vector<std::int64_t>& shape, bool partial) {
  for (;;) {
    Layout layout;
    for (int a = 0; a < mesh.count(); ++a) {
      const int value = static_cast<int>(random() % (shape.size() + (partial ? 2 : 1))) - (partial ? 2 : 1);
      layout.axis[static_cast<std::size_t>(a)] = static_cast<std::int8_t>(value);
    }
    if (divides(mesh, shape, layout)) return layout;
  }
}

// The price of getting from one layout to another in one collective, infinite if none does it. Works on the pair alone.
double one_move(const Mesh& mesh, const CollectiveModel& collectives, const std::vector<std::int64_t>& shape,
                const Layout& from, const Layout& to) {
  std::uint32_t changed = 0, node_axes = 0, device_axes = 0;
  std::vector<int> olds, news;
  for (int a = 0; a < mesh.count(); ++a) {
    const auto i = static_cast<std::size_t>(a);
    (mesh.axes[i].level == kInterNode ? node_axes : device_axes) |= 1u << a;
    if (from.axis[i] == to.axis[i]) continue;
    changed |= 1u << a;
    olds.push_back(from.axis[i]);
    news.push_back(to.axis[i]);
  }
  const double local = static_cast<double>(local_elements(mesh, from, shape) * 4);
  const auto price = [&](Collective kind, std::uint32_t axes, double bytes) {
    return collectives.time(kind, mesh.group(axes), bytes).value;
  };
  bool same_sizes = from.mask(P) == to.mask(P);
  for (std::size_t d = 0; d < shape.size(); ++d)
    same_sizes = same_sizes && mesh.size_of(from.mask(static_cast<std::int8_t>(d))) ==
                                   mesh.size_of(to.mask(static_cast<std::int8_t>(d)));
  if (same_sizes) {
    const double inside = price(Collective::send, device_axes, local);
    return changed & node_axes ? std::max(inside, price(Collective::send, node_axes, local)) : inside;
  }
  const auto uniform = [](const std::vector<int>& v) {
    return std::all_of(v.begin(), v.end(), [&](int x) { return x == v[0]; });
  };
  if (!uniform(olds) || !uniform(news)) return INFINITY;
  // All of a dimension's axes that do not change must be outside the changed ones.
  const auto innermost = [&](const Layout& layout, int dim) {
    const std::uint32_t staying = layout.mask(static_cast<std::int8_t>(dim)) & ~changed;
    for (int a = 0; a < mesh.count(); ++a)
      for (int b = 0; b < a; ++b)
        if ((staying >> a & 1u) && (changed >> b & 1u)) return false;
    return true;
  };
  const int left = olds[0], joined = news[0];
  if ((left >= 0 && !innermost(from, left)) || (joined >= 0 && !innermost(to, joined)) || joined == P) return INFINITY;
  const double size = static_cast<double>(mesh.size_of(changed));
  if (left == P) return price(joined == R ? Collective::all_reduce : Collective::reduce_scatter, changed, local);
  if (left == R) return 0;
  return joined == R ? price(Collective::all_gather, changed, local * size)
                     : price(Collective::all_to_all, changed, local);
}

}  // namespace

class ReshardingPropertyTest : public QObject {
  Q_OBJECT

  // Returns what is wrong with the path, or nothing.
  static std::string carry_out(const Mesh& mesh, const std::vector<std::int64_t>& shape, const Layout& from,
                               const Layout& to, const ReshardPath& path) {
    DeviceArrays devices(mesh, shape, from);
    if (!devices.matches(from)) return "the start is not what it says";
    for (const auto& step : path.steps) {
      if (auto problem = devices.execute(step); !problem.empty()) return problem;
      if (!devices.matches(step.result)) return std::string(to_string(step.move)) + " does not lead where it says";
    }
    return devices.matches(to) ? "" : "the path ends elsewhere";
  }

 private slots:
  void every_path_can_be_carried_out() {
    std::mt19937_64 random(3);
    std::map<ReshardMove, int> seen;
    for (const auto& c : kSmall) {
      const Mesh mesh = mesh_of(c.across, c.inside);
      for (const double between : {2e9, 400e9}) {
        const int nodes = static_cast<int>(mesh.size_of((1u << c.across.size()) - 1));
        const ReshardingModel model(
            mesh, CollectiveModel(cluster_of(nodes, mesh.devices() / nodes, between, 100e9), {}), 900e9);
        for (int trial = 0; trial < 400; ++trial) {
          const Layout from = random_layout(random, mesh, c.shape, true),
                       to = random_layout(random, mesh, c.shape, false);
          // Large elements make bandwidth count, small ones latency.
          const auto path = model.path(c.shape, trial % 2 ? 1 << 20 : 4, from, to);
          QVERIFY(std::isfinite(path.time_s));
          const std::string problem = carry_out(mesh, c.shape, from, to, path);
          QVERIFY2(problem.empty(), (problem + ", trial " + std::to_string(trial)).c_str());
          for (const auto& step : path.steps) ++seen[step.move];
        }
      }
    }
    QCOMPARE(seen.size(), std::size_t(6));  // every kind of move was put to the test
  }

  void paths_of_many_axes_can_be_carried_out() {
    std::mt19937_64 random(4);
    const Mesh mesh = mesh_of({2, 2, 2}, {2, 2, 2, 2});
    const std::vector<std::int64_t> shape = {16, 16, 8};
    const ReshardingModel model(mesh, CollectiveModel(cluster_of(8, 16, 12.5e9, 130e9), {}), 900e9);
    for (int trial = 0; trial < 12; ++trial) {
      Layout from = random_layout(random, mesh, shape, true);
      const Layout to = random_layout(random, mesh, shape, false);
      while (mesh.size_of(from.mask(P)) > 16) from = random_layout(random, mesh, shape, true);
      const auto path = model.path(shape, 4096, from, to);
      const std::string problem = carry_out(mesh, shape, from, to, path);
      QVERIFY2(problem.empty(), problem.c_str());
    }
  }

  void times_are_optimal() {
    for (const auto& c : kSmall) {
      const Mesh mesh = mesh_of(c.across, c.inside);
      const int nodes = static_cast<int>(mesh.size_of((1u << c.across.size()) - 1));
      const auto layouts = all_layouts(mesh, c.shape);
      std::vector<Layout> targets;
      for (const auto& layout : layouts)
        if (!layout.has_partial()) targets.push_back(layout);
      for (const auto& [between, latency] :
           std::vector<std::pair<double, double>>{{1e3, 0}, {2e7, 5e-6}, {1e9, 5e-6}}) {
        const CollectiveModel collectives(cluster_of(nodes, mesh.devices() / nodes, between, 3e7, latency), {});
        const auto times = ReshardingModel(mesh, collectives, 900e9).times(c.shape, 4, layouts, targets);
        // Bellman-Ford over every pair that one collective joins, towards each target.
        const std::size_t n = layouts.size();
        std::vector<double> move(n * n);
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j)
            move[i * n + j] = i == j ? INFINITY : one_move(mesh, collectives, c.shape, layouts[i], layouts[j]);
        for (std::size_t t = 0; t < targets.size(); ++t) {
          std::vector<double> best(n, INFINITY);
          best[static_cast<std::size_t>(std::find(layouts.begin(), layouts.end(), targets[t]) - layouts.begin())] = 0;
          for (bool better = true; better;) {
            better = false;
            for (std::size_t i = 0; i < n; ++i)
              for (std::size_t j = 0; j < n; ++j)
                if (const double time = move[i * n + j] + best[j]; time < best[i]) best[i] = time, better = true;
          }
          for (std::size_t i = 0; i < n; ++i)
            QVERIFY2(std::abs(times[i * targets.size() + t] - best[i]) <= 1e-9 * best[i] + 1e-13,
                     qPrintable(QString("%1 instead of %2").arg(times[i * targets.size() + t]).arg(best[i])));
        }
      }
    }
  }

  // A wrong step must not pass the simulation unnoticed.
  void the_simulation_can_fail() {
    const Mesh mesh = mesh_of({}, {2, 2});
    const std::vector<std::int64_t> shape = {8, 8};
    ReshardPath path;
    ReshardStep step;
    step.move = ReshardMove::all_gather;
    step.axes = 1;  // the outer axis of rows leaves before the inner one
    step.result = layout_of({R, 0});
    path.steps = {step};
    QVERIFY(!carry_out(mesh, shape, layout_of({0, 0}), layout_of({R, 0}), path).empty());
    step.move = ReshardMove::all_reduce;  // of what is whole already
    step.result = layout_of({R, R});
    path.steps = {step};
    QVERIFY(!carry_out(mesh, shape, layout_of({R, R}), layout_of({R, R}), path).empty());
    // A permutation inside the node when the rows lie in the other node.
    const Mesh two = mesh_of({2}, {2});
    step.move = ReshardMove::permute;
    step.axes = 2;
    step.result = layout_of({R, 0});
    path.steps = {step};
    QVERIFY(!carry_out(two, shape, layout_of({0, R}), layout_of({R, 0}), path).empty());
  }
};

QTEST_APPLESS_MAIN(ReshardingPropertyTest)
#include "resharding_property_test.moc"
