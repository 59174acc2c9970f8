// SPDX-License-Identifier: Apache-2.0
// Min-cut partitioners by their own libraries: co-location groups are vertices weighted by time, edges by the seconds
// of their transfers. They know nothing of order in time, which is what the comparison shows.
#include "core/search/placement/partitioners.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <vector>

#ifdef TURNPOINT_METIS
#include <metis.h>
#endif
#ifdef TURNPOINT_SCOTCH
#include <scotch.h>
#endif

namespace turnpoint::placement {
namespace {

#if defined(TURNPOINT_METIS) || defined(TURNPOINT_SCOTCH)

/// Undirected, in compressed rows, parallel edges summed up.
template <class Number>
struct Undirected {
  std::vector<Number> begin, neighbour, edge_weight, vertex_weight, part;
  std::vector<std::uint32_t> of_task;
};

/// Sums of weights stay far below 2^31, which is what the libraries count with.
Undirected<int> undirected(const TaskGraph& g) {
  Undirected<int> u;
  std::vector<std::uint32_t> of_group(g.groups.size(), kNone);
  std::vector<double> time;
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    std::uint32_t fresh = kNone;
    std::uint32_t& vertex = g.colocate[t] == kNone ? fresh : of_group[g.colocate[t]];
    if (vertex == kNone) {
      vertex = std::uint32_t(time.size());
      time.push_back(0);
    }
    u.of_task.push_back(vertex);
    time[vertex] += g.time_s[t];
  }
  struct Arc {
    std::uint32_t from, to;
    double seconds;
    bool operator<(const Arc& o) const { return from != o.from ? from < o.from : to < o.to; }
  };
  std::vector<Arc> arcs;
  double time_sum = 0, edge_sum = 0;
  for (const double t : time) time_sum += t;
  for (TaskIndex t = 0; t < g.task_count(); ++t)
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const std::uint32_t a = u.of_task[t], b = u.of_task[g.out_to[e]];
      if (a == b) continue;
      const double seconds = g.transfer_s(e, 0, g.links.size > 1 ? 1 : 0);
      arcs.push_back({a, b, seconds});
      arcs.push_back({b, a, seconds});
      edge_sum += 2 * seconds;
    }
  std::stable_sort(arcs.begin(), arcs.end());
  const double time_scale = time_sum > 0 ? 5e8 / time_sum : 0, edge_scale = edge_sum > 0 ? 5e8 / edge_sum : 0;
  for (const double t : time) u.vertex_weight.push_back(1 + int(t * time_scale));
  u.begin.assign(time.size() + 1, 0);
  for (std::size_t i = 0; i < arcs.size();) {
    double seconds = 0;
    std::size_t end = i;
    for (; end < arcs.size() && arcs[end].from == arcs[i].from && arcs[end].to == arcs[i].to; ++end)
      seconds += arcs[end].seconds;
    u.neighbour.push_back(int(arcs[i].to));
    u.edge_weight.push_back(1 + int(seconds * edge_scale));
    ++u.begin[arcs[i].from + 1];
    i = end;
  }
  for (std::size_t v = 0; v < time.size(); ++v) u.begin[v + 1] += u.begin[v];
  u.part.assign(time.size(), 0);
  return u;
}

SimulatedPlacement placed(const Undirected<int>& u, std::uint32_t devices) {
  SimulatedPlacement result;
  result.placement.devices = devices;
  for (const std::uint32_t vertex : u.of_task) result.placement.device.push_back(std::uint32_t(u.part[vertex]));
  return result;
}

#endif

[[maybe_unused]] Error not_built(const char* library) {
  return usage_error(std::string("this build has no ") + library);
}

#ifdef TURNPOINT_METIS

/// Empty, or why the method cannot run.
std::string metis_unavailable() { return {}; }

