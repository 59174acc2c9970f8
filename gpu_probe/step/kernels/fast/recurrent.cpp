// SPDX-License-Identifier: Apache-2.0
// Recurrent cells with their products as matrix products: the input's of all steps at once, the state's step by step.
// Gates lie unit by unit, as the weights do.
#include <algorithm>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/cpu/vector_math.h"
#include "gpu_probe/step/kernels/fast/fast.h"

namespace turnpoint::step::fast {

namespace {

using Values = std::vector<float>;

/// Sizes and places, as in the plain loops.
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
  std::int64_t width() const { return units * gates; }
  std::int64_t rows() const { return samples * steps; }
  /// Where among GateGradients a row's begin that the state's product has of a GRU's new gate.
  std::int64_t of_state(std::int64_t d, std::int64_t r) const {
    return directions * rows() * width() + (d * rows() + r) * units;
  }
  std::int64_t time(std::int64_t d, std::int64_t s) const { return first_direction + d == 1 ? steps - 1 - s : s; }
  std::int64_t row(std::int64_t n, std::int64_t t) const { return batch_first ? n * steps + t : t * samples + n; }
  std::int64_t y(std::int64_t n, std::int64_t t, std::int64_t d) const {
    return batch_first ? ((n * steps + t) * directions + d) * units : ((t * directions + d) * samples + n) * units;
  }
  std::int64_t bias(std::int64_t d) const {
    return all_bias ? d * 2 * all_bias + first_unit * gates : d * units * gates;
  }
};

bool known(const LocalOperator& at, const Cells& c) {
  return (c.gates == 1 || c.gates == 3 || c.gates == 4) && at.op().outputs.size() == 2;
}

/// All gates of a sample at once: 1 / (1 + exp(-z)); those that are squashed to -1 .. 1 as 2 / (1 + exp(-2 z)) - 1.
TURNPOINT_CLONES void squash(std::int64_t width, const float* times, float* z) {
  for (std::int64_t i = 0; i < width; ++i) {
    const float s = probe::vector_logistic(times[i] * z[i]);
    z[i] = times[i] * s - (times[i] - 1.0f);
  }
}

TURNPOINT_CLONES void add(std::int64_t count, const float* from, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// What a sample's units hand on, from the gates; `cells` become those after the step.
TURNPOINT_CLONES void lstm_units(std::int64_t units, const float* __restrict g, float* __restrict cells,
                                 float* __restrict own) {
  for (std::int64_t u = 0; u < units; ++u) {
    cells[u] = g[4 * u + 1] * cells[u] + g[4 * u] * g[4 * u + 2];
    own[u] = g[4 * u + 3] * probe::vector_tanh(cells[u]);
  }
}

/// A GRU's gates too: the state's product counts in the new gate as far as the reset gate lets it.
TURNPOINT_CLONES void gru_units(std::int64_t units, const float* __restrict state, const float* __restrict old,
                                float* __restrict g, float* __restrict own) {
  for (std::int64_t u = 0; u < units; ++u) {
    const float update = probe::vector_logistic(g[3 * u] + state[3 * u]),
                reset = probe::vector_logistic(g[3 * u + 1] + state[3 * u + 1]),
                fresh = probe::vector_tanh(g[3 * u + 2] + reset * state[3 * u + 2]);
    g[3 * u] = update;
    g[3 * u + 1] = reset;
    g[3 * u + 2] = fresh;
    own[u] = (1 - update) * fresh + update * old[u];
  }
}

Values state_numbers(const Array& array) { return {array.as<float>(), array.as<float>() + array.size()}; }
Array kept_state(const Values& values) {
  Array array = Array::scratch(values.size());
  copy(values.data(), array.data(), values.size());
  return array;
}

bool whole_state(const LocalOperator& at, const Values& mine, std::int64_t samples, Values& all) {
  if (!at.gather_units) return all = mine, true;
  all.resize(index_of(samples * at.input(2).shape[2]));
  return at.gather_units(mine, samples, all).has_value();
}

}  // namespace

bool recurrent_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Cells c(at, in[0]->region, in[1]->region);
  if (!known(at, c) || !out[0] || !out[1]) return false;
  const auto product = probe::blas().function;
  const std::int64_t width = c.width();
  Array from_input = Array::scratch(index_of(c.samples * c.steps * width)),
        from_state = Array::scratch(index_of(c.samples * width));
  Values times(index_of(width), 1.0f);
  for (std::int64_t i = 0; i < width; ++i)
    if (c.gates == 1 || (c.gates == 4 && i % 4 == 2)) times[index_of(i)] = 2.0f;
  for (std::int64_t d = 0; d < c.directions; ++d) {
    const float *w = in[1]->data.data() + d * width * c.features, *r = in[2]->data.data() + d * width * c.hidden;
    product({c.samples * c.steps, width, c.features, false, true}, in[0]->data.data(), w, 0, from_input.data());
    const float* bias = in.size() > 3 ? in[3]->as<float>() + c.bias(d) : nullptr;
    Values before(index_of(c.samples * c.hidden), 0), mine(index_of(c.samples * c.units), 0), cell = mine;
    if (at.state) before = state_numbers(at.state->hidden), cell = state_numbers(at.state->cell);
    for (std::int64_t s = 0; s < c.steps; ++s) {
      const std::int64_t t = c.time(d, s);
      product({c.samples, width, c.hidden, false, true}, before.data(), r, 0, from_state.data());
      for (std::int64_t n = 0; n < c.samples; ++n) {
        float* gate = out[1]->data.data() + c.y(n, t, d) * c.gates;
        float* y = out[0]->data.data() + c.y(n, t, d);
        const float* state = from_state.data() + n * width;
        std::copy_n(from_input.as<float>() + c.row(n, t) * width, width, gate);
        if (bias) add(width, bias, gate);
        if (bias && c.all_bias) add(width, bias + c.all_bias, gate);
        float* own = mine.data() + n * c.units;
        if (c.gates == 3) {
          gru_units(c.units, state, before.data() + n * c.hidden + c.first_unit, gate, own);
        } else {
          add(width, state, gate);
          squash(width, times.data(), gate);
          if (c.gates == 4)
            lstm_units(c.units, gate, cell.data() + n * c.units, own);
          else
            std::copy_n(gate, c.units, own);
        }
        std::copy_n(own, c.units, y);
      }
      if (!whole_state(at, mine, c.samples, before)) return false;
    }
    if (at.state && c.gates == 4) at.state->cell = kept_state(cell);
  }
  return true;
}

