// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/orders.h"

#include <algorithm>

namespace turnpoint::frontier {

using namespace detail;

namespace {

constexpr std::size_t kMostOrders = 4;  // of deep networks each takes tens of megabytes

}  // namespace

std::shared_ptr<const Elimination> Orders::of(const Graph& graph, std::size_t max_table, std::stop_token stop,
                                              const Policy& policy) {
  const auto make = [&] { return std::make_shared<const Elimination>(eliminate(graph, max_table, stop, policy)); };
  std::promise<std::shared_ptr<const Elimination>> promise;
  std::shared_future<std::shared_ptr<const Elimination>> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        known_, [&](const Known& one) { return one.max_table == max_table && graph.same_structure(one.structure); });
    if (found != known_.end()) {
      known = found->order;
    } else {
      if (known_.size() == kMostOrders) known_.erase(known_.begin());
      Known& one = known_.emplace_back();
      one.structure.variables = graph.variables;
      one.structure.factors = graph.factors;
      one.max_table = max_table;
      one.order = promise.get_future().share();
    }
  }
  if (known.valid()) {
    auto order = known.get();
    return order ? order : make();
  }
  auto order = make();
  promise.set_value(stop.stop_requested() ? nullptr : order);  // a stopped one is incomplete
  return order;
}

}  // namespace turnpoint::frontier
