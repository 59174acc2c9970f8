// SPDX-License-Identifier: Apache-2.0
// LSTM (gates input, forget, cell, output), GRU (update, reset, new) and plain cells, one layer, one or two directions;
// weights are stored hidden unit by hidden unit. Where the units are split, every step gathers the state of all units
// in forward and sums its gradient over the ranks in backward: the exchange inside the operator that no layout shows.
#include <cmath>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

namespace {

template <class Real>
using Values = std::vector<Real>;

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

// Indices into the local blocks.
struct Cells {
  std::int64_t samples, steps, features, directions, units, hidden, gates, first_unit, first_direction, all_bias;
  bool batch_first;

  Cells(const LocalOperator& at, const Region& x, const Region& w) {
    batch_first = at.output(0).shape.size() == 3;
    samples = x.extent[batch_first ? 0 : 1];
    steps = x.extent[batch_first ? 1 : 0];
    features = x.extent[2];
    directions = w.extent[0];
    hidden = at.input(2).shape[2];
    gates = at.input(1).shape[1] / hidden;
    units = w.extent[1] / gates;
    first_unit = w.offset[1] / gates;
    first_direction = w.offset[0];
    all_bias = at.op().inputs.size() > 3 && at.input(3).shape[1] == 2 * gates * hidden ? hidden * gates : 0;
  }
  bool backwards(std::int64_t d) const { return first_direction + d == 1; }
  std::size_t x(std::int64_t n, std::int64_t t) const {
    return index_of((batch_first ? n * steps + t : t * samples + n) * features);
  }
  std::size_t y(std::int64_t n, std::int64_t t, std::int64_t d, std::int64_t u) const {
    return index_of(batch_first ? ((n * steps + t) * directions + d) * units + u
                                : ((t * directions + d) * samples + n) * units + u);
  }
  std::size_t gate(std::int64_t n, std::int64_t t, std::int64_t d, std::int64_t u, std::int64_t g) const {
    return y(n, t, d, u) * index_of(gates) + index_of(g);
  }
  std::size_t row(std::int64_t d, std::int64_t u, std::int64_t g) const {
    return index_of((d * units + u) * gates + g);
  }
  // Among GateGradients.
  std::size_t gradient(std::int64_t n, std::int64_t t, std::int64_t d, std::int64_t u) const {
    const std::int64_t row = batch_first ? n * steps + t : t * samples + n;
    return index_of((d * samples * steps + row) * units + u);
  }
  std::size_t all_gradients() const { return index_of(directions * samples * steps * units * gates); }
  // A bias of twice the length (one for each product) is not split.
  std::size_t bias(std::int64_t d, std::int64_t u, std::int64_t g) const {
    return all_bias ? index_of(d * 2 * all_bias + (first_unit + u) * gates + g) : row(d, u, g);
  }
};

// What a unit's gates see of the input and of the state.
struct Arguments {
  double input = 0, state = 0;
};
template <class Real>
Arguments arguments(const Cells& c, Inputs in, std::int64_t n, std::int64_t t, std::int64_t d, std::int64_t u,
                    std::int64_t g, const Values<Real>& before) {
  Arguments a;
  const std::size_t row = c.row(d, u, g);
  for (std::int64_t i = 0; i < c.features; ++i)
    a.input += in[1]->as<Real>()[row * index_of(c.features) + index_of(i)] * in[0]->as<Real>()[c.x(n, t) + index_of(i)];
  for (std::int64_t h = 0; h < c.hidden; ++h)
    a.state += in[2]->as<Real>()[row * index_of(c.hidden) + index_of(h)] * before[index_of(n * c.hidden + h)];
  return a;
}

template <class Real>
Expected<Values<Real>> whole_state(const LocalOperator& at, const Values<Real>& mine, std::int64_t samples) {
  if (!at.gather_units) return mine;
  Values<Real> all(index_of(samples * at.input(2).shape[2]));
  if (auto done = at.gather_units(mine, samples, all); !done) return done.error();
  return all;
}

template <class Real>
Values<Real> numbers_in_state(const Array& array) {
  return {array.as<Real>(), array.as<Real>() + array.size()};
}
template <class Real>
Array left_as_state(const Values<Real>& values) {
  Array array = Array::scratch(values.size());
  copy(values.data(), array.data(), values.size());
  return array;
}

Expected<void> check(const LocalOperator& at, const Cells& c) {
  if (c.gates != 1 && c.gates != 3 && c.gates != 4) return at.error("a recurrent cell of unknown gates");
  if (at.op().outputs.size() < 2) return at.error("a recurrent cell without its gates");
  return {};
}

template <class Real>
Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Cells c(at, in[0]->region, in[1]->region);
  if (auto fine = check(at, c); !fine) return fine;
  const auto bias = [&](std::int64_t d, std::int64_t u, std::int64_t g) {
    if (in.size() < 4) return 0.0;
    const auto b = c.bias(d, u, g);
    return double(in[3]->as<Real>()[b]) + (c.all_bias ? in[3]->as<Real>()[b + index_of(c.all_bias)] : 0);
  };
  for (std::int64_t d = 0; d < c.directions; ++d) {
    Values<Real> before(index_of(c.samples * c.hidden), 0), mine(index_of(c.samples * c.units), 0), cell = mine;
    if (at.state) before = numbers_in_state<Real>(at.state->hidden), cell = numbers_in_state<Real>(at.state->cell);
    for (std::int64_t s = 0; s < c.steps; ++s) {
      const std::int64_t t = c.backwards(d) ? c.steps - 1 - s : s;
      for (std::int64_t n = 0; n < c.samples; ++n) {
        for (std::int64_t u = 0; u < c.units; ++u) {
          const std::size_t own = index_of(n * c.units + u);
          double gates[4] = {};
          for (std::int64_t g = 0; g < c.gates; ++g) {
            const Arguments a = arguments(c, in, n, t, d, u, g, before);
            const bool reset = c.gates == 3 && g == 2;
            const double z = a.input + bias(d, u, g) + (reset ? gates[1] * a.state : a.state);
            const bool squashed = c.gates == 1 || (c.gates == 4 && g == 2) || reset;
            gates[g] = squashed ? std::tanh(z) : logistic(z);
          }
          if (c.gates == 4) {
            cell[own] = gates[1] * cell[own] + gates[0] * gates[2];
            mine[own] = gates[3] * std::tanh(cell[own]);
          } else if (c.gates == 3) {
            mine[own] = (1 - gates[0]) * gates[2] + gates[0] * before[index_of(n * c.hidden + c.first_unit + u)];
          } else {
            mine[own] = gates[0];
          }
          out[0]->as<Real>()[c.y(n, t, d, u)] = mine[own];
          for (std::int64_t g = 0; g < c.gates && out[1]; ++g) out[1]->as<Real>()[c.gate(n, t, d, u, g)] = gates[g];
        }
      }
      auto all = whole_state(at, mine, c.samples);
      if (!all) return all.error();
      before = std::move(*all);
    }
    if (at.state && c.gates == 4) at.state->cell = left_as_state(cell);
  }
  return {};
}

