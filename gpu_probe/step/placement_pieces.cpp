// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/placement_pieces.h"

#include <algorithm>

namespace turnpoint::step {

namespace {

bool is_whole_loop(const LoopRange& loop) { return loop.size == loop.whole; }

/// [offset, offset + extent) of what loops from the `k`th on walk together, the outermost first.
bool restrict_walk(const Operator& op, const std::vector<std::uint8_t>& walk, std::size_t k, std::int64_t offset,
                   std::int64_t extent, Loops& loops) {
  std::int64_t all = 1;
  for (std::size_t i = k; i < walk.size(); ++i) all *= op.dims[walk[i]].size;
  if (offset == 0 && extent == all) return true;
  if (k == walk.size()) return false;
  const std::int64_t inner = all / op.dims[walk[k]].size;
  LoopRange& loop = loops[walk[k]];
  const auto set = [&](std::int64_t from, std::int64_t size) {
    const bool fine = is_whole_loop(loop) || (loop.offset == from && loop.size == size);
    loop.offset = from, loop.size = size;
    return fine;
  };
  if (offset % inner == 0 && extent % inner == 0) return set(offset / inner, extent / inner);
  const std::int64_t at = offset / inner;
  if ((offset + extent - 1) / inner != at) return false;
  return set(at, 1) && restrict_walk(op, walk, k + 1, offset % inner, extent, loops);
}

}  // namespace

Region whole_of(const Tensor& tensor) { return {Shape(tensor.shape.size(), 0), tensor.shape}; }

Loops whole_loops(const Operator& op) {
  Loops loops;
  for (const auto& dim : op.dims) loops.push_back({0, dim.size, dim.size, 1});
  return loops;
}

std::optional<Loops> loops_of(const Model& model, const Operator& op, const Access& access, const Region& part) {
  Loops loops = whole_loops(op);
  const Shape& shape = model.tensors[access.tensor].shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (part.extent[d] == shape[d]) continue;
    std::int64_t walked = 1;
    for (const auto loop : access.walks[d]) walked *= op.dims[loop].size;
    if (walked != shape[d] || !restrict_walk(op, access.walks[d], 0, part.offset[d], part.extent[d], loops))
      return std::nullopt;
  }
  return loops;
}

std::optional<Region> part_of(const Model& model, const Operator& op, const Access& access, const Loops& loops) {
  Region part = whole_of(model.tensors[access.tensor]);
  for (std::size_t d = 0; d < part.extent.size(); ++d) {
    const auto& walk = access.walks[d];
    if (std::all_of(walk.begin(), walk.end(), [&](std::uint8_t l) { return is_whole_loop(loops[l]); })) continue;
    std::int64_t offset = 0, extent = 1;
    for (const auto l : walk) {
      if (extent > 1 && !is_whole_loop(loops[l])) return std::nullopt;
      offset = offset * loops[l].whole + loops[l].offset;
      extent *= loops[l].size;
    }
    std::int64_t walked = 1;
    for (const auto l : walk) walked *= op.dims[l].size;
    if (walked != part.extent[d]) return std::nullopt;
    part.offset[d] = offset, part.extent[d] = extent;
  }
  return part;
}

Loops Stepping::loops(const Operator& op, std::size_t piece) const {
  Loops all = whole_loops(op);
  if (steps == 0) return all;
  all[time_loop].offset = position(piece), all[time_loop].size = 1;
  if (directions == 2)
    all[direction_loop].offset = static_cast<std::int64_t>(direction(piece)), all[direction_loop].size = 1;
  return all;
}

std::optional<std::size_t> Stepping::neighbour(std::size_t piece, std::int64_t by) const {
  const std::int64_t there = position(piece) + by;
  if (there < 0 || there >= steps) return std::nullopt;
  return direction(piece) * static_cast<std::size_t>(steps) + static_cast<std::size_t>(there);
}

std::optional<Stepping> stepping_of(const Model& model, const Operator& op, std::int64_t steps) {
  Stepping made;
  made.steps = steps;
  if (op.kind == OperatorKind::recurrent) {
    bool found = false;
    for (std::size_t l = 0; l < op.dims.size(); ++l) {
      if (op.dims[l].name == DimName::time && op.dims[l].size == steps) made.time_loop = l, found = true;
      if (op.dims[l].name == DimName::group && op.dims[l].size == 2) made.direction_loop = l, made.directions = 2;
    }
    return found ? std::optional(made) : std::nullopt;
  }
  const Access& access = op.outputs.front();
  const Tensor& tensor = model.tensors[access.tensor];
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] != steps || access.walks[d].size() != 1) continue;
    if (tensor.dims[d] != DimName::sequence && tensor.dims[d] != DimName::time) continue;
    made.time_loop = access.walks[d].front();
    if (op.dims[made.time_loop].size == steps) return made;
  }
  return std::nullopt;
}

std::vector<OperatorId> views_before(const Model& model, TensorId read) {
  std::vector<OperatorId> views;
  for (OperatorId producer = model.tensors[read].producer; producer.valid() && model.operators[producer].is_view();
       producer = model.tensors[read].producer) {
    views.push_back(producer);
    read = model.operators[producer].inputs.front().tensor;
  }
  std::reverse(views.begin(), views.end());
  return views;
}

Sight sight_of(const Model& model, TensorId read, const Region& part, std::size_t unseen) {
  Sight sight;
  sight.views = views_before(model, read);
  sight.unseen = sight.views.size();
  sight.parts = {part};
  sight.tensor = read;
  for (; sight.unseen > unseen; --sight.unseen) {
    const Operator& view = model.operators[sight.views[sight.unseen - 1]];
    const Access &from = view.inputs.front(), &to = view.outputs.front();
    Region next = whole_of(model.tensors[from.tensor]);
    if (sight.parts.back() != whole_of(model.tensors[to.tensor])) {
      LocalOperator at;
      at.model = &model;
      at.id = sight.views[sight.unseen - 1];
      const auto loops =
          walks_all(at, from) && walks_all(at, to) ? loops_of(model, view, to, sight.parts.back()) : std::nullopt;
      const auto seen = loops ? part_of(model, view, from, *loops) : std::nullopt;
      if (!seen) break;
      next = *seen;
    }
    sight.parts.push_back(std::move(next));
    sight.tensor = from.tensor;
  }
  std::reverse(sight.parts.begin(), sight.parts.end());
  return sight;
}

}  // namespace turnpoint::step
