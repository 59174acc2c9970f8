// SPDX-License-Identifier: Apache-2.0
#include "core/cost/resharding.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

#include "core/cost/reshard_graph.h"
#include "core/cost/reshard_search.h"
#include "core/cost/split_dims.h"

namespace turnpoint {

namespace {

constexpr double kInfinity = ReshardSearch::kInfinity;
// Among paths of equal time the one with fewer collectives wins: all-reduce over reduce-scatter plus all-gather.
constexpr double kStepPenalty = 1e-15;
// Seconds, more than any collective takes: then no way of more of them is the better one.
constexpr double kFewestPenalty = 1e3;
// Above this, intermediate layouts are restricted pair by pair.
constexpr double kMaxStates = 50'000;

using Kind = ReshardPrice::Kind;
using State = ReshardGraph::State;

std::uint32_t level_axes(const Mesh& mesh, int level) {
  std::uint32_t mask = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[a].level == level) mask |= 1u << a;
  return mask;
}

double bytes_received(Kind kind, double local, int size) {
  switch (kind) {
    case Kind::free: return 0;
    case Kind::all_gather: return local * (size - 1);
    case Kind::all_reduce: return 2 * local * (size - 1) / size;
    case Kind::reduce_scatter:
    case Kind::all_to_all: return local * (size - 1) / size;
    case Kind::permute_inside:
    case Kind::permute_across: return local;
  }
  return 0;
}

Collective collective(Kind kind) {
  switch (kind) {
    case Kind::all_gather: return Collective::all_gather;
    case Kind::all_to_all: return Collective::all_to_all;
    case Kind::all_reduce: return Collective::all_reduce;
    case Kind::reduce_scatter: return Collective::reduce_scatter;
    case Kind::free:
    case Kind::permute_inside:
    case Kind::permute_across: break;
  }
  return Collective::send;
}

/// The bytes for which CollectiveModel is asked.
double asked(const ReshardPrice& price, double local) {
  return price.kind == Kind::all_gather ? local * price.group.size : local;
}

// Graphs by divisibility, shared by models that differ in link speeds only.
struct GraphCache {
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const ReshardGraph>> graphs;
};

}  // namespace

struct ReshardRoutes::Data {
  struct Quote {
    ReshardPrice price;
    double local_bytes;
  };
  std::vector<Quote> quotes;
  std::vector<std::uint32_t> steps;         ///< of all ways, each from its source on
  std::vector<std::uint32_t> way_ends{0};   ///< way w has the steps [way_ends[w], way_ends[w + 1])
  std::vector<std::uint32_t> pair_ends{0};  ///< pair p has the ways [pair_ends[p], pair_ends[p + 1]); none: impossible

  std::span<const std::uint32_t> way(std::uint32_t w) const {
    return std::span(steps).subspan(way_ends[w], way_ends[w + 1] - way_ends[w]);
  }
};

struct ReshardingModel::Impl {
  Mesh mesh;
  CollectiveModel collectives;
  DeviceGroup inside_group, across_group;
  std::shared_ptr<GraphCache> cache;
  Ways ways;

  Impl(Mesh m, CollectiveModel c, std::shared_ptr<GraphCache> shared, Ways which)
      : mesh(std::move(m)),
        collectives(std::move(c)),
        inside_group(mesh.group(level_axes(mesh, kIntraNode))),
        across_group(mesh.group(level_axes(mesh, kInterNode))),
        cache(std::move(shared)),
        ways(which) {}

  double time(const ReshardPrice& price, double local) const {
    if (price.kind == Kind::free) return 0;
    const double seconds = collectives.time(collective(price.kind), price.group, asked(price, local)).value;
    // Some devices' blocks only travel inside the node, so the slower of the two counts.
    return price.kind == Kind::permute_across
               ? std::max(seconds, collectives.time(Collective::send, inside_group, local).value)
               : seconds;
  }

