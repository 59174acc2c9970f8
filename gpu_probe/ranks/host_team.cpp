// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/host_team.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "gpu_probe/job/output.h"
#include "gpu_probe/step/carried_ranks.h"
#include "gpu_probe/step/timed_exchange.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::probe {

namespace {

/// Seconds that one sample lasts at least: shorter exchanges are repeated, up to so often.
constexpr double kShortest = 50e-6, kMostRepeats = 64;

constexpr const char* kDead = "another rank died";
Error dead() { return device_error(kDead); }

/// An exchange, ready to be timed. `once` gives this rank's seconds of one.
class Exchange : public Prepared {
 public:
  using Once = std::function<Expected<double>()>;
  Exchange(Once once, std::string carrier) : once_(std::move(once)), carrier_(std::move(carrier)) {}

  Expected<void> settle(Team& team) {
    for (int i = 0; i < 2; ++i)
      if (auto done = once_(); !done) return done.error();
    const auto once = sample(false);
    if (!once) return once.error();
    auto repeats = static_cast<float>(std::clamp(std::ceil(kShortest / *once), 1.0, kMostRepeats));
    if (team.ranks() > 1 && !team.agree({&repeats, 1})) return dead();
    repeats_ = static_cast<int>(repeats);
    return {};
  }

  Expected<double> sample(bool) override {
    double seconds = 0;
    for (int i = 0; i < repeats_; ++i) {
      const auto one = once_();
      if (!one) return one.error();
      seconds += *one;
    }
    return std::max(1e-9, seconds / repeats_);
  }
  std::string implementation() const override { return carrier_; }

 private:
  Once once_;
  std::string carrier_;
  int repeats_ = 1;
};

/// A collective that no resharding of a step is, timed as the ranks send it: a broadcast, and every member passing its
/// block to the next one, as a permutation does.
Exchange::Once bare_exchange(Communicator& ranks, const Group& group, Collective kind, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4));
  const auto made = [count] { return std::make_shared<std::vector<float>>(count, 0.5f); };
  const auto me = static_cast<std::size_t>(std::find(group.begin(), group.end(), ranks.rank()) - group.begin());
  const int to = group[(me + 1) % group.size()], from = group[(me + group.size() - 1) % group.size()];
  return [&ranks, group, to, from, kind, count, a = made(), b = made()]() -> Expected<double> {
    const auto total = static_cast<std::int64_t>(count);
    const double start = host_clock();
    const bool fine = kind == Collective::broadcast
                          ? ranks.broadcast(group, b->data(), total, group.front())
                          : ranks.send_receive(to, a->data(), from, b->data(), total) && ranks.barrier(group);
    if (!fine) return dead();
    return host_clock() - start;
  };
}

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

HostTeam::HostTeam(Communicator& ranks, Transport& transport) : HostTeam(ranks) {
  of_steps_ = step::carried_communicator(ranks, transport);
}

Expected<std::unique_ptr<Prepared>> HostTeam::prepare(const ProbeCollective& wanted) {
  const Group group = strided_group(rank(), wanted.group_size, wanted.stride);
  Exchange::Once once;
  if (wanted.kind == Collective::broadcast || wanted.kind == Collective::send) {
    once = bare_exchange(ranks_, group, wanted.kind, wanted.bytes);
  } else {
    std::shared_ptr<step::TimedExchange> timed =
        step::timed_exchange(*of_steps_, wanted.kind, wanted.group_size, wanted.stride, wanted.bytes);
    if (!timed) return device_error("the ranks do not divide into such groups");
    once = [timed] { return timed->once(); };
  }
  auto exchange = std::make_unique<Exchange>(std::move(once), ranks_.carrier(group));
  if (auto settled = exchange->settle(*this); !settled) {
    if (settled.error().what != kDead && settled.error().what != kAnotherRankGaveUp) return settled.error();
    exchange.reset();
  }
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
