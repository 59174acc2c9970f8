// SPDX-License-Identifier: Apache-2.0
// What each operator computes, as lines of Python over the functions of prelude.h: on one device under a configuration,
// or as a whole. Forward reads the operator's inputs, backward nothing but what the model says is saved. What cannot be
// written truly is refused: an operator without formula here, or one whose attributes the model does not hold.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/export/jax/python.h"
#include "core/model/model.h"

namespace turnpoint::jax {

/// An operator under a configuration of the mesh.
struct Place {
  const Model& model;
  OperatorId id;
  const Mesh& mesh;
  Configuration split;  ///< the empty one: as a whole

  const Operator& op() const { return model.operators[id]; }
  const Tensor& input(std::size_t k) const { return model.tensors[op().inputs[k].tensor]; }
  const Tensor& output(std::size_t o) const { return model.tensors[op().outputs[o].tensor]; }
  std::uint32_t axes_on(int loop) const;      ///< that split it
  std::int64_t size(std::size_t loop) const;  ///< on one device
  std::string start(int loop) const;          ///< where a device's part of it begins, as an expression
  std::vector<std::int64_t> shape(const Access& access) const;  ///< of the block of a tensor
  std::string starts(const Access& access) const;               ///< of the block, a tuple of expressions
  std::uint32_t summed_axes() const;                            ///< on which the output is a partial sum
  Error refuse(const std::string& why) const;
};

/// Names of the values that a formula reads and makes; empty: not there, or not wanted.
struct Values {
  std::vector<std::string> inputs, outputs, gradients, results;
};

/// Error: this operator is not written, and why. Nothing of it depends on the configuration but a split that would
/// need neighbours' numbers.
Expected<void> can_write(const Place& place);
/// Assigns `outputs`.
void write_forward(const Place& place, const Values& values, Lines& lines);
/// Assigns those of `results` that are named, the gradients of the inputs, from `gradients`, those of the outputs.
void write_backward(const Place& place, const Values& values, Lines& lines);

/// The weights by which a result that is no scalar counts in the loss, as an expression: a network without a loss of
/// its own is trained on a sum of its results, each weighed differently, so that no gradient is a constant.
std::string weighing(const Place& place, std::size_t output);

/// What the formulas take for granted because the model does not tell it: a sentence each, by the name of the constant
/// at the file's top that says it.
std::map<std::string, std::string> assumptions(const Model& model);

}  // namespace turnpoint::jax
