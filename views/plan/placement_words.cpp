// SPDX-License-Identifier: Apache-2.0
#include "views/plan/placement_words.h"

#include <algorithm>
#include <numeric>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/graph/device_palette.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kShownDevices = 16;

QString device_name(std::uint32_t device) { return QObject::tr("device %1").arg(device); }

}  // namespace

QString describe_placement(const PlacementPlan& placement) {
  const auto tasks = static_cast<double>(placement.graph->task_count());
  const double gain = placement.makespan_s > 0 ? placement.one_device_s / placement.makespan_s : 1;
  const std::uint32_t busiest = placement.busiest_device();
  const double share = placement.makespan_s > 0 ? placement.busy_s[busiest] / placement.makespan_s : 0;
  QString words =
      QObject::tr(
          "%1 on %2: %3 \u00d7 as fast as one device alone, which takes %4. Busiest is "
          "%5, computing %6 of the time.")
          .arg(counted(tasks, QObject::tr("1 task"), QObject::tr("%1 tasks")),
               counted(placement.placement.devices, QObject::tr("1 device"), QObject::tr("%1 devices")))
          .arg(grouped_number(gain, 2), time_text(placement.one_device_s), device_name(busiest), share_text(share));
  if (placement.placement.devices > 1)
    words += u' ' + (placement.peak_communication_bytes > 0 ? QObject::tr("At most %1 go from one device to one other.")
                                                                  .arg(memory_text(placement.peak_communication_bytes))
                                                            : QObject::tr("Devices send each other nothing."));
  if (placement.shortage)
    words += u' ' + QObject::tr("Does not fit: %1 lacks %2 at %3.")
                        .arg(device_name(placement.shortage->device), memory_text(placement.shortage->bytes),
                             time_text(placement.shortage->time_s));
  else if (placement.limited())
    words += u' ' + QObject::tr("Fits every device.");
  if (placement.moved_tasks > 0)
    words += u' ' + counted(static_cast<double>(placement.moved_tasks), QObject::tr("1 task was moved to fit."),
                            QObject::tr("%1 tasks were moved to fit."));
  return words;
}

std::vector<PartRow> device_rows(const PlacementPlan& placement, const ThemeColors& colors) {
  std::vector<std::uint32_t> devices(placement.placement.devices);
  std::iota(devices.begin(), devices.end(), 0u);
  const std::size_t all = devices.size();
  if (all > kShownDevices) {
    std::stable_sort(devices.begin(), devices.end(), [&](std::uint32_t a, std::uint32_t b) {
      return placement.peak_bytes[a] > placement.peak_bytes[b];
    });
    devices.resize(kShownDevices - 1);
    std::sort(devices.begin(), devices.end());
  }
  std::vector<PartRow> rows;
  for (const std::uint32_t d : devices) {
    const std::int64_t peak = placement.peak_bytes[d], limit = placement.limit_bytes[d];
    const bool fits = peak <= limit;
    const double busy = placement.makespan_s > 0 ? placement.busy_s[d] / placement.makespan_s : 0;
    rows.push_back(
        {fits ? device_palette(colors)[device_slot(d)] : colors.error,
         QObject::tr("%1 \u00b7 busy %2").arg(device_name(d), share_text(busy)), memory_text(peak),
         limit == kUnlimitedBytes || limit <= 0 ? QString() : share_text(static_cast<double>(peak) / double(limit))});
  }
  if (all > kShownDevices)
    rows.push_back(
        {colors.secondary, QObject::tr("%1 more, none fuller").arg(all - devices.size()), QString(), QString()});
  return rows;
}

std::vector<PartRow> stage_rows(const PlacementPlan& placement, const QColor& color) {
  std::vector<PartRow> rows;
  double best = 0;
  for (const PlacementStage& stage : placement.stages) {
    QString name = to_qt(stage.name);
    name.replace(QStringLiteral("list schedule, transfers weigh "), QStringLiteral("list, transfers \u00d7 "));
    const bool gained = best == 0 || stage.makespan_s < best;
    rows.push_back({gained ? color : QColor(Qt::transparent), name, time_text(stage.makespan_s),
                    best > 0 && gained ? percent_text(stage.makespan_s / best - 1) : QString()});
    if (gained) best = stage.makespan_s;
  }
  return rows;
}

std::vector<Fact> describe_task(const PlacementPlan& placement, TaskIndex task) {
  const TaskGraph& graph = *placement.graph;
  const std::uint32_t device = placement.placement.device[task];
  std::vector<Fact> facts{{QObject::tr("Task"), to_qt(graph.names[task])},
                          {QObject::tr("Kind"), to_qt(to_string(graph.kind[task]))},
                          {QObject::tr("Device"), device_name(device)},
                          {QObject::tr("Time"), time_text(graph.time_s[task] / graph.speed_of(device))}};
  if (graph.scope[task]) facts.push_back({QObject::tr("Scope"), to_qt(graph.scopes[graph.scope[task]])});
  if (graph.output_bytes[task] > 0) facts.push_back({QObject::tr("Output"), memory_text(graph.output_bytes[task])});
  if (graph.persistent_bytes[task] > 0)
    facts.push_back({QObject::tr("Persistent"), memory_text(graph.persistent_bytes[task])});
  if (graph.workspace_bytes[task] > 0)
    facts.push_back({QObject::tr("Workspace"), memory_text(graph.workspace_bytes[task])});
  if (graph.colocate[task] != kNone)
    facts.push_back({QObject::tr("Together with"), to_qt(graph.groups[graph.colocate[task]])});
  std::size_t sent = 0;
  for (const TaskIndex to : graph.successors(task)) sent += placement.placement.device[to] != device;
  facts.push_back(
      {QObject::tr("Readers"), QObject::tr("%1, of which %2 elsewhere").arg(graph.successors(task).size()).arg(sent)});
  return facts;
}

}  // namespace turnpoint::views
