// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/elimination.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/frontier/joined_classes.h"
#include "core/frontier/ring.h"

namespace turnpoint::frontier::detail {

namespace {

/// One variable in the scope of a table: which class each of its states has, and where that class lies in the table.
struct Axis {
  std::uint32_t variable = 0;
  std::vector<std::uint32_t> class_of;  ///< state -> dense class
  std::vector<std::uint32_t> offset;    ///< dense class -> contribution to the table index
};

struct WorkFactor {
  std::uint32_t table = 0;
  std::uint32_t base = 0;  ///< start in the table; an axis with one class is dropped and leaves its offset here
  std::vector<Axis> axes;
  double mass = 1;  ///< number of leaves inside; the length of lists grows with it

  const Axis* axis(std::uint32_t v) const {
    for (const Axis& a : axes)
      if (a.variable == v) return &a;
    return nullptr;
  }
  double outer_size(std::uint32_t v) const {
    double size = 1;
    for (const Axis& a : axes)
      if (a.variable != v) size *= static_cast<double>(a.offset.size());
    return size;
  }
};

/// The outer scope of a partial product during the elimination of one variable.
struct Scope {
  struct Entry {
    std::uint32_t variable;
    std::vector<std::uint32_t> class_of;
    std::uint32_t count;
  };
  std::vector<Entry> entries;
  double size() const {
    double s = 1;
    for (const Entry& e : entries) s *= e.count;
    return s;
  }
};

class Eliminator {
 public:
  /// `pivot`, if it is a variable, is eliminated last.
  Eliminator(const Graph& graph, std::size_t max_table, std::stop_token stop, std::uint32_t pivot,
             std::size_t short_part)
      : graph_(graph),
        max_table_(static_cast<double>(max_table)),
        stop_(std::move(stop)),
        pivot_(pivot),
        short_part_(static_cast<double>(short_part)) {
    plan_.variables = graph.variables.size();
    plan_.factors = graph.factors.size();
    incident_.resize(plan_.variables);
    for (std::size_t k = 0; k < plan_.factors; ++k) add_leaf_factor(k);
  }

  Elimination run() {
    const std::size_t n = plan_.variables;
    std::vector<double> work(n);
    std::vector<char> gone(n), dirty(n, 1);
    for (std::size_t left = n; left > 0; --left) {
      std::uint32_t best = 0;
      double best_work = std::numeric_limits<double>::infinity();
      for (std::uint32_t v = 0; v < n; ++v) {
        if (gone[v] || (v == pivot_ && left > 1)) continue;
        if (dirty[v]) {
          if (stop_.stop_requested()) return std::move(plan_);
          work[v] = estimate(v);
          dirty[v] = 0;
        }
        if (work[v] < best_work) {
          best_work = work[v];
          best = v;
        }
      }
      if (!(best_work < std::numeric_limits<double>::infinity())) {
        plan_.too_wide = true;
        plan_.stuck = widest(gone);
        return std::move(plan_);
      }
      gone[best] = 1;
      for (const std::uint32_t u : eliminate_variable(best)) dirty[u] = 1;
    }
    combine();
    return std::move(plan_);
  }

 private:
  struct Scalar {
    double mass;
    std::uint32_t table, entry;
  };

  void add_leaf_factor(std::size_t k) {
    const Factor& f = graph_.factors[k];
    WorkFactor w;
    w.table = static_cast<std::uint32_t>(plan_.variables + k);
    w.axes.push_back(leaf_axis(f.a, f.row_of, f.columns));
    w.axes.push_back(leaf_axis(f.b, f.column_of, 1));
    add_factor(std::move(w));
  }

  /// A variable that a table does not tell apart is no part of its scope; without scope it is a scalar.
  void add_factor(WorkFactor&& w) {
    for (const Axis& a : w.axes)
      if (a.offset.size() == 1) w.base += a.offset[0];
    std::erase_if(w.axes, [](const Axis& a) { return a.offset.size() == 1; });
    if (w.axes.empty()) {
      scalars_.push_back({w.mass, w.table, w.base});
      return;
    }
    while (const WorkFactor* parallel = find_parallel(w)) {
      const auto id = static_cast<std::uint32_t>(parallel - factors_.data());
      for (const Axis& a : w.axes) std::erase(incident_[a.variable], id);
      w = multiply(*parallel, w);
    }
    for (const Axis& a : w.axes) incident_[a.variable].push_back(static_cast<std::uint32_t>(factors_.size()));
    factors_.push_back(std::move(w));
  }

