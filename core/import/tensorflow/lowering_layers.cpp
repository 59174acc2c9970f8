// SPDX-License-Identifier: Apache-2.0
// Convolutions, products, normalisation, pooling and recurrent layers.
#include <algorithm>
#include <array>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

/// The entries of a list of one number per dimension that belong to the spatial dimensions.
std::optional<std::vector<std::int64_t>> Lowering::spatial(std::string_view key, std::size_t rank, bool only_spatial) {
  const auto list = node_->integers(key);
  if (list.empty()) return std::vector<std::int64_t>(rank - 2, 1);
  if (list.size() != rank) return fail("its " + std::string(key) + " do not fit its input"), std::nullopt;
  const std::size_t channel = channels_last() ? rank - 1 : 1;
  if (only_spatial && (list[0] != 1 || list[channel] != 1))
    return fail("its " + std::string(key) + " reach over the batch or the channels, which is not supported"),
           std::nullopt;
  const auto begin = list.begin() + (channels_last() ? 1 : 2);
  return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(rank) - 2);
}

bool Lowering::window_attributes(std::size_t rank, Attributes& attributes) {
  const auto strides = spatial("strides", rank, true), dilations = spatial("dilations", rank, true);
  if (!strides || !dilations) return false;
  attributes.set("strides", *strides).set("dilations", *dilations);
  const auto padding = node_->text("padding", "VALID");
  if (padding == "EXPLICIT") {
    const auto pads = node_->integers("explicit_paddings");
    if (pads.size() != 2 * rank) return fail("its explicit_paddings do not fit its input"), false;
    const std::size_t begin = channels_last() ? 1 : 2;
    std::vector<std::int64_t> list;
    for (const std::size_t side : {0, 1}) {
      for (std::size_t s = 0; s < rank - 2; ++s) list.push_back(pads[2 * (begin + s) + side]);
    }
    attributes.set("pads", list);
  } else {
    attributes.text("auto_pad", padding == "SAME" ? "SAME_UPPER" : "VALID");
  }
  return true;
}

/// Data with channels first, whichever order the file has; empty and failed if its rank is not `rank`.
std::string Lowering::image(std::size_t i, std::size_t rank) {
  Value& x = in(i);
  if (!x.shape) x.shape = Shape(rank, -1);
  if (x.rank() != rank) return fail("needs an input of " + std::to_string(rank) + " dimensions"), "";
  return channels_last() ? first(x) : plain(x);
}

void Lowering::set_image(const std::string& name, std::size_t rank, std::int64_t channels, DataType type) {
  Shape shape(rank, -1);
  shape[channels_last() ? rank - 1 : 1] = channels;
  set(0, tensor(name, shape, type, channels_last()));
}

void Lowering::on_convolution() {
  if (!needs(2)) return;
  const bool three = node_->op == "Conv3D";
  const std::size_t rank = three ? 5 : 4;
  const auto data = image(0, rank);
  const auto weights = kernel(1, three ? std::vector<int>{4, 3, 0, 1, 2} : std::vector<int>{3, 2, 0, 1}, false);
  Attributes attributes;
  if (failed()) return;
  const auto& kernel_shape = *in(1).shape;
  const auto channels = (*in(0).shape)[channels_last() ? rank - 1 : 1], own = kernel_shape[rank - 2];
  if (own > 0 && channels > own && channels % own == 0) attributes.set("group", channels / own);
  if (!dilated_attributes(rank, attributes)) return;
  set_image(emit("Conv", {data, weights}, attributes), rank, kernel_shape[rank - 1], in(0).type);
}

/// Of a convolution between SpaceToBatch and BatchToSpace, which together dilate its kernel.
bool Lowering::dilated_attributes(std::size_t rank, Attributes& attributes) {
  const auto found = dilated_.find(node_->inputs[0].node);
  if (found == dilated_.end()) return window_attributes(rank, attributes);
  attributes.set("dilations", found->second.dilations).text("auto_pad", "VALID");
  return true;
}

void Lowering::on_depthwise() {
  if (!needs(2)) return;
  const auto data = image(0, 4);
  const auto weights = failed() ? std::string() : kernel(1, {2, 3, 0, 1}, true);
  Attributes attributes;
  if (failed()) return;
  const auto& shape = *in(1).shape;
  attributes.set("group", shape[2]);
  if (!dilated_attributes(4, attributes)) return;
  set_image(emit("Conv", {data, weights}, attributes), 4, shape[2] * shape[3], in(0).type);
}

