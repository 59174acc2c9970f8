// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/multipliers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace turnpoint::frontier::detail {

namespace {

constexpr double kLittle = 2e-5;          // share of the bound: what counts as a gain
constexpr std::size_t kAverages = 12;     // evaluations: most averages; most of the gain comes early
constexpr std::size_t kIdleAverages = 3;  // averages without a gain, after which none will come
constexpr double kLonger = 1.5;           // factor: of an average's step after a gain
constexpr double kShorter = 3;            // divisor: of an average's step that overshot
constexpr double kFirstStep = 0.3;        // share of the way to what is achieved: where a climb begins
constexpr double kLongestStep = 1.5;      // share of that way: beyond it, a climb overshoots
// Of a climb's step after a gain along the mean and without one, as Barahona and Anbil (2000) have them.
constexpr double kGrows = 1.1, kShrinks = 0.66;
constexpr double kFresh = 0.2;  // share of the newest plan in the mean

}  // namespace

Multipliers::Multipliers(const Graph& graph, const Relaxation& relaxation, const Dag& dag, ThreadPool& pool,
                         const Control& control, const Policy& policy, const std::vector<double>& memory,
                         const std::vector<double>& time)
    : graph_(graph),
      relaxation_(relaxation),
      dag_(dag),
      pool_(pool),
      control_(control),
      policy_(policy),
      choices_(kLanes) {
  for (std::size_t l = 0; l < kLanes; ++l) {
    const std::size_t i = std::min(l, memory.size() - 1);
    choices_[l].weight_memory = block_.weight_memory[l] = memory[i];
    choices_[l].weight_time = block_.weight_time[l] = time[i];
    choices_[l].assignment.assign(relaxation.copies.size(), 0);
  }
  block_.adjust.resize(dag.tables.size());
  for (const auto& copies : relaxation.copies)
    for (const std::uint32_t c : copies.first)
      block_.adjust[dag.unique_of[c]].assign(dag.tables[dag.unique_of[c]].entries * kLanes, 0);
  best_prices_ = block_.adjust;
  best_.fill(-kInfinity);
}

Multipliers::LaneFlags Multipliers::note_bounds() {
  LaneFlags better{};
  for (std::size_t l = 0; l < kLanes; ++l) {
    const double bound = block_.bound(static_cast<int>(l)),
                 safe = bound - block_.margin(static_cast<int>(l), std::abs(bound));
    better[l] = safe > best_[l];
    best_[l] = std::max(best_[l], safe);
  }
  return better;
}

bool Multipliers::average() {
  // Of every lane the best multipliers, where to go from there, and how far. Many copies that move at once overshoot:
  // then the same again with a shorter step.
  direction_.assign(block_.adjust.size(), {});
  Lanes step, everything;
  step.fill(1);
  everything.fill(kNoLimit);
  std::size_t idle = 0;
  for (std::size_t i = 0; i < kAverages && idle < kIdleAverages; ++i) {
    if (i > 0) move(best_prices_, direction_, step);
    if (!block_.inside(dag_, control_, &pool_)) {
      infeasible_ = !control_.cancelled() && i == 0;
      return false;
    }
    const Lanes before = best_;
    const LaneFlags better = note_bounds();
    bool any = false, much = false;
    for (std::size_t l = 0; l < kLanes; ++l) {
      any = any || better[l];
      much = much || best_[l] > before[l] + kLittle * std::abs(best_[l]);
      step[l] = better[l] ? std::min(1.0, step[l] * kLonger) : step[l] / kShorter;
    }
    idle = much ? 0 : idle + 1;
    note_states(block_.trace(dag_));
    if (!any) continue;
    block_.outside(dag_, separate(everything), control_);
    if (control_.cancelled()) return false;
    aim(better);
    if (control_.stopped()) break;
  }
  return true;
}

