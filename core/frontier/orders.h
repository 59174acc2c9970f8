// SPDX-License-Identifier: Apache-2.0
// Orders of elimination that several solvers share: problems of equal structure, such as the numbers of micro-batches
// of one batch, have the same, and finding one takes up to a third of a quick search of a deep network.
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "core/frontier/elimination.h"

namespace turnpoint::frontier {

/// Of solvers with one policy. Thread-safe.
class Orders {
 public:
  /// eliminate() of such a graph, by the work of an earlier caller with one of the same structure, of the last few.
  /// Waits for one that is at it.
  std::shared_ptr<const detail::Elimination> of(const detail::Graph& graph, std::size_t max_table, std::stop_token stop,
                                                const Policy& policy);

 private:
  struct Known {
    detail::Graph structure;  // without costs
    std::size_t max_table;
    std::shared_future<std::shared_ptr<const detail::Elimination>> order;  // null: stopped
  };
  std::mutex mutex_;
  std::vector<Known> known_;  // the latest last
};

}  // namespace turnpoint::frontier
