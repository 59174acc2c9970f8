// SPDX-License-Identifier: Apache-2.0
// One rank of a step job.
#pragma once

#include <functional>
#include <string>

#include "core/probe/step_job.h"
#include "gpu_probe/transport/crew.h"
#include "gpu_probe/transport/rank_links.h"

namespace turnpoint::probe {

/// Whether a job's document is one of a step, not of kernels; nothing else of it is looked at.
bool is_step_job(const std::string& text);

/// How many ranks a step job takes.
int ranks_of(const StepJob& job);

/// `cores`: that all ranks together may use. `pin`: called when this rank's own core is enough from then on.
int run_step_worker(const WorkerOptions& options, const std::string& text, RankLinks& links, int cores,
                    const std::function<void()>& pin);

}  // namespace turnpoint::probe
