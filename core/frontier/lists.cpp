// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/lists.h"

#include <algorithm>

#include "core/base/discard.h"
#include "core/frontier/merger.h"

namespace turnpoint::frontier::detail {

namespace {

void append(ListTable& table, const Chunk& chunk) {
  for (const std::uint32_t size : chunk.sizes) table.offsets.push_back(table.offsets.back() + size);
  table.memory.insert(table.memory.end(), chunk.memory.begin(), chunk.memory.end());
  table.time.insert(table.time.end(), chunk.time.begin(), chunk.time.end());
  table.p.insert(table.p.end(), chunk.p.begin(), chunk.p.end());
  table.f.insert(table.f.end(), chunk.f.begin(), chunk.f.end());
}

void load_leaf(const Leaf& leaf, std::uint32_t table, const Region& region, ListTable& list) {
  list = ListTable();
  list.offsets.assign(1, 0);
  for (std::size_t e = 0; e < leaf.entries(); ++e) {
    for (std::uint32_t i = leaf.offsets[e]; region.alive(table, e) && i < leaf.offsets[e + 1]; ++i) {
      double limit;
      region.fill(table, e, leaf.memory[i], 0, &limit, 1);
      if (!(leaf.time[i] < limit)) continue;
      list.memory.push_back(leaf.memory[i]);
      list.time.push_back(leaf.time[i]);
      list.p.push_back(i);
    }
    list.offsets.push_back(static_cast<std::uint32_t>(list.p.size()));
  }
}

constexpr double kReportEvery = 0.1;        // seconds
constexpr std::size_t kReportEntries = 64;  // after so many is the clock looked at
constexpr double kJoinShare = 0.25;  // of the work of other products: most of the join of two long lists is skipped

/// Runs the steps one after another, each in parallel over its entries or, for a single entry, over windows of memory.
class ListRunner {
 public:
  ListRunner(const Dag& dag, const ListOptions& options, ThreadPool& pool, const Control& control,
             std::vector<ListTable>& lists)
      : dag_(dag),
        options_(options),
        pool_(pool),
        control_(control),
        lists_(lists),
        region_(options),
        mergers_(static_cast<std::size_t>(pool.threads()), Merger(region_, control, [this](double share) {
                   report((double(finished_) + share) / double(parts_));
                 })) {}

  ListResult run(const char* phase) {
    phase_ = phase;
    lists_.assign(dag_.tables.size(), ListTable());
    uses_.assign(dag_.tables.size(), 0);
    for (const auto& step : dag_.steps) ++uses_[step.p], ++uses_[step.f];
    for (std::uint32_t t = 0; t < dag_.tables.size(); ++t) {
      if (dag_.tables[t].leaf) load_leaf(*dag_.tables[t].leaf, t, region_, lists_[t]);
      if (control_.stopped()) return ListResult::stopped;
    }
    for (std::size_t i = 0; i < dag_.steps.size(); ++i) {
      step_ = i;
      report(0);
      const ListResult result = step(dag_.steps[i]);
      if (result != ListResult::done) return result;
    }
    return ListResult::done;
  }

  double products() const { return products_; }

 private:
  /// A share of the current step is done; single steps may take seconds, so that this is asked often and said rarely.
  void report(double share) {
    if (!phase_) return;
    const double now = control_.elapsed();
    double last = reported_.load(std::memory_order_relaxed);
    if (now - last >= kReportEvery && reported_.compare_exchange_strong(last, now))
      control_.report(phase_, std::min(1.0, (double(step_) + share) / double(dag_.steps.size())));
  }

  ListResult step(const Dag::UniqueStep& step) {
    const Shape& shape = *step.shape;
    const ListTable &p = lists_[step.p], &f = lists_[step.f];
    ListTable& out = lists_[step.out];
    out.offsets.assign(1, 0);
    out.offsets.reserve(shape.entries() + 1);
    const std::size_t entries = shape.entries();
    const double lengths =
        double(p.points() + 1) / double(p.offsets.size()) * double(f.points() + 1) / double(f.offsets.size());
    const double work = double(shape.terms()) * std::max(1.0, lengths);
    const auto threads = static_cast<std::size_t>(pool_.threads());
    const CostList* achieved = step.out == dag_.root && options_.width == 1 ? options_.achieved : nullptr;
    std::vector<Window> windows;
    // The number of windows must not depend on the number of threads: of equal points the windows keep different ones.
    if (entries == 1 && work > 1e6) {
      split(p, f, shape, windows);
      if (products_ + kJoinShare * mergers_[0].products() > options_.max_products) return ListResult::too_large;
    }
    const std::size_t parts = !windows.empty()             ? windows.size()
                              : work < 2e4 || threads == 1 ? 1
                                                           : std::min(entries, threads * 16);
    std::vector<Chunk> chunks(parts);
    std::atomic<std::size_t> made{total_};
    std::atomic<double> products{products_};
    finished_ = 0;
    parts_ = windows.empty() ? entries : parts;
    const auto exceeded = [&] {
      return made.load(std::memory_order_relaxed) > options_.max_points ||
             products.load(std::memory_order_relaxed) > options_.max_products;
    };
    // Of one entry alone, which is looked at before it is made.
    const double most = options_.max_products - products_;
    const auto count = [&](double more) {
      double now = products.load(std::memory_order_relaxed);
      while (!products.compare_exchange_weak(now, now + more)) {
      }
    };
    pool_.for_each(parts, [&](std::size_t part, int worker) {
      Merger& merger = mergers_[static_cast<std::size_t>(worker)];
      Chunk& chunk = chunks[part];
      if (!windows.empty()) {
        merger.merge(p, f, shape, step.out, 0, 0, windows[part], achieved, kInfinity, chunk);
        made += chunk.p.size();
        if (part == 0) count(kJoinShare * merger.products());
        report(double(++finished_) / double(parts_));
        return;
      }
      for (std::size_t e = entries * part / parts; e < entries * (part + 1) / parts; ++e) {
        const std::size_t before = chunk.p.size();
        if (exceeded()) return;
        merger.merge(p, f, shape, step.out, e / shape.groups(), static_cast<std::uint32_t>(e % shape.groups()),
                     Window(), achieved, most, chunk);
        // Most entries are dead, and what threads share is dear.
        if (chunk.p.size() != before) made += chunk.p.size() - before;
        if (merger.products() > 0) count(merger.products());
        if (e % kReportEntries == 0) report(std::min(1.0, double(finished_ += kReportEntries) / double(parts_)));
      }
    });
    if (control_.stopped()) return ListResult::stopped;
    for (const Merger& merger : mergers_)
      if (merger.stopped()) return ListResult::stopped;
    total_ = made;
    products_ = products;
    if (exceeded()) return ListResult::too_large;
    if (!windows.empty()) join(chunks);
    for (Chunk& chunk : chunks) {
      append(out, chunk);
      chunk = Chunk();
    }
    // What no later step reads needs its back-pointers only.
    for (const std::uint32_t t : {step.p, step.f})
      if (--uses_[t] == 0 && t != dag_.root) {
        free_memory(lists_[t].memory);
        free_memory(lists_[t].time);
      }
    return ListResult::done;
  }

