// SPDX-License-Identifier: Apache-2.0
// torchtitan: what its command line overrides. The file is a Python program that starts torchtitan with these behind
// the user's own words, since the kind of checkpointing must come last.
//
// ZeRO-3 is sharding that gathers weights anew for backward, ZeRO-2 one that keeps them until then, no ZeRO is
// replication; ZeRO-1 it has not. Sharding within groups is its hybrid of both. Devices that share a sequence always
// shard weights among them. Modules are those of its decoders.
#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <vector>

#include "core/export/engines/engine_settings.h"
#include "core/export/engines/python_text.h"
#include "core/export/format.h"

namespace turnpoint {

namespace {

constexpr const char* kTorchtitan = "torchtitan";

/// Groups that shard weights, context-parallel devices taken together: these always shard.
std::int64_t shard_degree(const EngineSettings& s) {
  return s.zero == 0 ? 1 : std::max<std::int64_t>(1, s.shard_ways / s.context);
}

Expected<EngineSettings> as_torchtitan(const Scenario& scenario, const Plan& plan) {
  auto s = read_engine_settings(scenario, plan, kTorchtitan);
  if (!s) return s.error();
  if (!s->roles)
    return lacking(fmt::format("torchtitan trains transformers, and {}", s->no_roles),
                   words_of(*s) + " with an engine for any model");
  if (s->zero == 1)
    return lacking(fmt::format("the optimizer state alone is sharded, among {} devices (ZeRO-1): torchtitan shards "
                               "gradients with it",
                               s->shard_ways),
                   words_of(*s) + " with ZeRO-2");
  if (s->again == RunsAgain::cores)
    return lacking(
        "the cores of attentions run again in backward: torchtitan runs whole layers again, or all but dear "
        "operators",
        "recompute of whole layers");
  if (s->forwards_first && s->chunks > 1)
    return lacking(fmt::format("all micro-batches go forward first through {} virtual stages: torchtitan has GPipe "
                               "without virtual stages",
                               s->chunks),
                   words_of(*s) + " with schedule=1f1b");
  if (s->offload)
    return lacking(
        "the optimizer state of all operators lives with the host: torchtitan moves weights and gradients "
        "there with it",
        words_of(*s));
  if (s->context > 1 && (s->zero == 0 || s->shard_ways % s->context != 0))
    return lacking(fmt::format("{} devices share each sequence and {}: torchtitan shards weights among all of them",
                               s->context, s->zero == 0 ? "hold whole weights" : "some of them shard"),
                   words_of(*s) + " with ZeRO-2 or ZeRO-3");
  if (const auto refusal = halves_refusal(*s, s->tensor, kTorchtitan); refusal) return *refusal;
  if (s->expert > 1 && s->expert_tensor > 1)
    return lacking(fmt::format("experts lie on {} devices, each split over {}: torchtitan splits experts or shares "
                               "them, not both",
                               s->expert, s->expert_tensor),
                   words_of(*s) + " with experts whole");
  if (s->context * shard_degree(*s) % s->expert != 0)
    return lacking(fmt::format("experts lie on {} devices, of which {} shard weights: torchtitan has experts on "
                               "devices that shard",
                               s->expert, s->context * shard_degree(*s)),
                   words_of(*s) + " with ZeRO-2 or ZeRO-3");
  if (scenario.settings.precision == Precision::fp8)
    return lacking("the plan computes in fp8, which torchtitan is told in its model's configuration", "bf16");
  return s;
}

/// Modules of each run of layers: "tok_embeddings,layers.0", "layers.1,norm,lm_head".
std::vector<std::string> model_parts(const EngineSettings& s) {
  std::vector<std::string> parts;
  int layer = 0;
  for (std::size_t r = 0; r < s.layers.size(); ++r) {
    std::string part = r == 0 ? "tok_embeddings" : "";
    for (int k = 0; k < s.layers[r]; ++k, ++layer) part += fmt::format("{}layers.{}", part.empty() ? "" : ",", layer);
    parts.push_back(r + 1 == s.layers.size() ? part + ",norm,lm_head" : part);
  }
  return parts;
}

using Overrides = std::vector<std::vector<std::string>>;  ///< a line each

Overrides overrides_of(const Scenario& scenario, const EngineSettings& s) {
  Overrides out;
  const auto add = [&](const std::string& name, const std::string& value) { out.push_back({"--" + name, value}); };
  const auto count = [&](const std::string& name, std::int64_t value) { add(name, std::to_string(value)); };
  const std::int64_t shard = shard_degree(s);
  count("parallelism.data_parallel_replicate_degree", s.data / shard);
  count("parallelism.data_parallel_shard_degree", shard);
  if (s.zero > 0) add("parallelism.fsdp_reshard_after_forward", s.zero == 3 ? "always" : "never");
  count("parallelism.tensor_parallel_degree", s.tensor);
  if (s.tensor > 1)
    out.push_back(
        {s.sequence_parallel ? "--parallelism.enable_sequence_parallel" : "--parallelism.no_enable_sequence_parallel"});
  count("parallelism.context_parallel_degree", s.context);
  count("parallelism.expert_parallel_degree", s.expert);
  count("parallelism.pipeline_parallel_degree", s.stages);
  if (s.stages > 1) {
    add("parallelism.pipeline_parallel_schedule", s.forwards_first ? "GPipe"
                                                  : s.chunks > 1   ? "Interleaved1F1B"
                                                                   : "1F1B");
    count("parallelism.pipeline_parallel_microbatch_size", s.micro_batch);
    std::vector<std::string> parts = model_parts(s);
    parts.insert(parts.begin(), "--parallelism.module_fqns_per_model_part");
    out.push_back(std::move(parts));
  }
  count("training.local_batch_size", s.stages > 1 ? s.micro_batch * s.micro_batches : s.micro_batch);
  count("training.global_batch_size", s.batch);
  if (s.model->sequence > 0) count("training.seq_len", s.model->sequence);
  // It captures the step as a CUDA graph unless told, and then refuses these.
  if (s.stages > 1 || s.expert > 1) out.push_back({"--training.disable_cuda_graphs"});
  add("training.dtype", "float32");
  add("training.mixed_precision_param", scenario.settings.precision == Precision::fp32 ? "float32" : "bfloat16");
  add("training.mixed_precision_reduce", "float32");
  out.push_back({s.again == RunsAgain::layers      ? "activation-checkpoint:full"
                 : s.again == RunsAgain::operators ? "activation-checkpoint:selective"
                                                   : "activation-checkpoint:none"});
  return out;
}

std::vector<std::string> torchtitan_notes(const Scenario& scenario, const EngineSettings& s) {
  std::vector<std::string> notes = s.otherwise;
  for (const std::string& text : padding_note(s, kTorchtitan)) notes.push_back(text);
  for (const std::string& text : overlap_notes(s, kTorchtitan)) notes.push_back(text);
  const Settings& settings = scenario.settings;
  if (settings.precision == Precision::bf16)
    notes.push_back(
        fmt::format("torchtitan keeps weights and gradients in fp32 and computes in bf16; the plan counts "
                    "weights in bf16 with a copy in fp32, and gradients in {}",
                    settings.gradients == Gradients::fp32 ? "fp32" : "bf16"));
  if (s.zero == 2 && s.micro_batches > 1)
    notes.push_back("torchtitan gathers weights for every micro-batch, the plan once an iteration");
  if (s.zero == 0 && s.data > 1 && s.micro_batches > 1 && s.stages == 1)
    notes.push_back("torchtitan sums gradients after every micro-batch, the plan once an iteration");
  if (settings.optimizer != Optimizer::adam)
    notes.push_back(
        fmt::format("the plan counts the state of {}, which is yours to choose", to_string(settings.optimizer)));
  return notes;
}

Expected<EngineFile> write_torchtitan(const Scenario& scenario, const Plan& plan) {
  const auto s = as_torchtitan(scenario, plan);
  if (!s) return s.error();
  std::string text = "#!/usr/bin/env python3\n" + python_comment(headline(scenario, plan, *s));
  const std::vector<std::string> notes = torchtitan_notes(scenario, *s);
  for (const std::string& note : notes) text += python_comment("Note: " + note + ".");
  const std::string start = torchrun_words(scenario.cluster->nodes, scenario.cluster->devices_per_node) +
                            " torchtitan-plan.py --module MODULE --config CONFIG";
  text += python_comment(
      "Starts torchtitan (0.3 and later) with the plan's overrides behind your words, for a model of "
      "its own with the sizes of the plan's:");
  text += "#   " + start + "\n";
  text += python_comment("Without words it prints them, one word a line.");
  text += "OVERRIDES = [\n";
  for (const auto& line : overrides_of(scenario, *s)) {
    text += "    ";
    for (std::size_t w = 0; w < line.size(); ++w) text += (w > 0 ? " " : "") + python_text(line[w]) + ",";
    text += "\n";
  }
  text += R"(]

if __name__ == "__main__":
    import runpy
    import sys

    if len(sys.argv) < 2:
        print("\n".join(OVERRIDES))
    else:
        sys.argv = [*sys.argv, *OVERRIDES]
        runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)
)";
  return EngineFile{std::move(text), notes, start};
}

}  // namespace

ExportFormat torchtitan_format() {
  return for_engine({.key = "torchtitan",
                     .subject = "Plan",
                     .name = "torchtitan",
                     .file = "torchtitan-plan.py",
                     .text = "Overrides of torchtitan's settings, of plans that it can run"},
                    &write_torchtitan);
}

}  // namespace turnpoint
