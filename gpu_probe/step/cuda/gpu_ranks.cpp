// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/gpu_ranks.h"

#include <algorithm>

#include "gpu_probe/step/cuda/device.h"

namespace turnpoint::step::in_cuda {

namespace {

class GpuCommunicator : public Communicator {
 public:
  explicit GpuCommunicator(probe::GpuCollectives& exchanges) : exchanges_(exchanges) {}
  int rank() const override { return exchanges_.rank(); }
  int ranks() const override { return exchanges_.ranks(); }
  bool has_ways_of_its_own() const override { return true; }
  void give_up() override { exchanges_.abort(); }

  Expected<void> line_up() override {
    hold_back();
    return queue_exchange([&] { return exchanges_.line_up(); });
  }

  Expected<void> exchange(int to, ConstNumbers out, int from, Numbers in) override {
    if (to == rank() || from == rank()) {
      if (to != from || out.size() != in.size())
        return Error{ErrorCode::device, "a rank exchanges with itself and another at once", {}, {}};
      copy(out.data(), in.data(), in.size());
      return {};
    }
    const probe::GpuPart parts[] = {{to, out.data().address, count(out), 0, 0, type_of(out)},
                                    {from, 0, 0, in.data().address, count(in), type_of(in)}};
    received_ += count(in);
    return queue_exchange([&] { return exchanges_.exchange(parts); });
  }

  Expected<void> all_reduce(const Group& group, Numbers data) override {
    const auto members = static_cast<std::int64_t>(group.size());
    const Cuts cuts = even_cuts(count(data), group.size());
    const std::size_t me = place_in(group);
    const std::int64_t mine = cuts[me + 1] - cuts[me];
    received_ += (members - 1) * mine + count(data) - mine;
    const std::uint64_t at = data.data().address;
    return queue_exchange([&] { return exchanges_.all_reduce(group, at, at, count(data), type_of(data)); });
  }

  Expected<void> all_gather(const Group& group, const Cuts& cuts, Numbers data) override {
    if (!equal(cuts)) return Communicator::all_gather(group, cuts, data);
    received_ += cuts[1] * static_cast<std::int64_t>(group.size() - 1);
    const Place mine = data.data() + cuts[place_in(group)];
    return queue_exchange(
        [&] { return exchanges_.all_gather(group, mine.address, data.data().address, cuts[1], type_of(data)); });
  }

  Expected<void> reduce_scatter(const Group& group, const Cuts& cuts, Numbers data) override {
    if (!equal(cuts)) return Communicator::reduce_scatter(group, cuts, data);
    received_ += cuts[1] * static_cast<std::int64_t>(group.size() - 1);
    const Place mine = data.data() + cuts[place_in(group)];
    return queue_exchange(
        [&] { return exchanges_.reduce_scatter(group, data.data().address, mine.address, cuts[1], type_of(data)); });
  }

  Expected<void> all_to_all(const Group& group, const std::vector<ConstNumbers>& out,
                            const std::vector<Numbers>& in) override {
    std::vector<probe::GpuPart> parts;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i] == rank()) {
        copy(out[i].data(), in[i].data(), in[i].size());
        continue;
      }
      received_ += count(in[i]);
      parts.push_back(
          {group[i], out[i].data().address, count(out[i]), in[i].data().address, count(in[i]), type_of(in[i])});
    }
    return queue_exchange([&] { return exchanges_.exchange(parts); });
  }

 private:
  static std::int64_t count(const Numbers& numbers) { return static_cast<std::int64_t>(numbers.size()); }
  static int type_of(const Numbers& numbers) {
    return numbers.data().element_bytes == 2 ? probe::cuda::kNcclBfloat16 : probe::cuda::kNcclFloat32;
  }
  std::size_t place_in(const Group& group) const {
    return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank()) - group.begin());
  }
  static bool equal(const Cuts& cuts) {
    for (std::size_t i = 1; i < cuts.size(); ++i)
      if (cuts[i] - cuts[i - 1] != cuts[1]) return false;
    return cuts.front() == 0;
  }

  probe::GpuCollectives& exchanges_;
};

}  // namespace

std::unique_ptr<Communicator> gpu_communicator(probe::GpuCollectives& exchanges) {
  return std::make_unique<GpuCommunicator>(exchanges);
}

}  // namespace turnpoint::step::in_cuda
