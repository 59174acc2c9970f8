// SPDX-License-Identifier: Apache-2.0
// What a step of annealing changes: layers that move as a whole or in part. Tasks that nothing connects go by ones and
// twos but for that, so that three at once are a layer's.
#include "core/search/annealing/walk.h"

#include <fmt/format.h>

#include <QtTest>
#include <algorithm>
#include <set>

#include "core/simulation/simulator.h"

using namespace turnpoint;

namespace {

constexpr std::uint32_t kEmpty = 2;  ///< the device on which nothing lies
constexpr int kDraws = 60000;
using Moved = std::set<TaskIndex>;

TaskIndex add(TaskGraphBuilder& builder, std::size_t& count, const char* scope, TaskKind kind = TaskKind::forward) {
  TaskGraphBuilder::Task task;
  const std::string name = fmt::format("t{}", count++);
  task.name = name;
  task.kind = kind;
  task.time_s = 1;
  task.output_bytes = 1;
  if (*scope) task.scope = builder.scope(scope);
  return builder.add_task(task);
}

/// What moved to the empty device at once, three tasks or more, and how often.
struct Draws {
  std::set<Moved> seen;
  int count = 0;
};
Draws draw_moves(const TaskGraph& graph, const Placement& placement, double calls) {
  placement::PlacementRequest request;
  request.devices = placement.devices;
  const placement::ScheduleCosts costs(graph, placement.devices);
  const placement::Units units = placement::make_units(graph);
  annealing::Walk walk(costs, request, nullptr);
  walk.begin_at(placement);
  walk.expect(calls);
  placement::Random random(3);
  Draws draws;
  for (int i = 0; i < kDraws; ++i) {
    if (!walk.propose(random)) qFatal("nothing to change");
    Moved moved;
    for (TaskIndex t = 0; t < graph.task_count(); ++t)
      if (walk.device_of(units.of_task[t]) == kEmpty) moved.insert(t);
    walk.put_back();
    if (moved.size() < 3) continue;
    draws.seen.insert(std::move(moved));
    ++draws.count;
  }
  return draws;
}

}  // namespace

class WalkTest : public QObject {
  Q_OBJECT

 private slots:
  /// All of a layer, or what it runs from some instant on, or up to it, of one kind or of both, from one device or from
  /// all: each of these is drawn, and nothing else.
  void layers_move_whole_and_in_part() {
    const char* const layers[] = {"a", "b", "c"};
    TaskGraphBuilder builder;
    std::size_t count = 0;
    Placement placement;
    placement.devices = 3;
    for (std::uint32_t i = 0; i < 24; ++i) {
      add(builder, count, layers[i % 3], i / 3 % 2 ? TaskKind::backward : TaskKind::forward);
      placement.device.push_back(i < 18 ? 0 : 1);
    }
    const TaskGraphPtr graph = *builder.finish("layers");
    const auto run = simulate(*graph, placement);
    QVERIFY(run);
    std::set<Moved> expected;
    for (TaskIndex chosen = 0; chosen < 24; ++chosen)
      for (const char* part : {"all", "from then on", "up to then"})
        for (const bool one_kind : {false, true})
          for (const bool all_devices : {false, true}) {
            Moved moved;
            for (TaskIndex t = 0; t < 24; ++t) {
              const bool whole = std::string_view(part) == "all", later = std::string_view(part) == "from then on";
              if (graph->scope[t] != graph->scope[chosen]) continue;
              if (!all_devices && placement.device[t] != placement.device[chosen]) continue;
              if (!whole && one_kind && graph->kind[t] != graph->kind[chosen]) continue;
              if (!whole && later && run->start_s[t] < run->start_s[chosen]) continue;
              if (!whole && !later && run->start_s[t] > run->start_s[chosen]) continue;
              moved.insert(t);
            }
            if (moved.size() >= 3) expected.insert(moved);
          }
    QVERIFY(expected.size() > 50);
    const Draws few = draw_moves(*graph, placement, 1);
    QVERIFY2(few.seen == expected, qPrintable(QString("%1 of %2").arg(few.seen.size()).arg(expected.size())));
    // Where there are many calls, units have their turn.
    const Draws many = draw_moves(*graph, placement, 1e9);
    QVERIFY2(few.count > 2 * many.count, qPrintable(QString("%1, %2").arg(few.count).arg(many.count)));
  }

  /// What several scopes have in common is a layer, and so is what reads the same weights; what is most of the graph
  /// is none.
  void layers_are_scopes_and_readers_of_weights() {
    TaskGraphBuilder builder;
    std::size_t count = 0;
    Moved first, second, both, readers, most;
    for (int i = 0; i < 4; ++i) {
      first.insert(add(builder, count, "encoder/layer1"));
      second.insert(add(builder, count, "encoder/layer2"));
    }
    both = first;
    both.insert(second.begin(), second.end());
    for (int i = 0; i < 80; ++i) most.insert(add(builder, count, "decoder"));
    TaskGraphBuilder::Task weights;
    weights.name = "weights";
    weights.kind = TaskKind::other;
    weights.persistent_bytes = 100;
    const TaskIndex held = builder.add_task(weights);
    readers.insert(held);
    for (int i = 0; i < 30; ++i) {  // more than go by the way that neighbours go
      const TaskIndex reader = add(builder, count, "");
      builder.add_edge(held, reader, 1);
      readers.insert(reader);
    }
    const TaskGraphPtr graph = *builder.finish("scopes");
    Placement placement;
    placement.devices = 3;
    placement.device.assign(graph->task_count(), 0);
    const Draws draws = draw_moves(*graph, placement, 1);
    for (const Moved& layer : {first, second, both, readers}) QVERIFY(draws.seen.contains(layer));
    for (const Moved& moved : draws.seen)
      QVERIFY(std::count_if(moved.begin(), moved.end(), [&](TaskIndex t) { return most.contains(t); }) <= 2);
  }
};

QTEST_APPLESS_MAIN(WalkTest)
#include "walk_test.moc"
