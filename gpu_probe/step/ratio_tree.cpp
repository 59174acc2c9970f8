// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_tree.h"

#include <algorithm>
#include <optional>

namespace turnpoint::step {

namespace {

/// The block of a tensor that these ranges of loops walk. A dimension that is a multiple of its loop has as many
/// elements a turn of it: rows of a pooling whose windows do not overlap. Nothing: it would be no block.
std::optional<Region> block_of(const Model& model, const Operator& op, const Access& access, const Loops& loops) {
  Region block = whole_of(model.tensors[access.tensor]);
  for (std::size_t d = 0; d < block.extent.size(); ++d) {
    std::int64_t walked = 1, offset = 0, extent = 1;
    bool cut = false;
    for (const std::uint8_t l : access.walks[d]) {
      // Behind a loop of which there is more than one turn only whole ones leave no gaps.
      if (extent > 1 && loops[l].size != loops[l].whole) return std::nullopt;
      cut = cut || loops[l].size != loops[l].whole;
      walked *= op.dims[l].size;
      offset = offset * loops[l].whole + loops[l].offset;
      extent *= loops[l].size;
    }
    if (!cut) continue;
    const std::int64_t each = block.extent[d] / walked;
    if (each * walked != block.extent[d]) return std::nullopt;
    block.offset[d] = offset * each, block.extent[d] = extent * each;
  }
  return block;
}

class TreeMaker {
 public:
  TreeMaker(const Model& model, const StepRatio& ratio) : model_(model), ratio_(ratio) {}

  Expected<RatioTree> run() {
    tree_.rank_at = ratio_.order;
    tree_.leaf_of.resize(ratio_.order.size());
    RatioNode whole;
    whole.end = static_cast<std::uint32_t>(ratio_.order.size());
    for (const Operator& op : model_.operators) whole.loops.push_back(whole_loops(op));
    if (ratio_.parts.empty() || ratio_.parts.back().devices != whole.end) return bad("its parts do not hold all ranks");
    if (auto done = add(std::move(whole), static_cast<std::uint32_t>(ratio_.parts.size() - 1),
                        ratio_.cuts.empty() ? StepRatio::kNoCut : 0);
        !done)
      return done.error();
    return std::move(tree_);
  }

 private:
  Error bad(const std::string& what) const { return bad_input("ratio plan: " + what, model_.name); }
  Error refused(const Operator& op, const std::string& why) const {
    return usage_error("'" + op.name + "' cannot be executed as this ratio plan cuts it: " + why, model_.name);
  }

  Expected<void> add(RatioNode node, std::uint32_t part, std::uint32_t cut) {
    const std::size_t number = tree_.nodes.size();
    const StepRatio::Part& here = ratio_.parts[part];
    if (here.devices == 1) {
      if (cut != StepRatio::kNoCut) return bad("it cuts a single rank");
      tree_.leaf_of[tree_.rank_at[node.first]] = static_cast<std::uint32_t>(number);
      tree_.nodes.push_back(std::move(node));
      return {};
    }
    if (cut >= ratio_.cuts.size() || ratio_.cuts[cut].part != part)
      return bad("part " + std::to_string(part) + " has no cut of its own");
    node.cut = &ratio_.cuts[cut];
    std::array<RatioNode, 2> halves;
    for (std::uint32_t h = 0; h < 2; ++h) {
      halves[h].loops = node.loops;
      halves[h].parent = static_cast<std::uint32_t>(number), halves[h].half = h;
    }
    halves[0].first = node.first, halves[1].end = node.end;
    halves[0].end = halves[1].first = node.first + ratio_.parts[here.halves[0]].devices;
    for (std::size_t o = 0; o < model_.operators.size(); ++o)
      if (auto done = divide(OperatorId(o), node.cut->share[o], halves); !done) return done;
    tree_.nodes.push_back(std::move(node));
    for (std::uint32_t h = 0; h < 2; ++h) {
      tree_.nodes[number].child[h] = static_cast<std::uint32_t>(tree_.nodes.size());
      if (auto done = add(std::move(halves[h]), here.halves[h], ratio_.cuts[cut].next[h]); !done) return done;
    }
    return {};
  }

