// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "core/frontier/published_graph.h"
#include "core/frontier/published_lists.h"

namespace turnpoint::frontier {

namespace {

using namespace detail;
using Term = PublishedStore::Term;

enum class Tried { no, done, stopped };

class Run {
 public:
  Run(const Problem& problem, const PublishedOptions& options, ThreadPool& pool, const Control& control,
      PublishedReport& report)
      : problem_(problem),
        options_(options),
        pool_(pool),
        report_(report),
        graph_(problem),
        store_(pool, control, options) {}

  Expected<Answer> answer() {
    set_leaves();
    const bool done = eliminate() && finish();
    report_.products = store_.products();
    if (!done) return stopped();
    return collect();
  }

 private:
  void set_leaves() {
    std::map<const void*, std::shared_ptr<PublishedLists>> known;
    const auto leaf = [&](const CostTable& costs) {
      auto& lists = known[costs.identity()];
      if (!lists) lists = published_leaf(costs);
      return lists;
    };
    for (std::uint32_t v = 0; v < problem_.nodes.size(); ++v)
      graph_.nodes[v].table = store_.add_leaf(PublishedStore::Kind::node, v, leaf(problem_.nodes[v].costs));
    for (std::uint32_t e = 0; e < problem_.edges.size(); ++e)
      graph_.edges[e].table = store_.add_leaf(PublishedStore::Kind::edge, e, leaf(problem_.edges[e].costs));
    constant_ = store_.add_unit();
  }

  bool whole_is_left() const { return options_.algorithm == PublishedAlgorithm::elimination; }

  // Algorithm 2. False where the run has to end.
  bool eliminate() {
    const std::size_t all = graph_.living();
    while (true) {
      const double removed = double(all - graph_.living());
      store_.set_progress("published eliminations", removed / double(std::max<std::size_t>(all, 1)),
                          (removed + 1) / double(std::max<std::size_t>(all, 1)));
      where_ = "with " + std::to_string(graph_.living()) + " of " + std::to_string(all) + " operators left";
      Tried tried = edge_elimination();
      if (tried == Tried::no) {
        const bool only_spine = !whole_is_left() && graph_.mark_spine();
        if (only_spine || (whole_is_left() && graph_.living() <= 2)) return true;
        tried = node_elimination();
      }
      if (tried == Tried::no) tried = fold();
      if (tried == Tried::no) tried = branch_elimination();
      if (tried == Tried::no) tried = heuristic_elimination();
      if (tried == Tried::stopped) return false;
      if (tried == Tried::no) return true;
    }
  }

  // Eq. 5, one pair of parallel edges at a time.
  Tried edge_elimination() {
    for (std::uint32_t v = 0; v < graph_.nodes.size(); ++v) {
      const auto& out = graph_.nodes[v].out;
      for (std::size_t i = 0; i < out.size(); ++i)
        for (std::size_t k = i + 1; k < out.size(); ++k)
          if (graph_.edges[out[i]].to == graph_.edges[out[k]].to) return merge_edges(out[i], out[k]);
    }
    return Tried::no;
  }

  Tried merge_edges(std::uint32_t first, std::uint32_t second) {
    const PublishedEdge &x = graph_.edges[first], &y = graph_.edges[second];
    const std::size_t columns = x.to_offset.size();
    const std::array inputs{x.table, y.table};
    const std::uint32_t table =
        store_.combine(inputs, x.from_offset.size() * columns, [&](std::size_t entry, std::vector<Term>& terms) {
          const std::size_t a = entry / columns, b = entry % columns;
          terms.push_back({x.from_offset[a] + x.to_offset[b], y.from_offset[a] + y.to_offset[b], 0});
        });
    if (table == kNoTable) return Tried::stopped;
    PublishedEdge merged = plain_edge(x.from, x.to, table);
    graph_.remove_edge(first);
    graph_.remove_edge(second);
    graph_.add_edge(std::move(merged));
    ++report_.edges;
    return Tried::done;
  }

