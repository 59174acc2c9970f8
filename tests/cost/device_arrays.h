// SPDX-License-Identifier: Apache-2.0
// Every device of a mesh with its actual piece of one tensor, and collectives that really move elements between them.
// An element remembers where in the tensor it belongs and which partial sums have gone into it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/cost/resharding.h"

namespace turnpoint::test {

struct Element {
  std::int64_t index = 0;      ///< row-major position in the whole tensor
  std::uint64_t summands = 0;  ///< bit per coordinate on the axes that were partial at the start
  friend auto operator<=>(const Element&, const Element&) = default;
};

struct Block {
  std::vector<std::int64_t> shape;
  std::vector<Element> data;  ///< row-major
  friend bool operator==(const Block&, const Block&) = default;
};

class DeviceArrays {
 public:
  DeviceArrays(const Mesh& mesh, std::vector<std::int64_t> shape, const Layout& start)
      : mesh_(mesh), shape_(std::move(shape)), summed_(start.mask(Layout::kPartial)) {
    for (int device = 0; device < mesh_.devices(); ++device) blocks_.push_back(expected(device, start));
    layout_ = start;
  }

  /// Carries the step out by moving elements. Returns why it cannot be carried out, else nothing.
  std::string execute(const ReshardStep& step) {
    const std::vector<Block> before = blocks_;
    const Layout from = layout_, to = step.result;
    const int left = dimension(from, step.axes), joined = dimension(to, step.axes);
    std::string problem;
    for (int device = 0; device < mesh_.devices() && problem.empty(); ++device) {
      const auto members = group(device, step.axes);
      const auto place = static_cast<std::size_t>(std::find(members.begin(), members.end(), device) - members.begin());
      std::vector<Block> parts;
      for (const int member : members) parts.push_back(before[static_cast<std::size_t>(member)]);
      Block& mine = blocks_[static_cast<std::size_t>(device)];
      switch (step.move) {
        case ReshardMove::all_gather: mine = concatenate(parts, left); break;
        case ReshardMove::slice: mine = piece(parts[place], joined, members.size(), place); break;
        case ReshardMove::all_to_all:
          for (auto& part : parts) part = piece(part, joined, members.size(), place);
          mine = concatenate(parts, left);
          break;
        case ReshardMove::all_reduce: problem = sum(parts, mine); break;
        case ReshardMove::reduce_scatter:
          problem = sum(parts, mine);
          mine = piece(mine, joined, members.size(), place);
          break;
        case ReshardMove::permute: break;
      }
    }
    if (step.move == ReshardMove::permute) problem = permute(before, step);
    layout_ = to;
    return problem;
  }

  /// Whether every device holds exactly what the layout says.
  bool matches(const Layout& layout) const {
    for (int device = 0; device < mesh_.devices(); ++device)
      if (blocks_[static_cast<std::size_t>(device)] != expected(device, layout)) return false;
    return true;
  }

 private:
  int coordinate(int device, int axis) const {
    for (int a = mesh_.count() - 1; a > axis; --a) device /= mesh_.axes[static_cast<std::size_t>(a)].size;
    return device % mesh_.axes[static_cast<std::size_t>(axis)].size;
  }

  // Position of the device among those that differ on `axes`, outermost axis first.
  std::uint32_t number(int device, std::uint32_t axes) const {
    std::uint32_t n = 0;
    for (int a = 0; a < mesh_.count(); ++a)
      if (axes >> a & 1u)
        n = n * static_cast<std::uint32_t>(mesh_.axes[static_cast<std::size_t>(a)].size) +
            static_cast<std::uint32_t>(coordinate(device, a));
    return n;
  }

  std::vector<int> group(int device, std::uint32_t axes) const {
    const std::uint32_t others = ((1u << mesh_.count()) - 1) & ~axes;
    std::vector<int> members;
    for (int d = 0; d < mesh_.devices(); ++d)
      if (number(d, others) == number(device, others)) members.push_back(d);
    return members;  // device numbers count outermost axes first, and so do group positions
  }

  static int dimension(const Layout& layout, std::uint32_t axes) {
    return layout.axis[static_cast<std::size_t>(__builtin_ctz(axes))];
  }

