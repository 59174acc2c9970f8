// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/sequence.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/search/placement/random.h"

namespace turnpoint::placement {
namespace {

std::vector<TaskIndex> depth_first(const TaskGraph& g) {
  std::vector<std::uint32_t> waiting(g.task_count());
  std::vector<TaskIndex> stack, order;
  for (std::size_t t = g.task_count(); t-- > 0;)
    if ((waiting[t] = g.in_begin[t + 1] - g.in_begin[t]) == 0) stack.push_back(TaskIndex(t));
  while (!stack.empty()) {
    const TaskIndex t = stack.back();
    stack.pop_back();
    order.push_back(t);
    for (EdgeIndex e = g.out_begin[t + 1]; e-- > g.out_begin[t];)
      if (--waiting[g.out_to[e]] == 0) stack.push_back(g.out_to[e]);
  }
  return order;
}

std::vector<TaskIndex> by_level(const TaskGraph& g, bool bottom) {
  std::vector<double> level(g.task_count(), 0);
  for (const TaskIndex t : g.topological)
    if (!bottom)
      for (const TaskIndex to : g.successors(t)) level[to] = std::max(level[to], level[t] + g.time_s[t]);
  for (std::size_t i = g.task_count(); bottom && i-- > 0;) {
    const TaskIndex t = g.topological[i];
    for (const TaskIndex to : g.successors(t)) level[t] = std::min(level[t], level[to]);
    level[t] -= g.time_s[t];
  }
  std::vector<TaskIndex> order = g.topological;
  std::stable_sort(order.begin(), order.end(), [&](TaskIndex a, TaskIndex b) { return level[a] < level[b]; });
  return order;
}

std::vector<TaskIndex> tasks_in(const TaskGraph& g, SequenceOrder order) {
  switch (order) {
    case SequenceOrder::topological: return g.topological;
    case SequenceOrder::depth_first: return depth_first(g);
    case SequenceOrder::top_level: return by_level(g, false);
    case SequenceOrder::bottom_level: return by_level(g, true);
  }
  return g.topological;
}

/// By task, the task next to which it stands: itself, the latest forward producer, or what its latest producer stands
/// next to.
std::vector<TaskIndex> anchors(const TaskGraph& g, const std::vector<TaskIndex>& order) {
  std::vector<std::uint32_t> place(g.task_count());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<TaskIndex> anchor(g.task_count());
  for (const TaskIndex t : order) {
    anchor[t] = t;
    if (g.time_s[t] == 0 && g.predecessors(t).empty() && g.successors(t).size() == 1) {
      anchor[t] = g.successors(t)[0];  // a parameter stands with its only reader
      continue;
    }
    if (g.time_s[t] == 0 && g.successors(t).empty() && g.predecessors(t).size() == 1) {
      anchor[t] = anchor[g.predecessors(t)[0]];  // a result that nobody reads stands with its maker
      continue;
    }
    if (g.kind[t] != TaskKind::backward && g.kind[t] != TaskKind::update) continue;
    TaskIndex best = kNone;
    bool best_forward = false;
    for (const TaskIndex from : g.predecessors(t)) {
      const bool forward = g.kind[from] == TaskKind::forward;
      if (best == kNone || forward > best_forward || (forward == best_forward && place[from] > place[best])) {
        best = from;
        best_forward = forward;
      }
    }
    if (best != kNone) anchor[t] = anchor[best];
  }
  return anchor;
}

}  // namespace

namespace {

/// Sources (parameters, inputs) stand right before whoever reads them first, or cuts would separate them.
std::vector<TaskIndex> delay_sources(const TaskGraph& g, const std::vector<TaskIndex>& order) {
  std::vector<TaskIndex> delayed;
  delayed.reserve(order.size());
  std::vector<char> stands(order.size(), 0);
  for (const TaskIndex t : order) {
    const bool source = g.predecessors(t).empty() && !g.successors(t).empty();
    if (source) continue;
    for (const TaskIndex from : g.predecessors(t)) {
      if (stands[from]) continue;
      stands[from] = 1;
      delayed.push_back(from);
    }
    stands[t] = 1;
    delayed.push_back(t);
  }
  return delayed;
}

}  // namespace

std::vector<TaskIndex> random_order(const TaskGraph& g, std::uint64_t seed) {
  Random random(seed);
  // How often the latest is taken: lines between depth-first and arbitrary ones.
  const std::uint32_t latest = random.below(9);
  std::vector<std::uint32_t> waiting(g.task_count());
  std::vector<TaskIndex> ready, order;
  for (TaskIndex t = 0; t < g.task_count(); ++t)
    if ((waiting[t] = g.in_begin[t + 1] - g.in_begin[t]) == 0) ready.push_back(t);
  while (!ready.empty()) {
    const std::size_t pick = random.below(8) < latest ? ready.size() - 1 : random.below(ready.size());
    const TaskIndex t = ready[pick];
    ready.erase(ready.begin() + std::ptrdiff_t(pick));
    order.push_back(t);
    const std::size_t before = ready.size();
    for (const TaskIndex to : g.successors(t))
      if (--waiting[to] == 0) ready.push_back(to);
    if (ready.size() - before > 1 && random.below(2) == 0)
      std::reverse(ready.begin() + std::ptrdiff_t(before), ready.end());
  }
  return delay_sources(g, order);
}

std::vector<TaskIndex> shuffled(const TaskGraph& g, const std::vector<TaskIndex>& order, std::size_t centre,
                                std::size_t width, std::uint64_t seed) {
  const std::size_t begin = centre > width ? centre - width : 0, end = std::min(order.size(), centre + width);
  Random random(seed);
  std::vector<TaskIndex> result = order,
                         left(order.begin() + std::ptrdiff_t(begin), order.begin() + std::ptrdiff_t(end));
  const bool latest = random.below(2) == 0;
  for (std::size_t at = begin; at < end; ++at) {
    // Ready is what no other task that is left feeds; the window is short.
    std::size_t ready = 0, pick = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      bool waits = false;
      for (const TaskIndex from : g.predecessors(left[i]))
        waits |= std::find(left.begin(), left.end(), from) != left.end();
      if (waits) continue;
      ++ready;
      if ((latest && random.below(3) != 0) || random.below(ready) == 0) pick = i;
    }
    result[at] = left[pick];
    left.erase(left.begin() + std::ptrdiff_t(pick));
  }
  return result;
}

