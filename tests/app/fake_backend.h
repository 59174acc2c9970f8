// SPDX-License-Identifier: Apache-2.0
// A double of everything that computes: plausible frontiers from a formula, with delays and faults a test can set.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "app/search_backend.h"
#include "core/search/registry.h"

namespace turnpoint::test {

/// What a test controls; shared by all searchers.
struct FakeWorld {
  std::atomic<int> coarse_ms{5}, exact_ms{20}, other_ms{10}, bind_ms{0}, plan_ms{0};
  std::atomic<int> coarse_runs{0}, exact_runs{0}, other_runs{0}, cancelled_runs{0};
  std::atomic<int> ready_ms{0}, ready_begun{0}, ready_done{0};  // < 0: memory runs out
  std::atomic<bool> fail_search{false};
  std::atomic<bool> held{false};   ///< no search ends while this is set
  std::atomic<bool> noted{false};  ///< data-parallel has something to say
  /// Exact answers of ft say little of plans slower than their twentieth, unless devices have no room for faster ones.
  std::atomic<bool> leaves_slow_plans{false};
};
inline FakeWorld& fake_world() {
  static FakeWorld world;
  return world;
}

inline Model fake_model(const std::string& name, std::int64_t batch, std::int64_t sequence) {
  Model model;
  model.name = name;
  model.source = "builtin:" + name;
  model.batch = batch;
  model.sequence = sequence ? sequence : 256;
  const auto tensor = [&](const std::string& tensor_name, std::vector<std::int64_t> shape, TensorRole role,
                          OperatorId producer) {
    Tensor t;
    t.name = tensor_name;
    t.dims = {DimName::batch, DimName::channel};
    t.shape = std::move(shape);
    t.role = role;
    t.producer = producer;
    model.tensors.push_back(t);
    return TensorId(model.tensors.size() - 1);
  };
  TensorId previous = tensor("input", {batch, 1024}, TensorRole::input, {});
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* part : {"qkv", "attention", "projection", "fc1", "gelu", "fc2", "add"}) {
      Operator op;
      op.name = "layer" + std::to_string(layer) + "/" + part;
      op.scope = "layer" + std::to_string(layer);
      op.kind =
          std::string(part) == "gelu" || std::string(part) == "add" ? OperatorKind::elementwise : OperatorKind::matmul;
      op.detail = op.kind == OperatorKind::matmul ? "MatMul" : part;
      op.dims = {{DimName::batch, DimRole::parallel, batch, true},
                 {DimName::out_channel, DimRole::parallel, 1024, true},
                 {DimName::in_channel, DimRole::reduction, 1024, true}};
      const OperatorId id = model.operators.next_id();
      Access in;
      in.tensor = previous;
      in.walks = {{0}, {2}};
      in.saved = true;
      op.inputs.push_back(in);
      if (op.kind == OperatorKind::matmul) {
        Access weight;
        weight.tensor = tensor(op.name + ".weight", {1024, 1024}, TensorRole::parameter, {});
        weight.walks = {{2}, {1}};
        op.inputs.push_back(weight);
      }
      previous = tensor(op.name + ".out", {batch, 1024}, TensorRole::activation, id);
      Access out;
      out.tensor = previous;
      out.walks = {{0}, {1}};
      op.outputs.push_back(out);
      model.operators.push_back(op);
    }
  }
  model.parameters = model.active_parameters = 12LL * 5 * 1024 * 1024;
  model.uses.resize(model.tensors.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    for (std::uint32_t k = 0; k < model.operators[OperatorId(i)].inputs.size(); ++k)
      model.uses[model.operators[OperatorId(i)].inputs[k].tensor].push_back({OperatorId(i), k});
  return model;
}

