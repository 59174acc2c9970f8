// SPDX-License-Identifier: Apache-2.0
// One description of the transformer family and the graph it stands for; config files and built-ins both end here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

struct TransformerShape {
  enum class Norm : std::uint8_t { layer, rms };
  enum class Block : std::uint8_t {
    pre_norm,   ///< x + f(norm(x)), twice (GPT-2, Llama)
    post_norm,  ///< norm(x + f(x)), twice (BERT)
    parallel,   ///< x + attention(n) + mlp(n) with one n = norm(x) (Phi)
  };
  enum class Mlp : std::uint8_t { plain, gated };  ///< down(act(up)); down(act(gate) * up)

  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::int64_t kv_heads = 0;       ///< keys and values; heads / kv_heads queries share one
  std::int64_t head_channels = 0;  ///< usually hidden / heads
  std::int64_t intermediate = 0;   ///< width of the MLP
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;      ///< the longest sequence meant for the model
  bool learned_positions = false;  ///< a table of `positions` rows; else rotary, which has no parameters
  std::int64_t token_types = 0;    ///< rows of BERT's segment table; 0: none
  Norm norm = Norm::layer;
  Block block = Block::pre_norm;
  Mlp mlp = Mlp::plain;
  std::string activation = "gelu";
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  bool query_key_norm = false;  ///< RMS norm over each head of q and k (Qwen 3)
  bool embedding_norm = false;  ///< a norm right after the embeddings (BERT)
  bool pooler = false;          ///< BERT's dense layer with tanh on the first position
  bool tied_head = false;       ///< the output projection is the token table
  std::vector<std::string> warnings;

  /// min(2048, positions), design.md 5.9.
  std::int64_t default_sequence() const;
};

/// Training graph with mean cross-entropy over all positions. Projections produce heads directly:
/// q [batch, head, (group,) sequence, head_channel], k and v [batch, head, sequence, head_channel]; the causal mask and
/// the scaling live in the softmax, rotary embedding in the projections' epilogues, dropout nowhere.
/// Errors: sizes whose tensors would overflow, sequences longer than a learned position table.
Expected<ModelPtr> build_transformer(const TransformerShape& shape, const std::string& name, const std::string& source,
                                     std::int64_t batch, std::int64_t sequence);

}  // namespace turnpoint
