// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/graph.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/frontier/repeats.h"

namespace turnpoint::frontier::detail {

namespace {

constexpr std::uint32_t kUnused = ~std::uint32_t(0);

std::uint64_t hash_leaf(const Leaf& leaf) {
  std::uint64_t h = leaf.entries();
  for (const std::uint32_t o : leaf.offsets) h = mix(h, o);
  for (const std::int64_t m : leaf.memory) h = mix(h, static_cast<std::uint64_t>(m));
  for (const double t : leaf.time) {
    std::uint64_t v;
    std::memcpy(&v, &t, 8);
    h = mix(h, v);
  }
  return h;
}

/// Stores each different leaf once.
class LeafStore {
 public:
  explicit LeafStore(std::vector<std::shared_ptr<const Leaf>>& leaves) : leaves_(leaves) {}
  std::uint32_t add(Leaf&& leaf) {
    const std::uint64_t h = hash_leaf(leaf);
    const auto range = known_.equal_range(h);
    for (auto it = range.first; it != range.second; ++it)
      if (*leaves_[it->second] == leaf) return it->second;
    const auto id = static_cast<std::uint32_t>(leaves_.size());
    leaves_.push_back(std::make_shared<const Leaf>(std::move(leaf)));
    known_.emplace(h, id);
    return id;
  }

 private:
  std::vector<std::shared_ptr<const Leaf>>& leaves_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_;
};

struct Item {
  CostPoint cost;
  std::uint32_t config;
  std::uint32_t alternative;
};

/// Algorithm 1 on one entry; ties keep the lowest configuration and alternative.
void reduce_items(std::vector<Item>& items) {
  if (items.size() > 1)
    std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
      if (x.cost.memory != y.cost.memory) return x.cost.memory < y.cost.memory;
      if (x.cost.time != y.cost.time) return x.cost.time < y.cost.time;
      return x.config != y.config ? x.config < y.config : x.alternative < y.alternative;
    });
  double best = std::numeric_limits<double>::infinity();
  std::size_t kept = 0;
  for (const Item& item : items)
    if (item.cost.time < best) {
      best = item.cost.time;
      items[kept++] = item;
    }
  items.resize(kept);
}

/// The table of an edge after equal rows and columns were merged and unused ones dropped.
struct EdgeTable {
  std::vector<std::uint32_t> row_class, column_class;  ///< original -> merged, kUnused where no configuration uses it
  std::uint32_t rows = 0, columns = 0;
  Leaf leaf;
};

bool same_list(std::span<const CostPoint> a, std::span<const CostPoint> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Groups lines (rows or columns) of the table with equal content; `entry(line, i)` is the index of entry i of a line.
template <class EntryIndex>
std::uint32_t merge_lines(const CostTable& costs, const std::vector<std::uint64_t>& entry_hash,
                          const std::vector<char>& used, const std::vector<std::uint32_t>& across, EntryIndex entry,
                          std::vector<std::uint32_t>& class_of, std::vector<std::uint32_t>& representative) {
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;
  class_of.assign(used.size(), kUnused);
  for (std::uint32_t line = 0; line < used.size(); ++line) {
    if (!used[line]) continue;
    std::uint64_t h = 0;
    for (const std::uint32_t i : across) h = mix(h, entry_hash[entry(line, i)]);
    const auto range = known.equal_range(h);
    for (auto it = range.first; it != range.second && class_of[line] == kUnused; ++it) {
      const std::uint32_t other = representative[it->second];
      if (std::all_of(across.begin(), across.end(),
                      [&](std::uint32_t i) { return same_list(costs[entry(line, i)], costs[entry(other, i)]); }))
        class_of[line] = it->second;
    }
    if (class_of[line] != kUnused) continue;
    class_of[line] = static_cast<std::uint32_t>(representative.size());
    known.emplace(h, class_of[line]);
    representative.push_back(line);
  }
  return static_cast<std::uint32_t>(representative.size());
}

EdgeTable make_edge_table(const Edge& edge) {
  EdgeTable table;
  std::vector<char> row_used(edge.rows), column_used(edge.columns);
  for (const std::uint32_t r : edge.from_class) row_used[r] = 1;
  for (const std::uint32_t c : edge.to_class) column_used[c] = 1;
  std::vector<std::uint64_t> entry_hash(edge.costs.size());
  for (std::size_t i = 0; i < entry_hash.size(); ++i) entry_hash[i] = hash_points(edge.costs[i], 7);
  const std::size_t columns = edge.columns;
  std::vector<std::uint32_t> used_columns, rows, merged_columns;
  for (std::uint32_t c = 0; c < columns; ++c)
    if (column_used[c]) used_columns.push_back(c);
  table.rows = merge_lines(
      edge.costs, entry_hash, row_used, used_columns, [&](std::size_t r, std::size_t c) { return r * columns + c; },
      table.row_class, rows);
  table.columns = merge_lines(
      edge.costs, entry_hash, column_used, rows, [&](std::size_t c, std::size_t r) { return r * columns + c; },
      table.column_class, merged_columns);
  std::vector<Item> items;
  Leaf& leaf = table.leaf;
  leaf.offsets.reserve(std::size_t(table.rows) * table.columns + 1);
  for (const std::uint32_t r : rows)
    for (const std::uint32_t c : merged_columns) {
      items.clear();
      std::uint32_t alternative = 0;
      for (const CostPoint& p : edge.costs[r * columns + c]) items.push_back({p, 0, alternative++});
      reduce_items(items);
      for (const Item& item : items) {
        leaf.memory.push_back(item.cost.memory);
        leaf.time.push_back(item.cost.time);
        leaf.alternative.push_back(static_cast<std::uint16_t>(item.alternative));
      }
      leaf.offsets.push_back(static_cast<std::uint32_t>(leaf.memory.size()));
    }
  return table;
}

/// States of one node: distinct tuples of classes over its edge ends.
struct NodeStates {
  std::vector<std::uint32_t> state_of;        ///< configuration -> state
  std::vector<std::uint32_t> representative;  ///< state -> first configuration with it
  Leaf leaf;
  Origin origin;
};

NodeStates make_states(const Node& node, const std::vector<std::vector<std::uint32_t>>& classes) {
  NodeStates result;
  const auto configurations = static_cast<std::uint32_t>(node.costs.size());
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> tuple(classes.size());
  for (std::uint32_t c = 0; c < configurations; ++c) {
    for (std::size_t e = 0; e < classes.size(); ++e) tuple[e] = classes[e][c];
    const auto [it, fresh] = known.emplace(tuple, static_cast<std::uint32_t>(result.representative.size()));
    if (fresh) result.representative.push_back(c);
    result.state_of.push_back(it->second);
  }
  std::vector<std::vector<Item>> lists(result.representative.size());
  for (std::uint32_t c = 0; c < configurations; ++c) {
    std::uint32_t alternative = 0;
    for (const CostPoint& p : node.costs[c]) lists[result.state_of[c]].push_back({p, c, alternative++});
  }
  for (auto& list : lists) {
    reduce_items(list);
    for (const Item& item : list) {
      result.leaf.memory.push_back(item.cost.memory);
      result.leaf.time.push_back(item.cost.time);
      result.origin.config.push_back(item.config);
      result.origin.alternative.push_back(static_cast<std::uint16_t>(item.alternative));
    }
    result.leaf.offsets.push_back(static_cast<std::uint32_t>(result.leaf.memory.size()));
  }
  return result;
}

}  // namespace

