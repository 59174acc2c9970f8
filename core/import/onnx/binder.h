// SPDX-License-Identifier: Apache-2.0
// Builds a Model from an ONNX graph at one batch size and sequence length: evaluates what is constant, folds
// bookkeeping nodes away and hands the rest to ModelBuilder, node by node.
//
// A batch size that is baked into the file is re-bound by running twice: first at the file's own batch, recording every
// shape, then at the wanted one; where a constant repeats the old batch (a reshape target), the recorded shapes tell
// which dimension it stands for.
#pragma once

#include <map>
#include <set>

#include "core/import/onnx/evaluate.h"
#include "core/import/onnx/graph.h"
#include "core/model/builder.h"

namespace turnpoint::onnx {

using Shape = std::vector<std::int64_t>;
using Dims = std::vector<DimName>;

/// Where the batch and the sequence are in a graph's data inputs, found once per graph.
struct InputPlan {
  std::vector<int> data;         ///< value indices of graph inputs that are data
  std::set<int> weights;         ///< graph inputs that feed a weight slot
  std::string batch_symbol;      ///< empty: the batch is fixed
  std::int64_t fixed_batch = 0;  ///< leading dimension of the first data input where it is fixed
  std::vector<std::string> sequence_symbols, other_symbols;
  std::set<int> tables;                 ///< floating initialisers that are no weights: see find_tables()
  std::map<int, int> transposed_twins;  ///< initialiser to the one that holds the same numbers transposed
  std::set<int> filled_weights;         ///< results of ConstantOfShape that stand for weights: see find_tables()
  std::set<int> repeated;               ///< initialisers that hold a class token once for each sample of the batch
  bool literal_batch = false;           ///< tensors that nodes fill or count out for the file's own batch are for any
  double eight_bit_elements = 0;        ///< of 8-bit initialisers with two or more dimensions, which are no parameters
};
/// Weights among the graph's inputs: floating ones of fixed shape that reach a weight slot of an operator and, where
/// there are such, those after the first input with one row for all samples that are expanded, joined or added to data
/// (class tokens, tables of positions), masks apart.
InputPlan plan_inputs(const Graph& graph);
/// Which initialisers are not trained, or not once more. Tables are (1) what reaches nothing but sines and cosines
/// (frequencies of rotary positions) or is called inv_freq or embed_positions and (2) in files that name weights by
/// module, what has a name that an exporter made up, two dimensions or more, and is only added, multiplied or chosen
/// from (folded masks, angles, position biases). What such a file folded to a row for each sample and joins to data is
/// a parameter of one row, repeated for the batch (class tokens). A twin has the samples of another matrix, transposed
/// (a tied table that constant folding stored again). Called by plan_inputs().
void find_tables(const Graph& graph, InputPlan& plan);
/// Puts what is known in the place of what was guessed: these initialisers are not trained, all others are, all inputs are
/// data. Running statistics stay what their normalisation takes them for.
void take_buffers(const Graph& graph, const std::set<std::string>& buffers, InputPlan& plan);
/// Symbol of an input's dimension: its name, or a made-up one for an unknown size; empty if the size is known.
std::string dimension_symbol(const ValueNode& value, std::size_t dim);

/// What a value of the graph is while the model is built.
struct Value {
  enum class Kind { missing, constant, parameter, tensor };
  Kind kind = Kind::missing;
  ElementType type = ElementType::f32;
  Shape shape;
  ConstantPtr data;         ///< constants whose elements are known
  TensorId tensor;          ///< tensors; constants and parameters once they were used
  int root = -1;            ///< parameters: the value that owns the storage
  bool transposed = false;  ///< parameters of two dimensions: `shape` is the transpose of what the root has
  /// Exporters merge the batch with other dimensions (heads, positions) where the runtime wants fewer; a merged
  /// dimension could not be split by both. So a tensor keeps its parts: `groups[d]` of its dimensions together are
  /// dimension d of the graph's value. Empty: one each.
  std::vector<std::uint8_t> groups;
  TensorId flat;           ///< tensors with groups: the same with its dimensions really merged, once someone needed it
  std::int64_t outer = 1;  ///< the part of the re-bound dimension that lies outside the batch
};

/// Product of the sizes; nothing if one is below 1 or the product is above 2^60.
std::optional<std::int64_t> element_count(const Shape& shape);

struct BindResult {
  Expected<ModelPtr> model;
  std::vector<std::optional<Shape>> shapes;  ///< per value, for the second run
};

class Binder {
 public:
  Binder(const Graph& graph, const InputPlan& plan, std::int64_t batch, std::int64_t sequence,
         const std::vector<std::optional<Shape>>* reference);
  BindResult run();

