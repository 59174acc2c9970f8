// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/communicator.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace turnpoint::step {

Cuts even_cuts(std::int64_t length, std::size_t members) {
  Cuts cuts{0};
  const auto count = static_cast<std::int64_t>(members);
  for (std::int64_t i = 0; i < count; ++i) cuts.push_back(cuts.back() + length / count + (i < length % count ? 1 : 0));
  return cuts;
}

namespace {

std::size_t index_in(const Group& group, int rank) {
  const auto at = std::find(group.begin(), group.end(), rank);
  assert(at != group.end());
  return static_cast<std::size_t>(at - group.begin());
}

std::vector<double> piece(std::span<const double> data, const Cuts& cuts, std::size_t which) {
  return {data.begin() + cuts[which], data.begin() + cuts[which + 1]};
}

}  // namespace

std::int64_t Communicator::take_received() { return std::exchange(received_, 0); }

Expected<void> Communicator::all_gather(const Group& group, const Cuts& cuts, std::span<double> data) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  for (std::size_t s = 0; s + 1 < n; ++s) {
    const std::size_t out = (me + n - s) % n, in = (me + n - s - 1) % n;
    if (auto sent = send(group[(me + 1) % n], piece(data, cuts, out)); !sent) return sent;
    const auto got = receive(group[(me + n - 1) % n]);
    if (!got) return got.error();
    std::copy(got->begin(), got->end(), data.begin() + cuts[in]);
  }
  return {};
}

Expected<void> Communicator::reduce_scatter(const Group& group, const Cuts& cuts, std::span<double> data) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  for (std::size_t s = 0; s + 1 < n; ++s) {
    const std::size_t out = (me + 2 * n - s - 1) % n, in = (me + 2 * n - s - 2) % n;
    if (auto sent = send(group[(me + 1) % n], piece(data, cuts, out)); !sent) return sent;
    const auto got = receive(group[(me + n - 1) % n]);
    if (!got) return got.error();
    for (std::size_t i = 0; i < got->size(); ++i) data[static_cast<std::size_t>(cuts[in]) + i] += (*got)[i];
  }
  return {};
}

Expected<void> Communicator::all_reduce(const Group& group, std::span<double> data) {
  const Cuts cuts = even_cuts(static_cast<std::int64_t>(data.size()), group.size());
  if (auto done = reduce_scatter(group, cuts, data); !done) return done;
  return all_gather(group, cuts, data);
}

Expected<std::vector<std::vector<double>>> Communicator::all_to_all(const Group& group,
                                                                    std::vector<std::vector<double>> parts) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  std::vector<std::vector<double>> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i == me) continue;
    if (auto sent = send(group[i], std::move(parts[i])); !sent) return sent.error();
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (i == me) continue;
    auto got = receive(group[i]);
    if (!got) return got.error();
    result[i] = std::move(*got);
  }
  result[me] = std::move(parts[me]);
  return result;
}

Expected<std::vector<double>> Communicator::exchange(int to, std::vector<double> data, int from) {
  if (to == rank() && from == rank()) return data;
  if (auto sent = send(to, std::move(data)); !sent) return sent.error();
  return receive(from);
}

struct ThreadRanks::Shared {
  std::mutex mutex;
  std::condition_variable arrived;
  bool given_up = false;
  int ranks = 0;
  std::vector<std::deque<std::vector<double>>> boxes;  // [to * ranks + from]
};

namespace {

Error others_gave_up() { return {ErrorCode::device, "another rank gave up", {}, {}}; }

template <class Shared>
class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return shared_->ranks; }

  Expected<void> send(int to, std::vector<double> data) override {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->given_up) return others_gave_up();
      box(to, rank_).push_back(std::move(data));
    }
    shared_->arrived.notify_all();
    return {};
  }

  Expected<std::vector<double>> receive(int from) override {
    std::unique_lock lock(shared_->mutex);
    auto& mine = box(rank_, from);
    shared_->arrived.wait(lock, [&] { return !mine.empty() || shared_->given_up; });
    if (mine.empty()) return others_gave_up();
    auto data = std::move(mine.front());
    mine.pop_front();
    if (from != rank_) received_ += static_cast<std::int64_t>(data.size());
    return data;
  }

  void give_up() override {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->given_up = true;
    }
    shared_->arrived.notify_all();
  }

 private:
  std::deque<std::vector<double>>& box(int to, int from) {
    return shared_->boxes[static_cast<std::size_t>(to * shared_->ranks + from)];
  }
  std::shared_ptr<Shared> shared_;
  int rank_;
};

}  // namespace

ThreadRanks::ThreadRanks(int ranks) : shared_(std::make_shared<Shared>()) {
  shared_->ranks = ranks;
  shared_->boxes.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
}
ThreadRanks::~ThreadRanks() = default;

std::unique_ptr<Communicator> ThreadRanks::communicator(int rank) {
  return std::make_unique<ThreadCommunicator<Shared>>(shared_, rank);
}

}  // namespace turnpoint::step