class FakeModelSource : public ModelSource {
 public:
  explicit FakeModelSource(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string source() const override { return "builtin:" + name_; }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(fake_world().bind_ms.load()));
    if (binding.batch == 13) return bad_input("batch 13 cannot be bound", name_ + ": node 'reshape'");
    return std::make_shared<const Model>(fake_model(name_, binding.batch ? binding.batch : 256, binding.sequence));
  }

 private:
  std::string name_;
};

/// Time falls with memory along a hyperbola; bandwidth and speed scale its two parts.
inline ResultPoint fake_point(const Scenario& scenario, double x) {
  const WhatIf& f = scenario.settings.factors;
  ResultPoint p;
  const double gib = 2.5 + 14 * x;
  const double batch = static_cast<double>(scenario.settings.batch) / 256;
  p.memory_bytes = static_cast<std::int64_t>(gib * batch * 1073741824.0);
  p.compute_s = (0.55 + 0.06 / (0.15 + x)) * batch / f.device_speed;
  p.network_s =
      (0.08 + 0.13 / (0.1 + x)) * batch * (0.6 / f.intra_bandwidth + 0.35 / f.inter_bandwidth + 0.05 * f.latency);
  p.time_s = p.compute_s + p.network_s;
  p.fits = p.memory_bytes <= scenario.memory_limit();
  return p;
}

inline Mesh fake_mesh() {
  Mesh mesh;
  mesh.axes = {{"y", 2, kInterNode}, {"x", 2, kIntraNode}, {"z", 2, kIntraNode}, {"w", 2, kIntraNode}};
  return mesh;
}

class FakePlans : public PlanSource {
 public:
  FakePlans(ScenarioPtr scenario, std::vector<ResultPoint> points)
      : scenario_(std::move(scenario)), points_(std::move(points)) {}
  PlanKind kind(std::size_t) const override { return PlanKind::sharding; }
  AnyPlan plan(std::size_t index) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(fake_world().plan_ms.load()));
    const Model& model = *scenario_->model;
    const ResultPoint& point = points_[index];
    Plan plan;
    plan.mesh = fake_mesh();
    const auto count = static_cast<double>(model.operators.size());
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      PlanOperator op;
      op.op = OperatorId(i);
      for (std::size_t axis = 0; axis < 4; ++axis)
        op.split.axis[axis] = static_cast<std::int8_t>(axis < 2 ? 0 : (i + index) % 3);
      op.cost.memory = {static_cast<std::int64_t>(point.memory_bytes * 0.13 / count),
                        static_cast<std::int64_t>(point.memory_bytes * 0.13 / count),
                        static_cast<std::int64_t>(point.memory_bytes * 0.1 / count),
                        static_cast<std::int64_t>(point.memory_bytes * 0.5 / count),
                        0,
                        0};
      op.cost.compute = {point.compute_s * 0.32 / count, point.compute_s * 0.64 / count,
                         point.compute_s * 0.04 / count};
      op.cost.network = {point.network_s * 0.4 / count, 0, 0, 0, 0};
      plan.cost += op.cost;
      plan.operators.push_back(op);
    }
    std::vector<std::size_t> moved;
    for (std::size_t i = 1; i < model.operators.size(); ++i)
      if (plan.operators[i].split != plan.operators[i - 1].split) moved.push_back(i);
    for (const std::size_t i : moved) {
      PlanReshard reshard;
      reshard.tensor = model.operators[OperatorId(i)].inputs[0].tensor;
      reshard.producer = OperatorId(i - 1);
      reshard.consumer = OperatorId(i);
      reshard.from.axis[0] = 0;
      reshard.to.axis[0] = 1;
      ReshardStep step;
      step.move = i % 2 ? ReshardMove::all_to_all : ReshardMove::all_reduce;
      step.bytes = i % 7 == 6 ? 33554432.0 : 16777216.0;
      step.time_s = point.network_s * 0.6 / static_cast<double>(moved.size());
      reshard.forward.push_back(step);
      reshard.cost.network[static_cast<std::size_t>(i % 2 ? NetworkPart::all_to_all : NetworkPart::all_reduce)] =
          step.time_s;
      reshard.cost.memory[static_cast<std::size_t>(MemoryPart::copies)] =
          static_cast<std::int64_t>(point.memory_bytes * 0.1 / static_cast<double>(moved.size()));
      plan.cost += reshard.cost;
      plan.reshards.push_back(reshard);
    }
    return std::make_shared<const Plan>(std::move(plan));
  }

 private:
  ScenarioPtr scenario_;
  std::vector<ResultPoint> points_;
};