  PublishedEdge plain_edge(std::uint32_t from, std::uint32_t to, std::uint32_t table) const {
    PublishedEdge edge;
    edge.from = from;
    edge.to = to;
    edge.table = table;
    const std::size_t rows = graph_.nodes[from].configs, columns = graph_.nodes[to].configs;
    for (std::size_t a = 0; a < rows; ++a) edge.from_offset.push_back(a * columns);
    for (std::size_t b = 0; b < columns; ++b) edge.to_offset.push_back(b);
    return edge;
  }

  // Eq. 4.
  Tried node_elimination() {
    for (std::uint32_t v = 0; v < graph_.nodes.size(); ++v) {
      const PublishedNode& node = graph_.nodes[v];
      if (!node.alive || node.marked || node.in.size() != 1 || node.out.size() != 1) continue;
      const PublishedEdge &in = graph_.edges[node.in[0]], &out = graph_.edges[node.out[0]];
      const std::size_t columns = out.to_offset.size();
      const std::array inputs{in.table, node.table, out.table};
      const std::uint32_t table =
          store_.combine(inputs, in.from_offset.size() * columns, [&](std::size_t entry, std::vector<Term>& terms) {
            const std::size_t a = entry / columns, c = entry % columns;
            for (std::size_t b = 0; b < node.configs; ++b)
              terms.push_back({in.from_offset[a] + in.to_offset[b], b, out.from_offset[b] + out.to_offset[c]});
          });
      if (table == kNoTable) return Tried::stopped;
      PublishedEdge merged = plain_edge(in.from, out.to, table);
      graph_.remove_node(v);
      graph_.add_edge(std::move(merged));
      ++report_.nodes;
      return Tried::done;
    }
    return Tried::no;
  }

  // An operator with one neighbour, or with none, is minimised into it, or into the constant.
  Tried fold() {
    for (std::uint32_t v = 0; v < graph_.nodes.size(); ++v) {
      const PublishedNode& node = graph_.nodes[v];
      if (!node.alive || node.marked || node.in.size() + node.out.size() > 1) continue;
      std::uint32_t table = kNoTable;
      if (node.in.empty() && node.out.empty()) {
        table = store_.combine(std::array{constant_, node.table}, 1, [&](std::size_t, std::vector<Term>& terms) {
          for (std::size_t a = 0; a < node.configs; ++a) terms.push_back({0, a, 0});
        });
        if (table != kNoTable) constant_ = table;
      } else {
        const PublishedEdge& edge = graph_.edges[node.in.empty() ? node.out[0] : node.in[0]];
        const auto &own = node.in.empty() ? edge.from_offset : edge.to_offset,
                   &others = node.in.empty() ? edge.to_offset : edge.from_offset;
        PublishedNode& other = graph_.nodes[node.in.empty() ? edge.to : edge.from];
        table = store_.combine(std::array{node.table, edge.table, other.table}, other.configs,
                               [&](std::size_t b, std::vector<Term>& terms) {
                                 for (std::size_t a = 0; a < node.configs; ++a)
                                   terms.push_back({a, own[a] + others[b], b});
                               });
        if (table != kNoTable) other.table = table;
      }
      if (table == kNoTable) return Tried::stopped;
      graph_.remove_node(v);
      ++report_.folds;
      return Tried::done;
    }
    return Tried::no;
  }

  // Eq. 6: i is merged into j.
  Tried branch_elimination() {
    for (const std::uint32_t j : graph_.topological_order()) {
      if (graph_.nodes[j].in.size() < 2) continue;
      for (const std::uint32_t e : graph_.nodes[j].in) {
        const std::uint32_t i = graph_.edges[e].from;
        if (graph_.nodes[i].marked || graph_.nodes[i].configs > options_.max_merged_configs / graph_.nodes[j].configs ||
            graph_.has_detour(i, j))
          continue;
        return merge_branch(i, e, j);
      }
    }
    return Tried::no;
  }

