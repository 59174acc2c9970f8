// SPDX-License-Identifier: Apache-2.0
// Models and plans made by hand for tests of views: no importer, no search, figures plausible but invented.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cost/layout.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::fixture {

inline constexpr std::int64_t kBatch = 64, kSequence = 128, kChannels = 1024, kHidden = 4096, kVocabulary = 32768,
                              kHeads = 16;

/// Adds operators one after the other; every operator has one output whose dimensions are given by name.
class Maker {
 public:
  explicit Maker(std::string name) {
    model_->name = std::move(name);
    model_->source = "fixture";
    model_->batch = kBatch;
  }

  /// `dims` are the loop dimensions, `out` the indices of those the output walks. Inputs walk dims of the same name.
  TensorId add(const std::string& name, const std::string& scope, OperatorKind kind, const std::string& detail,
               std::vector<LoopDimension> dims, const std::vector<int>& out, const std::vector<TensorId>& inputs,
               std::int64_t parameters = 0) {
    Operator op;
    op.name = name, op.scope = scope, op.kind = kind, op.detail = detail, op.dims = std::move(dims);
    const OperatorId id = model_->operators.next_id();
    for (const TensorId input : inputs) op.inputs.push_back(access(op, input));
    Tensor tensor;
    tensor.name = name + ":0", tensor.producer = id;
    Access output;
    for (const int d : out) {
      tensor.shape.push_back(op.dims[static_cast<std::size_t>(d)].size);
      tensor.dims.push_back(op.dims[static_cast<std::size_t>(d)].name);
      output.walks.push_back({static_cast<std::uint8_t>(d)});
    }
    output.tensor = model_->tensors.next_id();
    model_->tensors.push_back(std::move(tensor));
    op.outputs.push_back(output);
    op.forward_flop = 1e9;
    model_->parameters += parameters;
    model_->operators.push_back(std::move(op));
    return output.tensor;
  }

  ModelPtr finish() {
    model_->uses.resize(model_->tensors.size());
    for (std::uint32_t i = 0; i < model_->operators.size(); ++i)
      for (std::uint32_t k = 0; k < model_->operators[OperatorId(i)].inputs.size(); ++k)
        model_->uses[model_->operators[OperatorId(i)].inputs[k].tensor].push_back({OperatorId(i), k});
    return model_;
  }

 private:
  std::shared_ptr<Model> model_ = std::make_shared<Model>();

  Access access(const Operator& op, TensorId tensor) const {
    Access access;
    access.tensor = tensor;
    for (const DimName name : model_->tensors[tensor].dims) {
      std::vector<std::uint8_t> walk;
      for (std::uint8_t d = 0; d < op.dims.size() && walk.empty(); ++d) {
        const bool same = op.dims[d].name == name ||
                          (op.dims[d].name == DimName::in_channel && name == DimName::channel) ||
                          (op.dims[d].name == DimName::channel && name == DimName::out_channel) ||
                          (op.dims[d].name == DimName::in_channel && name == DimName::out_channel);
        if (same) walk.push_back(d);
      }
      access.walks.push_back(walk);
    }
    return access;
  }
};

inline LoopDimension dim(DimName name, std::int64_t size, DimRole role = DimRole::parallel) {
  return {name, role, size, true};
}

