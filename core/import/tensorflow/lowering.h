// SPDX-License-Identifier: Apache-2.0
// Turns a flattened TensorFlow graph into ONNX operators, node by node.
//
// TensorFlow keeps channels last (NHWC), the model's operators have them first. A transpose around every convolution
// would double the graph, so each value remembers in which of the two orders it is written: what works element by
// element passes the order on, and a transpose appears only where an operator needs the order as the file has it (a
// flatten before a dense layer). Weights are written in the order their operator wants.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/import/tensorflow/flat_graph.h"
#include "core/import/tensorflow/onnx_writer.h"

namespace turnpoint::tensorflow {

struct Lowered {
  std::string bytes;  ///< an ONNX file
  std::vector<std::string> warnings;
};

class Lowering {
 public:
  explicit Lowering(const FlatGraph& graph);
  Expected<Lowered> run();

 private:
  /// What an output of a node is.
  struct Value {
    enum class Kind { none, tensor, weight };
    Kind kind = Kind::none;
    std::string name;             ///< tensors: the ONNX value, in the order `channels_first` says
    std::string turned;           ///< the same in the other order, once someone needed it
    bool channels_first = false;  ///< written as NCHW while the file means NHWC
    int weight = -1;              ///< weights and constants: index into weights_
    DataType type = DataType::f32;
    MaybeShape shape;  ///< as the file means it
    std::size_t rank() const { return shape ? shape->size() : 0; }
  };
  /// A variable or constant, written once someone reads it, in the form the first reader wants.
  struct Weight {
    std::string name;
    TensorValue tensor;  ///< values of small constants
    bool shaped = true;
    bool trainable = false;                    ///< a variable, or a constant of a frozen graph
    std::map<std::string, std::string> forms;  ///< form -> ONNX value
  };
  using Handler = void (Lowering::*)();
  using Names = std::vector<std::string>;
  using Table = std::map<std::string, Handler, std::less<>>;
  static const Table& handlers();
  static void add_layers(Table& table);
  static void add_recurrent(Table& table);
  static void add_views(Table& table);
  static void add_shapes(Table& table);
  static void add_pointwise(Table& table);
  static void add_control(Table& table);

  // --- frame (lowering.cpp) ---
  void visit(int index);
  void fail(std::string what);
  bool failed() const { return error_.has_value(); }
  std::size_t count() const { return node_->inputs.size(); }
  bool has(std::size_t i) const;
  Value& in(std::size_t i);
  bool needs(std::size_t inputs);
  void set(std::size_t port, Value value);
  Value tensor(std::string name, MaybeShape shape, DataType type, bool channels_first = false) const;
  /// Adds an ONNX node named after the current one and returns the name of its output.
  std::string emit(std::string kind, Names inputs, Attributes attributes = {}, std::string_view suffix = {},
                   std::string domain = {});
  std::string integers(std::string_view suffix, const std::vector<std::int64_t>& values);
  std::string scalar(std::string_view suffix, std::int64_t value);
  void warn_once(const std::string& text);

  // --- operands (lowering_operands.cpp) ---
  std::string plain(Value& value);  ///< ONNX name in the file's order
  std::string plain(std::size_t i) { return plain(in(i)); }
  std::string first(Value& value);  ///< ONNX name with channels first; NHWC of known rank only
  std::string write_weight(Weight& weight, const std::string& form, const std::vector<int>& order, Shape shape);
  std::string kernel(std::size_t i, const std::vector<int>& order, bool depthwise);
  const TensorValue* constant(std::size_t i) const;
  std::optional<std::vector<std::int64_t>> constants(std::size_t i) const;  ///< whole numbers known from the file
  void set_constant(std::vector<std::int64_t> values, bool is_scalar, DataType type);
  int add_weight(std::string name, TensorValue tensor, bool shaped, bool trainable);
  static std::vector<int> to_first(std::size_t rank);
  static std::vector<int> to_last(std::size_t rank);
  static Shape permuted(const Shape& shape, const std::vector<int>& order);
  static MaybeShape broadcast(const MaybeShape& a, const MaybeShape& b);
  bool channels_last() const;  ///< of the current node's data_format
  std::optional<std::int64_t> axis_of(std::size_t i, const Value& x);
  /// Names of operands for an element-wise function in one common order; sets `channels_first`.
  Names aligned(const std::vector<std::size_t>& operands, bool& channels_first, MaybeShape& shape);
  std::size_t readers(const FlatNode& node) const;

