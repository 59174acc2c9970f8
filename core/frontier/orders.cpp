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
  {
    const std::lock_guard lock(mutex_);
    for (const Known& known : known_)
      if (known.max_table == max_table && graph.same_structure(known.structure)) return known.order;
  }
  auto order = std::make_shared<const Elimination>(eliminate(graph, max_table, stop, policy));
  if (stop.stop_requested()) return order;  // incomplete
  Known found{{}, max_table, order};
  found.structure.variables = graph.variables;
  found.structure.factors = graph.factors;
  const std::lock_guard lock(mutex_);
  if (known_.size() == kMostOrders) known_.erase(known_.begin());
  known_.push_back(std::move(found));
  return order;
}

}  // namespace turnpoint::frontier