bool Graph::same_structure(const Graph& other) const {
  return std::equal(variables.begin(), variables.end(), other.variables.begin(), other.variables.end(),
                    [](const Variable& x, const Variable& y) { return x.states == y.states; }) &&
         std::equal(factors.begin(), factors.end(), other.factors.begin(), other.factors.end(),
                    [](const Factor& x, const Factor& y) {
                      return x.a == y.a && x.b == y.b && x.rows == y.rows && x.columns == y.columns &&
                             x.row_of == y.row_of && x.column_of == y.column_of;
                    });
}

Graph build_graph(const Problem& problem, ThreadPool& pool, std::stop_token stop) {
  Graph graph;
  const std::size_t nodes = problem.nodes.size(), edges = problem.edges.size();
  const Repeats repeats = find_repeats(problem, pool, stop);
  std::vector<EdgeTable> tables(edges);
  pool.for_each(edges, [&](std::size_t k, int) {
    if (repeats.table[k] == k && !stop.stop_requested()) tables[k] = make_edge_table(problem.edges[k]);
  });
  if (stop.stop_requested()) return {};
  std::vector<std::vector<End>> ends(nodes);
  for (std::uint32_t k = 0; k < edges; ++k) {
    ends[problem.edges[k].from].push_back({k, true});
    ends[problem.edges[k].to].push_back({k, false});
  }
  const std::vector<std::uint32_t> same = find_equal_nodes(problem, ends, repeats);
  std::vector<NodeStates> states(nodes);  // of the first of equal nodes
  pool.for_each(nodes, [&](std::size_t i, int) {
    if (same[i] != i || stop.stop_requested()) return;
    std::vector<std::vector<std::uint32_t>> classes;  // per end and configuration
    for (const End end : ends[i]) {
      const Edge& edge = problem.edges[end.edge];
      const EdgeTable& table = tables[repeats.table[end.edge]];
      auto& own = classes.emplace_back(end.from ? edge.from_class : edge.to_class);
      for (auto& c : own) c = (end.from ? table.row_class : table.column_class)[c];
    }
    states[i] = make_states(problem.nodes[i], classes);
  });
  if (stop.stop_requested()) return {};

  LeafStore store(graph.leaves);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    NodeStates& own = states[same[i]];
    const auto count = static_cast<std::uint32_t>(own.representative.size());
    graph.variables.push_back(
        {count, same[i] == i ? store.add(std::move(own.leaf)) : graph.variables[same[i]].leaf, i});
    graph.origins.push_back(own.origin);
    graph.state_of.push_back(own.state_of);
  }
  graph.factors.resize(edges);
  for (std::size_t k = 0; k < edges; ++k) {
    EdgeTable& table = tables[repeats.table[k]];
    graph.factors[k] = {
        problem.edges[k].from,
        problem.edges[k].to,
        {},
        {},
        table.rows,
        table.columns,
        repeats.table[k] == k ? store.add(std::move(table.leaf)) : graph.factors[repeats.table[k]].leaf};
  }
  pool.for_each(
      edges,
      [&](std::size_t k, int) {
        const Edge& edge = problem.edges[k];
        const EdgeTable& table = tables[repeats.table[k]];
        Factor& factor = graph.factors[k];
        const auto &rows = states[same[edge.from]].representative, &columns = states[same[edge.to]].representative;
        factor.row_of.reserve(rows.size());
        factor.column_of.reserve(columns.size());
        for (const std::uint32_t c : rows) factor.row_of.push_back(table.row_class[edge.from_class[c]]);
        for (const std::uint32_t c : columns) factor.column_of.push_back(table.column_class[edge.to_class[c]]);
      },
      16);
  return graph;
}

