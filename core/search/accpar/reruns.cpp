// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/reruns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "core/base/text.h"
#include "core/cost/operator_cost.h"
#include "core/plan/ratio_charges.h"
#include "core/plan/ratio_evaluator.h"
#include "core/schedule/plan_schedule.h"
#include "core/schedule/ratio_roles.h"

namespace turnpoint::accpar {

namespace {

constexpr int kRounds = 8;               // of simulations, each of which may ask for more to run again
constexpr int kParts = 8;                // in which the whole of what can be spared is tried
constexpr std::size_t kTakenBack = 400;  // choices among which such are looked for that are not needed

/// What one device holds and how long it computes, as operators are told to run again.
class DeviceMemory {
 public:
  DeviceMemory(const Model& model, const RatioCharges& charges, std::uint32_t device, LoopLengths lengths,
               RatioCharges::AsLeft as_left)
      : model_(model),
        charges_(charges),
        lengths_(std::move(lengths)),
        as_left_(std::move(as_left)),
        again_(model.operators.size(), 0),
        into_(model.operators.size()),
        out_of_(model.operators.size()) {
    const auto& flows = charges.uses().flows;
    for (std::size_t o = 0; o < again_.size(); ++o) {
      CostBreakdown cost = charges.device_cost(OperatorId(o), device, lengths_[o]);
      seconds_.push_back(cost[ComputePart::forward]);
      inside_.push_back(cost[MemoryPart::activations]);
      bytes_ += cost.memory_bytes();
    }
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      out_of_[flows[f].producer.index].push_back(f);
      read_.emplace_back(flows[f].consumers.size(), 0);
      for (std::uint32_t c = 0; c < flows[f].consumers.size(); ++c)
        into_[flows[f].consumers[c].op.index].push_back({f, c});
      bytes_ += held(f);
    }
  }

  std::int64_t bytes() const { return bytes_; }
  double seconds(OperatorId id) const { return seconds_[id.index]; }
  bool runs_again(OperatorId id) const { return again_[id.index] != 0; }

  /// Whether its second run may spare something: it is one of those that other plans may run again, too.
  bool may_run_again(OperatorId id) const {
    const Operator& op = model_.operators[id];
    if (op.is_view() || op.kind == OperatorKind::input) return false;
    return charges_.uses().run_again[id.index] != RunAgain::never ||
           (inside_[id.index] > 0 && internals_can_be_recomputed(model_, op));
  }

  /// Bytes that are spared if these run again as well.
  std::int64_t gain(const std::vector<OperatorId>& more) {
    const std::int64_t before = bytes_;
    run_again(more, true);
    const std::int64_t gained = before - bytes_;
    run_again(more, false);
    return gained;
  }

  /// None of them does what it is told already.
  void run_again(const std::vector<OperatorId>& operators, bool on) {
    std::vector<std::uint32_t> touched;
    for (const OperatorId id : operators) {
      for (const std::uint32_t f : out_of_[id.index]) touched.push_back(f);
      touch_reads(id, touched);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::uint32_t f : touched) bytes_ -= held(f);
    for (const OperatorId id : operators) {
      again_[id.index] = on;
      bytes_ += on ? -inside_[id.index] : inside_[id.index];
      count_reads(id, on ? 1 : -1);
    }
    for (const std::uint32_t f : touched) bytes_ += held(f);
  }

