// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/region_ranks.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "gpu_probe/step/carried_ranks.h"

namespace turnpoint::step {

namespace {

/// Owns what the exchanges go over.
class RegionCommunicator : public Communicator {
 public:
  RegionCommunicator(probe::SharedRegion& region, int rank)
      : transport_(region, rank, places(region.ranks())),
        collectives_(region, rank),
        carried_(carried_communicator(collectives_, transport_)) {}
  int rank() const override { return carried_->rank(); }
  int ranks() const override { return carried_->ranks(); }
  void give_up() override { carried_->give_up(); }
  Expected<void> exchange(int to, ConstNumbers out, int from, Numbers in) override {
    return counted(carried_->exchange(to, out, from, in));
  }
  Expected<void> all_reduce(const Group& group, Numbers data) override {
    return counted(carried_->all_reduce(group, data));
  }
  Expected<void> all_gather(const Group& group, const Cuts& cuts, Numbers data) override {
    return counted(carried_->all_gather(group, cuts, data));
  }
  Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, Numbers data) override {
    return counted(carried_->reduce_scatter(group, cuts, data));
  }

 private:
  static std::vector<int> places(int ranks) {
    std::vector<int> list(static_cast<std::size_t>(ranks));
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  Expected<void> counted(Expected<void> done) {
    received_ += carried_->take_received();
    return done;
  }
  probe::SharedTransport transport_;
  probe::SharedCommunicator collectives_;
  std::unique_ptr<Communicator> carried_;
};

}  // namespace

std::unique_ptr<Communicator> region_communicator(probe::SharedRegion& region, int rank) {
  return std::make_unique<RegionCommunicator>(region, rank);
}

}  // namespace turnpoint::step
