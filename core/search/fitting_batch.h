// SPDX-License-Identifier: Apache-2.0
// Which batch and which sequence still have a plan that fits.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/import/source/model_source.h"
#include "core/plan/result.h"
#include "core/scenario/scenario.h"
#include "core/schedule/fitting.h"

namespace turnpoint {

/// The largest of batch/2, batch/4, ..., 1 with which `ft` has a plan of the whole batch whose simulated peak fits
/// (core/schedule/fitting.h); where micro-batches are searched as well, a smaller batch needs no less. Sketches are
/// searched, so a batch that it names truly has such a plan, and one that it passes over nearly certainly has none.
/// nullopt: none of them, or the model cannot be bound to any of them. Errors: cancelled, no memory.
Expected<std::optional<std::int64_t>> fitting_batch(const ModelSource& source, const ScenarioPtr& scenario,
                                                    const RunContext& context);

struct LongestSequence {
  enum class End : std::uint8_t {
    too_large,  ///< a longer one was found that does not fit
    not_taken,  ///< a longer one was found that the model does not take
    not_tried   ///< it fits, and longer ones are not looked at
  };
  std::int64_t sequence = 0;  ///< tokens
  End end = End::too_large;
  /// Tokens: nobody trains with fewer, and no model has been with more. The scenario's own is tried all the same.
  static constexpr std::int64_t kShortest = 16, kLongest = 1 << 22;
};

/// The longest sequence with which `ft` has a plan of the whole batch whose simulated peak fits (micro-batches may make
/// room for a longer one): the scenario's own, then twice or half as long until that changes what fits, then halving
/// what lies between three times. An eighth of the shortest that was tried and did not fit is the most that it may be
/// below the longest. nullopt: none fits. Usage error: a task graph, or a model without a sequence. Errors: cancelled,
/// no memory, and what else keeps the model from being made of a length that it takes.
Expected<std::optional<LongestSequence>> longest_sequence(const ModelSource& source, const ScenarioPtr& scenario,
                                                          const RunContext& context);

/// The result with what fits judged by simulated peaks, of up to `until_any_fits` plans besides those that are named
/// (core/schedule/fitting.h). As it is where its clock is simulated already, and where no peak can fit as even the
/// least plain sum is more than twice the limit: of parameters, optimizer state, kept tensors and gradients a step has
/// all at once but the gradients when backward begins, and all but the kept tensors when it has ended. Errors as of
/// judge_fits().
Expected<ResultPtr> judged_by_peaks(const ResultPtr& result, const RunContext& context,
                                    std::size_t until_any_fits = kUntilAnyFits);

}  // namespace turnpoint
