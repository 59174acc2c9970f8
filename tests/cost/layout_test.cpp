// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <set>

#include "core/cost/layout.h"
#include "cost/meshes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

using Walks = std::vector<std::vector<std::uint8_t>>;

// Y[b, s, n] = X[b, s, k] W[k, n]
Operator matmul(std::int64_t b, std::int64_t s, std::int64_t k, std::int64_t n) {
  Operator op;
  op.name = "matmul";
  op.kind = OperatorKind::matmul;
  op.dims = {{DimName::batch, DimRole::parallel, b},
             {DimName::sequence, DimRole::parallel, s},
             {DimName::in_channel, DimRole::reduction, k},
             {DimName::out_channel, DimRole::parallel, n}};
  op.inputs = {{TensorId(0), Walks{{0}, {1}, {2}}, true}, {TensorId(1), Walks{{2}, {3}}, true}};
  op.outputs = {{TensorId(2), Walks{{0}, {1}, {3}}, false}};
  return op;
}

Configuration configuration_of(std::initializer_list<int> values) {
  Configuration configuration;
  int axis = 0;
  for (const int value : values) configuration.axis[axis++] = static_cast<std::int8_t>(value);
  return configuration;
}

constexpr int kRepeat = Configuration::kRepeat;

std::vector<Configuration> enumerate(const Operator& op, const Mesh& mesh, bool windows = false) {
  return enumerate_configurations(Model(), op, mesh, windows);
}

// Counts, per level, how many axes each loop dimension takes: what is left of a configuration when axes of one level
// are interchangeable.
std::vector<std::vector<int>> unordered(const Mesh& mesh, const Operator& op, const Configuration& configuration) {
  std::vector<std::vector<int>> counts(2, std::vector<int>(op.dims.size() + 1, 0));
  for (int a = 0; a < mesh.count(); ++a) ++counts[mesh.axes[a].level][configuration.axis[a] + 1];
  return counts;
}

}  // namespace

class LayoutTest : public QObject {
  Q_OBJECT

 private slots:
  void mesh_has_one_axis_per_prime_factor() {
    const Mesh mesh = make_mesh(cluster_of(2, 8));
    QCOMPARE(mesh.count(), 4);
    QCOMPARE(mesh.devices(), 16);
    QCOMPARE(mesh.axes[0].level, kInterNode);
    QCOMPARE(mesh.axes[1].level, kIntraNode);
    QCOMPARE(mesh.axes[0].name, std::string("y"));
    const Mesh six = make_mesh(cluster_of(1, 6));
    QCOMPARE(six.count(), 2);
    QCOMPARE(six.axes[0].size, 2);
    QCOMPARE(six.axes[1].size, 3);
    QCOMPARE(make_mesh(cluster_of(1, 1)).devices(), 1);
    // Three pods of four nodes: the group of the outermost and one axis of a pod lies in all three pods.
    Cluster pods = cluster_of(12, 2);
    pods.pods = {{4, pods.links[kInterNode]}};
    const Mesh outer = make_mesh(pods);
    QCOMPARE(outer.count(), 4);
    QCOMPARE(outer.axes[0].size, 3);
    QCOMPARE(outer.axes[0].pod_level, 1);
    QCOMPARE(outer.axes[1].pod_level, 0);
    QVERIFY(outer.group(0b0011) == (DeviceGroup{6, 6, 1, 4, {3, 1, 1, 1}}));
    QVERIFY(outer.group(0b1010) == (DeviceGroup{4, 2, 2, 6, {1, 1, 1, 1}}));
    // Whoever leaves a large pod leaves the small ones in it.
    pods.pods = {{2, pods.links[kInterNode]}, {6, pods.links[kInterNode]}};
    QVERIFY(make_mesh(pods).group(0b0001) == (DeviceGroup{2, 2, 1, 12, {2, 2, 1, 1}}));
    QVERIFY(make_mesh(pods).group(0b0010) == (DeviceGroup{3, 3, 1, 8, {3, 1, 1, 1}}));
  }
  void mesh_of_a_huge_cluster_fits() {
    const Mesh most = make_mesh(cluster_of(8192, 8));
    QCOMPARE(most.count(), kMaxAxes);
    for (const MeshAxis& axis : most.axes) QCOMPARE(axis.size, 2);
    const Mesh mesh = make_mesh(cluster_of(1 << 17, 8));
    QCOMPARE(mesh.count(), kMaxAxes);
    QCOMPARE(mesh.devices(), (1 << 17) * 8);
    QCOMPARE(mesh.group((1u << kMaxAxes) - 1).nodes, 1 << 17);
  }
  void groups() {
    const Mesh mesh = make_mesh(cluster_of(2, 8));
    QCOMPARE(mesh.group(0b0001), (DeviceGroup{2, 2, 1, 8}));
    QCOMPARE(mesh.group(0b1100), (DeviceGroup{4, 1, 4, 4}));
    QCOMPARE(mesh.group(0b0011), (DeviceGroup{4, 2, 2, 4}));
    QCOMPARE(mesh.group(0), (DeviceGroup{1, 1, 1, 16}));
  }

