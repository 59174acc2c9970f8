// SPDX-License-Identifier: Apache-2.0
// What has weights, attention, and pools.
#include <algorithm>

#include "core/import/torch/lowering.h"

namespace turnpoint::torch_program {

void Lowering::add_layers(Table& table) {
  const auto add = [&](Handler handler, std::initializer_list<const char*> kinds) {
    for (const char* kind : kinds) table[kind] = handler;
  };
  add(&Lowering::on_linear, {"linear"});
  add(&Lowering::on_matmul, {"matmul", "mm", "bmm", "mv", "dot"});
  add(&Lowering::on_addmm, {"addmm", "baddbmm"});
  add(&Lowering::on_einsum, {"einsum"});
  add(&Lowering::on_convolution, {"conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
                                  "conv_transpose3d"});
  add(&Lowering::on_batch_norm, {"batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm",
                                 "_native_batch_norm_legit", "_native_batch_norm_legit_functional"});
  add(&Lowering::on_layer_norm, {"layer_norm", "native_layer_norm"});
  add(&Lowering::on_rms_norm, {"rms_norm", "_fused_rms_norm"});
  add(&Lowering::on_group_norm, {"group_norm", "native_group_norm", "instance_norm"});
  add(&Lowering::on_embedding, {"embedding"});
  add(&Lowering::on_attention,
      {"scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
       "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math"});
  add(&Lowering::on_recurrent, {"lstm", "gru", "rnn_tanh", "rnn_relu"});
  add(&Lowering::on_pool, {"max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "avg_pool1d", "avg_pool2d",
                           "avg_pool3d"});
  add(&Lowering::on_adaptive_pool, {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
                                    "_adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"});
  add(&Lowering::on_loss, {"cross_entropy_loss"});
  add(&Lowering::on_weight_norm, {"_weight_norm", "_weight_norm_interface"});
}

std::string Lowering::transposed(const std::string& value, std::size_t rank, std::int64_t a, std::int64_t b) {
  Integers order(rank);
  for (std::size_t d = 0; d < rank; ++d) order[d] = std::int64_t(d);
  if (std::max(a, b) < std::int64_t(rank)) std::swap(order[std::size_t(a)], order[std::size_t(b)]);
  Attributes how;
  how.set("perm", order);
  return emit("Transpose", {value}, std::move(how));
}

void Lowering::on_linear() {
  const auto rank = rank_of("weight");
  const std::string x = value("input");
  std::string w = value("weight");
  if (rank == 2) w = transposed(w, 2, 0, 1);
  std::string y = emit("MatMul", {x, w});
  if (has("bias")) y = emit("Add", {y, value("bias")});
  set(std::move(y));
}

void Lowering::on_matmul() {
  if (node_->inputs.size() < 2) return fail("has fewer than two operands");
  set(emit("MatMul", {value(node_->inputs[0].second), value(node_->inputs[1].second)}));
}

void Lowering::on_addmm() {
  const bool batched = kind_ == "baddbmm";
  const std::string product = emit("MatMul", {value(batched ? "batch1" : "mat1"), value(batched ? "batch2" : "mat2")});
  set(emit("Add", {product, value("self")}));
}

void Lowering::on_einsum() {
  Attributes how;
  const auto* equation = argument("equation");
  if (!equation || equation->text.empty()) return fail("has no equation");
  how.text("equation", equation->text);
  set(emit("Einsum", tensors("tensors"), std::move(how)));
}

void Lowering::on_convolution() {
  const auto rank = rank_of("weight");
  if (rank < 3) return fail("has a weight of fewer than three dimensions");
  const std::size_t count = rank - 2;
  const bool turned = flag("transposed", false) || kind_.starts_with("conv_transpose");
  Attributes how;
  const auto strides = has("stride") ? integers("stride", count) : Integers(count, 1);
  const auto dilations = has("dilation") ? integers("dilation", count) : Integers(count, 1);
  how.set("strides", strides).set("dilations", dilations).set("group", integer("groups", 1));
  const auto* padding = argument("padding");
  if (padding && padding->kind == Argument::Kind::text) {
    how.text("auto_pad", padding->text == "same" ? "SAME_UPPER" : "VALID");
  } else {
    auto pads = has("padding") ? integers("padding", count) : Integers(count, 0);
    pads.insert(pads.end(), pads.begin(), pads.end());
    how.set("pads", Integers(pads));
  }
  if (turned && has("output_padding")) how.set("output_padding", integers("output_padding", count));
  set(emit(turned ? "ConvTranspose" : "Conv", {value("input"), value("weight"), has("bias") ? value("bias") : ""},
           std::move(how)));
}

void Lowering::on_batch_norm() {
  // Without scale and shift, or without statistics, there is nothing that ONNX's operator would need: two plain steps.
  if (!has("weight") || !has("bias") || !has("running_mean") || !has("running_var")) {
    Attributes how;
    if (has("weight") || has("bias")) return fail("with a scale or shift alone, or without statistics, is not supported");
    return set(0, emit("MeanVarianceNormalization", {value("input")}, std::move(how)));
  }
  set(0, emit("BatchNormalization",
              {value("input"), value("weight"), value("bias"), value("running_mean"), value("running_var")}));
}

void Lowering::on_layer_norm() {
  Attributes how;
  const auto dims = numbers("normalized_shape").size();
  how.set("axis", -std::int64_t(std::max<std::size_t>(dims, 1)));
  set(0, emit("LayerNormalization",
              {value("input"), has("weight") ? value("weight") : "", has("bias") ? value("bias") : ""}, std::move(how)));
}

void Lowering::on_rms_norm() {
  Attributes how;
  how.set("axis", -std::int64_t(std::max<std::size_t>(numbers("normalized_shape").size(), 1)));
  set(0, emit("RMSNormalization", {value("input"), has("weight") ? value("weight") : ""}, std::move(how)));
}

void Lowering::on_group_norm() {
  const bool instance = kind_ == "instance_norm";
  Attributes how;
  if (!instance) how.set("num_groups", integer("num_groups", integer("group", 1)));
  set(0, emit(instance ? "InstanceNormalization" : "GroupNormalization",
              {value("input"), has("weight") ? value("weight") : "", has("bias") ? value("bias") : ""}, std::move(how)));
}

void Lowering::on_embedding() { set(emit("Gather", {value("weight"), value("indices")})); }

/// Each head of keys or values repeated for the queries that share it.
std::string Lowering::repeated_heads(const std::string& value, std::string_view argument, std::int64_t times) {
  const auto sizes = sizes_of(argument);
  const std::string axes = list(Integers{2});
  const std::string apart = emit("Unsqueeze", {value, axes});
  const std::string many = emit("Expand", {apart, list(Integers{1, 1, times, 1, 1})});
  return emit("Reshape", {many, list(Integers{0, sizes[1].value * times, -1, sizes[3].value})});
}

/// As ONNX's Attention where there are four dimensions: a mask is added within the softmax and costs nothing of its own.
/// A bias that is trained (of distances between positions) is a tensor like others, and written out.
void Lowering::on_attention() {
  const auto q = sizes_of("query"), k = sizes_of("key");
  if (error_) return;
  const char* mask = has("attn_mask") ? "attn_mask" : has("attn_bias") ? "attn_bias" : nullptr;
  const std::string bias = mask ? value(mask) : std::string();
  const bool learned = mask && trained_.count(bias) > 0;
  if (q.size() == 4 && k.size() == 4 && !learned)
    return set(0, emit("Attention", {value("query"), value("key"), value("value")}));
  const std::size_t rank = k.size();
  if (rank < 2 || q.size() != rank) return fail("queries and keys of different ranks are not supported");
  std::string keys = value("key"), values = value("value");
  if (rank == 4 && q[1].value > k[1].value && k[1].value > 0 && k[3].value > 0) {
    const auto v = sizes_of("value");
    if (error_) return;
    if (v.size() != rank || v[1].value != k[1].value || v[3].value < 1) return fail("its values do not fit the keys");
    keys = repeated_heads(keys, "key", q[1].value / k[1].value);
    values = repeated_heads(values, "value", q[1].value / k[1].value);
  }
  std::string scores = emit("MatMul", {value("query"), transposed(keys, rank, std::int64_t(rank) - 2, std::int64_t(rank) - 1)});
  if (learned) scores = emit("Add", {scores, bias});
  Attributes last;
  last.set("axis", std::int64_t(rank) - 1);
  set(0, emit("MatMul", {emit("Softmax", {scores}, std::move(last)), values}));
}

/// A weight is a direction and a length: g * v / |v|, the length over all dimensions but `dim`.
void Lowering::on_weight_norm() {
  const auto rank = rank_of("v");
  const auto at = axis("dim", 0, rank);
  Integers axes;
  for (std::int64_t d = 0; d < std::int64_t(rank); ++d)
    if (d != at) axes.push_back(d);
  Attributes how;
  how.set("keepdims", std::int64_t{1});
  const std::string length = emit("ReduceL2", {value("v"), list(axes)}, std::move(how));
  set(0, emit("Mul", {value("v"), emit("Div", {value("g"), length})}));
}

/// A layer and direction each have weights of their own; ONNX has one tensor for the directions of a layer. Results:
/// all steps, then the last states.
void Lowering::on_recurrent() {
  const std::string kind = kind_ == "lstm" ? "LSTM" : kind_ == "gru" ? "GRU" : "RNN";
  const std::int64_t gates = kind_ == "lstm" ? 4 : kind_ == "gru" ? 3 : 1, layers = integer("num_layers", 1);
  const auto* given = argument("params");
  const bool biased = flag("has_biases", true), batch_first = flag("batch_first", false);
  const std::int64_t directions = flag("bidirectional", false) ? 2 : 1;
  const std::size_t each = biased ? 4 : 2;
  if (!given || layers < 1 || layers > 4096 || given->tensors.size() != std::size_t(layers * directions) * each)
    return fail("its weights do not fit its layers (packed sequences and projections are not supported)");
  if (rank_of(node_->inputs.front().first) != 3) return fail("needs an input of three dimensions");
  std::string x = tensor(first_tensor());
  Names last;
  if (batch_first) x = transposed(x, 3, 0, 1);
  const std::string axes = list(Integers{1});
  for (std::int64_t layer = 0; layer < layers && !error_; ++layer) {
    std::int64_t hidden = 0, inputs = 0;
    const auto shape_at = [&](std::int64_t direction, std::size_t p) -> Integers {
      const auto* own = meta(given->tensors[std::size_t(layer * directions + direction) * each + p]);
      Integers sizes;
      for (const Size& size : own ? own->sizes : std::vector<Size>()) sizes.push_back(size.value);
      return sizes;
    };
    for (std::int64_t d = 0; d < directions; ++d) {
      const Integers w = shape_at(d, 0), r = shape_at(d, 1);
      if (w.size() != 2 || r.size() != 2 || r[1] < 1 || w[0] != gates * r[1] || r[0] != w[0] || w[1] < 1 ||
          (d > 0 && (r[1] != hidden || w[1] != inputs)))
        return fail("a weight has a wrong shape");
      hidden = r[1];
      inputs = w[1];
    }
    // One tensor for both directions, in place of those of the module.
    const std::string& first = given->tensors[std::size_t(layer * directions) * each];
    const auto path = program_.parameters.find(first);
    const auto joined = [&](const char* what, Integers sizes) {
      const std::string name =
          out_.unique((path == program_.parameters.end() ? first : path->second) + "/" + what);
      out_.initializer(name, {meta(first)->type, std::move(sizes), false, {}, {}});
      return name;
    };
    const std::string w = joined("input", {directions, gates * hidden, inputs});
    const std::string r = joined("state", {directions, gates * hidden, hidden});
    const std::string b = biased ? joined("bias", {directions, 2 * gates * hidden}) : std::string();
    Attributes how;
    how.set("hidden_size", hidden).text("direction", directions == 2 ? "bidirectional" : "forward");
    const Names made = emit_many(kind, {x, w, r, b}, std::move(how), 3);
    last = made;
    // [time, direction, batch, hidden] to [time, batch, direction x hidden].
    x = directions == 1 ? emit("Squeeze", {made[0], axes})
                        : emit("Reshape", {transposed(made[0], 4, 1, 2),
                                           list(Integers{0, 0, directions * hidden})});
  }
  if (error_) return;
  set(0, batch_first ? transposed(x, 3, 0, 1) : x);
  for (std::size_t k = 1; k < node_->outputs.size() && k < last.size(); ++k) set(k, last[k]);
}

void Lowering::on_pool() {
  const bool largest = kind_.starts_with("max");
  const std::size_t count = std::size_t(kind_[kind_.find("pool") + 4] - '0');
  const auto kernel = integers("kernel_size", count);
  // With ceil_mode a window may reach beyond its input, which it then covers as a whole.
  const auto sizes = sizes_of(node_->inputs.empty() ? "" : node_->inputs.front().first);
  if (error_ || kernel.size() != count || sizes.size() < count) return fail("its window does not fit its input");
  bool whole = flag("ceil_mode", false);
  for (std::size_t d = 0; d < count; ++d) {
    const std::int64_t size = sizes[sizes.size() - count + d].value;
    whole = whole && size > 0 && kernel[d] >= size;
  }
  if (whole) return set(0, emit(largest ? "GlobalMaxPool" : "GlobalAveragePool", {tensor(first_tensor())}));
  auto strides = has("stride") ? integers("stride", count) : kernel;
  if (strides.empty()) strides = kernel;
  auto pads = has("padding") ? integers("padding", count) : Integers(count, 0);
  pads.insert(pads.end(), pads.begin(), pads.end());
  Attributes how;
  how.set("kernel_shape", kernel).set("strides", strides).set("pads", Integers(pads));
  how.set("ceil_mode", std::int64_t{flag("ceil_mode", false)});
  if (largest && has("dilation")) how.set("dilations", integers("dilation", count));
  set(0, emit(largest ? "MaxPool" : "AveragePool", {tensor(first_tensor())}, std::move(how)));
}

/// To one position, or to sizes that divide those of the input.
void Lowering::on_adaptive_pool() {
  const bool largest = kind_.find("max") != kind_.npos;
  const auto sizes = sizes_of("self");
  const std::size_t count = std::size_t(kind_[kind_.find("pool") + 4] - '0');
  const auto wanted = integers("output_size", count);
  if (error_) return;
  if (wanted.size() != count || sizes.size() < count) return fail("its sizes do not fit its input");
  if (std::all_of(wanted.begin(), wanted.end(), [](std::int64_t size) { return size == 1; }))
    return set(0, emit(largest ? "GlobalMaxPool" : "GlobalAveragePool", {value("self")}));
  Integers kernel;
  for (std::size_t d = 0; d < count; ++d) {
    const std::int64_t size = sizes[sizes.size() - count + d].value;
    if (size < 1 || wanted[d] < 1 || size % wanted[d] != 0) return fail("to sizes that do not divide those of its input");
    kernel.push_back(size / wanted[d]);
  }
  Attributes how;
  how.set("kernel_shape", kernel).set("strides", kernel);
  set(0, emit(largest ? "MaxPool" : "AveragePool", {value("self")}, std::move(how)));
}

void Lowering::on_loss() {
  Attributes how;
  how.text("reduction", integer("reduction", 1) == 0 ? "none" : integer("reduction", 1) == 2 ? "sum" : "mean");
  set(emit("SoftmaxCrossEntropyLoss", {value("self"), value("target")}, std::move(how)));
}

}  // namespace turnpoint::torch_program
