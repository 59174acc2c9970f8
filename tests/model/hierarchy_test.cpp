// SPDX-License-Identifier: Apache-2.0
#include "core/model/hierarchy.h"

#include <QTest>
#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "views/graph_fixture.h"

using namespace turnpoint;

namespace {

/// What must hold of any hierarchy of any model; empty text: it does.
QString broken_rule(const Model& model, const Hierarchy& h) {
  if (h.groups.empty()) return "no root";
  std::vector<int> seen(model.operators.size(), 0);
  std::set<std::string> paths;
  for (std::uint32_t g = 0; g < h.groups.size(); ++g) {
    const auto& group = h.groups[g];
    if (group.children.size() > Hierarchy::kMaxChildren)
      return QString("group %1 has %2 children").arg(g).arg(group.children.size());
    const std::size_t least = g == 0 ? std::min<std::size_t>(2, model.operators.size()) : 2;
    if (group.children.size() < least) return QString("group %1 has %2 children").arg(g).arg(group.children.size());
    if (g > 0 && (group.parent >= g || group.name.empty() || !paths.insert(group.path).second))
      return QString("group %1: parent, name or path").arg(g);
    if (g > 0 && h.groups[group.parent].children[group.ordinal] != Hierarchy::Child{g, true})
      return QString("group %1: ordinal").arg(g);
    std::uint32_t count = 0;
    OperatorId last;
    for (std::uint32_t i = 0; i < group.children.size(); ++i) {
      const auto child = group.children[i];
      const OperatorId first = child.is_group ? h.groups[child.index].first : OperatorId(child.index);
      count += child.is_group ? h.groups[child.index].operators : 1;
      if (i > 0 && !(last < first)) return QString("group %1: children not in order").arg(g);
      last = first;
      if (child.is_group) continue;
      ++seen[child.index];
      if (h.parent[first] != g || h.ordinal[first] != i)
        return QString("operator %1: parent or ordinal").arg(child.index);
    }
    if (count != group.operators)
      return QString("group %1: %2 operators, says %3").arg(g).arg(count).arg(group.operators);
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] != 1) return QString("operator %1 occurs %2 times").arg(i).arg(seen[i]);
  for (const std::string& label : h.label)
    if (label.empty()) return "empty label";
  if (h.operators_of(0).size() != model.operators.size()) return "operators_of(root)";
  return {};
}

std::uint32_t group_named(const Hierarchy& h, const std::string& path) {
  for (std::uint32_t g = 0; g < h.groups.size(); ++g)
    if (h.groups[g].path == path) return g;
  return kNoGroup;
}

/// Equality of two groups decided the slow way: walk both in step, compare operators and who feeds whom.
bool equal_by_walk(const Model& model, const Hierarchy& h, std::uint32_t a, std::uint32_t b) {
  const auto left = h.operators_of(a), right = h.operators_of(b);
  if (left.size() != right.size()) return false;
  const auto place = [](const std::vector<OperatorId>& list, OperatorId op) {
    const auto at = std::lower_bound(list.begin(), list.end(), op);
    return at != list.end() && *at == op ? static_cast<int>(at - list.begin()) : -1;
  };
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Operator &x = model.operators[left[i]], &y = model.operators[right[i]];
    if (x.kind != y.kind || x.detail != y.detail || x.inputs.size() != y.inputs.size() ||
        x.dims.size() != y.dims.size())
      return false;
    for (std::size_t d = 0; d < x.dims.size(); ++d)
      if (x.dims[d].name != y.dims[d].name || x.dims[d].size != y.dims[d].size) return false;
    for (std::size_t k = 0; k < x.inputs.size(); ++k) {
      const Tensor &s = model.tensors[x.inputs[k].tensor], &t = model.tensors[y.inputs[k].tensor];
      if (s.shape != t.shape ||
          (s.producer.valid() ? place(left, s.producer) : -1) != (t.producer.valid() ? place(right, t.producer) : -1))
        return false;
    }
  }
  return true;
}

