// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ways.h"

#include <algorithm>

#include "gpu_probe/step/values/block.h"

namespace turnpoint::step {

namespace {

std::size_t place_in_group(const Communicator& communicator, const Group& group) {
  return static_cast<std::size_t>(std::find(group.begin(), group.end(), communicator.rank()) - group.begin());
}

/// Pieces of the data by their numbers, which travel together.
using Pieces = std::vector<std::size_t>;

struct Cutting {
  const Cuts& cuts;
  Numbers data;

  Numbers piece(std::size_t i) const {
    return data.subspan(static_cast<std::size_t>(cuts[i]), static_cast<std::size_t>(cuts[i + 1] - cuts[i]));
  }
  std::size_t length(const Pieces& pieces) const {
    std::size_t sum = 0;
    for (const std::size_t i : pieces) sum += piece(i).size();
    return sum;
  }
  Array packed(const Pieces& pieces) const {
    Array all = Array::scratch_like(data.data(), length(pieces));
    std::size_t at = 0;
    for (const std::size_t i : pieces) {
      copy(piece(i).data(), all.data() + at, piece(i).size());
      at += piece(i).size();
    }
    return all;
  }
  /// Puts them where they belong, or adds them there.
  void unpack(const Pieces& pieces, Array& all, bool adds) const {
    std::size_t at = 0;
    for (const std::size_t i : pieces) {
      const ConstPlace from = all.data() + at;
      if (adds)
        add(from, piece(i).data(), piece(i).size());
      else
        copy(from, piece(i).data(), piece(i).size());
      at += piece(i).size();
    }
  }
};

/// One step of a ring: `out` goes to one member, `in` comes from another.
Expected<void> pass(Communicator& communicator, const Cutting& held, int to, const Pieces& out, int from,
                    const Pieces& in, bool adds) {
  Array sent = held.packed(out), got = Array::scratch_like(held.data.data(), held.length(in));
  if (auto done = communicator.exchange(to, sent.numbers(), from, got.numbers()); !done) return done;
  held.unpack(in, got, adds);
  return {};
}

/// A ring in which member i begins with the pieces `own[i]` and ends with all.
Expected<void> gather_in_ring(Communicator& communicator, const Group& ring, const std::vector<Pieces>& own,
                              const Cutting& held) {
  const std::size_t n = ring.size(), me = place_in_group(communicator, ring);
  for (std::size_t s = 0; s + 1 < n; ++s)
    if (auto done = pass(communicator, held, ring[(me + 1) % n], own[(me + n - s) % n], ring[(me + n - 1) % n],
                         own[(me + n - s - 1) % n], false);
        !done)
      return done;
  return {};
}

/// A ring in which member i ends with the sums of the pieces `own[i]`.
Expected<void> scatter_in_ring(Communicator& communicator, const Group& ring, const std::vector<Pieces>& own,
                               const Cutting& held) {
  const std::size_t n = ring.size(), me = place_in_group(communicator, ring);
  for (std::size_t s = 0; s + 1 < n; ++s)
    if (auto done = pass(communicator, held, ring[(me + 1) % n], own[(me + 2 * n - s - 1) % n], ring[(me + n - 1) % n],
                         own[(me + 2 * n - s - 2) % n], true);
        !done)
      return done;
  return {};
}

/// The rings of the two phases that this rank is in, and the pieces of their members.
struct Phases {
  Group inside, across;
  std::vector<Pieces> of_column, of_node;  ///< by member of `inside`: all its column has; of `across`: one piece each

  Phases(const Communicator& communicator, const Group& group, std::size_t in_node) {
    const std::size_t me = place_in_group(communicator, group), node = me / in_node, column = me % in_node,
                      nodes = group.size() / in_node;
    for (std::size_t c = 0; c < in_node; ++c) {
      inside.push_back(group[node * in_node + c]);
      Pieces& pieces = of_column.emplace_back();
      for (std::size_t n = 0; n < nodes; ++n) pieces.push_back(n * in_node + c);
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      across.push_back(group[n * in_node + column]);
      of_node.push_back({n * in_node + column});
    }
  }
};

Expected<void> gather_in_phases(Communicator& communicator, const Phases& phases, const Cutting& held) {
  if (auto done = gather_in_ring(communicator, phases.across, phases.of_node, held); !done) return done;
  return gather_in_ring(communicator, phases.inside, phases.of_column, held);
}

Expected<void> scatter_in_phases(Communicator& communicator, const Phases& phases, const Cutting& held) {
  if (auto done = scatter_in_ring(communicator, phases.inside, phases.of_column, held); !done) return done;
  return scatter_in_ring(communicator, phases.across, phases.of_node, held);
}

/// Everybody sends to everybody: member i has, or gets the sum of, piece i.
Expected<void> gather_at_once(Communicator& communicator, const Group& group, const Cutting& held) {
  const std::size_t n = group.size(), me = place_in_group(communicator, group);
  for (std::size_t s = 1; s < n; ++s)
    if (auto done =
            pass(communicator, held, group[(me + s) % n], {me}, group[(me + n - s) % n], {(me + n - s) % n}, false);
        !done)
      return done;
  return {};
}

Expected<void> scatter_at_once(Communicator& communicator, const Group& group, const Cutting& held) {
  const std::size_t n = group.size(), me = place_in_group(communicator, group);
  const Pieces mine{me};
  for (std::size_t s = 1; s < n; ++s)
    if (auto done = pass(communicator, held, group[(me + s) % n], {(me + s) % n}, group[(me + n - s) % n], mine, true);
        !done)
      return done;
  return {};
}

/// One of two trees that carry half of the data each: a chain inside every node, whose head is a node of a binary tree
/// that the second of the two walks from the other end.
class Tree {
 public:
  Tree(const Communicator& communicator, const Group& group, std::size_t inside, bool from_the_end) {
    const std::size_t me = place_in_group(communicator, group), nodes = group.size() / inside, node = me / inside;
    const auto head = [&](std::size_t at) { return group[(from_the_end ? nodes - 1 - at : at) * inside]; };
    if (me % inside + 1 < inside) children_.push_back(group[me + 1]);
    if (me % inside > 0) {
      parent_ = group[me - 1];
      return;
    }
    const std::size_t at = from_the_end ? nodes - 1 - node : node;
    for (const std::size_t child : {2 * at + 1, 2 * at + 2})
      if (child < nodes) children_.push_back(head(child));
    if (at > 0) parent_ = head((at - 1) / 2);
  }