  // By which ways of as many collectives are told apart. Engines scatter what is to be split: for them an all-reduce of
  // which a slice is kept is no shorter way, however fast the library's all-reduce is.
  double rank_s(const ReshardPrice& price, double seconds, double bytes) const {
    if (ways != Ways::fewest || price.kind != Kind::all_reduce) return seconds;
    ReshardPrice scatter = price;
    scatter.kind = Kind::reduce_scatter;
    return std::max(seconds, (1 + 1e-6) * time(scatter, bytes / static_cast<double>(price.splits)));
  }

  ReshardTables price(const ReshardGraph& graph, double bytes) const {
    ReshardTables tables;
    const double penalty = ways == Ways::fewest ? kFewestPenalty : kStepPenalty;
    for (const ReshardPrice& price : graph.prices()) {
      const double seconds = time(price, bytes / static_cast<double>(price.splits));
      tables.time.push_back(seconds);
      tables.key.push_back(price.kind == Kind::free ? 0 : rank_s(price, seconds, bytes) + penalty);
    }
    return tables;
  }

  // The graph of all layouts, or nullptr where there are too many.
  std::shared_ptr<const ReshardGraph> full_graph(const SplitDims& dims) const {
    const int values = static_cast<int>(dims.divisors.size()) + 2;
    double states = 1;
    for (int a = 0; a < mesh.count(); ++a) states *= values;
    if (states > kMaxStates) return nullptr;
    {
      const std::lock_guard lock(cache->mutex);
      const auto found = cache->graphs.find(dims.divisors);
      if (found != cache->graphs.end()) return found->second;
    }
    const auto graph =
        std::make_shared<const ReshardGraph>(mesh, dims.divisors, ReshardGraph::all_values(mesh.count(), values - 2));
    const std::lock_guard lock(cache->mutex);
    return cache->graphs.emplace(dims.divisors, graph).first->second;
  }

  ReshardGraph pair_graph(const SplitDims& dims, const State& from, const State& to) const {
    ReshardGraph::Allowed allowed;
    for (int a = 0; a < mesh.count(); ++a) {
      allowed[a] = {Layout::kReplicated};
      for (const std::int8_t value : {from[a], to[a]})
        if (std::find(allowed[a].begin(), allowed[a].end(), value) == allowed[a].end()) allowed[a].push_back(value);
    }
    return ReshardGraph(mesh, dims.divisors, allowed);
  }

  template <class Visit>
  void for_each_pair(const std::vector<std::int64_t>& shape, double bytes, const std::vector<Layout>& from,
                     const std::vector<Layout>& to, const Visit& visit) const;
  ReshardStep step(const State& from, const State& to, double bytes) const;
  std::vector<State> states_along(const ReshardGraph& graph, const ReshardSearch& search, std::uint32_t source) const;
};

// Which move leads from one state to the next follows from the two alone.
ReshardStep ReshardingModel::Impl::step(const State& from, const State& to, double bytes) const {
  ReshardStep step;
  ReshardPrice price;
  std::array<std::int64_t, 128> before, after;
  before.fill(1);
  after.fill(1);
  std::int8_t origin = 0, destination = 0;
  std::uint32_t restrided = 0;  // axes that stay on their dimension, on another stride
  for (int axis = mesh.count() - 1; axis >= 0; --axis) {
    const std::int8_t old_value = from[axis], new_value = to[axis];
    if (old_value != new_value) {
      step.axes |= 1u << axis;
      origin = old_value;
      destination = new_value;
    } else if (old_value >= 0 && before[old_value] != after[new_value]) {
      restrided |= 1u << axis;
    }
    if (old_value >= 0) {
      before[old_value] *= mesh.axes[axis].size;
      price.splits *= mesh.axes[axis].size;
    }
    if (new_value >= 0) after[new_value] *= mesh.axes[axis].size;
  }
  price.group = mesh.group(step.axes);
  if (before == after && origin != Layout::kPartial) {
    const bool across = (step.axes & level_axes(mesh, kInterNode)) != 0;
    step.move = ReshardMove::permute;
    step.axes |= restrided;
    price.kind = across ? Kind::permute_across : Kind::permute_inside;
    price.group = across ? across_group : inside_group;
  } else if (origin == Layout::kPartial) {
    const bool scatter = destination >= 0;
    step.move = scatter ? ReshardMove::reduce_scatter : ReshardMove::all_reduce;
    price.kind = scatter ? Kind::reduce_scatter : Kind::all_reduce;
  } else if (origin == Layout::kReplicated) {
    step.move = ReshardMove::slice;
  } else if (destination == Layout::kReplicated) {
    step.move = ReshardMove::all_gather;
    price.kind = Kind::all_gather;
  } else {
    step.move = ReshardMove::all_to_all;
    price.kind = Kind::all_to_all;
  }
  const double local = bytes / static_cast<double>(price.splits);
  step.bytes = bytes_received(price.kind, local, price.group.size);
  step.time_s = time(price, local);
  if (price.kind != Kind::free)
    step.algorithm = collectives.algorithm(collective(price.kind), price.group, asked(price, local));
  return step;
}

