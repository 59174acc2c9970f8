// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/measure/loop.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/hardware/refine_curve.h"
#include "gpu_probe/measure/statistics.h"

namespace turnpoint::probe {

namespace {

using nlohmann::json;

/// Points of one kind of collective in one kind of group.
struct Curve {
  ProbeCollective what;  ///< its bytes mean nothing
  std::vector<TimedSize> points;

  bool holds(const ProbeCollective& c) const {
    return c.kind == what.kind && c.group_size == what.group_size && c.stride == what.stride;
  }
  void add(const TimedSize& point) {
    const auto at = std::lower_bound(points.begin(), points.end(), point.bytes,
                                     [](const TimedSize& p, std::int64_t bytes) { return p.bytes < bytes; });
    if (at == points.end() || at->bytes != point.bytes) points.insert(at, point);
  }
};

class Loop {
 public:
  Loop(const ProbeJob& job, Backend& backend, Team& team, const LoopOptions& options)
      : job_(job), backend_(backend), team_(team), options_(options), position_(options.start) {
    // The same curves in the same order on every rank.
    for (const auto& known : job_.known) curve_of(known.collective).add(point(known));
    for (const auto& wanted : job_.collectives) curve_of(wanted);
  }

  bool run() {
    const auto order = run_order(job_);
    bool late = false;
    for (; position_ < order.size(); ++position_) {
      if (!agree_if_late(late)) return false;
      if (late) break;
      const std::size_t index = order[position_];
      const bool going = index < job_.operators.size()
                             ? measure_operator(index)
                             : measure_collective(index, job_.collectives[index - job_.operators.size()]);
      if (!going) return false;
    }
    const std::size_t skipped = order.size() - std::min(position_, order.size());
    int midpoints = 0;
    if (job_.refine > 0 && !late && !refine(midpoints, late)) return false;
    json done = {{"type", "done"}, {"skipped", skipped}};
    if (job_.refine > 0) {
      done["midpoints"] = midpoints;
      done["unresolved"] =
          std::count_if(curves_.begin(), curves_.end(), [&](const Curve& c) { return next_of(c).has_value(); });
    }
    options_.say(done);
    return true;
  }

 private:
  static TimedSize point(const KnownCollective& known) { return {known.collective.bytes, known.time_s, known.spread}; }
  Curve& curve_of(const ProbeCollective& c) {
    const auto found = std::find_if(curves_.begin(), curves_.end(), [&](const Curve& curve) { return curve.holds(c); });
    return found != curves_.end() ? *found : curves_.emplace_back(Curve{c, {}});
  }
  std::optional<Midpoint> next_of(const Curve& curve) const {
    RefineRule rule;
    rule.tolerance = job_.refine;
    rule.unit = collective_unit(curve.what);
    return next_midpoint(curve.points, rule);
  }

  bool agree(double& value) {
    if (team_.ranks() == 1) return true;
    float shared = static_cast<float>(value);
    if (!team_.agree({&shared, 1})) return false;
    value = static_cast<double>(shared);
    return true;
  }
  bool agree_if_late(bool& late) {
    double is_late = options_.clock() >= options_.deadline ? 1 : 0;
    if (!agree(is_late)) return false;
    late = is_late > 0;
    return true;
  }
  bool largest(double& value) {
    if (team_.ranks() == 1) return true;
    float most = static_cast<float>(value);
    if (!team_.largest(most)) return false;
    value = static_cast<double>(most);
    return true;
  }

