// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/lagrange.h"

#include <algorithm>
#include <cmath>

#include "core/base/discard.h"
#include "core/frontier/dispatch.h"

namespace turnpoint::frontier::detail {

namespace {

constexpr float kForbidden = 1e30f;   // finite, so that sums and differences stay ordered
constexpr float kFeasible = 0.5e30f;  // everything below is a real cost
constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr int kPartTerms = 18;    // log2 of terms in a part: small enough to notice a stop request soon
constexpr int kSharedTerms = 15;  // the same where threads share a step: several times as long as handing it out takes
constexpr int kSharedEntries = 12;  // log2 of entries in a part: the same of passes over a table

/// One value per lane; the compiler maps it to whatever registers the chosen instruction set has.
typedef float LaneVector __attribute__((vector_size(kLanes * sizeof(float)), may_alias));

inline const LaneVector& lanes_at(const float* p) { return *reinterpret_cast<const LaneVector*>(p); }
inline LaneVector& lanes_at(float* p) { return *reinterpret_cast<LaneVector*>(p); }

/// Rows order[begin, end) of a step, and the least of each lane among them. Rows that read the same part of F (equal
/// f_base, neighbours in `order`) are taken four at a time, so that F is read once for all of them.
TURNPOINT_VECTOR_CLONES void inside_rows(const float* p, const float* f, const Shape& shape, std::size_t begin,
                                         std::size_t end, float* out, float* minimum) {
  const std::uint32_t groups = shape.groups();
  const std::uint32_t *item_s = shape.item_s.data(), *item_f = shape.item_f.data(), *group = shape.group_begin.data();
  const std::uint32_t* order = shape.by_f.data();
  const LaneVector forbidden = LaneVector{} + kForbidden;
  LaneVector least = forbidden;
  while (begin < end) {
    const std::uint32_t base = shape.f_base[order[begin]];
    const float* fx = f + std::size_t(base) * kLanes;
    const auto p_at = [&](std::size_t i) { return p + std::size_t(shape.p_row[order[i]]) * shape.p_columns * kLanes; };
    const auto out_at = [&](std::size_t i) { return out + std::size_t(order[i]) * groups * kLanes; };
    if (begin + 4 <= end && shape.f_base[order[begin + 3]] == base) {
      const float *p0 = p_at(begin), *p1 = p_at(begin + 1), *p2 = p_at(begin + 2), *p3 = p_at(begin + 3);
      float *o0 = out_at(begin), *o1 = out_at(begin + 1), *o2 = out_at(begin + 2), *o3 = out_at(begin + 3);
      for (std::uint32_t g = 0; g < groups; ++g) {
        LaneVector b0 = forbidden, b1 = forbidden, b2 = forbidden, b3 = forbidden;
        for (std::uint32_t i = group[g]; i < group[g + 1]; ++i) {
          const std::size_t s = std::size_t(item_s[i]) * kLanes;
          const LaneVector c = lanes_at(fx + std::size_t(item_f[i]) * kLanes);
          const LaneVector v0 = lanes_at(p0 + s) + c, v1 = lanes_at(p1 + s) + c, v2 = lanes_at(p2 + s) + c,
                           v3 = lanes_at(p3 + s) + c;
          b0 = v0 < b0 ? v0 : b0;
          b1 = v1 < b1 ? v1 : b1;
          b2 = v2 < b2 ? v2 : b2;
          b3 = v3 < b3 ? v3 : b3;
        }
        const std::size_t at = std::size_t(g) * kLanes;
        lanes_at(o0 + at) = b0;
        lanes_at(o1 + at) = b1;
        lanes_at(o2 + at) = b2;
        lanes_at(o3 + at) = b3;
        b0 = b1 < b0 ? b1 : b0;
        b2 = b3 < b2 ? b3 : b2;
        b0 = b2 < b0 ? b2 : b0;
        least = b0 < least ? b0 : least;
      }
      begin += 4;
      continue;
    }
    const float* px = p_at(begin);
    float* o = out_at(begin);
    for (std::uint32_t g = 0; g < groups; ++g) {
      LaneVector best = forbidden;
      for (std::uint32_t i = group[g]; i < group[g + 1]; ++i) {
        const LaneVector v =
            lanes_at(px + std::size_t(item_s[i]) * kLanes) + lanes_at(fx + std::size_t(item_f[i]) * kLanes);
        best = v < best ? v : best;
      }
      lanes_at(o + std::size_t(g) * kLanes) = best;
      least = best < least ? best : least;
    }
    ++begin;
  }
  for (int l = 0; l < kLanes; ++l) minimum[l] = least[l];
}

/// Per lane the first item with the least sum.
TURNPOINT_VECTOR_CLONES void best_items(const float* px, const float* fx, const std::uint32_t* item_s,
                                        const std::uint32_t* item_f, std::size_t items, std::uint32_t* best_item) {
  typedef std::int32_t ItemVector __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
  LaneVector best = LaneVector{} + std::numeric_limits<float>::infinity();
  ItemVector best_at{};
  for (std::size_t i = 0; i < items; ++i) {
    const LaneVector v =
        lanes_at(px + std::size_t(item_s[i]) * kLanes) + lanes_at(fx + std::size_t(item_f[i]) * kLanes);
    const ItemVector better = v < best;
    best = better ? v : best;
    best_at = better ? ItemVector{} + static_cast<std::int32_t>(i) : best_at;
  }
  for (std::size_t l = 0; l < kLanes; ++l) best_item[l] = static_cast<std::uint32_t>(best_at[l]);
}

/// Pushes the completions of one result entry to everything it was made of.
TURNPOINT_VECTOR_CLONES void outside_entry(const float* o, const float* shift, const float* px, const float* fx,
                                           float* out_p, float* out_f, const std::uint32_t* item_s,
                                           const std::uint32_t* item_f, std::size_t items) {
  const LaneVector base = lanes_at(o) - lanes_at(shift);
  for (std::size_t i = 0; i < items; ++i) {
    const std::size_t s = std::size_t(item_s[i]) * kLanes, c = std::size_t(item_f[i]) * kLanes;
    LaneVector &op = lanes_at(out_p + s), &of = lanes_at(out_f + c);
    const LaneVector vp = base + lanes_at(fx + c), vf = base + lanes_at(px + s);
    op = vp < op ? vp : op;
    of = vf < of ? vf : of;
  }
}

/// Least weighted cost of every entry of a leaf.
TURNPOINT_VECTOR_CLONES void leaf_costs(const Leaf& leaf, const double* weight_memory, const double* weight_time,
                                        double* out) {
  const std::size_t entries = leaf.entries();
  for (std::size_t e = 0; e < entries; ++e) {
    double best[kLanes];
    for (int l = 0; l < kLanes; ++l) best[l] = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = leaf.offsets[e]; i < leaf.offsets[e + 1]; ++i) {
      const double m = static_cast<double>(leaf.memory[i]), t = leaf.time[i];
      for (int l = 0; l < kLanes; ++l) {
        const double v = weight_memory[l] * m + weight_time[l] * t;
        best[l] = v < best[l] ? v : best[l];
      }
    }
    for (int l = 0; l < kLanes; ++l) out[e * kLanes + static_cast<std::size_t>(l)] = best[l];
  }
}

/// Relative to the offsets, as floats.
TURNPOINT_VECTOR_CLONES void leaf_excess(const double* exact, std::size_t entries, const double* offset, float* out) {
  for (std::size_t e = 0; e < entries; ++e)
    for (int l = 0; l < kLanes; ++l) {
      const double v = exact[e * kLanes + static_cast<std::size_t>(l)] - offset[l];
      out[e * kLanes + static_cast<std::size_t>(l)] = v < double(kFeasible) ? static_cast<float>(v) : kForbidden;
    }
}

/// Regions (one bit each) in which the excess of every lane lies below its slack.
TURNPOINT_VECTOR_CLONES std::uint32_t open_regions(const float* inside, const float* outside, const float* slack,
                                                   const int* regions, int count) {
  float excess[kLanes];
  for (int l = 0; l < kLanes; ++l) excess[l] = inside[l] + outside[l];
  std::uint32_t mask = 0;
  for (int i = 0; i < count; ++i) {
    const float* limit = slack + regions[i] * kLanes;
    int above = 0;
    for (int l = 0; l < kLanes; ++l) above |= !(excess[l] < limit[l]);
    if (!above) mask |= 1u << regions[i];
  }
  return mask;
}

TURNPOINT_VECTOR_CLONES void subtract(float* values, std::size_t entries, const float* minimum) {
  for (std::size_t e = 0; e < entries; ++e)
    for (int l = 0; l < kLanes; ++l) {
      const float v = values[e * kLanes + l];
      values[e * kLanes + l] = v < kFeasible ? v - minimum[l] : kForbidden;
    }
}

/// body(i) for all of them, by the threads of a pool if there is one.
template <class Body>
void for_parts(std::size_t parts, ThreadPool* pool, const Body& body) {
  if (pool && parts > 1) {
    pool->for_each(parts, [&](std::size_t i, int) { body(i); });
    return;
  }
  for (std::size_t i = 0; i < parts; ++i) body(i);
}

}  // namespace