// States from source to target, hubs left out, slices of one run sorted by dimension and merged.
std::vector<State> ReshardingModel::Impl::states_along(const ReshardGraph& graph, const ReshardSearch& search,
                                                       std::uint32_t source) const {
  std::vector<State> raw;
  std::vector<char> is_slice;  // whether the move to raw[i + 1] is one
  for (std::uint32_t node = source; node != ReshardGraph::kNone; node = search.next(node)) {
    if (node >= graph.states()) continue;
    raw.push_back(graph.state(node));
    is_slice.push_back(search.next(node) < graph.states() && search.price(node) == 0);
  }
  std::vector<State> merged{raw.front()};
  for (std::size_t i = 0; i + 1 < raw.size();) {
    if (!is_slice[i]) {
      merged.push_back(raw[++i]);
      continue;
    }
    const State before = raw[i];
    while (is_slice[i]) ++i;
    State state = before;
    const std::int8_t dims = *std::max_element(raw[i].begin(), raw[i].end());
    for (std::int8_t d = 0; d <= dims; ++d) {
      bool moved = false;
      for (int a = 0; a < mesh.count(); ++a) {
        if (before[a] == raw[i][a] || raw[i][a] != d) continue;
        state[a] = d;
        moved = true;
      }
      if (moved) merged.push_back(state);
    }
  }
  return merged;
}

ReshardingModel::ReshardingModel(Mesh mesh, CollectiveModel collectives, double, Ways ways)
    : impl_(std::make_unique<Impl>(std::move(mesh), std::move(collectives), std::make_shared<GraphCache>(), ways)) {}

ReshardingModel::ReshardingModel(const ReshardingModel& other, CollectiveModel collectives)
    : impl_(std::make_unique<Impl>(other.impl_->mesh, std::move(collectives), other.impl_->cache, other.impl_->ways)) {}

ReshardingModel::~ReshardingModel() = default;

const Mesh& ReshardingModel::mesh() const { return impl_->mesh; }

namespace {

double total_bytes(const std::vector<std::int64_t>& shape, int element_bytes) {
  double bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes *= static_cast<double>(extent);
  return bytes;
}

}  // namespace

ReshardPath ReshardingModel::path(const std::vector<std::int64_t>& shape, int element_bytes, const Layout& from,
                                  const Layout& to) const {
  return path_of(*this, shape, element_bytes, from, to);
}

ReshardPath ReshardingModel::path_of(const ReshardingModel& finder, const std::vector<std::int64_t>& shape,
                                     int element_bytes, const Layout& from, const Layout& to) const {
  ReshardPath path;
  if (from == to) return path;
  path.time_s = kInfinity;
  const SplitDims dims(shape, impl_->mesh.devices());
  const auto source = dims.state(from), target = dims.state(to);
  assert(source && target && !to.has_partial());
  if (!source || !target) return path;

  auto graph = impl_->full_graph(dims);
  if (!graph) graph = std::make_shared<const ReshardGraph>(impl_->pair_graph(dims, *source, *target));
  const std::uint32_t first = graph->find(*source), last = graph->find(*target);
  assert(first != ReshardGraph::kNone && last != ReshardGraph::kNone);
  if (first == ReshardGraph::kNone || last == ReshardGraph::kNone) return path;

  const double bytes = total_bytes(shape, element_bytes);
  const ReshardTables tables = finder.impl_->price(*graph, bytes);
  ReshardSearch search(*graph, tables);
  search.run(last, std::array{first});
  if (search.time(first) == kInfinity) return path;
  const auto states = impl_->states_along(*graph, search, first);
  for (std::size_t i = 0; i + 1 < states.size(); ++i) {
    path.steps.push_back(impl_->step(states[i], states[i + 1], bytes));
    path.steps.back().result = dims.layout(states[i + 1]);
  }
  // From the target backwards, as the search adds them: the same sum to the last bit.
  path.time_s = 0;
  for (auto step = path.steps.rbegin(); step != path.steps.rend(); ++step) path.time_s = step->time_s + path.time_s;
  return path;
}

