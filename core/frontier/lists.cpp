// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/lists.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/frontier/dispatch.h"

namespace turnpoint::frontier::detail {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kBlock = 8;           // points of a list that are tested together
constexpr std::size_t kMaxBuckets = 4096;   // of the pre-filter; 32 KiB stay in the first-level cache
constexpr std::size_t kPollWork = 1 << 16;  // inner iterations between looks at the stop token

struct Candidate {
  std::int64_t memory;
  double time;
  std::uint32_t p, f;
};

/// Lists of consecutive entries as one worker makes them.
struct Chunk {
  std::vector<std::uint32_t> sizes;
  std::vector<std::int64_t> memory;
  std::vector<double> time;
  std::vector<std::uint32_t> p, f;
};

TURNPOINT_VECTOR_CLONES void raise_to_line(double* bound, std::size_t count, double start, double slope) {
  for (std::size_t k = 0; k < count; ++k) {
    const double v = start - slope * static_cast<double>(static_cast<std::int32_t>(k));
    bound[k] = v > bound[k] ? v : bound[k];
  }
}

/// The region worth keeping for one entry, as upper limits of time per bucket of memory.
class Region {
 public:
  explicit Region(const ListOptions& options) : options_(options) {}

  bool active() const { return !options_.bounds.empty(); }
  bool alive(std::uint32_t table, std::size_t entry) const {
    if (!active()) return true;
    for (const LaneBlock* block : options_.bounds)
      if (block->bounds(table).row_of[entry] != TableBounds::kDead) return true;
    return false;
  }

  /// limits[k] = largest time worth keeping for memory base + (low + (k << shift)) * width; +infinity without bounds.
  void fill(std::uint32_t table, std::size_t entry, std::int64_t base, std::int64_t low, int shift, double* limits, std::size_t count) const {
    std::fill(limits, limits + count, active() ? -kInfinity : kInfinity);
    const double width = static_cast<double>(options_.width);
    const double first = static_cast<double>(base) + static_cast<double>(low) * width, step = std::ldexp(width, shift);
    for (const LaneBlock* block : options_.bounds) {
      const TableBounds& bounds = block->bounds(table);
      if (bounds.row_of[entry] == TableBounds::kDead) continue;
      const float* row = &bounds.thresholds[std::size_t(bounds.row_of[entry]) * kLanes];
      const Lanes& offset = block->offset(table);
      for (std::size_t l = 0; l < kLanes; ++l) {
        if (row[l] == -std::numeric_limits<float>::infinity()) continue;
        const double room = row[l] + offset[l] - block->weight_memory[l] * first, wt = block->weight_time[l];
        if (wt > 0) {
          raise_to_line(limits, count, room / wt, block->weight_memory[l] * step / wt);
        } else {
          for (std::size_t k = 0; k < count && block->weight_memory[l] * step * static_cast<double>(k) < room; ++k) limits[k] = kInfinity;
        }
      }
    }
  }

 private:
  const ListOptions& options_;
};

/// Makes the lists of single entries; one per worker, buffers are re-used.
class Merger {
 public:
  Merger(const Region& region, const Control& control) : region_(region), control_(control) {}

  bool stopped() const { return stopped_; }

  /// Entry x * groups + g of the step; appends to the chunk.
  void merge(const ListTable& p, const ListTable& f, const Shape& shape, std::uint32_t table, std::size_t x, std::uint32_t g, Chunk& out) {
    const std::size_t entry = x * shape.groups() + g;
    std::size_t count = 0;
    if (!stopped_ && region_.alive(table, entry) && collect_pairs(p, f, shape, x, g)) {
      choose_buckets();
      region_.fill(table, entry, p.base + f.base, low_, shift_, limits_, buckets_);
      candidates_.clear();
      for (const Pair& pair : pairs_) {
        multiply(p, f, pair);
        if (stopped_) break;
      }
      count = finish(out);
    }
    out.sizes.push_back(static_cast<std::uint32_t>(count));
  }

 private:
  struct Pair {
    std::uint32_t p_begin, p_end, f_begin, f_end;
  };

  bool collect_pairs(const ListTable& p, const ListTable& f, const Shape& shape, std::size_t x, std::uint32_t g) {
    pairs_.clear();
    total_ = 0;
    low_ = std::numeric_limits<std::int64_t>::max();
    high_ = 0;
    double fastest = kInfinity;
    const std::uint32_t* p_offset = p.offsets.data() + std::size_t(shape.p_row[x]) * shape.p_columns;
    const std::uint32_t* f_offset = f.offsets.data() + shape.f_base[x];
    for (std::uint32_t i = shape.group_begin[g]; i < shape.group_begin[g + 1]; ++i) {
      const std::uint32_t s = shape.item_s[i], c = shape.item_f[i];
      const Pair pair{p_offset[s], p_offset[s + 1], f_offset[c], f_offset[c + 1]};
      if (pair.p_begin == pair.p_end || pair.f_begin == pair.f_end) continue;
      low_ = std::min(low_, p.memory[pair.p_begin] + f.memory[pair.f_begin]);
      const double time = p.time[pair.p_end - 1] + f.time[pair.f_end - 1];
      const std::int64_t memory = p.memory[pair.p_end - 1] + f.memory[pair.f_end - 1];
      if (time < fastest || (time == fastest && memory < high_)) {
        fastest = time;
        high_ = memory;
      }
      total_ += std::size_t(pair.p_end - pair.p_begin) * (pair.f_end - pair.f_begin);
      pairs_.push_back(pair);
    }
    return !pairs_.empty();
  }

