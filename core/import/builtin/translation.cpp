// SPDX-License-Identifier: Apache-2.0
// Translation with LSTMs and additive attention (Wu et al. 2016, arXiv 1609.08144), in the form whose parameters MLPerf
// counts: one table for both languages, the first encoder layer in both directions, attention from the first decoder
// layer's states, its context beside the input of every further layer.
#include <fmt/format.h>

#include "core/import/builtin/networks.h"
#include "core/import/builtin/sequence_network.h"

namespace turnpoint {

namespace {

/// Scores v tanh(q + k) for every pair of positions, and the mean of the memory that they weigh.
TensorId attend(SequenceNetwork& net, TensorId states, TensorId memory, std::int64_t hidden) {
  ModelBuilder& b = net.builder();
  b.set_scope("attention");
  const std::int64_t n = net.batch(), s = net.sequence();
  const TensorId q = net.linear("attention/query", states, hidden, false);
  const TensorId k = net.linear("attention/key", memory, hidden, false);
  const std::vector<DimName> names = {DimName::batch, DimName::sequence, DimName::key_sequence, DimName::channel};
  const TensorId q_view = b.reshape("attention/query_view", q, {n, s, 1, hidden}, names);
  const TensorId k_view = b.reshape("attention/key_view", k, {n, 1, s, hidden}, names);
  const TensorId offset = b.parameter("attention/offset", {hidden}, {DimName::channel});
  const TensorId pair[] = {q_view, k_view, offset};
  const TensorId sums =
      b.elementwise("attention/tanh", "Tanh(q+k)", pair, {.flop_per_element = 6, .saves_output = true});
  const TensorId direction = b.parameter("attention/direction", {hidden, 1}, {DimName::in_channel, DimName::other});
  const TensorId length = b.parameter("attention/length", {1});
  const TensorId product = b.linear("attention/scores", sums, direction, {}, false, DimName::other);
  const TensorId scaled_operands[] = {product, length};
  const TensorId scaled =
      b.elementwise("attention/scale", "Mul", scaled_operands, {.flop_per_element = 1, .saves_input = {true, true}});
  const TensorId scores =
      b.reshape("attention/scores_view", scaled, {n, s, s}, {DimName::batch, DimName::sequence, DimName::key_sequence});
  const TensorId weights = b.softmax("attention/softmax", scores, 2);
  return b.matmul("attention/context", weights, memory);
}

Expected<ModelPtr> translation(const NetworkParameters& p, std::int64_t vocabulary, bool both_directions) {
  const double pairs = double(p.sequence) * double(p.hidden), words = double(vocabulary);
  if (double(p.layers) * double(p.batch) * double(p.sequence) * std::max(pairs, words) > 4503599627370496.0)
    return usage_error(fmt::format("batch {} with sequence {} is too large for this model", p.batch, p.sequence),
                       p.source);
  if (p.layers < 2) return usage_error(fmt::format("layers must be at least 2, not {}", p.layers), p.source);
  SequenceNetwork net(p);
  ModelBuilder& b = net.builder();
  const auto add = [&](const std::string& name, TensorId x, TensorId y) {
    const TensorId operands[] = {x, y};
    return b.elementwise(name, "Add", operands, {.flop_per_element = 1});
  };
  const std::int64_t h = p.hidden;
  const TensorId table = b.parameter("embed/tokens.weight", {vocabulary, h}, {DimName::vocabulary, DimName::channel});
  TensorId x = net.look_up("encoder/embed", "tokens", table);
  for (std::int64_t i = 0; i < p.layers; ++i) {
    const std::string scope = fmt::format("encoder/layer{}", i);
    const TensorId y = net.lstm(scope, x, h, true, i == 0 && both_directions ? 2 : 1);
    x = i >= 2 ? add(scope + "/add", x, y) : y;
  }
  const TensorId memory = x;
  x = net.look_up("decoder/embed", "decoder_tokens", table);
  x = net.lstm("decoder/layer0", x, h, true);
  const TensorId context = attend(net, x, memory, h);
  for (std::int64_t i = 1; i < p.layers; ++i) {
    const std::string scope = fmt::format("decoder/layer{}", i);
    b.set_scope(scope);
    const TensorId both[] = {x, context};
    const TensorId y = net.lstm(scope, b.concat(scope + "/concat", both, 2), h, true);
    x = i >= 2 ? add(scope + "/add", x, y) : y;
  }
  return net.finish(x, vocabulary, true);
}

}  // namespace

Expected<ModelPtr> build_gnmt(const NetworkParameters& p) { return translation(p, 32320, true); }
Expected<ModelPtr> build_nmt(const NetworkParameters& p) { return translation(p, 32000, false); }

}  // namespace turnpoint