namespace {

/// Renumbers classes densely in rising order; returns the old number of each.
std::vector<std::uint32_t> renumber(std::vector<std::uint32_t>& classes) {
  std::vector<std::uint32_t> used = classes;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (std::uint32_t& c : classes)
    c = static_cast<std::uint32_t>(std::lower_bound(used.begin(), used.end(), c) - used.begin());
  return used;
}

void append_entry(const Leaf& whole, std::size_t entry, Leaf& part) {
  for (std::uint32_t i = whole.offsets[entry]; i < whole.offsets[entry + 1]; ++i) {
    part.memory.push_back(whole.memory[i]);
    part.time.push_back(whole.time[i]);
    if (!whole.alternative.empty()) part.alternative.push_back(whole.alternative[i]);
  }
  part.offsets.push_back(static_cast<std::uint32_t>(part.memory.size()));
}

}  // namespace

Graph restrict_states(const Graph& graph, const std::vector<std::vector<std::uint32_t>>& allowed) {
  Graph result;
  result.variables = graph.variables;
  result.factors = graph.factors;
  result.leaves = graph.leaves;
  result.origins = graph.origins;
  result.state_of = graph.state_of;
  using Lines = std::vector<std::uint32_t>;
  std::map<std::tuple<std::uint32_t, Lines, Lines>, std::uint32_t> known;  // equal parts of equal leaves are one
  for (std::size_t v = 0; v < allowed.size(); ++v) {
    if (allowed[v].empty()) continue;
    Variable& variable = result.variables[v];
    const Leaf& whole = *graph.leaves[variable.leaf];
    if (variable.origin != kNoOrigin) {
      const Origin& from = graph.origins[variable.origin];
      Origin origin;
      for (const std::uint32_t s : allowed[v])
        for (std::uint32_t i = whole.offsets[s]; i < whole.offsets[s + 1]; ++i) {
          origin.config.push_back(from.config[i]);
          origin.alternative.push_back(from.alternative[i]);
        }
      result.origins[variable.origin] = std::move(origin);
    }
    const auto [it, fresh] =
        known.try_emplace({variable.leaf, allowed[v], Lines()}, static_cast<std::uint32_t>(result.leaves.size()));
    if (fresh) {
      Leaf part;
      for (const std::uint32_t s : allowed[v]) append_entry(whole, s, part);
      result.leaves.push_back(std::make_shared<const Leaf>(std::move(part)));
    }
    if (v < result.state_of.size())
      for (std::uint32_t& state : result.state_of[v]) {
        const auto at = std::lower_bound(allowed[v].begin(), allowed[v].end(), state);
        state = at == allowed[v].end() || *at != state ? kUnused : static_cast<std::uint32_t>(at - allowed[v].begin());
      }
    variable.states = static_cast<std::uint32_t>(allowed[v].size());
    variable.leaf = it->second;
  }
  const auto pick = [&](std::uint32_t v, std::vector<std::uint32_t>& map) {
    if (v >= allowed.size() || allowed[v].empty()) return;
    std::vector<std::uint32_t> part;
    for (const std::uint32_t s : allowed[v]) part.push_back(map[s]);
    map = std::move(part);
  };
  for (Factor& f : result.factors) {
    pick(f.a, f.row_of);
    pick(f.b, f.column_of);
    const Lines rows = renumber(f.row_of), columns = renumber(f.column_of);
    if (rows.size() == f.rows && columns.size() == f.columns) continue;
    const auto [it, fresh] =
        known.try_emplace({f.leaf, rows, columns}, static_cast<std::uint32_t>(result.leaves.size()));
    if (fresh) {
      Leaf part;
      for (const std::uint32_t r : rows)
        for (const std::uint32_t c : columns) append_entry(*graph.leaves[f.leaf], std::size_t(r) * f.columns + c, part);
      result.leaves.push_back(std::make_shared<const Leaf>(std::move(part)));
    }
    f.leaf = it->second;
    f.rows = static_cast<std::uint32_t>(rows.size());
    f.columns = static_cast<std::uint32_t>(columns.size());
  }
  return result;
}

}  // namespace turnpoint::frontier::detail
