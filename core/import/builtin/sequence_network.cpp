// SPDX-License-Identifier: Apache-2.0
#include "core/import/builtin/sequence_network.h"

namespace turnpoint {

SequenceNetwork::SequenceNetwork(const NetworkParameters& p)
    : builder_(p.name, p.source, p.batch, p.sequence), batch_(p.batch), sequence_(p.sequence) {}

TensorId SequenceNetwork::embed(const std::string& scope, const std::string& tokens, std::int64_t vocabulary,
                                std::int64_t channels) {
  const TensorId table = builder_.parameter(scope + "/" + tokens + ".weight", {vocabulary, channels},
                                            {DimName::vocabulary, DimName::channel});
  return look_up(scope, tokens, table);
}

TensorId SequenceNetwork::look_up(const std::string& scope, const std::string& tokens, TensorId table) {
  builder_.set_scope(scope);
  const TensorId indices =
      builder_.input(tokens, {batch_, sequence_}, {DimName::batch, DimName::sequence}, ElementType::i64);
  return builder_.embedding(scope + "/" + tokens, table, indices);
}

TensorId SequenceNetwork::lstm(const std::string& scope, TensorId x, std::int64_t hidden, bool two_biases,
                               int directions) {
  builder_.set_scope(scope);
  const std::int64_t in = builder_.tensor(x).shape.empty() ? 1 : builder_.tensor(x).shape.back();
  const TensorId w = builder_.parameter(scope + "/lstm.input_weight", {directions, 4 * hidden, in});
  const TensorId r = builder_.parameter(scope + "/lstm.state_weight", {directions, 4 * hidden, hidden});
  const TensorId bias = builder_.parameter(scope + "/lstm.bias", {directions, (two_biases ? 8 : 4) * hidden});
  return builder_.recurrent(scope + "/lstm", "LSTM", x, w, r, bias, 4, directions, hidden, true, true);
}

TensorId SequenceNetwork::linear(const std::string& name, TensorId x, std::int64_t out, bool with_bias) {
  const std::int64_t in = builder_.tensor(x).shape.empty() ? 1 : builder_.tensor(x).shape.back();
  const TensorId w = builder_.parameter(name + ".weight", {in, out}, {DimName::in_channel, DimName::out_channel});
  std::optional<TensorId> bias;
  if (with_bias) bias = builder_.parameter(name + ".bias", {out}, {DimName::out_channel});
  return builder_.linear(name, x, w, bias, false, DimName::channel);
}

Expected<ModelPtr> SequenceNetwork::finish(TensorId x, std::int64_t vocabulary, bool with_bias) {
  builder_.set_scope("head");
  const std::int64_t in = builder_.tensor(x).shape.empty() ? 1 : builder_.tensor(x).shape.back();
  const TensorId w =
      builder_.parameter("head/logits.weight", {in, vocabulary}, {DimName::in_channel, DimName::vocabulary});
  std::optional<TensorId> bias;
  if (with_bias) bias = builder_.parameter("head/logits.bias", {vocabulary}, {DimName::vocabulary});
  const TensorId logits = builder_.linear("head/logits", x, w, bias, false, DimName::vocabulary);
  const TensorId labels =
      builder_.input("labels", {batch_, sequence_}, {DimName::batch, DimName::sequence}, ElementType::i64);
  return builder_.finish({builder_.cross_entropy("head/loss", logits, labels)});
}

}  // namespace turnpoint
