// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/max_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/parallel.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/sequence.h"
#include "core/search/placement/simple_methods.h"

namespace turnpoint::placement {
namespace {

/// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::size_t n) { return std::uint32_t(((next() >> 32) * std::uint64_t(n)) >> 32); }
  double unit() { return double(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// Co-location groups as one unit each, and the tensors between units.
struct Units {
  std::vector<std::uint32_t> of_task;
  std::vector<double> time_s;
  std::vector<std::int64_t> persistent;
  struct Tensor {
    std::uint32_t producer;
    double transfer_s;
  };
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> consumer_begin, consumers;    // of tensors: units, each once, without the producer
  std::vector<std::uint32_t> touched_begin, touched;       // of units: tensors made or read
  std::vector<std::uint32_t> neighbour_begin, neighbours;  // of units
};

template <class Rows>
void into_rows(std::size_t count, Rows&& each_pair, std::vector<std::uint32_t>& begin,
               std::vector<std::uint32_t>& values) {
  begin.assign(count + 1, 0);
  each_pair([&](std::uint32_t row, std::uint32_t) { ++begin[row + 1]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  values.resize(begin.back());
  auto next = begin;
  each_pair([&](std::uint32_t row, std::uint32_t value) { values[next[row]++] = value; });
}

Units make_units(const TaskGraph& g) {
  Units u;
  std::vector<std::uint32_t> of_group(g.groups.size(), kNone);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const std::uint32_t group = g.colocate[t];
    std::uint32_t unit = group == kNone ? kNone : of_group[group];
    if (unit == kNone) {
      unit = std::uint32_t(u.time_s.size());
      u.time_s.push_back(0);
      u.persistent.push_back(0);
      if (group != kNone) of_group[group] = unit;
    }
    u.of_task.push_back(unit);
    u.time_s[unit] += g.time_s[t];
    u.persistent[unit] += g.persistent_bytes[t];
  }
  std::vector<std::uint32_t> row;
  u.consumer_begin.push_back(0);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    row.clear();
    double transfer = 0;
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const std::uint32_t to = u.of_task[g.out_to[e]];
      if (to == u.of_task[t]) continue;
      row.push_back(to);
      transfer = std::max(transfer, g.transfer_s(e, 0, g.links.size > 1 ? 1 : 0));
    }
    if (row.empty()) continue;
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    u.tensors.push_back({u.of_task[t], transfer});
    u.consumers.insert(u.consumers.end(), row.begin(), row.end());
    u.consumer_begin.push_back(std::uint32_t(u.consumers.size()));
  }
  const auto pairs = [&](auto&& body, bool of_tensors) {
    for (std::uint32_t i = 0; i < u.tensors.size(); ++i) {
      const std::uint32_t producer = u.tensors[i].producer;
      if (of_tensors) body(producer, i);
      for (std::uint32_t k = u.consumer_begin[i]; k < u.consumer_begin[i + 1]; ++k) {
        body(u.consumers[k], of_tensors ? i : producer);
        if (!of_tensors) body(producer, u.consumers[k]);
      }
    }
  };
  into_rows(
      u.time_s.size(), [&](auto&& body) { pairs(body, true); }, u.touched_begin, u.touched);
  into_rows(
      u.time_s.size(), [&](auto&& body) { pairs(body, false); }, u.neighbour_begin, u.neighbours);
  return u;
}

/// Loads and memory of all devices while units move one at a time.
class State {
 public:
  State(const Units& units, const TaskGraph& graph, const PlacementRequest& request, std::vector<std::uint32_t> device)
      : u_(units), devices_(request.devices), device_(std::move(device)) {
    for (std::uint32_t d = 0; d < devices_; ++d) {
      speed_.push_back(graph.speed_of(d));
      limit_.push_back(double(request.limit_of(graph, d)));
    }
    load_.assign(devices_, 0);
    bytes_.assign(devices_, 0);
    count_.assign(u_.tensors.size() * devices_, 0);
    for (std::size_t unit = 0; unit < device_.size(); ++unit) {
      load_[device_[unit]] += u_.time_s[unit] / speed_[device_[unit]];
      bytes_[device_[unit]] += double(u_.persistent[unit]);
    }
    for (std::uint32_t i = 0; i < u_.tensors.size(); ++i) {
      for (std::uint32_t k = u_.consumer_begin[i]; k < u_.consumer_begin[i + 1]; ++k)
        ++count_[std::size_t(i) * devices_ + device_[u_.consumers[k]]];
      charge(i, 1);
    }
    scale_ = std::max(1e-300, std::accumulate(u_.time_s.begin(), u_.time_s.end(), 0.0) / devices_);
  }

  void move(std::uint32_t unit, std::uint32_t to) {
    const std::uint32_t from = device_[unit];
    for (std::uint32_t i = u_.touched_begin[unit]; i < u_.touched_begin[unit + 1]; ++i) {
      const std::uint32_t tensor = u_.touched[i];
      charge(tensor, -1);
      if (u_.tensors[tensor].producer == unit) continue;
      --count_[std::size_t(tensor) * devices_ + from];
      ++count_[std::size_t(tensor) * devices_ + to];
    }
    device_[unit] = to;
    for (std::uint32_t i = u_.touched_begin[unit]; i < u_.touched_begin[unit + 1]; ++i) charge(u_.touched[i], 1);
    load_[from] -= u_.time_s[unit] / speed_[from];
    load_[to] += u_.time_s[unit] / speed_[to];
    bytes_[from] -= double(u_.persistent[unit]);
    bytes_[to] += double(u_.persistent[unit]);
  }

  double highest() const { return *std::max_element(load_.begin(), load_.end()); }
  double missing() const {
    double sum = 0;
    for (std::uint32_t d = 0; d < devices_; ++d) sum += std::max(0.0, bytes_[d] - limit_[d]) / (limit_[d] + 1);
    return sum;
  }
  /// Smooth stand-in for the highest load, in units of a perfectly shared load, plus what lacks memory.
  double energy() const {
    const double top = highest();
    if (top <= 0) return 100 * missing();
    double sum = 0;
    for (const double load : load_) {
      const double x = load / top, x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
      sum += x8 * x4;
    }
    return top / scale_ * std::pow(sum, 1.0 / 12) + 100 * missing();
  }
  const std::vector<std::uint32_t>& device() const { return device_; }
  std::uint32_t device_of(std::uint32_t unit) const { return device_[unit]; }

 private:
  void charge(std::uint32_t tensor, int sign) {
    const Units::Tensor& t = u_.tensors[tensor];
    const std::uint32_t own = device_[t.producer];
    const std::uint16_t* count = count_.data() + std::size_t(tensor) * devices_;
    bool leaves = false;
    for (std::uint32_t d = 0; d < devices_; ++d)
      if (count[d] != 0 && d != own) {
        load_[d] += sign * t.transfer_s;
        leaves = true;
      }
    if (leaves) load_[own] += sign * t.transfer_s;
  }

  const Units& u_;
  std::uint32_t devices_;
  std::vector<std::uint32_t> device_;
  std::vector<double> load_, bytes_, speed_, limit_;
  std::vector<std::uint16_t> count_;  // by tensor and device: units there that read it
  double scale_ = 1;
};

struct Found {
  std::vector<std::uint32_t> device;  // by unit
  double highest = 0, missing = 0;
  bool better_than(const Found& other) const {
    return std::make_pair(missing, highest) < std::make_pair(other.missing, other.highest);
  }
};

/// Simulated annealing by moves of one unit, or of a unit with a neighbour on the same device, and by swaps.
Found anneal(const Units& u, const TaskGraph& g, const PlacementRequest& request, std::vector<std::uint32_t> start,
             std::uint64_t seed, std::size_t steps, double hot, const RunContext& context) {
  State state(u, g, request, std::move(start));
  Random random(seed);
  Found best{state.device(), state.highest(), state.missing()};
  double energy = state.energy();
  const double cold = 1e-4, cooling = std::pow(cold / hot, 1.0 / double(steps));
  double temperature = hot;
  const auto units = std::uint32_t(u.time_s.size());
  const auto neighbour = [&](std::uint32_t unit) {
    const std::uint32_t n = u.neighbour_begin[unit + 1] - u.neighbour_begin[unit];
    return n == 0 ? unit : u.neighbours[u.neighbour_begin[unit] + random.below(n)];
  };
  for (std::size_t step = 0; step < steps; ++step, temperature *= cooling) {
    if (step % 1024 == 0 && context.cancelled()) break;
    const std::uint32_t unit = random.below(units), from = state.device_of(unit);
    const std::uint32_t kind = random.below(8);
    std::uint32_t other = kNone, to = state.device_of(neighbour(unit));
    if (kind == 0 || to == from) to = random.below(request.devices);
    if (to == from) continue;
    std::uint32_t other_to = to;
    if (kind >= 6) {
      other = random.below(units);  // swap
      if (state.device_of(other) != to) other = neighbour(unit);
      if (state.device_of(other) != to) continue;
      other_to = from;
    } else if (kind >= 4) {
      other = neighbour(unit);
      if (state.device_of(other) != from || other == unit) other = kNone;
    }
    state.move(unit, to);
    if (other != kNone) state.move(other, other_to);
    const double next = state.energy();
    if (next <= energy || random.unit() < std::exp((energy - next) / temperature)) {
      energy = next;
      const double highest = state.highest();
      if (highest < best.highest || state.missing() < best.missing) {
        Found found{{}, highest, state.missing()};
        if (found.better_than(best)) {
          found.device = state.device();
          best = std::move(found);
        }
      }
    } else {
      if (other != kNone) state.move(other, kind >= 6 ? to : from);
      state.move(unit, from);
    }
  }
  return best;
}

std::vector<std::uint32_t> by_unit(const Units& u, const std::vector<std::uint32_t>& device) {
  std::vector<std::uint32_t> result(u.time_s.size());
  for (std::size_t t = 0; t < device.size(); ++t) result[u.of_task[t]] = device[t];
  return result;
}

}  // namespace

Expected<PlacementResult> run_max_load(const TaskGraph& graph, const PlacementRequest& request,
                                       const RunContext& context) {
  const Units units = make_units(graph);
  const std::int64_t limit = smallest_limit(graph, request);
  std::vector<std::vector<std::uint32_t>> starts;
  context.report("contiguous stages", 0.05);
  for (const auto order : {SequenceOrder::topological, SequenceOrder::depth_first, SequenceOrder::top_level,
                           SequenceOrder::bottom_level}) {
    const Sequence line = line_up(graph, order);
    const auto stages = optimal_stages(graph, line, request.devices, limit, context);
    if (context.cancelled()) return cancelled_error();
    starts.push_back(by_unit(units, cut(line, stages.empty() ? balanced_stages(line, request.devices) : stages)));
  }
  starts.emplace_back(units.time_s.size(), best_single_device(graph, request));
  std::vector<Found> found(2 * starts.size());
  context.report("annealing", 0.4);
  // Beyond this the table of readers by device is not worth its memory, and the stages stand as they are.
  const bool small = units.tensors.size() * double(request.devices) < 1e8 && units.time_s.size() > 1 &&
                     units.consumers.size() / (units.tensors.size() + 1) < 30000;
  const std::size_t steps = small ? 90000 : 0;
  ThreadPool pool(context.threads);
  pool.for_each(found.size(), [&](std::size_t i, int) {
    const double hot = i < starts.size() ? 0.004 : 0.05;
    found[i] = small ? anneal(units, graph, request, starts[i % starts.size()], request.seed * 1000003 + i, steps, hot,
                              context)
                     : Found{};
  });
  if (context.cancelled()) return cancelled_error();
  PlacementResult result;
  Judge judge(graph, request);
  std::optional<Verdict> best;
  for (std::size_t i = 0; i < starts.size() + (small ? found.size() : 0); ++i) {
    const auto& device = i < starts.size() ? starts[i] : found[i - starts.size()].device;
    Placement placement;
    placement.devices = request.devices;
    for (const std::uint32_t unit : units.of_task) placement.device.push_back(device[unit]);
    auto verdict = judge.measure(placement);
    if (!verdict) return verdict.error();
    if (best && !verdict->better_than(*best, Objective::max_load)) continue;
    best = std::move(*verdict);
    result.placement = std::move(placement);
  }
  return result;
}

}  // namespace turnpoint::placement