  /// Those that make what it reads and backward does not keep, as far as they may run again, and theirs: where they do
  /// not, what it reads has to be kept for it.
  std::vector<OperatorId> with_makers(OperatorId id) const {
    std::vector<OperatorId> all{id};
    for (std::size_t at = 0; at < all.size(); ++at) add_makers(all[at], all);
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  struct Read {
    std::uint32_t flow, consumer;
  };

  std::int64_t held(std::uint32_t f) const {
    std::vector<char> read;
    for (const int count : read_[f]) read.push_back(count > 0);
    CostBreakdown cost;
    charges_.hold_flow(f, lengths_, {again_[charges_.uses().flows[f].producer.index] != 0, &read, &as_left_[f]}, cost);
    return cost.memory_bytes();
  }

  void add_makers(OperatorId reader, std::vector<OperatorId>& all) const {
    for (const Read& read : into_[reader.index]) {
      const TensorFlow& flow = charges_.uses().flows[read.flow];
      const OperatorId maker = flow.producer;
      if (flow.any_consumer_saves() || flow.producer_saves || again_[maker.index]) continue;
      if (flow.producer_is_view)
        add_makers(maker, all);
      else if (may_run_again(maker) && std::find(all.begin(), all.end(), maker) == all.end())
        all.push_back(maker);
    }
  }

  bool makes_view(std::uint32_t f) const { return charges_.uses().flows[f].producer_is_view; }

  /// What an operator reads, and what that views.
  void touch_reads(OperatorId id, std::vector<std::uint32_t>& touched) const {
    for (const Read& read : into_[id.index]) {
      touched.push_back(read.flow);
      if (makes_view(read.flow)) touch_reads(charges_.uses().flows[read.flow].producer, touched);
    }
  }
  void count_reads(OperatorId id, int by) {
    for (const Read& read : into_[id.index]) {
      read_[read.flow][read.consumer] += by;
      if (makes_view(read.flow)) count_reads(charges_.uses().flows[read.flow].producer, by);
    }
  }

  const Model& model_;
  const RatioCharges& charges_;
  const LoopLengths lengths_;
  const RatioCharges::AsLeft as_left_;
  std::vector<char> again_;
  std::vector<std::vector<Read>> into_;
  std::vector<std::vector<std::uint32_t>> out_of_;
  std::vector<double> seconds_;
  std::vector<std::int64_t> inside_;
  std::vector<std::vector<int>> read_;  ///< by flow and consumer: how many second runs read it
  std::int64_t bytes_ = 0;
};

/// Of the devices of one role.
class RoleReruns {
 public:
  /// Where the search is cancelled meanwhile, what was chosen so far.
  RoleReruns(const Model& model, DeviceMemory memory, const RunContext& context)
      : memory_(std::move(memory)), least_(memory_.bytes()) {
    begin_.push_back(memory_.bytes());
    choose(model, context);
  }

  std::int64_t plain() const { return begin_.front(); }
  std::int64_t least() const { return least_; }

  /// What runs again so that the device holds no more than this, or all that spares memory.
  std::vector<OperatorId> within(std::int64_t bytes) {
    std::size_t count = 0;
    while (count < steps_.size() && begin_[count] > bytes) ++count;
    std::vector<std::vector<OperatorId>> taken(steps_.begin(), steps_.begin() + std::ptrdiff_t(count));
    set(taken);
    if (memory_.bytes() <= bytes && count <= kTakenBack) take_back(taken, bytes);
    std::vector<OperatorId> all;
    for (const auto& step : taken) all.insert(all.end(), step.begin(), step.end());
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  struct Candidate {
    double bytes_per_second;
    OperatorId op;
    std::vector<OperatorId> with;
    bool operator<(const Candidate& other) const {
      return bytes_per_second != other.bytes_per_second ? bytes_per_second < other.bytes_per_second : other.op < op;
    }
  };

  Candidate judged(OperatorId id) {
    Candidate best{0, id, {}};
    std::vector<std::vector<OperatorId>> ways = {{id}};
    if (auto all = memory_.with_makers(id); all.size() > 1) ways.push_back(std::move(all));
    for (auto& way : ways) {
      double seconds = 0;
      for (const OperatorId op : way) seconds += memory_.seconds(op);
      const double rate = double(memory_.gain(way)) / std::max(seconds, 1e-12);
      if (rate > best.bytes_per_second) best.bytes_per_second = rate, best.with = std::move(way);
    }
    return best;
  }

  void choose(const Model& model, const RunContext& context) {
    for (bool any = true; any && !context.cancelled();) {
      any = false;
      std::priority_queue<Candidate> queue;
      for (std::size_t o = 0; o < model.operators.size() && !context.cancelled(); ++o)
        if (const OperatorId id(o); !memory_.runs_again(id) && memory_.may_run_again(id))
          if (Candidate one = judged(id); one.bytes_per_second > 0) queue.push(std::move(one));
      while (!queue.empty() && !context.cancelled()) {
        const OperatorId id = queue.top().op;
        queue.pop();
        if (memory_.runs_again(id)) continue;
        Candidate now = judged(id);  // what was chosen since may have changed it
        if (now.bytes_per_second <= 0) continue;
        if (!queue.empty() && now < queue.top()) {
          queue.push(std::move(now));
          continue;
        }
        memory_.run_again(now.with, true);
        steps_.push_back(std::move(now.with));
        begin_.push_back(memory_.bytes());
        any = true;
      }
    }
    chosen_ = steps_;
    least_ = memory_.bytes();
  }

  void set(const std::vector<std::vector<OperatorId>>& steps) {
    for (const auto& step : chosen_) memory_.run_again(step, false);
    for (const auto& step : steps) memory_.run_again(step, true);
    chosen_ = steps;
  }

  /// The dearest first.
  void take_back(std::vector<std::vector<OperatorId>>& taken, std::int64_t bytes) {
    const auto seconds = [&](const std::vector<OperatorId>& step) {
      double sum = 0;
      for (const OperatorId op : step) sum += memory_.seconds(op);
      return sum;
    };
    std::vector<std::vector<OperatorId>> dear = taken;
    std::stable_sort(dear.begin(), dear.end(), [&](const auto& a, const auto& b) { return seconds(a) > seconds(b); });
    for (const auto& step : dear) {
      memory_.run_again(step, false);
      if (memory_.bytes() <= bytes)
        std::erase(taken, step);
      else
        memory_.run_again(step, true);
    }
    chosen_ = taken;
  }

  DeviceMemory memory_;
  std::vector<std::vector<OperatorId>> steps_;   ///< in the order in which they were chosen
  std::vector<std::vector<OperatorId>> chosen_;  ///< those that memory_ is set to
  std::vector<std::int64_t> begin_;              ///< bytes before each step, and after the last
  std::int64_t least_;
};

/// What a device has of every loop, and what is as left there.
DeviceMemory memory_of(const Scenario& scenario, const RatioPlan& plan, const RatioCharges& charges,
                       std::uint32_t device) {
  const auto place = std::uint32_t(std::find(plan.order.begin(), plan.order.end(), device) - plan.order.begin());
  LoopLengths lengths = loop_lengths(*scenario.model);
  RatioCharges::AsLeft as_left = charges.as_left_by_all();
  std::uint32_t part = plan.whole(), cut = 0, first = 0;
  while (plan.parts[part].devices > 1) {
    const RatioPlan::Cut& here = plan.cuts[cut];
    charges.cross(here, lengths, as_left);
    const std::uint32_t second = first + plan.parts[plan.parts[part].halves[0]].devices;
    const std::size_t half = place < second ? 0 : 1;
    lengths = (*charges.divide(here, lengths))[half];
    part = plan.parts[part].halves[half];
    cut = here.next[half];
    if (half == 1) first = second;
  }
  return {*scenario.model, charges, device, std::move(lengths), std::move(as_left)};
}

class Choice {
 public:
  Choice(const Scenario& scenario, const RatioPlan& plan)
      : scenario_(scenario), plan_(plan), charges_(scenario, plan) {}