namespace {

void copy_every_third(const float* from, std::int64_t units, float* to) {
  for (std::int64_t u = 0; u < units; ++u) to[u] = from[3 * u + 2];
}

/// Of one direction, the gradients of the input's weights and of the bias from those at the gates' arguments; in a
/// single time step added to what is there.
void of_input_and_bias(const LocalOperator& at, const Cells& c, std::int64_t d, const float* gates, Inputs in,
                       Outputs result) {
  const std::int64_t width = c.width();
  if (result[1])
    probe::blas().function({width, c.features, c.rows(), true, false}, gates, in[0]->as<float>(),
                           at.state ? 1.0f : 0.0f, result[1]->as<float>() + d * width * c.features);
  if (in.size() < 4 || !result[3]) return;
  float* bias = result[3]->as<float>() + c.bias(d);
  for (std::int64_t row = 0; row < c.rows(); ++row) {
    add(width, gates + row * width, bias);
    if (c.all_bias) add(width, gates + row * width, bias + c.all_bias);
  }
}

/// One direction's gradients of weights of what backward of the input left.
void weights_of_gates(const LocalOperator& at, const Cells& c, std::int64_t d, Inputs in, Inputs out, Outputs result) {
  const std::int64_t width = c.width();
  const float* left = at.gates->numbers.as<float>();
  const float* gates = left + d * c.rows() * width;
  of_input_and_bias(at, c, d, gates, in, result);
  float* dr = result[2]->as<float>() + d * width * c.hidden;
  Array of_state = Array::scratch(index_of(c.samples * width)), before = Array::scratch(index_of(c.samples * c.hidden));
  for (std::int64_t s = at.state ? 0 : 1; s < c.steps; ++s) {  // the first of all begins with nothing
    for (std::int64_t n = 0; n < c.samples; ++n) {
      const std::int64_t row = c.row(n, c.time(d, s));
      float* to = of_state.as<float>() + n * width;
      std::copy_n(gates + row * width, width, to);
      for (std::int64_t u = 0; c.gates == 3 && u < c.units; ++u) to[3 * u + 2] = left[c.of_state(d, row) + u];
      const float* from =
          at.state ? at.state->hidden.as<float>() + n * c.hidden : out[0]->as<float>() + c.y(n, c.time(d, s - 1), d);
      std::copy_n(from, c.hidden, before.as<float>() + n * c.hidden);
    }
    probe::blas().function({width, c.hidden, c.samples, true, false}, of_state.as<float>(), before.as<float>(), 1, dr);
  }
}

/// An LSTM's cells after a step, of its gates and the cells before it.
TURNPOINT_CLONES void next_cells(std::int64_t units, const float* __restrict g, float* __restrict cell) {
  for (std::int64_t u = 0; u < units; ++u) cell[u] = g[4 * u + 1] * cell[u] + g[4 * u] * g[4 * u + 2];
}

/// A sample's gradients at the gates' arguments, `dz`, of the gates `g` and of what arrives at its units: from the
/// output and from the step after it. `carried`: the gradient of the cells, handed on to the step before.
TURNPOINT_CLONES void lstm_gradients(std::int64_t units, const float* __restrict g, const float* __restrict dy,
                                     const float* __restrict from_next, const float* __restrict cell,
                                     const float* __restrict old, float* __restrict carried, float* __restrict dz) {
  for (std::int64_t u = 0; u < units; ++u) {
    const float in = g[4 * u], forget = g[4 * u + 1], fresh = g[4 * u + 2], out = g[4 * u + 3];
    const float dh = dy[u] + from_next[u], squashed = probe::vector_tanh(cell[u]),
                dc = carried[u] + dh * out * (1 - squashed * squashed);
    carried[u] = dc * forget;
    dz[4 * u] = dc * fresh * in * (1 - in);
    dz[4 * u + 1] = dc * old[u] * forget * (1 - forget);
    dz[4 * u + 2] = dc * in * (1 - fresh * fresh);
    dz[4 * u + 3] = dh * squashed * out * (1 - out);
  }
}

/// The same of a GRU; `state`: the gradients as far as the state's product counts, `products` its result, `into` the
/// gradient of the state `before`.
TURNPOINT_CLONES void gru_gradients(std::int64_t units, const float* __restrict g, const float* __restrict dy,
                                    const float* __restrict from_next, const float* __restrict before,
                                    const float* __restrict products, float* __restrict into, float* __restrict dz,
                                    float* __restrict state) {
  for (std::int64_t u = 0; u < units; ++u) {
    const float update = g[3 * u], reset = g[3 * u + 1], fresh = g[3 * u + 2];
    const float dh = dy[u] + from_next[u], dn = dh * (1 - update) * (1 - fresh * fresh);
    into[u] += dh * update;
    state[3 * u] = dz[3 * u] = dh * (before[u] - fresh) * update * (1 - update);
    state[3 * u + 1] = dz[3 * u + 1] = dn * products[3 * u + 2] * reset * (1 - reset);
    dz[3 * u + 2] = dn;
    state[3 * u + 2] = dn * reset;
  }
}

TURNPOINT_CLONES void plain_gradients(std::int64_t units, const float* __restrict g, const float* __restrict dy,
                                      const float* __restrict from_next, float* __restrict dz) {
  for (std::int64_t u = 0; u < units; ++u) dz[u] = (dy[u] + from_next[u]) * (1 - g[u] * g[u]);
}

/// What is summed over time begins with nothing, but for a single time step.
void clear_sums(const LocalOperator& at, Outputs result) {
  for (std::size_t k = 2; k < std::min<std::size_t>(result.size(), 4); ++k)
    if (result[k] && !at.state) result[k]->data.clear();
}

/// One direction's walk back through time.
class Back {
 public:
  Back(const LocalOperator& at, const Cells& c, std::int64_t d, Inputs in, Inputs out, const Block& gradient,
       Outputs result)
      : at_(at), c_(c), d_(d), in_(in), out_(out), gradient_(gradient), result_(result) {}