  void words() {
    const Mesh mesh = make_mesh(cluster_of(2, 8));
    const Operator op = matmul(64, 128, 256, 512);
    QCOMPARE(describe(mesh, layout_of({0, 0, P, R}), {DimName::batch, DimName::sequence}),
             std::string("(batch yx, partial z)"));
    QCOMPARE(describe(mesh, Layout(), {DimName::batch}), std::string("replicated"));
    QCOMPARE(describe(mesh, configuration_of({3, 0, 0, kRepeat}), op), std::string("batch xz \u00b7 out-channel y"));
    QCOMPARE(describe(mesh, Configuration(), op), std::string("repeated"));
  }

  void local_part() {
    const Mesh mesh = make_mesh(cluster_of(2, 8));
    QCOMPARE(local_elements(mesh, layout_of({0, 1, 1, P}), {64, 100}), std::int64_t(32 * 25));
    QCOMPARE(local_elements(mesh, Layout(), {}), std::int64_t(1));
  }

  // A split reduction leaves a partial output; a split the weight does not walk leaves its gradient partial; repeated
  // axes hold copies and add nothing.
  void matmul_layouts() {
    const Operator op = matmul(64, 128, 256, 512);
    const auto configuration = configuration_of({0, 2, 3, kRepeat});
    const auto &x = op.inputs[0], &w = op.inputs[1], &y = op.outputs[0];
    QCOMPARE(forward_layout(op, x, false, configuration, 4), layout_of({0, 2, R, R}));
    QCOMPARE(forward_layout(op, w, false, configuration, 4), layout_of({R, 0, 1, R}));
    QCOMPARE(forward_layout(op, y, true, configuration, 4), layout_of({0, P, 2, R}));
    QCOMPARE(gradient_layout(op, x, false, configuration, 4), layout_of({0, 2, P, R}));
    QCOMPARE(gradient_layout(op, w, false, configuration, 4), layout_of({P, 0, 1, R}));
    QCOMPARE(gradient_layout(op, y, true, configuration, 4), layout_of({0, R, 2, R}));
  }

  // Summands of the output meet before the bias does: its gradient is the output's, whole wherever the sum is split,
  // and partial only where samples are. A factor of the sum that backward does not read is no bias.
  void a_bias_has_its_whole_gradient_where_the_sum_is_split() {
    Operator op = matmul(64, 128, 256, 512);
    op.inputs.push_back({TensorId(3), Walks{{3}}, false});
    const auto configuration = configuration_of({0, 2, 3, kRepeat});
    QCOMPARE(forward_layout(op, op.inputs[2], false, configuration, 4), layout_of({R, R, 0, R}));
    QCOMPARE(gradient_layout(op, op.inputs[2], false, configuration, 4), layout_of({P, R, 0, R}));
    op.inputs[1].saved = false;
    QCOMPARE(gradient_layout(op, op.inputs[1], false, configuration, 4), layout_of({P, 0, 1, R}));
  }

