// SPDX-License-Identifier: Apache-2.0
#include "core/cost/reshard_graph.h"

#include <algorithm>

namespace turnpoint {

namespace {

constexpr std::int8_t kReplicated = Layout::kReplicated, kPartial = Layout::kPartial;

int last_axis(std::uint32_t mask) { return mask == 0 ? -1 : 31 - __builtin_clz(mask); }
int first_axis(std::uint32_t mask) { return mask == 0 ? kMaxAxes : __builtin_ctz(mask); }

ReshardGraph::State with_axes(ReshardGraph::State state, std::uint32_t axes, std::int8_t value) {
  for (int a = 0; a < kMaxAxes; ++a)
    if (axes >> a & 1u) state[a] = value;
  return state;
}

template <class T>
void append_raw(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

// Masks of one state's axes by value.
struct ReshardGraph::Split {
  std::vector<std::uint32_t> dim;
  std::uint32_t replicated = 0, partial = 0;
  std::int64_t splits = 1;

  Split(const Mesh& mesh, std::size_t dims, const State& state) : dim(dims, 0) {
    for (int a = 0; a < mesh.count(); ++a) {
      if (state[a] == kReplicated)
        replicated |= 1u << a;
      else if (state[a] == kPartial)
        partial |= 1u << a;
      else {
        dim[state[a]] |= 1u << a;
        splits *= mesh.axes[a].size;
      }
    }
  }
};

ReshardGraph::ReshardGraph(const Mesh& mesh, const std::vector<std::int64_t>& divisors, const Allowed& allowed)
    : mesh_(mesh), divisors_(divisors), prices_(1) {
  list_states(allowed);
  std::vector<Arc> arcs;
  for (std::uint32_t s = 0; s < states(); ++s) add_moves(s, arcs);
  add_hubs(arcs);
  sort_by_target(arcs);
  price_lookup_.clear();
}

ReshardGraph::Allowed ReshardGraph::all_values(int axes, int dims) {
  Allowed allowed;
  for (int a = 0; a < axes; ++a) {
    allowed[a] = {kReplicated, kPartial};
    for (int d = 0; d < dims; ++d) allowed[a].push_back(static_cast<std::int8_t>(d));
  }
  return allowed;
}

std::uint32_t ReshardGraph::find(const State& state) const {
  std::uint32_t number = 0;
  for (int a = 0; a < mesh_.count(); ++a) {
    const std::int32_t digit = digit_[a][state[a] + 2];
    if (digit < 0) return kNone;
    number += static_cast<std::uint32_t>(digit);
  }
  return dense_[number];
}

void ReshardGraph::list_states(const Allowed& allowed) {
  std::uint32_t total = 1;
  for (int a = 0; a < mesh_.count(); ++a) {
    digit_[a].fill(-1);
    for (std::size_t i = 0; i < allowed[a].size(); ++i)
      digit_[a][allowed[a][i] + 2] = static_cast<std::int32_t>(i * total);
    total *= static_cast<std::uint32_t>(allowed[a].size());
  }
  dense_.assign(total, kNone);
  for (std::uint32_t number = 0; number < total; ++number) {
    State state;
    state.fill(kReplicated);
    std::vector<std::int64_t> split(divisors_.size(), 1);
    bool legal = true;
    std::uint32_t rest = number;
    for (int a = 0; a < mesh_.count() && legal; ++a) {
      const auto base = static_cast<std::uint32_t>(allowed[a].size());
      state[a] = allowed[a][rest % base];
      rest /= base;
      if (state[a] >= 0) legal = divisors_[state[a]] % (split[state[a]] *= mesh_.axes[a].size) == 0;
    }
    if (!legal) continue;
    dense_[number] = states();
    states_.push_back(state);
    partial_.push_back(Split(mesh_, divisors_.size(), state).partial);
  }
}

std::uint32_t ReshardGraph::price_index(const ReshardPrice& price) {
  std::string key;
  append_raw(key, price.kind);
  append_raw(key, price.group);
  append_raw(key, price.splits);
  const auto [at, added] = price_lookup_.emplace(key, static_cast<std::uint32_t>(prices_.size()));
  if (added) prices_.push_back(price);
  return at->second;
}

void ReshardGraph::add_arc(std::uint32_t source, const State& target, ReshardPrice::Kind kind, std::uint32_t axes,
                           std::int64_t splits, std::vector<Arc>& arcs) {
  const std::uint32_t index = find(target);
  if (index == kNone) return;
  const std::uint32_t price = kind == ReshardPrice::Kind::free ? 0 : price_index({kind, mesh_.group(axes), splits});
  arcs.push_back({source, index, price});
}

// `axes` leave `origin` (a dimension, kReplicated or kPartial) and become the last axes of any other dimension.
void ReshardGraph::add_joins(std::uint32_t index, const Split& split, std::uint32_t axes, int origin,
                             std::vector<Arc>& arcs) {
  const auto kind = origin == kReplicated ? ReshardPrice::Kind::free
                    : origin == kPartial  ? ReshardPrice::Kind::reduce_scatter
                                          : ReshardPrice::Kind::all_to_all;
  for (int d = 0; d < static_cast<int>(split.dim.size()); ++d)
    if (d != origin && first_axis(axes) > last_axis(split.dim[d]))
      add_arc(index, with_axes(states_[index], axes, static_cast<std::int8_t>(d)), kind, axes, split.splits, arcs);
}

void ReshardGraph::add_moves(std::uint32_t index, std::vector<Arc>& arcs) {
  const State state = states_[index];
  const Split split(mesh_, divisors_.size(), state);
  for (int d = 0; d < static_cast<int>(split.dim.size()); ++d) {
    std::uint32_t suffix = 0;
    for (std::uint32_t rest = split.dim[d]; rest != 0; rest &= ~suffix) {
      suffix |= 1u << last_axis(rest);
      add_arc(index, with_axes(state, suffix, kReplicated), ReshardPrice::Kind::all_gather, suffix, split.splits, arcs);
      add_joins(index, split, suffix, d, arcs);
    }
  }
  // One axis at a time is enough for what is free; path() merges consecutive slices of one dimension.
  for (int a = 0; a < mesh_.count(); ++a)
    if (split.replicated >> a & 1u) add_joins(index, split, 1u << a, kReplicated, arcs);
  for (std::uint32_t axes = split.partial; axes != 0; axes = (axes - 1) & split.partial) {
    add_arc(index, with_axes(state, axes, kReplicated), ReshardPrice::Kind::all_reduce, axes, split.splits, arcs);
    add_joins(index, split, axes, kPartial, arcs);
  }
}

void ReshardGraph::add_hubs(std::vector<Arc>& arcs) {
  std::uint32_t across = 0, inside = 0;
  for (int a = 0; a < mesh_.count(); ++a) (mesh_.axes[a].level == kInterNode ? across : inside) |= 1u << a;

  const auto add_level = [&](ReshardPrice::Kind kind, std::uint32_t moving, std::uint32_t fixed) {
    std::unordered_map<std::string, std::vector<std::uint32_t>> alike;
    std::vector<std::string> order;
    for (std::uint32_t s = 0; s < states(); ++s) {
      const Split split(mesh_, divisors_.size(), states_[s]);
      std::string key;
      append_raw(key, split.partial);
      for (const std::uint32_t mask : split.dim) append_raw(key, mesh_.size_of(mask));
      for (int a = 0; a < mesh_.count(); ++a)
        if (fixed >> a & 1u) key.push_back(static_cast<char>(states_[s][a]));
      auto& members = alike[key];
      if (members.empty()) order.push_back(key);
      members.push_back(s);
    }
    for (const auto& key : order) {
      const auto& members = alike[key];
      if (members.size() < 2) continue;
      const Split split(mesh_, divisors_.size(), states_[members.front()]);
      const std::uint32_t hub = nodes();
      partial_.push_back(split.partial);
      const std::uint32_t price = price_index({kind, mesh_.group(moving), split.splits});
      for (const std::uint32_t s : members) {
        arcs.push_back({s, hub, price});
        arcs.push_back({hub, s, 0});
      }
    }
  };
  if (inside != 0) add_level(ReshardPrice::Kind::permute_inside, inside, across);
  if (across != 0) add_level(ReshardPrice::Kind::permute_across, across, 0);
}

void ReshardGraph::sort_by_target(const std::vector<Arc>& arcs) {
  offsets_.assign(nodes() + 1, 0);
  for (const Arc& arc : arcs) ++offsets_[arc.target + 1];
  for (std::uint32_t n = 0; n < nodes(); ++n) offsets_[n + 1] += offsets_[n];
  auto next = offsets_;
  edges_.resize(arcs.size());
  for (const Arc& arc : arcs) edges_[next[arc.target]++] = {arc.source, arc.price};
}

}  // namespace turnpoint
