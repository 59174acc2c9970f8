// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/max_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/parallel.h"
#include "core/search/placement/convex_stages.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/random.h"
#include "core/search/placement/sequence.h"
#include "core/search/placement/simple_methods.h"
#include "core/search/placement/units.h"

namespace turnpoint::placement {
namespace {

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

/// Simulated annealing by moves of one unit or of a connected piece of a device's part, and by swaps.
Found anneal(const Units& u, const TaskGraph& g, const PlacementRequest& request, std::vector<std::uint32_t> start,
             std::uint64_t seed, std::size_t steps, double hot, const RunContext& context) {
  State state(u, g, request, std::move(start));
  Random random(seed);
  Found best{state.device(), state.highest(), state.missing()};
  double energy = state.energy();
  const double cold = 1e-4, cooling = std::pow(cold / hot, 1.0 / double(steps));
  double temperature = hot;
  const auto units = std::uint32_t(u.time_s.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved;  // unit, new device
  const auto neighbour = [&](std::uint32_t unit) {
    const std::uint32_t n = u.neighbour_begin[unit + 1] - u.neighbour_begin[unit];
    return n == 0 ? unit : u.neighbours[u.neighbour_begin[unit] + random.below(n)];
  };
  for (std::size_t step = 0; step < steps; ++step, temperature *= cooling) {
    if (step % 1024 == 0 && context.cancelled()) break;
    const std::uint32_t unit = random.below(units), from = state.device_of(unit);
    const std::uint32_t kind = random.below(8);
    std::uint32_t to = state.device_of(neighbour(unit));
    if (kind == 0 || to == from) to = random.below(request.devices);
    if (to == from) continue;
    moved.assign(1, {unit, to});
    if (kind >= 6) {
      std::uint32_t other = random.below(units);  // swap
      if (state.device_of(other) != to) other = neighbour(unit);
      if (state.device_of(other) != to) continue;
      moved.push_back({other, from});
    } else if (kind >= 3) {
      // A piece of the graph around the unit, by a walk on its device.
      const std::uint32_t most = 2 + random.below(kind == 3 ? 24 : 6);
      std::uint32_t at = unit;
      for (std::uint32_t tries = 0; moved.size() < most && tries < 2 * most; ++tries) {
        const std::uint32_t next = neighbour(at);
        if (state.device_of(next) != from) continue;
        at = next;
        if (std::find(moved.begin(), moved.end(), std::make_pair(next, to)) == moved.end()) moved.push_back({next, to});
      }
    }
    for (const auto& [who, where] : moved) state.move(who, where);
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
      for (auto last = moved.rbegin(); last != moved.rend(); ++last)
        state.move(last->first, last->second == to ? from : to);
    }
  }
  return best;
}

/// A unit is where its longest task is.
std::vector<std::uint32_t> by_unit(const TaskGraph& g, const Units& u, const std::vector<std::uint32_t>& device) {
  std::vector<std::uint32_t> result(u.time_s.size());
  std::vector<double> longest(u.time_s.size(), -1);
  for (std::size_t t = 0; t < device.size(); ++t) {
    const std::uint32_t unit = u.of_task[t];
    if (g.time_s[t] <= longest[unit]) continue;
    longest[unit] = g.time_s[t];
    result[unit] = device[t];
  }
  return result;
}

}  // namespace

namespace {

/// How many cuts of lines there is time for, by what a cut costs.
std::size_t affordable_cuts(const Units& units, std::uint32_t devices) {
  const double n = double(units.time_s.size());
  return std::size_t(std::min(480.0, 1.5e8 / (n * n * (devices / 2.0 + 3) + 1)));
}

struct Line {
  std::vector<TaskIndex> order;
  Found found;
  std::vector<std::uint32_t> cuts;  // places in the order at which devices change
};

class Lines {
 public:
  Lines(const TaskGraph& graph, const Units& units, const PlacementRequest& request, const RunContext& context)
      : g_(graph), units_(units), request_(request), context_(context), limit_(smallest_limit(graph, request)) {}

  /// The best contiguous stages of an order, measured; an empty device list if cancelled.
  Line cut_line(std::vector<TaskIndex> order) const {
    Line line;
    const Sequence sequence = line_up(g_, order);
    const auto stages = optimal_stages(g_, sequence, request_.devices, limit_, context_);
    if (context_.cancelled()) return line;
    const auto device = cut(sequence, stages.empty() ? balanced_stages(sequence, request_.devices) : stages);
    line.found = measured(by_unit(g_, units_, device));
    for (std::uint32_t i = 1; i < order.size(); ++i)
      if (device[order[i]] != device[order[i - 1]]) line.cuts.push_back(i);
    line.order = std::move(order);
    return line;
  }

  Found measured(std::vector<std::uint32_t> device_of_unit) const {
    Found found{std::move(device_of_unit), 0, 0};
    Placement placement;
    placement.devices = request_.devices;
    for (const std::uint32_t unit : units_.of_task) placement.device.push_back(found.device[unit]);
    found.highest = max_load_s(g_, placement);
    std::vector<std::int64_t> bytes(request_.devices, 0);
    for (std::size_t u = 0; u < found.device.size(); ++u) bytes[found.device[u]] += units_.persistent[u];
    for (std::uint32_t d = 0; d < request_.devices; ++d)
      found.missing += double(std::max<std::int64_t>(0, bytes[d] - std::min(bytes[d], request_.limit_of(g_, d))));
    return found;
  }

