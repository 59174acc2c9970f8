// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/plan_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/schedule/ratio_lowering.h"

namespace turnpoint {
namespace {

std::string_view word_of(PlanTaskKind kind) {
  switch (kind) {
    case PlanTaskKind::forward: return "forward";
    case PlanTaskKind::backward: return "backward";
    case PlanTaskKind::again: return "forward again";
    case PlanTaskKind::update: return "update";
    case PlanTaskKind::reshard: return "of";
    case PlanTaskKind::reshard_back: return "of the gradient of";
    case PlanTaskKind::reshard_again: return "again of";
    case PlanTaskKind::weights: return "of the weights";
    case PlanTaskKind::gradients: return "of the weights' gradients";
    case PlanTaskKind::new_weights: return "of the new weights";
    case PlanTaskKind::from_host: return "optimizer state from the host";
    case PlanTaskKind::to_host: return "optimizer state to the host";
    case PlanTaskKind::send: return "send to the next stage";
    case PlanTaskKind::send_back: return "send gradients to the stage before";
    case PlanTaskKind::tied_sum: return "sum of the tied weights' gradients";
    case PlanTaskKind::turn: return "wait";
  }
  return "";
}

TaskKind kind_of(PlanTaskKind kind) {
  switch (kind) {
    case PlanTaskKind::forward:
    case PlanTaskKind::reshard:
    case PlanTaskKind::send: return TaskKind::forward;
    case PlanTaskKind::backward:
    case PlanTaskKind::again:
    case PlanTaskKind::reshard_back:
    case PlanTaskKind::reshard_again:
    case PlanTaskKind::gradients:
    case PlanTaskKind::send_back:
    case PlanTaskKind::tied_sum: return TaskKind::backward;
    case PlanTaskKind::update:
    case PlanTaskKind::new_weights:
    case PlanTaskKind::from_host:
    case PlanTaskKind::to_host: return TaskKind::update;
    case PlanTaskKind::weights:
    case PlanTaskKind::turn: break;
  }
  return TaskKind::other;
}

/// "h0/fc1 forward", "h0/fc1: all-gather of h0/norm", with "#3" for the third micro-batch.
std::string name_of(const Model& model, const PlanTask& task, bool numbered) {
  const std::string op = task.op.valid() ? model.operators[task.op].name : std::string();
  std::string name, move = to_string(task.move);
  std::replace(move.begin(), move.end(), '_', '-');
  if (task.tensor.valid())
    name = fmt::format("{}: {} {} {}", op, move, word_of(task.kind), model.tensors[task.tensor].name);
  else if (task.kind == PlanTaskKind::weights || task.kind == PlanTaskKind::gradients ||
           task.kind == PlanTaskKind::new_weights)
    name = fmt::format("{}: {} {}", op, move, word_of(task.kind));
  else
    name = fmt::format("{}{}{}", op, op.empty() ? "" : " ", word_of(task.kind));
  return numbered ? fmt::format("{} #{}", name, task.micro_batch + 1) : name;
}

/// "devices 0-3", "devices 0, 2 and 5".
std::string devices_named(const std::vector<std::uint32_t>& devices) {
  std::string text = devices.size() == 1 ? "device" : "devices";
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
    text += i == 0 ? " " : end == devices.size() ? " and " : ", ";
    text += end - i == 1 ? fmt::format("{}", devices[i]) : fmt::format("{}-{}", devices[i], devices[end - 1]);
    i = end;
  }
  return text;
}

std::string role_name(const Scenario& scenario, const LoweredPlan& lowered, std::size_t role) {
  const auto& [bytes, devices, members] = lowered.roles[role];
  if (!members.empty()) {
    const std::string name = devices_named(members);
    return scenario.cluster->mixed() ? fmt::format("{}, {}", name, device_of(*scenario.cluster, members.front()).name)
                                     : name;
  }
  if (lowered.roles.size() > 1) return fmt::format("stage {}", role);
  return devices == 1 ? "device 0" : fmt::format("devices 0-{}", devices - 1);
}

std::int64_t memory_limit_of(const Scenario& scenario, const LoweredPlan::Role& role) {
  return role.members.empty() ? scenario.memory_limit() : scenario.memory_limit_of(role.members.front());
}

Expected<TaskGraphPtr> graph_of(const Model& model, const LoweredPlan& lowered, bool numbered) {
  TaskGraphBuilder builder;
  builder.reserve(lowered.items.size(), lowered.items.wait_for.size());
  builder.name = model.name;
  // What its buffers say, so that the graph can be coloured by bytes.
  std::vector<std::int64_t> made(lowered.items.size(), 0), workspace(lowered.items.size(), 0);
  for (std::size_t b = 0; b < lowered.buffers.size(); ++b) {
    auto& bytes = lowered.buffers.kind[b] == BufferKind::workspace ? workspace : made;
    bytes[lowered.buffers.made_by[b]] += lowered.buffers.bytes[b];
  }
  for (std::size_t i = 0; i < lowered.items.size(); ++i) {
    const PlanTask& planned = lowered.tasks[i];
    const std::string name = name_of(model, planned, numbered);
    TaskGraphBuilder::Task task;
    task.name = name;
    task.kind = kind_of(planned.kind);
    task.time_s = lowered.items.duration_s[i];
    task.output_bytes = made[i];
    task.workspace_bytes = workspace[i];
    if (planned.op.valid()) task.scope = builder.scope(model.operators[planned.op].scope);
    builder.add_task(task);
    for (std::uint32_t k = lowered.items.wait_begin[i]; k < lowered.items.wait_begin[i + 1]; ++k)
      builder.add_edge(lowered.items.wait_for[k], std::int64_t(i), 0);
  }
  return builder.finish(model.name);
}

void add_lanes(Schedule& schedule, const LoweredPlan& lowered, const LaneTimes& times) {
  constexpr LaneKind kKinds[] = {LaneKind::compute, LaneKind::communication, LaneKind::network};
  const auto each = std::uint32_t(std::size(kKinds));
  for (std::uint32_t lane = 0; lane < lowered.items.lanes; ++lane) {
    const LaneKind kind = kKinds[lane % each];
    if (kind == LaneKind::network && times.run[lane].empty()) continue;
    Schedule::Lane made{lane / each, kind, std::uint32_t(schedule.item_count()), 0, 0};
    for (const std::uint32_t i : times.run[lane]) {
      // A send is in the lanes of both stages; the first is its own.
      if (schedule.item_of[i] == kNone) schedule.item_of[i] = std::uint32_t(schedule.item_count());
      schedule.start_s.push_back(times.start_s[i]);
      schedule.end_s.push_back(times.end_s[i]);
      schedule.task.push_back(i);
      schedule.peer.push_back(kNone);
      schedule.bytes.push_back(std::llround(lowered.tasks[i].bytes));
      made.busy_s += times.end_s[i] - times.start_s[i];
    }
    made.end = std::uint32_t(schedule.item_count());
    schedule.lanes.push_back(made);
  }
}

SimulatedCost cost_of(const Scenario& scenario, const LoweredPlan& lowered) {
  const LaneTimes times = run_lanes(lowered.items);
  SimulatedCost cost{times.makespan_s, 0};
  const auto memory = memory_over_time(lowered.buffers, times, lowered.persistent(), false);
  for (std::size_t r = 0; r < memory.size(); ++r) {
    const LoweredPlan::Role& role = lowered.roles[r];
    cost.memory_bytes = std::max(cost.memory_bytes, memory[r].peak_bytes);
    if (!role.members.empty())
      cost.all_have_room = cost.all_have_room.value_or(true) && memory[r].peak_bytes <= memory_limit_of(scenario, role);
  }
  return cost;
}

Expected<SchedulePtr> schedule_of(const Scenario& scenario, const LoweredPlan& lowered, bool numbered) {
  const LaneTimes times = run_lanes(lowered.items);
  auto graph = graph_of(*scenario.model, lowered, numbered);
  if (!graph) return graph.error();

  auto schedule = std::make_shared<Schedule>();
  schedule->graph = std::move(*graph);
  schedule->makespan_s = times.makespan_s;
  schedule->item_of.assign(lowered.items.size(), kNone);
  add_lanes(*schedule, lowered, times);
  for (const PlanTask& task : lowered.tasks) {
    schedule->device_of.push_back(task.role);
    schedule->operator_of.push_back(task.op);
  }
  auto memory = memory_over_time(lowered.buffers, times, lowered.persistent(), true);
  for (std::size_t r = 0; r < lowered.roles.size(); ++r) {
    const LoweredPlan::Role& role = lowered.roles[r];
    schedule->devices.push_back({role_name(scenario, lowered, r), role.persistent_bytes, memory[r].peak_bytes,
                                 memory[r].peak_at_s, memory_limit_of(scenario, role), role.devices});
    schedule->memory.push_back(std::move(memory[r].samples));
  }
  for (const std::uint32_t i : critical_items(lowered.items, times)) schedule->critical.push_back(schedule->item_of[i]);
  return SchedulePtr(std::move(schedule));
}

/// A plan of many micro-batches, simulated with fewer of them. Once a pipeline is full, what it does repeats itself as
/// often as a micro-batch has gone through all stages: numbers that many apart are compared.
class FewerMicroBatches {
 public:
  /// The plan has a pipeline.
  FewerMicroBatches(const PlanLowering& lowering, const Plan& plan)
      : lowering_(lowering), plan_(plan), all_(plan.micro_batches()), round_(plan.pipeline->stages) {}

