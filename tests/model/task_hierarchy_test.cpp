// SPDX-License-Identifier: Apache-2.0
// The hierarchy over a task graph: every sum and every edge against brute force on random graphs, its shape on graphs
// that are too long, too deep or have no scopes, and where backward and update tasks go.
#include "core/model/task_hierarchy.h"

#include <fmt/format.h>

#include <QtTest>
#include <map>
#include <random>

#include "core/import/source/model_source.h"
#include "core/schedule/training_graph.h"
#include "simulation/layered_dag.h"

using namespace turnpoint;

namespace {

TaskGraphPtr finish(TaskGraphBuilder& builder) {
  auto graph = builder.finish("test");
  if (!graph) qFatal("%s", graph.error().message().c_str());
  return *graph;
}

/// Forward tasks in random scopes, some of them with a backward task, edges from lower to higher numbers.
TaskGraphPtr random_graph(std::mt19937& random, int tasks, bool scopes, int spread) {
  TaskGraphBuilder builder;
  const auto below = [&](int n) { return int(random() % std::uint32_t(n)); };
  for (int i = 0; i < tasks; ++i) {
    TaskGraphBuilder::Task task;
    std::string path;
    for (int depth = below(4); scopes && depth > 0; --depth)
      path += fmt::format("{}{}", path.empty() ? "" : "/", below(spread));
    const std::string name = fmt::format("t{}", i);
    task.name = name;
    task.kind = below(3) > 0 ? TaskKind::forward : TaskKind(below(4));
    task.time_s = below(5) == 0 ? 0 : below(1000) * 1e-6;
    task.output_bytes = below(1 << 20), task.persistent_bytes = below(1 << 16);
    task.scope = builder.scope(path);
    builder.add_task(task);
  }
  for (int e = 0; e < tasks * 2; ++e) {
    const int a = below(tasks), b = below(tasks);
    if (a != b) builder.add_edge(std::min(a, b), std::max(a, b), below(1 << 16));
  }
  return finish(builder);
}

/// All that must hold of any hierarchy, counted anew from the graph.
void check(const TaskGraph& graph, const TaskHierarchy& h, std::mt19937& random) {
  QCOMPARE(h.order.size(), graph.task_count());
  std::vector<int> seen(graph.task_count(), 0);
  for (std::uint32_t p = 0; p < h.order.size(); ++p) {
    ++seen[h.order[p]];
    QCOMPARE(h.position[h.order[p]], p);
  }
  QVERIFY(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
  QCOMPARE(h.names.size(), h.groups.size());

  for (std::uint32_t g = 0; g < h.groups.size(); ++g) {
    const auto& group = h.groups[g];
    const auto children = h.children_of(g);
    QVERIFY(children.size() <= TaskHierarchy::kMaxChildren);
    if (g != 0) {
      QVERIFY(children.size() >= 2);
      QVERIFY(group.parent < g);
      QCOMPARE(h.children_of(group.parent)[group.ordinal], (TaskHierarchy::Child{g, true}));
      QCOMPARE(group.depth, h.groups[group.parent].depth + 1);
    }
    QVERIFY(group.depth <= TaskHierarchy::kMaxDepth + 6);
    std::uint32_t cursor = group.task_begin;
    for (std::size_t c = 0; c < children.size(); ++c) {
      if (children[c].is_group) {
        QCOMPARE(h.groups[children[c].index].task_begin, cursor);
        cursor = h.groups[children[c].index].task_end;
      } else {
        QCOMPARE(h.parent[children[c].index], g);
        QCOMPARE(h.ordinal[children[c].index], std::uint32_t(c));
        QCOMPARE(h.position[children[c].index], cursor++);
      }
    }
    QCOMPARE(cursor, group.task_end);
    // Sums over what contains() says is inside, which looks at positions only.
    std::array<std::uint32_t, 4> kinds{};
    double time = 0;
    std::int64_t output = 0, persistent = 0;
    for (TaskIndex t = 0; t < graph.task_count(); ++t) {
      if (!h.contains(g, t)) continue;
      ++kinds[std::size_t(graph.kind[t])];
      time += graph.time_s[t], output += graph.output_bytes[t], persistent += graph.persistent_bytes[t];
    }
    QCOMPARE(group.tasks_of_kind, kinds);
    QVERIFY(std::abs(group.time_s() - time) <= 1e-12 + 1e-9 * time);
    QCOMPARE(group.output_bytes, output);
    QCOMPARE(group.persistent_bytes, persistent);
  }

  // Edges: the lowest common group, found by walking up from both ends with sets instead of depths.
  const auto chain = [&](TaskIndex t) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> up{{h.parent[t], h.ordinal[t]}};
    while (up.back().first != 0) {
      const auto& group = h.groups[up.back().first];
      up.emplace_back(group.parent, group.ordinal);
    }
    return up;
  };
  struct Sum {
    std::uint32_t there = 0, back = 0;
    std::int64_t bytes_there = 0, bytes_back = 0;
    double cut = 0;
  };
  std::vector<std::uint32_t> device(graph.task_count());
  for (auto& d : device) d = random() % 5;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Sum> sums;
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e) {
      const auto from = chain(t), to = chain(graph.out_to[e]);
      for (const auto& [group, ordinal] : from) {
        const auto same = std::find_if(to.begin(), to.end(), [g = group](const auto& step) { return step.first == g; });
        if (same == to.end()) continue;
        Sum& sum = sums[{group, std::min(ordinal, same->second), std::max(ordinal, same->second)}];
        const bool there = ordinal < same->second;
        ++(there ? sum.there : sum.back);
        (there ? sum.bytes_there : sum.bytes_back) += graph.out_bytes[e];
        if (device[t] != device[graph.out_to[e]]) sum.cut += double(graph.out_bytes[e]);
        break;
      }
    }
  QCOMPARE(h.edges.size(), sums.size());
  const auto cut = cut_weights(h, device);
  for (std::uint32_t g = 0; g < h.groups.size(); ++g)
    for (std::uint32_t e = h.groups[g].edge_begin; e < h.groups[g].edge_end; ++e) {
      const auto& edge = h.edges[e];
      QVERIFY(edge.from < edge.to);
      const auto sum = sums.find({g, edge.from, edge.to});
      QVERIFY(sum != sums.end());
      QCOMPARE(edge.there, sum->second.there);
      QCOMPARE(edge.back, sum->second.back);
      QCOMPARE(edge.bytes_there, sum->second.bytes_there);
      QCOMPARE(edge.bytes_back, sum->second.bytes_back);
      QCOMPARE(cut[e], sum->second.cut);
    }
  // Time by device.
  for (int i = 0; i < 20; ++i) {
    const auto g = std::uint32_t(random() % h.groups.size());
    std::vector<double> expected(4, 0);
    const bool timed = h.groups[g].time_s() > 0;
    for (const TaskIndex t : h.tasks_of(g))
      expected[std::min<std::uint32_t>(device[t], 3)] += timed ? graph.time_s[t] : 1;
    QCOMPARE(time_by_device(h, g, device, 4), expected);
  }
}

