// SPDX-License-Identifier: Apache-2.0
// The forward graph of a network, as imported: tensors, and operators described by loop dimensions.
//
// An operator is an iteration space (its loop dimensions) plus, for every tensor it touches, which tensor dimension
// walks which loop dimension. Everything a planner needs follows from that one description: local shapes under a
// split, FLOP, bytes, legal splits, partial sums (a split reduction dimension leaves the output a partial sum) and
// gradient synchronisation (a split loop dimension that a weight does not walk). No search method has an operator
// list of its own (ARCHITECTURE.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace turnpoint {

/// What a tensor dimension or loop dimension means. Names are the words shown to people ("batch yx, in-channel z").
/// The enumerator order is display order; `axis_rank` orders mesh axes over dimensions.
enum class DimName : std::uint8_t {
  batch,
  sequence,
  key_sequence,
  depth,
  height,
  width,
  window,
  group,
  channel,
  in_channel,
  out_channel,
  head,
  head_channel,
  vocabulary,
  expert,
  time,
  gate,
  other,
};
std::string_view to_string(DimName name);

/// How the dimension behaves in the operator.
enum class DimRole : std::uint8_t {
  parallel,   ///< appears in the output
  reduction,  ///< summed over: splitting it leaves the output a partial sum
  window,     ///< parallel, but neighbours need a halo: not split unless the scenario switches it on
};

struct LoopDimension {
  DimName name = DimName::other;
  DimRole role = DimRole::parallel;
  std::int64_t size = 1;
  bool splittable =
      true;  ///< false: never split here (softmax's own axis, kernel positions, key sequence of attention)
  friend auto operator<=>(const LoopDimension&, const LoopDimension&) = default;
};

/// Element types that occur in model files. Sizes in memory during training follow the scenario's precision for
/// floating-point tensors; integers and booleans keep their own.
enum class ElementType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
int size_of(ElementType type);  ///< bytes
bool is_floating(ElementType type);

enum class TensorRole : std::uint8_t {
  input,       ///< data or labels of one iteration
  parameter,   ///< trainable
  buffer,      ///< running statistics and other non-trained state
  constant,    ///< folded values, masks: free
  activation,  ///< produced by an operator
  internal,    ///< saved for backward inside an operator (gates of an LSTM), never read by another operator
};

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< elements per dimension, every entry >= 1
  std::vector<DimName> dims;        ///< meaning of each dimension, same length as shape
  ElementType type = ElementType::f32;
  TensorRole role = TensorRole::activation;
  OperatorId producer;            ///< for data the `input` operator; invalid for parameters, buffers, constants
  TensorId tied_to;               ///< parameter that shares storage with an earlier one; counted once, kept together
  bool requires_gradient = true;  ///< false: data, labels, integers, and what depends on nothing trainable

  std::int64_t elements() const;  ///< product of shape
};

/// One tensor as seen by one operator.
struct Access {
  TensorId tensor;
  /// Per tensor dimension: the loop dimensions it walks, outermost first (a merged dimension such as heads x channels
  /// walks two). Empty: the dimension is not walked by a loop dimension, each device touches all of it.
  std::vector<std::vector<std::uint8_t>> walks;
  bool saved = false;  ///< backward of this operator reads it
};

/// Kinds of operator. The builder (builder.h) gives each its arithmetic, operator_kind.h its names and properties.
enum class OperatorKind : std::uint8_t {
  input,
  matmul,
  convolution,
  recurrent,
  embedding,
  scan,  ///< carries a state along the sequence: Mamba, delta nets, matrix memories
  elementwise,
  softmax,
  attention,  ///< scores, softmax and product with the values as one kernel (fuse_attention.h)
  normalisation,
  batch_normalisation,
  pooling,
  reduction,
  view,
  concat,
  slice,
  gather,
  loss_statistics,  ///< what a loss split by words must know of all of them (split_loss.h)
  cross_entropy,
  opaque,
};

struct Model;

struct Operator {
  std::string name;  ///< unique within the model
  OperatorKind kind = OperatorKind::elementwise;
  std::string detail;  ///< the source's own word: "Conv", "Gelu", "LSTM"
  std::string scope;   ///< path of the enclosing layers, '/'-separated: "encoder/layer3/attention"
  std::vector<LoopDimension> dims;
  std::vector<Access> inputs;   ///< activations, data, parameters, buffers
  std::vector<Access> outputs;  ///< the first one is the main output; internals come last

  /// FLOP of the whole operator (all devices together), per iteration. For contractions: 2 x multiply-accumulates.
  double forward_flop = 0;
  double backward_flop = 0;  ///< for the gradients that are needed; 0 where none is
  double forward_macs = 0;   ///< matrix products, convolutions, recurrent cells only; else 0
  double backward_macs = 0;
  /// How often the operator passes over its tensors' bytes (1 for most; more for multi-pass kernels).
  double forward_passes = 1, backward_passes = 1;

  /// Of a softmax: every row sees the positions up to its own, so that a fused kernel leaves half of the products out.
  bool causal = false;
  /// Of a product that makes queries or keys: their positions are told by a rotation of its output, in its epilogue.
  bool rotates = false;
  /// Of `attention`: what it stands for, a graph whose first tensors are this operator's inputs in their order and
  /// whose last operator makes its first output; and per operator of that graph the loop that each of its loops is here.
  std::shared_ptr<const Model> parts;
  std::vector<std::vector<std::uint8_t>> part_loops;

  bool is_view() const { return kind == OperatorKind::view; }  ///< no time, no memory of its own
};

/// A forward graph at one batch size. Immutable once built; shared between threads as shared_ptr<const Model>.
struct Model {
  std::string name;
  std::string source;  ///< path or "builtin:..."
  std::int64_t batch = 1;
  std::int64_t sequence = 0;                 ///< 0 where the model has no sequence dimension
  IdVector<OperatorId, Operator> operators;  ///< in a topological order
  IdVector<TensorId, Tensor> tensors;
  std::vector<TensorId> results;  ///< outputs of the whole network
  std::vector<std::string> symbolic_dimensions;
  std::vector<std::string> warnings;
  std::int64_t parameters = 0;         ///< elements of trainable tensors, tied ones once
  std::int64_t buffers = 0;            ///< elements of buffers
  std::int64_t active_parameters = 0;  ///< for mixtures of experts; else equal to parameters

  /// Consumers of each tensor as (operator, index into its inputs), in operator order.
  struct Use {
    OperatorId op;
    std::uint32_t input;
  };
  IdVector<TensorId, std::vector<Use>> uses;

  void fill_uses();  ///< from the operators' inputs
};
using ModelPtr = std::shared_ptr<const Model>;

/// Figures of `turnpoint-cli inspect`.
struct ModelSummary {
  std::int64_t operators = 0, parameters = 0, buffers = 0, active_parameters = 0, parameter_bytes = 0,
               activation_bytes = 0;
  double macs_forward = 0, macs_backward = 0;
};
/// activation_bytes: tensors that backward reads, once each, fp32, unpartitioned.
ModelSummary summarise(const Model& model);

/// The tensor whose storage `tensor` shares: itself, or what the chain of views that produced it started from.
TensorId storage_of(const Model& model, TensorId tensor);

}  // namespace turnpoint