  /// None where there are few of them, or where nothing repeats itself before all have been gone through.
  Expected<std::optional<SimulatedCost>> simulate() {
    for (int rounds = kFewestRounds;; rounds *= 2) {
      const int first = rounds * round_ + all_ % round_;
      if (3 * (first + round_) >= all_) return std::optional<SimulatedCost>();
      Seen seen[3];
      for (int i = 0; i < 3; ++i) {
        auto now = look_at(first + i * round_);
        if (!now) return now.error();
        seen[i] = std::move(*now);
      }
      if (!one_more_round(seen[0], seen[1]) || !one_more_round(seen[1], seen[2])) continue;
      const double round_s = seen[2].time_s - seen[1].time_s, left = double(all_ - first - 2 * round_) / round_;
      if (!same_time(seen[1].time_s - seen[0].time_s, round_s, seen[2].time_s)) continue;
      return std::optional(SimulatedCost{seen[2].time_s + left * round_s, seen[2].most});
    }
  }

 private:
  static constexpr int kFewestRounds = 2;  // one that begins, one that ends

  struct Seen {
    double time_s = 0;
    std::int64_t most = 0;
    std::vector<std::int64_t> peaks;  ///< by role
    std::vector<double> starts_s;     ///< of all that belongs to the last two rounds
  };

