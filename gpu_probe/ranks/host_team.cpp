// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/host_team.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "gpu_probe/job/output.h"

namespace turnpoint::probe {

namespace {

/// Seconds that one sample lasts at least: shorter exchanges are repeated, up to so often.
constexpr double kShortest = 50e-6, kMostRepeats = 64;

/// An exchange with its buffers.
class Exchange : public Prepared {
 public:
  Exchange(Communicator& ranks, const ProbeCollective& wanted)
      : ranks_(ranks), group_(strided_group(ranks.rank(), wanted.group_size, wanted.stride)) {
    const auto members = static_cast<std::int64_t>(group_.size());
    const std::int64_t total = std::max<std::int64_t>(1, wanted.bytes / 4),
                       part = std::max<std::int64_t>(1, total / members);
    // All-to-all: the local blocks of all members together are the bytes, each block has a part for every member.
    const std::int64_t piece = std::max<std::int64_t>(1, part / members);
    a_.assign(static_cast<std::size_t>(std::max(total, part * members)), 0.5f);
    b_.resize(a_.size());
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = static_cast<float>((i * 2654435761u) >> 8 & 0xffff) * 1e-5f;
    float *a = a_.data(), *b = b_.data();
    switch (wanted.kind) {
      case Collective::all_reduce: run_ = [=, this] { return ranks_.all_reduce(group_, b, total); }; break;
      case Collective::all_gather: run_ = [=, this] { return ranks_.all_gather(group_, a, b, part); }; break;
      case Collective::reduce_scatter: run_ = [=, this] { return ranks_.reduce_scatter(group_, a, b, part); }; break;
      case Collective::all_to_all: run_ = [=, this] { return ranks_.all_to_all(group_, a, b, piece); }; break;
      case Collective::broadcast:
        run_ = [=, this] { return ranks_.broadcast(group_, b, total, group_.front()); };
        break;
      case Collective::send: {
        // Every member passes its block to the next one, as a permutation does.
        const auto me =
            static_cast<std::size_t>(std::find(group_.begin(), group_.end(), ranks_.rank()) - group_.begin());
        const int to = group_[(me + 1) % group_.size()], from = group_[(me + group_.size() - 1) % group_.size()];
        run_ = [=, this] { return ranks_.send_receive(to, a, from, b, total) && ranks_.barrier(group_); };
      }
    }
  }

  /// False once a rank has died.
  bool settle(Team& team) {
    for (int i = 0; i < 2; ++i)
      if (!run_()) return false;
    const auto once = sample(false);
    if (!once) return false;
    auto repeats = static_cast<float>(std::clamp(std::ceil(kShortest / *once), 1.0, kMostRepeats));
    if (team.ranks() > 1 && !team.agree({&repeats, 1})) return false;
    repeats_ = static_cast<int>(repeats);
    return true;
  }

  Expected<double> sample(bool) override {
    const double start = host_clock();
    for (int i = 0; i < repeats_; ++i)
      if (!run_()) return device_error("another rank died");
    return std::max(1e-9, (host_clock() - start) / repeats_);
  }
  std::string implementation() const override { return ranks_.carrier(group_); }

 private:
  Communicator& ranks_;
  Group group_;
  std::vector<float> a_, b_;
  std::function<bool()> run_;
  int repeats_ = 1;
};

}  // namespace

Group strided_group(int rank, int size, int stride) {
  const int block = rank / (size * stride) * size * stride;
  Group group(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) group[static_cast<std::size_t>(i)] = block + rank % stride + i * stride;
  return group;
}

bool HostTeam::agree(std::span<float> values) {
  return ranks_.broadcast(everyone_, values.data(), static_cast<std::int64_t>(values.size()), 0);
}

bool HostTeam::largest(float& value) {
  std::vector<float> all(everyone_.size());
  if (!ranks_.all_gather(everyone_, &value, all.data(), 1)) return false;
  value = *std::max_element(all.begin(), all.end());
  return true;
}

Expected<std::unique_ptr<Prepared>> HostTeam::prepare(const ProbeCollective& collective) {
  auto exchange = std::make_unique<Exchange>(ranks_, collective);
  if (!exchange->settle(*this)) exchange.reset();
  return std::unique_ptr<Prepared>(std::move(exchange));
}

// The first group's, which all others have where every node holds as many ranks.
DeviceGroup HostTeam::shape(const ProbeCollective& c) const {
  std::set<int> nodes;
  for (const int rank : strided_group(0, c.group_size, c.stride))
    if (rank < ranks_.ranks()) nodes.insert(ranks_.node_of(rank));
  const int spanned = std::max(1, static_cast<int>(nodes.size()));
  return {c.group_size, spanned, c.group_size / spanned, ranks_.ranks() / c.group_size};
}

}  // namespace turnpoint::probe
