// SPDX-License-Identifier: Apache-2.0
// Layers with their derivatives, written by hand and checked against differences by tests/search/trinity. Matrices are
// row-major; a sequence of T steps of B rows side by side is a matrix of T B rows, step by step.
//
// Every backward() adds to the gradients of the weights, and overwrites those of inputs (null: not wanted).
#pragma once

#include <cstddef>
#include <vector>

#include "core/search/trinity/networks/weights.h"

namespace turnpoint::trinity::networks {

/// y = x W + b.
struct Dense {
  Slot weight, bias;

  static Dense make(Places& places, std::size_t inputs, std::size_t outputs) {
    return {places.add_weight(inputs, outputs), places.add_bias(outputs)};
  }
  template <class Real>
  void forward(const Real* weights, const Real* x, std::size_t rows, Real* y) const;
  template <class Real>
  void backward(const Real* weights, const Real* x, const Real* dy, std::size_t rows, Real* gradient, Real* dx) const;
};

template <class Real>
void relu(std::vector<Real>& x);
/// Of what relu() made.
template <class Real>
void relu_backward(const std::vector<Real>& y, std::vector<Real>& dy);
/// What is kept is divided by the chance of being kept; the mask holds 0 or that factor.
template <class Real>
void draw_dropout(double dropped, placement::Random& random, std::vector<Real>& mask);
template <class Real>
void times(const std::vector<Real>& mask, std::vector<Real>& x);

/// A long short-term memory layer (Hochreiter and Schmidhuber) without peepholes; the forget gate's bias begins at 1 by
/// an addition that is not learnt. Gates lie as input, forget, output, candidate.
struct Lstm {
  Slot input, recurrent, bias;

  static Lstm make(Places& places, std::size_t inputs, std::size_t hidden) {
    Lstm made;
    made.input = places.add_weight(inputs, 4 * hidden);
    made.recurrent = places.add_weight(hidden, 4 * hidden);
    made.bias = places.add_bias(4 * hidden);
    return made;
  }
  std::size_t inputs() const { return input.rows; }
  std::size_t hidden() const { return recurrent.rows; }

  template <class Real>
  struct State {
    std::vector<Real> h, c;  ///< B x hidden
  };
  /// What backward() needs of a forward(); (steps + 1) B rows of h and c, of which the first B are the initial state.
  template <class Real>
  struct Trace {
    std::size_t steps = 0, rows = 0;
    std::vector<Real> gates, h, c, tanh_c;
    const Real* outputs() const { return h.data() + h.size() / (steps + 1); }
    State<Real> last() const;
  };
  /// x is T B x inputs. An empty initial state is zero.
  template <class Real>
  void forward(const Real* weights, const Real* x, std::size_t steps, std::size_t rows, const State<Real>& initial,
               Trace<Real>& trace) const;
  /// `d_outputs` is T B x hidden; `d_state` comes in as the derivative by the last state and goes out as that by the
  /// initial one; empty: zero.
  template <class Real>
  void backward(const Real* weights, const Real* x, const Trace<Real>& trace, const Real* d_outputs,
                State<Real>& d_state, Real* gradient, Real* dx) const;
};

/// Additive attention (Bahdanau, Cho and Bengio, arXiv 1409.0473): a query's weights of the keys are the softmax of
/// v . tanh(key Wk + query Wq), and its context is the keys' weighted sum. Row b of queries sees row b of keys.
struct Attention {
  Slot key, query, v;

  static Attention make(Places& places, std::size_t hidden) {
    return {places.add_weight(hidden, hidden), places.add_weight(hidden, hidden), places.add_weight(hidden, 1)};
  }
  std::size_t hidden() const { return key.rows; }

  template <class Real>
  struct Keys {
    std::size_t steps = 0, rows = 0;
    const Real* keys = nullptr;   ///< Te B x hidden, the caller's
    std::vector<Real> projected;  ///< likewise
  };
  template <class Real>
  struct Trace {
    std::vector<Real> projected;  ///< Td B x hidden
    std::vector<Real> share;      ///< Td B x Te
    std::vector<Real> context;    ///< Td B x hidden
  };
  template <class Real>
  Keys<Real> look_at(const Real* weights, const Real* keys, std::size_t steps, std::size_t rows) const;
  template <class Real>
  void forward(const Real* weights, const Keys<Real>& keys, const Real* queries, std::size_t steps,
               Trace<Real>& trace) const;
  /// Adds to d_keys and d_queries.
  template <class Real>
  void backward(const Real* weights, const Keys<Real>& keys, const Real* queries, std::size_t steps,
                const Trace<Real>& trace, const Real* d_context, Real* gradient, Real* d_keys, Real* d_queries) const;
};

/// Scores kept within bounds before the softmax (Trinity, eq. 9): z = C tanh(u / T).
struct Clipping {
  double bound = 5, temperature = 10;
};
template <class Real>
void clip_scores(const Clipping& clipping, std::vector<Real>& scores);
/// From derivatives by z to those by u, given z.
template <class Real>
void clip_scores_backward(const Clipping& clipping, const std::vector<Real>& clipped, std::vector<Real>& d);
/// Logarithms of the softmax of each row.
template <class Real>
void log_softmax(const Real* scores, std::size_t rows, std::size_t columns, Real* log_probability);

}  // namespace turnpoint::trinity::networks
