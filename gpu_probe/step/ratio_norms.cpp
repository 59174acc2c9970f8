// SPDX-License-Identifier: Apache-2.0
// Updates of ratio plans that take norms of whole parameters (norm_rules.h). A rank sums over the elements that it
// updates, those left out that a rank before it updates as well; one message adds the sums of all parameters over all
// ranks, of Adafactor the rows' and columns' of matrices, and a second one then bounds its steps.
#include <numeric>

#include "gpu_probe/step/norm_rules.h"
#include "gpu_probe/step/ratio_rank.h"
#include "gpu_probe/step/values/drawn.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

bool RatioRank::counts(const Piece& piece) const {
  const RatioWeight& of = program_.weights[piece.weight];
  const RatioLie& lie = piece.run ? piece.run->shard : program_of(of.op).inputs[of.input];
  return first_among(program_.tree, lie, me_, Layout::kReplicated);
}

Expected<void> RatioRank::sum_over_ranks(std::vector<double>& sums) {
  if (sums.empty() || communicator_.ranks() < 2) return {};
  Group all(static_cast<std::size_t>(communicator_.ranks()));
  std::iota(all.begin(), all.end(), 0);
  Array message = Array::whole_scratch(sums.size());
  put({sums.data(), sums.size()}, message.data());
  communicator_.take_received();
  if (auto done = communicator_.all_reduce(all, message.numbers()); !done) return done;
  report_.norm_bytes += static_cast<double>(communicator_.take_received()) * options().gradient_bytes;
  sums = numbers_of(message);
  return {};
}

Expected<void> RatioRank::step_layer_wise(std::vector<Piece>& pieces) {
  const bool lamb = options().rule == UpdateRule::lamb;
  std::vector<double> sums(2 * weights_.size(), 0);
  for (Piece& piece : pieces) {
    const Weight& weight = weights_[piece.weight];
    const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
    // What the rule's step would take off a weight of 0.
    piece.step = Array::whole_scratch(piece.count);
    piece.step.clear();
    apply(lamb ? UpdateRule::adam : UpdateRule::sgd, 1, gradient_of(piece), piece.step.data(), {},
          state_of(piece, weight.first), state_of(piece, weight.second), piece.count);
    if (!counts(piece)) continue;
    const auto add_square = [&](ConstPlace numbers, std::size_t to) {
      weighted_sum(numbers, numbers, piece.count, [&sums, to](double sum) { sums[to] += sum; });
    };
    add_square(own_of(piece), 2 * piece.weight);
    add_square(piece.step.data(), 2 * piece.weight + 1);
  }
  if (auto done = sum_over_ranks(sums); !done) return done;
  for (Piece& piece : pieces) {
    const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
    const double ratio = norm_ratio(sums[2 * piece.weight], sums[2 * piece.weight + 1]);
    if (lamb) {
      apply(UpdateRule::sgd, -options().learning_rate * ratio, piece.step.data(), own_of(piece), {}, {}, {},
            piece.count);
      continue;
    }
    Array scaled = Array::whole_scratch(piece.count);
    scaled.clear();
    apply(UpdateRule::sgd, kLarsTrust * ratio, piece.step.data(), scaled.data(), {}, {}, {}, piece.count);
    apply(UpdateRule::momentum, options().learning_rate, scaled.data(), own_of(piece), {},
          state_of(piece, weights_[piece.weight].first), {}, piece.count);
  }
  return {};
}

// --- Adafactor ---

// Rows' means from the first elements on, columns' up to the last, as one rank draws them.
void RatioRank::draw_factors(Weight& weight, const RatioWeight& of,
                             const std::vector<std::pair<Region, Region>>& updated) {
  const Shape& shape = shape_of(of);
  const TensorId tensor = op_of(of.op).inputs[of.input].tensor;
  const auto draw = [&](const Region& region, std::int64_t first, std::int64_t count, std::vector<double>& to) {
    const std::size_t at = to.size();
    to.resize(at + static_cast<std::size_t>(count));
    draw_parameter(model(), tensor, region, first, count, DrawnFor::second_state, options(), to.data() + at);
  };
  if (shape.size() < 2) {
    for (const auto& [block, shard] : updated) draw(block, shard.offset[0], shard.elements(), weight.rows);
    return;
  }
  const Region whole{Shape(shape.size(), 0), shape};
  const std::int64_t elements = whole.elements(), columns = shape.back();
  draw(whole, 0, elements / columns, weight.rows);
  draw(whole, elements - columns, columns, weight.columns);
}