  // --- sources (lowering_sources.cpp) ---
  void on_const();
  void on_variable();
  void on_placeholder();
  void on_missing();
  void on_unknown();
  void input_node();
  MaybeShape inferred_placeholder(bool& sequence, bool& guessed) const;
  bool reaches_spatial(int index) const;
  void missing_weight(const Value& value);

  // --- handlers ---
  void on_identity();
  void on_identity_n();
  void on_unary();
  void on_binary();
  void on_square();
  void on_squared_difference();
  void on_not_equal();
  void on_select();
  void on_cast();
  void on_softmax();
  void on_cross_entropy();
  void on_sparse_cross_entropy();
  void on_reduce();
  void on_arg();
  void on_convolution();
  void on_depthwise();
  void on_transposed_convolution();
  void on_matmul();
  void on_batch_matmul();
  void on_einsum();
  void on_bias();
  void on_batch_norm();
  void on_folded_batch_norm();
  void on_folded_layer_norm();
  void on_folded_activation();
  void on_pool();
  void on_resize();
  void on_space_depth();
  void on_space_to_batch();
  void on_batch_to_space();
  void on_block_lstm();
  void on_folded_recurrent();
  void on_last_step();
  void on_reshape();
  void on_flatten();
  void on_squeeze();
  void on_expand_dims();
  void on_transpose();
  void on_concat();
  void on_pack();
  void on_unpack();
  void on_split();
  void on_slice();
  void on_strided_slice();
  void on_pad();
  void on_tile();
  void on_broadcast_to();
  void on_shape();
  void on_rank();
  void on_size();
  void on_fill();
  void on_like();
  void on_random();
  void on_range();
  void on_gather();
  void on_gather_nd();
  void on_one_hot();
  void on_top_k();
  void on_reverse();
  void on_switch();
  void on_merge();
  void on_none();
  void on_array_scatter();
  void on_array_read();
  void on_array_write();
  void on_array_gather();
  void on_list_from();
  void on_list_item();
  void on_list_set();
  void on_list_stack();

  bool dropout();
  void set_dropout(std::size_t i);
  bool fold_integers(std::string_view kind);
  bool fold_concat(const std::vector<std::size_t>& parts);
  bool fold_strided(const std::optional<std::vector<std::int64_t>>& begin,
                    const std::optional<std::vector<std::int64_t>>& end,
                    const std::optional<std::vector<std::int64_t>>& steps, std::size_t entries, std::uint64_t shrink);
  std::string bound(std::size_t i, std::size_t d, const char* name, std::int64_t offset);
  void cut(Value& x, std::int64_t axis, std::int64_t parts, const std::string& sizes, bool squeeze);
  void take_first(Value& array);
  void make_array(Value& element);
  bool random_mask(Edge edge, int depth) const;
  std::optional<std::vector<std::int64_t>> spatial(std::string_view key, std::size_t rank, bool only_spatial);
  bool window_attributes(std::size_t rank, Attributes& attributes);
  bool dilated_attributes(std::size_t rank, Attributes& attributes);
  void normalise(const std::string& data, std::size_t rank, std::int64_t channels, bool turned);
  std::string image(std::size_t i, std::size_t rank);
  void set_image(const std::string& name, std::size_t rank, std::int64_t channels, DataType type);

  const FlatGraph& graph_;
  OnnxWriter out_;
  std::vector<std::vector<Value>> values_;
  std::deque<Weight> weights_;
  std::vector<std::vector<Edge>> readers_;  ///< per node: (reader, input slot)
  std::map<std::string, int, std::less<>> weight_names_;
  /// A SpaceToBatchND node that dilates a convolution.
  struct Dilation {
    std::vector<std::int64_t> dilations, axes;
    std::string data, paddings, padded;  ///< ONNX values; `padded` is what the convolution reads
  };
  std::map<int, Dilation> dilated_;
  const FlatNode* node_ = nullptr;
  int index_ = -1;
  bool frozen_ = true;         ///< no variables: floating-point constants are the weights
  bool spatial_last_ = false;  ///< some live operator works on NHWC images
  std::vector<std::string> warnings_;
  std::optional<Error> error_;
};

}  // namespace turnpoint::tensorflow