ModelPtr random_model(std::mt19937& random) {
  fixture::Maker make("random");
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int operators = 1 + pick(pick(4) == 0 ? 1200 : 60), breadth = 1 + pick(6), style = pick(4);
  std::vector<TensorId> made;
  for (int i = 0; i < operators; ++i) {
    std::string scope;
    for (int depth = pick(6); depth > 0; --depth)
      scope += std::string(pick(8) == 0 ? "/" : "") + "s" + std::to_string(pick(breadth)) + "/";
    std::vector<TensorId> inputs;
    for (int k = pick(3); k > 0 && !made.empty(); --k)
      inputs.push_back(made[static_cast<std::size_t>(pick(static_cast<int>(made.size())))]);
    const std::string name =
        style == 2 ? "" : (style == 1 ? scope : "") + "op" + std::to_string(i) + (style == 3 ? "/" : "");
    made.push_back(make.add(name, style == 0 ? scope : "", OperatorKind::elementwise, pick(2) ? "Add" : "Relu",
                            {fixture::dim(DimName::batch, 1 + pick(3))}, {0}, inputs));
  }
  return make.finish();
}

}  // namespace

class HierarchyTest : public QObject {
  Q_OBJECT
 private slots:
  void transformer_layers() {
    const auto model = fixture::transformer(24);
    const auto h = build_hierarchy(*model);
    QCOMPARE(broken_rule(*model, h), QString());
    QCOMPARE(h.groups[0].children.size(), std::size_t(28));  // tokens, embed, 24 layers, lm_head, loss
    const auto layer0 = group_named(h, "layer0"), layer23 = group_named(h, "layer23");
    QVERIFY(layer0 != kNoGroup && layer23 != kNoGroup);
    QCOMPARE(h.groups[layer0].operators, 13u);
    QCOMPARE(h.groups[layer0].shape_class, h.groups[layer23].shape_class);
    QVERIFY(h.groups[group_named(h, "layer0/mlp")].shape_class !=
            h.groups[group_named(h, "layer0/attention")].shape_class);
    const auto containers = h.layer_containers();
    QVERIFY(containers[0]);
    QCOMPARE(std::count(containers.begin(), containers.end(), true), 1);
  }

  void nested_layers_are_found_below_containers() {
    const auto model = fixture::convolutional();
    const auto h = build_hierarchy(*model);
    QCOMPARE(broken_rule(*model, h), QString());
    const auto containers = h.layer_containers();
    const auto stage = group_named(h, "features/stage2");
    QVERIFY(stage != kNoGroup);
    QVERIFY(containers[stage]);
    const auto block = group_named(h, "features/stage2/block_with_a_rather_long_name.1");
    QVERIFY(block != kNoGroup);
    QVERIFY(!containers[block]);
    // A group of one operator becomes that operator, named by what the writer called it.
    const auto children = h.groups[block].children;
    QCOMPARE(h.label[OperatorId(children.front().index)], std::string("conv1"));
  }

  void layers_inside_a_lone_group_are_found() {
    // As vision transformers are exported: everything in "encoder", all layers in its only group, single operators
    // around.
    fixture::Maker make("vit");
    const std::vector<LoopDimension> dims{fixture::dim(DimName::batch, 8)};
    TensorId x = make.add("/conv_proj/Conv", "", OperatorKind::input, "Conv", dims, {0}, {});
    x = make.add("/encoder/Add", "", OperatorKind::elementwise, "Add", dims, {0}, {x});
    for (int l = 0; l < 12; ++l)
      for (int i = 0; i < 8; ++i)
        x = make.add("/encoder/layers/encoder_layer_" + std::to_string(l) + "/op" + std::to_string(i) + "/Relu", "",
                     OperatorKind::elementwise, "Relu", dims, {0}, {x});
    x = make.add("/encoder/ln/LayerNorm", "", OperatorKind::normalisation, "LayerNorm", dims, {0}, {x});
    const auto model = make.finish();
    const auto h = build_hierarchy(*model);
    QCOMPARE(broken_rule(*model, h), QString());
    const auto containers = h.layer_containers();
    QVERIFY(containers[group_named(h, "encoder")] && containers[group_named(h, "encoder/layers")]);
    QVERIFY(!containers[group_named(h, "encoder/layers/encoder_layer_3")]);
  }

  void equal_groups_agree_with_a_slow_walk() {
    for (const auto& model : {fixture::transformer(5), fixture::convolutional(9)}) {
      const auto h = build_hierarchy(*model);
      int equal = 0;
      for (std::uint32_t a = 1; a < h.groups.size(); ++a)
        for (std::uint32_t b = a + 1; b < h.groups.size(); ++b) {
          const bool same = h.groups[a].shape_class == h.groups[b].shape_class;
          QCOMPARE(same, equal_by_walk(*model, h, a, b));
          equal += same;
        }
      QVERIFY(equal >= 10);
    }
  }

