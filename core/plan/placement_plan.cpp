// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placement_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace turnpoint {

bool PlacementPlan::limited() const {
  return std::any_of(limit_bytes.begin(), limit_bytes.end(),
                     [](std::int64_t limit) { return limit != kUnlimitedBytes; });
}

std::uint32_t PlacementPlan::busiest_device() const {
  return std::uint32_t(std::max_element(busy_s.begin(), busy_s.end()) - busy_s.begin());
}

std::string describe(const PlacementShortage& shortage) {
  return fmt::format("device {} lacks {} at {}", shortage.device, format_bytes(shortage.bytes),
                     format_seconds(shortage.time_s));
}

}  // namespace turnpoint