std::vector<TaskIndex> order_of(const TaskGraph& g, SequenceOrder order) {
  return delay_sources(g, tasks_in(g, order));
}

Sequence line_up(const TaskGraph& g, SequenceOrder order) { return line_up(g, order_of(g, order)); }

Sequence line_up(const TaskGraph& g, const std::vector<TaskIndex>& order) {
  const std::size_t n = g.task_count();
  auto leader = anchors(g, order);
  // A group stands where its first task does; so does everything that stands next to one of its tasks.
  std::vector<TaskIndex> first(g.groups.size(), kNone);
  for (const TaskIndex t : order)
    if (g.colocate[t] != kNone && first[g.colocate[t]] == kNone) first[g.colocate[t]] = t;
  const auto led = [&](TaskIndex t) {
    const TaskIndex at = leader[t];
    return g.colocate[at] != kNone ? first[g.colocate[at]] : at;
  };
  Sequence s;
  s.unit.assign(n, kNone);
  std::vector<std::uint32_t> number(n, kNone);
  for (const TaskIndex t : order) {
    // A task's own group weighs more than what it stands next to.
    const TaskIndex at = g.colocate[t] != kNone ? led(first[g.colocate[t]]) : led(t);
    if (number[at] == kNone) {
      number[at] = std::uint32_t(s.time_s.size());
      s.time_s.push_back(0);
      s.persistent.push_back(0);
    }
    s.unit[t] = number[at];
    s.time_s[s.unit[t]] += g.time_s[t];
    s.persistent[s.unit[t]] += g.persistent_bytes[t];
  }
  return s;
}

