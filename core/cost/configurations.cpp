// SPDX-License-Identifier: Apache-2.0
// Which configurations an operator may take, and in which order mesh axes are handed to loop dimensions.
#include <algorithm>
#include <tuple>

#include "core/cost/layout.h"

namespace turnpoint {

namespace {

constexpr int kRepeatRank = 2, kChannelRank = 3;

// Batch-like dimensions take the outermost axes so that producers and consumers agree on which devices hold which
// samples; channel-like ones the innermost, where the links are fast. Returns (rank, order within the rank).
std::pair<int, int> axis_rank(DimName name) {
  switch (name) {
    case DimName::batch: return {0, 0};
    case DimName::channel:
    case DimName::in_channel:
    case DimName::out_channel:
    case DimName::head:
    case DimName::vocabulary:
    case DimName::expert:
    case DimName::gate:
    case DimName::group: return {kChannelRank, 0};
    case DimName::head_channel: return {kChannelRank, 1};
    default: return {1, 0};
  }
}

struct SplittableDim {
  int loop = Configuration::kRepeat;
  int rank = kRepeatRank, order = 0;
  bool reduction = false;
  std::int64_t size = 0;  ///< 0: repeat, which takes any number of axes
};

bool is_outermost_everywhere(const Operator& op, int l) {
  const auto hidden_in = [&](const Access& access) {
    return std::any_of(access.walks.begin(), access.walks.end(), [&](const std::vector<std::uint8_t>& walks) {
      return std::find(walks.begin(), walks.end(), l) != walks.end() && outermost_walker(op, walks) != l;
    });
  };
  return std::none_of(op.inputs.begin(), op.inputs.end(), hidden_in) &&
         std::none_of(op.outputs.begin(), op.outputs.end(), hidden_in);
}

}  // namespace

bool can_split(const Operator& op, int l, bool split_windows) {
  const LoopDimension& dim = op.dims[l];
  return dim.size > 1 && dim.splittable && (dim.role != DimRole::window || split_windows) &&
         is_outermost_everywhere(op, l);
}

namespace {

// Slots of experts. Along an axis that splits them the experts themselves could be split, for the same work, the same
// tokens sent and fewer weights held; so that only splits are tried that somebody asks for (cp of `manual`).
bool are_slots(const Operator& op, int l) {
  if (op.dims[l].name != DimName::sequence) return false;
  const auto behind_experts = [&](const Access& access) {
    bool expert = false;
    for (const std::vector<std::uint8_t>& walks : access.walks)
      for (const std::uint8_t loop : walks) {
        if (loop == l) return expert;
        expert = expert || op.dims[loop].name == DimName::expert;
      }
    return false;
  };
  return std::any_of(op.inputs.begin(), op.inputs.end(), behind_experts) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), behind_experts);
}

// Values an axis can take, in the order in which axes are handed out.
std::vector<SplittableDim> splittable_dims(const Operator& op, bool split_windows) {
  std::vector<SplittableDim> dims;
  for (int l = 0; l < static_cast<int>(op.dims.size()); ++l) {
    if (!can_split(op, l, split_windows) || are_slots(op, l)) continue;
    const auto [rank, order] = axis_rank(op.dims[l].name);
    dims.push_back({l, rank, order, op.dims[l].role == DimRole::reduction, op.dims[l].size});
  }
  dims.push_back({});
  std::stable_sort(dims.begin(), dims.end(), [](const SplittableDim& x, const SplittableDim& y) {
    return std::tie(x.rank, x.order) < std::tie(y.rank, y.order);
  });
  return dims;
}

// Interchangeable axes: one level, one size.
struct AxisClass {
  MeshAxis like;
  std::vector<int> axes;
};

std::vector<AxisClass> axis_classes(const Mesh& mesh) {
  std::vector<AxisClass> classes;
  for (int a = 0; a < mesh.count(); ++a) {
    auto same = std::find_if(classes.begin(), classes.end(), [&](const AxisClass& c) {
      return c.like.same_link(mesh.axes[a]) && c.like.size == mesh.axes[a].size;
    });
    if (same == classes.end()) same = classes.insert(classes.end(), {mesh.axes[a], {}});
    same->axes.push_back(a);
  }
  return classes;
}