  Tried merge_branch(std::uint32_t i, std::uint32_t e, std::uint32_t j) {
    const PublishedEdge& edge = graph_.edges[e];
    const std::size_t width = graph_.nodes[j].configs, pairs = graph_.nodes[i].configs * width;
    const std::array inputs{graph_.nodes[i].table, edge.table, graph_.nodes[j].table};
    const std::uint32_t table = store_.combine(inputs, pairs, [&](std::size_t pair, std::vector<Term>& terms) {
      const std::size_t a = pair / width, b = pair % width;
      terms.push_back({a, edge.from_offset[a] + edge.to_offset[b], b});
    });
    if (table == kNoTable) return Tried::stopped;
    graph_.remove_edge(e);
    const auto lift = [&](std::vector<std::size_t>& offset, bool first) {
      std::vector<std::size_t> lifted(pairs);
      for (std::size_t pair = 0; pair < pairs; ++pair) lifted[pair] = offset[first ? pair / width : pair % width];
      offset = std::move(lifted);
    };
    for (const std::uint32_t k : graph_.nodes[j].in) lift(graph_.edges[k].to_offset, false);
    for (const std::uint32_t k : graph_.nodes[j].out) lift(graph_.edges[k].from_offset, false);
    for (const std::uint32_t k : std::vector(graph_.nodes[i].in)) {
      lift(graph_.edges[k].to_offset, true);
      graph_.move_to(k, j);
    }
    for (const std::uint32_t k : std::vector(graph_.nodes[i].out)) {
      lift(graph_.edges[k].from_offset, true);
      graph_.move_from(k, j);
    }
    graph_.remove_node(i);
    graph_.nodes[j].table = table;
    graph_.nodes[j].configs = pairs;
    ++report_.branches;
    return Tried::done;
  }

  // Eq. 7, with what its printed form loses.
  Tried heuristic_elimination() {
    std::uint32_t chosen = kNoTable;
    for (std::uint32_t v = 0; v < graph_.nodes.size(); ++v) {
      const PublishedNode& node = graph_.nodes[v];
      if (!node.alive || node.marked) continue;
      const auto rank = [&](std::uint32_t u) {
        return std::pair(graph_.nodes[u].in.empty(), graph_.nodes[u].out.size());
      };
      if (chosen == kNoTable || rank(v) > rank(chosen)) chosen = v;
    }
    if (chosen == kNoTable) return Tried::no;
    const std::size_t fixed = fixed_configuration(chosen);
    const PublishedNode& node = graph_.nodes[chosen];
    const std::uint32_t table =
        store_.combine(std::array{constant_, node.table}, 1, [&](std::size_t, std::vector<Term>& terms) {
          terms.push_back({0, fixed, 0});
        });
    if (table == kNoTable) return Tried::stopped;
    constant_ = table;
    for (const bool incoming : {true, false})
      for (const std::uint32_t e : incoming ? node.in : node.out) {
        const PublishedEdge& edge = graph_.edges[e];
        PublishedNode& other = graph_.nodes[incoming ? edge.from : edge.to];
        const std::size_t own = incoming ? edge.to_offset[fixed] : edge.from_offset[fixed];
        const auto& others = incoming ? edge.from_offset : edge.to_offset;
        const std::uint32_t folded = store_.combine(std::array{edge.table, other.table}, other.configs,
                                                    [&](std::size_t b, std::vector<Term>& terms) {
                                                      terms.push_back({own + others[b], b, 0});
                                                    });
        if (folded == kNoTable) return Tried::stopped;
        other.table = folded;
      }
    graph_.remove_node(chosen);
    ++report_.heuristics;
    return Tried::done;
  }

