// SPDX-License-Identifier: Apache-2.0
// How the lists of two tables become the lists of their product: candidates by bucket of memory, cut to the region that
// the Lagrangian bounds leave open, thinned out where that is asked for. Part of lists.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/frontier/lists.h"
#include "core/frontier/open_points.h"
#include "core/frontier/region.h"

namespace turnpoint::frontier::detail {

constexpr std::size_t kBlock = 8;                           // points of a list that are tested at once
constexpr std::size_t kSpan = 64;                           // points that are skipped together
constexpr std::size_t kMaxBuckets = 4096;                   // of the pre-filter; 32 KiB stay in the first-level cache
constexpr std::size_t kManyBuckets = std::size_t(1) << 19;  // for entries whose lists are long
constexpr std::size_t kFewBuckets = 4;                      // of a coarse pass, at least, as a power of two
constexpr std::size_t kSampleFrom = 4096;                   // products from which a sample of them goes first
constexpr int kRounds = 3;
constexpr int kSlotBits = 12;
constexpr std::size_t kTrimFrom = 2048, kTrimBuckets = 64;  // products from which the range of memory is cut first
constexpr std::size_t kCompact = std::size_t(1) << 18;      // candidates that are thinned out before more are taken
constexpr std::size_t kPieces = 64;                         // of an entry's memory, each with a slope of its own
constexpr std::size_t kPollWork = 1 << 13;                  // inner iterations between looks at the stop token

struct Candidate {
  std::int64_t memory;
  double time;
  std::uint32_t p, f;
};

/// Part of the memory axis (in list units) that one worker makes of an entry with long lists.
struct Window {
  std::int64_t from = std::numeric_limits<std::int64_t>::min(), to = std::numeric_limits<std::int64_t>::max();
};

/// Lists of consecutive entries as one worker makes them.
struct Chunk {
  std::vector<std::uint32_t> sizes;
  std::vector<std::int64_t> memory;
  std::vector<double> time;
  std::vector<std::uint32_t> p, f;
};

/// Makes the lists of single entries; one per worker, buffers are re-used.
class Merger {
 public:
  /// `tick`, if given, is called now and then with the share of the entry that is done.
  Merger(const Region& region, const Control& control, std::function<void(double)> tick = {})
      : region_(region), control_(control), tick_(std::move(tick)), coarse_(region.coarse_shift() > 0) {}

  bool stopped() const { return stopped_; }
  /// Products of points behind the entry merged last. Independent of threads, so a limit on their sum is, too.
  double products() const { return static_cast<double>(total_); }

  /// Least memory and memory of the fastest candidate of an entry; false if it is empty.
  bool range(const ListTable& p, const ListTable& f, const Shape& shape, std::size_t entry, std::int64_t& low,
             std::int64_t& high) {
    const bool any =
        collect_pairs(p, f, shape, entry / shape.groups(), static_cast<std::uint32_t>(entry % shape.groups()));
    low = low_;
    high = high_;
    return any;
  }

  /// Entry x * groups + g of the step; appends to the chunk. Does nothing where its products are too many.
  void merge(const ListTable& p, const ListTable& f, const Shape& shape, std::uint32_t table, std::size_t x,
             std::uint32_t g, const Window& window, const CostList* achieved, double max_products, Chunk& out) {
    const std::size_t entry = x * shape.groups() + g;
    std::size_t count = 0;
    total_ = 0;
    if (!stopped_ && region_.alive(table, entry) && collect_pairs(p, f, shape, x, g) && products() <= max_products) {
      low_ = std::max(low_, window.from);
      high_ = std::min(high_, window.to - 1);
      windowed_ = window.from != Window().from;
    } else {
      high_ = low_ - 1;
    }
    if (low_ <= high_ && region_.active() && total_ > kTrimFrom) trim(table, entry);
    if (low_ <= high_) {
      choose_buckets();
      region_.fill(table, entry, low_, shift_, limits_.data(), buckets_);
      if (achieved) lower_to(*achieved);
      if (coarse_) prepare_coarse();
      candidates_.clear();
      compact_at_ = kCompact;
      // A sample of the products first: it brings the limits down for all others.
      for (int round = total_ > kSampleFrom ? 0 : kRounds - 1; round < kRounds && !stopped_; ++round) {
        std::size_t row = 0;
        for (const Pair& pair : pairs_) {
          multiply(p, f, pair, total_ > kSampleFrom ? round : -1, row);
          if (stopped_) break;
        }
      }
      count = finish(table, entry, out);
    }
    out.sizes.push_back(static_cast<std::uint32_t>(count));
  }

