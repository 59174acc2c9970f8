// SPDX-License-Identifier: Apache-2.0
// A whole step on ranks that are threads of this process, and the comparison of two steps.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "gpu_probe/step/report.h"
#include "gpu_probe/step/values/place.h"

namespace turnpoint::step {

struct StepRun {
  std::vector<StepReport> ranks;
  double loss = 0;
};
/// One thread per device of the plan's mesh. Error: of the first rank that found one.
Expected<StepRun> run_step(const Arithmetic& in, const Model& model, const Plan& plan, const StepOptions& options);
/// The unpartitioned step on one rank, with statistics over the shares of `plan`.
Expected<StepRun> run_whole(const Arithmetic& in, const Model& model, const Plan& plan, StepOptions options);

/// The plan of one device that keeps everything: the unpartitioned step.
Plan whole_plan(const Model& model);
/// Over how many shares a plan's ranks take statistics, for StepOptions::shares of the unpartitioned step.
std::vector<std::vector<std::int64_t>> statistics_shares(const Model& model, const Plan& plan);

struct Comparison {
  /// Per kind: the largest difference of an element, relative to the largest element of the whole tensor; of gradients
  /// that are next to nothing, to a thousandth of the largest one of the kind.
  std::array<double, kComparedKinds> worst{};
  std::array<std::int64_t, kComparedKinds> elements{};  ///< compared, on all ranks
  double loss = 0;                                      ///< relative difference
  std::string where;                                    ///< of the worst one
  /// Per kind: the largest difference of a tensor, root mean square over the elements that ranks hold, relative to the
  /// root mean square of the whole tensor. One element on the other side of a tie does not show in it.
  std::array<double, kComparedKinds> typical{};
  std::string where_typical;
  double largest() const;
};
/// Both recorded. Error: the step holds something that the unpartitioned one has not.
Expected<Comparison> compare(const Model& model, const Plan& plan, const StepRun& step, const StepRun& whole);

/// The largest relative difference between the planned bytes of a collective and what its ranks received on average.
/// `where`: of that one.
double traffic_error(const StepRun& step, std::string* where = nullptr);

}  // namespace turnpoint::step
