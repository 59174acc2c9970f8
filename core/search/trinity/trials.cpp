// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/trials.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace turnpoint::trinity {

namespace {

constexpr std::uint64_t kTrialPurpose = 1ull << 60;
// Of each combination: with two ways and three numbers 96 of the thousands of placements that learning is given.
constexpr int kDraws = 16;

struct Drawn {
  double mean_s = 0;  ///< what does not fit counts with its time, too: no way to join knows of memory
  Evaluated best;
  Decided decided;  ///< of the best
};

Expected<Drawn> draw(const Problem& problem, const placement::PlacementRequest& request, Evaluation& evaluation) {
  const auto pieces = joined_pieces(problem.graph, problem.units, problem.groups);
  placement::Random random = stream_of(request.seed, kTrialPurpose);
  Drawn all;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<std::uint32_t> device(problem.groups);
    for (std::uint32_t& one : device) one = random.below(request.devices);
    auto drawn = evaluation.of_devices(problem.devices_of(pieces, device), 0);
    if (!drawn) return drawn.error();
    all.mean_s += drawn->seconds / kDraws;
    if (i > 0 && !drawn->verdict.better_than(all.best.verdict, request.objective)) continue;
    all.best = std::move(*drawn);
    all.decided = {pieces, std::move(device)};
  }
  return all;
}

}  // namespace

ToLearn problem_to_learn(const TaskGraph& graph, const placement::PlacementRequest& request, const Settings& settings,
                         bool begun, Evaluation& evaluation, const RunContext& context) {
  std::vector<std::size_t> numbers = settings.tried_groups;
  if (numbers.empty()) numbers = {settings.groups};
  const auto make = [&](std::size_t groups, Joining joining) {
    return make_problem(graph, request, settings.units, groups, joining);
  };
  const bool taught = begun && settings.tried_groups.empty();
  Problem usual = make(numbers.front(), Joining::by_exchange);
  const std::size_t units = usual.units.count();
  const bool joined = settings.tries_joinings && units == settings.units;
  for (std::size_t& number : numbers) number = std::clamp<std::size_t>(number, 1, units);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (taught || (!joined && numbers.size() == 1)) return {std::move(usual), !taught};
  std::vector<std::pair<std::size_t, Joining>> ways;
  for (const Joining joining : {Joining::by_exchange, Joining::by_rating})
    for (const std::size_t number : numbers)
      if (joined || joining == usual.joining) ways.emplace_back(number, joining);
  double least = std::numeric_limits<double>::infinity();
  auto taken = ways.front();
  std::optional<ToLearn::Tried> tried;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t w = 0; w < ways.size() && !context.cancelled(); ++w) {
    // Most of the time is for learning.
    const double spent_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (w > 0 && settings.budget.seconds && spent_s > *settings.budget.seconds / 3) break;
    if (context.progress) context.progress({"pieces that are tried out", double(w) / double(ways.size()), nullptr});
    auto drawn = draw(make(ways[w].first, ways[w].second), request, evaluation);
    if (!drawn) continue;
    if (!tried) tried.emplace(drawn->best, drawn->decided);
    if (drawn->best.verdict.better_than(tried->best.verdict, request.objective)) tried->best = std::move(drawn->best);
    if (drawn->mean_s >= least) continue;
    least = drawn->mean_s;
    taken = ways[w];
    tried->decided = std::move(drawn->decided);
  }
  return {make(taken.first, taken.second), true, std::move(tried)};
}

}  // namespace turnpoint::trinity