std::vector<std::uint32_t> cut(const Sequence& sequence, const std::vector<std::uint32_t>& stages) {
  std::vector<std::uint32_t> of_unit(sequence.time_s.size(), 0);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    std::fill(of_unit.begin() + stages[stage], of_unit.end(), std::uint32_t(stage));
  std::vector<std::uint32_t> device(sequence.unit.size());
  for (std::size_t t = 0; t < device.size(); ++t) device[t] = of_unit[sequence.unit[t]];
  return device;
}

std::vector<std::uint32_t> balanced_stages(const Sequence& sequence, std::uint32_t devices) {
  const double total = std::accumulate(sequence.time_s.begin(), sequence.time_s.end(), 0.0);
  std::vector<std::uint32_t> stages{0};
  double before = 0;
  for (std::uint32_t u = 0; u < sequence.time_s.size(); ++u) {
    // A unit belongs to the stage in which its middle lies.
    const double middle = before + sequence.time_s[u] / 2;
    while (stages.size() < devices && middle >= total * double(stages.size()) / devices) stages.push_back(u);
    before += sequence.time_s[u];
  }
  return stages;
}

namespace {

/// The line in blocks, and for every tensor the blocks of its producer and of its consumers.
struct Blocks {
  std::vector<std::uint32_t> first_unit;  // by block, and the end
  std::vector<double> time_s;
  std::vector<std::int64_t> persistent;
  struct Tensor {
    std::uint32_t producer, first_block;  // lowest and ...
    std::uint32_t last_block;             // ... highest block that produces or consumes it
    std::uint32_t use_begin, use_end;
    double transfer_s;
  };
  std::vector<Tensor> tensors;         // only those used in more than one block
  std::vector<std::uint32_t> uses;     // blocks, ascending, without repetition and without the producer's
  std::vector<std::uint32_t> touched;  // rows of tensors by block
  std::vector<std::uint32_t> touched_begin;
};

Blocks make_blocks(const TaskGraph& g, const Sequence& s) {
  Blocks b;
  const std::size_t most = std::clamp<std::size_t>(40'000'000 / (g.edge_count() + 1), 64, 2048);
  const double total = std::accumulate(s.time_s.begin(), s.time_s.end(), 0.0);
  const auto units = std::uint32_t(s.time_s.size());
  std::vector<std::uint32_t> block_of(units);
  double filled = 0;
  for (std::uint32_t u = 0; u < units; ++u) {
    const bool open = b.time_s.empty() || units <= most || filled >= total * double(b.time_s.size()) / double(most);
    if (open) {
      b.first_unit.push_back(u);
      b.time_s.push_back(0);
      b.persistent.push_back(0);
    }
    block_of[u] = std::uint32_t(b.time_s.size() - 1);
    b.time_s.back() += s.time_s[u];
    b.persistent.back() += s.persistent[u];
    filled += s.time_s[u];
  }
  b.first_unit.push_back(units);
  std::vector<std::uint32_t> row;
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const std::uint32_t own = block_of[s.unit[t]];
    row.clear();
    double transfer = 0;
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const std::uint32_t to = block_of[s.unit[g.out_to[e]]];
      if (to == own) continue;
      row.push_back(to);
      transfer = std::max(transfer, g.transfer_s(e, 0, g.links.size > 1 ? 1 : 0));
    }
    if (row.empty()) continue;
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    const auto begin = std::uint32_t(b.uses.size());
    b.uses.insert(b.uses.end(), row.begin(), row.end());
    b.tensors.push_back(
        {own, std::min(own, row.front()), std::max(own, row.back()), begin, std::uint32_t(b.uses.size()), transfer});
  }
  b.touched_begin.assign(b.time_s.size() + 1, 0);
  for (const auto& tensor : b.tensors) {
    ++b.touched_begin[tensor.producer + 1];
    for (std::uint32_t i = tensor.use_begin; i < tensor.use_end; ++i) ++b.touched_begin[b.uses[i] + 1];
  }
  std::partial_sum(b.touched_begin.begin(), b.touched_begin.end(), b.touched_begin.begin());
  b.touched.resize(b.touched_begin.back());
  auto next = b.touched_begin;
  for (std::uint32_t i = 0; i < b.tensors.size(); ++i) {
    b.touched[next[b.tensors[i].producer]++] = i;
    for (std::uint32_t k = b.tensors[i].use_begin; k < b.tensors[i].use_end; ++k) b.touched[next[b.uses[k]]++] = i;
  }
  return b;
}