  /// Of sums of doubles.
  static bool same_time(double a, double b, double whole_s) { return std::abs(a - b) <= 1e-9 * whole_s; }

  /// Whether all that the second has more is a round: the last ones lie as far behind each other as before. Where some
  /// of it comes later and later, work is waiting that sooner or later fills memory.
  static bool one_more_round(const Seen& before, const Seen& after) {
    const double round_s = after.time_s - before.time_s;
    bool same = before.peaks == after.peaks && before.starts_s.size() == after.starts_s.size();
    for (std::size_t i = 0; same && i < after.starts_s.size(); ++i)
      same = same_time(after.starts_s[i] - before.starts_s[i], round_s, after.time_s);
    return same;
  }

  Expected<Seen> look_at(int micro_batches) {
    plan_.pipeline->micro_batches = micro_batches;
    const auto lowered = lowering_.lower(plan_);
    if (!lowered) return lowered.error();
    const LaneTimes times = run_lanes(lowered->items);
    Seen seen{times.makespan_s, 0, {}, {}};
    for (std::size_t i = 0; i < lowered->tasks.size(); ++i)
      if (lowered->tasks[i].micro_batch >= micro_batches - 2 * round_) seen.starts_s.push_back(times.start_s[i]);
    for (const MemoryOverTime& memory : memory_over_time(lowered->buffers, times, lowered->persistent(), false)) {
      seen.most = std::max(seen.most, memory.peak_bytes);
      seen.peaks.push_back(memory.peak_bytes);
    }
    return seen;
  }

  const PlanLowering& lowering_;
  Plan plan_;
  const int all_, round_;
};

}  // namespace

Expected<SimulatedCost> simulate_plan(const PlanLowering& lowering, const Plan& plan) {
  if (plan.micro_batches() > 1) {
    const auto few = FewerMicroBatches(lowering, plan).simulate();
    if (!few) return few.error();
    if (*few) return **few;
  }
  const auto lowered = lowering.lower(plan);
  if (!lowered) return lowered.error();
  return cost_of(lowering.scenario(), *lowered);
}

Expected<SimulatedCost> simulate_plan(const Scenario& scenario, const RatioPlan& plan) {
  const auto lowered = lower_ratio_plan(scenario, plan);
  if (!lowered) return lowered.error();
  return cost_of(scenario, *lowered);
}

Expected<SchedulePtr> plan_schedule(const Scenario& scenario, const Plan& plan) {
  const auto lowered = PlanLowering(scenario).lower(plan);
  if (!lowered) return lowered.error();
  return schedule_of(scenario, *lowered, plan.pipeline && plan.pipeline->micro_batches > 1);
}

Expected<SchedulePtr> plan_schedule(const Scenario& scenario, const RatioPlan& plan) {
  const auto lowered = lower_ratio_plan(scenario, plan);
  if (!lowered) return lowered.error();
  return schedule_of(scenario, *lowered, false);
}

}  // namespace turnpoint
