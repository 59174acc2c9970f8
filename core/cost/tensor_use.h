// SPDX-License-Identifier: Apache-2.0
// Who reads which tensor, and which copies backward keeps: facts of the model that do not depend on any configuration.
//
// Rules (resources/manual/costs.md, 5, made precise so that every cost is a sum over operators and pairs):
//  - A tensor with one consumer goes straight from producer to consumer. If the consumer's backward reads it, the
//    resharded copy is kept ("after"), or the copy before the resharding, which backward then repeats ("before").
//  - If the producer's own backward reads it too (relu, softmax), its copy is kept beside the resharded one ("both"),
//    alone ("before"), or not at all ("after"): backward then brings the resharded copy back to the producer's layout.
//    So the producer's copy is counted with the tensor, once, and not among what the operator keeps inside.
//  - A tensor with several consumers is first brought to one shared layout (possibly the producer's own); every
//    consumer takes it from there. Communication and the kept copy are shared by all that want that layout; gradients
//    are summed there on the way back. If any consumer's backward reads the tensor, the shared copy is kept, or the
//    copy before it, from which backward makes the shared one again, once for all consumers. The search offers that
//    where more than one consumer's backward reads it.
//  - A view (reshape, transpose) has no storage: keeping its output means keeping its input, as one more reader of it.
//  - A tensor can be computed again instead of kept where its producer can run again in backward (RunAgain). Chains of
//    tensors computed again from one another are cut after kMaxRecomputeDepth: what is computed again lives for a
//    while, which the additive memory does not see, so chains must stay short. An operator that uses somebody else's
//    weights, which its own backward does not read, never runs again.
//  - A parameter used by several operators lives with the first; the others get it through a tie. Vectors (biases,
//    scales) are stored by every user instead: exporters merge equal ones by chance, and a few kilobytes must not tie
//    layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model.h"

namespace turnpoint {

/// A later use of a parameter whose storage, optimizer state and gradient synchronisation are with `owner`.
struct ParameterTie {
  OperatorId owner;
  std::uint32_t owner_input = 0;
  OperatorId user;
  std::uint32_t user_input = 0;
};

/// An activation (or data tensor) that is produced by an operator and consumed at least once.
struct TensorFlow {
  TensorId tensor;
  OperatorId producer;
  std::uint32_t output = 0;       ///< index into the producer's outputs
  bool producer_saves = false;    ///< backward of the producer reads it (relu, softmax)
  bool producer_is_view = false;  ///< kept through the producer's input: its own copy costs nothing
  std::vector<Model::Use> consumers;
  std::vector<bool> consumer_saves;  ///< parallel to consumers; views included
  bool shared() const { return consumers.size() > 1; }
  bool any_consumer_saves() const;
  /// The copy that the producer's backward reads is counted with the tensor; without a consumer, with the operator.
  bool producer_copy_is_here() const { return producer_saves && !producer_is_view && !consumers.empty(); }
};

/// Enough for the longest chain of a transformer's block: norm, query, weights and context of attention; five, counted
/// from the embedding.
inline constexpr int kMaxRecomputeDepth = 5;

/// Whether an operator may run again in backward.
enum class RunAgain : std::uint8_t {
  never,
  /// It keeps its own inputs for backward anyway (matmul, convolution, normalisation, gelu). Its forward time is a
  /// function of its output's layout and the local sizes, so the choice folds into the tables of its output.
  folded,
  /// Its one input is not kept (softmax, relu, a bias added by itself), but its producer can run again, too, or keeps
  /// it. Producer and consumer must agree, so the operator carries the choice as a part of its configuration. Likewise
  /// where its backward reads none of its weights (an embedding, a first layer): running again then needs them once
  /// more, at a price that depends on how they are sharded.
  carried,
};

/// Elements of parameters, none split.
struct ParameterCounts {
  double all = 0;
  std::vector<double> layer;  ///< [operator]: of its layer, or of what is outside of all layers; 0: no layers are known
};

struct TensorUses {
  std::vector<TensorFlow> flows;    ///< by producer, then output
  std::vector<RunAgain> run_again;  ///< [operator]; other than never only where that saves memory somewhere
  std::vector<ParameterTie> ties;
  std::vector<std::vector<bool>> owns_parameter;  ///< [operator][input]: this use stores the parameter
  /// [operator][input] of an owned parameter: how often forward and backward read it, tied users included. What
  /// backward does not read itself (a bias) is fetched along with what it does, so that a run in backward finds it
  /// there.
  std::vector<std::vector<int>> parameter_reads;
  /// [operator][input] of an owned parameter: how often more if its operator runs again (RunAgain::carried).
  std::vector<std::vector<int>> rerun_reads;
  /// [operator][input] of an owned parameter: all that reads it takes it as a factor of a product or a convolution.
  std::vector<std::vector<bool>> products_alone;
  ParameterCounts parameters;
};
TensorUses analyse_tensor_uses(const Model& model);

/// Whether the copy of an output that the operator's own backward reads is counted with the operator: of what is
/// internal or has no reader.
bool counted_with_operator(const Model& model, const Operator& op, const Access& output);

/// Whether internal tensors can be had again from inputs that backward keeps anyway; masks need their seed alone.
bool internals_can_be_recomputed(const Model& model, const Operator& op);

}  // namespace turnpoint