  Block expected(int device, const Layout& layout) const {
    std::vector<std::int64_t> extent = shape_, offset(shape_.size(), 0);
    for (int a = 0; a < mesh_.count(); ++a) {
      const int d = layout.axis[static_cast<std::size_t>(a)];
      if (d < 0) continue;
      extent[static_cast<std::size_t>(d)] /= mesh_.axes[static_cast<std::size_t>(a)].size;
      offset[static_cast<std::size_t>(d)] += coordinate(device, a) * extent[static_cast<std::size_t>(d)];
    }
    // Summands: those that agree with the device on the axes that are still partial.
    const std::uint32_t open = layout.mask(Layout::kPartial);
    std::uint64_t summands = 0;
    for (int other = 0; other < mesh_.devices(); ++other)
      if (number(other, open) == number(device, open)) summands |= std::uint64_t(1) << number(other, summed_);
    Block block{extent, {}};
    std::int64_t count = 1;
    for (const auto e : extent) count *= e;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, index = 0, stride = 1;
      for (std::size_t d = shape_.size(); d-- > 0;) {
        index += (offset[d] + rest % extent[d]) * stride;
        stride *= shape_[d];
        rest /= extent[d];
      }
      block.data.push_back({index, summands});
    }
    return block;
  }

  // Number of consecutive elements that one index of `dim` covers.
  static std::int64_t inner(const Block& block, int dim) {
    std::int64_t run = 1;
    for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < block.shape.size(); ++d) run *= block.shape[d];
    return run;
  }

  static Block piece(const Block& block, int dim, std::size_t pieces, std::size_t which) {
    Block result = block;
    auto& extent = result.shape[static_cast<std::size_t>(dim)];
    const std::int64_t whole = extent * inner(block, dim);
    extent /= static_cast<std::int64_t>(pieces);
    const std::int64_t part = extent * inner(block, dim);
    result.data.clear();
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(block.data.size()); at += whole)
      for (std::int64_t i = 0; i < part; ++i)
        result.data.push_back(block.data[static_cast<std::size_t>(at + static_cast<std::int64_t>(which) * part + i)]);
    return result;
  }

  static Block concatenate(const std::vector<Block>& parts, int dim) {
    Block result = parts.front();
    const std::int64_t run = result.shape[static_cast<std::size_t>(dim)] * inner(result, dim);
    result.shape[static_cast<std::size_t>(dim)] *= static_cast<std::int64_t>(parts.size());
    result.data.clear();
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(parts.front().data.size()); at += run)
      for (const Block& part : parts)
        result.data.insert(result.data.end(), part.data.begin() + at, part.data.begin() + at + run);
    return result;
  }

  static std::string sum(const std::vector<Block>& parts, Block& into) {
    into = parts.front();
    for (std::size_t p = 1; p < parts.size(); ++p) {
      for (std::size_t i = 0; i < into.data.size(); ++i) {
        if (into.data[i].index != parts[p].data[i].index) return "sums different elements";
        if (into.data[i].summands & parts[p].data[i].summands) return "adds a summand twice";
        into.data[i].summands |= parts[p].data[i].summands;
      }
    }
    return {};
  }

  // One send and one receive per device; inside the node unless an axis between nodes takes part.
  std::string permute(const std::vector<Block>& before, const ReshardStep& step) {
    std::uint32_t between = 0;
    for (int a = 0; a < mesh_.count(); ++a)
      if (mesh_.axes[static_cast<std::size_t>(a)].level == kInterNode) between |= 1u << a;
    const bool inside = (step.axes & between) == 0;
    std::map<std::pair<std::uint32_t, std::vector<Element>>, std::vector<int>> senders;
    const auto where = [&](int device) { return inside ? number(device, between) : 0u; };
    for (int device = 0; device < mesh_.devices(); ++device)
      senders[{where(device), before[static_cast<std::size_t>(device)].data}].push_back(device);
    for (int device = 0; device < mesh_.devices(); ++device) {
      const Block wanted = expected(device, step.result);
      auto& candidates = senders[{where(device), wanted.data}];
      if (candidates.empty()) return "nobody is left to send a block";
      blocks_[static_cast<std::size_t>(device)] = before[static_cast<std::size_t>(candidates.back())];
      candidates.pop_back();
    }
    return {};
  }

  Mesh mesh_;
  std::vector<std::int64_t> shape_;
  std::uint32_t summed_;
  Layout layout_;
  std::vector<Block> blocks_;
};

}  // namespace turnpoint::test
