// SPDX-License-Identifier: Apache-2.0
// Language models made of LSTM layers.
#include <fmt/format.h>
#include <array>
#include <cmath>

#include "core/import/builtin/networks.h"
#include "core/import/builtin/sequence_network.h"

namespace turnpoint {

namespace {

constexpr double kLargest = 4503599627370496.0;  // 2^52: sums over all layers must stay far inside 64 bits

Expected<void> check_size(const NetworkParameters& p, std::int64_t widest) {
  if (double(p.layers) * double(p.batch) * double(p.sequence) * double(std::max(4 * p.hidden, widest)) > kLargest)
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", p.batch, p.sequence),
                       p.source);
  return {};
}

/// Embedding, a stack of LSTM layers of equal width, and a projection to the vocabulary.
Expected<ModelPtr> lstm_language_model(const NetworkParameters& p, std::int64_t vocabulary, bool two_biases,
                                       bool head_bias) {
  if (auto size = check_size(p, vocabulary); !size) return size.error();
  SequenceNetwork net(p);
  TensorId x = net.embed("embed", "tokens", vocabulary, p.hidden);
  for (std::int64_t i = 0; i < p.layers; ++i) x = net.lstm(fmt::format("layer{}", i), x, p.hidden, two_biases);
  return net.finish(x, vocabulary, head_bias);
}

}  // namespace

Expected<ModelPtr> build_rnn(const NetworkParameters& p) { return lstm_language_model(p, 51200, false, false); }
Expected<ModelPtr> build_lstm_lm(const NetworkParameters& p) { return lstm_language_model(p, 10000, true, true); }
Expected<ModelPtr> build_word_rnn(const NetworkParameters& p) { return lstm_language_model(p, 25670, false, true); }

/// Kim et al. 2016 (arXiv 1508.06615), the large model's character part: convolutions over the characters of a word,
/// the maximum over each, two highway layers; then a deeper stack of LSTMs.
Expected<ModelPtr> build_char_crn(const NetworkParameters& p) {
  constexpr std::int64_t kCharacters = 51, kWordLength = 65, kChannels = 15, kWords = 10000;
  constexpr std::array<std::int64_t, 7> kFeatures = {50, 100, 150, 200, 200, 200, 200};
  if (auto size = check_size(p, kWordLength * 200); !size) return size.error();
  SequenceNetwork net(p);
  ModelBuilder& b = net.builder();
  b.set_scope("words");
  const std::int64_t n = p.batch, s = p.sequence;
  const TensorId characters =
      b.input("characters", {n, s, kWordLength}, {DimName::batch, DimName::sequence, DimName::other}, ElementType::i64);
  const TensorId table =
      b.parameter("words/characters.weight", {kCharacters, kChannels}, {DimName::vocabulary, DimName::channel});
  const TensorId rows = b.embedding("words/characters", table, characters);
  const TensorId flat = b.reshape("words/flat", rows, {n * s, kWordLength, kChannels},
                                  {DimName::batch, DimName::width, DimName::channel});
  const TensorId turned = b.transpose("words/turned", flat, {0, 2, 1});
  std::vector<TensorId> parts;
  std::int64_t features = 0;
  for (std::size_t i = 0; i < kFeatures.size(); ++i) {
    const auto kernel = std::int64_t(i) + 1;
    const std::string name = fmt::format("words/conv{}", kernel);
    const TensorId w = b.parameter(name + ".weight", {kFeatures[i], kChannels, kernel},
                                   {DimName::out_channel, DimName::in_channel, DimName::window});
    const TensorId bias = b.parameter(name + ".bias", {kFeatures[i]}, {DimName::out_channel});
    const TensorId y = b.convolution(name, turned, w, bias, {{kernel}, {1}, {0}, {0}, {1}, 1, false});
    const TensorId operands[] = {y};
    const TensorId tanh = b.elementwise(fmt::format("words/tanh{}", kernel), "Tanh", operands,
                                        {.flop_per_element = 4, .saves_output = true});
    parts.push_back(b.pooling(fmt::format("words/max{}", kernel), "MaxPool", tanh, {n * s, kFeatures[i], 1},
                              {kWordLength - kernel + 1}, true));
    features += kFeatures[i];
  }
  const TensorId joined = b.concat("words/concat", parts, 1);
  TensorId x =
      b.reshape("words/joined", joined, {n, s, features}, {DimName::batch, DimName::sequence, DimName::channel});
  for (int i = 1; i <= 2; ++i) {
    const std::string scope = fmt::format("highway{}", i);
    b.set_scope(scope);
    const TensorId operands[] = {net.linear(scope + "/gate", x, features),
                                 net.linear(scope + "/transform", x, features), x};
    x = b.elementwise(scope + "/mix", "Highway", operands, {.flop_per_element = 10, .saves_input = {true, true, true}});
  }
  for (std::int64_t i = 0; i < p.layers; ++i) x = net.lstm(fmt::format("layer{}", i), x, p.hidden, false);
  return net.finish(x, kWords, true);
}

}  // namespace turnpoint