Expected<SimulatedPlacement> run_metis(const TaskGraph& graph, const PlacementRequest& request,
                                    const RunContext& context) {
  static_assert(sizeof(idx_t) == sizeof(int), "METIS with 32-bit indices");
  context.report("METIS");
  auto u = undirected(graph);
  idx_t vertices = idx_t(u.vertex_weight.size()), constraints = 1, parts = idx_t(request.devices), cut = 0;
  if (parts > 1 && vertices > parts) {
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = idx_t(request.seed & 0x7fffffff);
    const int status =
        METIS_PartGraphKway(&vertices, &constraints, u.begin.data(), u.neighbour.data(), u.vertex_weight.data(),
                            nullptr, u.edge_weight.data(), &parts, nullptr, nullptr, options, &cut, u.part.data());
    if (status != METIS_OK) return Error{ErrorCode::infeasible, "METIS found no partition", graph.name, {}};
  } else {
    for (idx_t v = 0; v < vertices; ++v) u.part[std::size_t(v)] = v % parts;
  }
  return placed(u, request.devices);
}

#else

std::string metis_unavailable() { return "this build has no METIS (libmetis-dev)"; }
Expected<SimulatedPlacement> run_metis(const TaskGraph&, const PlacementRequest&, const RunContext&) {
  return not_built("METIS");
}

#endif

#ifdef TURNPOINT_SCOTCH

std::string scotch_unavailable() { return {}; }

Expected<SimulatedPlacement> run_scotch(const TaskGraph& graph, const PlacementRequest& request,
                                     const RunContext& context) {
  static_assert(sizeof(SCOTCH_Num) == sizeof(int), "Scotch with 32-bit indices");
  // The library's random numbers are one for the process.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  context.report("Scotch");
  auto u = undirected(graph);
  const auto vertices = SCOTCH_Num(u.vertex_weight.size());
  const auto parts = SCOTCH_Num(request.devices);
  if (parts <= 1 || vertices <= parts) {
    for (SCOTCH_Num v = 0; v < vertices; ++v) u.part[std::size_t(v)] = v % parts;
    return placed(u, request.devices);
  }
  SCOTCH_randomSeed(SCOTCH_Num(request.seed & 0x7fffffff));
  SCOTCH_randomReset();
  SCOTCH_Context own;
  SCOTCH_Graph whole, partitioned;
  SCOTCH_Strat strategy;
  if (SCOTCH_contextInit(&own) != 0 || SCOTCH_graphInit(&whole) != 0 || SCOTCH_graphInit(&partitioned) != 0)
    return Error{ErrorCode::infeasible, "Scotch did not start", graph.name, {}};
  SCOTCH_stratInit(&strategy);
  // With threads of its own Scotch's answer depends on which of them is first.
  int status = SCOTCH_contextOptionSetNum(&own, SCOTCH_OPTIONNUMDETERMINISTIC, 1);
  if (status == 0) status = SCOTCH_contextThreadSpawn(&own, 1, nullptr);
  if (status == 0)
    status = SCOTCH_graphBuild(&whole, 0, vertices, u.begin.data(), nullptr, u.vertex_weight.data(), nullptr,
                               SCOTCH_Num(u.neighbour.size()), u.neighbour.data(), u.edge_weight.data());
  if (status == 0) status = SCOTCH_contextBindGraph(&own, &whole, &partitioned);
  if (status == 0) status = SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATBALANCE, parts, 0.03);
  if (status == 0) status = SCOTCH_graphPart(&partitioned, parts, &strategy, u.part.data());
  SCOTCH_stratExit(&strategy);
  SCOTCH_graphExit(&partitioned);
  SCOTCH_graphExit(&whole);
  SCOTCH_contextExit(&own);
  if (status != 0) return Error{ErrorCode::infeasible, "Scotch found no partition", graph.name, {}};
  return placed(u, request.devices);
}

#else

std::string scotch_unavailable() { return "this build has no Scotch (libscotch-dev)"; }
Expected<SimulatedPlacement> run_scotch(const TaskGraph&, const PlacementRequest&, const RunContext&) {
  return not_built("Scotch");
}

#endif

}  // namespace

PlacementMethod metis_method() {
  return {
      .name = "metis",
      .title = "METIS",
      .paper = "Karypis, Kumar: multilevel k-way partitioning (METIS 5)",
      .description = "Balanced parts of the smallest cut",
      .unavailable = &metis_unavailable,
      .run = &run_metis,
  };
}

PlacementMethod scotch_method() {
  return {
      .name = "scotch",
      .title = "Scotch",
      .paper = "Pellegrini, Roman: Scotch 7",
      .description = "Balanced parts of the smallest cut",
      .unavailable = &scotch_unavailable,
      .run = &run_scotch,
  };
}

}  // namespace turnpoint::placement
