// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/drawn.h"

#include <cmath>

#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

namespace {

/// What is made of a number drawn from [0, 1).
struct Drawn {
  double times = 1, plus = 0, scale = 1;
  double of(double uniform) const { return (times * uniform + plus) * scale; }
};

/// Numbers by counter for elements that follow each other.
TURNPOINT_CLONES void draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, const Drawn& what, double* to,
                           std::int64_t count) {
  const Drawn made = what;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = made.of(counter_uniform(seed, stream, first + static_cast<std::uint64_t>(i)));
}

}  // namespace

void draw_parameter(const Model& model, TensorId id, const Region& region, std::int64_t first, std::int64_t count,
                    DrawnFor what, const StepOptions& options, double* to) {
  const Tensor& tensor = model.tensors[id];
  if (tensor.tied_to.valid()) id = tensor.tied_to;
  const double fan = std::sqrt(static_cast<double>(tensor.elements()));
  const Drawn drawn = what == DrawnFor::first_state    ? Drawn{0.02, -0.01, 1}
                      : what == DrawnFor::second_state ? Drawn{0.01, 0.01, 1}
                      : tensor.shape.size() < 2        ? Drawn{1, 0.5, 1}
                                                       : Drawn{2, -1, 1.5 / std::sqrt(fan)};
  const std::uint64_t numbered = id.index * 8ull + static_cast<std::uint64_t>(what);
  for_each_run(region, tensor.shape, first, count, [&](std::int64_t local, std::int64_t index, std::int64_t run) {
    double* at = to + (local - first);
    const auto from = static_cast<std::uint64_t>(index);
    if (what != DrawnFor::weight || !options.initial) return draw(options.seed, numbered, from, drawn, at, run);
    for (std::int64_t i = 0; i < run; ++i) {
      const double uniform = counter_uniform(options.seed, numbered, from + static_cast<std::uint64_t>(i));
      at[i] = options.initial(id, index + i, drawn.of(uniform));
    }
  });
}

}  // namespace turnpoint::step
