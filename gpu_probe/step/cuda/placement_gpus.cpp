// SPDX-License-Identifier: Apache-2.0
// Transfers of a placed step from GPU to GPU. What is sent and received is queued on a second stream, beside the
// computing, on every rank in the program's one order; events tie it to the tasks that make and read it.
#include <span>

#include "gpu_probe/step/cuda/device.h"
#include "gpu_probe/step/cuda/gpu_ranks.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::step::in_cuda {

namespace {

class GpuLinks : public PlacementLinks {
 public:
  GpuLinks(const PlacedProgram& program, probe::GpuCollectives& exchanges)
      : program_(program), exchanges_(exchanges), rooms_(program.transfers.size(), 0) {
    constexpr std::int64_t kLine = 128;  // elements: addresses as a fresh buffer has them
    std::int64_t size = 0;
    for (const std::uint32_t transfer : program.transfer_order) {
      const PlacedTransfer& of = program.transfers[transfer];
      // One that carries nothing needs no way: what waits for tasks waits for what they make.
      if ((of.from != rank() && of.to != rank()) || of.elements == 0) continue;
      mine_.push_back(transfer);
      rooms_[transfer] = size;
      size += (of.elements + kLine - 1) / kLine * kLine;
    }
    const auto bytes = static_cast<std::size_t>(size * kept_);
    there_ = Array::outside((bytes + sizeof(float) - 1) / sizeof(float));
  }

  int rank() const override { return exchanges_.rank(); }
  Expected<void> begin(std::uint64_t) override {
    next_ = 0;
    seconds_.assign(program_.transfers.size(), 0);
    arrived_.assign(program_.transfers.size(), {});
    return receive_ahead();
  }
  Place room(std::uint32_t transfer) override { return Place{there_.data().address, kept_} + rooms_[transfer]; }
  Expected<void> post(std::uint32_t transfer) override {
    if (program_.transfers[transfer].elements == 0) return {};
    if (next_ >= mine_.size() || mine_[next_] != transfer)
      return Error{ErrorCode::device, "transfers are sent in another order than all ranks have", {}, {}};
    hold_until(Device::get().beside(), moment());
    if (auto done = carry(transfer); !done) return done;
    return receive_ahead();
  }
  bool is_there(std::uint32_t) const override { return false; }  // taken in when a task needs it: nobody asks the GPU
  Expected<void> wait_for(std::uint32_t transfer) override {
    if (program_.transfers[transfer].elements == 0) return {};
    if (!arrived_[transfer].event)
      return Error{ErrorCode::device, "a transfer is needed before what all ranks have before it", {}, {}};
    hold_until(Device::get().gpu.stream, arrived_[transfer]);
    return {};
  }
  Expected<void> end() override {
    hold_until(Device::get().gpu.stream, moment_on(Device::get().beside()));
    return {};
  }
  std::vector<double> seconds_on_the_way() const override { return seconds_; }
  std::int64_t room_bytes() const override { return static_cast<std::int64_t>(there_.size() * sizeof(float)); }

  Expected<void> meet() override { return meet_over(exchanges_.control()); }
  Expected<void> line_up() override {
    hold_back();
    return queue_exchange([&] { return exchanges_.line_up(); });
  }
  Expected<bool> follow(bool flag) override { return follow_over(exchanges_.control(), flag); }
  Expected<std::vector<double>> gather(const std::vector<double>& mine) override {
    return gather_over(exchanges_.control(), mine);
  }
  void give_up() override { exchanges_.abort(); }

 private:
  /// Up to this rank's next send, so that whoever sends to it need not wait for its tasks.
  Expected<void> receive_ahead() {
    while (next_ < mine_.size() && program_.transfers[mine_[next_]].to == rank())
      if (auto done = carry(mine_[next_]); !done) return done;
    return {};
  }
  Expected<void> carry(std::uint32_t transfer) {
    ++next_;
    const PlacedTransfer& of = program_.transfers[transfer];
    const probe::cuda::Stream stream = Device::get().beside();
    const std::uint64_t at = room(transfer).address;
    const bool out = of.from == rank();
    const int type = kept_ == 2 ? probe::cuda::kNcclBfloat16 : probe::cuda::kNcclFloat32;
    const probe::GpuPart part =
        out ? probe::GpuPart{of.to, at, of.elements, 0, 0, type} : probe::GpuPart{of.from, 0, 0, at, of.elements, type};
    const Moment since = moment_on(stream);
    if (auto done = queue_exchange([&] { return exchanges_.exchange(std::span(&part, 1), stream); }); !done)
      return done;
    const Moment through = moment_on(stream);
    between(since, through, [this, transfer](double seconds) { seconds_[transfer] = seconds; });
    if (!out) arrived_[transfer] = through;
    return {};
  }

  const PlacedProgram& program_;
  probe::GpuCollectives& exchanges_;
  std::vector<std::uint32_t> mine_;  ///< transfers that this rank sends or receives, in the order of all ranks
  std::vector<std::int64_t> rooms_;  ///< [transfer]: elements of `there_` before it
  Array there_;
  const int kept_ = kept_bytes();  ///< an element travels as tensors are kept
  std::size_t next_ = 0;           ///< into `mine_`: not yet queued in this step
  std::vector<Moment> arrived_;
  std::vector<double> seconds_;
};

}  // namespace

std::unique_ptr<PlacementLinks> gpu_links(const PlacedProgram& program, probe::GpuCollectives& exchanges) {
  return std::make_unique<GpuLinks>(program, exchanges);
}

}  // namespace turnpoint::step::in_cuda
