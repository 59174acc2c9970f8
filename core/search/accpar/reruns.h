// SPDX-License-Identifier: Apache-2.0
// Which operators of a ratio plan run again in backward, so that devices that are short of memory have room: of each
// kind of device as many as it needs, so that a device with much memory runs nothing again because another has little.
//
// A greedy choice, not a proven optimum: again and again the operator that spares most bytes a second of its second run
// on that device, or it and what its input is made by; what turns out not to be needed is taken back. What backward
// makes lives while it is needed, which the plain sum of a device's memory does not see: the simulated clock says
// whether a device has room (core/schedule/plan_schedule.h), and where it has not, more runs again.
//
// Source: Chen et al., arXiv 1604.06174, for recomputation; who runs what again is ours. AccPar has no such choice.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/progress.h"
#include "core/plan/ratio_plan.h"

namespace turnpoint::accpar {

enum class Recompute : std::uint8_t {
  none,
  all,     ///< of nine amounts, from nothing to all that can be spared, the one with the lowest peak
  needed,  ///< as little as makes every device have room; where nothing does, as `all`
};

struct WithReruns {
  RatioPlan plan;
  bool has_room = true;  ///< every device; by the simulated clock where something runs again as it is needed
};
/// The plan, which is priced and in which nothing runs again, with what runs again, priced. Errors: the evaluator's;
/// cancelled.
Expected<WithReruns> with_reruns(const Scenario& scenario, RatioPlan plan, Recompute how, const RunContext& context);

/// "4 \u00d7 V100-16GB run 37 of 120 operators again in backward", for people; empty if nothing runs again.
std::string describe_reruns(const Scenario& scenario, const RatioPlan& plan);

}  // namespace turnpoint::accpar