/// Loads of all stages that begin at one block, built up block by block.
class StageLoads {
 public:
  explicit StageLoads(const Blocks& blocks) : b_(blocks), inside_(blocks.tensors.size(), 0) {}
  void begin() {
    for (const std::uint32_t i : seen_) inside_[i] = 0;
    seen_.clear();
    load_ = 0;
    bytes_ = 0;
  }
  void add(std::uint32_t block) {
    load_ += b_.time_s[block];
    bytes_ += b_.persistent[block];
    for (std::uint32_t i = b_.touched_begin[block]; i < b_.touched_begin[block + 1]; ++i) {
      const std::uint32_t tensor = b_.touched[i];
      const auto& t = b_.tensors[tensor];
      if (inside_[tensor]++ == 0) {
        load_ += t.transfer_s;  // comes in, or goes out: not all of it is here yet
        seen_.push_back(tensor);
      }
      if (inside_[tensor] == t.use_end - t.use_begin + 1) load_ -= t.transfer_s;
    }
  }
  double load() const { return load_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const Blocks& b_;
  std::vector<std::uint32_t> inside_;  // by tensor: blocks of the stage that have to do with it
  std::vector<std::uint32_t> seen_;
  double load_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::vector<std::uint32_t> optimal_stages(const TaskGraph& graph, const Sequence& sequence, std::uint32_t devices,
                                          std::int64_t limit, const RunContext& context) {
  const Blocks blocks = make_blocks(graph, sequence);
  const auto n = std::uint32_t(blocks.time_s.size());
  const std::uint32_t k = std::min(devices, n);
  constexpr double kNoStages = std::numeric_limits<double>::infinity();
  // best[s * (n + 1) + i]: smallest maximum load of blocks i ... n - 1 in at most s stages; goes backwards, so that one
  // row of stage loads serves all s.
  std::vector<double> best(std::size_t(k + 1) * (n + 1), kNoStages);
  std::vector<std::uint32_t> next(best.size(), n);
  for (std::uint32_t s = 0; s <= k; ++s) best[std::size_t(s) * (n + 1) + n] = 0;
  StageLoads stage(blocks);
  for (std::uint32_t i = n; i-- > 0;) {
    if (context.cancelled()) return {};
    stage.begin();
    for (std::uint32_t j = i; j < n; ++j) {
      stage.add(j);
      if (stage.bytes() > limit) break;
      for (std::uint32_t s = 1; s <= k; ++s) {
        double& here = best[std::size_t(s) * (n + 1) + i];
        const double value = std::max(stage.load(), best[std::size_t(s - 1) * (n + 1) + j + 1]);
        if (value < here) {
          here = value;
          next[std::size_t(s) * (n + 1) + i] = j + 1;
        }
      }
    }
  }
  if (best[std::size_t(k) * (n + 1)] == kNoStages) return {};
  std::vector<std::uint32_t> stages;
  for (std::uint32_t s = k, i = 0; i < n; --s) {
    stages.push_back(blocks.first_unit[i]);
    i = next[std::size_t(s) * (n + 1) + i];
  }
  return stages;
}

}  // namespace turnpoint::placement
