// SPDX-License-Identifier: Apache-2.0
#include "core/search/annealing/anneal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

namespace turnpoint::annealing {
namespace {

using placement::Random;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The first temperature in the median cost of a change that costs anything, and the last in the first. Most changes
/// are made where they can help, so that little heat is enough: from a tenth of the median down to a twentieth of that,
/// 8,000 calls ended 0.6 % higher in the mean of tests/bench/anneal_bench.cpp.
constexpr double kHot = 0.03, kCold = 0.1;
/// Of so many changes, but no more than an eighth of the calls.
constexpr std::uint64_t kSampled = 50;

/// A round of so many calls leaves little to gain by cooling more slowly. What is left of a budget goes into further
/// rounds, which heat what the one before has found: little, to polish it, up to much, to forget it.
constexpr std::uint64_t kCallsPerUnit = 40, kCallsAtLeast = 200;
constexpr double kReheated[] = {1, 10, 30, 100};

/// The median of what changes cost that make the present state worse, of so many; nothing is changed.
double spread(Walk& walk, double energy, std::uint64_t sampled, Random& random) {
  std::vector<double> costs;
  for (std::uint64_t i = 0; i < sampled; ++i) {
    if (!walk.propose(random)) break;
    const double more = walk.measure(kNoLimit) - energy;
    if (more > 0) costs.push_back(more);
    walk.put_back();
  }
  if (costs.empty()) return 0;
  std::nth_element(costs.begin(), costs.begin() + std::ptrdiff_t(costs.size() / 2), costs.end());
  return costs[costs.size() / 2];
}

}  // namespace

Spending::Spending(const Budget& budget, const char* phase, double reported, const RunContext& context)
    : budget_(budget), phase_(phase), reported_(reported), context_(context), begin_ns_(wall_ns()) {}

double Spending::part(std::uint64_t calls) {
  double part = double(calls) / double(budget_.calls);
  if (budget_.seconds < kNoLimit) part = std::max(part, double(wall_ns() - begin_ns_) * 1e-9 / budget_.seconds);
  if (calls >= next_report_) {
    next_report_ = calls + 16;
    context_.report(phase_, reported_ + (1 - reported_) * std::min(1.0, part));
  }
  return part;
}

Expected<void> anneal(Walk& walk, const std::vector<Placement>& starts, std::uint64_t seed, const Budget& budget,
                      double reported, const RunContext& context) {
  Spending spending(budget, "annealing", reported, context);
  Random random(seed ^ 0xA44EA1);
  double energy = kNoLimit;
  const Placement* first = nullptr;
  for (const Placement& start : starts) {
    if (first && (context.cancelled() || spending.part(walk.measurements()) >= 1)) break;
    if (context.cancelled()) return cancelled_error();
    const double now = walk.begin_at(start);
    if (now >= energy && first) continue;
    energy = now;
    first = &start;
  }
  if (!first || context.cancelled()) return {};
  energy = walk.begin_at(*first);
  walk.expect(std::min(1e12, double(budget.calls)));
  const auto left_of = [&] { return budget.calls - std::min(budget.calls, walk.measurements()); };
  const double cost = spread(walk, energy, std::clamp<std::uint64_t>(left_of() / 8, 1, kSampled), random);
  const std::uint64_t begin = walk.measurements(), left = left_of();
  const std::uint64_t enough = kCallsPerUnit * walk.units() + kCallsAtLeast;
  const std::uint64_t length =
      budget.seconds < kNoLimit ? enough : std::max<std::uint64_t>(1, left / std::max<std::uint64_t>(1, left / enough));
  for (std::uint64_t round = 0, round_begin = begin;;) {
    if (context.cancelled()) return {};
    const double spent = spending.part(walk.measurements());
    if (spent >= 1) return {};
    double part = double(walk.measurements() - round_begin) / double(length);
    if (part >= 1) {
      ++round;
      round_begin = walk.measurements();
      part = 0;
    }
    // A first round that has not enough time for its length cools all the same.
    if (round == 0) part = std::max(part, spent);
    const double hot = cost * kHot * kReheated[round % std::size(kReheated)];
    const double temperature = hot * std::pow(kCold, part);
    if (!walk.propose(random)) return {};
    // Whether a state is accepted is known before it is measured, so that measuring may stop where it is too long.
    const double limit = energy - temperature * std::log(std::max(1e-300, random.unit()));
    const double next = walk.measure(limit);
    if (next <= limit) {
      energy = next;
      walk.accept();
    } else {
      walk.put_back();
    }
  }
}

}  // namespace turnpoint::annealing
