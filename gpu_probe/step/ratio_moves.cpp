// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_moves.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace turnpoint::step {

namespace {

bool is_empty(const Region& region) { return region.elements() == 0; }

/// What of `from` is not in `taken`, in at most two pieces a dimension.
void add_rest(const Region& from, const Region& taken, Boxes& rest) {
  if (is_empty(from)) return;
  const Region both = intersection(from, taken);
  if (is_empty(both)) return rest.push_back(from);
  Region left = from;
  for (std::size_t d = 0; d < from.extent.size(); ++d) {
    const std::int64_t end = left.offset[d] + left.extent[d], cut = both.offset[d] + both.extent[d];
    if (both.offset[d] > left.offset[d]) {
      Region before = left;
      before.extent[d] = both.offset[d] - left.offset[d];
      rest.push_back(before);
    }
    if (cut < end) {
      Region behind = left;
      behind.offset[d] = cut, behind.extent[d] = end - cut;
      rest.push_back(behind);
    }
    left.offset[d] = both.offset[d], left.extent[d] = both.extent[d];
  }
}

void widen(Region& room, const Region& by) {
  for (std::size_t d = 0; d < room.extent.size(); ++d) {
    const std::int64_t end = std::max(room.offset[d] + room.extent[d], by.offset[d] + by.extent[d]);
    room.offset[d] = std::min(room.offset[d], by.offset[d]);
    room.extent[d] = end - room.offset[d];
  }
}

class Planner {
 public:
  Planner(const RatioTree& tree, const RatioLie& from, const RatioLie& to) : tree_(tree), from_(from), to_(to) {
    has_.resize(static_cast<std::size_t>(tree.ranks()));
    for (std::size_t r = 0; r < has_.size(); ++r) has_[r] = {from.part[tree.leaf_of[r]]};
    move_.at.resize(tree.nodes.size());
  }

  RatioMove run() {
    for (std::uint32_t n = 0; n < tree_.nodes.size(); ++n)
      if (tree_.nodes[n].cut) exchange(n);
    for (std::uint32_t r = 0; r < has_.size(); ++r) {
      const std::uint32_t leaf = tree_.leaf_of[r];
      assert(without({to_.part[leaf]}, has_[r]).empty());
      Region room = to_.part[leaf];
      widen(room, from_.part[leaf]);
      for (const Region& box : has_[r]) widen(room, box);
      if (!move_.empty()) move_.room.push_back(std::move(room));
    }
    return std::move(move_);
  }

 private:
  struct Arrival {
    std::uint32_t rank;
    Boxes boxes;
  };

