// SPDX-License-Identifier: Apache-2.0
// One stack of transformer layers under construction: an encoder, a decoder or the only one there is.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/import/transformer/transformer.h"
#include "core/model/builder.h"

namespace turnpoint {

class TransformerLayers {
 public:
  /// `root` begins every scope ("encoder/" or ""). Shape and builder must outlive this.
  TransformerLayers(ModelBuilder& builder, const TransformerShape& shape, std::string root, std::int64_t batch,
                    std::int64_t sequence)
      : b_(builder), base_(shape), shape_(shape), root_(std::move(root)), batch_(batch), sequence_(sequence) {}

  /// The encoder's result, to which every layer attends.
  void attend_to(TensorId memory) { memory_ = memory; }
  /// Enters a scope below the root.
  void enter(const std::string& scope);
  std::string path(const std::string& leaf) const { return prefix_ + leaf; }

  TensorId layer(std::int64_t index, TensorId x);
  TensorId norm(const std::string& leaf, TensorId x) { return norm(leaf, x, shape_.hidden); }
  TensorId norm(const std::string& leaf, TensorId x, std::int64_t channels) {
    return norm(leaf, x, channels, 2, shape_.norm);
  }
  TensorId linear(const std::string& leaf, TensorId x, std::int64_t in, std::int64_t out, bool with_bias);
  TensorId dropout(TensorId x, const std::string& leaf = "dropout");

 private:
  struct LoopDims;
  using Walks = std::vector<std::vector<std::uint8_t>>;
  enum class Heads { query, key_value };

  TensorId parameter(const std::string& leaf, std::vector<std::int64_t> shape, std::vector<DimName> dims);
  TensorId norm(const std::string& leaf, TensorId x, std::int64_t channels, int axis, TransformerShape::Norm kind);
  void keep_whole(TensorId x, std::initializer_list<DimName> split = {});
  TensorId narrow_view(const std::string& leaf, TensorId x, std::initializer_list<DimName> split);
  TensorId add(const std::string& leaf, std::initializer_list<TensorId> operands);
  TensorId dropped(TensorId x) { return shape_.branch_dropout ? dropout(x) : x; }
  TensorId branch_norm(std::int64_t index, bool feeding, TensorId x);
  bool is_sparse(std::int64_t index) const;
  bool is_relu() const { return shape_.activation.find("relu") != std::string::npos; }

  // attention.cpp
  std::int64_t length(TensorId x) const;
  std::int64_t groups() const { return shape_.heads / shape_.kv_heads; }
  bool has_kv_head() const { return shape_.kv_heads > 1 || groups() == 1; }
  bool has_group() const { return groups() > 1; }
  DimName group_name() const { return has_kv_head() ? DimName::group : DimName::head; }
  std::vector<std::uint8_t> query_heads(LoopDims& dims, DimRole role = DimRole::parallel) const;
  std::vector<DimName> query_names() const;
  TensorId project(const std::string& leaf, TensorId x, Heads kind, std::int64_t in, std::int64_t channels, bool bias);
  TensorId scores(TensorId q, TensorId k);
  TensorId context(TensorId probabilities, TensorId v);
  TensorId merge_heads(TensorId x);
  TensorId attend(TensorId q, TensorId k, TensorId v, TensorId x);
  TensorId norm_by_head(const std::string& leaf, TensorId x, Heads kind);
  TensorId project_normed(const std::string& leaf, TensorId x, Heads kind);
  TensorId attention(TensorId x, TensorId source);
  TensorId narrow_to(const std::string& leaf, TensorId x, std::int64_t channels);
  TensorId latent_attention(TensorId x);
  TensorId gate(TensorId context, TensorId x);
  TensorId merge_normed(TensorId x);
  /// The products that made queries and keys turn them by their positions, where the shape says so.
  void rotate(std::initializer_list<TensorId> made);
  TensorId with_global_token(TensorId context, TensorId x);
  TensorId mask_by_values(TensorId v);

  // indexer.cpp
  std::optional<TensorId> choose_keys(TensorId x, TensorId query_source, std::int64_t query_channels);

  // scans.cpp
  TensorId mix(Mixer mixer, TensorId x);
  TensorId convolve_causally(const std::string& leaf, TensorId x, std::int64_t kernel, bool bias);
  TensorId times(const std::string& leaf, const std::string& detail, TensorId gate, TensorId x);
  TensorId selective_scan(TensorId x);
  TensorId state_space(TensorId x);
  TensorId delta_net(TensorId x);
  TensorId matrix_memory(TensorId x);
  TensorId short_convolution(TensorId x);
  TensorId recurrence(TensorId x);

  // mixes.cpp
  TensorId mixed_with_last(const std::string& leaf, TensorId x);
  TensorId weighted_average(TensorId x);
  TensorId gated_mix(TensorId x);
  TensorId fourier(TensorId x);
  TensorId shared_block(TensorId x);
  TensorId beside(const std::string& leaf, TensorId product, TensorId x, Heads kind);

  // distances.cpp
  void enter_layer(std::int64_t index);
  void make_distances();
  TensorId project_distances(const std::string& leaf, TensorId like);
  TensorId look_up(const std::string& leaf, TensorId x, TensorId distances, DimName rows_of_x,
                   const std::string& own_vector = "");
  TensorId add_distances(TensorId scores, TensorId q, TensorId k);

  // feed_forward.cpp
  TensorId mlp(TensorId x, std::int64_t width, const std::string& stem = "");
  TensorId feed_forward(std::int64_t index, TensorId x);
  TensorId mixture(TensorId x);
  TensorId expert_product(const std::string& leaf, TensorId x, std::int64_t in, std::int64_t out, double filled);

  ModelBuilder& b_;
  const TransformerShape& base_;
  TransformerShape shape_;  ///< that of the current layer
  std::string root_, prefix_, layer_;
  std::int64_t batch_, sequence_;
  std::optional<TensorId> memory_, position_table_, rotary_key_, distances_, chosen_keys_, embedded_, gate_source_,
      value_mask_;
  bool causal_ = true;  ///< of the attention under construction
  std::int64_t group_ = -1;  ///< which set of shared parameters the current layer uses
  std::int64_t blocks_met_ = 0;  ///< shared blocks so far
  std::unordered_map<std::string, TensorId> shared_;
};

}  // namespace turnpoint