// One direction's walk back through time.
template <class Real>
class Backward {
 public:
  Backward(const LocalOperator& at, const Cells& c, std::int64_t d, Inputs in, Inputs out, const Block& gradient,
           Outputs result)
      : at_(at), c_(c), d_(d), in_(in), out_(out), gradient_(gradient), result_(result) {}

  Expected<void> run() {
    if (auto done = recall(); !done) return done;
    Values<Real> from_next(index_of(c_.samples * c_.units), 0);
    cell_gradient_.assign(from_next.size(), 0);
    if (at_.state) {
      from_next = numbers_in_state<Real>(at_.state->hidden_gradient);
      cell_gradient_ = numbers_in_state<Real>(at_.state->cell_gradient);
    }
    for (std::int64_t s = c_.steps; s-- > 0;) {
      into_before_.assign(index_of(c_.samples * c_.hidden), 0);
      for (std::int64_t n = 0; n < c_.samples; ++n)
        for (std::int64_t u = 0; u < c_.units; ++u)
          unit(s, n, u, gradient_.as<Real>()[c_.y(n, time(s), d_, u)] + from_next[index_of(n * c_.units + u)]);
      if (!at_.scatter_units) {
        from_next = into_before_;
        continue;
      }
      if (auto done = at_.scatter_units(into_before_, c_.samples, from_next); !done) return done.error();
    }
    if (at_.state) {
      at_.state->hidden_gradient = left_as_state(from_next);
      at_.state->cell_gradient = left_as_state(cell_gradient_);
    }
    return {};
  }

