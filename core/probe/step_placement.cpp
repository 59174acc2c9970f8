// SPDX-License-Identifier: Apache-2.0
#include "core/probe/step_placement.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr double kMostStepSeconds = 1e6, kMostStepBytes = 1e18;
constexpr std::size_t kMostStepTasks = 4'000'000;

std::int64_t last_index(std::size_t count) { return static_cast<std::int64_t>(count) - 1; }

void read_order(JsonFields& fields, StepPlacement& placement) {
  const json& lists = fields.json();
  const auto order = lists.find("order");
  if (order == lists.end() || !order->is_array() || order->size() != placement.devices)
    return fields.fail("order", "must be a list of tasks for each device");
  std::vector<char> seen(placement.tasks.size(), 0);
  for (const json& list : *order) {
    auto& here = placement.order.emplace_back();
    if (!list.is_array()) return fields.fail("order", "must be a list of tasks for each device");
    for (const json& entry : list) {
      const bool known = entry.is_number_unsigned() && entry.get<std::uint64_t>() < placement.tasks.size();
      if (!known) return fields.fail("order", "names a task that is not there");
      const auto task = entry.get<TaskIndex>();
      if (placement.tasks[task].device + 1 != placement.order.size() || seen[task]++)
        return fields.fail("order", fmt::format("has task {} twice or on another device than its own", task));
      here.push_back(task);
    }
  }
  for (std::size_t t = 0; t < seen.size(); ++t)
    if (!seen[t]) return fields.fail("order", fmt::format("leaves task {} out", t));
}

}  // namespace

nlohmann::json write_step_placement(const StepPlacement& placement) {
  json tasks = json::array(), transfers = json::array();
  for (const auto& task : placement.tasks) {
    json& line =
        tasks.emplace_back(json{{"op", task.op.index}, {"role", to_string(task.role)}, {"device", task.device}});
    if (task.step >= 0) line["step"] = task.step;
    if (task.direction > 0) line["direction"] = task.direction;
  }
  for (const auto& transfer : placement.transfers)
    transfers.push_back({{"task", transfer.task}, {"to", transfer.to}, {"bytes", transfer.bytes}});
  return {{"devices", placement.devices},
          {"tasks", std::move(tasks)},
          {"order", placement.order},
          {"transfers", std::move(transfers)}};
}

StepPlacement read_step_placement(JsonFields fields, const Model& model) {
  StepPlacement placement;
  placement.devices = static_cast<std::uint32_t>(fields.integer("devices", 1, 1 << 16));
  if (!fields.has("tasks")) fields.fail("tasks", "is missing");
  fields.each("tasks", [&](JsonFields& item, std::size_t) {
    StepPlacement::Task task;
    task.op = OperatorId(static_cast<std::size_t>(item.integer("op", 0, last_index(model.operators.size()))));
    const std::string role = item.text("role");
    bool known = false;
    for (int r = 0; r < kTaskRoles; ++r)
      if (role == to_string(static_cast<TaskRole>(r))) task.role = static_cast<TaskRole>(r), known = true;
    if (!known) item.fail("role", fmt::format("'{}' is not known", role));
    task.device = static_cast<std::uint32_t>(item.integer("device", 0, std::int64_t(placement.devices) - 1));
    if (item.has("step")) task.step = item.integer("step", 0, std::int64_t(kMostStepTasks));
    if (item.has("direction")) task.direction = static_cast<std::uint32_t>(item.integer("direction", 0, 1));
    placement.tasks.push_back(task);
  });
  if (placement.tasks.empty() || placement.tasks.size() > kMostStepTasks) fields.fail("tasks", "must hold some tasks");
  if (fields.error()) return placement;
  read_order(fields, placement);
  std::set<std::pair<TaskIndex, std::uint32_t>> seen;
  fields.each("transfers", [&](JsonFields& item, std::size_t) {
    StepPlacement::Transfer transfer;
    transfer.task = static_cast<TaskIndex>(item.integer("task", 0, last_index(placement.tasks.size())));
    transfer.to = static_cast<std::uint32_t>(item.integer("to", 0, std::int64_t(placement.devices) - 1));
    transfer.bytes = item.integer("bytes", 0, TaskGraphBuilder::kMaxBytes);
    if (item.error()) return;
    if (placement.tasks[transfer.task].device == transfer.to || !seen.insert({transfer.task, transfer.to}).second)
      item.fail("to", "is the task's own device, or one that it was sent to before");
    placement.transfers.push_back(transfer);
  });
  return placement;
}

