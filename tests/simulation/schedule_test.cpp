// SPDX-License-Identifier: Apache-2.0
// The schedule of a simulated placement says what the simulation says, lane by lane.
#include "core/simulation/schedule.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>
#include <random>

#include "core/simulation/trace.h"

using namespace turnpoint;

namespace {

/// Tasks in layers, edges forward, times that coincide now and then.
TaskGraphPtr random_graph(std::mt19937_64& random) {
  TaskGraphBuilder builder;
  const std::size_t count = 2 + random() % 60;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    TaskGraphBuilder::Task task;
    task.name = name;
    task.time_s = double(random() % 4);
    task.output_bytes = std::int64_t(random() % 50);
    task.persistent_bytes = std::int64_t(random() % 5);
    task.workspace_bytes = std::int64_t(random() % 5);
    builder.add_task(task);
    for (std::uint64_t k = random() % 3; i > 0 && k > 0; --k)
      builder.add_edge(std::int64_t(random() % i), std::int64_t(i));
  }
  builder.links.bandwidth = 25;
  builder.links.contention = random() % 2 ? TaskLinks::Contention::sender : TaskLinks::Contention::none;
  const auto graph = builder.finish("random");
  if (!graph) qFatal("%s", graph.error().message().c_str());
  return *graph;
}

}  // namespace

class ScheduleTest : public QObject {
  Q_OBJECT
 private slots:
  void it_is_the_simulation() {
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
      const auto graph = random_graph(random);
      Placement placement;
      placement.devices = 3;
      for (std::size_t t = 0; t < graph->task_count(); ++t) placement.device.push_back(std::uint32_t(random() % 3));
      const auto simulation = simulate(*graph, placement, true);
      QVERIFY(simulation.has_value());
      const std::vector<OperatorId> operators(graph->task_count(), OperatorId(7));
      const auto s = make_schedule(graph, placement, *simulation, 1000, operators);
      QCOMPARE(s->makespan_s, simulation->makespan_s);
      QCOMPARE(s->lanes.size(), std::size_t(6));
      QCOMPARE(s->item_count(), graph->task_count() + simulation->transfers.size());
      std::size_t seen = 0;
      for (std::size_t l = 0; l < s->lanes.size(); ++l) {
        const auto& lane = s->lanes[l];
        QCOMPARE(lane.device, std::uint32_t(l / 2));
        QCOMPARE(lane.kind, l % 2 == 0 ? LaneKind::compute : LaneKind::send);
        QCOMPARE(lane.begin, std::uint32_t(seen));
        seen = lane.end;
        double busy = 0;
        for (std::uint32_t i = lane.begin; i < lane.end; ++i) {
          QVERIFY(i == lane.begin || s->start_s[i] >= s->start_s[i - 1]);
          QCOMPARE(s->is_transfer(i), lane.kind == LaneKind::send);
          QCOMPARE(s->device_of[s->task[i]], lane.device);
          busy += s->end_s[i] - s->start_s[i];
          if (s->is_transfer(i)) continue;
          QCOMPARE(s->item_of[s->task[i]], i);
          QCOMPARE(s->start_s[i], simulation->start_s[s->task[i]]);
          QCOMPARE(s->end_s[i], simulation->end_s[s->task[i]]);
        }
        QCOMPARE(lane.busy_s, busy);
        if (lane.kind == LaneKind::compute) QVERIFY(std::abs(busy - simulation->devices[l / 2].busy_s) < 1e-9);
      }
      for (std::uint32_t d = 0; d < 3; ++d) {
        QCOMPARE(s->devices[d].peak_bytes, simulation->devices[d].peak_bytes);
        QCOMPARE(s->devices[d].memory_limit, 1000);
        QCOMPARE(s->devices[d].stands_for, 1u);
        std::int64_t peak = s->devices[d].persistent_bytes;
        for (const auto& sample : s->memory[d]) peak = std::max(peak, s->total_at(d, sample));
        QCOMPARE(peak, s->devices[d].peak_bytes);
      }
      double at = 0;
      for (const std::uint32_t item : s->critical) {
        QCOMPARE(s->start_s[item], at);
        at = s->end_s[item];
      }
      QCOMPARE(at, s->makespan_s);
      QCOMPARE(s->operator_of_task(0), OperatorId(7));
    }
  }

  void its_trace_has_every_item() {
    std::mt19937_64 random(5);
    const auto graph = random_graph(random);
    Placement placement;
    placement.devices = 2;
    for (std::size_t t = 0; t < graph->task_count(); ++t) placement.device.push_back(std::uint32_t(t % 2));
    const auto simulation = simulate(*graph, placement, true);
    const auto s = make_schedule(graph, placement, *simulation);
    const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(write_trace(*s)));
    std::size_t items = 0;
    for (const auto& event : document.object()["traceEvents"].toArray()) items += event.toObject()["ph"] == "X";
    QCOMPARE(items, s->item_count());
  }
};

QTEST_APPLESS_MAIN(ScheduleTest)
#include "schedule_test.moc"