  void merged_dimension_splits_by_its_outermost_walker() {
    Operator op;
    op.kind = OperatorKind::view;
    op.dims = {{DimName::batch, DimRole::parallel, 8},
               {DimName::head, DimRole::parallel, 16},
               {DimName::head_channel, DimRole::parallel, 64}};
    op.inputs = {{TensorId(0), Walks{{0}, {1, 2}}, false}};
    op.outputs = {{TensorId(1), Walks{{0}, {1}, {2}}, false}};
    const Mesh mesh = mesh_of({}, {2, 2});
    for (const auto& c : enumerate(op, mesh)) QVERIFY(c.axis[0] != 2 && c.axis[1] != 2);
    QCOMPARE(forward_layout(op, op.inputs[0], false, configuration_of({0, 1}), 2), layout_of({0, 1}));
    op.dims[1].size = 1;  // nothing outside it any more
    bool found = false;
    for (const auto& c : enumerate(op, mesh)) found = found || c.axis[1] == 2;
    QVERIFY(found);
    QCOMPARE(forward_layout(op, op.inputs[0], false, configuration_of({0, 2}), 2), layout_of({0, 1}));
  }

  // resources/manual/mathematics.md, 1.5: C(p + r, r) with repeat, axis order ignored; less what splits three dims of a
  // tensor on one level.
  void matmul_count_on_one_level() {
    const Operator op = [] {  // no sequence: three iteration dims
      Operator o = matmul(64, 1, 256, 512);
      o.dims[1].splittable = false;
      return o;
    }();
    for (const auto& [sizes, count] :
         std::vector<std::pair<std::vector<int>, std::size_t>>{{{2, 2}, 10}, {{2, 2, 2, 2}, 35}}) {
      const Mesh mesh = mesh_of({}, sizes);
      std::set<std::vector<std::vector<int>>> kinds;
      for (const auto& c : enumerate(op, mesh)) kinds.insert(unordered(mesh, op, c));
      QCOMPARE(kinds.size(), count);
    }
  }
  void matmul_count_on_two_nodes() {
    const Operator op = matmul(64, 128, 256, 512);
    const auto configurations = enumerate(op, make_mesh(cluster_of(2, 8)));
    // Inside: C(7,3) = 35 multisets, five of which split k and n and have a second order; (b,s,k) and (b,s,n) split
    // three dimensions of X and Y. Between nodes: 5.
    QCOMPARE(configurations.size(), std::size_t(5 * (35 + 5 - 2)));
    QCOMPARE(std::set<Configuration>(configurations.begin(), configurations.end()).size(), configurations.size());
    QCOMPARE(configurations.front(), configuration_of({0, 0, 0, 0}));
    QVERIFY(std::find(configurations.begin(), configurations.end(), Configuration()) != configurations.end());
  }

  // Independent check of completeness: every assignment at all, filtered by the rules as resources/manual/costs.md, 1,
  // has them.
  void enumeration_is_complete_up_to_order() {
    for (const auto& [mesh, op] :
         std::vector<std::pair<Mesh, Operator>>{{mesh_of({2}, {2, 2}), matmul(4, 2, 6, 8)},
                                                {mesh_of({2}, {2, 3}), matmul(6, 4, 12, 9)},
                                                {mesh_of({}, {2, 2, 2}), matmul(2, 3, 8, 4)}}) {
      const int values = static_cast<int>(op.dims.size()) + 1;
      std::set<std::vector<std::vector<int>>> expected, found;
      int total = 1;
      for (int a = 0; a < mesh.count(); ++a) total *= values;
      for (int number = 0; number < total; ++number) {
        Configuration c;
        for (int a = 0, rest = number; a < mesh.count(); ++a, rest /= values)
          c.axis[a] = static_cast<std::int8_t>(rest % values - 1);
        bool legal = true;
        for (std::size_t l = 0; l < op.dims.size(); ++l) {
          std::int64_t product = 1;
          for (int a = 0; a < mesh.count(); ++a) product *= c.axis[a] == static_cast<int>(l) ? mesh.axes[a].size : 1;
          legal = legal && op.dims[l].size % product == 0;
        }
        for (const Access& access : {op.inputs[0], op.inputs[1], op.outputs[0]}) {
          for (const int level : {kInterNode, kIntraNode}) {
            std::set<int> dims;
            for (int a = 0; a < mesh.count(); ++a)
              for (const auto& walk : access.walks)
                if (mesh.axes[a].level == level && walk[0] == c.axis[a]) dims.insert(walk[0]);
            legal = legal && dims.size() <= 2;
          }
        }
        if (legal) expected.insert(unordered(mesh, op, c));
      }
      const auto configurations = enumerate(op, mesh);
      for (const auto& c : configurations) found.insert(unordered(mesh, op, c));
      QCOMPARE(found, expected);
    }
  }

