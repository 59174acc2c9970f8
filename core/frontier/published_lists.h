// SPDX-License-Identifier: Apache-2.0
// The tables of the published frontier-tracking algorithms (published.h): lists of (memory, time) per configuration or
// pair of configurations, each tuple with the tuples it was made of, and the one operation that all of its equations
// share: unite the products of lists, sort, reduce (Algorithm 1).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/dag.h"
#include "core/frontier/published.h"

namespace turnpoint::frontier::detail {

inline constexpr std::uint32_t kNoTable = ~std::uint32_t(0);

/// Lists back to back; list of entry e at offsets[e] .. offsets[e + 1], reduced.
struct PublishedLists {
  std::vector<std::size_t> offsets{0};
  std::vector<std::int64_t> memory;  ///< empty once the lists are used up; the records stay for unrolling
  std::vector<double> time;
  /// Per input the tuple it came from, as position in that input's arrays. Of a leaf: [0] is the alternative.
  /// Empty where plans are not asked for.
  std::array<std::vector<std::uint32_t>, 3> record;

  std::size_t entries() const { return offsets.size() - 1; }
  std::size_t tuples() const { return offsets.back(); }  ///< until the lists are used up
};

/// Why the work ended early.
enum class PublishedStop { none, cancelled, time, memory };

/// All tables of one run, in the order in which they were made; inputs come before what is made of them.
class PublishedStore {
 public:
  enum class Kind : std::uint8_t { unit, node, edge, made };
  struct Table {
    Kind kind = Kind::unit;
    std::uint32_t source = 0;  ///< node or edge of the problem
    std::uint32_t input_count = 0;
    std::array<std::uint32_t, 3> inputs{kNoTable, kNoTable, kNoTable};
    std::shared_ptr<PublishedLists> lists;  ///< leaves with equal contents share them
  };
  /// Entries of the inputs whose lists are multiplied.
  using Term = std::array<std::size_t, 3>;
  using TermsOf = std::function<void(std::size_t entry, std::vector<Term>& terms)>;

  PublishedStore(ThreadPool& pool, const Control& control, const PublishedOptions& options)
      : pool_(pool),
        control_(control),
        max_bytes_(options.max_bytes),
        drop_early_(options.drop_early),
        keep_records_(!options.costs_only) {}

  std::uint32_t add_unit();  ///< one entry with the tuple (0, 0)
  std::uint32_t add_leaf(Kind kind, std::uint32_t source, std::shared_ptr<PublishedLists> lists);
  /// A table whose entry e is reduce(union over its terms of the product of the inputs' lists). The inputs are used up:
  /// each table may be an input once. kNoTable if the run has to end (stop()).
  std::uint32_t combine(std::span<const std::uint32_t> inputs, std::size_t entries, const TermsOf& terms_of);

  const Table& table(std::uint32_t t) const { return tables_[t]; }
  std::size_t tables() const { return tables_.size(); }
  std::span<const std::int64_t> memory(std::uint32_t t, std::size_t entry) const;
  std::span<const double> time(std::uint32_t t, std::size_t entry) const;

  /// The choice behind one tuple of the last table: inputs are marked from the last table to the first, which undoes
  /// the eliminations in reverse order.
  void unroll(std::size_t tuple, Point& point) const;

  PublishedStop stop() const { return stop_; }
  double products() const { return products_; }  ///< sums of two or three tuples formed so far
  std::size_t bytes() const { return bytes_; }
  /// What combine() reports while it runs: `phase` between these two fractions.
  void set_progress(const char* phase, double from, double to) { phase_ = phase, from_ = from, to_ = to; }

 private:
  struct Scratch;
  bool run_entry(std::span<const std::uint32_t> inputs, Scratch& scratch) const;
  void report(double share);

  ThreadPool& pool_;
  const Control& control_;
  std::size_t max_bytes_;
  bool drop_early_, keep_records_;
  std::vector<Table> tables_;
  PublishedStop stop_ = PublishedStop::none;
  double products_ = 0;
  std::size_t bytes_ = 0;
  const char* phase_ = "";
  double from_ = 0, to_ = 0, reported_ = -1;
};

/// Alternatives of every entry, reduced.
std::shared_ptr<PublishedLists> published_leaf(const CostTable& costs);

}  // namespace turnpoint::frontier::detail