TaskGraphPtr gpt2() {
  const auto source = open_model("builtin:gpt2");
  if (!source) return nullptr;
  const auto bound = (*source)->bind({8, 0});
  if (!bound) return nullptr;
  Settings settings;
  settings.batch = 8;
  const auto scenario = make_scenario(*bound, *cluster_preset("v100-16gb-2x4"), "v100-16gb-2x4", settings);
  if (!scenario) return nullptr;
  const auto graph = training_graph(**scenario);
  return graph ? *graph : nullptr;
}

}  // namespace

class TaskHierarchyTest : public QObject {
  Q_OBJECT

 private slots:
  void random_graphs_against_brute_force() {
    std::mt19937 random(7);
    for (int round = 0; round < 60; ++round) {
      const int tasks = round < 50 ? 1 + int(random() % 120) : 700 + int(random() % 400);
      const auto graph = random_graph(random, tasks, round % 3 != 0, 1 + round % 7);
      const auto h = build_task_hierarchy(graph);
      check(*graph, *h, random);
      if (QTest::currentTestFailed()) return;
    }
  }

  void a_training_graph_is_folded_to_its_layers() {
    const auto graph = gpt2();
    QVERIFY(graph);
    const auto h = build_task_hierarchy(graph);
    std::mt19937 random(1);
    check(*graph, *h, random);
    const auto homes = forward_homes(*graph);
    int folded = 0;
    for (TaskIndex t = 0; t < graph->task_count(); ++t) {
      const bool follows = graph->kind[t] == TaskKind::backward || graph->kind[t] == TaskKind::update;
      if (!follows) {
        QCOMPARE(homes[t], kNone);
        continue;
      }
      QVERIFY2(homes[t] != kNone, graph->describe(t).c_str());
      ++folded;
      // "h/0/fc1:weight-gradient" belongs to "h/0/fc1".
      const std::string name(graph->names[t]);
      QCOMPARE(std::string(graph->names[homes[t]]), name.substr(0, name.rfind(':')));
      QCOMPARE(h->parent[t], h->parent[homes[t]]);
    }
    QVERIFY(folded > 100);
    // Twelve layers of one shape stand at the root, in order.
    std::vector<std::string> layers;
    for (const auto& child : h->children_of(0))
      if (child.is_group && h->names[child.index].starts_with("layer")) layers.emplace_back(h->names[child.index]);
    QCOMPARE(layers.size(), std::size_t(12));
    for (std::size_t l = 0; l < layers.size(); ++l) QCOMPARE(layers[l], "layer" + std::to_string(l));
  }