  void split(const ListTable& p, const ListTable& f, const Shape& shape, std::vector<Window>& windows) {
    constexpr std::int64_t kWindows = 64;
    std::int64_t low = 0, high = 0;
    if (!mergers_[0].range(p, f, shape, 0, low, high) || high - low < 4 * kWindows) return;
    for (std::int64_t w = 0; w < kWindows; ++w)
      windows.push_back(
          {low + (high - low) / kWindows * w, w + 1 == kWindows ? high + 1 : low + (high - low) / kWindows * (w + 1)});
  }

  /// Puts the windows of one entry together: only what beats all windows before it stays.
  static void join(std::vector<Chunk>& chunks) {
    Chunk whole;
    double best = kInfinity;
    for (const Chunk& chunk : chunks)
      for (std::size_t i = 0; i < chunk.p.size(); ++i) {
        if (!(chunk.time[i] < best)) continue;
        best = chunk.time[i];
        whole.memory.push_back(chunk.memory[i]);
        whole.time.push_back(chunk.time[i]);
        whole.p.push_back(chunk.p[i]);
        whole.f.push_back(chunk.f[i]);
      }
    whole.sizes.push_back(static_cast<std::uint32_t>(whole.p.size()));
    chunks.assign(1, std::move(whole));
  }

  const Dag& dag_;
  const ListOptions& options_;
  ThreadPool& pool_;
  const Control& control_;
  std::vector<ListTable>& lists_;
  Region region_;
  std::vector<Merger> mergers_;
  std::vector<std::uint32_t> uses_;  // steps that still have to read a table
  std::size_t total_ = 0;
  double products_ = 0;
  const char* phase_ = nullptr;
  std::size_t step_ = 0, parts_ = 1;  // entries of the step, or windows of its single one
  std::atomic<std::size_t> finished_{0};
  std::atomic<double> reported_{-kReportEvery};  // when
};

}  // namespace

ListResult run_lists(const Dag& dag, const ListOptions& options, ThreadPool& pool, const Control& control,
                     const char* phase, std::vector<ListTable>& lists, double* products) {
  ListRunner runner(dag, options, pool, control, lists);
  const ListResult result = runner.run(phase);
  control.count({.products = runner.products()});
  if (products) *products += runner.products();
  return result;
}

void trace_lists(const Dag& dag, const std::vector<ListTable>& lists, std::span<const std::uint32_t> points,
                 std::vector<Choice>& choices) {
  const Elimination& plan = *dag.plan;
  choices.resize(plan.leaves());
  std::vector<std::vector<std::uint32_t>> spare;  // of tables that are done with
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> stack;
  stack.emplace_back(plan.root, std::vector<std::uint32_t>(points.begin(), points.end()));
  while (!stack.empty()) {
    const std::uint32_t table = stack.back().first;
    std::vector<std::uint32_t> at = std::move(stack.back().second);
    stack.pop_back();
    const ListTable& list = lists[dag.unique_of[table]];
    if (table < plan.leaves()) {
      choices[table].resize(at.size());
      for (std::size_t i = 0; i < at.size(); ++i) choices[table][i] = list.p[at[i]];
      spare.push_back(std::move(at));
    } else if (table == plan.unit_table()) {
      spare.push_back(std::move(at));
    } else {
      const Step& step = plan.steps[dag.producer[table]];
      std::vector<std::uint32_t> f;
      if (!spare.empty()) {
        f = std::move(spare.back());
        spare.pop_back();
      }
      f.resize(at.size());
      for (std::size_t i = 0; i < at.size(); ++i) {
        f[i] = list.f[at[i]];
        at[i] = list.p[at[i]];
      }
      stack.emplace_back(step.p, std::move(at));
      stack.emplace_back(step.f, std::move(f));
    }
  }
}

}  // namespace turnpoint::frontier::detail