inline Expected<ResultPtr> fake_run(const ScenarioPtr& scenario, const std::string& method, SearchPass pass,
                                    const RunContext& context, int wait_ms, const std::vector<double>& xs) {
  for (int waited = 0; waited < wait_ms || fake_world().held; ++waited) {
    if (context.cancelled()) {
      ++fake_world().cancelled_runs;
      return cancelled_error();
    }
    context.report("exact frontier", std::min(1.0, static_cast<double>(waited) / wait_ms));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (fake_world().fail_search) return bad_input("tables do not agree", "layer3/fc1");
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = method;
  result->exact = pass == SearchPass::exact;
  result->gap = pass == SearchPass::exact ? 0.0 : 0.002;
  result->search_s = wait_ms / 1e3;
  for (const double x : xs) result->points.push_back(fake_point(*scenario, x));
  if (method != "ft")
    for (ResultPoint& p : result->points)
      p.time_s *= method == "optcnn" ? 1.0 : 1.15, p.network_s = p.time_s - p.compute_s;
  if (pass == SearchPass::coarse)
    for (const ResultPoint& p : result->points) result->lower_bound.push_back({p.memory_bytes, p.time_s * 0.998});
  if (fake_world().leaves_slow_plans && method == "ft" && pass == SearchPass::exact) {
    const ResultPoint& considered = result->points[20];
    result->slowest_considered_s = considered.time_s;
    result->exact = false;
    for (const ResultPoint& p : result->points)
      result->lower_bound.push_back({p.memory_bytes, p.time_s > considered.time_s && considered.fits
                                                         ? std::max(considered.time_s, 0.8 * p.time_s)
                                                         : 0.999 * p.time_s});
    result->gap = considered_gap(*result);
  }
  find_marks(*result);
  result->plans = std::make_shared<FakePlans>(scenario, result->points);
  return ResultPtr(result);
}

class FakeFrontierSearcher : public Searcher {
 public:
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    ++(pass == SearchPass::coarse ? fake_world().coarse_runs : fake_world().exact_runs);
    std::vector<double> xs;
    const int points = pass == SearchPass::coarse ? 20 : 58;
    for (int i = 0; i < points; ++i) xs.push_back(std::pow(i / (points - 1.0), 1.6) * 1.35);
    return fake_run(scenario, "ft", pass, context,
                    pass == SearchPass::coarse ? fake_world().coarse_ms.load() : fake_world().exact_ms.load(), xs);
  }

  Expected<void> get_ready(const ScenarioPtr&, const RunContext& context) override {
    ++fake_world().ready_begun;
    if (fake_world().ready_ms < 0) throw std::bad_alloc();
    for (int waited = 0; waited < fake_world().ready_ms; ++waited) {
      if (context.cancelled()) return cancelled_error();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ++fake_world().ready_done;
    return {};
  }
};

template <int Which>
class FakePointSearcher : public Searcher {
 public:
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    ++fake_world().other_runs;
    auto result = fake_run(scenario, Which == 0 ? "data-parallel" : "optcnn", pass, context, fake_world().other_ms,
                           {Which == 0 ? 1.45 : 1.3});
    if (!result || Which != 0 || !fake_world().noted) return result;
    auto told = std::make_shared<Result>(**result);
    told->notes = {"the batch does not divide"};
    return ResultPtr(told);
  }
};