 private:
  struct Pair {
    std::uint32_t p_begin, p_end, f_begin, f_end;
  };

  bool collect_pairs(const ListTable& p, const ListTable& f, const Shape& shape, std::size_t x, std::uint32_t g) {
    pairs_.clear();
    total_ = longest_ = rows_ = 0;
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
      fastest_time_ = fastest;
      total_ += std::size_t(pair.p_end - pair.p_begin) * (pair.f_end - pair.f_begin);
      longest_ = std::max<std::size_t>(longest_, (pair.p_end - pair.p_begin) + (pair.f_end - pair.f_begin));
      rows_ += std::min(pair.p_end - pair.p_begin, pair.f_end - pair.f_begin);
      pairs_.push_back(pair);
    }
    return !pairs_.empty();
  }

  /// Buckets cover [least memory, memory of the fastest candidate]; anything above is dominated by the latter.
  void choose_buckets() {
    const std::size_t most = std::clamp(std::bit_ceil(32 * longest_), kMaxBuckets, kManyBuckets);
    const std::size_t wanted = std::clamp<std::size_t>(std::bit_ceil(total_ / 2), 8, most);
    const auto range = static_cast<std::uint64_t>(high_ - low_);
    shift_ = std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(wanted - 1)));
    buckets_ = static_cast<std::size_t>(range >> shift_) + 1;
    if (coarse_) {
      // Small entries get a few buckets all the same: what they choose between, many layers may have.
      const int few = std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(kFewBuckets));
      shift_ = std::max({0, std::min(region_.coarse_shift(), few),
                         static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(kManyBuckets - 1))});
      buckets_ = static_cast<std::size_t>(range >> shift_) + 1;
    }
    if (limits_.size() < buckets_) limits_.resize(buckets_);
    if (shift_ != 0 && !coarse_) fastest_.assign(buckets_, {kInfinity, 0});
  }

  /// Of the points of one bucket the one nearest to the hull is kept, by the slope of the limits there.
  void prepare_coarse() {
    chosen_.assign(buckets_, {0, kInfinity, 0, 0});
    slopes_.resize(buckets_);
    const double width = std::ldexp(1.0, shift_);
    for (std::size_t k = 0; k < buckets_; ++k) {
      const std::size_t next = std::min(k + 256, buckets_ - 1);
      const double fall = limits_[k] - limits_[next];
      slopes_[k] = next > k && fall > 0 && fall < kInfinity ? fall / (static_cast<double>(next - k) * width) : 0;
    }
  }

  void offer_coarse(std::int64_t memory, double time, std::uint32_t p, std::uint32_t f) {
    const std::uint64_t k = static_cast<std::uint64_t>(memory) >> shift_;
    if (k >= buckets_ || !(time < limits_[k])) return;
    Candidate& chosen = chosen_[k];
    const Candidate fresh{memory, time, p, f};
    if (chosen.time < kInfinity) {
      const double nearer = (time - chosen.time) + slopes_[k] * static_cast<double>(memory - chosen.memory);
      if (nearer > 0 || (nearer == 0 && !Before()(fresh, chosen))) return;
    }
    chosen = fresh;
    for (std::size_t j = k + 1; j < buckets_ && limits_[j] > time; ++j) limits_[j] = time;
  }

  /// Cuts the range of memory to where the bounds leave anything open, so that the buckets are spent there.
  void trim(std::uint32_t table, std::size_t entry) {
    double limits[kTrimBuckets];
    const auto range = static_cast<std::uint64_t>(high_ - low_);
    const int shift =
        std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(kTrimBuckets - 1)));
    const std::size_t count = static_cast<std::size_t>(range >> shift) + 1;
    region_.fill(table, entry, low_, shift, limits, count);
    std::size_t begin = 0, end = count;
    while (begin < end && !(limits[begin] > fastest_time_)) ++begin;
    while (begin < end && !(limits[end - 1] > fastest_time_)) --end;
    if (begin == 0 && end == count) return;
    windowed_ = true;
    high_ = std::min(high_, low_ + static_cast<std::int64_t>(end << shift) - 1);
    low_ += static_cast<std::int64_t>(begin << shift);
  }

  /// Nothing at or above the achieved staircase is wanted.
  void lower_to(const CostList& achieved) {
    auto next = achieved.begin();
    double time = kInfinity;
    for (std::size_t k = 0; k < buckets_; ++k) {
      const std::int64_t memory = low_ + static_cast<std::int64_t>(k << shift_);
      for (; next != achieved.end() && next->memory <= memory; ++next) time = next->time;
      limits_[k] = std::min(limits_[k], time);
    }
  }

  /// Round 0 takes every 64th row of products, round 1 every eighth, round 2 the rest; -1 takes all.
  static bool in_round(std::size_t row, int round) {
    const int own = row % 64 == 0 ? 0 : row % 8 == 0 ? 1 : 2;
    return round < 0 || own == round;
  }

  void multiply(const ListTable& p, const ListTable& f, const Pair& pair, int round, std::size_t& row) {
    const bool p_inner = pair.p_end - pair.p_begin >= pair.f_end - pair.f_begin;
    const ListTable &inner = p_inner ? p : f, &outer = p_inner ? f : p;
    const std::uint32_t inner_begin = p_inner ? pair.p_begin : pair.f_begin,
                        inner_end = p_inner ? pair.p_end : pair.f_end;
    const std::uint32_t outer_begin = p_inner ? pair.f_begin : pair.p_begin,
                        outer_end = p_inner ? pair.f_end : pair.p_end;
    const OpenLimits limits{limits_.data(), buckets_, shift_};
    for (std::uint32_t o = outer_begin; o < outer_end; ++o) {
      if (!in_round(row++, round)) continue;
      work_ += (inner_end - inner_begin) / kBlock + 1;
      if (work_ > kPollWork / kBlock) {
        work_ = 0;
        if (control_.stopped()) {
          stopped_ = true;
          return;
        }
        if (tick_) {
          const double share = static_cast<double>(row) / static_cast<double>(rows_);
          tick_(round < 0 ? share : (round + share) / kRounds);
        }
      }
      const std::int64_t m0 = outer.memory[o] - low_;
      const double t0 = outer.time[o];
      // From the fast end backwards, so that limits lowered by a point are hardly touched by the next one.
      std::uint32_t end = inner_end, stop = inner_begin;
      if (windowed_) {
        const auto memory = inner.memory.begin();
        stop = static_cast<std::uint32_t>(std::lower_bound(memory + inner_begin, memory + inner_end, -m0) - memory);
        end =
            static_cast<std::uint32_t>(std::upper_bound(memory + stop, memory + inner_end, high_ - low_ - m0) - memory);
      }
      while (end > stop) {
        const std::uint32_t far = end - stop > kSpan ? end - static_cast<std::uint32_t>(kSpan) : stop;
        if (!may_improve(m0 + inner.memory[far], t0 + inner.time[end - 1])) {
          end = far;
          continue;
        }
        std::uint64_t open = open_points_(&inner.memory[far], &inner.time[far], end - far, m0, t0, limits);
        while (open != 0) {
          const int bit = 63 - std::countl_zero(open);
          open ^= std::uint64_t(1) << bit;
          const std::uint32_t i = far + static_cast<std::uint32_t>(bit);
          if (coarse_)
            offer_coarse(m0 + inner.memory[i], t0 + inner.time[i], p_inner ? i : o, p_inner ? o : i);
          else
            offer(m0 + inner.memory[i], t0 + inner.time[i], p_inner ? i : o, p_inner ? o : i);
        }
        end = far;
      }
      if (candidates_.size() > compact_at_) {
        compact();
        compact_at_ = std::max(kCompact, 2 * candidates_.size());
      }
    }
  }

  /// Limits fall with memory, so the least memory and the least time of some points say whether any may be of use.
  bool may_improve(std::int64_t memory, double time) const {
    const std::uint64_t k = static_cast<std::uint64_t>(memory) >> shift_;
    return k < buckets_ && time < limits_[k];
  }

  void offer(std::int64_t memory, double time, std::uint32_t p, std::uint32_t f) {
    const std::uint64_t k = static_cast<std::uint64_t>(memory) >> shift_;
    if (k >= buckets_ || !(time < limits_[k])) return;
    if (shift_ != 0) {
      Fastest& fastest = fastest_[k];
      if (time < fastest.time || (time == fastest.time && memory < fastest.memory))
        fastest = {time, memory};
      else if (memory >= fastest.memory)
        return;
    }
    // Equal layers make many sums of equal memory. The slot may be stale, so what it names is compared.
    std::uint32_t& slot = slots_[(static_cast<std::uint64_t>(memory) * 0x9e3779b97f4a7c15ull) >> (64 - kSlotBits)];
    if (slot < candidates_.size() && candidates_[slot].memory == memory) {
      Candidate& known = candidates_[slot];
      const Candidate fresh{memory, time, p, f};
      if (!Before()(fresh, known)) return;
      known = fresh;
    } else {
      slot = static_cast<std::uint32_t>(candidates_.size());
      candidates_.push_back({memory, time, p, f});
    }
    // Later buckets hold more memory, so they must be faster; within a bucket order is unknown unless it has width 1.
    for (std::size_t j = k + (shift_ == 0 ? 0 : 1); j < buckets_ && limits_[j] > time; ++j) limits_[j] = time;
  }

  /// Drops what later candidates have dominated and sorts the rest.
  void compact() {
    std::size_t kept = 0;
    for (const Candidate& c : candidates_) {
      const std::uint64_t k = static_cast<std::uint64_t>(c.memory) >> shift_;
      if (shift_ == 0 ? c.time <= limits_[k] : c.time < limits_[k] && c.memory <= fastest_[k].memory)
        candidates_[kept++] = c;
    }
    candidates_.resize(kept);
    if (kept < 2) return;
    sort_by_bucket();
    double best = kInfinity;
    kept = 0;
    for (const Candidate& c : candidates_)
      if (c.time < best) {
        best = c.time;
        candidates_[kept++] = c;
      }
    candidates_.resize(kept);
  }

  struct Before {
    bool operator()(const Candidate& x, const Candidate& y) const {
      if (x.memory != y.memory) return x.memory < y.memory;
      if (x.time != y.time) return x.time < y.time;
      return x.p != y.p ? x.p < y.p : x.f < y.f;
    }
  };

  /// Buckets are in order of memory, so a counting sort leaves only short runs to sort.
  void sort_by_bucket() {
    if (candidates_.size() < 4 * buckets_ / 64 || candidates_.size() < 32) {
      std::sort(candidates_.begin(), candidates_.end(), Before());
      return;
    }
    const auto bucket = [&](const Candidate& c) {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(c.memory) >> shift_);
    };
    starts_.assign(buckets_ + 1, 0);
    for (const Candidate& c : candidates_) ++starts_[bucket(c) + 1];
    for (std::size_t k = 0; k < buckets_; ++k) starts_[k + 1] += starts_[k];
    sorted_.resize(candidates_.size());
    for (const Candidate& c : candidates_) sorted_[starts_[bucket(c)]++] = c;
    std::size_t begin = 0;
    for (std::size_t k = 0; k < buckets_; ++k) {
      const std::size_t end = starts_[k];
      if (end - begin > 1)
        std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin),
                  sorted_.begin() + static_cast<std::ptrdiff_t>(end), Before());
      begin = end;
      if ((k & 8191) == 0 && control_.stopped()) {
        stopped_ = true;
        return;
      }
    }
    candidates_.swap(sorted_);
  }

  /// Of neighbours that are near enough, the one that lies lowest at the slope of the region, or the corner below them.
  void join_neighbours(std::uint32_t table, std::size_t entry) {
    const ListOptions& options = region_.options();
    const double share_m = 1 / options.near_memory, share_t = 1 / options.near_time;
    double slopes[kPieces];
    int shift = -1;
    std::size_t kept = 0;
    for (std::size_t begin = 0, end = 0; begin < candidates_.size(); begin = end) {
      const Candidate first = candidates_[begin];
      for (end = begin + 1; end < candidates_.size(); ++end)
        if (static_cast<double>(candidates_[end].memory - first.memory) * share_m +
                (first.time - candidates_[end].time) * share_t >
            1)
          break;
      Candidate best = first;
      if (options.corners) {
        best.time = candidates_[end - 1].time;
      } else if (end - begin > 1) {
        if (shift < 0) shift = slopes_of(table, entry, slopes);
        const double slope = slopes[static_cast<std::uint64_t>(first.memory) >> shift];
        double least = first.time;
        for (std::size_t i = begin + 1; i < end; ++i) {
          const double value = candidates_[i].time + slope * static_cast<double>(candidates_[i].memory - first.memory);
          if (value < least) least = value, best = candidates_[i];
        }
      }
      candidates_[kept++] = best;
    }
    candidates_.resize(kept);
  }

  /// How fast the region's limit falls, seconds per byte, by piece of the range of memory; returns the pieces' shift.
  int slopes_of(std::uint32_t table, std::size_t entry, double* slopes) const {
    const auto range = static_cast<std::uint64_t>(high_ - low_);
    const int shift =
        std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(kPieces - 1)));
    region_.fill(table, entry, low_, shift, slopes, kPieces);
    for (std::size_t k = 0; k + 1 < kPieces; ++k) {
      const double fall = slopes[k] - slopes[k + 1];
      slopes[k] = fall > 0 && fall < kInfinity ? fall / std::ldexp(1.0, shift) : 0;
    }
    slopes[kPieces - 1] = slopes[kPieces - 2];
    return shift;
  }

  std::size_t finish(std::uint32_t table, std::size_t entry, Chunk& out) {
    if (coarse_) {
      double best = kInfinity;
      for (std::size_t k = 0; k < buckets_; ++k)
        if (chosen_[k].time < best) {
          best = chosen_[k].time;
          candidates_.push_back(chosen_[k]);
        }
    } else {
      compact();
      if (region_.options().near_memory > 0) join_neighbours(table, entry);
    }
    for (const Candidate& c : candidates_) {
      out.memory.push_back(c.memory + low_);
      out.time.push_back(c.time);
      out.p.push_back(c.p);
      out.f.push_back(c.f);
    }
    return candidates_.size();
  }

  const Region& region_;
  const Control& control_;
  std::function<void(double)> tick_;
  std::vector<Pair> pairs_;
  std::vector<Candidate> candidates_, sorted_;
  struct Fastest {
    double time;
    std::int64_t memory;
  };
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(std::size_t(1) << kSlotBits);  // memory -> candidate
  const bool coarse_;
  const OpenPoints open_points_ = supported_open_points().front();
  std::vector<Candidate> chosen_;  // coarse: of every bucket
  std::vector<double> slopes_;
  std::vector<Fastest> fastest_;  // candidate of every bucket, if buckets are wider than 1
  std::vector<std::uint32_t> starts_;
  std::size_t total_ = 0, longest_ = 0, rows_ = 0, buckets_ = 0, work_ = 0, compact_at_ = kCompact;
  std::int64_t low_ = 0, high_ = 0;
  double fastest_time_ = 0;  // of all products of the entry
  int shift_ = 0;
  bool stopped_ = false, windowed_ = false;
  std::vector<double> limits_ = std::vector<double>(kMaxBuckets);
};

}  // namespace turnpoint::frontier::detail