 private:
  using Handler = void (Binder::*)(const Node&);
  static const std::map<std::string, Handler, std::less<>>& handlers();
  static const std::map<std::string, Handler, std::less<>>& runtime_handlers();  ///< of domain com.microsoft

  // --- frame (binder.cpp) ---
  void add_inputs();
  void add_initializers();
  void visit(const Node& node);
  bool enabled(const Node& node) const;
  bool takes_then(int condition) const;
  bool try_constant(const Node& node);
  bool try_literal_batch(const Node& node);
  void visit_constants_only(const Node& node, Handler handler);
  void fail(const Node& node, std::string what);
  std::string operator_name(const Node& node) const;
  std::string scope_of(const Node& node) const;
  Expected<ModelPtr> finish();

  // --- operands (binder_operands.cpp) ---
  bool has(const Node& node, std::size_t i) const {
    return node.input(i) >= 0 && values_[node.input(i)].kind != Value::Kind::missing;
  }
  Value& in(const Node& node, std::size_t i) { return values_[node.input(i)]; }
  const Shape& shape(const Node& node, std::size_t i) const { return values_[node.input(i)].shape; }
  bool needs(const Node& node, std::size_t count);
  TensorId operand(const Node& node, std::size_t i);
  TensorId materialise(int value, bool weight_slot, bool buffer = false);
  TensorId weight(const Node& node, std::size_t i) { return materialise(node.input(i), true); }
  std::optional<TensorId> optional_weight(const Node& node, std::size_t i);
  std::optional<Shape> constant_integers(const Node& node, std::size_t i) const;
  /// A list that older opsets have as an attribute and newer ones as an input; absent: empty optional.
  std::optional<Shape> list(const Node& node, const char* attribute, std::size_t input) const;
  /// Operands brought to one common grouping, for functions that treat all leading dimensions alike.
  struct Grouped {
    std::vector<TensorId> tensors;
    std::vector<std::uint8_t> groups;  ///< per dimension of the widest operand; empty: no grouping
  };
  Grouped grouped_operands(const std::vector<int>& values);
  /// First dimension of the tensor that belongs to dimension `d` of a value with these groups.
  static std::size_t first_of(const std::vector<std::uint8_t>& groups, std::size_t d);
  static bool is_whole(const std::vector<std::uint8_t>& groups, std::size_t d) {
    return groups.empty() || groups[d] == 1;
  }
  bool list_unknown(const Node& node, const char* attribute, std::size_t input) const;
  std::optional<double> scalar(const Node& node, std::size_t i) const;
  void set(const Node& node, std::size_t output, TensorId tensor, std::vector<std::uint8_t> groups = {});
  void track_batch(const Node& node);
  void alias(const Node& node, std::size_t output, int value);
  void set_constant(int value, ConstantPtr constant);
  void set_unknown_constant(int value, Shape value_shape, ElementType type);
  /// A parameter seen with another shape (reshape, unsqueeze): no operator, only another view of the same storage.
  bool view_of_parameter(const Node& node, Shape new_shape);
  std::optional<std::size_t> axis(const Node& node, std::int64_t wanted, std::size_t rank);
  /// Old and new shape of a value whose batch was re-bound; null where nothing changed.
  const Shape* old_shape(int value) const;
  /// The new form of an output shape that was right for the old batch.
  std::optional<Shape> rebatched(const Node& node, const Shape& old_output, std::int64_t& outer) const;
  std::optional<ElementType> cast_type(const Node& node) const;