  Boxes content(std::uint32_t node) const {
    const RatioNode& here = tree_.nodes[node];
    if (!here.cut) return has_[tree_.rank_at[here.first]];
    Boxes all = content(here.child[0]);
    if (from_.held[node] == Layout::kReplicated) return all;
    const Boxes more = without(content(here.child[1]), all);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Whose numbers together are `wanted`, which the node has. `turn`: which of several copies is read.
  void sources(std::uint32_t node, const Boxes& wanted, std::size_t turn, std::vector<Arrival>& found) const {
    if (wanted.empty()) return;
    const RatioNode& here = tree_.nodes[node];
    if (!here.cut) {
      const std::uint32_t rank = tree_.rank_at[here.first];
      if (Boxes there = common(wanted, has_[rank]); !there.empty()) found.push_back({rank, std::move(there)});
      return;
    }
    if (from_.held[node] == Layout::kReplicated) return sources(here.child[turn % 2], wanted, turn / 2, found);
    const Boxes first = common(wanted, content(here.child[0]));
    sources(here.child[0], first, turn, found);
    sources(here.child[1],
            from_.held[node] == Layout::kPartial ? common(wanted, content(here.child[1])) : without(wanted, first),
            turn, found);
  }

  /// To whom `boxes` go. `shared`: the region that the node's cuts share out.
  void sinks(std::uint32_t node, const Region& shared, const Boxes& boxes, std::vector<Arrival>& found) const {
    if (boxes.empty()) return;
    const RatioNode& here = tree_.nodes[node];
    if (!here.cut) return found.push_back({tree_.rank_at[here.first], boxes});
    if (from_.held[node] == Layout::kReplicated) {
      for (const std::uint32_t child : here.child) sinks(child, shared, boxes, found);
      return;
    }
    if (from_.held[node] == Layout::kPartial) return sinks(here.child[0], shared, boxes, found);
    // Where it is already, else by the cut's shares.
    const auto d = static_cast<std::size_t>(from_.held[node]);
    const double share =
        static_cast<double>(from_.part[here.child[0]].extent[d]) / static_cast<double>(from_.part[node].extent[d]);
    std::array<Region, 2> shares{shared, shared};
    shares[0].extent[d] = std::llround(static_cast<double>(shared.extent[d]) * share);
    shares[1].offset[d] += shares[0].extent[d];
    shares[1].extent[d] -= shares[0].extent[d];
    std::array<Boxes, 2> to;
    to[0] = common(boxes, content(here.child[0]));
    to[1] = common(without(boxes, to[0]), content(here.child[1]));
    const Boxes rest = without(without(boxes, to[0]), to[1]);
    const Boxes first = common(rest, {shares[0]}), second = without(rest, first);
    to[0].insert(to[0].end(), first.begin(), first.end());
    to[1].insert(to[1].end(), second.begin(), second.end());
    for (std::size_t h = 0; h < 2; ++h) sinks(here.child[h], shares[h], to[h], found);
  }

  void exchange(std::uint32_t node) {
    const RatioNode& here = tree_.nodes[node];
    if (from_.held[node] == Layout::kReplicated) return;
    std::vector<Arrival> arrivals;
    for (std::size_t h = 0; h < 2; ++h) {
      const std::uint32_t half = here.child[h], other = here.child[1 - h];
      const Boxes wanted{to_.part[half]};
      const Boxes lacked =
          from_.held[node] == Layout::kPartial ? common(wanted, content(other)) : without(wanted, content(half));
      std::vector<Arrival> to;
      sinks(half, to_.part[half], lacked, to);
      Boxes seen;
      for (std::size_t i = 0; i < to.size(); ++i) {
        std::vector<Arrival> from;
        sources(other, to[i].boxes, i, from);
        for (const Arrival& source : from)
          for (const Region& box : source.boxes) {
            const Boxes fresh = without({box}, seen);
            seen.insert(seen.end(), fresh.begin(), fresh.end());
            RatioMessage message{source.rank, to[i].rank, box, elements_of(fresh)};
            move_.fresh += message.fresh;
            move_.all += box.elements();
            move_.at[node].push_back(std::move(message));
          }
      }
      arrivals.insert(arrivals.end(), to.begin(), to.end());
    }
    for (const Arrival& arrival : arrivals) {
      Boxes& has = has_[arrival.rank];
      const Boxes more = without(arrival.boxes, has);
      has.insert(has.end(), more.begin(), more.end());
    }
  }

  const RatioTree& tree_;
  const RatioLie &from_, &to_;
  std::vector<Boxes> has_;  ///< by rank
  RatioMove move_;
};

}  // namespace

Boxes without(const Boxes& boxes, const Boxes& taken) {
  Boxes left = boxes;
  for (const Region& one : taken) {
    Boxes rest;
    for (const Region& box : left) add_rest(box, one, rest);
    left = std::move(rest);
  }
  return left;
}

Boxes common(const Boxes& a, const Boxes& b) {
  Boxes both;
  for (const Region& one : a)
    for (const Region& other : b)
      if (Region here = intersection(one, other); !is_empty(here)) both.push_back(std::move(here));
  return both;
}

std::int64_t elements_of(const Boxes& boxes) {
  std::int64_t count = 0;
  for (const Region& box : boxes) count += box.elements();
  return count;
}

RatioMove move_between(const RatioTree& tree, const RatioLie& from, const RatioLie& to) {
  return Planner(tree, from, to).run();
}

}  // namespace turnpoint::step
