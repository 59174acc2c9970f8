// SPDX-License-Identifier: Apache-2.0
// What all ranks of timed steps do together between the steps: wait for each other, agree, say what they have seen.
#pragma once

#include <vector>

#include "gpu_probe/step/communicator.h"

namespace turnpoint::step {

class Meeting {
 public:
  /// `alone`: the others that the communicator speaks of are not there.
  Meeting(Communicator& communicator, bool alone);
  bool alone() const { return alone_; }

  Expected<void> barrier();
  /// Everyone gets rank 0's value.
  Expected<void> broadcast(double& value);
  /// All ranks' numbers of equal count, one rank after the other.
  Expected<std::vector<double>> gather(const std::vector<double>& mine);

 private:
  Expected<void> all_reduce(std::vector<double>& values);
  Communicator& communicator_;
  Group everyone_;
  bool alone_;
};

}  // namespace turnpoint::step