void LaneBlock::inside_leaf(const Leaf& leaf, const std::vector<double>* added, LaneValues& values,
                            Lanes& offset) const {
  const std::size_t entries = leaf.entries();
  std::vector<double> exact(entries * kLanes);
  leaf_costs(leaf, weight_memory.data(), weight_time.data(), exact.data());
  if (added)
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += (*added)[i];
  offset.fill(std::numeric_limits<double>::infinity());
  for (std::size_t e = 0; e < entries; ++e)
    for (std::size_t l = 0; l < kLanes; ++l) offset[l] = std::min(offset[l], exact[e * kLanes + l]);
  values.resize(entries * kLanes);
  leaf_excess(exact.data(), entries, offset.data(), values.data());
}

bool LaneBlock::inside_leaves(const Dag& dag, ThreadPool* pool) {
  std::vector<std::size_t> leaves;
  for (std::size_t t = 0; t < dag.tables.size(); ++t)
    if (dag.tables[t].leaf) leaves.push_back(t);
  for_parts(leaves.size(), pool, [&](std::size_t i) {
    const std::size_t t = leaves[i];
    const bool adjusted = t < adjust.size() && !adjust[t].empty();
    inside_leaf(*dag.tables[t].leaf, adjusted ? &adjust[t] : nullptr, inside_[t], offsets_[t]);
  });
  return std::ranges::all_of(leaves, [&](std::size_t t) { return std::isfinite(offsets_[t][0]); });
}