bool Multipliers::climb(const Achieved& achieved) {
  Lanes target, step;
  std::array<std::size_t, kLanes> idle{};
  step.fill(kFirstStep);
  std::size_t since_gain = 0;
  for (std::size_t l = 0; l < kLanes; ++l) {
    target[l] = kInfinity;
    for (const Point& p : achieved.points())
      target[l] =
          std::min(target[l], block_.weight_memory[l] * static_cast<double>(p.memory) + block_.weight_time[l] * p.time);
  }
  Prices mean(block_.adjust.size());
  block_.adjust = best_prices_;
  for (std::size_t i = 0; i < policy_.price_steps && !control_.stopped(); ++i) {
    if (!block_.inside(dag_, control_, &pool_)) return !control_.cancelled();
    const Lanes before = best_;
    const LaneFlags better = note_bounds();
    ++since_gain;
    for (std::size_t l = 0; l < kLanes; ++l)
      if (best_[l] > before[l] + kLittle * std::abs(best_[l])) since_gain = 0;
    if (since_gain > 3 * policy_.price_patience) break;
    const std::vector<Choice> plans = block_.trace(dag_);
    if (i == 0)  // what was suggested before the prices were about right is of little use
      for (LaneChoice& choice : choices_) choice.states.clear();
    note_states(plans);
    Lanes norm{}, along{};
    for (const auto& copies : relaxation_.copies) {
      const auto now = disagreement(copies, plans);
      for (std::size_t k = 0; k < now.size(); ++k) {
        auto& own = mean[dag_.unique_of[copies.first[k]]];
        own.resize(now[k].size(), 0);
        for (std::size_t j = 0; j < own.size(); ++j) {
          along[j % kLanes] += copies.count[k] * now[k][j] * own[j];
          own[j] += (i == 0 ? 1 : kFresh) * (now[k][j] - own[j]);
          norm[j % kLanes] += copies.count[k] * own[j] * own[j];
        }
      }
    }
    Lanes far{};
    for (std::size_t l = 0; l < kLanes; ++l) {
      if (better[l]) {
        idle[l] = 0;
        if (along[l] >= 0) step[l] = std::min(kLongestStep, step[l] * kGrows);
      } else if (++idle[l] >= policy_.price_patience) {
        idle[l] = 0;
        step[l] *= kShrinks;
      }
      if (norm[l] > 0) far[l] = step[l] * std::max(0.0, target[l] - best_[l]) / norm[l];
    }
    for (const auto& copies : relaxation_.copies)
      for (const std::uint32_t first : copies.first) {
        const std::uint32_t table = dag_.unique_of[first];
        for (std::size_t j = 0; j < best_prices_[table].size(); ++j)
          if (better[j % kLanes]) best_prices_[table][j] = block_.adjust[table][j];
      }
    move(best_prices_, mean, far);
  }
  return !control_.cancelled();
}

/// Per group and entry x lane: the share of its copies that choose a state, above the share of all copies. The bound
/// rises along it, as far as the relaxed plans do not change.
std::vector<std::vector<double>> Multipliers::disagreement(const Relaxation::Copies& copies,
                                                           const std::vector<Choice>& plans) const {
  const std::size_t size = best_prices_[dag_.unique_of[copies.first[0]]].size();
  std::vector<std::vector<double>> shares(copies.first.size(), std::vector<double>(size, 0));
  double count = 0;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    count += copies.count[k];
    for (const std::uint32_t v : copies.all[k])
      for (std::size_t l = 0; l < kLanes; ++l) shares[k][state_of(v, plans[l]) * kLanes + l] += 1 / copies.count[k];
  }
  for (std::size_t j = 0; j < size; ++j) {
    double all = 0;
    for (std::size_t k = 0; k < shares.size(); ++k) all += shares[k][j] * copies.count[k];
    for (auto& share : shares) share[j] -= all / count;
  }
  return shares;
}

std::uint32_t Multipliers::state_of(std::uint32_t variable, const Choice& plan) const {
  const auto& offsets = relaxation_.graph.leaves[relaxation_.graph.variables[variable].leaf]->offsets;
  return static_cast<std::uint32_t>(std::upper_bound(offsets.begin(), offsets.end(), plan[variable]) - offsets.begin() -
                                    1);
}

/// Of every copy of a variable; of equal layers together, so that their tables stay one.
void Multipliers::note_states(const std::vector<Choice>& plans) {
  for (std::size_t l = 0; l < kLanes; ++l)
    for (std::uint32_t v = 0; v < relaxation_.original.size(); ++v)
      choices_[l].states[graph_.variables[relaxation_.original[v]].leaf].insert(state_of(v, plans[l]));
}

