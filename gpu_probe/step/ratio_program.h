// SPDX-License-Identifier: Apache-2.0
// A model and a ratio plan made ready for execution: what every rank computes, and by which messages every tensor comes
// to its readers, every gradient back and every gradient of a weight together. The same on all ranks.
//
// All of it follows from the plan's shares and the model's loops; nothing else is told, so nothing else is sent.
#pragma once

#include <memory>

#include "gpu_probe/step/program.h"
#include "gpu_probe/step/ratio_moves.h"

namespace turnpoint::step {

/// Messages with a line of their own in what ranks report; -1: there are none to send.
struct RatioWay {
  RatioMove move;
  std::int32_t line = -1;
};

/// Readers that want a tensor alike, or leave its gradient alike.
struct RatioReaders {
  std::vector<Model::Use> uses;
  RatioLie lie;  ///< of the tensor or of its gradient there
  RatioWay way;  ///< from the producer to here, or back
};

/// A tensor that an operator produces.
struct RatioFlow {
  TensorId tensor;
  OperatorId producer;
  std::uint32_t output = 0;
  std::vector<RatioReaders> readers, gradients;
  bool returns = false;  ///< a gradient is wanted
  int results = 0;       ///< how often it is a result of the network
};

/// What several ranks hold alike of a parameter whose update they share out: a block of it, as one run of elements,
/// row-major.
struct SharedUpdate {
  Region block;
  RatioLie shard;            ///< what each updates of it
  RatioWay scatter, gather;  ///< of the gradient's sum to the shards; of the new weights to all
};

/// A parameter where it is stored and updated.
struct RatioWeight {
  OperatorId op;
  std::uint32_t input = 0;
  RatioWay sum;                    ///< of its gradient over all ranks that share it
  std::vector<SharedUpdate> runs;  ///< disjoint; empty: its update is not shared out
  /// [rank]: the runs that make up what it holds; several where others hold some of it in another division.
  std::vector<std::vector<std::uint32_t>> runs_of;
};

/// A later use of a stored parameter; lies and messages are those of what is stored, not of its transpose.
struct RatioTie {
  Tie tie;
  std::size_t weight = 0;
  RatioLie read;
  RatioWay there, back;
  bool meets = false;  ///< its gradient is summed together with the owner's
};

struct RatioOperator {
  Kernel kernel{};
  std::vector<RatioLie> inputs, outputs;
  std::vector<std::int32_t> output_flow, input_weight, input_tie;  ///< index, or -1
};

/// One line of what ranks report of messages.
struct RatioLine {
  MeasuredMove::Kind kind = MeasuredMove::Kind::activation;
  TensorId tensor;
  OperatorId op;
  int element_bytes = 4;
  std::int64_t fresh = 0, all = 0;  ///< elements, as RatioMove
};

/// Immutable; shared by the threads of all ranks. The model must outlive it.
struct RatioProgram {
  ModelPtr model;
  StepRatio plan;
  StepOptions options;
  RatioTree tree;
  std::vector<RatioOperator> operators;
  std::vector<RatioFlow> flows;
  std::vector<RatioWeight> weights;
  std::vector<RatioTie> ties;
  std::vector<RatioLine> lines;
  /// Error: an operator without arithmetic, or what RatioTree::make() refuses.
  static Expected<std::shared_ptr<const RatioProgram>> make(const StepJob& job, StepOptions options);
};

/// Of the unpartitioned step: the parts of every batch normalisation over which some rank takes statistics, copies left
/// out (StepOptions::parts).
std::vector<LoopParts> statistics_parts(const Model& model, const RatioTree& tree);

}  // namespace turnpoint::step
