// SPDX-License-Identifier: Apache-2.0
// Recurrent cells: the input's products of all steps at once, the state's step by step, the weights' gradients again at
// once. Gates lie unit by unit, as the weights do.
#include <algorithm>

#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step::in_cuda {

namespace {

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
  std::int64_t state() const { return samples * hidden; }
  std::int64_t own() const { return samples * units; }
  /// Where among GateGradients a row's begin that the state's product has of a GRU's new gate.
  std::int64_t of_state(std::int64_t d, std::int64_t r) const {
    return directions * rows() * width() + (d * rows() + r) * units;
  }
  std::int64_t time(std::int64_t d, std::int64_t s) const { return first_direction + d == 1 ? steps - 1 - s : s; }
  std::int64_t bias(std::int64_t d) const {
    return all_bias ? d * 2 * all_bias + first_unit * gates : d * units * gates;
  }
  /// Where the first sample's row and output of a time step are, and how far the next sample's.
  std::int64_t row(std::int64_t t) const { return batch_first ? t : t * samples; }
  std::int64_t row_step() const { return batch_first ? steps : 1; }
  std::int64_t y(std::int64_t t, std::int64_t d) const {
    return (t * directions + d) * (batch_first ? 1 : samples) * units;
  }
  std::int64_t y_step() const { return batch_first ? steps * directions * units : units; }
  Cell cell() const {
    Cell c{};
    c.samples = samples, c.units = units, c.hidden = hidden, c.gates = gates, c.first_unit = first_unit;
    c.row_stride = row_step() * width();
    c.y_stride = y_step();
    c.all_bias = all_bias;
    return c;
  }
};

Expected<void> check(const LocalOperator& at, const Cells& c) {
  if (c.gates != 1 && c.gates != 3 && c.gates != 4) return at.error("a recurrent cell of unknown gates");
  if (at.op().outputs.size() < 2) return at.error("a recurrent cell without its gates");
  return {};
}

/// c[m][n] = op(a) op(b), rows after rows.
void product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b, Place a, Place b,
             Place c) {
  probe::cuda::LtProduct p;
  p.m = m, p.n = n, p.k = k;
  p.transpose_a = transpose_a, p.transpose_b = transpose_b;
  p.leading_a = transpose_a ? m : k, p.leading_b = transpose_b ? k : n, p.leading_c = n;
  Device::get().multiply(p, a, b, c);
}

Array room(std::int64_t elements) { return Array::scratch(static_cast<std::size_t>(elements)); }
/// Cells and their gradients, which are summed from step to step.
Array whole_room(std::int64_t elements) { return Array::whole_scratch(static_cast<std::size_t>(elements)); }
Numbers numbers(Place first, std::int64_t count) { return {first, static_cast<std::size_t>(count)}; }

/// The state of all units, of what every rank has of its own.
Expected<void> whole_state(const LocalOperator& at, const Cells& c, Place mine, Place all) {
  if (at.gather_units) return at.gather_units(numbers(mine, c.own()), c.samples, numbers(all, c.state()));
  copy(mine, all, static_cast<std::size_t>(c.own()));
  return {};
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Cells c(at, in[0]->region, in[1]->region);
  if (auto fine = check(at, c); !fine) return fine;
  const std::int64_t width = c.width();
  Array from_input = room(c.rows() * width), from_state = room(c.samples * width), before = room(c.state()),
        mine = room(c.own()), cell = whole_room(c.own()), unread = room(out[1] ? 0 : c.rows() * c.directions * width);
  for (std::int64_t d = 0; d < c.directions; ++d) {
    product(c.rows(), width, c.features, false, true, in[0]->data.data(), in[1]->data.data() + d * width * c.features,
            from_input.data());
    before.clear();
    cell.clear();
    if (at.state) {
      copy(at.state->hidden.data(), before.data(), before.size());
      copy(at.state->cell.data(), cell.data(), cell.size());
    }
    for (std::int64_t s = 0; s < c.steps; ++s) {
      const std::int64_t t = c.time(d, s);
      product(c.samples, width, c.hidden, false, true, before.data(), in[2]->data.data() + d * width * c.hidden,
              from_state.data());
      Cell one = c.cell();
      one.from_input = address(from_input.data() + c.row(t) * width);
      one.from_state = address(from_state.data());
      if (in.size() > 3) one.bias = address(in[3]->data.data() + c.bias(d));
      one.before = address(before.data());
      one.mine = address(mine.data());
      one.cell = address(cell.data());
      one.y = address(out[0]->data.data() + c.y(t, d));
      one.gate = address((out[1] ? out[1]->data.data() : unread.data()) + c.y(t, d) * c.gates);
      launch_each("cell_forward", c.own(), one);
      if (auto done = whole_state(at, c, mine.data(), before.data()); !done) return done;
    }
  }
  if (at.state && c.gates == 4) at.state->cell = cell;
  return {};
}