  /// The most urgent size of all curves, and so on, as rank 0 finds them: times may differ in their last bits.
  bool refine(int& midpoints, bool& late) {
    constexpr std::int64_t kHalf = std::int64_t(1) << 20;  // a float holds 24 bits
    for (; midpoints < kMostMidpoints; ++midpoints) {
      if (!agree_if_late(late)) return false;
      if (late) return true;
      float next[3] = {-1, 0, 0};
      double most = 0;
      for (std::size_t i = 0; i < curves_.size(); ++i)
        if (const auto middle = next_of(curves_[i]); middle && middle->score > most) {
          most = middle->score;
          next[0] = static_cast<float>(i);
          next[1] = static_cast<float>(middle->bytes / kHalf);
          next[2] = static_cast<float>(middle->bytes % kHalf);
        }
      if (team_.ranks() > 1 && !team_.agree(next)) return false;
      if (next[0] < 0) return true;
      ProbeCollective wanted = curves_[static_cast<std::size_t>(next[0])].what;
      wanted.bytes = static_cast<std::int64_t>(next[1]) * kHalf + static_cast<std::int64_t>(next[2]);
      if (!measure_collective(job_.items() + static_cast<std::size_t>(midpoints), wanted)) return false;
      ++position_;
    }
    return true;
  }

  struct Sampling {
    double item_s = 0;
    bool exchange = false;
  };
  /// Samples in step until rank 0 has enough: warm-ups first. False if a rank died; an error ends the sampling.
  bool sample(const Sampling& how, const std::function<Expected<double>()>& once, std::vector<double>& times,
              std::optional<Error>& error) {
    double began = options_.clock();
    int warm = 0;
    for (double go_on = 1; go_on > 0;) {
      if (team_.ranks() > 1 && !team_.barrier()) return false;
      const auto time = once();
      double failed = time ? 0 : 1;
      if (!largest(failed)) return false;
      if (failed > 0) {
        error = time ? device_error("failed on another rank") : time.error();
        return true;
      }
      double slowest = *time;
      if (!largest(slowest)) return false;
      const double elapsed = options_.clock() - began;
      if (warm < kWarmUps && !(warm > 0 && elapsed > how.item_s)) {
        if (++warm == kWarmUps || elapsed > how.item_s) began = options_.clock();
      } else {
        times.push_back(slowest);
      }
      go_on = !times.empty() && satisfied(how, times, elapsed) ? 0 : 1;
      if (!agree(go_on)) return false;
      // Ranks whose own clock still says "warming up" follow rank 0.
      if (team_.rank() != 0) warm = kWarmUps;
    }
    return true;
  }

  /// An exchange waits for the slowest of several ranks, so that on a host that is used otherwise few samples are
  /// undisturbed: more of them are taken.
  bool satisfied(const Sampling& how, const std::vector<double>& times, double elapsed) const {
    // A shared host disturbs for a while at a time: more samples there find the undisturbed ones.
    if (!backend_.shared_host() && settled(times)) return true;
    if (!enough(times, elapsed, how.item_s)) return false;
    if (!how.exchange || !backend_.shared_host() || elapsed >= 3 * how.item_s) return true;
    return static_cast<int>(times.size()) >= kEnoughExchanges && spread_of(times).relative() <= kVeryNoisy;
  }

  double usual(const Spread& spread) const { return backend_.shared_host() ? spread.q1 : spread.median; }

  Spread add_times(json& item, const std::vector<double>& times, bool exchange) const {
    const Spread spread = spread_of(times);
    const bool least = exchange && backend_.shared_host() && spread.relative() > kVeryNoisy;
    item["time_s"] = least ? spread.least : usual(spread);
    if (least) item["statistic"] = "least";
    item["min_s"] = spread.least;
    item["q1_s"] = spread.q1;
    item["median_s"] = spread.median;
    item["q3_s"] = spread.q3;
    item["samples"] = spread.samples;
    item["noisy"] = spread.relative() > kNoisy;
    return spread;
  }