void Lowering::on_transposed_convolution() {
  if (!needs(3)) return;
  const std::size_t rank = node_->op.starts_with("Conv3D") ? 5 : 4;
  const auto data = image(2, rank);
  // The kernel is [h, w, out, in] and the operator wants [in, out, h, w].
  const auto weights =
      failed() ? std::string()
               : kernel(1, rank == 5 ? std::vector<int>{4, 3, 0, 1, 2} : std::vector<int>{3, 2, 0, 1}, false);
  const auto strides = failed() ? std::nullopt : spatial("strides", rank, true);
  const auto dilations = failed() ? std::nullopt : spatial("dilations", rank, true);
  if (!strides || !dilations) return;
  Attributes attributes;
  attributes.set("strides", *strides).set("dilations", *dilations);
  const auto padding = node_->text("padding", "VALID");
  if (padding == "SAME") attributes.text("auto_pad", "SAME_UPPER");
  if (const auto sizes = constants(0); sizes && sizes->size() == rank) {
    const auto begin = sizes->begin() + (channels_last() ? 1 : 2);
    attributes.set("output_shape", std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(rank) - 2));
  } else if (padding == "EXPLICIT") {
    return fail("explicit paddings need a constant output size");
  }
  set_image(emit("ConvTranspose", {data, weights}, attributes), rank, (*in(1).shape)[rank - 2], in(2).type);
}

void Lowering::on_matmul() {
  if (!needs(2)) return;
  Names operands;
  static constexpr std::array<const char*, 2> kFlags = {"transpose_a", "transpose_b"};
  for (std::size_t i = 0; i < 2; ++i) {
    auto name = plain(i);
    if (failed()) return;
    if (node_->flag(kFlags[i], false)) name = emit("Transpose", {name}, Attributes().set("perm", {1, 0}), kFlags[i]);
    operands.push_back(name);
  }
  Shape shape{-1, -1};
  if (const auto& a = in(0).shape; a && a->size() == 2) shape[0] = (*a)[node_->flag("transpose_a", false) ? 1 : 0];
  if (const auto& b = in(1).shape; b && b->size() == 2) shape[1] = (*b)[node_->flag("transpose_b", false) ? 0 : 1];
  set(0, tensor(emit("MatMul", operands), shape, in(0).type));
}

void Lowering::on_batch_matmul() {
  if (!needs(2)) return;
  Names operands;
  static constexpr std::array<const char*, 2> kFlags = {"adj_x", "adj_y"};
  for (std::size_t i = 0; i < 2; ++i) {
    auto name = plain(i);
    if (failed()) return;
    if (node_->flag(kFlags[i], false)) {
      if (!in(i).shape || in(i).rank() < 2)
        return fail("transposes an operand whose number of dimensions is not known");
      std::vector<std::int64_t> order(in(i).rank());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(d);
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      name = emit("Transpose", {name}, Attributes().set("perm", order), kFlags[i]);
    }
    operands.push_back(name);
  }
  MaybeShape shape;
  if (in(0).shape && in(1).shape) shape = Shape(std::max(in(0).rank(), in(1).rank()), -1);
  set(0, tensor(emit("MatMul", operands), shape, in(0).type));
}

void Lowering::on_einsum() {
  if (!needs(count()) || count() == 0) return;
  Names operands;
  for (std::size_t i = 0; i < count(); ++i) operands.push_back(plain(i));
  const auto equation = node_->text("equation", "");
  const auto arrow = equation.find("->");
  MaybeShape shape;
  if (arrow != std::string::npos && equation.find('.') == std::string::npos)
    shape = Shape(equation.size() - arrow - 2, -1);
  set(0, tensor(emit("Einsum", operands, Attributes().text("equation", equation)), shape, in(0).type));
}

void Lowering::on_bias() {
  if (!needs(2)) return;
  Value& x = in(0);
  const bool first_order = x.channels_first && channels_last();
  const auto bias = plain(1);
  if (failed()) return;
  // Into the convolution itself where nobody else reads the sum without the bias.
  const auto* maker = &graph_.nodes[static_cast<std::size_t>(node_->inputs[0].node)];
  auto* producer = out_.producer(x.name);
  if (producer && producer->kind.starts_with("Conv") && producer->inputs.size() == 2 && readers(*maker) == 1) {
    producer->inputs.push_back(bias);
    return set(0, x);
  }
  if (!first_order && channels_last()) return set(0, tensor(emit("Add", {plain(x), bias}), x.shape, x.type));
  if (x.rank() < 2) return fail("needs an input whose number of dimensions is known");
  std::vector<std::int64_t> axes;
  for (std::size_t d = 2; d < x.rank(); ++d) axes.push_back(static_cast<std::int64_t>(d) - 1);
  const auto wide = axes.empty() ? bias : emit("Unsqueeze", {bias, integers("axes", axes)}, {}, "per_channel");
  set(0, tensor(emit("Add", {first_order ? x.name : plain(x), wide}), x.shape, x.type, first_order));
}

