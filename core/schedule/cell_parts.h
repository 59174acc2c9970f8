// SPDX-License-Identifier: Apache-2.0
// What one time step of a recurrent operator is made of, as frameworks build it: products with the weights, and what is
// done element by element to their sums. Written as the cells' papers have them: LSTM (Hochreiter, Schmidhuber; as in
// ONNX), GRU, the plain cell, and the Eidetic 3D LSTM (Wang et al. 2019). Any other cell is one product per weight
// matrix and one elementwise part.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model.h"

namespace turnpoint {

struct CellPart {
  enum class Work : std::uint8_t {
    product,      ///< with a weight
    recall,       ///< of the states of all earlier steps
    elementwise,  ///< or the whole step, where a cell is not taken apart
  };
  const char* name = "";
  Work work = Work::elementwise;
  std::uint32_t weight = 0;        ///< of a product: index into the operator's inputs
  std::vector<std::uint32_t> of;   ///< parts of the same step that it reads; all have lower indices
  std::vector<std::uint32_t> old;  ///< parts whose result of the step before it reads
  std::vector<std::uint32_t> all;  ///< parts whose results of all earlier steps it reads
  bool reads_input = false;        ///< what the layer below made for this step
};

struct CellProgram {
  std::vector<CellPart> parts;            ///< the first one has the buffer of the gates; the last one makes the output
  std::vector<double> share;              ///< of the forward time, by part; their sum is 1
  int states = 0;                         ///< vectors of the output's size that a step hands to the next
  std::uint32_t directions = 1;           ///< the sequence is walked this often, forwards and backwards in turn
  std::vector<std::uint32_t> parameters;  ///< trainable inputs of the operator; index into its inputs
  std::vector<double> parameter_share;    ///< of the operator's trainable elements; their sum is 1

  bool in_parts() const { return parts.size() > 1; }
  std::uint32_t output() const { return std::uint32_t(parts.size()) - 1; }
  /// Whether the part reads another one of the same step.
  bool reads(std::uint32_t part, std::uint32_t of) const;
  /// The product that a parameter (index into the operator's inputs) is in; the first part has what is in none.
  std::uint32_t product_of(std::uint32_t parameter) const;
  /// Parts that read what a parameter is in: backward of them makes the gradients of the gates.
  std::vector<std::uint32_t> product_readers() const;
};

/// For an operator of kind `recurrent`. Times are shared by arithmetic: a product has that of its weight, recall what
/// the products leave of the multiply-accumulates, and the elementwise parts the rest in equal pieces.
CellProgram cell_program(const Model& model, const Operator& op, bool in_parts);

/// Of so many bytes or numbers that forward keeps of its gates, those that backward hands to the gradients of the
/// weights: a GRU's new gate has a gradient for each of its two products.
std::int64_t gate_gradients(const Operator& op, std::int64_t gates);

/// Time steps of the operator; 1 where it has no time dimension.
std::int64_t time_steps(const Operator& op);

}  // namespace turnpoint
