// SPDX-License-Identifier: Apache-2.0
// One rank's share of one ParameterSet: its weights, their gradient and the optimizer state, whole or a shard.
//
// The set is one run of elements, parameter after parameter. A sharded update cuts it into equal pieces (the last ones
// shorter) along the plan's own steps: a reduce-scatter or slice over some axes leaves the piece of this rank's
// position among them.
#pragma once

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/program.h"
#include "gpu_probe/step/report.h"

namespace turnpoint::step {

class ParameterShare {
 public:
  ParameterShare(const Program& program, OperatorId op, const ParameterSet& set, Communicator& communicator,
                 StepReport& report);

  /// The weights of the inputs in `wanted` (others stay null), gathered where they are sharded. `unlisted`: by a
  /// gather that the plan does not list.
  Expected<void> read(const std::vector<bool>& wanted, bool unlisted, std::vector<Value>& weights);
  /// Adds to the gradient of an input, in this rank's block; nothing where this rank is not to add (see Way::meets).
  void add_gradient(std::uint32_t input, const Block& gradient);
  /// Sums the gradient as the plan says and keeps what this rank updates.
  Expected<void> synchronise();
  /// The update, and the way of the new weights to all that hold them.
  Expected<void> update();
  void record(std::vector<Recorded>& out, Compared kind) const;

 private:
  struct Span {
    std::int64_t begin = 0, end = 0;
  };
  Span piece_of(int rank) const;  ///< after all steps that cut
  Span cut(Span from, int position, int parts) const;
  Expected<void> gather(const std::vector<Span>& wanted, std::vector<double>& all, std::int64_t& received);
  std::int64_t length() const { return starts_.back(); }
  void generate();
  std::string where(const char* what) const;

  const Program& program_;
  OperatorId op_;
  const ParameterSet& set_;
  Communicator& communicator_;
  StepReport& report_;
  std::vector<Region> regions_;       ///< per input of the set
  std::vector<std::int64_t> starts_;  ///< of each in the run, and its length at the end
  Span mine_;                         ///< what this rank updates
  Value weights_, gradient_;          ///< runs; of sharded weights the own piece
  Value first_, second_;              ///< optimizer state of the own piece
  std::int64_t gather_traffic_ = -1;  ///< index into report_.traffic
};

}  // namespace turnpoint::step