  /// A factor over the same two variables. Both must be short: long lists are better united before they are multiplied.
  const WorkFactor* find_parallel(const WorkFactor& w) const {
    if (w.axes.size() != 2 || w.mass > short_part_) return nullptr;
    for (const std::uint32_t id : incident_[w.axes[0].variable]) {
      const WorkFactor& f = factors_[id];
      const Axis *a = f.axis(w.axes[0].variable), *b = f.axis(w.axes[1].variable);
      if (f.axes.size() != 2 || !b || f.mass > short_part_) continue;
      const double size = double(join(a->class_of, w.axes[0].class_of).pairs.size()) *
                          double(join(b->class_of, w.axes[1].class_of).pairs.size());
      if (size <= max_table_) return &f;
    }
    return nullptr;
  }

  /// Eq. (5): the product of two factors between the same variables, once for all layers in which they are equal.
  /// Left to the elimination of either end, it would be multiplied with that end's long lists one after the other.
  WorkFactor multiply(const WorkFactor& p, const WorkFactor& f) {
    const Axis &outer = p.axes[0], &inner = p.axes[1];
    const Axis &f_outer = *f.axis(outer.variable), &f_inner = *f.axis(inner.variable);
    Dense rows = join(outer.class_of, f_outer.class_of), columns = join(inner.class_of, f_inner.class_of);
    Shape shape;
    shape.p_columns = 1;
    for (const auto& [x, y] : rows.pairs) {
      shape.p_row.push_back(p.base + outer.offset[x]);
      shape.f_base.push_back(f.base + f_outer.offset[y]);
    }
    shape.group_begin.push_back(0);
    for (const auto& [x, y] : columns.pairs) {
      shape.item_s.push_back(inner.offset[x]);
      shape.item_f.push_back(f_inner.offset[y]);
      shape.group_begin.push_back(static_cast<std::uint32_t>(shape.item_s.size()));
    }
    const auto width = static_cast<std::uint32_t>(columns.pairs.size());
    WorkFactor w;
    w.mass = p.mass + f.mass;
    w.axes = {{outer.variable, std::move(rows.class_of), {}}, {inner.variable, std::move(columns.class_of), {}}};
    for (std::uint32_t c = 0; c < rows.pairs.size(); ++c) w.axes[0].offset.push_back(c * width);
    for (std::uint32_t c = 0; c < width; ++c) w.axes[1].offset.push_back(c);
    w.table = add_step(p.table, f.table, std::move(shape));
    return w;
  }

  static Axis leaf_axis(std::uint32_t v, const std::vector<std::uint32_t>& classes, std::uint32_t stride) {
    Axis axis{v, {}, {}};
    std::unordered_map<std::uint32_t, std::uint32_t> known;
    for (const std::uint32_t c : classes) {
      const auto [it, fresh] = known.emplace(c, static_cast<std::uint32_t>(axis.offset.size()));
      if (fresh) axis.offset.push_back(c * stride);
      axis.class_of.push_back(it->second);
    }
    return axis;
  }

  /// Suffix numbers of the states of v with respect to a list of factors.
  std::vector<std::uint32_t> suffix(std::uint32_t v, const std::vector<std::uint32_t>& order, std::size_t from,
                                    std::uint32_t& count) const {
    std::vector<std::uint32_t> id(graph_.variables[v].states, 0);
    count = 1;
    for (std::size_t i = from; i < order.size(); ++i) {
      const Dense dense = join(id, factors_[order[i]].axis(v)->class_of);
      id = dense.class_of;
      count = static_cast<std::uint32_t>(dense.pairs.size());
    }
    return id;
  }