  void different_shapes_or_wiring_are_different() {
    const auto layers = [](bool other_wiring, std::int64_t other_size) {
      fixture::Maker make("two");
      TensorId x = make.add("in", "", OperatorKind::input, "Input", {fixture::dim(DimName::batch, 8)}, {0}, {});
      for (int l = 0; l < 2; ++l) {
        const std::string scope = "layer" + std::to_string(l);
        const std::vector<LoopDimension> dims{fixture::dim(DimName::batch, l ? other_size : 8)};
        const TensorId a = make.add("a" + scope, scope, OperatorKind::elementwise, "Relu", dims, {0}, {x});
        const TensorId b = make.add("b" + scope, scope, OperatorKind::elementwise, "Relu", dims, {0}, {a});
        x = make.add("c" + scope, scope, OperatorKind::elementwise, "Relu", dims, {0}, {l && other_wiring ? a : b});
      }
      const auto model = make.finish();
      const auto h = build_hierarchy(*model);
      return h.groups[group_named(h, "layer0")].shape_class == h.groups[group_named(h, "layer1")].shape_class;
    };
    QVERIFY(layers(false, 8));
    QVERIFY(!layers(true, 8));
    QVERIFY(!layers(false, 16));
  }

  void flat_graphs_are_cut_into_bands() {
    for (const int n : {1, 2, 63, 65, 401, 2000, 20000, 170000}) {
      const auto model = fixture::chain(n);
      const auto h = build_hierarchy(*model);
      QCOMPARE(broken_rule(*model, h), QString());
      QCOMPARE(h.groups.size() > 1, n > 64);
    }
  }

  void a_few_named_groups_do_not_hide_that_the_rest_is_flat() {
    fixture::Maker make("inception");
    const std::vector<LoopDimension> dims{fixture::dim(DimName::batch, 8)};
    TensorId x = make.add("in", "", OperatorKind::input, "Input", dims, {0}, {});
    for (int i = 0; i < 140; ++i) {
      std::string name = std::to_string(i);
      if (i % 35 < 3) name = std::to_string(i / 35).append("/n").append(name);
      x = make.add(name, "", OperatorKind::elementwise, "Relu", dims, {0}, {x});
    }
    const auto model = make.finish();
    const auto h = build_hierarchy(*model);
    QCOMPARE(broken_rule(*model, h), QString());
    QVERIFY2(h.groups[0].children.size() < 20, "the root is cut into bands");
  }

  void bands_end_where_few_tensors_are_alive() {
    // Diamonds of four branches: between two diamonds one tensor is alive, inside four.
    fixture::Maker make("diamonds");
    const std::vector<LoopDimension> dims{fixture::dim(DimName::batch, 8)};
    TensorId x = make.add("in", "", OperatorKind::input, "Input", dims, {0}, {});
    std::vector<bool> inside{false};
    for (int d = 0; d < 40; ++d) {
      std::vector<TensorId> branches;
      for (int b = 0; b < 4; ++b)
        branches.push_back(make.add("b", "", OperatorKind::elementwise, "Relu", dims, {0}, {x})),
            inside.push_back(true);
      x = make.add("join", "", OperatorKind::elementwise, "Add", dims, {0}, branches);
      inside.push_back(false);
    }
    const auto h = build_hierarchy(*make.finish());
    QVERIFY(h.groups.size() > 3);
    for (std::size_t g = 2; g < h.groups.size(); ++g) QVERIFY(!inside[h.groups[g].first.index - 1]);
  }

