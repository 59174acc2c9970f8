// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

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

std::size_t restoring_steps(const PlanReshard& reshard) {
  for (std::size_t i = 0; i < reshard.backward.size(); ++i)
    if (reshard.backward[i].result == reshard.from) return i + 1;
  return 0;
}

}  // namespace turnpoint
