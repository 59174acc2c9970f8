// SPDX-License-Identifier: Apache-2.0
#include "core/import/transformer/layers.h"

namespace turnpoint {

/// Loop dimensions collected while walks refer to them by index.
struct TransformerLayers::LoopDims {
  std::vector<LoopDimension> list;
  std::uint8_t add(DimName name, std::int64_t size, DimRole role = DimRole::parallel, bool splittable = true) {
    list.push_back({name, role, size, splittable});
    return static_cast<std::uint8_t>(list.size() - 1);
  }
};

// Keys and values have kv_heads head dimensions; queries have a further group dimension where several queries share a
// key, so that splitting the heads splits all three alike. With a single key head the group is the only head dimension.
std::vector<std::uint8_t> TransformerLayers::query_heads(LoopDims& dims, DimRole role) const {
  std::vector<std::uint8_t> walk;
  if (has_kv_head()) walk.push_back(dims.add(DimName::head, shape_.kv_heads, role));
  if (has_group()) walk.push_back(dims.add(group_name(), groups(), role));
  return walk;
}

std::vector<DimName> TransformerLayers::query_names() const {
  std::vector<DimName> names = {DimName::batch};
  if (has_kv_head()) names.push_back(DimName::head);
  if (has_group()) names.push_back(group_name());
  return names;
}

/// Positions of x, which may be those of an encoder: [..., sequence, channels].
std::int64_t TransformerLayers::length(TensorId x) const {
  const auto& sizes = b_.tensor(x).shape;
  return sizes.size() < 2 ? sequence_ : sizes[sizes.size() - 2];
}

/// x [batch_, sequence, in] to [batch_, heads..., sequence, channels].
TensorId TransformerLayers::project(const std::string& leaf, TensorId x, Heads kind, std::int64_t in,
                                    std::int64_t channels, bool with_bias) {
  LoopDims dims;
  const auto n = dims.add(DimName::batch, batch_);
  std::vector<std::uint8_t> heads;
  if (kind == Heads::query)
    heads = query_heads(dims);
  else if (has_kv_head())
    heads.push_back(dims.add(DimName::head, shape_.kv_heads));
  const auto s = dims.add(DimName::sequence, length(x));
  const auto d = dims.add(DimName::head_channel, channels);
  // The channels of a bottleneck are too few to be split.
  const bool bottleneck = shape_.latent.key_value_rank > 0;
  const auto k = dims.add(DimName::in_channel, in, DimRole::reduction, !bottleneck);
  std::vector<std::uint8_t> merged = heads;
  merged.push_back(d);
  Walks out = {{n}};
  std::vector<DimName> names = {DimName::batch};
  for (const auto head : heads) {
    out.push_back({head});
    names.push_back(dims.list[head].name);
  }
  out.push_back({s});
  out.push_back({d});
  names.push_back(DimName::sequence);
  names.push_back(DimName::head_channel);
  const std::int64_t width = (kind == Heads::query ? shape_.heads : shape_.kv_heads) * channels;
  const TensorId w = parameter(leaf + ".weight", {in, width}, {DimName::in_channel, DimName::out_channel});
  std::optional<TensorId> bias;
  if (with_bias) bias = parameter(leaf + ".bias", {width}, {DimName::out_channel});
  return b_.contraction(path(leaf), "Linear", dims.list, x, {{n}, {s}, {k}}, w, {{k}, merged}, out, names, bias,
                        {merged});
}

// The channels of a head are the inner part of a merged dimension in the projections around, where they cannot be
// split; splitting them here would only add layouts that nothing produces, and changed no frontier we tried.
TensorId TransformerLayers::scores(TensorId q, TensorId k) {
  LoopDims dims;
  const auto n = dims.add(DimName::batch, batch_);
  const auto heads = query_heads(dims);
  const auto s = dims.add(DimName::sequence, length(q));
  // Of chosen keys each query sees others, so the keys' own positions are not walked.
  const std::int64_t seen = chosen_keys_ ? b_.tensor(*chosen_keys_).shape.back() : length(k);
  const auto t = dims.add(DimName::key_sequence, seen, DimRole::parallel, false);
  const auto d = dims.add(DimName::head_channel, b_.tensor(q).shape.back(), DimRole::reduction, false);
  Walks a = {{n}}, key = {{n}};
  for (const auto head : heads) a.push_back({head});
  if (has_kv_head()) key.push_back({heads.front()});
  Walks out = a;
  a.insert(a.end(), {{s}, {d}});
  const std::vector<std::uint8_t> positions = chosen_keys_ ? std::vector<std::uint8_t>{} : std::vector<std::uint8_t>{t};
  key.insert(key.end(), {positions, {d}});
  out.insert(out.end(), {{s}, {t}});
  auto names = query_names();
  names.insert(names.end(), {DimName::sequence, DimName::key_sequence});
  if (rotary_key_) key.back().clear();  // holds a part of the channels that q has
  // A sink is one more score of its head, the same for every token: read, and its gradient summed, as a bias is.
  std::optional<TensorId> sinks;
  if (shape_.attention_sinks) sinks = parameter("sinks", {shape_.heads}, {DimName::head});
  const TensorId y = b_.contraction(path("scores"), "MatMul", dims.list, q, a, k, key, out, names, sinks, {heads});
  if (b_.error()) return y;
  if (rotary_key_) b_.model().operators[b_.tensor(y).producer].inputs.push_back({*rotary_key_, {{n}, positions, {}}, true});
  if (chosen_keys_) b_.model().operators[b_.tensor(y).producer].inputs.push_back({*chosen_keys_, {{n}, {s}, {t}}, true});
  if (value_mask_) {
    const std::vector<std::uint8_t> own =
        has_kv_head() ? std::vector<std::uint8_t>{heads.front()} : std::vector<std::uint8_t>{};
    b_.model().operators[b_.tensor(y).producer].inputs.push_back({*value_mask_, {{n}, own, {t}}, true});
  }
  rotary_key_.reset();
  value_mask_.reset();
  if (!position_table_) return y;
  // T5: a learned number per head and bucket of distances, added to the scores of every layer of the stack. The table
  // is read as it is, and being tiny it counts as one of the vectors that every user may store.
  auto& op = b_.model().operators[b_.tensor(y).producer];
  op.inputs.push_back({*position_table_, {{}}, false});
  const double elements = double(b_.tensor(y).elements());
  op.forward_flop += elements;
  op.backward_flop += elements;
  return y;
}

TensorId TransformerLayers::context(TensorId probabilities, TensorId v) {
  LoopDims dims;
  const auto n = dims.add(DimName::batch, batch_);
  const auto heads = query_heads(dims);
  const auto s = dims.add(DimName::sequence, length(probabilities));
  const auto d = dims.add(DimName::head_channel, b_.tensor(v).shape.back(), DimRole::parallel, false);
  const std::int64_t seen = chosen_keys_ ? b_.tensor(*chosen_keys_).shape.back() : length(v);
  const auto t = dims.add(DimName::key_sequence, seen, DimRole::reduction, false);
  Walks a = {{n}}, value = {{n}};
  for (const auto head : heads) a.push_back({head});
  if (has_kv_head()) value.push_back({heads.front()});
  Walks out = a;
  a.insert(a.end(), {{s}, {t}});
  value.insert(value.end(), {chosen_keys_ ? std::vector<std::uint8_t>{} : std::vector<std::uint8_t>{t}, {d}});
  out.insert(out.end(), {{s}, {d}});
  auto names = query_names();
  names.insert(names.end(), {DimName::sequence, DimName::head_channel});
  return b_.contraction(path("context"), "MatMul", dims.list, probabilities, a, v, value, out, names);
}

/// [batch_, heads..., sequence_, channels] back to [batch_, sequence_, hidden].
TensorId TransformerLayers::merge_heads(TensorId x) {
  const std::int64_t channels = b_.tensor(x).shape.back();
  if (!shape_.output_projection) {
    const TensorId turned = b_.transpose(path("join"), x, {0, 2, 1, 3});
    return b_.reshape(path("out"), turned, {batch_, sequence_, shape_.heads * channels},
                      {DimName::batch, DimName::sequence, DimName::channel});
  }
  LoopDims dims;
  const auto n = dims.add(DimName::batch, batch_);
  const auto s = dims.add(DimName::sequence, sequence_);
  const auto o = dims.add(DimName::out_channel, shape_.hidden);
  const auto heads = query_heads(dims, DimRole::reduction);
  const auto d = dims.add(DimName::head_channel, channels, DimRole::reduction);
  std::vector<std::uint8_t> merged = heads;
  merged.push_back(d);
  Walks a = {{n}};
  for (const auto head : heads) a.push_back({head});
  a.insert(a.end(), {{s}, {d}});
  const TensorId w =
      parameter("out.weight", {shape_.heads * channels, shape_.hidden}, {DimName::in_channel, DimName::out_channel});
  std::optional<TensorId> bias;
  if (shape_.output_bias) bias = parameter("out.bias", {shape_.hidden}, {DimName::out_channel});
  return b_.contraction(path("out"), "Linear", dims.list, x, a, w, {merged, {o}}, {{n}, {s}, {o}},
                        {DimName::batch, DimName::sequence, DimName::channel}, bias, {{o}});
}

/// Sigmoid factors of the result of attention, made of the layer's input: one a head or one a channel.
TensorId TransformerLayers::gate(TensorId context, TensorId x) {
  const bool head = shape_.attention_gate == TransformerShape::Gate::head;
  const std::int64_t channels = head ? 1 : b_.tensor(context).shape.back();
  const TensorId source = gate_source_.value_or(x);
  gate_source_.reset();
  const TensorId factors = project("gate", source, Heads::query, b_.tensor(source).shape.back(), channels, false);
  const TensorId operands[] = {factors, context};
  return b_.elementwise(path("gated"), "Sigmoid*", operands, {.flop_per_element = 5, .saves_input = {true, true}});
}

/// Joined heads with a norm over all of them before the product.
TensorId TransformerLayers::merge_normed(TensorId x) {
  const std::int64_t width = shape_.heads * b_.tensor(x).shape.back();
  const int rank = int(b_.tensor(x).shape.size());
  std::vector<int> order = {0, rank - 2};
  for (int d = 1; d < rank - 2; ++d) order.push_back(d);
  order.push_back(rank - 1);
  const TensorId joined = b_.reshape(path("joined"), b_.transpose(path("join"), x, std::move(order)),
                                     {batch_, sequence_, width}, {DimName::batch, DimName::sequence, DimName::channel});
  return linear("out", norm("norm_inner", joined, width), width, shape_.hidden, shape_.output_bias);
}

TensorId TransformerLayers::attend(TensorId q, TensorId k, TensorId v, TensorId x) {
  if (b_.error()) return q;
  TensorId s = scores(q, k);
  if (b_.error()) return q;
  if (distances_) s = add_distances(s, q, k);
  TensorId probabilities = b_.softmax(path("softmax"), s, int(b_.tensor(s).shape.size()) - 1);
  if (!b_.error()) b_.model().operators[b_.tensor(probabilities).producer].causal = causal_ && !chosen_keys_;
  if (shape_.attention_dropout) probabilities = dropout(probabilities);
  TensorId y = context(probabilities, v);
  chosen_keys_.reset();
  if (shape_.global_token) y = with_global_token(y, x);
  if (shape_.attention_gate != TransformerShape::Gate::none) y = gate(y, x);
  return shape_.attention_norm ? merge_normed(y) : merge_heads(y);
}

/// Longformer, arXiv 2004.05150, section 3.1: the first position attends to all others by products of its own, and what
/// it finds takes the place of what it found as the others do.
TensorId TransformerLayers::with_global_token(TensorId context, TensorId x) {
  if (b_.error()) return context;
  const std::string scope = prefix_.substr(root_.size(), prefix_.size() - root_.size() - 1);
  const int axis = int(b_.tensor(context).shape.size()) - 2;
  std::vector<std::int64_t> others = b_.tensor(context).shape;
  if (--others[static_cast<std::size_t>(axis)] < 1) return context;
  enter(scope + "/global");
  const std::int64_t channels = shape_.head_channels;
  const TensorId first = b_.slice(path("first"), "Slice", x, {batch_, 1, shape_.hidden});
  const TensorId q = project("q", first, Heads::query, shape_.hidden, channels, shape_.qkv_bias);
  const TensorId k = project("k", x, Heads::key_value, shape_.hidden, channels, shape_.qkv_bias && shape_.key_bias);
  const TensorId v = project("v", x, Heads::key_value, shape_.hidden, channels, shape_.qkv_bias);
  const TensorId found = this->context(b_.softmax(path("softmax"), scores(q, k), axis + 1), v);
  const TensorId both[] = {found, b_.slice(path("others"), "Slice", context, std::move(others))};
  const TensorId joined = b_.concat(path("join"), both, axis);
  enter(scope);
  return joined;
}

/// A norm over each head of q or k with a scale of its own for every head.
TensorId TransformerLayers::norm_by_head(const std::string& leaf, TensorId x, Heads kind) {
  const TensorId y =
      norm(leaf, x, shape_.head_channels, int(b_.tensor(x).shape.size()) - 1, TransformerShape::Norm::bare);
  const std::int64_t heads = kind == Heads::query ? shape_.heads : shape_.kv_heads;
  const TensorId scale =
      parameter(leaf + ".weight", {heads, shape_.head_channels}, {DimName::head, DimName::head_channel});
  if (b_.error()) return y;
  auto& op = b_.model().operators[b_.tensor(y).producer];
  const auto& walks = op.outputs.front().walks;  // batch, heads, sequence, channel
  std::vector<std::uint8_t> merged;
  for (std::size_t d = 1; d + 2 < walks.size(); ++d) merged.insert(merged.end(), walks[d].begin(), walks[d].end());
  op.inputs.push_back({scale, {std::move(merged), walks.back()}, true});
  return y;
}

/// q or k whose norm is over all heads together: the projection is made whole, normed, and then seen as heads.
TensorId TransformerLayers::project_normed(const std::string& leaf, TensorId x, Heads kind) {
  const std::int64_t heads = kind == Heads::query ? shape_.heads : shape_.kv_heads, channels = shape_.head_channels;
  TensorId y = linear(leaf, x, shape_.hidden, heads * channels, shape_.qkv_bias);
  rotate({y});
  y = norm(leaf + "_norm", y, heads * channels, 2, *shape_.query_key_norm);
  std::vector<std::int64_t> sizes = {batch_, sequence_};
  std::vector<DimName> names = {DimName::batch, DimName::sequence};
  if (has_kv_head()) sizes.push_back(shape_.kv_heads), names.push_back(DimName::head);
  if (kind == Heads::query && has_group()) sizes.push_back(groups()), names.push_back(group_name());
  sizes.push_back(channels), names.push_back(DimName::head_channel);
  std::vector<int> order = {0};
  for (int d = 2; d + 1 < int(sizes.size()); ++d) order.push_back(d);
  order.insert(order.end(), {1, int(sizes.size()) - 1});
  return b_.transpose(path(leaf + "_turn"), b_.reshape(path(leaf + "_heads"), y, std::move(sizes), std::move(names)),
                      std::move(order));
}

void TransformerLayers::rotate(std::initializer_list<TensorId> made) {
  if (!shape_.rotary || b_.error()) return;
  for (const TensorId tensor : made) b_.model().operators[b_.tensor(tensor).producer].rotates = true;
}

TensorId TransformerLayers::attention(TensorId x, TensorId source) {
  causal_ = shape_.causal && x == source;
  using Scale = TransformerShape::QueryKeyScale;
  TensorId q, k;
  if (shape_.query_key_norm && shape_.query_key_scale == Scale::all_heads) {
    q = project_normed("q", x, Heads::query);
    k = project_normed("k", source, Heads::key_value);
  } else {
    q = project("q", x, Heads::query, shape_.hidden, shape_.head_channels, shape_.qkv_bias || shape_.relative.fixed);
    k = project("k", source, Heads::key_value, shape_.hidden, shape_.head_channels, shape_.qkv_bias && shape_.key_bias);
    if (x == source) rotate({q, k});  // the positions of another stack are not its own
    if (shape_.query_key_norm && shape_.query_key_scale == Scale::head) {
      q = norm_by_head("q_norm", q, Heads::query);
      k = norm_by_head("k_norm", k, Heads::key_value);
    } else if (shape_.query_key_norm) {
      q = norm("q_norm", q, shape_.head_channels, int(b_.tensor(q).shape.size()) - 1, *shape_.query_key_norm);
      k = norm("k_norm", k, shape_.head_channels, int(b_.tensor(k).shape.size()) - 1, *shape_.query_key_norm);
    }
  }
  const std::int64_t value_channels = shape_.value_channels > 0 ? shape_.value_channels : shape_.head_channels;
  if (shape_.indexer.heads > 0) chosen_keys_ = choose_keys(x, x, shape_.hidden);
  const TensorId v = project("v", source, Heads::key_value, shape_.hidden, value_channels, shape_.qkv_bias);
  if (shape_.value_mask) value_mask_ = mask_by_values(v);
  return attend(q, k, v, x);
}

/// Doge, arXiv 2412.11834: exp(a * softplus(product of a key's values)), a number for each key and its head, joins the
/// scores. Every product reads the values of all heads.
TensorId TransformerLayers::mask_by_values(TensorId v) {
  if (b_.error()) return v;
  LoopDims dims;
  const std::int64_t heads = shape_.kv_heads, channels = b_.tensor(v).shape.back();
  const auto n = dims.add(DimName::batch, batch_);
  const auto s = dims.add(DimName::sequence, length(v));
  const auto o = dims.add(DimName::head, heads, DimRole::parallel, false);
  Walks a = {{n}};
  std::vector<std::uint8_t> merged;
  if (has_kv_head()) {
    merged.push_back(dims.add(DimName::other, heads, DimRole::reduction, false));
    a.push_back({merged.front()});
  }
  const auto d = dims.add(DimName::head_channel, channels, DimRole::reduction, false);
  a.insert(a.end(), {{s}, {d}});
  merged.push_back(d);
  const TensorId w = parameter("mask.weight", {heads * channels, heads}, {DimName::in_channel, DimName::out_channel});
  std::optional<TensorId> bias;
  if (shape_.qkv_bias) bias = parameter("mask.bias", {heads}, {DimName::out_channel});
  const TensorId steps =
      b_.contraction(path("mask"), "Linear", dims.list, v, a, w, {merged, {o}}, {{n}, {s}, {o}},
                     {DimName::batch, DimName::sequence, DimName::head}, bias, {{o}});
  const TensorId operands[] = {steps, parameter("mask_rate", {heads}, {DimName::head})};
  const TensorId mask = b_.elementwise(path("mask_exp"), "ExpSoftplus", operands,
                                       {.flop_per_element = 8, .saves_input = {true, true}});
  return b_.transpose(path("mask_turn"), mask, {0, 2, 1});
}

/// A product down to a bottleneck that the next norm needs whole.
TensorId TransformerLayers::narrow_to(const std::string& leaf, TensorId x, std::int64_t channels) {
  const TensorId y = linear(leaf, x, shape_.hidden, channels, shape_.qkv_bias);
  if (b_.error()) return y;
  auto& op = b_.model().operators[b_.tensor(y).producer];
  for (const auto loop : op.outputs.front().walks.back()) op.dims[loop].splittable = false;
  return y;
}

/// DeepSeek-V2, section 2.1 (arXiv 2405.04434). The rotary part of a key is one for all heads; the scores read it
/// beside the heads' own part, and nobody writes the two out side by side.
TensorId TransformerLayers::latent_attention(TensorId x) {
  const auto& l = shape_.latent;
  constexpr auto kRms = TransformerShape::Norm::rms;
  const std::int64_t channels = shape_.head_channels + l.rotary_channels;
  TensorId q;
  if (l.query_rank > 0) {
    const TensorId narrow = narrow_to("q_down", x, l.query_rank);
    const TensorId source = norm("q_norm", narrow, l.query_rank, 2, kRms);
    if (l.query_both) {
      const TensorId both[] = {source, narrow};
      gate_source_ = b_.concat(path("q_both"), both, 2);
      q = project("q", *gate_source_, Heads::query, 2 * l.query_rank, channels, false);
    } else {
      q = project("q", source, Heads::query, l.query_rank, channels, false);
    }
    if (shape_.indexer.heads > 0) chosen_keys_ = choose_keys(x, source, l.query_rank);
  } else {
    if (shape_.indexer.heads > 0) chosen_keys_ = choose_keys(x, x, shape_.hidden);
    q = project("q", x, Heads::query, shape_.hidden, channels, false);
  }
  const TensorId latent = norm("kv_norm", narrow_to("kv_down", x, l.key_value_rank), l.key_value_rank, 2, kRms);
  const TensorId k = project("k", latent, Heads::key_value, l.key_value_rank, shape_.head_channels, false);
  if (l.rotary_channels > 0) rotary_key_ = narrow_to("k_rotary", x, l.rotary_channels);
  return attend(q, k, project("v", latent, Heads::key_value, l.key_value_rank, l.value_channels, false), x);
}

}  // namespace turnpoint