nlohmann::json write_spread(const Spread& spread) {
  return {{"min_s", spread.min_s},
          {"q1_s", spread.q1_s},
          {"median_s", spread.median_s},
          {"q3_s", spread.q3_s},
          {"samples", spread.samples}};
}

nlohmann::json write_measured(const MeasuredTask& task) {
  json line = write_spread(task.time);
  line["type"] = "task";
  line["task"] = task.task;
  return line;
}

nlohmann::json write_measured(const MeasuredTransfer& transfer) {
  json line = write_spread(transfer.time);
  line["type"] = "transfer";
  line["transfer"] = transfer.transfer;
  line["planned_bytes"] = transfer.planned_bytes;
  line["received_bytes"] = transfer.received_bytes;
  return line;
}

nlohmann::json write_measured(const MeasuredDevice& device) {
  json line = {{"persistent", device.persistent}, {"peak", device.peak}, {"busy", write_spread(device.busy)}};
  if (device.received_bytes > 0) line["received_bytes"] = device.received_bytes;
  return line;
}

Spread read_spread(JsonFields& fields) {
  Spread spread;
  spread.min_s = fields.number("min_s", 0, kMostStepSeconds);
  spread.q1_s = fields.number("q1_s", 0, kMostStepSeconds);
  spread.median_s = fields.number("median_s", 0, kMostStepSeconds);
  spread.q3_s = fields.number("q3_s", 0, kMostStepSeconds);
  spread.samples = static_cast<int>(fields.integer("samples", 1, 1'000'000));
  const bool rising = spread.min_s <= spread.q1_s && spread.q1_s <= spread.median_s && spread.median_s <= spread.q3_s;
  if (!fields.error() && !rising) fields.fail("q1_s", "is not between its neighbours");
  return spread;
}

MeasuredTask read_measured_task(JsonFields& fields, const StepPlacement& placement) {
  MeasuredTask task;
  task.task = static_cast<TaskIndex>(fields.integer("task", 0, last_index(placement.tasks.size())));
  task.time = read_spread(fields);
  return task;
}

MeasuredTransfer read_measured_transfer(JsonFields& fields, const StepPlacement& placement) {
  MeasuredTransfer transfer;
  transfer.transfer = static_cast<std::int32_t>(fields.integer("transfer", 0, last_index(placement.transfers.size())));
  transfer.planned_bytes = fields.number("planned_bytes", 0, kMostStepBytes);
  transfer.received_bytes = fields.number("received_bytes", 0, kMostStepBytes);
  transfer.time = read_spread(fields);
  return transfer;
}

std::vector<MeasuredDevice> read_measured_devices(JsonFields& fields, int count) {
  std::vector<MeasuredDevice> devices;
  fields.each("devices", [&](JsonFields& item, std::size_t) {
    MeasuredDevice device;
    device.persistent = item.integer("persistent", 0, std::int64_t(1) << 60);
    device.peak = item.integer("peak", 0, std::int64_t(1) << 60);
    JsonFields busy = item.object("busy");
    device.busy = read_spread(busy);
    device.received_bytes = item.number("received_bytes", 0, kMostStepBytes, 0);
    devices.push_back(device);
  });
  if (!fields.error() && devices.size() != static_cast<std::size_t>(count))
    fields.fail("devices", "are not those of the job");
  return devices;
}

}  // namespace turnpoint
