// SPDX-License-Identifier: Apache-2.0
// Small training loops, built by hand, for tests of what is redundant, clustered and sharded.
#pragma once

#include <cstdlib>

#include "core/search/update_sharding/optimizer_graph.h"

namespace turnpoint::test {

namespace us = turnpoint::update_sharding;

/// What of the loop is out of the ordinary.
struct LoopCase {
  us::Shape shape{6, 4};
  Optimizer optimizer = Optimizer::adam;
  int weights = 1, replicas = 4, steps = 3;
  int checkpoint_every = 0;      ///< weight and auxiliaries go to the host, in a branch
  bool auxiliaries_out = false;  ///< the auxiliaries go to the host at every step
  bool read_by_gather = false;   ///< forward reads the weight by an operator that is no product, too
  bool swapped = false;          ///< what comes first behind the counter, and second, change places at every step
  bool gradient_out = false;     ///< the summed gradient goes to the host at every step
};

/// Weights "w", "w1", .. of one shape, each read by a product, a gradient of each that depends on data and on that
/// product, and their updates. Auxiliaries are "w/0", "w/1", "w1/0", ..
inline us::Program loop_of(const LoopCase& c) {
  us::Builder b(c.replicas);
  std::vector<us::ValueId> carried{b.constant(0, {}, 8)};
  const auto auxiliary_shapes = us::auxiliary_shapes(c.optimizer, c.shape);
  const auto name = [](int w) { return w ? "w" + std::to_string(w) : std::string("w"); };
  for (int w = 0; w < c.weights; ++w) carried.push_back(b.parameter(name(w), c.shape, us::ParameterRole::weight, true));
  for (int w = 0; w < c.weights; ++w)
    for (std::size_t k = 0; k < auxiliary_shapes.size(); ++k)
      carried.push_back(
          b.parameter(name(w) + "/" + std::to_string(k), auxiliary_shapes[k], us::ParameterRole::auxiliary, true));
  const us::ComputationId entry = b.standing_in(), body = b.computation("step"), condition = b.computation("more");
  const auto parameters = [&](const std::vector<us::ValueId>& like) {
    std::vector<us::ValueId> made;
    for (const us::ValueId value : like) {
      const us::Value v = b.value(value);
      made.push_back(b.parameter(v.name, v.shape, b.program().producer(value).role, false, v.element_bytes));
    }
    return made;
  };
  b.stand_in(condition);
  b.results({b.apply(us::Function::less, {parameters(carried)[0], b.constant(c.steps, {}, 8)})});

  b.stand_in(body);
  const auto in = parameters(carried);
  const us::ValueId next = b.apply(us::Function::add, {in[0], b.constant(1, {}, 8)});
  const us::ValueId data = b.source(us::Kind::infeed, "data", {5});
  const us::OptimizerNumbers numbers;
  const auto scalars = us::step_scalars(b, c.optimizer, numbers, b.convert(next, 4));
  std::vector<us::ValueId> results{next}, auxiliaries;
  for (int w = 0; w < c.weights; ++w) {
    const us::ValueId weight = in[static_cast<std::size_t>(1 + w)];
    const us::ValueId y = b.operation(us::Kind::dot, {weight, data}, {{3}}, "product").front();
    std::vector<us::ValueId> read{y, data};
    if (c.read_by_gather) read.push_back(b.operation(us::Kind::network, {weight, data}, {{3}}, "lookup").front());
    const us::ValueId local = b.operation(us::Kind::network, read, {c.shape}, "backward").front();
    const us::ValueId gradient = b.all_reduce(local, {}, "gradient");
    const auto first = in.begin() + 1 + c.weights + w * static_cast<std::ptrdiff_t>(auxiliary_shapes.size());
    const auto updated = us::append_update(b, c.optimizer, numbers, scalars, gradient, weight,
                                           {first, first + static_cast<std::ptrdiff_t>(auxiliary_shapes.size())});
    if (c.gradient_out) b.output({gradient}, "gradient for the host");
    results.push_back(updated.weight);
    auxiliaries.insert(auxiliaries.end(), updated.auxiliaries.begin(), updated.auxiliaries.end());
  }
  if (c.auxiliaries_out) b.output(auxiliaries, "statistics");
  results.insert(results.end(), auxiliaries.begin(), auxiliaries.end());
  if (c.checkpoint_every > 0) {
    const us::ValueId rest = b.apply(us::Function::modulo, {next, b.constant(c.checkpoint_every, {}, 8)});
    const us::ValueId time = b.apply(us::Function::equal, {rest, b.constant(0, {}, 8)});
    const std::vector<us::ValueId> handed(results.begin() + 1, results.end());
    const us::ComputationId taken = b.computation("checkpoint"), otherwise = b.computation("none");
    b.stand_in(taken);
    b.output(parameters(handed), "checkpoint");
    b.stand_in(otherwise);
    parameters(handed);
    b.stand_in(body);
    b.conditional(time, handed, taken, otherwise);
  }
  if (c.swapped) std::swap(results[1], results[2]);
  b.results(results);
  b.stand_in(entry);
  const auto last = b.loop(carried, body, condition, "loop");
  b.output({last.begin() + 1, last.end()}, "final");
  return b.take();
}

}  // namespace turnpoint::test
