// SPDX-License-Identifier: Apache-2.0
// Builds a training program instruction by instruction. It checks nothing: check() of program.h does, over the whole.
#pragma once

#include <string>
#include <vector>

#include "core/search/update_sharding/program.h"

namespace turnpoint::update_sharding {

using Shape = std::vector<std::int64_t>;

class Builder {
 public:
  explicit Builder(int replicas);  ///< stands in the entry, which is there from the start
  explicit Builder(Program program) : program_(std::move(program)), in_(program_.entry) {}

  Program take() { return std::move(program_); }
  const Program& program() const { return program_; }
  const Value& value(ValueId id) const { return program_.values[id]; }

  ComputationId computation(std::string name);                     ///< a new one, empty
  void stand_in(ComputationId computation) { in_ = computation; }  ///< where instructions go from now on
  ComputationId standing_in() const { return in_; }
  void results(std::vector<ValueId> values) { program_.computations[in_].results = std::move(values); }

  ValueId parameter(std::string name, Shape shape, ParameterRole role = ParameterRole::other,
                    bool same_everywhere = false, int element_bytes = 4);
  ValueId constant(double literal, Shape shape = {}, int element_bytes = 4);
  ValueId iota(std::int64_t elements);
  /// Infeed, random numbers or a replica's number.
  ValueId source(Kind kind, std::string name, Shape shape, int element_bytes = 4);
  ValueId apply(Function function, std::vector<ValueId> inputs, std::string name = {});
  ValueId convert(ValueId input, int element_bytes);
  ValueId reduce(ValueId input, std::vector<int> dims, std::string name = {});
  ValueId sum(ValueId input, std::string name = {});  ///< over all dimensions: a scalar
  ValueId broadcast(ValueId input, Shape shape, std::vector<int> dims = {});
  /// Reshape, bitcast, pad, slice: all that follows from the new shape.
  ValueId shaped(Kind kind, ValueId input, Shape shape, std::string name = {});
  ValueId dynamic_slice(ValueId input, ValueId offset, std::int64_t elements);
  ValueId dynamic_update_slice(ValueId input, ValueId update, ValueId offset);
  ValueId collective(Kind kind, ValueId input, ReplicaGroups groups, Shape shape, std::string name = {});
  ValueId all_reduce(ValueId input, ReplicaGroups groups = {}, std::string name = {});
  /// An operator of the network, a dot, a convolution or a custom call, with results of these shapes.
  std::vector<ValueId> operation(Kind kind, std::vector<ValueId> inputs, std::vector<Shape> shapes, std::string name);
  ValueId dot(ValueId a, ValueId b, std::string name = {});  ///< of two matrices
  std::vector<ValueId> conditional(ValueId predicate, std::vector<ValueId> arguments, ComputationId taken,
                                   ComputationId otherwise, std::string name = {});
  std::vector<ValueId> loop(std::vector<ValueId> carried, ComputationId body, ComputationId condition,
                            std::string name = {});
  void output(std::vector<ValueId> inputs, std::string name);

  /// Appends an instruction and makes values of these shapes for it.
  std::vector<ValueId> append(Instruction instruction, const std::vector<Value>& outputs);

 private:
  ValueId append_one(Instruction instruction, Shape shape, int element_bytes);

  Program program_;
  ComputationId in_;
};

}  // namespace turnpoint::update_sharding