/// `least`: of each part of the table, by lane.
bool LaneBlock::normalise(std::uint32_t table, std::span<const std::array<float, kLanes>> least, ThreadPool* pool) {
  std::array<float, kLanes> minimum = least.front();
  for (const auto& part : least)
    for (std::size_t l = 0; l < kLanes; ++l) minimum[l] = std::min(minimum[l], part[l]);
  for (std::size_t l = 0; l < kLanes; ++l) {
    if (!(minimum[l] < kFeasible)) return false;
    shifts_[table][l] = minimum[l];
  }
  float* values = inside_[table].data();
  const std::size_t entries = inside_[table].size() / kLanes, parts = (entries >> kSharedEntries) + 1;
  for_parts(parts, pool, [&](std::size_t i) {
    const std::size_t begin = entries * i / parts;
    subtract(values + begin * kLanes, entries * (i + 1) / parts - begin, minimum.data());
  });
  return true;
}

bool LaneBlock::inside(const Dag& dag, const Control& control, ThreadPool* pool) {
  inside_.resize(dag.tables.size());
  offsets_.assign(dag.tables.size(), Lanes{});
  shifts_.assign(dag.tables.size(), Lanes{});
  root_ = dag.root;
  operations_ = dag.plan->steps.size() + dag.plan->leaves() + 1;
  if (!inside_leaves(dag, pool)) return false;
  std::vector<std::array<float, kLanes>> least;
  for (const auto& step : dag.steps) {
    const Shape& shape = *step.shape;
    auto& out = inside_[step.out];
    out.resize(shape.entries() * kLanes);
    const std::size_t parts = std::min(shape.outer(), shape.terms() >> (pool ? kSharedTerms : kPartTerms)) + 1;
    least.resize(parts);
    for_parts(parts, pool, [&](std::size_t i) {
      if (!control.cancelled())
        inside_rows(inside_[step.p].data(), inside_[step.f].data(), shape, shape.outer() * i / parts,
                    shape.outer() * (i + 1) / parts, out.data(), least[i].data());
    });
    if (control.cancelled()) return false;
    if (!normalise(step.out, least, pool)) return false;
    for (int l = 0; l < kLanes; ++l)
      offsets_[step.out][l] = offsets_[step.p][l] + offsets_[step.f][l] + shifts_[step.out][l];
    control.count({.terms = static_cast<double>(shape.terms())});
  }
  return true;
}

void LaneBlock::release() {
  free_memory(inside_);
  free_memory(outside_);
}

double LaneBlock::margin(int lane, double slack) const {
  // Every sum is rounded relative to a value of at most (increase of the bound in this step) + slack.
  return std::ldexp(std::abs(bound(lane)) + static_cast<double>(operations_) * std::max(0.0, slack), -21);
}

