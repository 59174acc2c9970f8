// SPDX-License-Identifier: Apache-2.0
// Transfers of a placed step between hosts, beside the computing: one thread of a rank sends what its tasks post, one
// transfer at a time as the simulator has it (resources/manual/simulator.md, rule 2), and one for each rank of another
// host takes in what that one sends, in its order. So a sender waits for nothing but the network, and no order of
// transfers can wait for itself.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

#include "gpu_probe/job/output.h"
#include "gpu_probe/step/placement_links.h"

namespace turnpoint::step {

namespace {

class HostLinks : public PlacementLinks {
 public:
  HostLinks(const PlacedProgram& program, const PlacementCarriers& carriers, std::unique_ptr<PlacementBoard> board)
      : program_(program),
        carriers_(carriers),
        board_(std::move(board)),
        here_(board_links(program, *board_, carriers.collectives.rank())),
        seconds_(program.transfers.size(), 0) {
    const int ranks = carriers_.collectives.ranks();
    try {
      threads_.emplace_back([this] { send_all(); });
      for (int from = 0; from < ranks; ++from) {
        const auto& list = program_.arrivals[static_cast<std::size_t>(rank() * ranks + from)];
        if (is_far(from) && !list.empty()) threads_.emplace_back([this, from, &list] { receive_all(from, list); });
      }
    } catch (...) {  // those that run would wait for ever
      end_threads();
      throw;
    }
  }
  ~HostLinks() override {
    bool idle = false;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      idle = to_send_.empty() && receiving_ == 0;
    }
    if (!idle) give_up();
    end_threads();
    if (through_) board_->give_back();  // all ranks are
  }

  int rank() const override { return here_->rank(); }
  Expected<void> begin(std::uint64_t step) override {
    if (auto done = here_->begin(step); !done) return done;
    {
      const std::lock_guard lock(mutex_);
      std::fill(seconds_.begin(), seconds_.end(), 0);
      step_ = step;
      ++begun_;
      receiving_ = threads_.size() - 1;
    }
    changed_.notify_all();
    return {};
  }
  Place room(std::uint32_t transfer) override { return here_->room(transfer); }
  Expected<void> post(std::uint32_t transfer) override {
    if (!is_far(program_.transfers[transfer].to)) return here_->post(transfer);
    {
      const std::lock_guard lock(mutex_);
      to_send_.push_back(transfer);
    }
    changed_.notify_all();
    return {};
  }
  bool is_there(std::uint32_t transfer) const override { return here_->is_there(transfer); }
  Expected<void> wait_for(std::uint32_t transfer) override {
    if (!is_far(program_.transfers[transfer].from)) return here_->wait_for(transfer);
    return wait_until([&] { return is_there(transfer); });
  }
  Expected<void> end() override {
    return wait_until([&] { return to_send_.empty() && receiving_ == 0; });
  }
  std::vector<double> seconds_on_the_way() const override { return seconds_; }

  Expected<void> meet() override { return meet_over(carriers_.collectives); }
  Expected<bool> follow(bool flag) override { return follow_over(carriers_.collectives, flag); }
  Expected<std::vector<double>> gather(const std::vector<double>& mine) override {
    auto all = gather_over(carriers_.collectives, mine);
    through_ = all.has_value();
    return all;
  }
  void give_up() override {
    {
      const std::lock_guard lock(mutex_);
      lost_ = true;
    }
    board_->give_up();
    carriers_.transport.abort();
    carriers_.beside.abort();
    changed_.notify_all();
  }

 private:
  void end_threads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    threads_.clear();
  }
  bool is_far(int other) const { return carriers_.collectives.node_of(other) != carriers_.collectives.node_of(rank()); }
  bool over() const { return lost_ || board_->given_up(); }

  /// This rank's own thread sleeps, and leaves the core to those that carry. Ranks of this host that give up wake
  /// nobody, so it looks now and then.
  template <class Done>
  Expected<void> wait_until(const Done& done) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      if (over()) return Error{ErrorCode::device, "another rank gave up", {}, {}};
      changed_.wait_for(lock, std::chrono::milliseconds(20));  // of a clock that nobody sets
    }
    return {};
  }

  /// The numbers of a transfer's room; one of a transfer that carries none, which tells that its task is through.
  std::span<std::byte> bytes_of(std::uint32_t transfer, std::byte& token) const {
    const auto elements = static_cast<std::size_t>(program_.transfers[transfer].elements);
    if (elements == 0) return {&token, 1};
    return Numbers(board_->room(transfer), elements).bytes();
  }
  bool exchange(std::uint32_t transfer, const probe::Part& part) {
    const double since = probe::host_clock();
    const bool fine = carriers_.beside.exchange(std::span(&part, 1));
    seconds_[transfer] = probe::host_clock() - since;
    if (!fine) give_up();
    return fine;
  }

  void send_all() {
    std::byte token{};
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || lost_ || !to_send_.empty(); });
      if (stopping_ || lost_) return;
      const std::uint32_t transfer = to_send_.front();
      lock.unlock();
      const bool fine = exchange(transfer, {program_.transfers[transfer].to, bytes_of(transfer, token), {}});
      lock.lock();
      if (!fine) return;
      to_send_.pop_front();
      changed_.notify_all();
    }
  }

  void receive_all(int from, const std::vector<std::uint32_t>& list) {
    std::byte token{};
    std::unique_lock lock(mutex_);
    for (std::uint64_t through = 0;; ++through) {
      changed_.wait(lock, [&] { return stopping_ || lost_ || begun_ > through; });
      if (stopping_ || lost_) return;
      for (const std::uint32_t transfer : list) {
        lock.unlock();
        const bool fine = exchange(transfer, {from, {}, bytes_of(transfer, token)});
        lock.lock();
        if (!fine) return;
        board_->post(transfer, step_, static_cast<std::uint64_t>(program_.transfers[transfer].elements));
        changed_.notify_all();
      }
      --receiving_;
      changed_.notify_all();
    }
  }

  const PlacedProgram& program_;
  const PlacementCarriers carriers_;
  std::unique_ptr<PlacementBoard> board_;
  std::unique_ptr<PlacementLinks> here_;  ///< to ranks of this host
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex; a transfer's seconds are written by who carries it, and read when all are through.
  std::vector<double> seconds_;
  std::deque<std::uint32_t> to_send_;
  std::uint64_t step_ = 0, begun_ = 0;
  std::size_t receiving_ = 0;  ///< threads that are not through with this step
  bool stopping_ = false, lost_ = false;
  bool through_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace

Expected<std::unique_ptr<PlacementLinks>> host_links(const PlacedProgram& program, const PlacementCarriers& carriers) {
  PlacementBoard::Shape shape = board_shape(program, 0);
  auto board =
      PlacementBoard::in_file(carriers.region.file(), shape, [&region = carriers.region] { return region.aborted(); });
  if (!board) return board.error();
  return std::unique_ptr<PlacementLinks>(std::make_unique<HostLinks>(program, carriers, std::move(*board)));
}

}  // namespace turnpoint::step
