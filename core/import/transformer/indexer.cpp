// SPDX-License-Identifier: Apache-2.0
// Sparse attention whose keys an indexer chooses: DeepSeek-V3.2, arXiv 2512.02556, equations 1 and 2.
#include <algorithm>

#include "core/import/transformer/layers.h"

namespace turnpoint {

/// The keys that each position sees, as [batch, sequence, chosen]; nothing where there are no more than it may see.
std::optional<TensorId> TransformerLayers::choose_keys(TensorId x, TensorId query_source, std::int64_t query_channels) {
  const KeyIndexer& own = shape_.indexer;
  enum : std::uint8_t { n, h, s, t, d };
  const std::vector<LoopDimension> query_dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                                 {DimName::head, DimRole::parallel, own.heads, true},
                                                 {DimName::sequence, DimRole::parallel, sequence_, true},
                                                 {DimName::head_channel, DimRole::parallel, own.channels, false},
                                                 {DimName::in_channel, DimRole::reduction, query_channels, false}};
  const TensorId w = parameter("index_q.weight", {query_channels, own.heads * own.channels},
                               {DimName::in_channel, DimName::out_channel});
  const TensorId q = b_.contraction(path("index_q"), "Linear", query_dims, query_source, {{0}, {2}, {4}}, w,
                                    {{4}, {1, 3}}, {{0}, {1}, {2}, {3}},
                                    {DimName::batch, DimName::head, DimName::sequence, DimName::head_channel});
  const TensorId k = norm("index_k_norm", linear("index_k", x, shape_.hidden, own.channels, false), own.channels, 2,
                          TransformerShape::Norm::layer);
  std::vector<LoopDimension> dims = {{DimName::batch, DimRole::parallel, batch_, true},
                                     {DimName::head, DimRole::parallel, own.heads, true},
                                     {DimName::sequence, DimRole::parallel, sequence_, true},
                                     {DimName::key_sequence, DimRole::parallel, sequence_, false},
                                     {DimName::head_channel, DimRole::reduction, own.channels, false}};
  const TensorId agreement = b_.contraction(
      path("index_agreement"), "MatMul", dims, q, {{n}, {h}, {s}, {d}}, k, {{n}, {t}, {d}}, {{n}, {h}, {s}, {t}},
      {DimName::batch, DimName::head, DimName::sequence, DimName::key_sequence});
  const TensorId weights = linear("index_weights", x, shape_.hidden, own.heads, false);
  const TensorId positive_of[] = {agreement};
  const TensorId positive =
      b_.elementwise(path("index_relu"), "Relu", positive_of, {.flop_per_element = 1, .saves_output = true});
  // The sum over the indexer's heads, weighted by position.
  dims.pop_back();
  const TensorId scores = b_.contraction(path("index_scores"), "MatMul", std::move(dims), positive,
                                         {{n}, {h}, {s}, {t}}, weights, {{n}, {s}, {h}}, {{n}, {s}, {t}},
                                         {DimName::batch, DimName::sequence, DimName::key_sequence});
  const std::int64_t chosen = std::min(own.chosen, sequence_);
  const TensorId best = b_.slice(path("index_chosen"), "TopK", scores, {batch_, sequence_, chosen});
  if (!b_.error())
    for (auto& loop : b_.model().operators[b_.tensor(best).producer].dims)
      if (loop.name == DimName::key_sequence) loop.splittable = false;
  return best;
}

}  // namespace turnpoint