  /// Shuffles the order around one cut after the other, and keeps what is not worse.
  void improve(Line& line, std::size_t tries, std::uint64_t seed) const {
    Random random(seed);
    for (std::size_t i = 0; i < tries && !context_.cancelled() && !line.cuts.empty(); ++i) {
      const std::size_t centre = line.cuts[random.below(line.cuts.size())], width = 2 + random.below(30);
      Line next = cut_line(shuffled(g_, line.order, centre, width, random.next()));
      if (next.found.device.empty() || line.found.better_than(next.found)) continue;
      line = std::move(next);
    }
  }

 private:
  const TaskGraph& g_;
  const Units& units_;
  const PlacementRequest& request_;
  const RunContext& context_;
  std::int64_t limit_;
};

/// Contiguous stages over several lines, the best first, without repetition; and everything on one device, which alone
/// is there where it is stopped at once.
std::vector<Found> first_placements(const TaskGraph& graph, const Units& units, const PlacementRequest& request,
                                    ThreadPool& pool, const RunContext& context) {
  const SequenceOrder orders[] = {SequenceOrder::topological, SequenceOrder::depth_first, SequenceOrder::top_level,
                                  SequenceOrder::bottom_level};
  const std::size_t cuts = affordable_cuts(units, request.devices);
  const Lines maker(graph, units, request, context);
  std::vector<Line> lines(std::size(orders) + cuts / 8);
  pool.for_each(lines.size(), [&](std::size_t i, int) {
    lines[i] = maker.cut_line(i < std::size(orders) ? order_of(graph, orders[i])
                                                    : random_order(graph, request.seed * 7919 + i));
  });
  std::erase_if(lines, [](const Line& line) { return line.found.device.empty(); });
  const auto better = [](const Line& a, const Line& b) { return a.found.better_than(b.found); };
  std::stable_sort(lines.begin(), lines.end(), better);
  constexpr std::size_t kImproved = 4;
  pool.for_each(std::min(kImproved, lines.size()), [&](std::size_t i, int) {
    maker.improve(lines[i], cuts * 7 / 8 / kImproved, request.seed * 104729 + i);
  });
  std::vector<Found> found;
  for (Line& line : lines) found.push_back(std::move(line.found));
  found.push_back(maker.measured(std::vector<std::uint32_t>(units.time_s.size(), best_single_device(graph, request))));
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.better_than(b); });
  const auto same = [](const Found& a, const Found& b) { return a.device == b.device; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

}  // namespace

Expected<SimulatedPlacement> run_max_load(const TaskGraph& graph, const PlacementRequest& request,
                                          const RunContext& context) {
  const Units units = make_units(graph);
  ThreadPool pool(context.threads);
  context.report("contiguous stages", 0.05);
  auto first = first_placements(graph, units, request, pool, context);
  context.report("convex stages", 0.3);
  const double known = first[0].missing > 0 ? std::numeric_limits<double>::infinity() : first[0].highest;
  std::vector<std::vector<std::uint32_t>> starts;
  if (!context.cancelled())
    if (auto convex = convex_stages(graph, units, request, known, context)) starts.push_back(std::move(*convex));
  for (Found& found : first) starts.push_back(std::move(found.device));
  constexpr std::size_t kStarts = 4;
  if (starts.size() > kStarts) starts.resize(kStarts);
  // Beyond this the table of readers by device is not worth its memory, and the stages stand as they are.
  const bool small =
      double(units.tensors.size()) * request.devices < 1e8 && units.time_s.size() > 1 && units.time_s.size() < 65000;
  // From each start gently, to polish it, and hot, to forget it.
  const double hot[] = {0.0015, 0.01, 0.05};
  std::vector<Found> found(small ? std::size(hot) * starts.size() : 0);
  context.report("annealing", 0.4);
  pool.for_each(found.size(), [&](std::size_t i, int) {
    if (context.cancelled()) return;
    constexpr std::size_t kSteps = 80000;
    found[i] = anneal(units, graph, request, starts[i % starts.size()], request.seed * 1000003 + i, kSteps,
                      hot[i / starts.size()], context);
  });
  const bool stopped = context.cancelled();
  for (Found& f : found)
    if (!f.device.empty()) starts.push_back(std::move(f.device));
  SimulatedPlacement result;
  Judge judge(graph, request);
  std::optional<Verdict> best;
  for (const auto& device : starts) {
    Placement placement;
    placement.devices = request.devices;
    for (const std::uint32_t unit : units.of_task) placement.device.push_back(device[unit]);
    auto verdict = judge.measure(placement);
    if (!verdict) return verdict.error();
    if (best && !verdict->better_than(*best, Objective::max_load)) continue;
    best = std::move(*verdict);
    result.placement = std::move(placement);
  }
  if (stopped) result.stages.push_back({"contiguous stages, annealed" + std::string(kStoppedEarly), best->makespan_s});
  return result;
}

}  // namespace turnpoint::placement
