// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/device_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

namespace turnpoint::accpar {

namespace {

bool above_zero(double value) { return std::isfinite(value) && value > 0; }

class Bisector {
 public:
  struct Piece {
    std::uint32_t part = 0;
    std::vector<std::uint32_t> devices;
  };

  Expected<Piece> piece(const DeviceTree& tree) {
    const std::string named = tree.name.empty() ? "the tree" : "'" + tree.name + "'";
    if (tree.children.empty()) {
      if (tree.flops == 0 && tree.memory == 0) return bad_input("group " + named + " has no devices");
      if (!above_zero(tree.flops)) return bad_input("device " + named + " has a speed that is not above zero");
      if (!std::isfinite(tree.memory) || tree.memory < 0)
        return bad_input("device " + named + " has a memory that is no number of bytes");
      const auto [at, fresh] = devices_.try_emplace({tree.flops, tree.memory}, next());
      if (fresh) result.parts.push_back({tree.flops, tree.memory, 1, 0, {}, {}});
      return Piece{at->second, {numbered_++}};
    }
    if (tree.children.size() > 1 && !above_zero(tree.link))
      return bad_input("the link of group " + named + " has a bandwidth that is not above zero");
    std::vector<Piece> pieces;
    for (const DeviceTree& child : tree.children) {
      auto one = piece(child);
      if (!one) return one;
      pieces.push_back(std::move(*one));
    }
    // Kinds side by side, each where its first child stands.
    std::vector<std::uint32_t> kinds;
    for (const Piece& one : pieces)
      if (std::find(kinds.begin(), kinds.end(), one.part) == kinds.end()) kinds.push_back(one.part);
    std::stable_sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
      return std::find(kinds.begin(), kinds.end(), a.part) < std::find(kinds.begin(), kinds.end(), b.part);
    });
    return joined(pieces, tree.link);
  }

  Bisection result;

 private:
  std::uint32_t next() const { return static_cast<std::uint32_t>(result.parts.size()); }

  /// Where to cut a row of pieces: before this one.
  std::size_t cut_of(std::span<const Piece> pieces) const {
    double all = 0;
    for (const Piece& one : pieces) all += result.parts[one.part].flops;
    std::size_t best = 0;
    double before = 0, nearest = 0;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      before += result.parts[pieces[i - 1].part].flops;
      if (pieces[i - 1].part == pieces[i].part) continue;
      const double distance = std::abs(2 * before - all);
      if (best == 0 || distance < nearest) best = i, nearest = distance;
    }
    return best ? best : (pieces.size() + 1) / 2;
  }

  Piece joined(std::span<const Piece> pieces, double link) {
    if (pieces.size() == 1) return pieces.front();
    const std::size_t at = cut_of(pieces);
    Piece first = joined(pieces.first(at), link);
    const Piece second = joined(pieces.subspan(at), link);
    const std::array bandwidth{link * static_cast<double>(at), link * static_cast<double>(pieces.size() - at)};
    const auto [found, fresh] = joins_.try_emplace({first.part, second.part, bandwidth[0], bandwidth[1]}, next());
    if (fresh) {
      const Part &a = result.parts[first.part], &b = result.parts[second.part];
      result.parts.push_back({a.flops + b.flops,
                              a.memory + b.memory,
                              a.devices + b.devices,
                              1 + std::max(a.levels, b.levels),
                              {first.part, second.part},
                              bandwidth});
    }
    first.part = found->second;
    first.devices.insert(first.devices.end(), second.devices.begin(), second.devices.end());
    return first;
  }

  std::uint32_t numbered_ = 0;
  std::map<std::pair<double, double>, std::uint32_t> devices_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, double, double>, std::uint32_t> joins_;
};

}  // namespace

DeviceTree device(std::string name, double flops, double memory) { return {std::move(name), flops, memory, 0, {}}; }

DeviceTree group(std::string name, double link, std::vector<DeviceTree> children) {
  return {std::move(name), 0, 0, link, std::move(children)};
}

DeviceTree group_of(std::string name, double link, const DeviceTree& child, int count) {
  return group(std::move(name), link, std::vector<DeviceTree>(static_cast<std::size_t>(std::max(count, 0)), child));
}

Expected<Bisection> bisect(const DeviceTree& tree) {
  if (tree.children.empty() && tree.flops == 0 && tree.memory == 0) return bad_input("the tree has no devices");
  Bisector bisector;
  auto whole = bisector.piece(tree);
  if (!whole) return whole.error();
  Bisection result = std::move(bisector.result);
  result.order = std::move(whole->devices);
  // Equal subtrees share their parts, so that the whole was made last.
  return result;
}

}  // namespace turnpoint::accpar
