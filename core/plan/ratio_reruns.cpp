// SPDX-License-Identifier: Apache-2.0
// What of a ratio plan runs again in backward, on which devices, and what that asks of tensors.
#include <fmt/format.h>
#include <algorithm>

#include "core/model/model.h"
#include "core/plan/ratio_charges.h"

namespace turnpoint {

// Of a view that is read again, what it views is; operators are in topological order.
RatioCharges::RunsAgain RatioCharges::looked_up(const RatioPlan::Rerun& rerun) const {
  RunsAgain made;
  made.op.assign(model_.operators.size(), 0);
  for (const OperatorId id : rerun.operators)
    if (id.index < made.op.size()) made.op[id.index] = 1;
  std::vector<char> output_read(model_.operators.size(), 0);
  made.reads.resize(uses_.flows.size());
  for (std::size_t f = uses_.flows.size(); f-- > 0;) {
    const TensorFlow& flow = uses_.flows[f];
    for (const Model::Use& use : flow.consumers) {
      const bool view = model_.operators[use.op].is_view();
      made.reads[f].push_back(view ? output_read[use.op.index] : made.op[use.op.index]);
      if (made.reads[f].back()) output_read[flow.producer.index] = 1;
    }
  }
  return made;
}

const RatioCharges::RunsAgain* RatioCharges::again_on(std::uint32_t device) const {
  return again_of_.empty() || again_of_[device] == kNoRerun ? nullptr : &again_[again_of_[device]];
}

bool RatioCharges::runs_again(OperatorId op, std::uint32_t device) const {
  const RunsAgain* again = again_on(device);
  return again && again->op[op.index];
}

Expected<void> RatioCharges::check_reruns() const {
  std::vector<char> seen(static_cast<std::size_t>(cluster_.devices()), 0);
  for (const RatioPlan::Rerun& rerun : plan_.reruns) {
    for (const std::uint32_t device : rerun.devices)
      if (device >= seen.size() || seen[device]++)
        return bad(
            fmt::format("what runs again on device {} is not said once of one of {} devices", device, seen.size()));
    if (!std::is_sorted(rerun.devices.begin(), rerun.devices.end()) ||
        !std::is_sorted(rerun.operators.begin(), rerun.operators.end()))
      return bad("what runs again, and where, is not in rising order");
    for (const OperatorId id : rerun.operators) {
      if (id.index >= model_.operators.size())
        return bad(fmt::format("operator {} is to run again, and there are {}", id.index, model_.operators.size()));
      const Operator& op = model_.operators[id];
      if (op.is_view() || op.kind == OperatorKind::input)
        return bad(fmt::format("'{}' computes nothing that could run again", op.name));
    }
  }
  return {};
}

RatioCharges::AsLeft RatioCharges::as_left_by_all() const {
  AsLeft all;
  for (const TensorFlow& flow : uses_.flows) all.emplace_back(flow.consumers.size(), 1);
  return all;
}

RatioCharges::FlowAgain RatioCharges::again(std::uint32_t flow, std::uint32_t device, const AsLeft& as_left) const {
  const RunsAgain* const there = again_on(device);
  if (!there) return {};
  return {there->op[uses_.flows[flow].producer.index] != 0, &there->reads[flow], &as_left[flow]};
}

}  // namespace turnpoint