  bool measure_operator(std::size_t index) {
    const ProbeOperator& op = job_.operators[index];
    options_.say({{"type", "start"}, {"index", index}, {"position", position_}, {"phase", op.kind}});
    json item = operator_header(op);
    item["type"] = "item";
    item["index"] = index;
    auto prepared = prepare(op);
    double failed = prepared ? 0 : 1;
    if (!largest(failed)) return false;
    std::optional<Error> error;
    if (failed > 0) {
      error = prepared ? device_error("another rank could not prepare it") : prepared.error();
    } else {
      const bool hot = job_.hot && backend_.cold();
      const Sampling how{hot ? job_.item_s / 2 : job_.item_s, false};
      std::vector<double> times;
      const auto once = [&] { return (*prepared)->sample(true); };
      if (!sample(how, once, times, error)) return false;
      if (!error) add_times(item, times, false);
      if (!error && hot && !add_hot(item, how, **prepared, error)) return false;
      if (!error) {
        item["implementation"] = (*prepared)->implementation();
        add_conditions(item);
      }
    }
    if (error)
      say_not_measured(std::move(item), *error);
    else
      options_.say(item);
    if (!backend_.broken()) return true;
    const Error end = device_error(error ? error->what : "the device failed", error ? error->hint : "");
    options_.say({{"type", "error"}, {"what", end.what}, {"hint", end.hint}});
    return false;
  }

  void say_not_measured(json item, const Error& error) {
    item["not_measured"] = error.what;
    if (!error.hint.empty()) item["hint"] = error.hint;
    options_.say(item);
  }

  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) {
    try {
      return backend_.prepare(op);
    } catch (const std::bad_alloc&) {
      return device_error("out of host memory");
    }
  }

  /// False once a rank has died.
  bool add_hot(json& item, const Sampling& how, Prepared& prepared, std::optional<Error>& error) {
    double cold_s = item["time_s"].get<double>();
    if (!agree(cold_s)) return false;
    const int repeats = std::clamp(static_cast<int>(0.1 * how.item_s / std::max(cold_s, 1e-7)), 4, 100);
    std::vector<double> times;
    if (!sample(
            how, [&] { return prepared.sample_hot(repeats); }, times, error))
      return false;
    if (!error) item["hot_s"] = usual(spread_of(times));
    return true;
  }

  void add_conditions(json& item) {
    const Conditions now = backend_.conditions();
    if (now.clock_mhz) item["clock_mhz"] = *now.clock_mhz;
    if (now.temperature_c) item["temperature_c"] = *now.temperature_c;
    if (now.power_w) item["power_w"] = *now.power_w;
    if (!now.throttled.empty()) item["throttled"] = now.throttled;
  }

  bool measure_collective(std::size_t index, const ProbeCollective& wanted) {
    options_.say({{"type", "start"}, {"index", index}, {"position", position_}, {"phase", to_string(wanted.kind)}});
    const DeviceGroup shape = team_.shape(wanted);
    json item = {{"type", "item"},
                 {"index", index},
                 {"collective", to_string(wanted.kind)},
                 {"group",
                  {{"size", shape.size},
                   {"nodes", shape.nodes},
                   {"per_node", shape.per_node},
                   {"concurrent", shape.concurrent}}},
                 {"bytes", wanted.bytes}};
    if (wanted.stride != 1) item["stride"] = wanted.stride;
    if (index >= job_.items()) item["midpoint"] = true;
    if (team_.ranks() < wanted.group_size) {
      item["not_measured"] = fmt::format("needs {} devices, and this run has {}", wanted.group_size, team_.ranks());
      options_.say(item);
      return true;
    }
    const auto made = team_.prepare(wanted);
    if (!made) {
      say_not_measured(std::move(item), made.error());
      return true;
    }
    const auto& prepared = *made;
    if (!prepared) return false;
    std::vector<double> times;
    std::optional<Error> error;
    const auto once = [&] { return prepared->sample(false); };
    if (!sample({job_.item_s, true}, once, times, error) || error) return false;
    const Spread spread = add_times(item, times, true);
    item["implementation"] = prepared->implementation();
    options_.say(item);
    curve_of(wanted).add({wanted.bytes, item["time_s"].get<double>(), spread.relative()});
    return true;
  }

  const ProbeJob& job_;
  Backend& backend_;
  Team& team_;
  const LoopOptions& options_;
  std::vector<Curve> curves_;
  std::size_t position_;  ///< in the run order; midpoints follow it
};

}  // namespace

bool run_loop(const ProbeJob& job, Backend& backend, Team& team, const LoopOptions& options) {
  return Loop(job, backend, team, options).run();
}

}  // namespace turnpoint::probe