  Expected<void> divide(OperatorId id, const StepRatio::Share& share, std::array<RatioNode, 2>& halves) const {
    if (share.loop < 0) return {};
    const Operator& op = model_.operators[id];
    const auto l = static_cast<std::size_t>(share.loop);
    if (l >= op.dims.size()) return bad("it cuts a loop that '" + op.name + "' does not have");
    const LoopDimension& dim = op.dims[l];
    const std::string name(to_string(dim.name));
    if (!dim.splittable) return bad("it cuts '" + op.name + "' by " + name + ", which is never split");
    if (op.kind == OperatorKind::recurrent && dim.name == DimName::out_channel)
      return refused(op, "its ranks exchange the state of their hidden units at every time step in equal parts");
    LoopRange &first = halves[0].loops[id.index][l], &second = halves[1].loops[id.index][l];
    if (share.first < 1 || share.first >= first.size)
      return bad("'" + op.name + "' gives a half " + std::to_string(share.first) + " of " + std::to_string(first.size) +
                 " " + name + ", which leaves one of two nothing");
    second.offset += share.first;
    second.size -= share.first;
    first.size = share.first;
    return {};
  }

  const Model& model_;
  const StepRatio& ratio_;
  RatioTree tree_;
};

}  // namespace

Expected<RatioTree> RatioTree::make(const Model& model, const StepRatio& ratio) {
  return TreeMaker(model, ratio).run();
}

std::vector<std::uint32_t> RatioTree::path_to(std::uint32_t rank) const {
  std::vector<std::uint32_t> path{leaf_of[rank]};
  while (path.back() != 0) path.push_back(nodes[path.back()].parent);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<int> RatioTree::ranks_of(std::uint32_t node) const {
  std::vector<int> ranks;
  for (std::uint32_t p = nodes[node].first; p < nodes[node].end; ++p) ranks.push_back(static_cast<int>(rank_at[p]));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

bool RatioLie::anywhere_partial() const { return std::find(held.begin(), held.end(), Layout::kPartial) != held.end(); }

RatioLie RatioLie::without_partial() const {
  RatioLie whole = *this;
  std::replace(whole.held.begin(), whole.held.end(), Layout::kPartial, Layout::kReplicated);
  return whole;
}

Expected<RatioLie> lie_of(const Model& model, const RatioTree& tree, OperatorId id, const Access& access,
                          RatioSide side) {
  const Operator& op = model.operators[id];
  RatioLie lie;
  for (const RatioNode& node : tree.nodes) {
    const auto part = block_of(model, op, access, node.loops[id.index]);
    if (!part)
      return usage_error("'" + op.name + "' cannot be executed as this ratio plan cuts it: what a rank touches of '" +
                             model.tensors[access.tensor].name + "' is no block of it",
                         model.name);
    lie.part.push_back(*part);
    Configuration one;
    one.axis[0] = node.cut ? node.cut->share[id.index].loop : Configuration::kRepeat;
    const Layout layout = side == RatioSide::input_gradient
                              ? gradient_layout(op, access, false, one, 1)
                              : forward_layout(op, access, side == RatioSide::output, one, 1);
    lie.held.push_back(layout.axis[0]);
  }
  return lie;
}

bool first_among(const RatioTree& tree, const RatioLie& lie, std::uint32_t rank, std::int8_t held) {
  for (std::uint32_t n = tree.leaf_of[rank]; n != 0; n = tree.nodes[n].parent)
    if (tree.nodes[n].half == 1 && lie.held[tree.nodes[n].parent] == held) return false;
  return true;
}

}  // namespace turnpoint::step
