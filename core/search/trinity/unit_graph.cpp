// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/search/placement/sequence.h"
#include "core/search/placement/units.h"
#include "core/search/trinity/problem.h"

namespace turnpoint::trinity {

namespace {

void number_units(std::vector<std::uint32_t>& of_task, std::size_t& count) {
  std::vector<std::uint32_t> number(count, kNone);
  std::uint32_t next = 0;
  for (std::uint32_t& unit : of_task) {
    if (number[unit] == kNone) number[unit] = next++;
    unit = number[unit];
  }
  count = next;
}

UnitGraph graph_of_units(const TaskGraph& g, std::vector<std::uint32_t> of_task, std::size_t count) {
  number_units(of_task, count);
  UnitGraph made;
  made.time_s.resize(count);
  made.output_bytes.resize(count);
  made.persistent_bytes.resize(count);
  made.place.resize(count);
  std::vector<double> tasks(count);
  const placement::Sequence line = placement::line_up(g, placement::SequenceOrder::topological);
  const double last = double(std::max<std::size_t>(line.time_s.size(), 2) - 1);
  for (TaskIndex t = 0; t < g.task_count(); ++t) {
    const std::uint32_t unit = of_task[t];
    made.time_s[unit] += g.time_s[t];
    made.output_bytes[unit] += double(g.output_bytes[t]);
    made.persistent_bytes[unit] += double(g.persistent_bytes[t]);
    made.place[unit] += double(line.unit[t]) / last;
    tasks[unit] += 1;
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e)
      if (of_task[g.out_to[e]] != unit)
        made.edges.push_back({unit, of_task[g.out_to[e]], double(g.out_bytes[e]),
                              g.links.latency + double(g.out_bytes[e]) / g.links.bandwidth});
  }
  for (std::size_t u = 0; u < count; ++u) made.place[u] /= tasks[u];
  made.of_task = std::move(of_task);
  std::stable_sort(made.edges.begin(), made.edges.end(), [](const UnitEdge& a, const UnitEdge& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < made.edges.size(); ++i) {
    const UnitEdge& edge = made.edges[i];
    if (kept > 0 && made.edges[kept - 1].from == edge.from && made.edges[kept - 1].to == edge.to) {
      made.edges[kept - 1].bytes += edge.bytes;
      made.edges[kept - 1].seconds += edge.seconds;
    } else
      made.edges[kept++] = edge;
  }
  made.edges.resize(kept);
  return made;
}

/// Which units join which; `into[u]` is another unit or u itself.
UnitGraph joined(const TaskGraph& g, const UnitGraph& units, const std::vector<std::uint32_t>& into) {
  std::vector<std::uint32_t> root(into.size());
  for (std::uint32_t u = 0; u < into.size(); ++u) {
    std::uint32_t r = u;
    while (into[r] != r) r = into[r];
    root[u] = r;
  }
  std::vector<std::uint32_t> of_task = units.of_task;
  for (std::uint32_t& unit : of_task) unit = root[unit];
  return graph_of_units(g, std::move(of_task), units.count());
}

/// A unit with one reader joins it where it is that one's only maker.
std::vector<std::uint32_t> chains(const UnitGraph& units, std::size_t& left_to_join) {
  std::vector<std::uint32_t> out(units.count()), in(units.count()), reader(units.count()), into(units.count());
  std::iota(into.begin(), into.end(), 0u);
  for (const UnitEdge& edge : units.edges) {
    ++out[edge.from];
    ++in[edge.to];
    reader[edge.from] = edge.to;
  }
  for (std::uint32_t u = 0; u < units.count() && left_to_join > 0; ++u) {
    if (out[u] != 1 || in[reader[u]] != 1) continue;
    std::uint32_t end = reader[u];
    while (into[end] != end) end = into[end];
    if (end == u) continue;  // two units that read each other
    into[u] = reader[u];
    --left_to_join;
  }
  return into;
}

/// Which units join which, and which of them are in a pair already.
struct Matching {
  explicit Matching(std::size_t units) : into(units), taken(units) { std::iota(into.begin(), into.end(), 0u); }

  /// By the order of these edges, each unit in one pair at most, none longer than `longest`.
  void by_edges(const UnitGraph& units, const std::vector<std::uint32_t>& order, double longest, std::size_t& left) {
    for (const std::uint32_t e : order) {
      const UnitEdge& edge = units.edges[e];
      if (left == 0) break;
      if (taken[edge.from] || taken[edge.to] || units.time_s[edge.from] + units.time_s[edge.to] > longest) continue;
      join(edge.from, edge.to, left);
    }
  }
  /// Neighbours along the layers.
  void by_place(const UnitGraph& units, std::size_t& left) {
    std::vector<std::uint32_t> line(units.count());
    std::iota(line.begin(), line.end(), 0u);
    std::stable_sort(line.begin(), line.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return units.place[a] < units.place[b]; });
    for (std::size_t i = 0; i + 1 < line.size() && left > 0; i += 2)
      if (!taken[line[i]] && !taken[line[i + 1]]) join(line[i], line[i + 1], left);
  }

  std::vector<std::uint32_t> into;
  std::vector<std::uint8_t> taken;