/// Gradients of the weights from those at the gates' arguments. Of a single time step they are added to what is there.
class WeightGradients {
 public:
  WeightGradients(const LocalOperator& at, const Cells& c, Inputs in, Outputs result)
      : at_(at), c_(c), in_(in), result_(result) {
    std::size_t most = 0;
    for (std::size_t k = 1; k < std::min<std::size_t>(result.size(), 4); ++k)
      if (result[k]) most = std::max(most, result[k]->data.size());
    if (at.state) summands_ = Array::scratch(most);
    if (in.size() > 3 && result[3] && !at.state) result[3]->data.clear();
  }

  /// One direction: `all` by rows of the input; step by step, as the state's product counts in them, and the states
  /// before.
  void add(std::int64_t d, Place all, Place into_state, Place before) {
    const std::int64_t width = c_.width();
    if (result_[2]) {
      const Place to = result_[2]->data.data() + d * width * c_.hidden;
      product(width, c_.hidden, c_.rows(), true, false, into_state, before, into(to));
      added(to, width * c_.hidden);
    }
    if (result_[1]) {
      const Place to = result_[1]->data.data() + d * width * c_.features;
      product(width, c_.features, c_.rows(), true, false, all, in_[0]->data.data(), into(to));
      added(to, width * c_.features);
    }
    if (in_.size() < 4 || !result_[3]) return;
    const Strides zero{0, 0};
    const Place bias = result_[3]->data.data() + c_.bias(d);
    const auto sum = [&](Place to) {
      sum_over({c_.rows(), width}, {Strides{0, 1}, Strides{width, 1}, zero, zero, zero}, SumOf::a,
               {all, {}, {}, {}, {}}, into(to), static_cast<std::size_t>(width));
      added(to, width);
    };
    sum(bias);
    if (c_.all_bias) sum(bias + c_.all_bias);
  }

 private:
  Place into(Place to) { return at_.state ? summands_.data() : to; }
  void added(Place to, std::int64_t count) {
    if (at_.state) turnpoint::step::add(summands_.data(), to, static_cast<std::size_t>(count));
  }

  const LocalOperator& at_;
  const Cells& c_;
  Inputs in_;
  Outputs result_;
  Array summands_;
};