  void mirrors_of_the_layered_graph_are_found_by_activation() {
    const auto dag = test::layered_dag(11744, 1);
    const auto graph = test::layered_graph(dag);
    const auto homes = forward_homes(*graph);
    for (std::uint64_t i = 0; i < dag.forward; ++i) QCOMPARE(homes[dag.mirror(i)], TaskIndex(i));
    for (std::size_t t = 2 * dag.forward; t < graph->task_count(); ++t) QVERIFY(homes[t] < dag.forward);
    const auto h = build_task_hierarchy(graph);
    std::mt19937 random(3);
    // Bands of depth: whatever is in an earlier one does not read from a later one.
    QVERIFY(h->names[h->children_of(0)[0].index].starts_with("depth 0"));
    for (const auto& edge : h->edges_of(0)) QVERIFY(edge.there > 0);
    QVERIFY(h->children_of(0).size() >= 10);
  }

  void long_levels_become_runs() {
    for (const int tasks : {299, 300, 301, 1000, 20000, 187742}) {
      TaskGraphBuilder builder;
      builder.name = "chain";
      for (int i = 0; i < tasks; ++i) {
        const std::string name = fmt::format("step {}", i);
        TaskGraphBuilder::Task task;
        task.name = name;
        builder.add_task(task);
        if (i > 0) builder.add_edge(i - 1, i);
      }
      const auto graph = finish(builder);
      const auto h = build_task_hierarchy(graph);
      std::size_t largest = 0;
      for (std::uint32_t g = 0; g < h->groups.size(); ++g) largest = std::max(largest, h->children_of(g).size());
      QVERIFY(largest <= TaskHierarchy::kMaxChildren);
      QCOMPARE(h->groups.size() == 1, tasks <= 300);
      // A chain in order stays one.
      for (TaskIndex t = 0; t < graph->task_count(); ++t) QCOMPARE(h->order[t], t);
      if (tasks == 1000)
        QCOMPARE(std::string(h->names[1]), std::string("tasks 0\xe2\x80\x93"
                                                       "19"));
      if (tasks == 187742) {
        const auto last = h->children_of(0).back();
        QVERIFY(QString::fromStdString(std::string(h->names[last.index])).endsWith(QStringLiteral("187,741")));
      }
    }
  }

  void names_give_paths_where_there_are_no_scopes() {
    for (const char separator : {'/', '.'}) {
      TaskGraphBuilder builder;
      for (int layer = 0; layer < 3; ++layer)
        for (const char* part : {"q", "k", "v"}) {
          const std::string name = fmt::format("net{}block{}{}{}", separator, layer, separator, part);
          TaskGraphBuilder::Task task;
          task.name = name;
          task.kind = TaskKind::forward;
          const auto id = builder.add_task(task);
          if (id > 0) builder.add_edge(id - 1, id);
        }
      const auto graph = finish(builder);
      const auto h = build_task_hierarchy(graph);
      QCOMPARE(h->children_of(0).size(), std::size_t(3));
      QCOMPARE(h->path(2), std::string("block1"));
      QCOMPARE(h->label(4), std::string("k"));
    }
  }

  void a_path_of_200000_parts_is_cut() {
    TaskGraphBuilder builder;
    std::string path;
    for (int i = 0; i < 200000; ++i) path += "a/";
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("t{}", i), scope = path + fmt::format("{}", i / 2);
      TaskGraphBuilder::Task task;
      task.name = name;
      task.scope = builder.scope(i == 3 ? "other" : scope);
      builder.add_task(task);
    }
    const auto graph = finish(builder);
    const auto h = build_task_hierarchy(graph);
    std::mt19937 random(1);
    check(*graph, *h, random);
  }

  void hundreds_of_tasks_folded_to_one_are_runs_too() {
    TaskGraphBuilder builder;
    TaskGraphBuilder::Task task;
    task.name = "shared", task.kind = TaskKind::forward;
    builder.add_task(task);
    task.name = "next";
    builder.add_task(task);
    builder.add_edge(0, 1);
    for (int i = 0; i < 1000; ++i) {
      const std::string name = fmt::format("shared:gradient #{}", i);
      task.name = name, task.kind = TaskKind::backward;
      builder.add_edge(0, builder.add_task(task));
    }
    const auto graph = finish(builder);
    const auto h = build_task_hierarchy(graph);
    std::mt19937 random(1);
    check(*graph, *h, random);
  }

  void an_empty_and_a_single_task() {
    TaskGraphBuilder builder;
    TaskGraphBuilder::Task task;
    task.name = "only";
    builder.add_task(task);
    const auto h = build_task_hierarchy(finish(builder));
    QCOMPARE(h->groups.size(), std::size_t(1));
    QCOMPARE(h->children_of(0).size(), std::size_t(1));
  }
};

QTEST_APPLESS_MAIN(TaskHierarchyTest)
#include "task_hierarchy_test.moc"
