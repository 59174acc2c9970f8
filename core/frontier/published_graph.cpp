// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/published_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/base/discard.h"

namespace turnpoint::frontier::detail {

namespace {

void insert_sorted(std::vector<std::uint32_t>& list, std::uint32_t value) {
  list.insert(std::upper_bound(list.begin(), list.end(), value), value);
}

void erase_value(std::vector<std::uint32_t>& list, std::uint32_t value) {
  list.erase(std::find(list.begin(), list.end(), value));
}

}  // namespace

PublishedGraph::PublishedGraph(const Problem& problem) : nodes(problem.nodes.size()), living_(problem.nodes.size()) {
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].configs = problem.nodes[i].costs.size();
  for (const Edge& given : problem.edges) {
    PublishedEdge edge;
    edge.from = given.from;
    edge.to = given.to;
    for (const std::uint32_t c : given.from_class) edge.from_offset.push_back(std::size_t(c) * given.columns);
    for (const std::uint32_t c : given.to_class) edge.to_offset.push_back(c);
    add_edge(std::move(edge));
  }
  if (topological_order().size() < nodes.size()) {
    for (PublishedNode& node : nodes) node.in.clear(), node.out.clear();
    std::vector<PublishedEdge> all;
    all.swap(edges);
    for (PublishedEdge& edge : all) {
      if (edge.from > edge.to) {
        std::swap(edge.from, edge.to);
        std::swap(edge.from_offset, edge.to_offset);
      }
      add_edge(std::move(edge));
    }
  }
  if (!nodes.empty()) first_ = topological_order().front();
}

std::vector<std::uint32_t> PublishedGraph::topological_order() const {
  std::vector<std::size_t> missing(nodes.size());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t v = 0; v < nodes.size(); ++v) {
    missing[v] = nodes[v].in.size();
    if (nodes[v].alive && missing[v] == 0) ready.push(v);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const std::uint32_t e : nodes[v].out)
      if (--missing[edges[e].to] == 0) ready.push(edges[e].to);
  }
  return order;
}

bool PublishedGraph::has_detour(std::uint32_t from, std::uint32_t to) const {
  std::vector<char> seen(nodes.size(), 0);
  std::vector<std::uint32_t> open;
  for (const std::uint32_t e : nodes[from].out)
    if (edges[e].to != to) open.push_back(edges[e].to);
  while (!open.empty()) {
    const std::uint32_t v = open.back();
    open.pop_back();
    if (v == to) return true;
    if (seen[v]) continue;
    seen[v] = 1;
    for (const std::uint32_t e : nodes[v].out) open.push_back(edges[e].to);
  }
  return false;
}

bool PublishedGraph::mark_spine() {
  for (PublishedNode& node : nodes) node.marked = false;
  std::size_t marked = 0;
  for (std::uint32_t v = first_; !nodes.empty();) {
    nodes[v].marked = true;
    ++marked;
    const auto& out = nodes[v].out;
    const bool one = !out.empty() && std::all_of(out.begin(), out.end(),
                                                 [&](std::uint32_t e) { return edges[e].to == edges[out.front()].to; });
    if (!one) break;
    v = edges[out.front()].to;
  }
  return marked == living_;
}

std::uint32_t PublishedGraph::add_edge(PublishedEdge edge) {
  const auto id = static_cast<std::uint32_t>(edges.size());
  insert_sorted(nodes[edge.from].out, id);
  insert_sorted(nodes[edge.to].in, id);
  edges.push_back(std::move(edge));
  return id;
}

void PublishedGraph::remove_edge(std::uint32_t edge) {
  PublishedEdge& e = edges[edge];
  erase_value(nodes[e.from].out, edge);
  erase_value(nodes[e.to].in, edge);
  e.alive = false;
  free_memory(e.from_offset);
  free_memory(e.to_offset);
}

void PublishedGraph::remove_node(std::uint32_t node) {
  while (!nodes[node].in.empty()) remove_edge(nodes[node].in.back());
  while (!nodes[node].out.empty()) remove_edge(nodes[node].out.back());
  nodes[node].alive = false;
  --living_;
}

void PublishedGraph::move_from(std::uint32_t edge, std::uint32_t from) {
  erase_value(nodes[edges[edge].from].out, edge);
  edges[edge].from = from;
  insert_sorted(nodes[from].out, edge);
}

void PublishedGraph::move_to(std::uint32_t edge, std::uint32_t to) {
  erase_value(nodes[edges[edge].to].in, edge);
  edges[edge].to = to;
  insert_sorted(nodes[to].in, edge);
}

}  // namespace turnpoint::frontier::detail