  /// Buckets cover [least memory, memory of the fastest candidate]; anything above is dominated by the latter.
  void choose_buckets() {
    const std::size_t wanted = std::clamp<std::size_t>(std::bit_ceil(total_ / 2), 8, kMaxBuckets);
    const auto range = static_cast<std::uint64_t>(high_ - low_);
    shift_ = std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(wanted - 1)));
    buckets_ = static_cast<std::size_t>(range >> shift_) + 1;
  }

  void multiply(const ListTable& p, const ListTable& f, const Pair& pair) {
    const bool p_inner = pair.p_end - pair.p_begin >= pair.f_end - pair.f_begin;
    const ListTable &inner = p_inner ? p : f, &outer = p_inner ? f : p;
    const std::uint32_t inner_begin = p_inner ? pair.p_begin : pair.f_begin, inner_end = p_inner ? pair.p_end : pair.f_end;
    const std::uint32_t outer_begin = p_inner ? pair.f_begin : pair.p_begin, outer_end = p_inner ? pair.f_end : pair.p_end;
    for (std::uint32_t o = outer_begin; o < outer_end; ++o) {
      work_ += (inner_end - inner_begin) / kBlock + 1;
      if (work_ > kPollWork / kBlock) {
        work_ = 0;
        if (control_.stopped()) {
          stopped_ = true;
          return;
        }
      }
      const std::int64_t m0 = outer.memory[o] - low_;
      const double t0 = outer.time[o];
      // From the fast end backwards, so that limits lowered by a point are hardly touched by the next one.
      std::uint32_t end = inner_end;
      while (end > inner_begin) {
        const std::uint32_t begin = end - inner_begin > kBlock ? end - static_cast<std::uint32_t>(kBlock) : inner_begin;
        const std::uint64_t first = static_cast<std::uint64_t>(m0 + inner.memory[begin]) >> shift_;
        if (first < buckets_ && t0 + inner.time[end - 1] < limits_[first])
          for (std::uint32_t i = end; i-- > begin;) offer(m0 + inner.memory[i], t0 + inner.time[i], p_inner ? i : o, p_inner ? o : i);
        end = begin;
      }
    }
  }

  void offer(std::int64_t memory, double time, std::uint32_t p, std::uint32_t f) {
    const std::uint64_t k = static_cast<std::uint64_t>(memory) >> shift_;
    if (k >= buckets_ || !(time < limits_[k])) return;
    candidates_.push_back({memory, time, p, f});
    // Later buckets hold more memory, so they must be faster; within a bucket order is unknown unless it has width 1.
    for (std::size_t j = k + (shift_ == 0 ? 0 : 1); j < buckets_ && limits_[j] > time; ++j) limits_[j] = time;
  }

  /// Sorts what survived and keeps the frontier.
  std::size_t finish(Chunk& out) {
    std::size_t kept = 0;
    for (const Candidate& c : candidates_) {
      const double limit = limits_[static_cast<std::uint64_t>(c.memory) >> shift_];
      if (shift_ == 0 ? c.time <= limit : c.time < limit) candidates_[kept++] = c;
    }
    candidates_.resize(kept);
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      if (a.memory != b.memory) return a.memory < b.memory;
      if (a.time != b.time) return a.time < b.time;
      return a.p != b.p ? a.p < b.p : a.f < b.f;
    });
    double best = kInfinity;
    std::size_t count = 0;
    for (const Candidate& c : candidates_) {
      if (!(c.time < best)) continue;
      best = c.time;
      out.memory.push_back(c.memory + low_);
      out.time.push_back(c.time);
      out.p.push_back(c.p);
      out.f.push_back(c.f);
      ++count;
    }
    return count;
  }

  const Region& region_;
  const Control& control_;
  std::vector<Pair> pairs_;
  std::vector<Candidate> candidates_;
  std::size_t total_ = 0, buckets_ = 0, work_ = 0;
  std::int64_t low_ = 0, high_ = 0;
  int shift_ = 0;
  bool stopped_ = false;
  double limits_[kMaxBuckets] = {};
};