  Expected<WithReruns> run(Recompute how, const RunContext& context) {
    const auto roles = roles_of(plan_, *scenario_.model, charges_);
    if (!roles) return roles.error();
    for (const RatioRoles::Role& role : roles->roles) {
      if (context.cancelled()) return cancelled_error();
      members_.push_back(role.devices);
      reruns_.emplace_back(*scenario_.model, memory_of(scenario_, plan_, charges_, role.devices.front()), context);
      limits_.push_back(scenario_.memory_limit_of(role.devices.front()));
    }
    if (how == Recompute::all) return least_peaks(context);
    auto made = just_enough(context);
    return made && !made->has_room && simulates() ? least_peaks(context) : made;
  }

 private:
  using Rooms = std::vector<std::int64_t>;  ///< by role, bytes of the plain sum
  struct Tried {
    WithReruns made;
    std::vector<std::int64_t> peaks;  ///< by role; empty where plain sums say what fits
  };

  // The papers compare plain sums with plain sums.
  bool simulates() const { return scenario_.settings.accounting == Accounting::full; }

  Expected<Tried> tried(const Rooms& rooms, const RunContext& context) {
    if (context.cancelled()) return cancelled_error();
    auto plan = evaluate_ratio_plan(scenario_, with(rooms));
    if (!plan) return plan.error();
    Tried made{{std::move(*plan), true}, {}};
    made.made.has_room = fits(scenario_, made.made.plan);
    // Too many unlike parts have no schedule, which is a usage error.
    const auto schedule = simulates() ? plan_schedule(scenario_, made.made.plan) : Expected<SchedulePtr>(SchedulePtr());
    if (!schedule && schedule.error().code != ErrorCode::usage) return schedule.error();
    if (!schedule || !*schedule) return made;
    made.made.has_room = true;
    for (std::size_t r = 0; r < rooms.size(); ++r) {
      made.peaks.push_back((*schedule)->devices[r].peak_bytes);
      made.made.has_room = made.made.has_room && made.peaks.back() <= limits_[r];
    }
    return made;
  }