/// The gradients of the weights alone, of what backward of the input left.
Expected<void> weights_of_gates(const LocalOperator& at, Inputs in, Inputs out, Outputs result) {
  if (!in[0] || !result[1] || (!at.state && !out[0]))
    return at.error("the gradient of the weights needs an operand that is not there");
  const Cells c(at, in[0]->region, result[1]->region);
  if (auto fine = check(at, c); !fine) return fine;
  const std::int64_t width = c.width();
  Array into_state = room(c.rows() * width), before = room(c.steps * c.state());
  WeightGradients weights(at, c, in, result);
  const Place left = at.gates->numbers.data();
  for (std::int64_t d = 0; d < c.directions; ++d) {
    const Place all = left + d * c.rows() * width;
    for (std::int64_t s = 0; s < c.steps; ++s) {
      const std::int64_t t = c.time(d, s);
      const Place to = into_state.data() + s * c.samples * width, old = before.data() + s * c.state();
      move_strided({c.samples, width}, all + c.row(t) * width, {c.row_step() * width, 1}, to, {width, 1});
      if (c.gates == 3)
        move_strided({c.samples, c.units}, left + c.of_state(d, c.row(t)), {c.row_step() * c.units, 1}, to + 2,
                     {width, 3});
      if (s > 0)
        move_strided({c.samples, c.hidden}, out[0]->data.data() + c.y(c.time(d, s - 1), d), {c.y_step(), 1}, old,
                     {c.hidden, 1});
      else if (at.state)
        copy(at.state->hidden.data(), old, at.state->hidden.size());
      else
        fill(old, 0, static_cast<std::size_t>(c.state()));
    }
    weights.add(d, all, into_state.data(), before.data());
  }
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  if (at.gates && at.gates->made) return weights_of_gates(at, in, out, result);
  for (std::size_t k = 0; k < 3; ++k)
    if (!in[k]) return at.error("backward needs an operand that is not there");
  if (!out[0] || out.size() < 2 || !out[1]) return at.error("backward needs its output and gates, which are not there");
  const Cells c(at, in[0]->region, in[1]->region);
  if (auto fine = check(at, c); !fine) return fine;
  const std::int64_t width = c.width(), steps = c.steps;
  // Of all steps: states before and cells, gradients at the gates' arguments by rows of the input and step by step.
  Array before = room(steps * c.state()), cells = whole_room((steps + 1) * c.own()), all = room(c.rows() * width),
        into_state = room(c.rows() * width), products = room(c.samples * width), carried = whole_room(c.own()),
        from_next = room(c.own()), into_before = room(c.state()), summand = room(c.state()), mine = room(c.own());
  Array more = room(result[0] && c.directions > 1 ? c.rows() * c.features : 0);
  WeightGradients weights(at, c, in, result);
  Place left = at.gates ? at.gates->numbers.data() : Place();
  for (std::int64_t d = 0; d < c.directions; ++d) {
    const Place w = in[1]->data.data() + d * width * c.features, r = in[2]->data.data() + d * width * c.hidden;
    const auto step = [&](std::int64_t s) {
      Cell one = c.cell();
      const std::int64_t t = c.time(d, s);
      one.y = address(out[0]->data.data() + c.y(t, d));
      one.gate = address(out[1]->data.data() + c.y(t, d) * c.gates);
      one.old = address(cells.data() + s * c.own());
      one.cell = address(cells.data() + (s + 1) * c.own());
      one.before = address(before.data() + s * c.state());
      one.mine = address(mine.data());
      return one;
    };
    before.clear();
    cells.clear();
    if (at.state) {
      copy(at.state->hidden.data(), before.data(), at.state->hidden.size());
      copy(at.state->cell.data(), cells.data(), at.state->cell.size());
    }
    for (std::int64_t s = 0; s < steps; ++s) {
      launch_each("cell_recall", c.own(), step(s));
      if (s + 1 == steps) break;
      if (auto done = whole_state(at, c, mine.data(), before.data() + (s + 1) * c.state()); !done) return done;
    }
    from_next.clear();
    carried.clear();
    if (at.state) {
      copy(at.state->hidden_gradient.data(), from_next.data(), from_next.size());
      copy(at.state->cell_gradient.data(), carried.data(), carried.size());
    }
    for (std::int64_t s = steps; s-- > 0;) {
      Cell one = step(s);
      into_before.clear();
      if (c.gates == 3)
        product(c.samples, width, c.hidden, false, true, before.data() + s * c.state(), r, products.data());
      const Place state = into_state.data() + s * c.samples * width;
      one.from_state = address(products.data());
      one.dy = address(gradient[0]->data.data() + c.y(c.time(d, s), d));
      one.from_next = address(from_next.data());
      one.carried = address(carried.data());
      one.dz = address(all.data() + c.row(c.time(d, s)) * width);
      one.dz_state = address(state);
      one.into_before = address(into_before.data());
      launch_each("cell_backward", c.own(), one);
      product(c.samples, c.hidden, width, false, false, state, r, summand.data());
      add(summand.data(), into_before.data(), summand.size());
      if (!at.scatter_units) {
        copy(into_before.data(), from_next.data(), from_next.size());
        continue;
      }
      if (auto done = at.scatter_units(into_before.numbers(), c.samples, from_next.numbers()); !done) return done;
    }
    if (left.address != 0) {
      copy(all.data(), left + d * c.rows() * width, all.size());
      for (std::int64_t s = 0; s < steps && c.gates == 3; ++s)
        move_strided({c.samples, c.units}, into_state.data() + s * c.samples * width + 2, {width, 3},
                     left + c.of_state(d, c.row(c.time(d, s))), {c.row_step() * c.units, 1});
    }
    if (result[0]) {
      const Place to = d == 0 ? result[0]->data.data() : more.data();
      product(c.rows(), c.features, width, false, false, all.data(), w, to);
      if (d > 0) add(to, result[0]->data.data(), more.size());
    }
    weights.add(d, all.data(), into_state.data(), before.data());
  }
  if (at.state) {
    at.state->hidden_gradient = from_next;
    at.state->cell_gradient = carried;
  }
  return {};
}

}  // namespace

const Kernel GpuKernels::recurrent{forward, backward};

}  // namespace turnpoint::step::in_cuda
