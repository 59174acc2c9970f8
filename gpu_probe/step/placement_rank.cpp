// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_rank.h"

#include <algorithm>
#include <set>

namespace turnpoint::step {

PlacedRank::PlacedRank(const PlacedProgram& program, PlacementLinks& links)
    : program_(program),
      links_(links),
      rank_(links.rank()),
      alone_(lone_communicator(1, 0)),
      shares_(program.tasks_of.size()),
      all_readers_(program.tasks.size(), 0) {
  for (std::size_t i = 0; i < program.tasks_of.size(); ++i)
    if (program.tasks_of[i].update != kNone && is_here(program.tasks_of[i].update))
      for (const auto& set : program_of(OperatorId(i)).parameters)
        shares_[i].emplace_back(*program.program, OperatorId(i), set, *alone_, report_);
  for (const PlacedTask& task : program.tasks) {
    std::set<TaskIndex> makers;
    for (const std::uint32_t item : task.reads) makers.insert(program.items[item].maker);
    for (const TaskIndex maker : makers) ++all_readers_[maker];
  }
}

bool PlacedRank::is_here(TaskIndex task) const {
  return static_cast<int>(program_.placement->tasks[task].device) == rank_;
}

// What one step says of itself, and what it begins with.
void PlacedRank::begin() {
  begin_moments();
  report_.loss = 0;
  report_.recorded.clear();
  report_.traffic.clear();
  report_.seconds.assign(program_.tasks_of.size(), {});
  report_.runs_again.assign(program_.tasks_of.size(), 0);
  task_s_.assign(program_.tasks.size(), 0);
  transfer_s_.assign(program_.transfers.size(), 0);
  received_.assign(program_.transfers.size(), 0);
  arrived_from_.assign(program_.placement->devices, 0);
  items_.assign(program_.items.size(), nullptr);
  done_.assign(program_.tasks.size(), 0);
  sums_.clear();
  targets_.clear();
  old_.clear();
  readers_left_.assign(program_.tasks.size(), 0);
  weight_readers_left_.assign(program_.tasks_of.size(), 0);
  for (const TaskIndex t : program_.placement->order[static_cast<std::size_t>(rank_)]) {
    std::set<TaskIndex> makers;
    for (const std::uint32_t item : program_.tasks[t].reads) makers.insert(program_.items[item].maker);
    for (const TaskIndex maker : makers) ++readers_left_[maker];
    const auto& task = program_.placement->tasks[t];
    if (task.role != TaskRole::update && task.role != TaskRole::weights) ++weight_readers_left_[task.op.index];
  }
  for (auto& of_operator : shares_)
    for (auto& share : of_operator) share.begin(), share.begin_micro_batch();
}

Expected<void> PlacedRank::run(std::uint64_t step) {
  begin();
  const Moment began = moment();
  if (auto done = links_.begin(step); !done) return done;
  for (const TaskIndex task : program_.placement->order[static_cast<std::size_t>(rank_)]) {
    if (auto done = take_in_what_is_there(); !done) return done;
    if (auto done = wait_for_inputs(task); !done) return done;
    const Moment since = moment();
    if (auto done = run_task(task); !done) return done;
    between(since, moment(), [this, task](double seconds) { task_s_[task] = seconds; });
    if (auto done = send(task); !done) return done;
    release_after(task);
  }
  // What nobody here reads is sent all the same.
  const std::size_t ranks = program_.placement->devices;
  for (std::size_t from = 0; from < ranks; ++from)
    for (const auto& list = program_.arrivals[static_cast<std::size_t>(rank_) * ranks + from];
         arrived_from_[from] < list.size();)
      if (auto done = take_in(list[arrived_from_[from]]); !done) return done;
  between(began, moment(), [this](double seconds) { report_.seconds_all = seconds; });
  if (auto done = links_.end(); !done) return done;
  auto settled = settle();
  items_.assign(program_.items.size(), nullptr);
  targets_.clear();
  old_.clear();
  return settled;
}

// The next transfer of its sender, once it is there.
Expected<void> PlacedRank::take_in(std::uint32_t number) {
  const PlacedTransfer& transfer = program_.transfers[number];
  if (auto there = links_.wait_for(number); !there) return there;
  const Moment since = moment();
  Place from = links_.room(number);
  for (const std::uint32_t item : transfer.items) {
    const PlacedItem& of = program_.items[item];
    Value value =
        of.what == PlacedItem::What::weight_gradient ? room_for_sum(item) : make(model().tensors[of.tensor], of.part);
    copy(from, value->data.data(), value->data.size());
    from = from + static_cast<std::int64_t>(value->data.size());
    received_[number] += static_cast<double>(value->region.elements()) * value->element_bytes;
    items_[item] = std::move(value);
  }
  ++arrived_from_[static_cast<std::size_t>(transfer.from)];
  between(since, moment(), [this, number](double seconds) { transfer_s_[number] += seconds; });
  return {};
}

Expected<void> PlacedRank::take_in_what_is_there() {
  const std::size_t ranks = program_.placement->devices;
  for (std::size_t from = 0; from < ranks; ++from) {
    const auto& list = program_.arrivals[static_cast<std::size_t>(rank_) * ranks + from];
    while (arrived_from_[from] < list.size() && links_.is_there(list[arrived_from_[from]]))
      if (auto done = take_in(list[arrived_from_[from]]); !done) return done;
  }
  return {};
}

Expected<void> PlacedRank::wait_for_inputs(TaskIndex task) {
  const std::size_t ranks = program_.placement->devices;
  for (const std::uint32_t item : program_.tasks[task].reads) {
    const auto from = program_.placement->tasks[program_.items[item].maker].device;
    const auto& list = program_.arrivals[static_cast<std::size_t>(rank_) * ranks + from];
    while (!items_[item]) {
      if (arrived_from_[from] >= list.size())
        return bad_input("placement: a task reads what is not there any more, or not yet", model().name);
      if (auto done = take_in(list[arrived_from_[from]]); !done) return done;
    }
  }
  return {};
}

Expected<void> PlacedRank::send(TaskIndex task) {
  for (const std::uint32_t number : program_.tasks[task].sends) {
    const Moment since = moment();
    const PlacedTransfer& transfer = program_.transfers[number];
    std::int64_t elements = 0;
    for (const std::uint32_t item : transfer.items) elements += static_cast<std::int64_t>(items_[item]->data.size());
    if (elements != transfer.elements)
      return Error{ErrorCode::device, "a transfer is of another length than its room", {}, {}};
    Place to = links_.room(number);
    for (const std::uint32_t item : transfer.items) {
      const Array& data = items_[item]->data;
      copy(data.data(), to, data.size());
      to = to + static_cast<std::int64_t>(data.size());
    }
    between(since, moment(), [this, number](double seconds) { transfer_s_[number] += seconds; });
    if (auto done = links_.post(number); !done) return done;
  }
  return {};
}

void PlacedRank::release_after(TaskIndex task) {
  const auto release = [&](TaskIndex maker) {
    for (const std::uint32_t item : program_.tasks[maker].makes) items_[item].reset();
  };
  std::set<TaskIndex> makers;
  for (const std::uint32_t item : program_.tasks[task].reads) makers.insert(program_.items[item].maker);
  for (const TaskIndex maker : makers)
    if (--readers_left_[maker] == 0) release(maker);
  if (readers_left_[task] == 0 && all_readers_[task] > 0) release(task);
  const auto& of = program_.placement->tasks[task];
  done_[task] = 1;
  if (of.role == TaskRole::update || of.role == TaskRole::weights) return;
  --weight_readers_left_[of.op.index];
  const PieceTasks& piece = tasks_of(of.op).pieces[program_.tasks[task].piece];
  const auto over = [&](TaskIndex t) { return t == kNone || done_[t] || !is_here(t); };
  if (over(piece.backward) && over(piece.weights)) sums_.erase({of.op, program_.tasks[task].piece});
}

Expected<void> PlacedRank::run_task(TaskIndex task) {
  const auto& of = program_.placement->tasks[task];
  const Piece piece{of.op, program_.tasks[task].piece};
  const bool split = tasks_of(of.op).pieces[piece.number].weights != kNone;
  switch (of.role) {
    case TaskRole::forward: return forward(piece);
    case TaskRole::backward: return backward(piece, true, !split);
    case TaskRole::weight_gradient: return backward(piece, false, true);
    case TaskRole::update: return update(of.op);
    case TaskRole::weights: hold_weights(of.op); break;
    case TaskRole::accumulate: break;
  }
  return {};
}

}  // namespace turnpoint::step
