// SPDX-License-Identifier: Apache-2.0
// Builds Models operator by operator. Importers and built-ins all go through this one table of operator kinds: each
// function below derives loop dimensions, walks, saved tensors, FLOP and output shape from its operands' shapes.
//
// Contract: shapes must already be concrete and consistent; a violation is reported through `error()` (the first one
// wins, naming the operator) and the builder goes on harmlessly, so importers check once at the end.
// Names are made unique by appending "_1", "_2", ...
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

struct ConvolutionShape {
  std::vector<std::int64_t> kernel, strides, pads_begin, pads_end, dilations;  ///< per spatial dimension
  std::int64_t groups = 1;
  bool transposed = false;
};

struct ElementwiseTraits {
  double flop_per_element = 1;
  bool saves_output = false;             ///< relu, sigmoid, tanh, exp: backward reads the output
  std::vector<bool> saves_input = {};    ///< per operand; default: none (add) -- gelu {true}, mul {true, true}
  std::optional<ElementType> type = {};  ///< of the result; default: of the first floating operand, else of the first
  bool saves_mask = false;               ///< dropout: backward reads which elements were kept, a byte each
};

class ModelBuilder {
 public:
  ModelBuilder(std::string name, std::string source, std::int64_t batch, std::int64_t sequence);

  /// Everything added until the next call belongs to this scope.
  void set_scope(std::string scope) { scope_ = std::move(scope); }

  // --- tensors that no operator computes -----------------------------------------------------------------------
  /// Data of one iteration, brought by an `input` operator whose only split is the batch (data loading is data
  /// parallel). dims[0] is usually batch.
  TensorId input(std::string name, std::vector<std::int64_t> shape, std::vector<DimName> dims, ElementType type);
  TensorId parameter(std::string name, std::vector<std::int64_t> shape, std::vector<DimName> dims = {});
  /// A parameter that shares the storage of an earlier one (tied embedding); same number of elements.
  TensorId tied_parameter(std::string name, TensorId original, std::vector<std::int64_t> shape,
                          std::vector<DimName> dims = {});
  TensorId buffer(std::string name, std::vector<std::int64_t> shape);
  TensorId constant(std::string name, std::vector<std::int64_t> shape, ElementType type = ElementType::f32);

