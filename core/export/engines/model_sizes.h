// SPDX-License-Identifier: Apache-2.0
// The sizes and kinds by which engines with models of their own build a transformer, found in the graph alone, so that
// any exporter's file will do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/transformer_roles.h"

namespace turnpoint {

struct ModelSizes {
  std::int64_t layers = 0, hidden = 0;            ///< of the stream between layers: channels
  std::int64_t heads = 0, groups = 0;             ///< of queries; of keys and values
  std::int64_t head_channels = 0;                 ///< of one head
  std::int64_t inner = 0;                         ///< channels inside a feed-forward part, or inside one expert
  std::int64_t experts = 0, experts_a_token = 0;  ///< 0: no mixture
  std::int64_t sequence = 0, vocabulary = 0;      ///< vocabulary 0: no look-up of tokens
  bool gated = false;                             ///< the feed-forward part multiplies two products
  std::string activation;                         ///< as the model names it: "gelu", "silu"
  bool root_mean_square = false;                  ///< norms subtract no mean
  bool biases = false, query_biases = false;      ///< of all products; of queries, keys and values alone
  bool tied = false;                              ///< logits are made with the table of tokens
  bool rotates = false;                           ///< positions are told by rotating queries and keys
  bool position_table = false;                    ///< positions have a table that is learnt
  bool causal = false;
  std::vector<std::string> unlike;  ///< what of the model is not of this kind, a sentence each
};

/// Error: in one sentence why no such sizes tell what the model is: two stacks, layers of unlike sizes.
Expected<ModelSizes> sizes_of(const Model& model, const TransformerRoles& roles);

}  // namespace turnpoint
