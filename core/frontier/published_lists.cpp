// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/published_lists.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "core/base/discard.h"

namespace turnpoint::frontier::detail {

namespace {

/// Tuples that wait to be sorted. Reducing in between gives the same list and bounds memory and the answer to a stop
/// request; shorter sorts are also slightly faster than one long one, to the published algorithm's advantage.
constexpr std::size_t kPending = std::size_t(1) << 18;
constexpr std::size_t kFirstPending = std::size_t(1) << 12;  // where what is there is asked before sorting
constexpr double kAskAfter = 1e7;                            // products, after which a stop is asked for anyway
/// Entries handed out at once; their results wait side by side until they are appended in order.
constexpr std::size_t kEntriesAtOnce = 1024;
constexpr double kReportInterval_s = 0.05;

struct Tuple {
  std::int64_t memory;
  double time;
  std::uint32_t index;  // into the records
};
using Record = std::array<std::uint32_t, 3>;

bool before(const Tuple& a, const Tuple& b) {
  if (a.memory != b.memory) return a.memory < b.memory;
  if (a.time != b.time) return a.time < b.time;
  return a.index < b.index;
}

}  // namespace

/// The best time at or below each of some thousand memory values of a reduced list: what a tuple has to beat.
class Beaten {
 public:
  void clear() { best_.clear(); }
  void learn(const std::vector<Tuple>& reduced) {
    best_.clear();
    if (reduced.empty()) return;
    base_ = reduced.front().memory;
    shift_ = 0;
    while ((reduced.back().memory - base_) >> shift_ >= kSteps) ++shift_;
    const auto last = static_cast<std::size_t>((reduced.back().memory - base_) >> shift_);
    std::size_t at = 0;
    for (std::size_t step = 0; step <= last; ++step) {
      const std::int64_t memory = base_ + (std::int64_t(step) << shift_);
      while (at + 1 < reduced.size() && reduced[at + 1].memory <= memory) ++at;
      best_.push_back(reduced[at].time);
    }
  }
  bool beats(std::int64_t memory, double time) const {
    if (best_.empty() || memory < base_) return false;
    const auto step = static_cast<std::size_t>((memory - base_) >> shift_);
    return best_[std::min(step, best_.size() - 1)] <= time;
  }

 private:
  static constexpr std::int64_t kSteps = 4096;
  std::int64_t base_ = 0;
  int shift_ = 0;
  std::vector<double> best_;
};

struct PublishedStore::Scratch {
  Beaten beaten;
  std::vector<Term> terms;
  std::vector<Tuple> items;
  std::vector<Record> records, kept_records;
  double products = 0;