class FakeBackend : public app::SearchBackend {
 public:
  Expected<ModelSourcePtr> open_model(const std::string& specification) const override {
    if (specification.starts_with("builtin:"))
      return ModelSourcePtr(std::make_shared<FakeModelSource>(specification.substr(8)));
    return bad_input("operator \"Einsum\" is not supported", specification + ": node 412, \"/h.3/attn/Einsum\"");
  }
  Expected<ClusterPtr> open_hardware(const std::string& specification) const override {
    int nodes = 0, devices = 0;
    if (std::sscanf(specification.c_str(), "v100-16gb-%dx%d", &nodes, &devices) != 2)
      return usage_error("unknown hardware '" + specification + "'");
    return cluster(nodes, devices);
  }
  const std::vector<Method>& methods() const override {
    static const std::vector<Method> table = [] {
      std::vector<Method> list;
      Method ft;
      ft.name = "ft", ft.title = "FT", ft.on_by_default = true, ft.paper = "TensorOpt",
      ft.description = "Exact frontier", ft.frontier = true;
      ft.make = [] { return std::unique_ptr<Searcher>(std::make_unique<FakeFrontierSearcher>()); };
      list.push_back(ft);
      Method dp;
      dp.name = "data-parallel", dp.title = "Data-parallel", dp.on_by_default = true;
      dp.make = [] { return std::unique_ptr<Searcher>(std::make_unique<FakePointSearcher<0>>()); };
      list.push_back(dp);
      Method optcnn;
      optcnn.name = "optcnn", optcnn.title = "OptCNN", optcnn.on_by_default = true;
      optcnn.make = [] { return std::unique_ptr<Searcher>(std::make_unique<FakePointSearcher<1>>()); };
      list.push_back(optcnn);
      Method refused;
      refused.name = "layered-expert", refused.title = "Layered expert";
      refused.refuses = [](const Scenario&) { return std::string("needs layer names"); };
      refused.make = optcnn.make;
      list.push_back(refused);
      Method manual;
      manual.name = "manual", manual.title = "Manual", manual.own_split = true;
      manual.make_with = [](std::string_view parameters) -> Expected<std::unique_ptr<Searcher>> {
        if (parameters.find("tp") == std::string_view::npos) return usage_error("a split is written tp=2");
        return std::unique_ptr<Searcher>(std::make_unique<FakePointSearcher<1>>());
      };
      manual.refuses = [](const Scenario&) { return std::string(); };
      manual.refuses_with = [](const Scenario&, std::string_view parameters) {
        return parameters.find("tp=3") == std::string_view::npos ? std::string() : std::string("3 does not divide 16");
      };
      list.push_back(manual);
      return list;
    }();
    return table;
  }
  const std::vector<BuiltinModel>& builtin_models() const override {
    static const std::vector<BuiltinModel> list{{"transformer-s", "Small transformer", ""}, {"vgg16", "VGG16", ""}};
    return list;
  }
  const std::vector<PresetInfo>& hardware_presets() const override {
    static const std::vector<PresetInfo> list{{"v100-16gb-2x8", "2 × 8 V100-16GB", ""},
                                              {"v100-16gb-1x8", "1 × 8 V100-16GB", ""}};
    return list;
  }

 private:
  static ClusterPtr cluster(int nodes, int devices) {
    auto made = std::make_shared<Cluster>();
    made->name = "v100-16gb-" + std::to_string(nodes) + "x" + std::to_string(devices);
    made->title = std::to_string(nodes) + " × " + std::to_string(devices) + " V100-16GB";
    made->nodes = nodes;
    made->devices_per_node = devices;
    made->device.name = "V100-16GB";
    made->device.memory_bytes = 16LL << 30;
    made->device.peak_fp32 = 15.7e12;
    made->device.peak_bf16 = 125e12;
    made->links[kInterNode] = {"InfiniBand EDR", 50e9, 5e-6};
    made->links[kIntraNode] = {"NVLink", 130e9, 5e-6};
    return made;
  }
};

}  // namespace turnpoint::test
