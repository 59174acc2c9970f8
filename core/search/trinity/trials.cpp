// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/trials.h"

#include <algorithm>
#include <limits>

namespace turnpoint::trinity {

namespace {

constexpr std::uint64_t kTrialPurpose = 1ull << 60;
// Of each combination: with two ways and three numbers 96 of the thousands of placements that learning is given.
constexpr int kDraws = 16;

/// What does not fit counts with its time, too: neither way knows of memory.
double mean_seconds(const Problem& problem, const placement::PlacementRequest& request, Evaluation& evaluation,
                    const RunContext& context) {
  const auto pieces = joined_pieces(problem.graph, problem.units, problem.groups);
  placement::Random random = stream_of(request.seed, kTrialPurpose);
  double sum = 0;
  for (int i = 0; i < kDraws && !context.cancelled(); ++i) {
    std::vector<std::uint32_t> device(problem.groups);
    for (std::uint32_t& one : device) one = random.below(request.devices);
    const auto drawn = evaluation.of_devices(problem.devices_of(pieces, device), 0);
    sum += drawn ? drawn->seconds / kDraws : std::numeric_limits<double>::infinity();
  }
  return sum;
}

}  // namespace

Problem problem_to_learn(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
                         Evaluation& evaluation, const RunContext& context) {
  std::vector<std::size_t> numbers = settings.tried_groups;
  if (numbers.empty()) numbers = {settings.groups};
  const auto make = [&](std::size_t groups, Joining joining) {
    return make_problem(graph, request, settings.units, groups, joining);
  };
  Problem first = make(numbers.front(), Joining::by_exchange);
  const bool joined = settings.tries_joinings && first.units.count() == settings.units;
  for (std::size_t& number : numbers) number = std::clamp<std::size_t>(number, 1, first.units.count());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (!joined && numbers.size() == 1) return first;
  double least = std::numeric_limits<double>::infinity();
  std::size_t groups = numbers.front(), tried = 0;
  Joining joining = first.joining;
  for (const Joining way : {Joining::by_exchange, Joining::by_rating}) {
    if (way != first.joining && !joined) break;
    for (const std::size_t number : numbers) {
      if (context.cancelled()) break;
      if (context.progress)
        context.progress({"pieces that are tried out", double(tried) / double(2 * numbers.size()), nullptr});
      ++tried;
      const double mean = mean_seconds(make(number, way), request, evaluation, context);
      if (mean >= least) continue;
      least = mean;
      groups = number;
      joining = way;
    }
  }
  return make(groups, joining);
}

}  // namespace turnpoint::trinity