// Calls visit(gradient, row, column, place in the piece); of a vector each element is a row.
template <class Visit>
void RatioRank::for_each_of(const Piece& piece, const Visit& visit) const {
  if (piece.count == 0) return;
  const Shape& shape = shape_of(program_.weights[piece.weight]);
  const std::int64_t columns = shape.size() < 2 ? 1 : shape.back();
  const std::vector<double> numbers = numbers_at(gradient_of(piece), piece.count);
  for_each_run(piece.block, shape, piece.first, static_cast<std::int64_t>(piece.count),
               [&](std::int64_t local, std::int64_t index, std::int64_t run) {
                 for (std::int64_t i = 0; i < run; ++i) {
                   const auto at = static_cast<std::size_t>(local - piece.first + i);
                   visit(numbers[at], static_cast<std::size_t>((index + i) / columns),
                         static_cast<std::size_t>((index + i) % columns), at);
                 }
               });
}

Expected<void> RatioRank::blend_factors(const std::vector<Piece>& pieces) {
  std::vector<double> sums;
  std::vector<std::size_t> first;  // of each parameter in the message
  for (const Weight& weight : weights_) {
    first.push_back(sums.size());
    if (!weight.columns.empty()) sums.resize(sums.size() + weight.rows.size() + weight.columns.size(), 0);
  }
  for (const Piece& piece : pieces) {
    Weight& weight = weights_[piece.weight];
    const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
    double *const rows = sums.data() + first[piece.weight], *const columns = rows + weight.rows.size();
    const bool matrix = !weight.columns.empty();
    if (matrix && !counts(piece)) continue;
    for_each_of(piece, [&](double g, std::size_t row, std::size_t column, std::size_t at) {
      const double square = g * g + kLeastSquare;
      if (matrix) {
        rows[row] += square, columns[column] += square;
        return;
      }
      double& mean = weight.rows[piece.state + at];
      mean = decayed(mean, square);
    });
  }
  if (auto done = sum_over_ranks(sums); !done) return done;
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    Weight& weight = weights_[w];
    if (weight.columns.empty() || !weight.touched) continue;
    const double* columns = decay_means(weight.rows, sums.data() + first[w], weight.columns.size());
    decay_means(weight.columns, columns, weight.rows.size());
  }
  return {};
}

Expected<void> RatioRank::step_factored(std::vector<Piece>& pieces) {
  if (auto done = blend_factors(pieces); !done) return done;
  std::vector<double> squares(weights_.size(), 0);
  for (Piece& piece : pieces) {
    const Weight& weight = weights_[piece.weight];
    const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
    const double mean = std::accumulate(weight.rows.begin(), weight.rows.end(), 0.0) /
                        static_cast<double>(std::max<std::size_t>(1, weight.rows.size()));
    const bool counted = counts(piece);
    piece.step = Array::whole_scratch(piece.count);
    Filling steps(piece.step.data());
    for_each_of(piece, [&](double g, std::size_t row, std::size_t column, std::size_t at) {
      const double square =
          weight.columns.empty() ? weight.rows[piece.state + at] : weight.rows[row] * weight.columns[column] / mean;
      const double taken = g / std::sqrt(square);
      if (counted) squares[piece.weight] += taken * taken;
      steps.add(taken);
    });
  }
  if (auto done = sum_over_ranks(squares); !done) return done;
  for (Piece& piece : pieces) {
    const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
    double elements = 1;
    for (const std::int64_t size : shape_of(program_.weights[piece.weight])) elements *= static_cast<double>(size);
    const double root = std::sqrt(squares[piece.weight] / elements);
    apply(UpdateRule::sgd, options().learning_rate / std::max(1.0, root / kLargestStep), piece.step.data(),
          own_of(piece), {}, {}, {}, piece.count);
  }
  return {};
}

}  // namespace turnpoint::step
