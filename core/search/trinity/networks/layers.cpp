// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/networks/layers.h"

#include <algorithm>
#include <cmath>

#include "core/search/trinity/networks/product.h"

namespace turnpoint::trinity::networks {

namespace {

template <class Real>
void add_bias(const Real* bias, std::size_t rows, std::size_t columns, Real* y) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) y[r * columns + c] += bias[c];
}

template <class Real>
void add_columns(const Real* dy, std::size_t rows, std::size_t columns, Real* gradient) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) gradient[c] += dy[r * columns + c];
}

}  // namespace

template <class Real>
void Dense::forward(const Real* weights, const Real* x, std::size_t rows, Real* y) const {
  multiply({.m = rows, .n = weight.columns, .k = weight.rows}, x, weights + weight.offset, y);
  add_bias(weights + bias.offset, rows, weight.columns, y);
}

template <class Real>
void Dense::backward(const Real* weights, const Real* x, const Real* dy, std::size_t rows, Real* gradient,
                     Real* dx) const {
  multiply({.m = weight.rows, .n = weight.columns, .k = rows, .transpose_a = true, .add = true}, x, dy,
           gradient + weight.offset);
  add_columns(dy, rows, weight.columns, gradient + bias.offset);
  if (dx)
    multiply({.m = rows, .n = weight.rows, .k = weight.columns, .transpose_b = true}, dy, weights + weight.offset, dx);
}

template <class Real>
void relu(std::vector<Real>& x) {
  for (Real& one : x) one = std::max(one, Real(0));
}
template <class Real>
void relu_backward(const std::vector<Real>& y, std::vector<Real>& dy) {
  for (std::size_t i = 0; i < y.size(); ++i) dy[i] = y[i] > 0 ? dy[i] : Real(0);
}
template <class Real>
void draw_dropout(double dropped, placement::Random& random, std::vector<Real>& mask) {
  for (Real& one : mask) one = random.unit() < dropped ? Real(0) : Real(1 / (1 - dropped));
}
template <class Real>
void times(const std::vector<Real>& mask, std::vector<Real>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= mask[i];
}

template <class Real>
Lstm::State<Real> Lstm::Trace<Real>::last() const {
  const std::size_t size = h.size() / (steps + 1);
  return {{h.end() - std::ptrdiff_t(size), h.end()}, {c.end() - std::ptrdiff_t(size), c.end()}};
}

template <class Real>
void Lstm::forward(const Real* weights, const Real* x, std::size_t steps, std::size_t rows, const State<Real>& initial,
                   Trace<Real>& trace) const {
  const std::size_t width = hidden(), size = rows * width, wide = 4 * width;
  trace.steps = steps;
  trace.rows = rows;
  trace.gates.resize(steps * rows * wide);
  trace.h.resize((steps + 1) * size);
  trace.c.resize((steps + 1) * size);
  trace.tanh_c.resize(steps * size);
  std::fill_n(trace.h.begin(), size, Real(0));
  std::fill_n(trace.c.begin(), size, Real(0));
  if (!initial.h.empty()) std::copy(initial.h.begin(), initial.h.end(), trace.h.begin());
  if (!initial.c.empty()) std::copy(initial.c.begin(), initial.c.end(), trace.c.begin());
  multiply({.m = steps * rows, .n = wide, .k = inputs()}, x, weights + input.offset, trace.gates.data());
  for (std::size_t t = 0; t < steps; ++t) {
    Real* gates = trace.gates.data() + t * rows * wide;
    const Real* h_before = trace.h.data() + t * size;
    multiply({.m = rows, .n = wide, .k = width, .add = true}, h_before, weights + recurrent.offset, gates);
    add_bias(weights + bias.offset, rows, wide, gates);
    for (std::size_t r = 0; r < rows; ++r) {
      Real* gate = gates + r * wide;
      for (std::size_t j = width; j < 2 * width; ++j) gate[j] += 1;
      sigmoids(gate, 3 * width);
      hyperbolic_tangents(gate + 3 * width, width);
      const Real* c_before = trace.c.data() + t * size + r * width;
      Real* c = trace.c.data() + (t + 1) * size + r * width;
      Real* tanh_c = trace.tanh_c.data() + t * size + r * width;
      for (std::size_t j = 0; j < width; ++j)
        tanh_c[j] = c[j] = gate[width + j] * c_before[j] + gate[j] * gate[3 * width + j];
      hyperbolic_tangents(tanh_c, width);
      Real* h = trace.h.data() + (t + 1) * size + r * width;
      for (std::size_t j = 0; j < width; ++j) h[j] = gate[2 * width + j] * tanh_c[j];
    }
  }
}

