// SPDX-License-Identifier: Apache-2.0
// Turns a program of torch.export into ONNX operators, node by node, so that shapes, the batch, weights and loop
// dimensions are found by the code that reads ONNX files. Operators of ATen have a handler each, whatever overload;
// what has none is refused by name, all of a file at once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/import/tensorflow/onnx_writer.h"
#include "core/import/torch/program.h"

namespace turnpoint::torch_program {

struct Lowered {
  std::string bytes;              ///< an ONNX file
  std::set<std::string> buffers;  ///< initialisers that nothing trains
};

/// Towards zero, the nearest that 64 bits hold: a file may say any number, and C++ leaves open what becomes of others.
std::int64_t whole_number(double number);

class Lowering {
 public:
  Lowering(const Program& program, const std::string& file) : program_(program), file_(file) {}
  Expected<Lowered> run();

 private:
  using Handler = void (Lowering::*)();
  using Names = std::vector<std::string>;
  using Integers = std::vector<std::int64_t>;
  using Attributes = tensorflow::Attributes;
  using Table = std::map<std::string, Handler, std::less<>>;
  static const Table& handlers();
  static void add_layers(Table& table);
  static void add_views(Table& table);
  static void add_pointwise(Table& table);

  // --- frame (lowering.cpp) ---
  void add_inputs();
  void visit(const Graph& graph);
  void visit(const Node& node);
  void fail(std::string what);
  const TensorMeta* meta(const std::string& name) const;
  std::string emit(std::string kind, Names inputs, Attributes attributes = {});
  Names emit_many(std::string kind, Names inputs, Attributes attributes, std::size_t outputs);
  void set(std::size_t output, std::string value);
  void set(std::string value) { set(0, std::move(value)); }

  // --- arguments (arguments.cpp) ---
  const Argument* argument(std::string_view name) const;
  /// Whether it was given and is not None.
  bool has(std::string_view name) const;
  /// ONNX name of a tensor, or of a number as a scalar of the type of the node's first tensor.
  std::string value(std::string_view name);
  std::string value(const Argument& argument);
  std::string tensor(const std::string& name);
  Names tensors(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  double real(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  /// A list of known numbers, `count` times the same where it is one number.
  std::vector<std::int64_t> integers(std::string_view name, std::size_t count = 0);
  std::vector<Number> numbers(std::string_view name);
  std::string scalar(const Number& number);
  std::string scalar(double value, DataType type);
  std::string list(const std::vector<Number>& numbers);
  std::string list(const std::vector<std::int64_t>& numbers);
  const std::string& first_tensor() const;
  std::size_t rank_of(std::string_view argument);
  std::vector<Size> sizes_of(std::string_view argument);
  std::int64_t axis(std::string_view name, std::int64_t otherwise, std::size_t rank);
  DataType result_type() const;

  // --- handlers ---
  void on_nothing();
  void on_identity();
  void on_cast();
  void on_like();
  void on_unary();
  void on_rsqrt();
  void on_square();
  void on_gelu();
  void on_binary();
  void on_scaled_sum();
  void on_reverse_subtraction();
  void on_not_equal();
  void on_where();
  void on_masked_fill();
  void on_addcmul();
  void on_extreme();
  void on_reduce();
  void on_norm_of_all();
  void on_softmax();
  void on_cumsum();
  void on_dropout();
  void on_number();
  void on_sym_size();

  void on_linear();
  void on_matmul();
  void on_addmm();
  void on_einsum();
  void on_convolution();
  void on_batch_norm();
  void on_layer_norm();
  void on_rms_norm();
  void on_group_norm();
  void on_embedding();
  void on_attention();
  void on_recurrent();
  void on_pool();
  void on_adaptive_pool();
  void on_loss();
  void on_weight_norm();

  void on_reshape();
  void on_flatten();
  void on_unflatten();
  void on_transpose();
  void on_permute();
  void on_turn_last();
  void on_expand();
  void on_expand_as();
  void on_unsqueeze();
  void on_squeeze();
  void on_cat();
  void on_stack();
  void on_split();
  void on_unbind();
  void on_slice();
  void on_select();
  void on_index_select();
  void on_index();
  void on_gather();
  void on_arange();
  void on_fill();
  void on_fill_like();
  void on_repeat();
  void on_repeat_interleave();
  void on_pad();
  void on_roll();
  void on_diff();
  void on_triangle();
  void on_resize();
  void on_pixel_shuffle();
  void on_topk();
  void on_inner_graph();

  std::string repeated_heads(const std::string& value, std::string_view argument, std::int64_t times);
  std::string transposed(const std::string& value, std::size_t rank, std::int64_t a, std::int64_t b);
  std::string cut(const std::string& value, std::int64_t axis, std::int64_t begin, std::int64_t end);

  const Program& program_;
  const std::string& file_;
  tensorflow::OnnxWriter out_;
  std::map<std::string, std::string> values_;   ///< tensor of the graph to ONNX value
  std::map<std::string, std::string> numbers_;  ///< computed number to ONNX value
  std::vector<const Graph*> graphs_;            ///< the outermost first
  std::set<std::string> unknown_, buffers_;
  std::set<std::string> trained_;  ///< parameters, and ONNX values that depend on one
  const Node* node_ = nullptr;
  std::string kind_, overload_;  ///< of the current node: "add", "Tensor"
  std::size_t emitted_ = 0;
  std::optional<Error> error_;
};

}  // namespace turnpoint::torch_program