  // --- handlers ---
  void on_convolution(const Node& node);
  void on_gemm(const Node& node);
  void on_matmul(const Node& node);
  void on_einsum(const Node& node);
  void einsum_of_one(const Node& node, const std::string& term, const std::string& out);
  void on_recurrent(const Node& node);
  void on_unary(const Node& node);
  void on_nary(const Node& node);
  void on_where(const Node& node);
  void on_cast(const Node& node);
  void on_dropout(const Node& node);
  void on_identity(const Node& node);
  void on_softmax(const Node& node);
  void on_layer_norm(const Node& node);
  void on_channel_norm(const Node& node);
  void on_batch_norm(const Node& node);
  void on_pool(const Node& node);
  void on_global_pool(const Node& node);
  void on_reduce(const Node& node);
  void on_reshape(const Node& node);
  void on_flatten(const Node& node);
  void on_transpose(const Node& node);
  void on_squeeze(const Node& node);
  void on_unsqueeze(const Node& node);
  void on_expand(const Node& node);
  void on_tile(const Node& node);
  void on_concat(const Node& node);
  void on_split(const Node& node);
  void on_split_to_sequence(const Node& node);
  void on_sequence_at(const Node& node);
  void on_slice(const Node& node);
  void on_pad(const Node& node);
  void on_resize(const Node& node);
  void on_space_depth(const Node& node);
  void on_gather(const Node& node);
  void on_constant_of_shape(const Node& node);
  void on_constant(const Node& node);
  void on_if(const Node& node);
  void on_range(const Node& node);
  void on_random(const Node& node);
  void on_data_dependent(const Node& node);
  void on_known_opaque(const Node& node);
  void on_refused(const Node& node);
  void on_unknown(const Node& node);

  // --- operators that stand for several (binder_fused.cpp) ---
  void on_first_elementwise(const Node& node);
  void on_biased_activation(const Node& node);
  void on_fused_matmul(const Node& node);
  void on_quantised(const Node& node);
  void on_deformable_convolution(const Node& node);
  void on_resampling(const Node& node);
  void on_skip_norm(const Node& node);
  void on_embed_norm(const Node& node);
  void on_attention(const Node& node);
  void on_multi_head_attention(const Node& node);
  void on_group_query_attention(const Node& node);
  void on_packed_attention(const Node& node);
  void on_loss(const Node& node);
  std::optional<TensorId> by_head(const Node& node, TensorId x, std::int64_t heads, const char* part);
  TensorId with_past(const Node& node, std::size_t past, TensorId now, const char* part);
  void attend(const Node& node, TensorId q, TensorId k, TensorId v, bool merge);

  void reshape_to(const Node& node, Shape target);
  bool only_joined(int value) const;  ///< whether concatenations alone read it
  void remember_cut(TensorId from, std::int64_t begin, TensorId part);
  void interleave_fused_projections();
  void regroup(const Node& node, const Shape& target);
  bool fold_bias(const Node& node);
  void find_unit_weight(const Node& node);
  bool matmul_of_groups(const Node& node);
  TensorId with_rank(TensorId tensor, const std::string& name, std::size_t rank);
  std::vector<std::int64_t> spatial_attribute(const Node& node, const char* key, std::size_t count,
                                              std::int64_t otherwise) const;
  bool pads_of(const Node& node, const Shape& input, const Shape& kernel, const Shape& strides, const Shape& dilations,
               Shape& begin, Shape& end);

  const Graph& graph_;
  const InputPlan& plan_;
  std::int64_t batch_, sequence_;
  const std::vector<std::optional<Shape>>* reference_;
  ModelBuilder real_;
  ModelBuilder* builder_;  ///< `real_`, or a scratch builder while only shapes of constants are wanted
  std::vector<Value> values_;
  std::map<int, Shape> root_shape_;
  /// Cuts of a tensor's last dimension: where each part begins.
  std::map<TensorId, std::map<std::int64_t, TensorId>> cuts_;
  struct Sequence {
    std::vector<TensorId> tensors;
    std::vector<std::uint8_t> groups;
    std::optional<std::int64_t> dropped;  ///< dimension of size 1 that each part loses
  };
  std::map<int, Sequence> sequences_;  ///< by the value that SplitToSequence makes
  std::set<std::string> unknown_kinds_;
  std::optional<Error> error_;
  bool scratch_ = false;
};

}  // namespace turnpoint::onnx
