// SPDX-License-Identifier: Apache-2.0
// What the built-in recurrent networks are written with.
#pragma once

#include <string>

#include "core/import/builtin/networks.h"
#include "core/model/builder.h"

namespace turnpoint {

class SequenceNetwork {
 public:
  explicit SequenceNetwork(const NetworkParameters& p);

  ModelBuilder& builder() { return builder_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t sequence() const { return sequence_; }

  /// Tokens of a new input looked up in a new table.
  TensorId embed(const std::string& scope, const std::string& tokens, std::int64_t vocabulary, std::int64_t channels);
  TensorId look_up(const std::string& scope, const std::string& tokens, TensorId table);
  /// Every layer is one recurrent operator over the whole sequence. Its hidden units may be split: the exchange of the
  /// state that this takes at each step is what the edge to the next layer, which needs all units, is charged for (the
  /// same bytes, gathered once for both).
  TensorId lstm(const std::string& scope, TensorId x, std::int64_t hidden, bool two_biases, int directions = 1);
  /// x [batch, sequence, in] to `out` channels, in the current scope.
  TensorId linear(const std::string& name, TensorId x, std::int64_t out, bool with_bias = true);
  /// Logits and cross-entropy.
  Expected<ModelPtr> finish(TensorId x, std::int64_t vocabulary, bool bias);

 private:
  ModelBuilder builder_;
  std::int64_t batch_, sequence_;
};

}  // namespace turnpoint