  // Least memory and least time with this configuration, its edges' cheapest entries included; infinite if forbidden.
  std::pair<double, double> least(std::uint32_t v, std::size_t config) const {
    constexpr double kForbidden = std::numeric_limits<double>::infinity();
    const auto add = [](std::pair<double, double>& sum, double memory, double time) {
      sum.first += memory;
      sum.second += time;
    };
    const auto of_entry = [&](std::uint32_t table, std::size_t entry) {
      const auto memory = store_.memory(table, entry);
      return memory.empty() ? std::pair(kForbidden, kForbidden)
                            : std::pair(double(memory.front()), store_.time(table, entry).back());
    };
    std::pair<double, double> sum = of_entry(graph_.nodes[v].table, config);
    for (const bool incoming : {true, false})
      for (const std::uint32_t e : incoming ? graph_.nodes[v].in : graph_.nodes[v].out) {
        const PublishedEdge& edge = graph_.edges[e];
        const std::size_t own = incoming ? edge.to_offset[config] : edge.from_offset[config];
        const PublishedNode& other = graph_.nodes[incoming ? edge.from : edge.to];
        const auto& others = incoming ? edge.from_offset : edge.to_offset;
        std::pair best(kForbidden, kForbidden);
        for (std::size_t b = 0; b < others.size(); ++b) {
          if (store_.memory(other.table, b).empty()) continue;
          const auto found = of_entry(edge.table, own + others[b]);
          best = {std::min(best.first, found.first), std::min(best.second, found.second)};
        }
        add(sum, best.first, best.second);
      }
    return sum;
  }

  std::size_t fixed_configuration(std::uint32_t v) const {
    std::vector<std::pair<double, double>> costs;
    double memory = 0, time = 0;
    for (std::size_t c = 0; c < graph_.nodes[v].configs; ++c) {
      costs.push_back(least(v, c));
      if (!std::isfinite(costs.back().first)) continue;
      memory = std::max(memory, costs.back().first);
      time = std::max(time, costs.back().second);
    }
    const auto value = [&](const std::pair<double, double>& cost) {
      if (options_.heuristic == PublishedHeuristic::least_memory) return cost;
      return std::pair((memory > 0 ? cost.first / memory : cost.first) + (time > 0 ? cost.second / time : cost.second),
                       0.0);
    };
    std::size_t best = 0;
    for (std::size_t c = 1; c < costs.size(); ++c)
      if (value(costs[c]) < value(costs[best])) best = c;
    return best;
  }

  // The chain that is left: Algorithm 3, or brute force over the pair.
  bool finish() {
    std::vector<std::uint32_t> chain;
    if (!graph_.nodes.empty()) chain = graph_.topological_order();
    report_.chain = chain.size();
    std::uint32_t list = constant_;
    std::size_t configs = 1;
    const char* phase = whole_is_left() ? "published brute force over the last pair" : "published dynamic programme";
    for (std::size_t i = 0; i < chain.size(); ++i) {
      store_.set_progress(phase, double(i) / double(chain.size()), double(i + 1) / double(chain.size()));
      where_ = "in step " + std::to_string(i + 1) + " of " + std::to_string(chain.size()) +
               (whole_is_left() ? " of the brute force over the last pair" : " of the linear dynamic programme");
      const double before = store_.products();
      list = step(chain, i, list);
      if (list == kNoTable) return false;
      configs = graph_.nodes[chain[i]].configs;
      report_.step_products.push_back(store_.products() - before);
      report_.step_kept.push_back(store_.table(list).lists->tuples());
    }
    where_ = "in the last union";
    result_ = store_.combine(std::array{list}, 1, [&](std::size_t, std::vector<Term>& terms) {
      for (std::size_t a = 0; a < configs; ++a) terms.push_back({a, 0, 0});
    });
    return result_ != kNoTable;
  }