  // --- operators: each returns its main output -------------------------------------------------------------------
  /// General contraction Y = sum over reduced dims of A x B, Einstein style: each operand's and the output's
  /// dimensions are given as lists of loop dimensions (groups for merged dims). Used by matmul() and by projections
  /// that produce heads directly. Dims that occur in the inputs only are reductions. MACs = product of all sizes.
  /// A bias, walking output dims only, is added in the same operator.
  TensorId contraction(std::string name, std::string detail, std::vector<LoopDimension> dims, TensorId a,
                       std::vector<std::vector<std::uint8_t>> a_walks, TensorId b,
                       std::vector<std::vector<std::uint8_t>> b_walks, std::vector<std::vector<std::uint8_t>> out_walks,
                       std::vector<DimName> out_dims, std::optional<TensorId> bias = {},
                       std::vector<std::vector<std::uint8_t>> bias_walks = {});
  /// NumPy-style matmul with broadcasting of leading dims; `transpose_a/b` swap the last two dimensions.
  TensorId matmul(std::string name, TensorId a, TensorId b, bool transpose_a = false, bool transpose_b = false,
                  std::string detail = "MatMul");
  /// y = x W (+ bias): W is [in, out] or, with transpose_w, [out, in]; the bias is added in the same operator.
  TensorId linear(std::string name, TensorId x, TensorId w, std::optional<TensorId> bias = {}, bool transpose_w = false,
                  DimName out_name = DimName::out_channel);
  /// Adds a bias of one element per last-dimension entry inside the matrix product that produced `y`; false where that
  /// is not possible (y is no matrix product, has a bias already, or the sizes differ).
  bool add_bias(TensorId y, TensorId bias);
  /// NCHW (or NCL, NCDHW); W is [out, in/groups, kernel...]; bias optional, same operator.
  TensorId convolution(std::string name, TensorId x, TensorId w, std::optional<TensorId> bias,
                       const ConvolutionShape& shape);
  /// Rows of table [vocabulary, channel] by integer indices.
  TensorId embedding(std::string name, TensorId table, TensorId indices, std::string detail = "Embedding");
  /// Broadcasting elementwise function of any number of operands (activation, add, scale, dropout, cast...).
  TensorId elementwise(std::string name, std::string detail, std::span<const TensorId> operands,
                       const ElementwiseTraits& traits = {});
  /// Over one dimension, which is then not splittable.
  TensorId softmax(std::string name, TensorId x, int axis, std::string detail = "Softmax");
  /// LayerNorm / RMSNorm over the dims from `first_axis` on (not splittable); scale and bias optional.
  TensorId normalisation(std::string name, TensorId x, int first_axis, std::optional<TensorId> scale,
                         std::optional<TensorId> bias, std::string detail = "LayerNormalization");
  /// Over NCHW with channel parameters; batch statistics are local to a device's share of the batch.
  TensorId batch_normalisation(std::string name, TensorId x, std::optional<TensorId> scale,
                               std::optional<TensorId> bias, std::optional<TensorId> mean,
                               std::optional<TensorId> variance);
  /// Max or average pooling over the spatial dims; `kernel` empty: global.
  TensorId pooling(std::string name, std::string detail, TensorId x, std::vector<std::int64_t> out_shape,
                   std::vector<std::int64_t> kernel, bool saves_input);
  /// Sum, mean, max over `axes`; splitting a reduced dim leaves a partial sum (only sum and mean: `linear`).
  TensorId reduction(std::string name, std::string detail, TensorId x, std::vector<int> axes, bool keep_dims,
                     bool linear = true);
  /// Reshape, transpose, squeeze, expand of size-1 dims: same elements, free. Walks follow from the row-major factors
  /// (reshape) or the permutation (transpose).
  TensorId reshape(std::string name, TensorId x, std::vector<std::int64_t> shape, std::vector<DimName> dims = {},
                   std::string detail = "Reshape");
  TensorId transpose(std::string name, TensorId x, std::vector<int> permutation, std::string detail = "Transpose");
  /// Repeats size-1 (or missing leading) dims up to `shape`, NumPy's broadcast_to. Free of arithmetic.
  TensorId expand(std::string name, TensorId x, std::vector<std::int64_t> shape, std::vector<DimName> dims = {});
  TensorId concat(std::string name, std::span<const TensorId> operands, int axis);
  /// Part of x: dims whose size changes are not splittable. Also pad, upsample, gather by constant indices.
  TensorId slice(std::string name, std::string detail, TensorId x, std::vector<std::int64_t> out_shape);
  /// Like slice for several outputs along one axis.
  std::vector<TensorId> split(std::string name, TensorId x, int axis, std::span<const std::int64_t> sizes);
  /// Several projections computed as one product and cut apart after it (query, key and value; gate and up): with the
  /// parts one after the other no device could own the same channels of each. Declares them stored channel by channel
  /// instead, the way fused weights are laid out for tensor parallelism, so that the channels can be split. `parts` are
  /// the outputs of all slices of `y`, of equal size and covering its last dimension. False, and nothing changed, where
  /// `y` is no product with a weight of its own or is read by anything else.
  bool interleave_parts(TensorId y, std::span<const TensorId> parts);
  /// LSTM (gates 4), GRU (3), RNN (1), one layer, one or two directions. x [sequence, batch, in] or batch first;
  /// w [directions, gates*hidden, in], r [directions, gates*hidden, hidden], bias optional. Output
  /// [sequence, directions, batch, hidden] as ONNX has it, or [batch, sequence, directions*hidden] with `batch_first`.
  /// The weights are taken as stored hidden unit by hidden unit, so that a split of `hidden` keeps a unit's gates
  /// together. Such a split exchanges the whole hidden state at every step inside the operator, which no layout shows:
  /// `split_hidden` allows it only where the cost model is known to charge for it.
  TensorId recurrent(std::string name, std::string detail, TensorId x, TensorId w, TensorId r,
                     std::optional<TensorId> bias, int gates, int directions, std::int64_t hidden, bool batch_first,
                     bool split_hidden = false);
  /// A recurrent cell whose products are convolutions (ConvLSTM and its descendants), over the whole sequence: x
  /// [batch, time, channel, spatial...] to [batch, time, hidden, spatial...]. Each weight [gates * hidden, in,
  /// kernel...] is applied at every position of every step, keeping its size; `kept` channels per hidden unit are saved
  /// for backward besides the output; `recall_macs` are multiply-accumulates without a weight (attention to past
  /// states), all in all. As in `recurrent`, weights are taken as stored unit by unit, and a split of `hidden` leaves
  /// the exchange of the state to the edge that follows.
  TensorId convolutional_recurrent(std::string name, std::string detail, TensorId x, std::span<const TensorId> weights,
                                   std::int64_t hidden, std::int64_t kept, double recall_macs);
  struct ScanOperand {
    TensorId tensor;
    std::vector<std::vector<std::uint8_t>> walks;
  };
  struct ScanWork {
    double macs = 0;            ///< forward, all positions; backward costs them twice
    double pointwise_flop = 0;  ///< forward, beside them
    std::vector<std::vector<std::uint8_t>> state_walks = {};  ///< of the states kept for backward; empty: none
  };
  /// A state carried over the sequence and read at every position (Mamba, delta rule, gated recurrences), of kind
  /// `attention`: the loop dimension of the sequence must not be splittable. Operands and output say which of `dims`
  /// they walk, as in contraction(); all operands are kept for backward.
  TensorId scan(std::string name, std::string detail, std::vector<LoopDimension> dims,
                std::span<const ScanOperand> operands, std::vector<std::vector<std::uint8_t>> out_walks,
                std::vector<DimName> out_dims, const ScanWork& work);
  /// A mixture of experts as one dimension: tokens x [batch, sequence, channel] go to the experts that `routing`
  /// [batch, sequence, expert] chose, as [batch, expert, slot, channel] with the same number of `slots` per sample and
  /// expert. Their weights travel with them. Split by batch, the step to an expert split is the all-to-all of expert
  /// parallelism, an ordinary resharding.
  TensorId dispatch(std::string name, TensorId x, TensorId routing, std::int64_t slots);
  /// Back to [batch, sequence, channel], weighted; the experts are summed over. `y` is kept for the weights' gradient.
  TensorId combine(std::string name, TensorId y, std::int64_t sequence);
  /// Parameters of experts that one token does not use: counted, but not active.
  void add_idle_parameters(std::int64_t elements);
  /// Mean cross-entropy of logits [..., vocabulary] against integer labels; a scalar. The class dim is not splittable.
  TensorId cross_entropy(std::string name, TensorId logits, TensorId labels);
  /// Unknown function: elementwise on dims equal to the first operand's, nothing else splittable. Whoever
  /// adds one warns about it, once for all of a file.
  TensorId opaque(std::string name, std::string detail, std::span<const TensorId> operands,
                  std::vector<std::int64_t> out_shape, ElementType type);