namespace {

/// Of one entry of a unique table, per lane: the entries of P and F that it is made of; of a leaf, the point (as `p`).
struct MadeOf {
  std::size_t entry = 0;
  std::array<std::uint32_t, kLanes> p{}, f{};
};

/// Every lane's best point of a leaf's entry.
void best_points(const Leaf& leaf, const Lanes& weight_memory, const Lanes& weight_time, MadeOf& made) {
  Lanes best;
  best.fill(std::numeric_limits<double>::infinity());
  for (std::uint32_t i = leaf.offsets[made.entry]; i < leaf.offsets[made.entry + 1]; ++i) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double v = weight_memory[l] * static_cast<double>(leaf.memory[i]) + weight_time[l] * leaf.time[i];
      if (!(v < best[l])) continue;
      best[l] = v;
      made.p[l] = i;
    }
  }
}

}  // namespace

std::vector<Choice> LaneBlock::trace(const Dag& dag) const {
  const Elimination& plan = *dag.plan;
  // Copies of a layer ask the same of the same tables, and so do most lanes.
  std::vector<std::vector<MadeOf>> known(dag.tables.size());
  const auto made_of = [&](std::uint32_t table, std::size_t entry) -> const MadeOf& {
    auto& entries = known[dag.unique_of[table]];
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const MadeOf& m) { return m.entry == entry; });
    if (found != entries.end()) return *found;
    MadeOf& made = entries.emplace_back();
    made.entry = entry;
    if (table < plan.leaves()) {
      best_points(*dag.tables[dag.unique_of[table]].leaf, weight_memory, weight_time, made);
      return made;
    }
    const Step& step = plan.steps[dag.producer[table]];
    const Shape& shape = *plan.shapes[step.shape];
    const std::size_t x = entry / shape.groups(), g = entry % shape.groups(), first = shape.group_begin[g],
                      p_base = std::size_t(shape.p_row[x]) * shape.p_columns, f_base = shape.f_base[x];
    std::array<std::uint32_t, kLanes> item{};
    best_items(inside_[dag.unique_of[step.p]].data() + p_base * kLanes,
               inside_[dag.unique_of[step.f]].data() + f_base * kLanes, shape.item_s.data() + first,
               shape.item_f.data() + first, shape.group_begin[g + 1] - first, item.data());
    for (std::size_t l = 0; l < kLanes; ++l) {
      made.p[l] = static_cast<std::uint32_t>(p_base + shape.item_s[first + item[l]]);
      made.f[l] = static_cast<std::uint32_t>(f_base + shape.item_f[first + item[l]]);
    }
    return made;
  };
  std::vector<Choice> choices(kLanes, Choice(plan.leaves(), 0));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stack;  // table, entry
  for (std::size_t l = 0; l < kLanes; ++l) {
    stack.assign(1, {plan.root, 0});
    while (!stack.empty()) {
      const auto [table, entry] = stack.back();
      stack.pop_back();
      if (table == plan.unit_table()) continue;
      const MadeOf& made = made_of(table, entry);
      if (table < plan.leaves()) {
        choices[l][table] = made.p[l];
        continue;
      }
      const Step& step = plan.steps[dag.producer[table]];
      stack.push_back({step.p, made.p[l]});
      stack.push_back({step.f, made.f[l]});
    }
  }
  return choices;
}

Slack separate(const Lanes& slack) {
  Slack result;
  for (std::size_t g = 0; g < kLanes; ++g) {
    result[g].fill(slack[g] > kNever ? kNoLimit : kNever);
    result[g][g] = slack[g];
  }
  return result;
}

