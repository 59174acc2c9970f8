// SPDX-License-Identifier: Apache-2.0
// What a rank's share of parameters begins with, drawn by counter so that every rank has the same of the same element.
#include <algorithm>
#include <cmath>

#include "gpu_probe/step/parameters.h"
#include "gpu_probe/step/values/drawn.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

namespace {

constexpr std::int64_t kPart = 8192;  ///< elements drawn at a time

}  // namespace

// Numbers by counter for a part of the run, some thousand at a time.
void ParameterShare::draw_run(Span part, DrawnFor what, Place to) const {
  std::vector<double> some(static_cast<std::size_t>(std::min(kPart, part.size())));
  for (std::int64_t at = part.begin; at < part.end; at += kPart) {
    const Span now{at, std::min(at + kPart, part.end)};
    draw_run(now, what, some.data());
    put({some.data(), static_cast<std::size_t>(now.size())}, to + (at - part.begin));
  }
}

void ParameterShare::draw_run(Span part, DrawnFor what, double* to) const {
  const Operator& described = program_.model->operators[op_];
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span here = within(part, p);
    if (here.begin >= here.end) continue;
    draw_parameter(*program_.model, described.inputs[set_.inputs[p]].tensor, regions_[p], here.begin - starts_[p],
                   here.size(), what, program_.options, to + (here.begin - part.begin));
  }
}

// Numbers of the same sizes, floats at a nanosecond each: gigabytes of them are made.
void ParameterShare::generate_quickly() {
  std::uint64_t state = mixed(program_.options.seed ^ op_.index) | 1;
  const auto draw = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<float>(state >> 40) * 0x1p-24f;
  };
  const Span held = sharded_weights() ? mine_ : Span{0, length()};
  const Operator& described = program_.model->operators[op_];
  {
    Filling weights(weights_->data.data()), master(master_.data());
    for (std::size_t p = 0; p < regions_.size(); ++p) {
      const Tensor& tensor = program_.model->tensors[described.inputs[set_.inputs[p]].tensor];
      const bool vector = tensor.shape.size() < 2;
      const auto most = static_cast<float>(1.5 / std::sqrt(std::sqrt(static_cast<double>(tensor.elements()))));
      const Span part = within(held, p);
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const float weight = vector ? 0.5f + draw() : (2 * draw() - 1) * most;
        weights.add(weight);
        if (master_.size() > 0 && i >= mine_.begin && i < mine_.end) master.add(weight);
      }
    }
  }
  Filling first(first_->data.data()), second(second_->data.data());
  for (std::size_t i = 0; i < first_->data.size(); ++i) first.add(0.02f * draw() - 0.01f);
  for (std::size_t i = 0; i < second_->data.size(); ++i) second.add(0.01f + 0.01f * draw());
}

// A proof takes one step, and nobody looks at its optimizer state: held from the start it would make it larger by half.
bool ParameterShare::draws_state_late() const {
  const StepOptions& options = program_.options;
  // A rule that looks at whole parameters needs all of it at once.
  return arithmetic().proves() && options.one_step && !options.quick && !is_layer_wise(options.rule);
}

void ParameterShare::update_by_parts(ConstPlace gradient, Place weights) {
  Array first = Array::whole_scratch(kPart), second = Array::whole_scratch(kPart);
  for (std::int64_t at = mine_.begin; at < mine_.end; at += kPart) {
    const Span part{at, std::min(at + kPart, mine_.end)};
    draw_run(part, DrawnFor::first_state, first.data());
    draw_run(part, DrawnFor::second_state, second.data());
    const std::int64_t from = at - mine_.begin;
    apply(program_.options.rule, program_.options.learning_rate, gradient + from, weights + from, master_.data(),
          first.data(), second.data(), static_cast<std::size_t>(part.size()));
  }
}

}  // namespace turnpoint::step