  // Algorithm 1 over all that is pending; what is left stands sorted at the front.
  void reduce() {
    std::sort(items.begin(), items.end(), before);
    double best = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    kept_records.clear();
    for (const Tuple& item : items)
      if (item.time < best) {
        best = item.time;
        kept_records.push_back(records[item.index]);
        items[kept] = {item.memory, item.time, static_cast<std::uint32_t>(kept)};
        ++kept;
      }
    items.resize(kept);
    records.swap(kept_records);
  }
};

std::shared_ptr<PublishedLists> published_leaf(const CostTable& costs) {
  auto lists = std::make_shared<PublishedLists>();
  std::vector<Tuple> items;
  for (std::size_t e = 0; e < costs.size(); ++e) {
    items.clear();
    for (const CostPoint& p : costs[e]) items.push_back({p.memory, p.time, static_cast<std::uint32_t>(items.size())});
    std::sort(items.begin(), items.end(), before);
    double best = std::numeric_limits<double>::infinity();
    for (const Tuple& item : items) {
      if (!(item.time < best)) continue;
      best = item.time;
      lists->memory.push_back(item.memory);
      lists->time.push_back(item.time);
      lists->record[0].push_back(item.index);
    }
    lists->offsets.push_back(lists->memory.size());
  }
  return lists;
}

std::uint32_t PublishedStore::add_unit() {
  Table table;
  table.lists = std::make_shared<PublishedLists>();
  table.lists->offsets = {0, 1};
  table.lists->memory = {0};
  table.lists->time = {0};
  table.lists->record[0] = {0};
  tables_.push_back(std::move(table));
  return static_cast<std::uint32_t>(tables_.size() - 1);
}

std::uint32_t PublishedStore::add_leaf(Kind kind, std::uint32_t source, std::shared_ptr<PublishedLists> lists) {
  Table table;
  table.kind = kind;
  table.source = source;
  table.lists = std::move(lists);
  tables_.push_back(std::move(table));
  return static_cast<std::uint32_t>(tables_.size() - 1);
}

std::span<const std::int64_t> PublishedStore::memory(std::uint32_t t, std::size_t entry) const {
  const PublishedLists& lists = *tables_[t].lists;
  return {lists.memory.data() + lists.offsets[entry], lists.memory.data() + lists.offsets[entry + 1]};
}

std::span<const double> PublishedStore::time(std::uint32_t t, std::size_t entry) const {
  const PublishedLists& lists = *tables_[t].lists;
  return {lists.time.data() + lists.offsets[entry], lists.time.data() + lists.offsets[entry + 1]};
}

// Unites the products of all terms. False if the run was stopped on the way.
bool PublishedStore::run_entry(std::span<const std::uint32_t> inputs, Scratch& s) const {
  static const PublishedLists kUnit = [] {
    PublishedLists unit;
    unit.offsets = {0, 1};
    unit.memory = {0};
    unit.time = {0};
    return unit;
  }();
  const PublishedLists* list[3];
  for (std::size_t k = 0; k < 3; ++k) list[k] = k < inputs.size() ? tables_[inputs[k]].lists.get() : &kUnit;
  s.items.clear();
  s.records.clear();
  s.beaten.clear();
  const std::size_t first = drop_early_ ? kFirstPending : kPending;
  std::size_t pending = first;
  double asked_at = s.products;
  for (const Term& term : s.terms) {
    std::size_t begin[3], end[3];
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t entry = k < inputs.size() ? term[k] : 0;
      begin[k] = list[k]->offsets[entry];
      end[k] = list[k]->offsets[entry + 1];
    }
    s.products += double(end[0] - begin[0]) * double(end[1] - begin[1]) * double(end[2] - begin[2]);
    if (s.products - asked_at > kAskAfter) {
      asked_at = s.products;
      if (control_.stopped()) return false;
    }
    for (std::size_t a = begin[0]; a < end[0]; ++a)
      for (std::size_t b = begin[1]; b < end[1]; ++b) {
        const std::int64_t memory = list[0]->memory[a] + list[1]->memory[b];
        const double time = list[0]->time[a] + list[1]->time[b];
        for (std::size_t c = begin[2]; c < end[2]; ++c) {
          if (drop_early_ && s.beaten.beats(memory + list[2]->memory[c], time + list[2]->time[c])) continue;
          s.items.push_back(
              {memory + list[2]->memory[c], time + list[2]->time[c], static_cast<std::uint32_t>(s.records.size())});
          s.records.push_back(
              {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c)});
          if (s.items.size() < pending) continue;
          s.reduce();
          if (drop_early_) s.beaten.learn(s.items);
          pending = std::max(first, 2 * s.items.size());
          if (control_.stopped()) return false;
        }
      }
  }
  s.reduce();
  return !control_.stopped();
}

void PublishedStore::report(double share) {
  const double now = control_.elapsed();
  if (now - reported_ < kReportInterval_s) return;
  reported_ = now;
  control_.report(phase_, from_ + (to_ - from_) * share);
}