/// Where lanes are better than before: keeps their multipliers, aims at equal min-marginals of all copies of a
/// variable, and notes the best common state.
void Multipliers::aim(const LaneFlags& better) {
  for (std::size_t c = 0; c < relaxation_.copies.size(); ++c) {
    const Relaxation::Copies& copies = relaxation_.copies[c];
    std::vector<LaneValues> marginals;
    for (const std::uint32_t v : copies.first) marginals.push_back(block_.marginals(dag_.unique_of[v]));
    std::vector<float> sum(marginals[0].size(), 0);
    double count = 0;
    for (std::size_t k = 0; k < marginals.size(); ++k) {
      const auto weight = static_cast<float>(copies.count[k]);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * marginals[k][i];
      count += copies.count[k];
    }
    for (std::size_t k = 0; k < marginals.size(); ++k) {
      const std::uint32_t table = dag_.unique_of[copies.first[k]];
      direction_[table].resize(sum.size(), 0);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        if (!better[i % kLanes]) continue;
        best_prices_[table][i] = block_.adjust[table][i];
        direction_[table][i] = sum[i] < 1e28f ? double(sum[i]) / count - marginals[k][i] : 0;
      }
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      if (!better[l]) continue;
      std::size_t state = 0;
      for (std::size_t s = 1; s < sum.size() / kLanes; ++s)
        if (sum[s * kLanes + l] < sum[state * kLanes + l]) state = s;
      choices_[l].assignment[c] = static_cast<std::uint32_t>(state);
    }
  }
}

void Multipliers::move(const Prices& from, const Prices& direction, const Lanes& step) {
  for (const auto& copies : relaxation_.copies) {
    for (const std::uint32_t c : copies.first) {
      const std::uint32_t table = dag_.unique_of[c];
      for (std::size_t i = 0; i < from[table].size(); ++i)
        block_.adjust[table][i] = from[table][i] + step[i % kLanes] * direction[table][i];
    }
    balance(copies);
  }
}

/// The multipliers of one state must not add up to more than nothing, whatever rounding did.
void Multipliers::balance(const Relaxation::Copies& copies) {
  auto& first = block_.adjust[dag_.unique_of[copies.first[0]]];
  for (std::size_t i = 0; i < first.size(); ++i) {
    double others = 0, size = 0;
    for (std::size_t k = 1; k < copies.first.size(); ++k) {
      const double v = block_.adjust[dag_.unique_of[copies.first[k]]][i] * copies.count[k];
      others += v;
      size += std::abs(v);
    }
    first[i] = (-others - size * 1e-15 * static_cast<double>(copies.first.size() + 2)) / copies.count[0];
    if (first[i] > 0) first[i] *= 1 - 1e-15;
  }
}

std::vector<HalfPlane> Multipliers::half_planes() const {
  std::vector<HalfPlane> planes(kLanes);
  pool_.for_each(kLanes, [&](std::size_t l, int) {
    // Floats may be off by a thousandth, which is much of the time where memory weighs most, and by more where prices
    // are far above the bound.
    const double weight_memory = block_.weight_memory[l], weight_time = block_.weight_time[l],
                 bound = scalar_bound(dag_, weight_memory, weight_time, best_prices_, l),
                 margin = std::ldexp(largest_sum(l) * static_cast<double>(dag_.plan->tables()), -51);
    planes[l] = {weight_memory, weight_time, bound - margin};
  });
  return planes;
}

/// No sum of costs and prices within a plan is larger.
double Multipliers::largest_sum(std::size_t lane) const {
  std::vector<double> largest(dag_.tables.size(), 0);
  for (std::size_t t = 0; t < dag_.tables.size(); ++t) {
    if (!dag_.tables[t].leaf) continue;
    const Leaf& leaf = *dag_.tables[t].leaf;
    for (std::size_t e = 0; e < leaf.entries(); ++e)
      for (std::uint32_t i = leaf.offsets[e]; i < leaf.offsets[e + 1]; ++i)
        largest[t] =
            std::max(largest[t], block_.weight_memory[lane] * std::abs(static_cast<double>(leaf.memory[i])) +
                                     block_.weight_time[lane] * std::abs(leaf.time[i]) +
                                     (best_prices_[t].empty() ? 0 : std::abs(best_prices_[t][e * kLanes + lane])));
  }
  double sum = 0;
  for (std::size_t table = 0; table < dag_.plan->leaves(); ++table) sum += largest[dag_.unique_of[table]];
  return sum;
}

}  // namespace turnpoint::frontier::detail