  const Tensor& tensor(TensorId id) const { return model_.tensors[id]; }
  /// Re-labels the meaning of a tensor's dimensions (head, vocabulary...), used for names and for axis order.
  void rename_dims(TensorId id, std::vector<DimName> dims);
  void warn(std::string text) { model_.warnings.push_back(std::move(text)); }
  Model& model() { return model_; }
  const std::optional<Error>& error() const { return error_; }

  /// Finishes: uses, requires_gradient, backward work (none for what needs no gradient), parameter counts,
  /// attention's key-sequence dims marked not splittable (a product of two activations that feeds or is fed by a
  /// softmax). `fold_chains` makes one view of each chain of views: ids handed out before are then void.
  Expected<ModelPtr> finish(std::vector<TensorId> results, bool fold_chains = false);

 private:
  using Walks = std::vector<std::vector<std::uint8_t>>;
  /// Work of the backward pass: per input, what its gradient costs if it is needed; `base` if any gradient is.
  struct BackwardWork {
    double base_flop;
    std::vector<double> input_flop, input_macs;
  };

  std::string unique_name(std::string name);
  TensorId add_tensor(Tensor tensor);
  /// Completes and appends an operator: outputs[0] exists with its walks only, its tensor is made here.
  TensorId add_operator(Operator op, std::vector<std::int64_t> shape, std::vector<DimName> dims, ElementType type,
                        const BackwardWork& work);
  TensorId add_operator(Operator op, std::vector<std::int64_t> shape, std::vector<DimName> dims, ElementType type) {
    return add_operator(std::move(op), std::move(shape), std::move(dims), type, BackwardWork{0, {}, {}});
  }
  /// A further output of an operator that was just added.
  TensorId add_output(OperatorId op, std::string name, std::vector<std::int64_t> shape, std::vector<DimName> dims,
                      ElementType type, TensorRole role, Walks walks, bool saved);
  Operator start(std::string name, OperatorKind kind, std::string detail) const;
  void fail(const std::string& op, std::string what);
  TensorId broken(const std::string& op, std::string what);
  bool check_shape(const std::string& op, const std::vector<std::int64_t>& shape);
  bool is_parameter(TensorId id) const { return tensor(id).role == TensorRole::parameter; }
  bool usable(const std::string& op, std::initializer_list<TensorId> operands);
  /// If the scores that `x` holds come from a product of two activations: names that dim key_sequence back to the
  /// product.
  void mark_key_sequence(TensorId x, int axis);

  Model model_;
  std::string scope_;
  std::optional<Error> error_;
  std::int64_t idle_parameters_ = 0;
  std::unordered_set<std::string> used_names_;
  std::unordered_map<std::string, std::int64_t> next_suffix_;
};

}  // namespace turnpoint