 private:
  std::int64_t time(std::int64_t s) const { return c_.backwards(d_) ? c_.steps - 1 - s : s; }

  // The states before every step, from the kept output; an LSTM's cells from its kept gates.
  Expected<void> recall() {
    Values<Real> mine(index_of(c_.samples * c_.units), 0), cell = mine;
    before_.emplace_back(index_of(c_.samples * c_.hidden), 0.0);
    if (at_.state)
      before_.front() = numbers_in_state<Real>(at_.state->hidden), cell = numbers_in_state<Real>(at_.state->cell);
    cells_.push_back(cell);
    for (std::int64_t s = 0; s < c_.steps; ++s) {
      for (std::int64_t n = 0; n < c_.samples; ++n)
        for (std::int64_t u = 0; u < c_.units; ++u) {
          const auto own = index_of(n * c_.units + u);
          mine[own] = out_[0]->as<Real>()[c_.y(n, time(s), d_, u)];
          if (c_.gates == 4) cell[own] = gate(n, s, u, 1) * cell[own] + gate(n, s, u, 0) * gate(n, s, u, 2);
        }
      cells_.push_back(cell);
      if (s + 1 == c_.steps) break;
      auto all = whole_state(at_, mine, c_.samples);
      if (!all) return all.error();
      before_.push_back(std::move(*all));
    }
    return {};
  }

  double gate(std::int64_t n, std::int64_t s, std::int64_t u, std::int64_t g) const {
    return out_[1]->as<Real>()[c_.gate(n, time(s), d_, u, g)];
  }

  void unit(std::int64_t s, std::int64_t n, std::int64_t u, double dh) {
    const auto own = index_of(n * c_.units + u);
    if (c_.gates == 4) {
      const double i = gate(n, s, u, 0), f = gate(n, s, u, 1), g = gate(n, s, u, 2), o = gate(n, s, u, 3);
      const double squashed = std::tanh(cells_[index_of(s + 1)][own]);
      const double dc = cell_gradient_[own] + dh * o * (1 - squashed * squashed);
      cell_gradient_[own] = dc * f;
      arrive(s, n, u, 0, dc * g * i * (1 - i), 1);
      arrive(s, n, u, 1, dc * cells_[index_of(s)][own] * f * (1 - f), 1);
      arrive(s, n, u, 2, dc * i * (1 - g * g), 1);
      arrive(s, n, u, 3, dh * squashed * o * (1 - o), 1);
    } else if (c_.gates == 3) {
      const double z = gate(n, s, u, 0), r = gate(n, s, u, 1), fresh = gate(n, s, u, 2);
      const auto at = index_of(n * c_.hidden + c_.first_unit + u);
      const double before = before_[index_of(s)][at], dn = dh * (1 - z) * (1 - fresh * fresh);
      double state = 0;
      for (std::int64_t h = 0; h < c_.hidden; ++h)
        state += in_[2]->as<Real>()[c_.row(d_, u, 2) * index_of(c_.hidden) + index_of(h)] *
                 before_[index_of(s)][index_of(n * c_.hidden + h)];
      into_before_[at] += dh * z;
      arrive(s, n, u, 0, dh * (before - fresh) * z * (1 - z), 1);
      arrive(s, n, u, 1, dn * state * r * (1 - r), 1);
      arrive(s, n, u, 2, dn, r);
    } else {
      const double y = gate(n, s, u, 0);
      arrive(s, n, u, 0, dh * (1 - y * y), 1);
    }
  }

