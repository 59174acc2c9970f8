// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/mesh_layouts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/model/hierarchy.h"

namespace turnpoint::search {

namespace {

// Loop dimensions at the same place of equal layers. Only the outermost equal groups are compared: inside a layer, two
// equal blocks may well stand one behind the other and need different names.
std::vector<std::pair<LoopRef, LoopRef>> equal_layers(const Model& model) {
  const Hierarchy hierarchy = build_hierarchy(model);
  std::map<std::uint32_t, int> count;
  for (std::size_t g = 1; g < hierarchy.groups.size(); ++g) ++count[hierarchy.groups[g].shape_class];
  std::vector<char> inside(hierarchy.groups.size(), 0);  // below a group that has an equal one
  std::map<std::uint32_t, std::vector<OperatorId>> first;
  std::vector<std::pair<LoopRef, LoopRef>> pairs;
  for (std::size_t g = 1; g < hierarchy.groups.size(); ++g) {
    const auto& group = hierarchy.groups[g];
    inside[g] = group.parent != kNoGroup && inside[group.parent];
    if (inside[g] || count[group.shape_class] < 2) continue;
    inside[g] = 1;
    auto operators = hierarchy.operators_of(static_cast<std::uint32_t>(g));
    const auto [it, fresh] = first.try_emplace(group.shape_class, operators);
    if (fresh || it->second.size() != operators.size()) continue;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const std::size_t loops =
          std::min(model.operators[it->second[i]].dims.size(), model.operators[operators[i]].dims.size());
      for (std::size_t l = 0; l < loops; ++l)
        pairs.push_back({{it->second[i], static_cast<int>(l)}, {operators[i], static_cast<int>(l)}});
    }
  }
  return pairs;
}

// An operator that needs a dimension whole reads a renamed, gathered copy of it, as Mesh-TensorFlow programs do; a
// dimension that cannot be split anywhere but in passing (windows, the inner part of a merged one) has no name.
bool may_be_renamed(const Operator& op, const LoopDimension& dim) {
  return op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics ||
         op.kind == OperatorKind::normalisation || op.kind == OperatorKind::softmax ||
         (op.kind == OperatorKind::recurrent && dim.role == DimRole::reduction);
}

double layouts_of(const std::vector<MeshDims>& meshes, int names) {
  double total = 0;
  for (const auto& mesh : meshes) total += std::pow(double(mesh.size() + 1), names);
  return total;
}

}  // namespace

std::vector<MeshDims> enumerate_meshes(const Mesh& mesh, int most) {
  std::vector<MeshDims> meshes;
  const int axes = mesh.count();
  if (axes == 0) return {MeshDims{}};
  // Bit i of `cuts`: a new dimension begins behind axis i.
  for (std::uint32_t cuts = 0; cuts < 1u << (axes - 1); ++cuts) {
    if (__builtin_popcount(cuts) >= most) continue;
    MeshDims dims(1, 0);
    for (int a = 0; a < axes; ++a) {
      dims.back() |= 1u << a;
      if (a + 1 < axes && (cuts >> a & 1u)) dims.push_back(0);
    }
    meshes.push_back(std::move(dims));
  }
  return meshes;
}

NamedDims name_dims(const Model& model, bool split_windows, const std::vector<MeshDims>& meshes, double most_layouts) {
  NamedDims result;
  result.dims = analyse_logical_dims(model, split_windows, equal_layers(model));
  const auto& classes = result.dims.classes;
  std::vector<char> splittable(classes.size(), 0);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    bool anywhere = false, everywhere = true;
    for (const auto& member : classes[c].members) {
      const Operator& op = model.operators[member.op];
      const bool here = can_split(op, member.loop, split_windows);
      anywhere = anywhere || here;
      everywhere = everywhere && (here || may_be_renamed(op, op.dims[static_cast<std::size_t>(member.loop)]));
      if (!here) result.dims.of[member.op.index][static_cast<std::size_t>(member.loop)] = -1;
    }
    splittable[c] = anywhere && everywhere;
  }
  std::vector<int> groups;  // classes that may be split; later joined into names
  std::vector<char> usable(classes.size(), 0);
  std::vector<std::vector<char>> meet(classes.size(), std::vector<char>(classes.size(), 0));
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const auto& of = result.dims.of[i];
    for (std::size_t a = 0; a < of.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (of[a] >= 0 && of[b] >= 0 && model.operators[OperatorId(i)].dims[a].size > 1 &&
            model.operators[OperatorId(i)].dims[b].size > 1)
          meet[static_cast<std::size_t>(of[a])][static_cast<std::size_t>(of[b])] =
              meet[static_cast<std::size_t>(of[b])][static_cast<std::size_t>(of[a])] = 1;
  }
  for (std::size_t c = 0; c < classes.size(); ++c) {
    usable[c] = splittable[c] && !meet[c][c];
    if (usable[c]) groups.push_back(static_cast<int>(c));
  }
  // Names as lists of classes; joined while there are too many layouts.
  std::vector<std::vector<int>> names;
  for (const int c : groups) names.push_back({c});
  const auto conflict = [&](const std::vector<int>& a, const std::vector<int>& b) {
    for (const int x : a)
      for (const int y : b)
        if (meet[static_cast<std::size_t>(x)][static_cast<std::size_t>(y)]) return true;
    return false;
  };
  const auto kind = [&](const std::vector<int>& name) { return classes[static_cast<std::size_t>(name.front())].name; };
  while (layouts_of(meshes, static_cast<int>(names.size())) > most_layouts && names.size() > 1) {
    std::size_t from = 0, into = 0;
    bool same_kind = false;
    for (std::size_t i = 0; i < names.size() && !same_kind; ++i)
      for (std::size_t j = i + 1; j < names.size() && !same_kind; ++j) {
        if (conflict(names[i], names[j])) continue;
        const bool same = kind(names[i]) == kind(names[j]);
        if (same || from == into) into = i, from = j, same_kind = same;
      }
    if (from == into) {
      // Every two meet somewhere: the one with the fewest places stays whole.
      const auto fewest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
        const auto places = [&](const std::vector<int>& name) {
          return std::accumulate(name.begin(), name.end(), std::size_t(0), [&](std::size_t sum, int c) {
            return sum + classes[static_cast<std::size_t>(c)].members.size();
          });
        };
        return places(a) < places(b);
      });
      names.erase(fewest);
      continue;
    }
    names[into].insert(names[into].end(), names[from].begin(), names[from].end());
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(from));
  }
  result.names = static_cast<int>(names.size());
  result.name_of.assign(classes.size(), -1);
  for (std::size_t n = 0; n < names.size(); ++n)
    for (const int c : names[n]) result.name_of[static_cast<std::size_t>(c)] = static_cast<int>(n);
  result.conflicts.assign(names.size(), std::vector<char>(names.size(), 0));
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = 0; b < names.size(); ++b) result.conflicts[a][b] = a != b && conflict(names[a], names[b]);
  return result;
}

}  // namespace turnpoint::search