  bool run() {
    if (!recall()) return false;
    const std::int64_t width = c_.width();
    const auto product = probe::blas().function;
    const float *w = in_[1]->data.data() + d_ * width * c_.features, *r = in_[2]->data.data() + d_ * width * c_.hidden;
    Array all = Array::scratch(index_of(c_.samples * c_.steps * width)),
          dz = Array::scratch(index_of(c_.samples * width)), state = Array::scratch(dz.size()),
          products = Array::scratch(dz.size());
    Values from_next(index_of(c_.samples * c_.units), 0);
    cell_gradient_.assign(from_next.size(), 0);
    if (at_.state) {
      from_next = state_numbers(at_.state->hidden_gradient);
      cell_gradient_ = state_numbers(at_.state->cell_gradient);
    }
    float* dr = result_[2] ? result_[2]->as<float>() + d_ * width * c_.hidden : nullptr;
    float* left = at_.gates ? at_.gates->numbers.as<float>() : nullptr;
    for (std::int64_t s = c_.steps; s-- > 0;) {
      const Values& before = before_[index_of(s)];
      into_before_.assign(index_of(c_.samples * c_.hidden), 0);
      if (c_.gates == 3) product({c_.samples, width, c_.hidden, false, true}, before.data(), r, 0, products.data());
      for (std::int64_t n = 0; n < c_.samples; ++n) {
        step(s, n, from_next.data() + n * c_.units, products.data() + n * width, dz.data() + n * width,
             state.data() + n * width);
        const std::int64_t row = c_.row(n, c_.time(d_, s));
        std::copy_n(dz.as<float>() + n * width, width, all.as<float>() + row * width);
        if (left && c_.gates == 3)
          copy_every_third(state.as<float>() + n * width, c_.units, left + c_.of_state(d_, row));
      }
      product({c_.samples, c_.hidden, width}, state.data(), r, 1, into_before_.data());
      if (dr) product({width, c_.hidden, c_.samples, true, false}, state.data(), before.data(), 1, dr);
      if (!at_.scatter_units) {
        from_next = into_before_;
        continue;
      }
      if (!at_.scatter_units(into_before_, c_.samples, from_next)) return false;
    }
    if (at_.state) {
      at_.state->hidden_gradient = kept_state(from_next);
      at_.state->cell_gradient = kept_state(cell_gradient_);
    }
    if (left) std::copy_n(all.as<float>(), c_.rows() * width, left + d_ * c_.rows() * width);
    if (result_[0])
      product({c_.rows(), c_.features, width}, all.data(), w, d_ == 0 ? 0.0f : 1.0f, result_[0]->data.data());
    of_input_and_bias(at_, c_, d_, all.as<float>(), in_, result_);
    return true;
  }

