// SPDX-License-Identifier: Apache-2.0
// DeepSpeed: its JSON. The file tells how the batch is split and who shares out the update; the model stays the user's,
// so that plans which split matrices or have stages are refused. Layers that run again are told for DeepSpeed's own
// checkpointing function. JSON has no comments: what is said of the plan besides comes as remarks.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cost/parameters.h"
#include "core/export/engines/engine_settings.h"
#include "core/export/format.h"

namespace turnpoint {

namespace {

constexpr const char* kDeepSpeed = "DeepSpeed";

Expected<EngineSettings> as_deepspeed(const Scenario& scenario, const Plan& plan) {
  auto s = read_engine_settings(scenario, plan, kDeepSpeed);
  if (!s) return s.error();
  const std::int64_t devices = s->data * s->tensor * s->context * s->stages;
  const std::string whole = fmt::format("data parallel {}", devices);
  if (s->tensor > 1)
    return lacking(
        fmt::format("{} is split by its weight over {} devices: DeepSpeed's file splits the batch alone",
                    s->split_by_weight.valid() ? s->model->operators[s->split_by_weight].name : "a product", s->tensor),
        whole);
  if (s->context > 1)
    return lacking(
        fmt::format("the sequence is split over {} devices: DeepSpeed's file splits the batch alone", s->context),
        whole);
  if (s->expert > 1)
    return lacking(fmt::format("experts lie on {} devices: DeepSpeed's file splits the batch alone", s->expert), whole);
  if (s->stages > 1)
    return lacking(fmt::format("the plan has {} stages: those of DeepSpeed are written into the model, not into its "
                               "file",
                               s->stages),
                   whole);
  // It had MiCS for that, which 0.19 has no more.
  if (s->zero > 0 && s->shard_ways < s->data)
    return lacking(fmt::format("ZeRO-{} shards among {} of {} devices: DeepSpeed shards among all", s->zero,
                               s->shard_ways, s->data),
                   fmt::format("{} with all of them sharding", whole));
  if (s->again == RunsAgain::operators || s->again == RunsAgain::cores)
    return lacking(fmt::format("{} run again in backward: DeepSpeed checkpoints whole layers",
                               s->again == RunsAgain::cores ? "the cores of attentions" : "single operators"),
                   "recompute of whole layers");
  return s;
}

std::vector<std::string> deepspeed_remarks(const Scenario& scenario, const Plan& plan) {
  const auto s = as_deepspeed(scenario, plan);
  if (!s) return {};
  std::vector<std::string> remarks = s->otherwise;
  if (s->again == RunsAgain::layers)
    remarks.push_back(
        "layers run again only where the model says so: deepspeed.checkpointing.checkpoint() around each, "
        "or gradient_checkpointing_enable() of a model of Transformers");
  if (scenario.settings.optimizer_state == OptimizerState::bf16)
    remarks.push_back("the plan keeps the optimizer's moments in bf16, DeepSpeed in fp32");
  for (const std::string& text : overlap_notes(*s, "DeepSpeed")) remarks.push_back(text);
  if (s->gather_first)
    remarks.push_back("the plan gathers new weights while the next forward runs, DeepSpeed behind the update");
  if (scenario.settings.precision == Precision::fp8)
    remarks.push_back("the plan computes in fp8, of which this file knows nothing: weights are bf16 there");
  return remarks;
}

Expected<EngineFile> write_deepspeed(const Scenario& scenario, const Plan& plan) {
  const auto s = as_deepspeed(scenario, plan);
  if (!s) return s.error();
  const Settings& settings = scenario.settings;
  const bool half = settings.precision != Precision::fp32, sums_fp32 = !half || settings.gradients == Gradients::fp32;
  nlohmann::ordered_json zero{{"stage", s->zero}};
  // Buckets are counted in elements of what is sent.
  if (const std::int64_t bucket = settings.bucket_bytes / (sums_fp32 ? 4 : 2); bucket > 0)
    zero["reduce_bucket_size"] = bucket, zero["allgather_bucket_size"] = bucket;
  // The plan shards every weight; DeepSpeed keeps small ones whole unless told.
  if (s->zero == 3) zero["stage3_param_persistence_threshold"] = 0;
  if (s->offload) zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  nlohmann::ordered_json file{{"train_batch_size", s->batch},
                              {"train_micro_batch_size_per_gpu", s->micro_batch},
                              {"gradient_accumulation_steps", s->micro_batches},
                              {"zero_optimization", zero}};
  file["bf16"] = {{"enabled", half}};
  if (half) file["data_types"] = {{"grad_accum_dtype", sums_fp32 ? "fp32" : "bf16"}};
  if (half) file["communication_data_type"] = sums_fp32 ? "fp32" : "bf16";
  if (s->again == RunsAgain::layers) {
    file["activation_checkpointing"] = {{"partition_activations", false}, {"cpu_checkpointing", false}};
    if (s->roles) file["activation_checkpointing"]["number_checkpoints"] = s->roles->layers;
  }
  const Cluster& cluster = *scenario.cluster;
  return EngineFile{file.dump(2) + "\n", deepspeed_remarks(scenario, plan),
                    fmt::format("deepspeed{} --num_gpus {} TRAIN.py --deepspeed --deepspeed_config deepspeed-plan.json",
                                cluster.nodes > 1 ? fmt::format(" --hostfile HOSTS --num_nodes {}", cluster.nodes) : "",
                                cluster.devices_per_node)};
}

}  // namespace

ExportFormat deepspeed_format() {
  return for_engine({.key = "deepspeed",
                     .subject = "Plan",
                     .name = "DeepSpeed",
                     .file = "deepspeed-plan.json",
                     .text = "The configuration of DeepSpeed, of plans that split the batch alone",
                     .remarks = deepspeed_remarks},
                    &write_deepspeed);
}

}  // namespace turnpoint