  // A network without names is a row of blocks, between which all goes through one tensor, in stages of one shape.
  void nameless_networks_are_stages_of_blocks() {
    fixture::Maker make("residual");
    std::vector<LoopDimension> dims{fixture::dim(DimName::batch, 8), fixture::dim(DimName::channel, 64)};
    int number = 0;
    const auto op = [&](const char* kind, std::vector<TensorId> from) {
      return make.add(std::string(kind).append(" ").append(std::to_string(++number)), "", OperatorKind::elementwise,
                      kind, dims, {0, 1}, std::move(from));
    };
    TensorId mask = make.add("gpu_0/mask", "", OperatorKind::input, "Input", dims, {0, 1}, {});
    TensorId x = make.add("gpu_0/image", "", OperatorKind::input, "Input", dims, {0, 1}, {});
    for (const char* kind : {"Conv", "Norm", "Relu"}) x = op(kind, {x});
    const int in_stage[] = {3, 4, 2};
    for (int stage = 0; stage < 3; ++stage) {
      dims[1].size = 64 << stage;
      for (int b = 0; b < in_stage[stage]; ++b) {
        TensorId way = x;
        for (const char* kind : {"Conv", "Norm", "Relu", "Conv", "Norm", "Relu", "Conv", "Norm"}) way = op(kind, {way});
        x = op("Relu", {op("Add", {way, x})});
      }
    }
    make.add("Gemm 1", "", OperatorKind::matmul, "Gemm", dims, {0, 1}, {x, mask});  // the mask is alive all along
    const auto model = make.finish();
    const auto h = build_hierarchy(*model);
    QCOMPARE(broken_rule(*model, h), QString());
    std::vector<std::string> names;
    for (const auto child : h.groups[0].children)
      if (child.is_group) names.push_back(h.groups[child.index].name);
    QCOMPARE(names, (std::vector<std::string>{"stage 1", "stage 2", "stage 3"}));
    int block = 0;
    for (int stage = 0; stage < 3; ++stage) {
      const auto& around = h.groups[std::size_t(1 + stage)];
      QCOMPARE(around.children.size(), std::size_t(in_stage[stage]));
      for (const auto child : around.children) {
        const auto& one = h.groups[child.index];
        QCOMPARE(one.name, "block " + std::to_string(++block));
        QCOMPARE(one.operators, 10u);
      }
    }
    // Layers are the blocks, not the stages around them.
    const auto containers = h.layer_containers();
    QVERIFY(containers[1] && containers[2]);
    // A chain has no blocks.
    const auto chain = build_hierarchy(*fixture::chain(200));
    for (const auto& group : chain.groups) QVERIFY(!QString::fromStdString(group.name).startsWith("block"));
  }

  void any_model_keeps_the_rules() {
    for (unsigned seed = 1; seed <= 400; ++seed) {
      std::mt19937 random(seed);
      const auto model = random_model(random);
      const auto h = build_hierarchy(*model);
      const QString broken = broken_rule(*model, h);
      QVERIFY2(broken.isEmpty(), qPrintable(QString("seed %1: %2").arg(seed).arg(broken)));
      QCOMPARE(h.layer_containers().size(), h.groups.size());
    }
  }

  void empty_and_deep_models() {
    const auto none = build_hierarchy(Model{});
    QCOMPARE(none.groups.size(), std::size_t(1));
    fixture::Maker make("deep");
    std::string scope;
    for (int i = 0; i < 3000; ++i) {
      scope += "a/";
      make.add("op" + std::to_string(i), scope, OperatorKind::elementwise, "Relu", {fixture::dim(DimName::batch, 8)},
               {0}, {});
    }
    const auto model = make.finish();
    QCOMPARE(broken_rule(*model, build_hierarchy(*model)), QString());
  }

  void stems() {
    QCOMPARE(name_stem("layer12"), std::string("layer"));
    QCOMPARE(name_stem("h/3"), std::string("h"));
    QCOMPARE(name_stem("block.7"), std::string("block"));
    QCOMPARE(name_stem("12"), std::string());
    QCOMPARE(name_stem("mlp"), std::string("mlp"));
  }

  void time_grows_with_the_model() {
    const auto small = fixture::transformer(150), large = fixture::transformer(1500);
    const auto seconds = [](const Model& model) {
      double best = 1e9;
      for (int i = 0; i < 3; ++i) {
        const std::clock_t begin = std::clock();
        build_hierarchy(model);
        best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      }
      return best;
    };
    const double a = seconds(*small), b = seconds(*large);
    qInfo("hierarchy of %zu operators %.1f ms, of %zu %.1f ms", small->operators.size(), a * 1e3,
          large->operators.size(), b * 1e3);
    QVERIFY2(b < 60 * std::max(a, 1e-3), "more than n log n");
  }
};

QTEST_APPLESS_MAIN(HierarchyTest)
#include "hierarchy_test.moc"