/// 24 layers of 13 operators with scopes "layerN", "layerN/attention", "layerN/mlp", an embedding in front, a head
/// behind.
inline ModelPtr transformer(int layers = 24) {
  Maker make("Transformer 1.3B");
  const auto B = dim(DimName::batch, kBatch), S = dim(DimName::sequence, kSequence),
             C = dim(DimName::channel, kChannels), H = dim(DimName::head, kHeads),
             V = dim(DimName::vocabulary, kVocabulary);
  const auto in = [](std::int64_t n) { return dim(DimName::in_channel, n, DimRole::reduction); };
  const auto out = [](std::int64_t n) { return dim(DimName::out_channel, n); };
  TensorId x = make.add("tokens", "", OperatorKind::input, "Input", {B, S}, {0, 1}, {});
  x = make.add("embed", "", OperatorKind::embedding, "Gather",
               {B, S, C, dim(DimName::vocabulary, kVocabulary, DimRole::reduction)}, {0, 1, 2}, {x});
  for (int l = 0; l < layers; ++l) {
    const std::string layer = "layer" + std::to_string(l), attention = layer + "/attention", mlp = layer + "/mlp";
    const TensorId ln1 =
        make.add(layer + "/ln1", layer, OperatorKind::normalisation, "LayerNorm", {B, S, C}, {0, 1, 2}, {x});
    std::vector<TensorId> heads;
    for (const char* name : {"q", "k", "v"})
      heads.push_back(make.add(attention + "/" + name, attention, OperatorKind::matmul, "MatMul",
                               {B, S, H, in(kChannels)}, {0, 1, 2}, {ln1}));
    const TensorId scores = make.add(attention + "/softmax", attention, OperatorKind::softmax, "Softmax", {B, S, H},
                                     {0, 1, 2}, {heads[0], heads[1]});
    const TensorId context = make.add(attention + "/context", attention, OperatorKind::matmul, "MatMul", {B, S, H},
                                      {0, 1, 2}, {scores, heads[2]});
    const TensorId o =
        make.add(attention + "/out", attention, OperatorKind::matmul, "MatMul",
                 {B, S, out(kChannels), dim(DimName::head, kHeads, DimRole::reduction)}, {0, 1, 2}, {context});
    const TensorId add1 =
        make.add(layer + "/add1", layer, OperatorKind::elementwise, "Add", {B, S, C}, {0, 1, 2}, {x, o});
    const TensorId ln2 =
        make.add(layer + "/ln2", layer, OperatorKind::normalisation, "LayerNorm", {B, S, C}, {0, 1, 2}, {add1});
    const TensorId fc1 = make.add(mlp + "/fc1", mlp, OperatorKind::matmul, "MatMul",
                                  {B, S, out(kHidden), in(kChannels)}, {0, 1, 2}, {ln2});
    const TensorId gelu = make.add(mlp + "/gelu", mlp, OperatorKind::elementwise, "Gelu",
                                   {B, S, dim(DimName::channel, kHidden)}, {0, 1, 2}, {fc1});
    const TensorId fc2 = make.add(mlp + "/fc2", mlp, OperatorKind::matmul, "MatMul",
                                  {B, S, out(kChannels), in(kHidden)}, {0, 1, 2}, {gelu});
    x = make.add(layer + "/add2", layer, OperatorKind::elementwise, "Add", {B, S, C}, {0, 1, 2}, {add1, fc2});
  }
  x = make.add("lm_head", "", OperatorKind::matmul, "MatMul", {B, S, V, in(kChannels)}, {0, 1, 2}, {x});
  make.add("loss", "", OperatorKind::cross_entropy, "CrossEntropy", {B, S, V}, {0}, {x});
  return make.finish();
}

/// A residual network as an ONNX export names it: no scopes, long '/'-separated names, 16 blocks, 200 operators at 22.
inline ModelPtr convolutional(int blocks = 22) {
  Maker make("ResNeXt like");
  const auto B = dim(DimName::batch, kBatch);
  const auto conv = [&](std::int64_t i, std::int64_t o) {
    return std::vector<LoopDimension>{B, dim(DimName::out_channel, o), dim(DimName::height, 56, DimRole::window),
                                      dim(DimName::in_channel, i, DimRole::reduction)};
  };
  const auto plain = [&](std::int64_t c) {
    return std::vector<LoopDimension>{B, dim(DimName::channel, c), dim(DimName::height, 56, DimRole::window)};
  };
  TensorId x = make.add("/input", "", OperatorKind::input, "Input", plain(64), {0, 1, 2}, {});
  x = make.add("/features/stem/conv0/Conv", "", OperatorKind::convolution, "Conv", conv(64, 64), {0, 1, 2}, {x});
  x = make.add("/features/stem/norm0/BatchNormalization", "", OperatorKind::batch_normalisation, "BatchNormalization",
               plain(64), {0, 1, 2}, {x});
  for (int b = 0; b < blocks; ++b) {
    const std::string path =
        "/features/stage" + std::to_string(1 + b / 6) + "/block_with_a_rather_long_name." + std::to_string(b % 6) + "/";
    const std::int64_t channels = 64 << (b / 6);
    TensorId y = x, skip = x;
    for (int c = 1; c <= 2; ++c) {
      const std::string n = std::to_string(c);
      y = make.add(path + "conv" + n + "/Conv", "", OperatorKind::convolution, "Conv", conv(channels, channels),
                   {0, 1, 2}, {y});
      y = make.add(path + "bn" + n + "/BatchNormalization", "", OperatorKind::batch_normalisation, "BatchNormalization",
                   plain(channels), {0, 1, 2}, {y});
      y = make.add(path + "relu/Relu_" + n, "", OperatorKind::elementwise, "Relu", plain(channels), {0, 1, 2}, {y});
    }
    if (b % 6 == 0)
      skip = make.add(path + "downsample/downsample.0/Conv", "", OperatorKind::convolution, "Conv",
                      conv(channels, channels), {0, 1, 2}, {x});
    y = make.add(path + "conv3/Conv", "", OperatorKind::convolution, "Conv", conv(channels, channels), {0, 1, 2}, {y});
    y = make.add(path + "Add", "", OperatorKind::elementwise, "Add", plain(channels), {0, 1, 2}, {skip, y});
    x = make.add(path + "relu/Relu_3", "", OperatorKind::elementwise, "Relu", plain(channels), {0, 1, 2}, {y});
  }
  x = make.add("/classifier/global_average_pool/GlobalAveragePool", "", OperatorKind::pooling, "GlobalAveragePool",
               plain(512), {0, 1}, {x});
  x = make.add("/classifier/fc/Gemm", "", OperatorKind::matmul, "Gemm",
               {B, dim(DimName::out_channel, 1000), dim(DimName::in_channel, 512, DimRole::reduction)}, {0, 1}, {x});
  make.add("/loss", "", OperatorKind::cross_entropy, "CrossEntropy", {B, dim(DimName::vocabulary, 1000)}, {0}, {x});
  return make.finish();
}