  /// Sums up to the root, and down again.
  Expected<void> reduce(Communicator& communicator, Numbers data) const {
    const Numbers nothing = data.subspan(0, 0);
    Array got = Array::scratch_like(data.data(), children_.empty() ? 0 : data.size());
    for (const int child : children_) {
      if (auto done = communicator.exchange(child, nothing, child, got.numbers()); !done) return done;
      const ConstPlace from = got.data();
      add(from, data.data(), data.size());
    }
    if (parent_ >= 0) {
      if (auto done = communicator.exchange(parent_, data, parent_, nothing); !done) return done;
      if (auto done = communicator.exchange(parent_, nothing, parent_, data); !done) return done;
    }
    for (const int child : children_)
      if (auto done = communicator.exchange(child, data, child, nothing); !done) return done;
    return {};
  }

 private:
  std::vector<int> children_;
  int parent_ = -1;
};

bool nodes_are_alike(const CollectiveWay& way, const Group& group) {
  return way.inside > 0 && group.size() % way.inside == 0;
}

bool by_itself(const Communicator& communicator, const CollectiveWay& way, const Group& group) {
  return group.size() < 2 || communicator.has_ways_of_its_own() || !nodes_are_alike(way, group);
}

}  // namespace

CollectiveWay way_of(const Mesh& mesh, const ReshardStep& step) {
  std::uint32_t inside = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kIntraNode) inside |= 1u << a;
  return {step.algorithm, static_cast<std::size_t>(mesh.size_of(step.axes & inside))};
}

Expected<void> all_reduce(Communicator& communicator, const CollectiveWay& way, const Group& group, Numbers data) {
  const auto length = static_cast<std::int64_t>(data.size());
  if (by_itself(communicator, way, group)) return communicator.all_reduce(group, data);
  const Cuts cuts = even_cuts(length, group.size());
  const Cutting held{cuts, data};
  if (way.algorithm == Algorithm::tree) {
    const std::size_t half = data.size() / 2;
    const Numbers halves[] = {data.subspan(0, half), data.subspan(half, data.size() - half)};
    for (const bool second : {false, true})
      if (auto done = Tree(communicator, group, way.inside, second).reduce(communicator, halves[second]); !done)
        return done;
    return {};
  }
  if (way.algorithm == Algorithm::two_phase) {
    const Phases phases(communicator, group, way.inside);
    if (auto done = scatter_in_phases(communicator, phases, held); !done) return done;
    return gather_in_phases(communicator, phases, held);
  }
  if (way.algorithm == Algorithm::one_shot) {
    if (auto done = scatter_at_once(communicator, group, held); !done) return done;
    return gather_at_once(communicator, group, held);
  }
  return communicator.all_reduce(group, data);
}

Expected<void> all_gather(Communicator& communicator, const CollectiveWay& way, const Group& group, const Cuts& cuts,
                          Numbers data) {
  if (by_itself(communicator, way, group)) return communicator.all_gather(group, cuts, data);
  const Cutting held{cuts, data};
  if (way.algorithm == Algorithm::two_phase)
    return gather_in_phases(communicator, Phases(communicator, group, way.inside), held);
  if (way.algorithm == Algorithm::one_shot) return gather_at_once(communicator, group, held);
  return communicator.all_gather(group, cuts, data);
}

Expected<void> reduce_scatter(Communicator& communicator, const CollectiveWay& way, const Group& group,
                              const Cuts& cuts, Numbers data) {
  if (by_itself(communicator, way, group)) return communicator.reduce_scatter(group, cuts, data);
  const Cutting held{cuts, data};
  if (way.algorithm == Algorithm::two_phase)
    return scatter_in_phases(communicator, Phases(communicator, group, way.inside), held);
  if (way.algorithm == Algorithm::one_shot) return scatter_at_once(communicator, group, held);
  return communicator.reduce_scatter(group, cuts, data);
}

}  // namespace turnpoint::step
