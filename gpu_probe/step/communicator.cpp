// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/communicator.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "gpu_probe/step/values/block.h"

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

Numbers piece(Numbers data, const Cuts& cuts, std::size_t which) {
  return data.subspan(static_cast<std::size_t>(cuts[which]), static_cast<std::size_t>(cuts[which + 1] - cuts[which]));
}

}  // namespace

std::int64_t Communicator::take_received() { return std::exchange(received_, 0); }

Expected<void> Communicator::all_gather(const Group& group, const Cuts& cuts, Numbers data) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  for (std::size_t s = 0; s + 1 < n; ++s) {
    const std::size_t out = (me + n - s) % n, in = (me + n - s - 1) % n;
    if (auto done =
            exchange(group[(me + 1) % n], piece(data, cuts, out), group[(me + n - 1) % n], piece(data, cuts, in));
        !done)
      return done;
  }
  return {};
}

Expected<void> Communicator::reduce_scatter(const Group& group, const Cuts& cuts, Numbers data) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < n; ++i) longest = std::max(longest, cuts[i + 1] - cuts[i]);
  Array room = Array::scratch_like(data.data(), n > 1 ? static_cast<std::size_t>(longest) : 0);
  for (std::size_t s = 0; s + 1 < n; ++s) {
    const std::size_t out = (me + 2 * n - s - 1) % n, in = (me + 2 * n - s - 2) % n;
    const auto sum = piece(data, cuts, in);
    const Numbers got = room.numbers().subspan(0, sum.size());
    if (auto done = exchange(group[(me + 1) % n], piece(data, cuts, out), group[(me + n - 1) % n], got); !done)
      return done;
    add(got.data(), sum.data(), sum.size());
  }
  return {};
}

Expected<void> Communicator::all_reduce(const Group& group, Numbers data) {
  const Cuts cuts = even_cuts(static_cast<std::int64_t>(data.size()), group.size());
  if (auto done = reduce_scatter(group, cuts, data); !done) return done;
  return all_gather(group, cuts, data);
}

Expected<void> Communicator::all_to_all(const Group& group, const std::vector<ConstNumbers>& out,
                                        const std::vector<Numbers>& in) {
  const std::size_t n = group.size(), me = index_in(group, rank());
  for (std::size_t s = 0; s < n; ++s) {
    const std::size_t to = (me + s) % n, from = (me + n - s) % n;
    if (auto done = exchange(group[to], out[to], group[from], in[from]); !done) return done;
  }
  return {};
}

struct ThreadRanks::Shared {
  std::mutex mutex;
  std::condition_variable arrived;
  bool given_up = false;
  int ranks = 0;
  std::vector<std::deque<Message>> boxes;  // [to * ranks + from]
};

namespace {

template <class Shared>
class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return shared_->ranks; }

  Expected<void> exchange(int to, ConstNumbers out, int from, Numbers in) override {
    Message sent(out);
    {
      const std::lock_guard lock(shared_->mutex);
      box(to, rank_).push_back(std::move(sent));
    }
    shared_->arrived.notify_all();
    std::unique_lock lock(shared_->mutex);
    auto& mine = box(rank_, from);
    shared_->arrived.wait(lock, [&] { return !mine.empty() || shared_->given_up; });
    if (mine.empty()) return Error{ErrorCode::device, "another rank gave up", {}, {}};
    const Message message = std::move(mine.front());
    mine.pop_front();
    lock.unlock();
    if (message.size() != in.size()) return Error{ErrorCode::device, "a message of another length arrived", {}, {}};
    copy(message.data(), in.data(), in.size());
    if (from != rank_) received_ += static_cast<std::int64_t>(in.size());
    return {};
  }

  void give_up() override {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->given_up = true;
    }
    shared_->arrived.notify_all();
  }

 private:
  std::deque<Message>& box(int to, int from) {
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