 private:
  void join(std::uint32_t unit, std::uint32_t other, std::size_t& left) {
    taken[unit] = taken[other] = 1;
    into[unit] = other;
    --left;
  }
};

/// Edges by falling rating.
std::vector<std::uint32_t> falling(const std::vector<double>& rating) {
  std::vector<std::uint32_t> order(rating.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return rating[a] > rating[b]; });
  return order;
}

/// Pairs by falling exchange, as multilevel partitioners match (Karypis and Kumar), none of them longer than four times
/// a mean unit; where there is no pair, neighbours along the layers.
std::vector<std::uint32_t> heaviest_pairs(const UnitGraph& units, std::size_t most, std::size_t left_to_join) {
  Matching matching(units.count());
  const double total = std::accumulate(units.time_s.begin(), units.time_s.end(), 0.0);
  std::vector<double> bytes;
  for (const UnitEdge& edge : units.edges) bytes.push_back(edge.bytes);
  const std::size_t begun = left_to_join;
  matching.by_edges(units, falling(bytes), 4 * total / double(most), left_to_join);
  if (begun - left_to_join < std::max<std::size_t>(1, begun / 10)) matching.by_place(units, left_to_join);
  return matching.into;
}

/// Pairs that exchange most for what they compute, each unit in one pair at most, none of them longer than `longest`.
/// By the exchange alone the longest units would take all others, whatever lies between them; so it is squared and
/// divided by what both compute (Sanders and Schulz, Engineering multilevel graph partitioning algorithms, 2011).
std::vector<std::uint32_t> pairs(const UnitGraph& units, double longest, std::size_t& left_to_join) {
  Matching matching(units.count());
  const double total = std::accumulate(units.time_s.begin(), units.time_s.end(), 0.0);
  // What takes no time has a hundredth of a mean unit's, so that a rating is finite, and of two pairs that exchange as
  // much the shorter is joined.
  constexpr double kLeast = 0.01;
  const double least = std::max(kLeast * total / double(units.count()), 1e-12);
  std::vector<double> rating;
  for (const UnitEdge& edge : units.edges)
    rating.push_back(edge.seconds * edge.seconds /
                     ((units.time_s[edge.from] + least) * (units.time_s[edge.to] + least)));
  matching.by_edges(units, falling(rating), longest, left_to_join);
  return matching.into;
}

/// Where nothing is left that exchanges anything.
std::vector<std::uint32_t> neighbours(const UnitGraph& units, std::size_t left_to_join) {
  Matching matching(units.count());
  matching.by_place(units, left_to_join);
  return matching.into;
}

// Of the mean of as many as are asked for, so that pieces can be shared out evenly; longer, by a fifth at a time, where
// no pair is as short.
constexpr double kLongestPiece = 2, kLonger = 1.2;

UnitGraph at_most(const TaskGraph& graph, UnitGraph units, std::size_t most) {
  most = std::max<std::size_t>(most, 1);
  if (units.count() > most) {
    std::size_t left = units.count() - most;
    units = joined(graph, units, chains(units, left));
  }
  const double total = std::accumulate(units.time_s.begin(), units.time_s.end(), 0.0);
  double longest = kLongestPiece * total / double(most);
  while (units.count() > most) {
    std::size_t left = units.count() - most;
    const std::size_t needed = left;
    const auto into = pairs(units, longest, left);
    if (left < needed) units = joined(graph, units, into);
    // Rounds that join less than a twentieth of what is needed would be many, as where all read one tensor.
    if (needed - left >= std::max<std::size_t>(1, needed / 20)) continue;
    if (longest > 0 && longest <= total)
      longest *= kLonger;
    else if (units.count() > most)
      units = joined(graph, units, neighbours(units, units.count() - most));
  }
  return units;
}

}  // namespace

UnitGraph make_unit_graph(const TaskGraph& graph, std::size_t most, Joining joining) {
  const placement::Units first = placement::make_units(graph);
  UnitGraph units = graph_of_units(graph, first.of_task, first.count());
  if (joining == Joining::by_rating) return at_most(graph, std::move(units), most);
  most = std::max<std::size_t>(most, 1);
  if (units.count() > most) {
    std::size_t left = units.count() - most;
    units = joined(graph, units, chains(units, left));
  }
  while (units.count() > most) units = joined(graph, units, heaviest_pairs(units, most, units.count() - most));
  return units;
}

std::vector<std::uint32_t> joined_pieces(const TaskGraph& graph, const UnitGraph& units, std::size_t most) {
  const UnitGraph pieces = at_most(graph, units, most);
  std::vector<std::uint32_t> line(pieces.count()), number(pieces.count()), of_unit(units.count());
  std::iota(line.begin(), line.end(), 0u);
  std::stable_sort(line.begin(), line.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return pieces.place[a] < pieces.place[b]; });
  for (std::uint32_t i = 0; i < line.size(); ++i) number[line[i]] = i;
  for (TaskIndex t = 0; t < graph.task_count(); ++t) of_unit[units.of_task[t]] = number[pieces.of_task[t]];
  return of_unit;
}

}  // namespace turnpoint::trinity