  void widen(Scope& scope, const WorkFactor& f, std::uint32_t v) const {
    for (const Axis& a : f.axes) {
      if (a.variable == v) continue;
      const auto it = std::find_if(scope.entries.begin(), scope.entries.end(),
                                   [&](const Scope::Entry& e) { return e.variable == a.variable; });
      if (it == scope.entries.end()) {
        scope.entries.push_back({a.variable, a.class_of, static_cast<std::uint32_t>(a.offset.size())});
      } else {
        Dense dense = join(it->class_of, a.class_of);
        it->class_of = std::move(dense.class_of);
        it->count = static_cast<std::uint32_t>(dense.pairs.size());
      }
    }
  }

  /// Work of absorbing the factors in this order: terms weighted by the expected lengths of lists; infinite if too
  /// wide.
  double order_work(std::uint32_t v, const std::vector<std::uint32_t>& order) const {
    Scope scope;
    double total = 0, mass = 1;
    std::uint32_t states = graph_.variables[v].states;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WorkFactor& f = factors_[order[i]];
      widen(scope, f, v);
      const double terms = scope.size() * states;
      total += terms * std::sqrt(mass * f.mass);
      mass += f.mass;
      suffix(v, order, i + 1, states);
      if (scope.size() * states > max_table_ || terms > 16 * max_table_) return std::numeric_limits<double>::infinity();
    }
    return total + states;
  }