void Lowering::on_batch_norm() {
  if (!needs(3)) return;
  const std::size_t rank = in(0).shape ? std::max<std::size_t>(in(0).rank(), 3) : 4;
  const auto data = image(0, rank);
  if (failed()) return;
  const auto type = in(0).type;
  const auto channels = (*in(0).shape)[channels_last() ? rank - 1 : 1];
  const bool weights = in(1).kind == Value::Kind::weight;
  if (!weights) {
    // Scale and offset that are computed: layer normalisation written with this operator, one "channel" per sample.
    const auto name = emit("LayerNormalization", {data}, Attributes().set("axis", std::int64_t{2}));
    return set(0, tensor(name, in(0).shape, type, channels_last()));
  }
  normalise(data, rank, channels, channels_last());
}

/// x with scale, shift and, where they are known, running mean and variance as operands 1 to 4.
void Lowering::normalise(const std::string& data, std::size_t rank, std::int64_t channels, bool turned) {
  Names operands{data, plain(1), plain(2)};
  static constexpr std::array<const char*, 2> kStatistics = {"moving_mean", "moving_variance"};
  for (std::size_t k = 0; k < 2; ++k) {
    const bool given = has(3 + k) && in(3 + k).shape && in(3 + k).rank() == 1 && in(3 + k).shape->front() != 0;
    if (given) {
      operands.push_back(plain(3 + k));
      continue;
    }
    // In training the running statistics are updated beside the graph; they are state all the same.
    const Shape own = in(1).shape ? *in(1).shape : Shape{channels};
    const auto name = out_.unique(node_->name + "/" + kStatistics[k]);
    if (own.size() != 1 || own[0] < 1) return fail("its number of channels is not known");
    out_.initializer(name, {DataType::f32, own, false, {}, {}});
    operands.push_back(name);
  }
  if (failed()) return;
  set(0, tensor(emit("BatchNormalization", operands), in(0).shape, in(0).type, turned && rank > 2));
}

void Lowering::on_folded_batch_norm() {
  if (!needs(3)) return;
  Value& x = in(0);
  if (!x.shape && !spatial_last_) return fail("needs an input whose number of dimensions is known");
  if (!x.shape) x.shape = Shape(4, -1);
  const bool turned = x.rank() > 2 && node_->axis == -1;
  if (x.rank() < 2) return fail("needs an input of at least two dimensions");
  const auto data = turned ? first(x) : plain(x);
  if (!failed()) normalise(data, x.rank(), node_->axis == 1 ? x.shape->at(1) : x.shape->back(), turned);
}

void Lowering::on_folded_layer_norm() {
  if (!needs(3)) return;
  Value& x = in(0);
  const Names operands{plain(x), plain(1), plain(2)};
  if (failed()) return;
  set(0, tensor(emit("LayerNormalization", operands, Attributes().set("axis", node_->axis)), x.shape, x.type));
}

void Lowering::on_folded_activation() {
  if (!needs(1)) return;
  Value& x = in(0);
  const bool first_order = x.kind == Value::Kind::tensor && x.channels_first;
  const auto name = first_order ? x.name : plain(x);
  if (!failed()) set(0, tensor(emit(node_->op == kGelu ? "Gelu" : "Swish", {name}), x.shape, x.type, first_order));
}

void Lowering::on_pool() {
  if (!needs(1)) return;
  const std::size_t rank = node_->op.ends_with("3D") ? 5 : 4;
  const auto data = image(0, rank);
  const auto window = failed() ? std::nullopt : spatial("ksize", rank, true);
  Attributes attributes;
  if (!window || !window_attributes(rank, attributes)) return;
  attributes.set("kernel_shape", *window);
  const bool average = node_->op.starts_with("Avg");
  const auto channels = (*in(0).shape)[channels_last() ? rank - 1 : 1];
  set_image(emit(average ? "AveragePool" : "MaxPool", {data}, attributes), rank, channels, in(0).type);
}

void Lowering::on_resize() {
  if (!needs(2)) return;
  Value& x = in(0);
  if (!x.shape) x.shape = Shape(4, -1);
  if (x.rank() != 4) return fail("needs an input of four dimensions");
  const auto data = first(x);
  const auto outer =
      emit("Slice", {emit("Shape", {data}, {}, "shape"), integers("from", {0}), integers("to", {2})}, {}, "outer");
  const auto size = emit("Cast", {plain(1)}, Attributes().set("to", std::int64_t{7}), "size");
  const auto sizes = emit("Concat", {outer, size}, Attributes().set("axis", std::int64_t{0}), "sizes");
  const Shape shape{-1, -1, -1, x.shape->back()};
  set(0, tensor(emit("Resize", {data, "", "", sizes}), shape, x.type, true));
}

