// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <utility>

namespace turnpoint {

const char* to_string(Keep keep) {
  switch (keep) {
    case Keep::none: return "none";
    case Keep::before: return "before";
    case Keep::after: return "after";
    case Keep::both: return "both";
    case Keep::again: return "again";
  }
  return "";
}

const std::vector<ReshardStep>& PlanReshard::steps(ReshardRole role) const {
  switch (role) {
    case ReshardRole::forward: return forward;
    case ReshardRole::repeated: return repeated;
    case ReshardRole::restored: return restored;
    case ReshardRole::gradient: break;
  }
  return gradient;
}

std::vector<ReshardStep>& PlanReshard::steps(ReshardRole role) {
  return const_cast<std::vector<ReshardStep>&>(std::as_const(*this).steps(role));
}

std::vector<ReshardStep> PlanReshard::backward() const {
  std::vector<ReshardStep> all = repeated;
  all.insert(all.end(), restored.begin(), restored.end());
  all.insert(all.end(), gradient.begin(), gradient.end());
  return all;
}

std::size_t PlanReshard::first_in_backward(ReshardRole role) const {
  return (role > ReshardRole::repeated ? repeated.size() : 0) + (role > ReshardRole::restored ? restored.size() : 0);
}

void PlanReshard::set_backward(std::vector<ReshardStep> steps) {
  std::size_t head = 0;
  if (keep == Keep::before || keep == Keep::again) {
    head = std::min(forward.size(), steps.size());
    repeated.assign(steps.begin(), steps.begin() + std::ptrdiff_t(head));
  } else if (keep == Keep::after && from.mask(Layout::kPartial) == 0) {
    // A gradient's way ends in `from`: where steps follow, those before brought the kept copy back. No copy is brought
    // back to partial sums, by which a gradient's way may pass that is summed at its end.
    const auto there =
        std::find_if(steps.begin(), steps.end(), [this](const auto& step) { return step.result == from; });
    if (there != steps.end() && there + 1 != steps.end()) {
      head = std::size_t(there - steps.begin()) + 1;
      restored.assign(steps.begin(), there + 1);
    }
  }
  gradient.assign(steps.begin() + std::ptrdiff_t(head), steps.end());
}

}  // namespace turnpoint
