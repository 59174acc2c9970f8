// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/saved_state.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace turnpoint::trinity {

namespace {

constexpr std::string_view kHead = "turnpoint learning 3\n", kTail = "end\n";

template <class T>
constexpr bool kPlain = std::is_arithmetic_v<T>;

/// Writes and reads the same fields in the same order, so that neither can forget one.
class Out {
 public:
  std::string bytes{kHead};
  template <class T>
  bool operator()(const T& value) {
    static_assert(kPlain<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return true;
  }
  template <class T>
  bool all(const std::vector<T>& values) {
    static_assert(kPlain<T>);
    (*this)(std::uint64_t(values.size()));
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return true;
  }
  bool text(const std::string& words) {
    (*this)(std::uint64_t(words.size()));
    bytes += words;
    return true;
  }
  template <class List>
  bool count(const List& list) {
    return (*this)(std::uint64_t(list.size()));
  }
  template <class T>
  bool is_there(const std::optional<T>& value) {
    return (*this)(std::uint8_t(value.has_value()));
  }
};

class In {
 public:
  explicit In(std::string_view bytes) : left_(bytes) {}
  std::string_view left() const { return left_; }
  template <class T>
  bool operator()(T& value) {
    static_assert(kPlain<T>);
    return take(&value, sizeof value);
  }
  template <class T>
  bool all(std::vector<T>& values) {
    std::uint64_t size = 0;
    if (!(*this)(size) || size > left_.size() / sizeof(T)) return false;
    values.resize(size);
    return take(values.data(), size * sizeof(T));
  }
  bool text(std::string& words) {
    std::uint64_t size = 0;
    if (!(*this)(size) || size > left_.size()) return false;
    words.assign(left_.substr(0, size));
    left_.remove_prefix(size);
    return true;
  }
  /// Of things that take at least a byte each.
  template <class List>
  bool count(List& list) {
    std::uint64_t size = 0;
    if (!(*this)(size) || size > left_.size()) return false;
    list.resize(size);
    return true;
  }
  template <class T>
  bool is_there(std::optional<T>& value) {
    std::uint8_t there = 0;
    if (!(*this)(there) || there > 1) return false;
    if (there) value.emplace();
    return true;
  }

 private:
  bool take(void* to, std::size_t size) {
    if (size > left_.size()) return false;
    if (size > 0) std::memcpy(to, left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }
  std::string_view left_;
};

template <class Way, class T>
bool pass_number(Way& way, T& value) {
  bool good = way.is_there(value);
  if (good && value) good = way(*value);
  return good;
}

bool pass_joining(Out& out, const Joining& joining) { return out(std::uint8_t(joining)); }
bool pass_joining(In& in, Joining& joining) {
  std::uint8_t number = 0;
  if (!in(number) || number > std::uint8_t(Joining::by_rating)) return false;
  joining = Joining(number);
  return true;
}

template <class Way, class P>
bool pass_placement(Way& way, P& placement) {
  bool good = way(placement.devices) && way.all(placement.device) && way.count(placement.order);
  for (auto& order : placement.order) good = good && way.all(order);
  return good && way.all(placement.cluster);
}

template <class Way, class D>
bool pass_decisions(Way& way, D& decisions) {
  return way.all(decisions.choice) && way.all(decisions.old) && way.all(decisions.counts);
}

template <class Way, class M>
bool pass_moments(Way& way, M& moments) {
  return way.all(moments.first) && way.all(moments.second) && way(moments.first_power) && way(moments.second_power);
}

/// One field after the other, there and back.
template <class Way, class S>
bool pass(Way& way, S& s) {
  bool good = way(s.graph) && way(s.settings) && pass_joining(way, s.joining) && way(s.groups) && way.all(s.leaning) &&
              way.all(s.weights.partition) && way.all(s.weights.schedule) && pass_moments(way, s.partition_moments) &&
              pass_moments(way, s.schedule_moments) && pass_number(way, s.baseline) && way(s.iterations) &&
              way(s.calls) && way(s.seconds) && way(s.reward_first) && way(s.reward_last) &&
              pass_number(way, s.begun_s) && way.is_there(s.begun);
  if (good && s.begun) good = way.text(s.begun->name) && way(s.begun->makespan_s);
  good = good && way.is_there(s.best);
  if (good && s.best) good = pass_placement(way, *s.best);
  good = good && way.is_there(s.own);
  if (good && s.own) good = pass_placement(way, *s.own);
  good = good && way(s.drawn.missing_bytes) && way(s.drawn.objective_s);
  good = good && way.is_there(s.best_rollout);
  if (good && s.best_rollout)
    good = pass_decisions(way, s.best_rollout->units) && pass_decisions(way, s.best_rollout->groups) &&
           way.all(s.best_rollout->group_features);
  good = good && way.all(s.priority) && way.count(s.met);
  if (good)
    for (auto& point : s.met)
      good = good && way(point.bytes) && way(point.makespan_s) && pass_placement(way, point.placement);
  good = good && way.count(s.points);
  if (good)
    for (auto& point : s.points)
      good = good && way(point.iteration) && way(point.calls) && pass_number(way, point.reward) &&
             pass_number(way, point.baseline) && pass_number(way, point.best_s) && way(point.entropy);
  return good;
}

/// FNV-1a, 64 bits.
class Digest {
 public:
  template <class T>
  Digest& add(const T& value) {
    static_assert(kPlain<T>);
    return of(&value, sizeof value);
  }
  template <class T>
  Digest& add(const std::vector<T>& values) {
    add(std::uint64_t(values.size()));
    return of(values.data(), values.size() * sizeof(T));
  }
  std::uint64_t value() const { return value_; }