std::uint32_t PublishedStore::combine(std::span<const std::uint32_t> inputs, std::size_t entries,
                                      const TermsOf& terms_of) {
  assert(!inputs.empty() && inputs.size() <= 3);
  struct Result {
    std::vector<Tuple> items;
    std::vector<Record> records;
  };
  Table table;
  table.kind = Kind::made;
  table.input_count = static_cast<std::uint32_t>(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) table.inputs[k] = inputs[k];
  table.lists = std::make_shared<PublishedLists>();
  PublishedLists& lists = *table.lists;
  const std::size_t recorded = keep_records_ ? inputs.size() : 0;
  const std::size_t tuple_bytes = sizeof(std::int64_t) + sizeof(double) + recorded * sizeof(std::uint32_t);
  std::vector<Scratch> scratch(static_cast<std::size_t>(pool_.threads()));
  std::vector<Result> results;
  std::atomic<std::size_t> bytes = bytes_ + entries * sizeof(std::size_t);
  std::atomic<bool> failed = bytes > max_bytes_;
  report(0);
  for (std::size_t begin = 0; begin < entries && !failed; begin += kEntriesAtOnce) {
    const std::size_t count = std::min(kEntriesAtOnce, entries - begin);
    results.clear();
    results.resize(count);
    pool_.for_each(count, [&](std::size_t i, int worker) {
      if (failed) return;
      Scratch& s = scratch[static_cast<std::size_t>(worker)];
      s.terms.clear();
      terms_of(begin + i, s.terms);
      if (!run_entry(inputs, s)) {
        failed = true;
        return;
      }
      results[i].items = s.items;
      results[i].records = s.records;
      if ((bytes += s.items.size() * tuple_bytes) > max_bytes_) failed = true;
      if (worker == 0) report(double(begin + i + 1) / double(entries));
    });
    if (failed) break;
    // Growing by halves would take twice the memory of the longest tables.
    std::size_t made = lists.memory.size();
    for (const Result& result : results) made += result.items.size();
    lists.memory.reserve(made);
    lists.time.reserve(made);
    for (const Result& result : results) {
      for (std::size_t i = 0; i < result.items.size(); ++i) {
        lists.memory.push_back(result.items[i].memory);
        lists.time.push_back(result.items[i].time);
        for (std::size_t k = 0; k < recorded; ++k) lists.record[k].push_back(result.records[i][k]);
      }
      lists.offsets.push_back(lists.memory.size());
    }
  }
  for (const Scratch& s : scratch) products_ += s.products;
  if (failed) {
    stop_ = control_.cancelled() ? PublishedStop::cancelled
            : bytes > max_bytes_ ? PublishedStop::memory
                                 : PublishedStop::time;
    return kNoTable;
  }
  bytes_ = bytes;
  for (const std::uint32_t input : inputs) {
    if (tables_[input].kind != Kind::made) continue;
    PublishedLists& used = *tables_[input].lists;
    bytes_ -= used.memory.size() * (sizeof(std::int64_t) + sizeof(double)) + used.offsets.size() * sizeof(std::size_t);
    free_memory(used.memory);
    free_memory(used.time);
    free_memory(used.offsets);
  }
  tables_.push_back(std::move(table));
  return static_cast<std::uint32_t>(tables_.size() - 1);
}

void PublishedStore::unroll(std::size_t tuple, Point& point) const {
  std::vector<std::size_t> chosen(tables_.size(), std::numeric_limits<std::size_t>::max());
  chosen.back() = tuple;
  for (std::size_t t = tables_.size(); t-- > 0;) {
    const Table& table = tables_[t];
    const PublishedLists& lists = *table.lists;
    const std::size_t position = chosen[t];
    if (position == std::numeric_limits<std::size_t>::max()) continue;
    for (std::size_t k = 0; k < table.input_count; ++k) chosen[table.inputs[k]] = lists.record[k][position];
    if (table.kind == Kind::node) {
      const auto above = std::upper_bound(lists.offsets.begin(), lists.offsets.end(), position);
      point.configs[table.source] = static_cast<std::uint32_t>(above - lists.offsets.begin() - 1);
      point.node_alternatives[table.source] = static_cast<std::uint16_t>(lists.record[0][position]);
    } else if (table.kind == Kind::edge) {
      point.edge_alternatives[table.source] = static_cast<std::uint16_t>(lists.record[0][position]);
    }
  }
}

}  // namespace turnpoint::frontier::detail
