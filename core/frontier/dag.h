// SPDX-License-Identifier: Apache-2.0
// An elimination with its costs: tables that are equal in content (leaves of repeated layers, and everything made from
// equal tables in an equal way) are one table here, computed once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/frontier/elimination.h"
#include "core/frontier/work.h"

namespace turnpoint::frontier::detail {

struct Dag {
  struct Table {
    std::size_t entries = 0;
    const Leaf* leaf = nullptr;  ///< null for results of steps
  };
  struct UniqueStep {
    std::uint32_t p = 0, f = 0, out = 0;  ///< unique tables
    const Shape* shape = nullptr;
  };
  const Elimination* plan = nullptr;
  std::vector<std::uint32_t> unique_of;  ///< table of the elimination -> unique table
  std::vector<std::uint32_t> producer;   ///< table of the elimination -> step, for results of steps
  std::vector<Table> tables;
  std::vector<UniqueStep> steps;  ///< in an order in which inputs come first
  std::uint32_t root = 0;         ///< unique table
  Leaf unit;
};

/// Leaves are borrowed from the graph. The result must not be moved once built (tables point to `unit`).
void build_dag(const Graph& graph, const Elimination& plan, Dag& dag);

/// One choice: for every leaf table of the elimination (variables, then factors) the chosen point of the leaf.
using Choice = std::vector<std::uint32_t>;

/// Stop requests and the time limit, polled from inside the kernels, which say here what they have done.
class Control {
 public:
  Control(const RunContext& context, double time_limit_s)
      : context_(context), begin_(Clock::now()), limit_(time_limit_s) {}
  const std::stop_token& stop() const { return context_.stop; }
  bool cancelled() const { return context_.cancelled(); }
  bool stopped() const { return cancelled() || (limit_ > 0 && elapsed() > limit_); }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool limited() const { return limit_ > 0; }
  void report(const char* phase, double fraction) const { context_.report(phase, fraction); }
  void count(const Work& done) const {
    products_ += done.products;
    terms_ += done.terms;
  }
  Work work() const { return {products_, terms_}; }

 private:
  using Clock = std::chrono::steady_clock;
  const RunContext& context_;
  Clock::time_point begin_;
  double limit_;
  mutable std::atomic<double> products_{0}, terms_{0};
};

}  // namespace turnpoint::frontier::detail
