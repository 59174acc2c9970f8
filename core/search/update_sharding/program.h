// SPDX-License-Identifier: Apache-2.0
// A training program: the graph that every replica of data-parallel training runs, with the training loop around the
// step, so that an analysis sees which values are carried from step to step and which are only read now and then.
//
// Values are tensors; instructions make them. A computation is a list of instructions in the order in which they run,
// with parameters and results; a loop and a conditional call computations. Instructions read values of their own
// computation only, so that what crosses a loop or a branch is always an argument or a result.
//
// Source: Xu et al., arXiv 2004.13336, 3 (the graphs that its analysis walks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/ids.h"

namespace turnpoint::update_sharding {

using ValueId = Id<struct ValueTag>;
using InstructionId = Id<struct InstructionTag>;
using ComputationId = Id<struct ComputationTag>;

enum class Kind : std::uint8_t {
  constant,    ///< every element is `literal`
  iota,        ///< the row-major index of each element
  parameter,   ///< of its computation; of the entry: weights, auxiliaries, and what else is handed in
  infeed,      ///< data, different on every replica
  random,      ///< different on every replica
  replica_id,  ///< a scalar
  custom_call,
  elementwise,  ///< `function` of inputs of one shape
  reduce,       ///< the sum over `dims`, which the result no longer has
  dot,          ///< [m, k] x [k, n] where it is to be carried out; of a network any product
  convolution,
  network,               ///< any other pure operator of a network: all outputs follow from all inputs
  broadcast,             ///< dimension d of the input becomes dims[d] of the result; a scalar has no dims
  reshape,               ///< row-major
  bitcast,               ///< the same bytes, read in another shape
  pad,                   ///< of a vector: zeros behind it
  slice,                 ///< of a vector: the first elements
  dynamic_slice,         ///< of a vector, from the scalar second input on
  dynamic_update_slice,  ///< of a vector: the second input written over it from the scalar third input on
  all_reduce,            ///< the sum over each group, of every input apart
  reduce_scatter,        ///< of a vector: member j of a group keeps the j-th of equal parts of the sum
  all_gather,            ///< of a vector: those of a group one behind the other
  conditional,  ///< inputs: predicate, arguments; calls the first computation where it is not 0, else the second
  loop,         ///< inputs: first carried values; calls body and condition, both with the carried values
  output,       ///< hands its inputs to the host: outfeed, checkpoint, summary
};
const char* to_string(Kind kind);

/// Of an elementwise instruction. `select` takes its second input where the first is not 0, else the third; comparisons
/// give 1 or 0; `convert` rounds to the result's element size.
enum class Function : std::uint8_t {
  copy,
  convert,
  negate,
  absolute,
  square_root,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  power,
  modulo,
  equal,
  less,
  select,
};
int inputs_of(Function function);

/// What a parameter of the entry is. Front ends say which are equal on all replicas; nothing in the graph does.
enum class ParameterRole : std::uint8_t { other, weight, auxiliary };

/// A tensor on one replica.
struct Value {
  std::string name;
  std::vector<std::int64_t> shape;  ///< elements per dimension, none negative; empty: a scalar
  int element_bytes = 4;            ///< 1, 2, 4 or 8
  InstructionId producer;

  std::int64_t elements() const;
  double bytes() const { return static_cast<double>(elements()) * element_bytes; }
};

using ReplicaGroups = std::vector<std::vector<int>>;  ///< every replica in one of them; none: all replicas together

struct Instruction {
  Kind kind = Kind::constant;
  Function function = Function::copy;
  std::string name;
  ComputationId computation;
  std::vector<ValueId> inputs, outputs;
  double literal = 0;
  std::vector<int> dims;
  ReplicaGroups groups;
  std::vector<ComputationId> called;
  ParameterRole role = ParameterRole::other;
  bool same_everywhere = false;  ///< of a parameter of the entry
};

struct Computation {
  std::string name;
  std::vector<ValueId> parameters;
  std::vector<InstructionId> instructions;  ///< in the order in which they run
  std::vector<ValueId> results;
};

struct Program {
  int replicas = 1;
  ComputationId entry;
  IdVector<ValueId, Value> values;
  IdVector<InstructionId, Instruction> instructions;
  IdVector<ComputationId, Computation> computations;

  const Instruction& producer(ValueId value) const { return instructions[values[value].producer]; }
};

/// Who reads a value: an input of an instruction, or a result of its computation.
struct Readers {
  struct Read {
    InstructionId by;
    std::uint32_t input = 0;
  };
  std::vector<Read> instructions;
  std::vector<std::uint32_t> results;  ///< positions among the computation's results
};
IdVector<ValueId, Readers> readers_of(const Program& program);

/// The instructions that call each computation; the entry has none.
IdVector<ComputationId, std::vector<InstructionId>> callers_of(const Program& program);

/// Whether the program can be run: every value is made before it is read and in the same computation, no computation
/// calls itself, groups hold every replica once and are equally large, shapes fit their instructions. Every function
/// of this folder expects a program for which this holds, or returns its error.
Expected<void> check(const Program& program);

/// {{0, 1, .., size - 1}, {size, ..}, ..}. Error: `size` does not divide the replicas.
Expected<ReplicaGroups> row_groups(int replicas, int size);
/// {{0, size, 2 size, ..}, {1, ..}, ..}: those that hold the same shard where rows of `size` are shared out.
Expected<ReplicaGroups> column_groups(int replicas, int size);

}  // namespace turnpoint::update_sharding