// All ways to hand `axes` axes out: multisets of values in canonical order; where a parallel and a reduction dimension
// of channel-like rank are both taken, also with the reductions first, because which of the two is innermost decides
// which tensors need no permutation.
void multisets(const std::vector<SplittableDim>& dims, std::size_t first, std::size_t axes,
               std::vector<std::size_t>& taken, std::vector<std::vector<std::size_t>>& out) {
  if (taken.size() == axes) {
    auto ordered = taken;
    const auto channels =
        std::find_if(ordered.begin(), ordered.end(), [&](std::size_t i) { return dims[i].rank == kChannelRank; });
    const auto is_reduction = [&](std::size_t i) { return dims[i].reduction; };
    std::stable_partition(channels, ordered.end(), [&](std::size_t i) { return !is_reduction(i); });
    out.push_back(ordered);
    if (std::any_of(channels, ordered.end(), is_reduction) && !std::all_of(channels, ordered.end(), is_reduction)) {
      std::stable_partition(channels, ordered.end(), is_reduction);
      out.push_back(ordered);
    }
    return;
  }
  for (std::size_t i = first; i < dims.size(); ++i) {
    taken.push_back(i);
    multisets(dims, i, axes, taken, out);
    taken.pop_back();
  }
}

}  // namespace

bool divides_evenly(const Operator& op, const Mesh& mesh, const Configuration& configuration) {
  std::array<std::int64_t, 256> split;
  split.fill(1);
  for (int a = 0; a < mesh.count(); ++a) {
    const int l = configuration.axis[a];
    if (l == Configuration::kRepeat) continue;
    split[l] *= mesh.axes[a].size;
    if (op.dims[l].size % split[l] != 0) return false;
  }
  return true;
}

// resources/manual/costs.md, 1: at most two dimensions of one tensor are split per link level.
bool splits_at_most_two_dims_per_level(const Operator& op, const Mesh& mesh, const Configuration& configuration) {
  const auto within = [&](const Access& access, bool is_output) {
    const Layout layout = forward_layout(op, access, is_output, configuration, mesh.count());
    for (const int level : {kInterNode, kIntraNode}) {
      std::uint64_t dims = 0;
      for (int a = 0; a < mesh.count(); ++a)
        if (mesh.axes[a].level == level && layout.axis[a] >= 0) dims |= std::uint64_t(1) << layout.axis[a];
      if (__builtin_popcountll(dims) > 2) return false;
    }
    return true;
  };
  return std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Access& a) { return within(a, false); }) &&
         std::all_of(op.outputs.begin(), op.outputs.end(), [&](const Access& a) { return within(a, true); });
}

std::vector<Configuration> enumerate_configurations(const Model&, const Operator& op, const Mesh& mesh,
                                                    bool split_windows) {
  auto dims = splittable_dims(op, split_windows);
  // A loader hands out samples: each device some of its own, or several devices the same.
  if (op.kind == OperatorKind::input)
    std::erase_if(dims, [&](const SplittableDim& dim) {
      return dim.loop != Configuration::kRepeat && op.dims[static_cast<std::size_t>(dim.loop)].name != DimName::batch;
    });

  std::vector<Configuration> configurations(1);
  for (const auto& axis_class : axis_classes(mesh)) {
    std::vector<std::vector<std::size_t>> assignments;
    std::vector<std::size_t> taken;
    multisets(dims, 0, axis_class.axes.size(), taken, assignments);
    std::vector<Configuration> next;
    for (const auto& configuration : configurations) {
      for (const auto& assignment : assignments) {
        Configuration extended = configuration;
        for (std::size_t i = 0; i < assignment.size(); ++i)
          extended.axis[axis_class.axes[i]] = static_cast<std::int8_t>(dims[assignment[i]].loop);
        if (divides_evenly(op, mesh, extended)) next.push_back(extended);
      }
    }
    configurations = std::move(next);
  }
  std::erase_if(configurations,
                [&](const Configuration& c) { return !splits_at_most_two_dims_per_level(op, mesh, c); });

  const auto batch_share = [&](const Configuration& c) {
    std::int64_t share = 1;
    for (int a = 0; a < mesh.count(); ++a)
      if (c.axis[a] >= 0 && op.dims[c.axis[a]].name == DimName::batch) share *= mesh.axes[a].size;
    return share;
  };
  std::stable_sort(configurations.begin(), configurations.end(),
                   [&](const Configuration& x, const Configuration& y) { return batch_share(x) > batch_share(y); });
  return configurations;
}

Configuration data_parallel_configuration(const Operator& op, const Mesh& mesh) {
  Configuration configuration;
  for (int l = 0; l < static_cast<int>(op.dims.size()); ++l) {
    if (op.dims[l].name != DimName::batch || !can_split(op, l, false)) continue;
    std::int64_t split = 1;
    for (int a = 0; a < mesh.count(); ++a) {
      if (op.dims[l].size % (split * mesh.axes[a].size) != 0) continue;
      split *= mesh.axes[a].size;
      configuration.axis[a] = static_cast<std::int8_t>(l);
    }
    break;
  }
  return configuration;
}

}  // namespace turnpoint