void LaneBlock::outside(const Dag& dag, const Slack& slack, const Control& control, bool frugal) {
  slack_ = slack;
  bounds_.resize(dag.tables.size());
  outside_.resize(dag.tables.size());
  outside_ready_.assign(dag.tables.size(), 0);
  float room[kLanes * kLanes];
  int regions[kLanes], count = 0;
  for (std::size_t g = 0; g < kLanes; ++g) {
    for (std::size_t l = 0; l < kLanes; ++l) room[g * kLanes + l] = static_cast<float>(slack[g][l]);
    if (slack[g][0] > kNever) regions[count++] = static_cast<int>(g);
  }
  const auto at = [&](std::uint32_t table) -> LaneValues& {
    if (!outside_ready_[table]) outside_[table].assign(dag.tables[table].entries * kLanes, kForbidden);
    outside_ready_[table] = 1;
    return outside_[table];
  };
  const auto finish = [&](std::uint32_t table) {
    TableBounds& bounds = bounds_[table];
    const auto &in = inside_[table], &out = at(table);
    bounds.row_of.assign(dag.tables[table].entries, TableBounds::kDead);
    bounds.masks.clear();
    bounds.outside.clear();
    for (std::size_t e = 0; e < bounds.row_of.size(); ++e) {
      const std::uint32_t mask = open_regions(&in[e * kLanes], &out[e * kLanes], room, regions, count);
      if (mask == 0) continue;
      bounds.row_of[e] = static_cast<std::uint32_t>(bounds.masks.size());
      bounds.masks.push_back(static_cast<std::uint16_t>(mask));
      bounds.outside.insert(bounds.outside.end(), &out[e * kLanes], &out[e * kLanes] + kLanes);
    }
  };
  at(dag.root).assign(dag.tables[dag.root].entries * kLanes, 0.0f);
  for (std::size_t i = dag.steps.size(); i-- > 0;) {
    const auto& step = dag.steps[i];
    const Shape& shape = *step.shape;
    finish(step.out);
    auto &out = at(step.out), &out_p = at(step.p), &out_f = at(step.f);
    alignas(64) float shift[kLanes];
    for (std::size_t l = 0; l < kLanes; ++l) shift[l] = static_cast<float>(shifts_[step.out][l]);
    const auto& alive = bounds_[step.out].row_of;
    const float *p = inside_[step.p].data(), *f = inside_[step.f].data();
    std::size_t terms = 0;
    for (std::size_t x = 0; x < shape.outer(); ++x) {
      if ((x & 63) == 0 && control.cancelled()) return;
      const std::size_t px = std::size_t(shape.p_row[x]) * shape.p_columns * kLanes,
                        fx = std::size_t(shape.f_base[x]) * kLanes;
      for (std::uint32_t g = 0; g < shape.groups(); ++g) {
        const std::size_t e = x * shape.groups() + g;
        if (alive[e] == TableBounds::kDead) continue;
        const std::uint32_t begin = shape.group_begin[g], end = shape.group_begin[g + 1];
        terms += end - begin;
        outside_entry(&out[e * kLanes], shift, p + px, f + fx, &out_p[px], &out_f[fx], &shape.item_s[begin],
                      &shape.item_f[begin], end - begin);
      }
    }
    control.count({.terms = static_cast<double>(terms)});
    if (frugal) {
      free_memory(inside_[step.out]);
      free_memory(outside_[step.out]);
    }
  }
  for (std::uint32_t t = 0; t < dag.tables.size(); ++t)
    if (dag.tables[t].leaf) finish(t);
}

LaneValues LaneBlock::marginals(std::uint32_t unique_table) const {
  LaneValues values = inside_[unique_table];
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::min(values[i] + outside_[unique_table][i], kForbidden);
  return values;
}

double scalar_bound(const Dag& dag, double weight_memory, double weight_time,
                    const std::vector<std::vector<double>>& added, std::size_t lane) {
  std::vector<std::vector<double>> values(dag.tables.size());
  for (std::size_t t = 0; t < dag.tables.size(); ++t) {
    if (!dag.tables[t].leaf) continue;
    const Leaf& leaf = *dag.tables[t].leaf;
    for (std::size_t e = 0; e < leaf.entries(); ++e) {
      double best = kInfinity;
      for (std::uint32_t i = leaf.offsets[e]; i < leaf.offsets[e + 1]; ++i)
        best = std::min(best, weight_memory * static_cast<double>(leaf.memory[i]) + weight_time * leaf.time[i]);
      if (t < added.size() && !added[t].empty()) best += added[t][e * kLanes + lane];
      values[t].push_back(best);
    }
  }
  for (const auto& step : dag.steps) {
    const Shape& shape = *step.shape;
    for (std::size_t x = 0; x < shape.outer(); ++x)
      for (std::uint32_t g = 0; g < shape.groups(); ++g) {
        double best = kInfinity;
        for (std::uint32_t i = shape.group_begin[g]; i < shape.group_begin[g + 1]; ++i)
          best = std::min(best, values[step.p][std::size_t(shape.p_row[x]) * shape.p_columns + shape.item_s[i]] +
                                    values[step.f][shape.f_base[x] + shape.item_f[i]]);
        values[step.out].push_back(best);
      }
  }
  return values[dag.root][0];
}

}  // namespace turnpoint::frontier::detail