void append(ListTable& table, const Chunk& chunk) {
  for (const std::uint32_t size : chunk.sizes) table.offsets.push_back(table.offsets.back() + size);
  table.memory.insert(table.memory.end(), chunk.memory.begin(), chunk.memory.end());
  table.time.insert(table.time.end(), chunk.time.begin(), chunk.time.end());
  table.p.insert(table.p.end(), chunk.p.begin(), chunk.p.end());
  table.f.insert(table.f.end(), chunk.f.begin(), chunk.f.end());
}

void load_leaf(const Leaf& leaf, std::uint32_t table, const ListOptions& options, const Region& region, ListTable& list) {
  list = ListTable();
  list.offsets.assign(1, 0);
  if (options.width > 1 && !leaf.memory.empty()) list.base = *std::min_element(leaf.memory.begin(), leaf.memory.end());
  for (std::size_t e = 0; e < leaf.entries(); ++e) {
    const std::size_t begin = list.p.size();
    for (std::uint32_t i = leaf.offsets[e]; region.alive(table, e) && i < leaf.offsets[e + 1]; ++i) {
      const std::int64_t excess = leaf.memory[i] - list.base;
      const std::int64_t memory = excess / options.width + (excess % options.width * 2 >= options.width && options.width > 1 ? 1 : 0);
      double limit;
      region.fill(table, e, list.base, memory, 0, &limit, 1);
      if (!(leaf.time[i] < limit)) continue;
      if (list.p.size() > begin && list.memory.back() == memory) {  // rounded onto its slower neighbour
        list.time.back() = leaf.time[i];
        list.p.back() = i;
        continue;
      }
      list.memory.push_back(memory);
      list.time.push_back(leaf.time[i]);
      list.p.push_back(i);
    }
    list.offsets.push_back(static_cast<std::uint32_t>(list.p.size()));
  }
}

}  // namespace

ListResult run_lists(const Dag& dag, const ListOptions& options, ThreadPool& pool, const Control& control, const char* phase,
                     std::vector<ListTable>& lists) {
  const Region region(options);
  lists.assign(dag.tables.size(), ListTable());
  for (std::uint32_t t = 0; t < dag.tables.size(); ++t) {
    if (dag.tables[t].leaf) load_leaf(*dag.tables[t].leaf, t, options, region, lists[t]);
    if (control.stopped()) return ListResult::stopped;
  }
  std::vector<Merger> mergers(static_cast<std::size_t>(pool.threads()), Merger(region, control));
  std::vector<Chunk> chunks;
  std::size_t total = 0;
  for (std::size_t i = 0; i < dag.steps.size(); ++i) {
    const auto& step = dag.steps[i];
    const Shape& shape = *step.shape;
    const ListTable &p = lists[step.p], &f = lists[step.f];
    ListTable& out = lists[step.out];
    out.base = p.base + f.base;
    out.offsets.assign(1, 0);
    out.offsets.reserve(shape.entries() + 1);
    const std::size_t entries = shape.entries();
    const double lengths = double(p.points() + 1) / double(p.offsets.size()) * double(f.points() + 1) / double(f.offsets.size());
    const double work = double(shape.terms()) * std::max(1.0, lengths);
    const std::size_t parts = work < 2e4 || pool.threads() == 1 ? 1 : std::min<std::size_t>(entries, static_cast<std::size_t>(pool.threads()) * 16);
    chunks.assign(parts, Chunk());
    pool.for_each(parts, [&](std::size_t part, int worker) {
      Merger& merger = mergers[static_cast<std::size_t>(worker)];
      Chunk& chunk = chunks[part];
      for (std::size_t e = entries * part / parts; e < entries * (part + 1) / parts; ++e)
        merger.merge(p, f, shape, step.out, e / shape.groups(), static_cast<std::uint32_t>(e % shape.groups()), chunk);
    });
    for (const Merger& merger : mergers)
      if (merger.stopped()) return ListResult::stopped;
    if (control.stopped()) return ListResult::stopped;
    for (const Chunk& chunk : chunks) total += chunk.p.size();
    if (total > options.max_points) return ListResult::too_large;
    for (const Chunk& chunk : chunks) append(out, chunk);
    if (phase && (i & 15) == 0) control.report(phase, double(i) / double(dag.steps.size()));
  }
  return ListResult::done;
}

Choice trace_lists(const Dag& dag, const std::vector<ListTable>& lists, std::uint32_t point) {
  const Elimination& plan = *dag.plan;
  Choice choice(plan.leaves(), 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stack{{plan.root, point}};
  while (!stack.empty()) {
    const auto [table, at] = stack.back();
    stack.pop_back();
    const ListTable& list = lists[dag.unique_of[table]];
    if (table < plan.leaves()) {
      choice[table] = list.p[at];
    } else if (table != plan.unit_table()) {
      const Step& step = plan.steps[dag.producer[table]];
      stack.push_back({step.p, list.p[at]});
      stack.push_back({step.f, list.f[at]});
    }
  }
  return choice;
}

}  // namespace turnpoint::frontier::detail
