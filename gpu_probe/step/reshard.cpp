// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/reshard.h"

#include <algorithm>
#include <map>
#include <string>

#include "gpu_probe/step/ways.h"

namespace turnpoint::step {

namespace {

Array cut_out(const Block& from, const Region& wanted) {
  Array part = Array::scratch(static_cast<std::size_t>(wanted.elements()));
  copy_overlap(from.region, from.data.data(), wanted, part.data());
  return part;
}

// A block's identity: where it lies, and which summands are in it where axes are partial.
using Identity = std::pair<Shape, int>;

// Every rank gives one block and takes one; within the nodes unless an axis between nodes takes part. All ranks come
// to the same assignment without talking.
struct Partners {
  int to = -1, from = -1;
};
Partners permute_partners(const Mesh& mesh, int rank, const ReshardStep& step, const Layout& before,
                          const Shape& shape) {
  std::uint32_t between = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kInterNode) between |= 1u << a;
  const std::uint32_t fixed = (step.axes & between) == 0 ? between : 0;
  const std::uint32_t partial = before.mask(Layout::kPartial);
  const auto identity = [&](int r, const Layout& layout) {
    return std::pair(position_of(mesh, r, fixed),
                     Identity{region_of(mesh, r, layout, shape).offset, position_of(mesh, r, partial)});
  };
  std::map<std::pair<int, Identity>, std::vector<int>> senders;
  const int ranks = mesh.devices();
  for (int r = 0; r < ranks; ++r) senders[identity(r, before)].push_back(r);
  Partners partners;
  // Whoever holds its own block already keeps it.
  std::vector<int> source(static_cast<std::size_t>(ranks), -1);
  for (int r = 0; r < ranks; ++r) {
    auto& candidates = senders[identity(r, step.result)];
    const auto self = std::find(candidates.begin(), candidates.end(), r);
    if (self == candidates.end()) continue;
    source[static_cast<std::size_t>(r)] = r;
    candidates.erase(self);
  }
  for (int r = 0; r < ranks; ++r) {
    if (source[static_cast<std::size_t>(r)] >= 0) continue;
    auto& candidates = senders[identity(r, step.result)];
    if (candidates.empty()) return {};
    source[static_cast<std::size_t>(r)] = candidates.front();
    candidates.erase(candidates.begin());
  }
  partners.from = source[static_cast<std::size_t>(rank)];
  for (int r = 0; r < ranks; ++r)
    if (source[static_cast<std::size_t>(r)] == rank) partners.to = r;
  return partners;
}

}  // namespace

Expected<Value> execute(const Mover& mover, const ReshardStep& step, const Layout& before, const Shape& shape,
                        const Value& mine, std::int64_t& kept_in_place) {
  const Mesh& mesh = mover.mesh;
  Communicator& communicator = mover.communicator;
  const auto cannot = [&](const char* why) {
    return bad_input(std::string("step ") + to_string(step.move) + " cannot be executed: " + why, "plan");
  };
  const Region wanted = region_of(mesh, mover.rank(), step.result, shape);
  if (mine->region != region_of(mesh, mover.rank(), before, shape)) return cannot("the block is not of that layout");
  const Group group = group_of(mesh, mover.rank(), step.axes);
  const CollectiveWay way = way_of(mesh, step);
  Value result = make_block(mover.ledger, wanted, mine->element_bytes);
  switch (step.move) {
    case ReshardMove::slice: {
      if (intersection(mine->region, wanted) != wanted) return cannot("part of the slice lies elsewhere");
      copy_overlap(mine->region, mine->data.data(), wanted, result->data.data());
      return result;
    }
    case ReshardMove::all_gather: {
      const auto length = static_cast<std::int64_t>(mine->data.size());
      Cuts cuts;
      for (std::size_t i = 0; i <= group.size(); ++i) cuts.push_back(length * static_cast<std::int64_t>(i));
      Array all = Array::scratch(static_cast<std::size_t>(cuts.back()));
      copy(mine->data.data(), all.data() + cuts[static_cast<std::size_t>(position_of(mesh, mover.rank(), step.axes))],
           mine->data.size());
      if (auto done = all_gather(communicator, way, group, cuts, all.numbers()); !done) return done.error();
      std::int64_t covered = 0;
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Region theirs = region_of(mesh, group[i], before, shape);
        covered += intersection(theirs, wanted).elements();
        copy_overlap(theirs, all.data() + cuts[i], wanted, result->data.data());
      }
      if (covered != wanted.elements()) return cannot("the members do not hold the whole block");
      return result;
    }
    case ReshardMove::all_to_all: {
      std::vector<Array> sent, got;
      std::vector<ConstNumbers> out;
      std::vector<Numbers> in;
      std::vector<Region> parts;
      std::int64_t covered = 0;
      for (const int member : group) {
        sent.push_back(cut_out(*mine, intersection(mine->region, region_of(mesh, member, step.result, shape))));
        out.push_back(sent.back().numbers());
        parts.push_back(intersection(region_of(mesh, member, before, shape), wanted));
        got.push_back(Array::scratch(static_cast<std::size_t>(parts.back().elements())));
        in.push_back(got.back().numbers());
        covered += parts.back().elements();
      }
      if (covered != wanted.elements()) return cannot("the members do not hold the whole block");
      if (auto done = communicator.all_to_all(group, out, in); !done) return done.error();
      for (std::size_t i = 0; i < group.size(); ++i) copy_overlap(parts[i], got[i].data(), wanted, result->data.data());
      return result;
    }
    case ReshardMove::all_reduce: {
      if (wanted != mine->region) return cannot("the block changes");
      copy(mine->data.data(), result->data.data(), mine->data.size());
      if (auto done = all_reduce(communicator, way, group, result->data.numbers()); !done) return done.error();
      return result;
    }
    case ReshardMove::reduce_scatter: {
      Cuts cuts{0};
      for (const int member : group)
        cuts.push_back(cuts.back() + region_of(mesh, member, step.result, shape).elements());
      Array all = Array::scratch(static_cast<std::size_t>(cuts.back()));
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Region theirs = region_of(mesh, group[i], step.result, shape);
        if (intersection(mine->region, theirs) != theirs) return cannot("a part lies elsewhere");
        copy_overlap(mine->region, mine->data.data(), theirs, all.data() + cuts[i]);
      }
      if (auto done = reduce_scatter(communicator, way, group, cuts, all.numbers()); !done) return done.error();
      const auto me = static_cast<std::size_t>(position_of(mesh, mover.rank(), step.axes));
      copy(all.data() + cuts[me], result->data.data(), static_cast<std::size_t>(cuts[me + 1] - cuts[me]));
      return result;
    }
    case ReshardMove::permute: {
      const Partners partners = permute_partners(mesh, mover.rank(), step, before, shape);
      if (partners.from < 0 || partners.to < 0) return cannot("nobody is left to send a block");
      if (partners.from == mover.rank()) kept_in_place += static_cast<std::int64_t>(mine->data.size());
      if (auto done = communicator.exchange(partners.to, mine->data.numbers(), partners.from, result->data.numbers());
          !done)
        return done.error();
      return result;
    }
  }
  return cannot("its kind is not known");
}

}  // namespace turnpoint::step