template <class Real>
void Lstm::backward(const Real* weights, const Real* x, const Trace<Real>& trace, const Real* d_outputs,
                    State<Real>& d_state, Real* gradient, Real* dx) const {
  const std::size_t width = hidden(), rows = trace.rows, size = rows * width, wide = 4 * width;
  d_state.h.resize(size);
  d_state.c.resize(size);
  std::vector<Real> d_gates(trace.gates.size());
  std::vector<Real> turned(recurrent.size());
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < wide; ++j) turned[j * width + i] = weights[recurrent.offset + i * wide + j];
  for (std::size_t t = trace.steps; t-- > 0;) {
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t at = t * size + r * width;
      const Real* gate = trace.gates.data() + (t * rows + r) * wide;
      const Real* tanh_c = trace.tanh_c.data() + at;
      const Real* c_before = trace.c.data() + at;
      Real* d = d_gates.data() + (t * rows + r) * wide;
      Real* dh = d_state.h.data() + r * width;
      Real* dc = d_state.c.data() + r * width;
      for (std::size_t j = 0; j < width; ++j) {
        const Real in = gate[j], forget = gate[width + j], out = gate[2 * width + j], candidate = gate[3 * width + j];
        const Real dh_all = dh[j] + d_outputs[at + j];
        const Real dc_all = dc[j] + dh_all * out * (1 - tanh_c[j] * tanh_c[j]);
        d[j] = dc_all * candidate * in * (1 - in);
        d[width + j] = dc_all * c_before[j] * forget * (1 - forget);
        d[2 * width + j] = dh_all * tanh_c[j] * out * (1 - out);
        d[3 * width + j] = dc_all * in * (1 - candidate * candidate);
        dc[j] = dc_all * forget;
      }
    }
    multiply({.m = rows, .n = width, .k = wide}, d_gates.data() + t * rows * wide, turned.data(), d_state.h.data());
  }
  const std::size_t all = trace.steps * rows;
  multiply({.m = inputs(), .n = wide, .k = all, .transpose_a = true, .add = true}, x, d_gates.data(),
           gradient + input.offset);
  multiply({.m = width, .n = wide, .k = all, .transpose_a = true, .add = true}, trace.h.data(), d_gates.data(),
           gradient + recurrent.offset);
  add_columns(d_gates.data(), all, wide, gradient + bias.offset);
  if (dx)
    multiply({.m = all, .n = inputs(), .k = wide, .transpose_b = true}, d_gates.data(), weights + input.offset, dx);
}

template <class Real>
Attention::Keys<Real> Attention::look_at(const Real* weights, const Real* keys, std::size_t steps,
                                         std::size_t rows) const {
  Keys<Real> made{steps, rows, keys, std::vector<Real>(steps * rows * hidden())};
  multiply({.m = steps * rows, .n = hidden(), .k = hidden()}, keys, weights + key.offset, made.projected.data());
  return made;
}

template <class Real>
void Attention::forward(const Real* weights, const Keys<Real>& keys, const Real* queries, std::size_t steps,
                        Trace<Real>& trace) const {
  const std::size_t width = hidden(), rows = keys.rows, wide = keys.steps;
  const Real* factor = weights + v.offset;
  trace.projected.resize(steps * rows * width);
  trace.share.resize(steps * rows * wide);
  trace.context.assign(steps * rows * width, Real(0));
  multiply({.m = steps * rows, .n = width, .k = width}, queries, weights + query.offset, trace.projected.data());
  std::vector<Real> bent(width);
  for (std::size_t row = 0; row < steps * rows; ++row) {
    const Real* asked = trace.projected.data() + row * width;
    Real* share = trace.share.data() + row * wide;
    const std::size_t b = row % rows;
    for (std::size_t s = 0; s < wide; ++s) {
      const Real* of_key = keys.projected.data() + (s * rows + b) * width;
      for (std::size_t j = 0; j < width; ++j) bent[j] = of_key[j] + asked[j];
      hyperbolic_tangents(bent.data(), width);
      share[s] = dot(bent.data(), factor, width);
    }
    const Real highest = *std::max_element(share, share + wide);
    for (std::size_t s = 0; s < wide; ++s) share[s] -= highest;
    exponentials(share, wide);
    Real sum = 0;
    for (std::size_t s = 0; s < wide; ++s) sum += share[s];
    Real* context = trace.context.data() + row * width;
    for (std::size_t s = 0; s < wide; ++s) {
      share[s] /= sum;
      const Real* of_key = keys.keys + (s * rows + b) * width;
      for (std::size_t j = 0; j < width; ++j) context[j] += share[s] * of_key[j];
    }
  }
}

