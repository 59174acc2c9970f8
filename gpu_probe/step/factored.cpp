// SPDX-License-Identifier: Apache-2.0
// Adafactor (Shazeer and Stern, arXiv 1804.04235) on one rank's share of parameters, with a constant decay and without
// momentum or relative steps. Of the squares of a matrix's gradient it keeps a mean per row, where a row is all leading
// dimensions together, and per column; of a vector's each. A rank that holds a part of a parameter sums the rows and
// columns of its part; ranks with other parts add theirs, all of a set in one message. Every rank then has the means of
// the whole, and a second message of one sum a parameter bounds how large the steps are.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpu_probe/step/norm_rules.h"
#include "gpu_probe/step/parameters.h"

namespace turnpoint::step {

bool ParameterShare::is_matrix(std::size_t p) const { return shape_of(p).size() >= 2; }

const Shape& ParameterShare::shape_of(std::size_t p) const {
  return program_.model->tensors[program_.model->operators[op_].inputs[set_.inputs[p]].tensor].shape;
}

// Rows' means from the first elements on, columns' up to the last: every rank draws all of both.
void ParameterShare::draw_factors() {
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Shape& shape = shape_of(p);
    const TensorId tensor = program_.model->operators[op_].inputs[set_.inputs[p]].tensor;
    const auto draw = [&](const Region& region, std::int64_t first, std::int64_t count) {
      std::vector<double> numbers(static_cast<std::size_t>(count));
      draw_parameter(*program_.model, tensor, region, first, count, DrawnFor::second_state, program_.options,
                     numbers.data());
      return numbers;
    };
    Factors& factors = factors_.emplace_back();
    if (!is_matrix(p)) {
      const Span part = within(mine_, p);
      factors.rows = draw(regions_[p], part.begin - starts_[p], std::max<std::int64_t>(0, part.size()));
      continue;
    }
    const Region whole{Shape(shape.size(), 0), shape};
    const std::int64_t elements = whole.elements(), columns = shape.back();
    factors.rows = draw(whole, 0, elements / columns);
    factors.columns = draw(whole, elements - columns, columns);
  }
}

// Calls visit(gradient, row, column, place in this rank's piece) for every element of a parameter that this rank
// updates; of a vector each element is a row.
template <class Visit>
void ParameterShare::for_each_of_mine(std::size_t p, ConstPlace gradient, const Visit& visit) const {
  const Span part = within(mine_, p);
  if (part.size() <= 0) return;
  const std::int64_t columns = is_matrix(p) ? shape_of(p).back() : 1;
  for_each_run(regions_[p], shape_of(p), part.begin - starts_[p], part.size(),
               [&](std::int64_t local, std::int64_t index, std::int64_t run) {
                 const std::int64_t at = starts_[p] + local - mine_.begin;
                 const std::vector<double> numbers = numbers_at(gradient + at, static_cast<std::size_t>(run));
                 for (std::int64_t i = 0; i < run; ++i)
                   visit(numbers[static_cast<std::size_t>(i)], static_cast<std::size_t>((index + i) / columns),
                         static_cast<std::size_t>((index + i) % columns), at + i);
               });
}

// The means of rows and columns after this step; a vector's are this rank's own.
Expected<void> ParameterShare::blend_factors(ConstPlace gradient, double& seconds) {
  std::vector<double> sums;
  std::vector<std::size_t> first;  // of each parameter in the message
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    Factors& factors = factors_[p];
    first.push_back(sums.size());
    if (is_matrix(p)) {
      sums.resize(sums.size() + factors.rows.size() + factors.columns.size());
      double *const rows = sums.data() + first[p], *const columns = rows + factors.rows.size();
      for_each_of_mine(p, gradient, [&](double g, std::size_t row, std::size_t column, std::int64_t) {
        rows[row] += g * g + kLeastSquare;
        columns[column] += g * g + kLeastSquare;
      });
      continue;
    }
    std::size_t i = 0;
    for_each_of_mine(p, gradient, [&](double g, std::size_t, std::size_t, std::int64_t) {
      factors.rows[i] = decayed(factors.rows[i], g * g + kLeastSquare);
      ++i;
    });
  }
  if (sums.empty()) return {};
  const auto whole = sum_over_parts(std::move(sums), seconds);
  if (!whole) return whole.error();
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    if (!is_matrix(p)) continue;
    Factors& factors = factors_[p];
    const double* columns = decay_means(factors.rows, whole->data() + first[p], factors.columns.size());
    decay_means(factors.columns, columns, factors.rows.size());
  }
  return {};
}

Expected<void> ParameterShare::update_factored(ConstPlace gradient, Place own, double& seconds) {
  if (auto done = blend_factors(gradient, seconds); !done) return done;
  Array step = Array::whole_scratch(static_cast<std::size_t>(mine_.size()));
  step.clear();
  std::vector<double> squares(regions_.size(), 0);
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span part = within(mine_, p);
    if (part.size() <= 0) continue;
    const Factors& factors = factors_[p];
    const double mean = std::accumulate(factors.rows.begin(), factors.rows.end(), 0.0) /
                        static_cast<double>(std::max<std::size_t>(1, factors.rows.size()));
    Filling steps(step.data() + (part.begin - mine_.begin));
    std::size_t i = 0;
    for_each_of_mine(p, gradient, [&](double g, std::size_t row, std::size_t column, std::int64_t) {
      const double square = is_matrix(p) ? factors.rows[row] * factors.columns[column] / mean : factors.rows[i++];
      const double taken = g / std::sqrt(square);
      squares[p] += taken * taken;
      steps.add(taken);
    });
  }
  const auto whole = sum_over_parts(std::move(squares), seconds);
  if (!whole) return whole.error();
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span part = within(mine_, p);
    if (part.size() <= 0) continue;
    std::int64_t elements = 1;
    for (const std::int64_t size : shape_of(p)) elements *= size;
    const double root = std::sqrt((*whole)[p] / static_cast<double>(elements));
    const std::int64_t at = part.begin - mine_.begin;
    apply(UpdateRule::sgd, program_.options.learning_rate / std::max(1.0, root / kLargestStep), step.data() + at,
          own + at, {}, {}, {}, static_cast<std::size_t>(part.size()));
  }
  return {};
}

}  // namespace turnpoint::step
