// SPDX-License-Identifier: Apache-2.0
// One rank of many, alone: what others would send is filled with numbers of its own.
#include <algorithm>

#include "gpu_probe/step/communicator.h"

namespace turnpoint::step {

namespace {

void repeat(ConstNumbers with, Numbers to) {
  for (std::size_t at = 0; at < to.size(); at += with.size()) {
    if (with.empty()) return fill(to.data(), 0.5, to.size());
    const std::size_t count = std::min(with.size(), to.size() - at);
    copy(with.data(), to.data() + static_cast<std::int64_t>(at), count);
  }
}

class LoneCommunicator : public Communicator {
 public:
  LoneCommunicator(int ranks, int rank) : ranks_(ranks), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  bool has_ways_of_its_own() const override { return true; }  // nobody is there to go any way with
  Expected<void> line_up() override {
    hold_back();
    return {};
  }
  void give_up() override {}
  Expected<void> exchange(int, ConstNumbers out, int, Numbers in) override {
    repeat(out, in);
    return {};
  }
  Expected<void> all_gather(const Group& group, const Cuts& cuts, Numbers data) override {
    const auto me = static_cast<std::size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
    const auto piece = [&](std::size_t i) {
      return data.subspan(static_cast<std::size_t>(cuts[i]), static_cast<std::size_t>(cuts[i + 1] - cuts[i]));
    };
    for (std::size_t i = 0; i < group.size(); ++i)
      if (i != me) repeat(piece(me), piece(i));
    return {};
  }
  Expected<void> reduce_scatter(const Group&, const Cuts&, Numbers) override { return {}; }
  Expected<void> all_reduce(const Group&, Numbers) override { return {}; }

 private:
  int ranks_, rank_;
};

}  // namespace

std::unique_ptr<Communicator> lone_communicator(int ranks, int rank) {
  return std::make_unique<LoneCommunicator>(ranks, rank);
}

}  // namespace turnpoint::step