  void axes_are_handed_out_in_one_order() {
    const Operator op = matmul(64, 128, 256, 512);
    const Mesh mesh = mesh_of({}, {2, 2, 2});
    const auto all = enumerate(op, mesh);
    const auto has = [&](std::initializer_list<int> values) {
      return std::find(all.begin(), all.end(), configuration_of(values)) != all.end();
    };
    QVERIFY(has({0, kRepeat, 3}) && !has({3, kRepeat, 0}) && !has({kRepeat, 0, 3}));
    QVERIFY(has({0, 2, 3}) && has({0, 3, 2}));
    QVERIFY(has({0, 1, kRepeat}) && !has({1, 0, kRepeat}));
    QVERIFY(!has({0, 1, 3}));  // three dimensions of the output on one level
    // Axes of different sizes are told apart.
    const auto mixed = enumerate(op, mesh_of({}, {2, 3}));
    QVERIFY(std::find(mixed.begin(), mixed.end(), configuration_of({3, kRepeat})) != mixed.end());
  }

  void windows_only_on_request() {
    Operator op = matmul(4, 8, 4, 4);
    op.dims[1] = {DimName::height, DimRole::window, 8};
    const Mesh mesh = mesh_of({}, {2});
    QCOMPARE(enumerate(op, mesh).size(), std::size_t(4));
    QCOMPARE(enumerate(op, mesh, true).size(), std::size_t(5));
    op.dims[1].splittable = false;
    QCOMPARE(enumerate(op, mesh, true).size(), std::size_t(4));
  }

  // Each device has samples of its own, or several have the same; other dimensions are whole.
  void data_is_brought_by_samples() {
    Operator op;
    op.kind = OperatorKind::input;
    op.dims = {{DimName::batch, DimRole::parallel, 8}, {DimName::channel, DimRole::parallel, 64}};
    op.outputs = {{TensorId(0), Walks{{0}, {1}}, false}};
    const Mesh mesh = make_mesh(cluster_of(2, 8));
    const auto found = enumerate(op, mesh);
    QCOMPARE(found.front(), configuration_of({0, 0, 0, kRepeat}));  // all that divide eight samples
    QCOMPARE(found.front(), data_parallel_configuration(op, mesh));
    std::set<std::pair<int, int>> split;  // axes between and inside the nodes
    for (const Configuration& c : found) {
      int inside = 0;
      for (int a = 1; a < 4; ++a) {
        QVERIFY(c.axis[a] == 0 || c.axis[a] == kRepeat);
        QVERIFY(a == 1 || c.axis[a] == kRepeat || c.axis[a - 1] == 0);  // the outermost ones
        inside += c.axis[a] == 0;
      }
      split.emplace(c.axis[0] == 0, inside);
    }
    QCOMPARE(split, (std::set<std::pair<int, int>>{{1, 0}, {1, 1}, {1, 2}, {0, 0}, {0, 1}, {0, 2}, {0, 3}}));
    QCOMPARE(found.size(), split.size());
    op.dims[0].size = 7;
    QCOMPARE(data_parallel_configuration(op, mesh), Configuration());
  }
};

QTEST_APPLESS_MAIN(LayoutTest)
#include "layout_test.moc"
