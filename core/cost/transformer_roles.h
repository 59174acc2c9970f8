// SPDX-License-Identifier: Apache-2.0
// What the operators of a transformer are for, found from the graph alone: attention, its heads, the residual stream,
// the channels inside the feed-forward part, the vocabulary, and where each layer begins. No names are read, so any
// exporter's graph will do.
//
//  - An attention is a product of two activations, a softmax of it, and a product of that with a third activation;
//    elementwise operators, slices and views may stand between. Its heads are the dimensions, other than batch, that
//    both operands of the first product and its result share. A fused attention is all of these in one operator.
//  - The residual stream is what weighted products lead from into the heads, and out of the heads to.
//  - The inner channels of a feed-forward part (or of all experts) are a dimension that one weighted product makes from
//    the residual stream and another turns back into it.
//  - Layers begin where the fewest bytes that need a gradient are alive between one self-attention and the next, at the
//    last such place: in front of the norm or the projections. Attention to another stack's result begins no layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/logical_dims.h"

namespace turnpoint {

struct AttentionCore {
  OperatorId scores, softmax, context;
  bool across = false;  ///< attends to another stack
};

struct TransformerRoles {
  LogicalDims dims;
  std::vector<AttentionCore> attentions;               ///< in model order
  std::vector<char> is_head, is_inner, is_vocabulary;  ///< [class] of `dims`
  std::int64_t heads = 1;     ///< the fewest heads of any attention: key/value heads where several queries share one
  std::int64_t inner = 0;     ///< the greatest common divisor of all inner channel counts; 0: none was found
  std::int64_t sequence = 0;  ///< queries of the first attention
  int layers = 0;
  std::vector<int> layer_of;  ///< [operator]: 0 to layers-1; -1 before the first, `layers` behind the last
  /// [operator]: the attention whose core it belongs to: its two products and all between them; -1: none, or fused.
  std::vector<int> core_of;
  std::vector<std::uint32_t> start;           ///< [layer]: its first operator; one more entry for the end of the last
  std::vector<std::vector<TensorId>> enters;  ///< [layer]: tensors with gradient that come from before it

  /// Loop dimension of the operator that tensor parallelism splits, -1: none.
  int tensor_parallel_loop(const Model& model, OperatorId op) const;
};

/// Error: in one sentence why the model is no transformer.
Expected<TransformerRoles> find_transformer_roles(const Model& model, bool split_windows);

}  // namespace turnpoint
