// SPDX-License-Identifier: Apache-2.0
// Steps over parameters as flat lists, which files hold.
#include <utility>

#include "core/cost/parameters.h"

namespace turnpoint {

const std::vector<ReshardStep>& ParameterSteps::steps(ParameterRole role) const {
  switch (role) {
    case ParameterRole::gather: return gather;
    case ParameterRole::sync: return sync;
    case ParameterRole::spread: break;
  }
  return spread;
}

std::vector<ReshardStep>& ParameterSteps::steps(ParameterRole role) {
  return const_cast<std::vector<ReshardStep>&>(std::as_const(*this).steps(role));
}

std::vector<ReshardStep> all_steps(const std::vector<ParameterSteps>& parameters) {
  std::vector<ReshardStep> all;
  for (const ParameterSteps& group : parameters)
    for (const ParameterRole role : kParameterRoles)
      all.insert(all.end(), group.steps(role).begin(), group.steps(role).end());
  return all;
}

std::vector<int> times_an_iteration(const std::vector<ParameterSteps>& parameters, Update update, int micro_batches) {
  std::vector<int> times;
  for (const ParameterSteps& group : parameters) {
    times.insert(times.end(), group.gather.size(), micro_batches);
    times.insert(times.end(), group.sync.size(), sums_every_micro_batch(update) ? micro_batches : 1);
    times.insert(times.end(), group.spread.size(), 1);
  }
  return times;
}

std::vector<ParameterSteps> in_groups(std::vector<ParameterGroup> groups, const std::vector<ReshardStep>& steps,
                                      const MemoryChoice& choice) {
  std::vector<ParameterSteps> parameters;
  std::size_t at = 0;
  const auto gathers = [&] { return at < steps.size() && steps[at].move == ReshardMove::all_gather; };
  for (ParameterGroup& group : groups) {
    const std::uint32_t shards = group.shards(choice);
    ParameterSteps& mine = parameters.emplace_back();
    while (shards && choice.update == Update::sharded_weights && gathers()) mine.gather.push_back(steps[at++]);
    for (std::uint32_t pending = group.partial | shards; at < steps.size() && !gathers() && (steps[at].axes & pending);) {
      pending &= ~steps[at].axes;
      mine.sync.push_back(steps[at++]);
    }
    if (shards && choice.update != Update::sharded_weights && gathers()) mine.spread.push_back(steps[at++]);
    mine.group = std::move(group);
  }
  if (at == steps.size()) return parameters;
  if (parameters.empty()) parameters.emplace_back();
  auto& rest = parameters.back().sync;
  rest.insert(rest.end(), steps.begin() + std::ptrdiff_t(at), steps.end());
  return parameters;
}

}  // namespace turnpoint