// Runs `visit(pair, graph, search, source node)` for all pairs, one search per target (or per pair where there are
// too many layouts). Pairs of equal layouts and impossible ones are not visited.
template <class Visit>
void ReshardingModel::Impl::for_each_pair(const std::vector<std::int64_t>& shape, double bytes,
                                          const std::vector<Layout>& from, const std::vector<Layout>& to,
                                          const Visit& visit) const {
  const SplitDims dims(shape, mesh.devices());
  const auto full = full_graph(dims);
  if (!full) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < to.size(); ++j) {
        const auto source = dims.state(from[i]), target = dims.state(to[j]);
        assert(source && target);
        if (from[i] == to[j] || !source || !target) continue;
        const ReshardGraph graph = pair_graph(dims, *source, *target);
        const ReshardTables tables = price(graph, bytes);
        ReshardSearch search(graph, tables);
        const std::uint32_t first = graph.find(*source), last = graph.find(*target);
        assert(first != ReshardGraph::kNone && last != ReshardGraph::kNone);
        if (first == ReshardGraph::kNone || last == ReshardGraph::kNone) continue;
        search.run(last, std::array{first});
        visit(i * to.size() + j, graph, search, first);
      }
    }
    return;
  }
  const ReshardTables tables = price(*full, bytes);
  const auto node_of = [&](const Layout& layout) {
    const auto state = dims.state(layout);
    const std::uint32_t node = state ? full->find(*state) : ReshardGraph::kNone;
    assert(node != ReshardGraph::kNone);
    return node;
  };
  std::vector<std::uint32_t> nodes, sources;
  for (const Layout& layout : from) {
    nodes.push_back(node_of(layout));
    if (nodes.back() != ReshardGraph::kNone) sources.push_back(nodes.back());
  }
  ReshardSearch search(*full, tables);
  for (std::size_t j = 0; j < to.size(); ++j) {
    const std::uint32_t target = node_of(to[j]);
    if (target == ReshardGraph::kNone) continue;
    search.run(target, sources);
    for (std::size_t i = 0; i < from.size(); ++i)
      if (nodes[i] != ReshardGraph::kNone && nodes[i] != target) visit(i * to.size() + j, *full, search, nodes[i]);
  }
}

std::vector<double> ReshardingModel::times(const std::vector<std::int64_t>& shape, int element_bytes,
                                           const std::vector<Layout>& from, const std::vector<Layout>& to) const {
  std::vector<double> times(from.size() * to.size(), kInfinity);
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t j = 0; j < to.size(); ++j)
      if (from[i] == to[j]) times[i * to.size() + j] = 0;
  impl_->for_each_pair(shape, total_bytes(shape, element_bytes), from, to,
                       [&](std::size_t pair, const ReshardGraph&, const ReshardSearch& search, std::uint32_t source) {
                         times[pair] = search.time(source);
                       });
  return times;
}

