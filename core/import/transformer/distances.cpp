// SPDX-License-Identifier: Apache-2.0
// Disentangled attention: DeBERTa, arXiv 2006.03654, equation 4, with the shared projections of DeBERTa v3. The heads
// are as many as those of keys: the importer refuses anything else.
#include "core/import/transformer/layers.h"

namespace turnpoint {

// One table for all layers. It is small and read by every layer, so nothing of it is split: its layout is no choice
// that would tie all layers together.
void TransformerLayers::make_distances() {
  if (shape_.relative.fixed) {
    distances_ = b_.buffer(root_ + "distances", {shape_.relative.rows, shape_.hidden});
    return;
  }
  const TensorId table = b_.parameter(root_ + "distances.weight", {shape_.relative.rows, shape_.hidden},
                                      {DimName::other, DimName::channel});
  enter("distances");
  distances_ = norm("norm", table, shape_.hidden, 1, TransformerShape::Norm::layer);
  keep_whole(*distances_);
}

/// The table as [head, row, channel], by weights of its own or those that made `like` of the layer's input.
TensorId TransformerLayers::project_distances(const std::string& leaf, TensorId like) {
  const std::int64_t rows = shape_.relative.rows, channels = shape_.head_channels, width = shape_.heads * channels;
  const bool fixed = shape_.relative.fixed;
  const TensorId table = fixed ? *distances_ : narrow_view(leaf + "_table", *distances_, {});
  if (b_.error()) return table;
  const std::vector<std::int64_t> sizes = {shape_.hidden, width};
  const std::vector<DimName> names = {DimName::in_channel, DimName::out_channel};
  TensorId w;
  std::optional<TensorId> bias;
  if (shape_.relative.own_projections) {
    w = parameter(leaf + ".weight", sizes, names);
    if (!fixed) bias = parameter(leaf + ".bias", {width}, {DimName::out_channel});
  } else {
    const auto& inputs = b_.model().operators[b_.tensor(like).producer].inputs;
    const TensorId own_w = inputs[1].tensor, own_bias = inputs[2].tensor;
    w = b_.tied_parameter(path(leaf + ".weight"), own_w, sizes, names);
    bias = b_.tied_parameter(path(leaf + ".bias"), own_bias, {width}, {DimName::out_channel});
  }
  enum : std::uint8_t { h, r, d, k };
  std::vector<LoopDimension> dims = {{DimName::head, DimRole::parallel, shape_.heads, true},
                                     {DimName::other, DimRole::parallel, rows, false},
                                     {DimName::head_channel, DimRole::parallel, channels, false},
                                     {DimName::in_channel, DimRole::reduction, shape_.hidden, true}};
  return b_.contraction(path(leaf), "Linear", std::move(dims), table, {{r}, {k}}, w, {{k}, {h, d}}, {{h}, {r}, {d}},
                        {DimName::head, DimName::other, DimName::head_channel}, bias, {{h, d}});
}

/// What each position of x scores with each distance, looked up for the distances to the `sequence_` positions there
/// are: [batch, head, position, sequence]. `rows_of_x` names the positions of x.
TensorId TransformerLayers::look_up(const std::string& leaf, TensorId x, TensorId distances, DimName rows_of_x,
                                    const std::string& own_vector) {
  if (b_.error()) return x;
  const std::int64_t rows = b_.tensor(distances).shape[1];
  enum : std::uint8_t { n, h, s, r, d };
  const bool keys = rows_of_x == DimName::key_sequence;
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::head, DimRole::parallel, shape_.heads, true},
                                     {rows_of_x, DimRole::parallel, sequence_, !keys},
                                     {DimName::other, DimRole::parallel, rows, false},
                                     {DimName::head_channel, DimRole::reduction, shape_.head_channels, false}};
  const TensorId all =
      b_.contraction(path(leaf), "MatMul", std::move(dims), x, {{n}, {h}, {s}, {d}}, distances, {{h}, {r}, {d}},
                     {{n}, {h}, {s}, {r}}, {DimName::batch, DimName::head, rows_of_x, DimName::other});
  if (!own_vector.empty()) {
    // Added to x as it is read: one vector a head, for all positions.
    const TensorId vector =
        parameter(own_vector, {shape_.heads, shape_.head_channels}, {DimName::head, DimName::head_channel});
    if (b_.error()) return x;
    b_.model().operators[b_.tensor(all).producer].inputs.push_back({vector, {{h}, {d}}, true});
  }
  const TensorId chosen = b_.slice(path(leaf + "_chosen"), "Gather", all, {batch_, shape_.heads, sequence_, sequence_});
  if (keys)
    keep_whole(chosen, {DimName::batch, DimName::head});
  else
    keep_whole(chosen, {DimName::batch, DimName::head, DimName::sequence});
  b_.rename_dims(chosen, {DimName::batch, DimName::head, rows_of_x, keys ? DimName::sequence : DimName::key_sequence});
  return chosen;
}

TensorId TransformerLayers::add_distances(TensorId scores, TensorId q, TensorId k) {
  std::vector<TensorId> terms = {scores};
  const bool fixed = shape_.relative.fixed;
  if (shape_.relative.content_to_position)
    terms.push_back(look_up("to_position", q, project_distances("position_k", k), DimName::sequence,
                            fixed ? "position_bias" : ""));
  if (fixed) {
    const TensorId segments = parameter("segments.weight", {shape_.heads, 2, shape_.head_channels},
                                        {DimName::head, DimName::other, DimName::head_channel});
    terms.push_back(look_up("to_segment", q, segments, DimName::sequence, "segment_bias"));
  }
  if (shape_.relative.position_to_content) {
    const TensorId to_content = look_up("to_content", k, project_distances("position_q", q), DimName::key_sequence);
    terms.push_back(b_.transpose(path("to_content_turn"), to_content, {0, 1, 3, 2}));
  }
  const TensorId sum = b_.elementwise(path("scores_sum"), "Add", terms, {.flop_per_element = double(terms.size() - 1)});
  keep_whole(sum, {DimName::batch, DimName::head, DimName::sequence});
  return sum;
}

}  // namespace turnpoint