 private:
  Digest& of(const void* bytes, std::size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < size; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3ull;
    return *this;
  }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace

bool suits(const Rollout& rollout, const Problem& problem, std::uint32_t devices) {
  const auto of = [](const Decisions& decisions, std::size_t size, std::size_t choices) {
    return decisions.choice.size() == size && (decisions.old.empty() || decisions.old.size() == size) &&
           (decisions.counts.empty() || decisions.counts.size() == size) &&
           std::all_of(decisions.choice.begin(), decisions.choice.end(), [&](auto one) { return one < choices; });
  };
  return of(rollout.units, problem.units.count(), problem.groups) && of(rollout.groups, problem.groups, devices) &&
         rollout.group_features.size() == problem.groups * problem.group_width();
}

std::string write_saved_state(const SavedState& state) {
  Out out;
  pass(out, state);
  out.bytes += kTail;
  return std::move(out.bytes);
}

Expected<SavedState> read_saved_state(const std::string& bytes) {
  SavedState state;
  const bool whole = bytes.starts_with(kHead) && bytes.ends_with(kTail);
  In in(whole ? std::string_view(bytes).substr(kHead.size()) : std::string_view());
  if (!whole || !pass(in, state) || in.left() != kTail)
    return bad_input("the saved state of learning is not whole, or of another version of this program");
  return state;
}

std::uint64_t digest_of(const TaskGraph& graph, const placement::PlacementRequest& request) {
  Digest digest;
  digest.add(graph.time_s).add(graph.output_bytes).add(graph.persistent_bytes).add(graph.workspace_bytes);
  digest.add(graph.colocate).add(graph.out_begin).add(graph.out_to).add(graph.out_bytes).add(graph.out_seconds);
  for (const TaskKind kind : graph.kind) digest.add(std::uint8_t(kind));
  // Words of names are features of units.
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (const char c : graph.names[t]) digest.add(c);
  digest.add(request.devices).add(std::uint8_t(request.objective));
  digest.add(std::uint8_t(graph.links.contention));
  for (std::uint32_t from = 0; from < request.devices; ++from) {
    digest.add(graph.speed_of(from)).add(request.limit_of(graph, from));
    for (std::uint32_t to = 0; to < request.devices; ++to)
      if (from != to) digest.add(graph.links.bandwidth_of(from, to)).add(graph.links.latency_of(from, to));
  }
  return digest.value();
}

std::uint64_t digest_of(const Settings& s, std::uint64_t seed) {
  Digest digest;
  digest.add(seed).add(std::uint8_t(s.reward));
  digest.add(s.weights.runtime).add(s.weights.communication).add(s.weights.memory);
  digest.add(s.weights.communication_tolerance).add(s.weights.memory_tolerance);
  digest.add(s.learning.clipped).add(s.learning.joint).add(s.learning.epsilon).add(s.learning.entropy);
  digest.add(s.budget.calls.value_or(0)).add(s.budget.iterations.value_or(0)).add(s.budget.seconds.value_or(0));
  digest.add(s.units).add(s.groups).add(s.rollouts).add(s.epochs).add(s.hidden).add(s.rate).add(s.gradient_norm);
  digest.add(s.dropout).add(s.clipping.bound).add(s.clipping.temperature).add(s.noise);
  digest.add(s.noise_iterations)
      .add(s.baseline_n)
      .add(s.fading_entropy)
      .add(s.shared_credit)
      .add(s.scaled_advantage)
      .add(s.own_width);
  digest.add(s.reads_group)
      .add(s.imitation)
      .add(s.teaching)
      .add(s.taught)
      .add(s.joined_groups)
      .add(s.refined_every)
      .add(s.tries_joinings)
      .add(s.tried_groups)
      .add(s.strays)
      .add(s.failing_seconds.value_or(0));
  return digest.value();
}

}  // namespace turnpoint::trinity
