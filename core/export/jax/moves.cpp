// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/moves.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/cost/resharding.h"

namespace turnpoint::jax {

namespace {

int coordinate_of(const Mesh& mesh, int device, int axis) {
  for (int a = mesh.count() - 1; a > axis; --a) device /= mesh.axes[static_cast<std::size_t>(a)].size;
  return device % mesh.axes[static_cast<std::size_t>(axis)].size;
}

int position_among(const Mesh& mesh, int device, std::uint32_t axes) {
  int position = 0;
  for (const int a : axes_of(axes))
    position = position * mesh.axes[static_cast<std::size_t>(a)].size + coordinate_of(mesh, device, a);
  return position;
}

/// Which block of a tensor a device holds, and which of its summands.
std::vector<int> block_of(const Mesh& mesh, int device, const Layout& layout, std::size_t dimensions) {
  std::vector<int> block = {position_among(mesh, device, layout.mask(Layout::kPartial))};
  for (std::size_t d = 0; d < dimensions; ++d)
    block.push_back(position_among(mesh, device, layout.mask(static_cast<std::int8_t>(d))));
  return block;
}

/// Who sends its block to whom: inside the nodes unless an axis between nodes takes part. Whoever holds its own block
/// already keeps it, and sends it to itself.
std::vector<std::pair<int, int>> permutation(const Mesh& mesh, const ReshardStep& step, const Layout& before,
                                             std::size_t dimensions) {
  std::uint32_t between = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == kInterNode) between |= 1u << a;
  const std::uint32_t fixed = (step.axes & between) == 0 ? between : 0;
  const auto key = [&](int device, const Layout& layout) {
    return std::pair(position_among(mesh, device, fixed), block_of(mesh, device, layout, dimensions));
  };
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> holders;
  const int devices = mesh.devices();
  for (int device = 0; device < devices; ++device) holders[key(device, before)].push_back(device);
  std::vector<int> source(static_cast<std::size_t>(devices), -1);
  for (const bool itself : {true, false})
    for (int device = 0; device < devices; ++device) {
      int& from = source[static_cast<std::size_t>(device)];
      auto& candidates = holders[key(device, step.result)];
      const auto found = itself ? std::find(candidates.begin(), candidates.end(), device) : candidates.begin();
      if (from >= 0 || found == candidates.end()) continue;
      from = *found;
      candidates.erase(found);
    }
  std::vector<std::pair<int, int>> pairs;
  for (int device = 0; device < devices; ++device) {
    if (source[static_cast<std::size_t>(device)] < 0) return {};
    pairs.emplace_back(source[static_cast<std::size_t>(device)], device);
  }
  return pairs;
}

}  // namespace

Expected<std::string> moved(const Mesh& mesh, const Tensor& tensor, const Layout& before, const ReshardStep& step,
                            const std::string& value) {
  int from = Layout::kReplicated, to = Layout::kReplicated;
  std::uint32_t axes = 0;
  bool one_pair = true;
  for (int a = 0; a < mesh.count(); ++a) {
    const int old = before.axis[static_cast<std::size_t>(a)], now = step.result.axis[static_cast<std::size_t>(a)];
    if (old == now) continue;
    one_pair = one_pair && (axes == 0 || (old == from && now == to));
    from = old;
    to = now;
    axes |= 1u << a;
  }
  const std::string names = axis_list(mesh, axes);
  const auto cannot = [&] {
    return bad_input(fmt::format("plan: a step '{}' that is not one collective", to_string(step.move)), tensor.name);
  };
  if (step.move == ReshardMove::permute) {
    const auto pairs = permutation(mesh, step, before, tensor.shape.size());
    if (pairs.empty()) return cannot();
    std::vector<std::string> words;
    for (const auto& [sender, receiver] : pairs) words.push_back(fmt::format("({}, {})", sender, receiver));
    return fmt::format("permute({}, [{}])", value, joined(words));
  }
  if (axes == 0 || !one_pair) return cannot();
  switch (step.move) {
    case ReshardMove::all_gather: return fmt::format("all_gather({}, {}, {})", value, from, names);
    case ReshardMove::slice: return fmt::format("part({}, {}, {})", value, to, names);
    case ReshardMove::all_to_all: return fmt::format("all_to_all({}, {}, {}, {})", value, from, to, names);
    case ReshardMove::all_reduce: return fmt::format("all_reduce({}, {})", value, names);
    case ReshardMove::reduce_scatter: return fmt::format("reduce_scatter({}, {}, {})", value, to, names);
    case ReshardMove::permute: break;
  }
  return cannot();
}

}  // namespace turnpoint::jax