ReshardRoutes ReshardingModel::routes(const std::vector<std::int64_t>& shape, int element_bytes,
                                      const std::vector<Layout>& from, const std::vector<Layout>& to,
                                      const ReshardRoutes& known) const {
  using Way = std::vector<std::uint32_t>;
  const double bytes = total_bytes(shape, element_bytes);
  auto data = std::make_shared<ReshardRoutes::Data>();
  std::map<ReshardPrice, std::uint32_t> numbers;
  std::vector<std::vector<Way>> ways(from.size() * to.size());
  if (const ReshardRoutes::Data* old = known.data.get()) {
    data->quotes = old->quotes;
    for (std::uint32_t q = 0; q < old->quotes.size(); ++q) numbers[old->quotes[q].price] = q;
    for (std::size_t pair = 0; pair < ways.size(); ++pair)
      for (std::uint32_t w = old->pair_ends[pair]; w < old->pair_ends[pair + 1]; ++w)
        ways[pair].emplace_back(old->way(w).begin(), old->way(w).end());
  } else {
    for (std::size_t i = 0; i < from.size(); ++i)
      for (std::size_t j = 0; j < to.size(); ++j)
        if (from[i] == to[j]) ways[i * to.size() + j].emplace_back();
  }
  Way way;
  impl_->for_each_pair(
      shape, bytes, from, to,
      [&](std::size_t pair, const ReshardGraph& graph, const ReshardSearch& search, std::uint32_t source) {
        if (search.time(source) == kInfinity) return;
        way.clear();
        for (std::uint32_t node = source; search.next(node) != ReshardGraph::kNone; node = search.next(node)) {
          const ReshardPrice& price = graph.prices()[search.price(node)];
          if (price.kind == Kind::free) continue;
          const auto [at, added] = numbers.emplace(price, static_cast<std::uint32_t>(data->quotes.size()));
          if (added) data->quotes.push_back({price, bytes / static_cast<double>(price.splits)});
          way.push_back(at->second);
        }
        if (std::find(ways[pair].begin(), ways[pair].end(), way) == ways[pair].end()) ways[pair].push_back(way);
      });
  for (const auto& pair : ways) {
    for (const Way& one : pair) {
      data->steps.insert(data->steps.end(), one.begin(), one.end());
      data->way_ends.push_back(static_cast<std::uint32_t>(data->steps.size()));
    }
    data->pair_ends.push_back(static_cast<std::uint32_t>(data->way_ends.size() - 1));
  }
  return {std::move(data)};
}

std::vector<double> ReshardingModel::reprice(const ReshardRoutes& routes) const {
  const ReshardRoutes::Data& data = *routes.data;
  std::vector<double> quotes;
  for (const auto& quote : data.quotes) quotes.push_back(impl_->time(quote.price, quote.local_bytes));
  std::vector<double> times(data.pair_ends.size() - 1, kInfinity);
  for (std::size_t pair = 0; pair < times.size(); ++pair)
    for (std::uint32_t w = data.pair_ends[pair]; w < data.pair_ends[pair + 1]; ++w) {
      // From the target backwards, as the search adds them: the same sum to the last bit.
      double time = 0;
      for (std::uint32_t s = data.way_ends[w + 1]; s > data.way_ends[w]; --s) time = quotes[data.steps[s - 1]] + time;
      times[pair] = std::min(times[pair], time);
    }
  return times;
}

ReshardStep ReshardingModel::step(ReshardMove move, std::uint32_t axes, double bytes, double message) const {
  ReshardStep step;
  step.move = move;
  step.axes = axes;
  if (move == ReshardMove::slice) return step;
  assert(move != ReshardMove::all_to_all && move != ReshardMove::permute);
  const DeviceGroup group = impl_->mesh.group(axes);
  const Collective kind = move == ReshardMove::all_gather       ? Collective::all_gather
                          : move == ReshardMove::reduce_scatter ? Collective::reduce_scatter
                                                                : Collective::all_reduce;
  step.bytes = (move == ReshardMove::all_reduce ? 2 : 1) * bytes * (group.size - 1) / group.size;
  if (message > 1) step.message_bytes = step.bytes * message;
  const auto charge = impl_->collectives.charge(kind, group, bytes * message);
  step.time_s = charge.time.value / message;
  step.algorithm = charge.algorithm;
  return step;
}

ReshardStep StepPrices::step(ReshardMove move, std::uint32_t axes, double bytes, double message) {
  const Asked asked{move, axes, bytes, message};
  const auto at = static_cast<std::size_t>(std::find(asked_.begin(), asked_.end(), asked) - asked_.begin());
  if (at == asked_.size()) {
    asked_.push_back(asked);
    steps_.push_back(model_.step(move, axes, bytes, message));
  }
  return steps_[at];
}

}  // namespace turnpoint