  /// Less and less room by what the peaks are above the limits. The first that is tried is the plan as it stands: a
  /// peak may be below the plain sum.
  Expected<WithReruns> just_enough(const RunContext& context) {
    Rooms rooms(reruns_.size());
    for (std::size_t r = 0; r < rooms.size(); ++r) rooms[r] = reruns_[r].plain();
    for (int round = 0;; ++round) {
      auto now = tried(rooms, context);
      if (!now) return now.error();
      if (now->peaks.empty() && rooms != limits_) {
        rooms = limits_;  // nothing is simulated
        continue;
      }
      bool can_spare_more = false;
      for (std::size_t r = 0; r < now->peaks.size(); ++r) {
        if (now->peaks[r] <= limits_[r]) continue;
        can_spare_more |= rooms[r] > reruns_[r].least();
        rooms[r] -= now->peaks[r] - limits_[r];
      }
      if (!can_spare_more || round == kRounds) return std::move(now->made);
    }
  }

  /// The peak does not fall with every second run: what runs again at once lives at once. Each role takes the part of
  /// its second runs with which its peak is least.
  Expected<WithReruns> least_peaks(const RunContext& context) {
    Rooms best_rooms(reruns_.size()), rooms(reruns_.size());
    std::vector<std::int64_t> least(reruns_.size(), std::numeric_limits<std::int64_t>::max());
    for (int part = 0; part <= kParts; ++part) {
      for (std::size_t r = 0; r < rooms.size(); ++r)
        rooms[r] = reruns_[r].plain() - (reruns_[r].plain() - reruns_[r].least()) * part / kParts;
      auto now = tried(rooms, context);
      if (!now) return now.error();
      for (std::size_t r = 0; r < rooms.size(); ++r)
        if (const std::int64_t peak = now->peaks.empty() ? rooms[r] : now->peaks[r]; peak < least[r])
          least[r] = peak, best_rooms[r] = rooms[r];
    }
    auto made = tried(best_rooms, context);
    if (!made) return made.error();
    return std::move(made->made);
  }

  RatioPlan with(const Rooms& room) {
    RatioPlan made = plan_;
    std::map<std::vector<OperatorId>, std::vector<std::uint32_t>> devices_of;
    for (std::size_t r = 0; r < room.size(); ++r)
      if (auto operators = reruns_[r].within(room[r]); !operators.empty()) {
        auto& devices = devices_of[std::move(operators)];
        devices.insert(devices.end(), members_[r].begin(), members_[r].end());
      }
    for (auto& [operators, devices] : devices_of) {
      std::sort(devices.begin(), devices.end());
      made.reruns.push_back({devices, operators});
    }
    return made;
  }

  const Scenario& scenario_;
  const RatioPlan& plan_;
  const RatioCharges charges_;
  std::vector<std::vector<std::uint32_t>> members_;  ///< by role
  std::vector<RoleReruns> reruns_;                   ///< likewise
  Rooms limits_;                                     ///< likewise: of memory
};

}  // namespace

Expected<WithReruns> with_reruns(const Scenario& scenario, RatioPlan plan, Recompute how, const RunContext& context) {
  if (how == Recompute::none) return WithReruns{std::move(plan), true};
  return Choice(scenario, plan).run(how, context);
}

std::string describe_reruns(const Scenario& scenario, const RatioPlan& plan) {
  std::vector<std::string> said;
  const auto all = std::count_if(scenario.model->operators.begin(), scenario.model->operators.end(),
                                 [](const Operator& op) { return !op.is_view() && op.kind != OperatorKind::input; });
  for (const RatioPlan::Rerun& rerun : plan.reruns) {
    std::vector<std::pair<std::string, int>> kinds;
    for (const std::uint32_t device : rerun.devices) {
      const std::string& name = device_of(*scenario.cluster, device).name;
      auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == name; });
      if (at == kinds.end()) at = kinds.insert(kinds.end(), {name, 0});
      ++at->second;
    }
    std::vector<std::string> words;
    for (const auto& [name, count] : kinds) words.push_back(fmt::format("{} \u00d7 {}", count, name));
    said.push_back(fmt::format("{} run {} of {} operators again in backward", fmt::join(words, " and "),
                               rerun.operators.size(), all));
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

}  // namespace turnpoint::accpar