  std::vector<std::uint32_t> best_order(std::uint32_t v, double* work) const {
    std::vector<std::uint32_t> order = incident_[v];
    // Small factors first; up to three others are tried in every order.
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
      return factors_[x].outer_size(v) < factors_[y].outer_size(v);
    });
    const auto wide =
        std::find_if(order.begin(), order.end(), [&](std::uint32_t f) { return factors_[f].outer_size(v) > 1; });
    double best = order_work(v, order);
    if (order.end() - wide == 2 || order.end() - wide == 3) {
      std::vector<std::uint32_t> trial = order;
      const auto begin = trial.begin() + (wide - order.begin());
      std::sort(begin, trial.end());
      std::vector<std::uint32_t> best_trial = order;
      do {
        const double w = order_work(v, trial);
        if (w < best) {
          best = w;
          best_trial = trial;
        }
      } while (std::next_permutation(begin, trial.end()));
      order = best_trial;
    }
    if (work) *work = best;
    return order;
  }

  double estimate(std::uint32_t v) const {
    double work = 0;
    best_order(v, &work);
    return work;
  }

  /// The variable whose fixing helps most: the most joint classes over its neighbours' tables.
  std::uint32_t widest(const std::vector<char>& gone) const {
    std::uint32_t best = 0;
    double best_score = -1;
    for (std::uint32_t v = 0; v < plan_.variables; ++v) {
      if (gone[v]) continue;
      double score = 0;
      for (const std::uint32_t f : incident_[v]) score += std::log(1 + factors_[f].outer_size(v));
      std::uint32_t states = 1;
      suffix(v, incident_[v], 0, states);
      score *= std::log(1.0 + states);
      if (states > 1 && score > best_score) {
        best_score = score;
        best = v;
      }
    }
    return best;
  }

  std::uint32_t add_step(std::uint32_t p, std::uint32_t f, Shape&& shape) {
    plan_.largest_table = std::max(plan_.largest_table, shape.entries());
    plan_.terms += shape.terms();
    const std::uint32_t id = intern(std::move(shape));
    const auto out = static_cast<std::uint32_t>(plan_.leaves() + 1 + plan_.steps.size());
    plan_.steps.push_back({p, f, out, id});
    return out;
  }

  std::uint32_t intern(Shape&& shape) {
    std::uint64_t h = shape.p_columns;
    for (const auto* v : {&shape.p_row, &shape.f_base, &shape.group_begin, &shape.item_s, &shape.item_f})
      for (const std::uint32_t x : *v) {
        h = (h ^ x) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 31;
      }
    const auto range = known_shapes_.equal_range(h);
    for (auto it = range.first; it != range.second; ++it)
      if (plan_.shapes[it->second]->same_indices(shape)) return it->second;
    shape.by_f.resize(shape.outer());
    for (std::uint32_t x = 0; x < shape.by_f.size(); ++x) shape.by_f[x] = x;
    std::stable_sort(shape.by_f.begin(), shape.by_f.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return shape.f_base[x] < shape.f_base[y]; });
    const auto id = static_cast<std::uint32_t>(plan_.shapes.size());
    plan_.shapes.push_back(std::make_shared<const Shape>(std::move(shape)));
    known_shapes_.emplace(h, id);
    return id;
  }

  /// Returns the variables whose work has changed.
  std::vector<std::uint32_t> eliminate_variable(std::uint32_t v) {
    const std::vector<std::uint32_t> order = best_order(v, nullptr);
    std::uint32_t table = v;
    double mass = 1;
    Scope scope;
    std::uint32_t states = graph_.variables[v].states;
    std::vector<std::uint32_t> state(states);  // state of v -> current suffix
    for (std::uint32_t s = 0; s < states; ++s) state[s] = s;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WorkFactor& f = factors_[order[i]];
      Scope wider = scope;
      widen(wider, f, v);
      Shape shape;
      outer_maps(scope, wider, f, v, shape);
      std::uint32_t next_states = 1;
      const std::vector<std::uint32_t> next = suffix(v, order, i + 1, next_states);
      group_items(state, states, next, next_states, *f.axis(v), shape);
      mass += f.mass;
      table = add_step(table, f.table, std::move(shape));
      scope = std::move(wider);
      state = next;
      states = next_states;
    }
    if (order.empty() && states > 1) {
      Shape shape;
      shape.p_row = shape.f_base = {0};
      shape.p_columns = states;
      shape.group_begin = {0, states};
      for (std::uint32_t s = 0; s < states; ++s) {
        shape.item_s.push_back(s);
        shape.item_f.push_back(0);
      }
      table = add_step(table, plan_.unit_table(), std::move(shape));
    }
    return replace_factors(v, order, scope, table, mass);
  }

  /// For every outer index of the wider scope: the row of P and the base in F.
  static void outer_maps(const Scope& scope, const Scope& wider, const WorkFactor& f, std::uint32_t v, Shape& shape) {
    const auto size = static_cast<std::size_t>(wider.size());
    shape.p_row.assign(1, 0);
    shape.f_base.assign(1, f.base);
    shape.p_row.reserve(size);
    shape.f_base.reserve(size);
    std::vector<std::uint32_t> stride(scope.entries.size(), 1);
    for (std::size_t i = scope.entries.size(); i-- > 1;) stride[i - 1] = stride[i] * scope.entries[i].count;
    for (std::size_t i = 0; i < wider.entries.size(); ++i) {
      const Scope::Entry& e = wider.entries[i];
      std::vector<std::uint32_t> p_part(e.count, 0), f_part(e.count, 0);
      const Axis* axis = e.variable == v ? nullptr : f.axis(e.variable);
      for (std::size_t s = 0; s < e.class_of.size(); ++s) {
        const std::uint32_t c = e.class_of[s];
        if (i < scope.entries.size()) p_part[c] = scope.entries[i].class_of[s] * stride[i];
        if (axis) f_part[c] = axis->offset[axis->class_of[s]];
      }
      std::vector<std::uint32_t> rows, bases;
      rows.reserve(shape.p_row.size() * e.count);
      bases.reserve(shape.p_row.size() * e.count);
      for (std::size_t x = 0; x < shape.p_row.size(); ++x)
        for (std::uint32_t c = 0; c < e.count; ++c) {
          rows.push_back(shape.p_row[x] + p_part[c]);
          bases.push_back(shape.f_base[x] + f_part[c]);
        }
      shape.p_row = std::move(rows);
      shape.f_base = std::move(bases);
    }
  }

  static void group_items(const std::vector<std::uint32_t>& state, std::uint32_t states,
                          const std::vector<std::uint32_t>& next, std::uint32_t next_states, const Axis& axis,
                          Shape& shape) {
    shape.p_columns = states;
    std::vector<std::uint32_t> group(states), offset(states), size(next_states + 1, 0);
    for (std::size_t s = 0; s < state.size(); ++s) {
      group[state[s]] = next[s];
      offset[state[s]] = axis.offset[axis.class_of[s]];
    }
    for (const std::uint32_t g : group) ++size[g + 1];
    for (std::uint32_t g = 0; g < next_states; ++g) size[g + 1] += size[g];
    shape.group_begin = size;
    shape.item_s.resize(states);
    shape.item_f.resize(states);
    for (std::uint32_t s = 0; s < states; ++s) {
      const std::uint32_t at = size[group[s]]++;
      shape.item_s[at] = s;
      shape.item_f[at] = offset[s];
    }
  }

  std::vector<std::uint32_t> replace_factors(std::uint32_t v, const std::vector<std::uint32_t>& order,
                                             const Scope& scope, std::uint32_t table, double mass) {
    for (const std::uint32_t f : order)
      for (const Axis& a : factors_[f].axes)
        if (a.variable != v) std::erase(incident_[a.variable], f);
    incident_[v].clear();
    WorkFactor w;
    w.table = table;
    w.mass = mass;
    std::vector<std::uint32_t> neighbours;
    std::uint32_t stride = 1;
    for (std::size_t i = scope.entries.size(); i-- > 0;) {
      const Scope::Entry& e = scope.entries[i];
      Axis axis{e.variable, e.class_of, {}};
      for (std::uint32_t c = 0; c < e.count; ++c) axis.offset.push_back(c * stride);
      stride *= e.count;
      w.axes.push_back(std::move(axis));
      neighbours.push_back(e.variable);
    }
    std::reverse(w.axes.begin(), w.axes.end());
    add_factor(std::move(w));
    return neighbours;
  }

  /// The product of the components, smallest first.
  void combine() {
    if (scalars_.empty()) {
      plan_.root = plan_.unit_table();
      return;
    }
    if (scalars_.size() == 1) scalars_.push_back({0, plan_.unit_table(), 0});
    const auto heavier = [](const Scalar& x, const Scalar& y) {
      return x.mass != y.mass ? x.mass > y.mass : x.table > y.table;
    };
    std::make_heap(scalars_.begin(), scalars_.end(), heavier);
    const auto pop = [&] {
      std::pop_heap(scalars_.begin(), scalars_.end(), heavier);
      const Scalar s = scalars_.back();
      scalars_.pop_back();
      return s;
    };
    while (scalars_.size() > 1) {
      const Scalar f = pop(), p = pop();
      Shape shape;
      shape.p_row = {p.entry};
      shape.f_base = {f.entry};
      shape.p_columns = 1;
      shape.group_begin = {0, 1};
      shape.item_s = shape.item_f = {0};
      scalars_.push_back({p.mass + f.mass, add_step(p.table, f.table, std::move(shape)), 0});
      std::push_heap(scalars_.begin(), scalars_.end(), heavier);
    }
    plan_.root = scalars_[0].table;
  }

  const Graph& graph_;
  double max_table_;
  std::stop_token stop_;
  std::uint32_t pivot_;
  double short_part_;
  Elimination plan_;
  std::vector<WorkFactor> factors_;
  std::vector<Scalar> scalars_;
  std::vector<std::vector<std::uint32_t>> incident_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_shapes_;
};

}  // namespace

Elimination eliminate(const Graph& graph, std::size_t max_table, std::stop_token stop, const Policy& policy) {
  Elimination plan = Eliminator(graph, max_table, stop, kNoPivot, policy.short_part).run();
  // Looking for rings takes no more steps than one pass over the tables, or over the largest that there may be.
  const auto most_steps = static_cast<double>(std::max(plan.terms, max_table));
  const std::uint32_t pivot = ring_pivot(graph, most_steps, policy);
  if (pivot == kNoPivot || stop.stop_requested()) return plan;
  Elimination ring = Eliminator(graph, max_table, stop, pivot, policy.short_part).run();
  const bool better = !ring.too_wide && (plan.too_wide || ring.terms < 2 * plan.terms);
  return better ? ring : plan;
}

}  // namespace turnpoint::frontier::detail
