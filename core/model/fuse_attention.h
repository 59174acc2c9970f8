// SPDX-License-Identifier: Apache-2.0
// Attention as the kernels of today compute it (FlashAttention: Dao et al. 2022, arXiv 2205.14135): the product of
// queries and keys, the softmax and the product with the values are one operator that never writes the scores. It keeps
// queries, keys, values, its result and two numbers a row, and makes the scores once more in backward.
#pragma once

#include "core/model/model.h"

namespace turnpoint {

/// The model with its attentions fused; the same pointer where there is none. An attention is fused if nothing else
/// reads what lies between its two products, which are elementwise operators (scale, mask, dropout) and one softmax of
/// the scores' shape, and if no other operand of those needs a gradient but numbers of each head (sinks). Operators and tensors are renumbered. The
/// fused operator has the name of the product with the values. Its keys' positions and the channels of its heads cannot
/// be split; its products count half where the softmax is causal, and those of the scores once more in backward.
ModelPtr fuse_attention(const ModelPtr& model);

}  // namespace turnpoint
