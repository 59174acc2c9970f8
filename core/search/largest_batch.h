// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, for a range of device counts: what can be trained on how many devices, and how fast.
#pragma once

#include <functional>
#include <vector>

#include "core/import/source/model_source.h"
#include "core/search/objectives.h"

namespace turnpoint {

/// Answers are the largest batch to within this part of it, and of up to this many samples the largest.
inline constexpr std::int64_t kBatchResolution = 16;

/// Usage error: the scenario's batch cannot be another, since it is a task graph or since its file fixes the batch.
/// `source` is the scenario's model.
Expected<void> check_batch_can_change(const ModelSource& source, const Scenario& scenario);

/// A method as largest_batches() asks it. Cut into as many parts as it takes, a batch of any size fits, one part after
/// the other: so a method that would search every number of micro-batches is asked for one, unless its parameters give
/// a number. Usage error: they ask for every number ("micro-batches=all").
Expected<Contender> batch_contender(const Method& method, const std::string& parameters = {});

/// For every one of `counts` that the method does not refuse, as at_every_count() has it: the largest batch with which
/// it has a plan that fits, and the fastest plan there, with samples_per_second and speed_up. `scenario.batch` says the
/// batch. What fits is judged by simulated peaks (core/schedule/fitting.h).
///
/// The scenario's batch is doubled until nothing fits, or halved until something does. In between the search halves the
/// range, first over batches that the devices can divide. More samples are taken to need more memory once every device
/// has one; so where a batch that the devices cannot divide needs more than a larger one, the larger one may be missed.
/// Batches that the method refuses or that the model cannot be bound to count as too large, and are passed over on the
/// way to the first one that says something. Methods with a frontier are asked for sketches, and exactly at the batch
/// found and at the next larger one that was asked, until none of its plans fits. Of a frontier of a thousand plans (of
/// small networks up to a hundred thousand) every peak is simulated before that is said; of a larger one some are, and
/// an explanation says how many.
///
/// Where no batch fits: the plan with the least memory at the smallest batch that was looked at, whose point does not
/// fit. Usage error besides those of at_every_count(): check_batch_can_change().
Expected<std::vector<ResultPtr>> largest_batches(const Contender& method, const ModelSource& source,
                                                 const ScenarioPtr& scenario, const std::vector<int>& counts,
                                                 const RunContext& context,
                                                 const std::function<void(const ResultPtr&)>& found = {});

}  // namespace turnpoint