template <class Real>
void Attention::backward(const Real* weights, const Keys<Real>& keys, const Real* queries, std::size_t steps,
                         const Trace<Real>& trace, const Real* d_context, Real* gradient, Real* d_keys,
                         Real* d_queries) const {
  const std::size_t width = hidden(), rows = keys.rows, wide = keys.steps;
  const Real* factor = weights + v.offset;
  Real* d_factor = gradient + v.offset;
  std::vector<Real> d_asked(steps * rows * width), d_projected(wide * rows * width), bent(width), d_share(wide);
  for (std::size_t row = 0; row < steps * rows; ++row) {
    const std::size_t b = row % rows;
    const Real* asked = trace.projected.data() + row * width;
    const Real* share = trace.share.data() + row * wide;
    const Real* d_row = d_context + row * width;
    Real mean = 0;
    for (std::size_t s = 0; s < wide; ++s) {
      const std::size_t at = (s * rows + b) * width;
      d_share[s] = dot(d_row, keys.keys + at, width);
      mean += d_share[s] * share[s];
      for (std::size_t j = 0; j < width; ++j) d_keys[at + j] += share[s] * d_row[j];
    }
    for (std::size_t s = 0; s < wide; ++s) {
      const std::size_t at = (s * rows + b) * width;
      const Real d_score = share[s] * (d_share[s] - mean);
      for (std::size_t j = 0; j < width; ++j) bent[j] = keys.projected[at + j] + asked[j];
      hyperbolic_tangents(bent.data(), width);
      for (std::size_t j = 0; j < width; ++j) {
        d_factor[j] += d_score * bent[j];
        const Real d_sum = d_score * factor[j] * (1 - bent[j] * bent[j]);
        d_asked[row * width + j] += d_sum;
        d_projected[at + j] += d_sum;
      }
    }
  }
  multiply({.m = width, .n = width, .k = steps * rows, .transpose_a = true, .add = true}, queries, d_asked.data(),
           gradient + query.offset);
  multiply({.m = width, .n = width, .k = wide * rows, .transpose_a = true, .add = true}, keys.keys, d_projected.data(),
           gradient + key.offset);
  multiply({.m = steps * rows, .n = width, .k = width, .transpose_b = true, .add = true}, d_asked.data(),
           weights + query.offset, d_queries);
  multiply({.m = wide * rows, .n = width, .k = width, .transpose_b = true, .add = true}, d_projected.data(),
           weights + key.offset, d_keys);
}

template <class Real>
void clip_scores(const Clipping& clipping, std::vector<Real>& scores) {
  for (Real& u : scores) u *= Real(1 / clipping.temperature);
  hyperbolic_tangents(scores.data(), scores.size());
  for (Real& u : scores) u *= Real(clipping.bound);
}
template <class Real>
void clip_scores_backward(const Clipping& clipping, const std::vector<Real>& clipped, std::vector<Real>& d) {
  const Real bound = Real(clipping.bound), factor = Real(1 / clipping.temperature);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] *= factor * (bound - clipped[i] * clipped[i] / bound);
}

template <class Real>
void log_softmax(const Real* scores, std::size_t rows, std::size_t columns, Real* log_probability) {
  std::vector<Real> powers(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    const Real* z = scores + r * columns;
    const Real highest = *std::max_element(z, z + columns);
    for (std::size_t c = 0; c < columns; ++c) powers[c] = z[c] - highest;
    exponentials(powers.data(), columns);
    Real sum = 0;
    for (const Real p : powers) sum += p;
    const Real all = highest + std::log(sum);
    for (std::size_t c = 0; c < columns; ++c) log_probability[r * columns + c] = z[c] - all;
  }
}

#define TURNPOINT_LAYERS_OF(Real)                                                                                     \
  template void Dense::forward(const Real*, const Real*, std::size_t, Real*) const;                                   \
  template void Dense::backward(const Real*, const Real*, const Real*, std::size_t, Real*, Real*) const;              \
  template void relu(std::vector<Real>&);                                                                             \
  template void relu_backward(const std::vector<Real>&, std::vector<Real>&);                                          \
  template void draw_dropout(double, placement::Random&, std::vector<Real>&);                                         \
  template void times(const std::vector<Real>&, std::vector<Real>&);                                                  \
  template struct Lstm::Trace<Real>;                                                                                  \
  template void Lstm::forward(const Real*, const Real*, std::size_t, std::size_t, const State<Real>&, Trace<Real>&)   \
      const;                                                                                                          \
  template void Lstm::backward(const Real*, const Real*, const Trace<Real>&, const Real*, State<Real>&, Real*, Real*) \
      const;                                                                                                          \
  template Attention::Keys<Real> Attention::look_at(const Real*, const Real*, std::size_t, std::size_t) const;        \
  template void Attention::forward(const Real*, const Keys<Real>&, const Real*, std::size_t, Trace<Real>&) const;     \
  template void Attention::backward(const Real*, const Keys<Real>&, const Real*, std::size_t, const Trace<Real>&,     \
                                    const Real*, Real*, Real*, Real*) const;                                          \
  template void clip_scores(const Clipping&, std::vector<Real>&);                                                     \
  template void clip_scores_backward(const Clipping&, const std::vector<Real>&, std::vector<Real>&);                  \
  template void log_softmax(const Real*, std::size_t, std::size_t, Real*)
TURNPOINT_LAYERS_OF(float);
TURNPOINT_LAYERS_OF(double);
#undef TURNPOINT_LAYERS_OF

}  // namespace turnpoint::trinity::networks
