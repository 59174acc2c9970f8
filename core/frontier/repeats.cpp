// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/repeats.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace turnpoint::frontier::detail {

/// Four independent lanes keep the multiplier busy: tables of real problems hold millions of points.
std::uint64_t hash_points(std::span<const CostPoint> points, std::uint64_t seed) {
  std::uint64_t h[4] = {seed, seed + 1, seed + 2, seed + 3};
  const auto word = [](const void* p) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    return v;
  };
  std::size_t i = 0;
  for (; i + 2 <= points.size(); i += 2) {
    h[0] = mix(h[0], word(&points[i].memory));
    h[1] = mix(h[1], word(&points[i].time));
    h[2] = mix(h[2], word(&points[i + 1].memory));
    h[3] = mix(h[3], word(&points[i + 1].time));
  }
  if (i < points.size()) {
    h[0] = mix(h[0], word(&points[i].memory));
    h[1] = mix(h[1], word(&points[i].time));
  }
  return mix(mix(mix(h[0], h[1]), h[2]), h[3] + points.size());
}

namespace {

void find_equal_lists(const std::vector<Edge>& edges, ThreadPool& pool, const std::stop_token& stop, Repeats& repeats) {
  const auto list = [&](std::size_t i) -> const std::vector<std::uint32_t>& {
    return i % 2 == 0 ? edges[i / 2].from_class : edges[i / 2].to_class;
  };
  std::vector<std::uint64_t> hashes(2 * edges.size());
  pool.for_each(
      hashes.size(),
      [&](std::size_t i, int) {
        if (stop.stop_requested()) return;
        std::uint64_t h = list(i).size();
        for (const std::uint32_t c : list(i)) h = mix(h, c);
        hashes[i] = h;
      },
      16);
  // A collision leaves a list with a number of its own.
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  std::vector<std::uint32_t> number(hashes.size());
  for (std::uint32_t i = 0; i < hashes.size(); ++i) {
    number[i] = known.emplace(hashes[i], i).first->second;
    if (number[i] != i && list(i) != list(number[i])) number[i] = i;
    (i % 2 == 0 ? repeats.from : repeats.to).push_back(number[i]);
  }
}

void find_equal_edges(const std::vector<Edge>& edges, Repeats& repeats) {
  std::map<std::tuple<const void*, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known;
  for (std::uint32_t k = 0; k < edges.size(); ++k)
    repeats.edge.push_back(
        known.try_emplace({edges[k].costs.identity(), edges[k].columns, repeats.from[k], repeats.to[k]}, k)
            .first->second);
}

/// Edges whose raw tables and used classes are equal share one EdgeTable (identical layers).
void find_equal_tables(const std::vector<Edge>& edges, ThreadPool& pool, const std::stop_token& stop,
                       Repeats& repeats) {
  std::unordered_map<const void*, std::uint32_t> first_with;
  std::vector<std::uint32_t> distinct, first, contents_of;
  for (std::uint32_t k = 0; k < edges.size(); ++k) {
    if (repeats.edge[k] != k) continue;
    const auto [it, fresh] = first_with.emplace(edges[k].costs.identity(), contents_of.size());
    if (fresh) contents_of.push_back(k);
    distinct.push_back(k);
    first.push_back(it->second);
  }
  std::vector<std::uint64_t> contents(contents_of.size()), hashes(distinct.size());
  pool.for_each(contents.size(), [&](std::size_t i, int) {
    if (!stop.stop_requested()) contents[i] = hash_points(edges[contents_of[i]].costs.points(), 1);
  });
  pool.for_each(distinct.size(), [&](std::size_t i, int) {
    if (stop.stop_requested()) return;
    const Edge& edge = edges[distinct[i]];
    std::uint64_t h = mix(contents[first[i]], edge.rows);
    std::vector<char> used(edge.rows + edge.columns);
    for (const std::uint32_t r : edge.from_class) used[r] = 1;
    for (const std::uint32_t c : edge.to_class) used[edge.rows + c] = 1;
    for (const char u : used) h = mix(h, static_cast<std::uint64_t>(u));
    hashes[i] = h;
  });
  const auto equal = [&](const Edge& x, const Edge& y) {
    if (x.rows != y.rows || x.columns != y.columns || !(x.costs == y.costs)) return false;
    std::vector<char> used(2 * (x.rows + x.columns));
    for (const std::uint32_t r : x.from_class) used[r] |= 1;
    for (const std::uint32_t r : y.from_class) used[r] |= 2;
    for (const std::uint32_t c : x.to_class) used[x.rows + c] |= 1;
    for (const std::uint32_t c : y.to_class) used[x.rows + c] |= 2;
    return std::none_of(used.begin(), used.end(), [](char u) { return u == 1 || u == 2; });
  };
  // Equal hashes are taken for equal tables and then checked, all at once; a collision leaves an edge with a table of
  // its own.
  repeats.table.resize(edges.size());
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t i = 0; i < distinct.size(); ++i)
    repeats.table[distinct[i]] = known.emplace(hashes[i], distinct[i]).first->second;
  pool.for_each(distinct.size(), [&](std::size_t i, int) {
    const std::uint32_t k = distinct[i];
    if (repeats.table[k] != k && !stop.stop_requested() && !equal(edges[k], edges[repeats.table[k]]))
      repeats.table[k] = k;
  });
  for (std::uint32_t k = 0; k < edges.size(); ++k) repeats.table[k] = repeats.table[repeats.edge[k]];
}

}  // namespace

Repeats find_repeats(const Problem& problem, ThreadPool& pool, const std::stop_token& stop) {
  Repeats repeats;
  find_equal_lists(problem.edges, pool, stop, repeats);
  find_equal_edges(problem.edges, repeats);
  find_equal_tables(problem.edges, pool, stop, repeats);
  return repeats;
}

std::vector<std::uint32_t> find_equal_nodes(const Problem& problem, const std::vector<std::vector<End>>& ends,
                                            const Repeats& repeats) {
  std::map<std::vector<std::uint64_t>, std::uint32_t> known;
  std::vector<std::uint32_t> first;
  for (std::uint32_t i = 0; i < problem.nodes.size(); ++i) {
    std::vector<std::uint64_t> key{reinterpret_cast<std::uintptr_t>(problem.nodes[i].costs.identity())};
    for (const End end : ends[i]) {
      const std::uint32_t list = end.from ? repeats.from[end.edge] : repeats.to[end.edge];
      key.push_back(std::uint64_t(repeats.table[end.edge]) << 32 | list);
      key.push_back(end.from);
    }
    first.push_back(known.try_emplace(std::move(key), i).first->second);
  }
  return first;
}

}  // namespace turnpoint::frontier::detail