  // A gradient at a gate's argument, of which the state's product counts `share`.
  void arrive(std::int64_t s, std::int64_t n, std::int64_t u, std::int64_t g, double dz, double share) {
    const std::size_t row = c_.row(d_, u, g), x = c_.x(n, time(s));
    if (at_.gates) {
      Real* left = at_.gates->numbers.as<Real>();
      const std::size_t here = c_.gradient(n, time(s), d_, u);
      left[here * index_of(c_.gates) + index_of(g)] = dz;
      if (c_.gates == 3 && g == 2) left[c_.all_gradients() + here] = dz * share;
    }
    for (std::size_t i = 0; i < index_of(c_.features); ++i) {
      const std::size_t w = row * index_of(c_.features) + i;
      if (result_[0]) result_[0]->as<Real>()[x + i] += dz * in_[1]->as<Real>()[w];
      if (result_[1]) result_[1]->as<Real>()[w] += dz * in_[0]->as<Real>()[x + i];
    }
    for (std::size_t h = 0; h < index_of(c_.hidden); ++h) {
      const std::size_t r = row * index_of(c_.hidden) + h, state = index_of(n * c_.hidden) + h;
      into_before_[state] += dz * share * in_[2]->as<Real>()[r];
      if (result_[2]) result_[2]->as<Real>()[r] += dz * share * before_[index_of(s)][state];
    }
    if (in_.size() < 4 || !result_[3]) return;
    const auto b = c_.bias(d_, u, g);
    result_[3]->as<Real>()[b] += dz;
    if (c_.all_bias) result_[3]->as<Real>()[b + index_of(c_.all_bias)] += dz;
  }

  const LocalOperator& at_;
  const Cells& c_;
  std::int64_t d_;
  Inputs in_, out_;
  const Block& gradient_;
  Outputs result_;
  std::vector<Values<Real>> before_, cells_;
  Values<Real> cell_gradient_, into_before_;
};

// The gradients of the weights alone, of what backward of the input left.
template <class Real>
Expected<void> weights_of_gates(const LocalOperator& at, Inputs in, Inputs out, Outputs result) {
  const Cells c(at, in[0]->region, result[1]->region);
  const Real *x = in[0]->as<Real>(), *left = at.gates->numbers.as<Real>();
  if (!at.state && !out[0]) return at.error("the gradient of the weights needs the output, which is not there");
  for (std::int64_t d = 0; d < c.directions; ++d)
    for (std::int64_t s = 0; s < c.steps; ++s)
      for (std::int64_t n = 0; n < c.samples; ++n)
        for (std::int64_t row = 0; row < c.units * c.gates; ++row) {
          const std::int64_t u = row / c.gates, g = row % c.gates, t = c.backwards(d) ? c.steps - 1 - s : s;
          const std::size_t here = c.gradient(n, t, d, u), weight = c.row(d, u, g);
          const double dz = left[here * index_of(c.gates) + index_of(g)];
          const double of_state = c.gates == 3 && g == 2 ? double(left[c.all_gradients() + here]) : dz;
          for (std::size_t i = 0; i < index_of(c.features); ++i)
            result[1]->as<Real>()[weight * index_of(c.features) + i] += dz * x[c.x(n, t) + i];
          for (std::int64_t h = 0; h < c.hidden; ++h) {
            const double before = s > 0      ? out[0]->as<Real>()[c.y(n, t + (c.backwards(d) ? 1 : -1), d, h)]
                                  : at.state ? at.state->hidden.as<Real>()[index_of(n * c.hidden + h)]
                                             : Real(0);
            result[2]->as<Real>()[weight * index_of(c.hidden) + index_of(h)] += of_state * before;
          }
          if (in.size() < 4 || !result[3]) continue;
          const auto b = c.bias(d, u, g);
          result[3]->as<Real>()[b] += dz;
          if (c.all_bias) result[3]->as<Real>()[b + index_of(c.all_bias)] += dz;
        }
  return {};
}

template <class Real>
Expected<void> backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  if (at.gates && at.gates->made) return weights_of_gates<Real>(at, in, out, result);
  if (!gradient[0]) return {};
  for (std::size_t k = 0; k < 3; ++k)
    if (!in[k]) return at.error("backward needs an operand that is not there");
  if (!out[0] || out.size() < 2 || !out[1]) return at.error("backward needs its output and gates, which are not there");
  const Cells c(at, in[0]->region, in[1]->region);
  for (std::int64_t d = 0; d < c.directions; ++d)
    if (auto done = Backward<Real>(at, c, d, in, out, *gradient[0], result).run(); !done) return done;
  return {};
}

}  // namespace

const HostKernel HostKernels::recurrent{
    {forward<double>, backward<double>},
    {forward<float>, backward<float>, fast::recurrent_forward, fast::recurrent_backward}};

}  // namespace turnpoint::step
