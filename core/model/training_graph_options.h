// SPDX-License-Identifier: Apache-2.0
// How a Model becomes the task graph of one training iteration (core/schedule/training_graph.h).
#pragma once

#include <cstdint>

namespace turnpoint {

struct TrainingGraphOptions {
  /// An iteration is this many runs of the scenario's model, whose batch is then that of one micro-batch.
  int micro_batches = 1;
  /// Recurrent operators as their time steps (core/schedule/unrolling.h).
  bool unrolled_steps = false;
  /// Their steps as the products, gates and elementwise parts that frameworks build them of.
  bool cells_in_parts = false;
  /// All tasks of a layer stay with its weights.
  bool whole_layers = false;
  /// The gradients that the time steps of a layer make of its weights are all kept until its update reads them, as where
  /// a framework's graph adds them at its end; else they are a running sum.
  bool kept_gradients = false;

  bool operator==(const TrainingGraphOptions&) const = default;
};
inline constexpr int kMaxMicroBatches = 4096;

}  // namespace turnpoint
