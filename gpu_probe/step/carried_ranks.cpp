// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/carried_ranks.h"

#include <algorithm>
#include <span>

#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

namespace {

class CarriedCommunicator : public Communicator {
 public:
  CarriedCommunicator(probe::Communicator& collectives, probe::Transport& transport)
      : collectives_(collectives), transport_(transport) {}
  int rank() const override { return collectives_.rank(); }
  int ranks() const override { return collectives_.ranks(); }
  void give_up() override { transport_.abort(); }

  Expected<void> exchange(int to, ConstNumbers out, int from, Numbers in) override {
    if (to == rank() || from == rank()) {
      if (to != from || out.size() != in.size())
        return Error{ErrorCode::device, "a rank exchanges with itself and another at once", {}, {}};
      copy(out.data(), in.data(), in.size());
      return {};
    }
    const probe::Part parts[] = {{to, out.bytes(), to == from ? in.bytes() : Bytes()}, {from, {}, in.bytes()}};
    if (auto done = went(transport_.exchange(std::span(parts, to == from ? 1 : 2))); !done) return done;
    received_ += static_cast<std::int64_t>(in.size());
    return {};
  }

  Expected<void> all_reduce(const Group& group, Numbers data) override {
    if (!are_floats(data)) return Communicator::all_reduce(group, data);
    return counted(collectives_.all_reduce(group, data.data(), static_cast<std::int64_t>(data.size())));
  }
  Expected<void> all_gather(const Group& group, const Cuts& cuts, Numbers data) override {
    if (!are_floats(data) || !equal(cuts)) return Communicator::all_gather(group, cuts, data);
    const float* mine = data.data() + cuts[place_in(group)];
    return counted(collectives_.all_gather(group, mine, data.data(), cuts[1]));
  }
  Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, Numbers data) override {
    if (!are_floats(data) || !equal(cuts)) return Communicator::reduce_scatter(group, cuts, data);
    float* mine = data.data() + cuts[place_in(group)];
    return counted(collectives_.reduce_scatter(group, data.data(), mine, cuts[1]));
  }

 private:
  using Bytes = std::span<std::byte>;
  static bool are_floats(const Numbers& numbers) { return numbers.data().element_bytes == sizeof(float); }
  static Expected<void> went(bool fine) {
    if (fine) return {};
    return Error{ErrorCode::device, "another rank gave up", {}, {}};
  }
  std::size_t place_in(const Group& group) const {
    return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank()) - group.begin());
  }
  static bool equal(const Cuts& cuts) {
    for (std::size_t i = 1; i < cuts.size(); ++i)
      if (cuts[i] - cuts[i - 1] != cuts[1]) return false;
    return cuts.front() == 0;
  }
  Expected<void> counted(bool fine) {
    received_ += collectives_.take_received();
    return went(fine);
  }

  probe::Communicator& collectives_;
  probe::Transport& transport_;
};

}  // namespace

std::unique_ptr<Communicator> carried_communicator(probe::Communicator& collectives, probe::Transport& transport) {
  return std::make_unique<CarriedCommunicator>(collectives, transport);
}

Expected<StepMeasurement> measure_rank(const StepJob& job, probe::RankLinks& links, const StepProgress& progress) {
  const ComputeIn here(in_float());
  const auto communicator = job.mode == StepMode::slice ? lone_communicator(job.plan.mesh.devices(), job.slice_device)
                                                        : carried_communicator(links.collectives(), links.transport());
  return measure_steps(job, *communicator, progress);
}

}  // namespace turnpoint::step
