// SPDX-License-Identifier: Apache-2.0
// In which order a stage of a pipeline works on its micro-batches: 1F1B (PipeDream-Flush) and, where a stage has
// several runs of layers, interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, sections 2.2.1 and 2.2.2; the
// number of forwards before the first backward is Megatron-LM's). Interleaved, the batches go round by as many as there
// are stages: so many through the first run, the same through the second, and so on. Or all forward first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace turnpoint {

struct PipelineStep {
  bool forward = true;
  int chunk = 0, batch = 0;
  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

/// All steps of a stage, 2 x chunks x micro_batches. With several chunks micro_batches is a multiple of the stages.
/// `forwards_first`: all micro-batches through one run after the other, then all back in the order of the runs
/// reversed (GPipe, arXiv 1811.06965, section 2.3; with several runs MaxText's circular pipeline, whose backward XLA
/// makes of the whole forward). Backward takes the micro-batches in the order of forward: as long as in GPipe's, since
/// all are there.
std::vector<PipelineStep> pipeline_order(int stage, int stages, int chunks, int micro_batches,
                                         bool forwards_first = false);

/// Of how many micro-batches each chunk keeps what backward reads where all of them together keep most; one of chunk c
/// takes bytes[c].
std::vector<int> most_in_flight(std::span<const PipelineStep> order, std::span<const std::int64_t> bytes);

}  // namespace turnpoint
