// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/meeting.h"

#include "gpu_probe/step/values/block.h"

namespace turnpoint::step {

Meeting::Meeting(Communicator& communicator, bool alone)
    : communicator_(communicator), alone_(alone || communicator.ranks() == 1) {
  for (int rank = 0; rank < communicator.ranks(); ++rank) everyone_.push_back(rank);
}

Expected<void> Meeting::barrier() {
  if (alone_) return {};
  std::vector<double> token(everyone_.size(), 0);
  return all_reduce(token);
}

Expected<void> Meeting::all_reduce(std::vector<double>& values) {
  Array there = Array::outside(values.size());
  put(values, there.data());
  if (auto done = communicator_.all_reduce(everyone_, there.numbers()); !done) return done;
  values = numbers_of(there);
  return settle();
}

Expected<void> Meeting::broadcast(double& value) {
  if (alone_) return {};
  std::vector<double> sum{communicator_.rank() == 0 ? value : 0};
  if (auto done = all_reduce(sum); !done) return done;
  value = sum[0];
  return {};
}

// Doubles travel as their bits.
Expected<std::vector<double>> Meeting::gather(const std::vector<double>& mine) {
  if (alone_) return mine;
  const std::size_t length = mine.size() * sizeof(double) / static_cast<std::size_t>(arithmetic().whole_bytes);
  Cuts cuts;
  for (std::size_t i = 0; i <= everyone_.size(); ++i) cuts.push_back(static_cast<std::int64_t>(i * length));
  Array there = Array::outside(length * everyone_.size());
  upload(mine.data(), there.data() + cuts[static_cast<std::size_t>(communicator_.rank())],
         mine.size() * sizeof(double));
  if (auto done = communicator_.all_gather(everyone_, cuts, there.numbers()); !done) return done.error();
  std::vector<double> result(mine.size() * everyone_.size());
  download(there.data(), result.data(), result.size() * sizeof(double));
  if (auto done = settle(); !done) return done.error();
  return result;
}

}  // namespace turnpoint::step