  std::uint32_t step(const std::vector<std::uint32_t>& chain, std::size_t i, std::uint32_t list) {
    const PublishedNode& node = graph_.nodes[chain[i]];
    if (i == 0)
      return store_.combine(std::array{list, node.table}, node.configs, [&](std::size_t b, std::vector<Term>& terms) {
        terms.push_back({0, b, 0});
      });
    const std::size_t before = graph_.nodes[chain[i - 1]].configs;
    if (node.in.empty())  // FT-Elimination's last two operators may belong to different components
      return store_.combine(std::array{list, node.table}, node.configs, [&](std::size_t b, std::vector<Term>& terms) {
        for (std::size_t a = 0; a < before; ++a) terms.push_back({a, b, 0});
      });
    const PublishedEdge& edge = graph_.edges[node.in[0]];
    return store_.combine(std::array{list, edge.table, node.table}, node.configs,
                          [&](std::size_t b, std::vector<Term>& terms) {
                            for (std::size_t a = 0; a < before; ++a)
                              terms.push_back({a, edge.from_offset[a] + edge.to_offset[b], b});
                          });
  }

  Error stopped() const {
    if (store_.stop() == PublishedStop::cancelled) return cancelled_error();
    const char* name = whole_is_left() ? "the published elimination algorithm" : "the published algorithm";
    std::string what = store_.stop() == PublishedStop::time
                           ? std::string(name) + " was not done within its time limit of " + seconds_text()
                           : std::string(name) + " needs more than " + std::to_string(options_.max_bytes >> 20) +
                                 " MiB for its tables";
    what += ": it ended " + where_;
    return {ErrorCode::infeasible, std::move(what), {}, "the exact engine answers the same question"};
  }

  std::string seconds_text() const {
    std::string text = std::to_string(options_.time_limit_s);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
  }

  Expected<Answer> collect() {
    const std::size_t count = store_.table(result_).lists->tuples();
    if (count == 0)
      return Error{ErrorCode::infeasible,
                   report_.heuristics == 0 ? "the problem has no solution: every combination is forbidden"
                                           : "no solution was found after " + std::to_string(report_.heuristics) +
                                                 " heuristic eliminations; that does not prove that there is none",
                   {},
                   {}};
    const auto memory = store_.memory(result_, 0);
    const auto time = store_.time(result_, 0);
    for (std::size_t i = 0; i < count; ++i) report_.tuples.push_back({memory[i], time[i]});
    std::vector<Point> points(count);
    pool_.for_each(
        count,
        [&](std::size_t i, int) {
          Point& point = points[i];
          if (options_.costs_only) {
            point.memory = memory[i];
            point.time = time[i];
            return;
          }
          point.configs.resize(problem_.nodes.size());
          point.node_alternatives.resize(problem_.nodes.size());
          point.edge_alternatives.resize(problem_.edges.size());
          store_.unroll(i, point);
          const CostPoint cost = evaluate(problem_, point);
          point.memory = cost.memory;
          point.time = cost.time;
        },
        16);
    Answer answer;
    answer.exact = report_.heuristics == 0;
    answer.certified = answer.exact;
    answer.heuristic_eliminations = static_cast<std::uint32_t>(report_.heuristics);
    // Sums in another order may differ in the last bit, and two times then be equal.
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
      return a.memory != b.memory ? a.memory < b.memory : a.time < b.time;
    });
    for (Point& point : points)
      if (answer.points.empty() || point.time < answer.points.back().time) answer.points.push_back(std::move(point));
    return answer;
  }

  const Problem& problem_;
  const PublishedOptions& options_;
  ThreadPool& pool_;
  PublishedReport& report_;
  PublishedGraph graph_;
  PublishedStore store_;
  std::uint32_t constant_ = 0, result_ = kNoTable;
  std::string where_;
};

}  // namespace

Expected<Answer> solve_published(const Problem& problem, const PublishedOptions& options, const RunContext& context,
                                 PublishedReport* report) {
  const Control control(context, options.time_limit_s);
  if (context.cancelled()) return cancelled_error();
  PublishedReport own;
  PublishedReport& filled = report ? *report : own;
  filled = {};
  ThreadPool pool(context.threads);
  auto answer = Run(problem, options, pool, control, filled).answer();
  filled.seconds = control.elapsed();
  return answer;
}

}  // namespace turnpoint::frontier