/// A chain without scopes or meaningful names.
inline ModelPtr chain(int operators) {
  Maker make("chain");
  const std::vector<LoopDimension> dims{dim(DimName::batch, kBatch), dim(DimName::channel, kChannels)};
  TensorId x = make.add("Input_0", "", OperatorKind::input, "Input", dims, {0, 1}, {});
  for (int i = 1; i < operators; ++i)
    x = make.add("Relu_" + std::to_string(i), "", OperatorKind::elementwise, "Relu", dims, {0, 1}, {x});
  return make.finish();
}

inline Mesh mesh() {
  Mesh mesh;
  mesh.axes = {{"y", 2, kInterNode}, {"x", 4, kIntraNode}, {"z", 2, kIntraNode}};
  return mesh;
}

inline int find_dim(const Operator& op, DimName name) {
  for (std::size_t d = 0; d < op.dims.size(); ++d)
    if (op.dims[d].name == name) return static_cast<int>(d);
  return -1;
}

/// Axes y and x on the batch; z goes where `variant` says: 0 makes every second layer of the transformer different, 1
/// is data parallel, 2 makes all its layers equal. Reshardings wherever layouts differ.
inline std::shared_ptr<Plan> plan(const Model& model, int variant = 0) {
  auto plan = std::make_shared<Plan>();
  plan->mesh = mesh();
  const int axes = plan->mesh.count();
  for (std::uint32_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    PlanOperator split;
    split.op = OperatorId(i);
    const int batch = find_dim(op, DimName::batch);
    split.split.axis[0] = split.split.axis[1] = static_cast<std::int8_t>(batch);
    int last = batch;
    for (const DimName wish : {DimName::vocabulary, DimName::head, DimName::out_channel, DimName::in_channel}) {
      if (variant == 1 || find_dim(op, wish) < 0) continue;
      last = find_dim(op, wish);
      break;
    }
    if (op.name.find("fc2") != std::string::npos && variant != 1) last = find_dim(op, DimName::in_channel);
    if (op.detail == "Gelu" && variant != 1) last = find_dim(op, DimName::channel);
    if (op.detail == "LayerNorm" && i % 2 == 0 && variant == 0) last = find_dim(op, DimName::sequence);
    if (op.detail == "BatchNormalization" && variant == 0) last = Configuration::kRepeat;
    if (op.kind == OperatorKind::embedding && variant == 2) last = batch;
    split.split.axis[2] = static_cast<std::int8_t>(last);
    const bool heavy = op.kind == OperatorKind::matmul || op.kind == OperatorKind::convolution;
    split.cost.compute[0] = op.kind == OperatorKind::input ? 0
                            : heavy                        ? 2.9e-3 + 1e-4 * static_cast<double>(op.dims.size() % 3)
                                                           : 1.1e-4;
    split.cost.compute[1] = split.cost.compute[0] * 2;
    split.cost.network[0] = heavy ? 5.1e-4 : 0;
    split.cost.memory[0] = heavy ? 32 << 20 : 0;
    split.cost.memory[3] = 32 << 20;
    plan->cost += split.cost;
    plan->operators.push_back(std::move(split));
  }
  for (std::uint32_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    for (const Access& input : op.inputs) {
      const Tensor& tensor = model.tensors[input.tensor];
      if (!tensor.producer.valid()) continue;
      const Operator& producer = model.operators[tensor.producer];
      PlanReshard reshard;
      reshard.tensor = input.tensor, reshard.producer = tensor.producer, reshard.consumer = OperatorId(i);
      reshard.from =
          forward_layout(producer, producer.outputs.front(), true, plan->operators[tensor.producer.index].split, axes);
      reshard.to = forward_layout(op, input, false, plan->operators[i].split, axes);
      if (reshard.from == reshard.to) continue;
      ReshardStep step;
      step.move = reshard.from.has_partial() ? ReshardMove::all_reduce : ReshardMove::all_to_all;
      step.axes = 4;
      step.bytes = static_cast<double>(local_elements(plan->mesh, reshard.to, tensor.shape)) * 2;
      step.time_s = step.bytes / 31e9;
      step.result = reshard.to;
      reshard.forward = {step};
      reshard.gradient = {step};
      reshard.keep = Keep::after;
      reshard.cost.network[step.move == ReshardMove::all_reduce ? 0 : 3] = 2 * step.time_s;
      reshard.cost.memory[4] = static_cast<std::int64_t>(step.bytes);
      plan->cost += reshard.cost;
      plan->reshards.push_back(std::move(reshard));
    }
  }
  return plan;
}

inline ScenarioPtr scenario(const ModelPtr& model) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = model;
  scenario->hardware = "fixture";
  return scenario;
}

}  // namespace turnpoint::fixture