 private:
  const float* gates(std::int64_t s, std::int64_t n) const {
    return out_[1]->data.data() + c_.y(n, c_.time(d_, s), d_) * c_.gates;
  }

  /// The states before every step, from the kept output; an LSTM's cells from its kept gates.
  bool recall() {
    Values mine(index_of(c_.samples * c_.units), 0), cell = mine;
    before_.emplace_back(index_of(c_.samples * c_.hidden), 0.0f);
    if (at_.state) before_.front() = state_numbers(at_.state->hidden), cell = state_numbers(at_.state->cell);
    cells_.push_back(cell);
    for (std::int64_t s = 0; s < c_.steps; ++s) {
      for (std::int64_t n = 0; n < c_.samples; ++n) {
        std::copy_n(out_[0]->as<float>() + c_.y(n, c_.time(d_, s), d_), c_.units, mine.data() + n * c_.units);
        if (c_.gates == 4) next_cells(c_.units, gates(s, n), cell.data() + n * c_.units);
      }
      cells_.push_back(cell);
      if (s + 1 == c_.steps) break;
      Values all;
      if (!whole_state(at_, mine, c_.samples, all)) return false;
      before_.push_back(std::move(all));
    }
    return true;
  }

  /// The gradients at the gates' arguments of one sample; `state`: as far as the state's product counts in them.
  void step(std::int64_t s, std::int64_t n, const float* from_next, const float* products, float* dz, float* state) {
    const float *g = gates(s, n), *dy = gradient_.data.data() + c_.y(n, c_.time(d_, s), d_);
    if (c_.gates == 3) {
      const std::int64_t first = n * c_.hidden + c_.first_unit;
      gru_gradients(c_.units, g, dy, from_next, before_[index_of(s)].data() + first, products,
                    into_before_.data() + first, dz, state);
      return;
    }
    if (c_.gates == 4)
      lstm_gradients(c_.units, g, dy, from_next, cells_[index_of(s + 1)].data() + n * c_.units,
                     cells_[index_of(s)].data() + n * c_.units, cell_gradient_.data() + n * c_.units, dz);
    else
      plain_gradients(c_.units, g, dy, from_next, dz);
    std::copy_n(dz, c_.width(), state);
  }

  const LocalOperator& at_;
  const Cells& c_;
  std::int64_t d_;
  Inputs in_, out_;
  const Block& gradient_;
  Outputs result_;
  std::vector<Values> before_, cells_;
  Values cell_gradient_, into_before_;
};

}  // namespace

bool recurrent_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  if (at.gates && at.gates->made) {
    if (!in[0] || !result[1] || !result[2] || (!at.state && !out[0])) return false;
    const Cells c(at, in[0]->region, result[1]->region);
    if (!known(at, c)) return false;
    clear_sums(at, result);
    for (std::int64_t d = 0; d < c.directions; ++d) weights_of_gates(at, c, d, in, out, result);
    return true;
  }
  if (!gradient[0] || !in[0] || !in[1] || !in[2] || !out[0] || out.size() != 2 || !out[1]) return false;
  const Cells c(at, in[0]->region, in[1]->region);
  if (!known(at, c)) return false;
  clear_sums(at, result);
  for (std::int64_t d = 0; d < c.directions; ++d)
    if (!Back(at, c, d, in, out, *gradient[0], result).run()) return false;
  return true;
}

}  // namespace turnpoint::step::fast