void Lowering::on_space_depth() {
  if (!needs(1)) return;
  const auto data = image(0, 4);
  const auto block = node_->integer("block_size", 0);
  if (failed() || block < 1 || block > 1024) return fail("its block size is out of range");
  auto channels = (*in(0).shape)[channels_last() ? 3 : 1];
  if (channels > 0 && channels < (std::int64_t{1} << 40))
    channels = node_->op == "SpaceToDepth" ? channels * block * block : channels / (block * block);
  const auto y = emit(node_->op, {data}, Attributes().set("blocksize", block));
  set_image(y, 4, channels, in(0).type);
}

/// Space to batch, a convolution, batch to space: one dilated convolution. What the first pads to make whole blocks the
/// last crops again, so that the convolution's own padding is the difference; it is written when both are known.
void Lowering::on_space_to_batch() {
  if (!needs(3)) return;
  const auto block = constants(1);
  const auto& readers = readers_[static_cast<std::size_t>(index_)];
  const FlatNode* convolution =
      readers.size() == 1 ? &graph_.nodes[static_cast<std::size_t>(readers[0].node)] : nullptr;
  const bool fits = convolution && readers[0].port == 0 && block && !block->empty() && block->size() <= 2 &&
                    (convolution->op == "Conv2D" || convolution->op == "DepthwiseConv2dNative");
  const auto& after = convolution ? readers_[static_cast<std::size_t>(readers[0].node)] : readers;
  if (!fits || after.size() != 1 || graph_.nodes[static_cast<std::size_t>(after[0].node)].op != "BatchToSpaceND")
    return fail("is supported only around a convolution");
  Value& x = in(0);
  if (!x.shape) x.shape = Shape(4, -1);
  if (x.rank() != 4) return fail("needs an input of four dimensions");
  Dilation dilation;
  dilation.dilations = *block;
  for (std::size_t s = 0; s < block->size(); ++s) dilation.axes.push_back(static_cast<std::int64_t>(s) + 2);
  dilation.dilations.resize(2, 1);
  for (const auto d : dilation.dilations) {
    if (d < 1 || d > (1 << 20)) return fail("its block size is out of range");
  }
  dilation.data = first(x);
  dilation.paddings = plain(2);
  dilation.padded = out_.unique(node_->name);
  if (failed()) return;
  set(0, tensor(dilation.padded, x.shape, x.type, true));
  dilated_[index_] = std::move(dilation);
}

void Lowering::on_batch_to_space() {
  if (!needs(3)) return;
  const auto& convolution = graph_.nodes[static_cast<std::size_t>(node_->inputs[0].node)];
  const auto found = convolution.inputs.empty() ? dilated_.end() : dilated_.find(convolution.inputs[0].node);
  if (found == dilated_.end() || !in(0).channels_first) return fail("is supported only around a convolution");
  const auto& [dilations, axes, data, paddings, padded] = found->second;
  const auto difference = emit("Sub", {paddings, plain(2)}, {}, "padding");
  const auto sides = emit("Transpose", {difference}, Attributes().set("perm", {1, 0}), "sides");
  const auto pads = emit("Reshape", {sides, integers("flat", {-1})}, {}, "pads");
  if (failed()) return;
  out_.node({"Pad", "", padded, {data, pads, "", integers("axes", axes)}, {padded}, {}});
  set(0, in(0));
}

void Lowering::add_layers(Table& table) {
  add_recurrent(table);
  const auto add = [&](Handler handler, std::initializer_list<const char*> ops) {
    for (const char* op : ops) table[op] = handler;
  };
  add(&Lowering::on_convolution, {"Conv2D", "Conv3D"});
  add(&Lowering::on_depthwise, {"DepthwiseConv2dNative"});
  add(&Lowering::on_transposed_convolution, {"Conv2DBackpropInput", "Conv3DBackpropInputV2"});
  add(&Lowering::on_matmul, {"MatMul", "SparseMatMul"});
  add(&Lowering::on_batch_matmul, {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"});
  add(&Lowering::on_einsum, {"Einsum"});
  add(&Lowering::on_bias, {"BiasAdd", "BiasAddV1"});
  add(&Lowering::on_batch_norm, {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"});
  table[std::string(kBatchNorm)] = &Lowering::on_folded_batch_norm;
  table[std::string(kLayerNorm)] = &Lowering::on_folded_layer_norm;
  table[std::string(kGelu)] = table[std::string(kSwish)] = &Lowering::on_folded_activation;
  add(&Lowering::on_pool, {"MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax"});
  add(&Lowering::on_resize, {"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"});
  add(&Lowering::on_space_depth, {"SpaceToDepth", "DepthToSpace"});
  add(&Lowering::on_space_to_batch, {"SpaceToBatchND"});
  add(&Lowering::on_batch_to_space, {"BatchToSpaceND"});
}

}  // namespace turnpoint::tensorflow
