// SPDX-License-Identifier: Apache-2.0
// Megatron-LM: the arguments of its command line, and the same as fields of Megatron-Core's TransformerConfig. The file
// is a Python program that starts another with these arguments, so that no shell reads them.
//
// What the plan's settings are there: ZeRO-1 is the distributed optimizer, ZeRO-2 and 3 are Megatron-FSDP's sharding of
// gradients and weights; a split of the sequence of queries is context parallelism that gathers keys and values; an
// uneven pipeline is a layout, of which E is the look-up, t a layer and L the loss.
#include <fmt/format.h>
#include <string>
#include <vector>

#include "core/export/engines/engine_settings.h"
#include "core/export/engines/model_sizes.h"
#include "core/export/engines/python_text.h"
#include "core/export/format.h"

namespace turnpoint {

namespace {

constexpr const char* kMegatron = "Megatron-LM";

/// An argument of the command line and, where the configuration has it, a field.
struct MegatronLines {
  std::vector<std::string> arguments, fields;
  void argument(const std::string& name) { arguments.push_back(python_text(name)); }
  void argument(const std::string& name, const std::string& value) {
    arguments.push_back(python_text(name) + ", " + python_text(value));
  }
  void argument(const std::string& name, std::int64_t value) { argument(name, std::to_string(value)); }
  void field(const std::string& name, const std::string& code) { fields.push_back(fmt::format("{}={}", name, code)); }
  void field(const std::string& name, std::int64_t value) { field(name, std::to_string(value)); }
  void both(const std::string& name, const std::string& field_name, std::int64_t value) {
    argument(name, value), field(field_name, value);
  }
};

struct MegatronPlan {
  EngineSettings settings;
  ModelSizes sizes;
  std::vector<std::string> notes;
};

bool shards_in_groups(const EngineSettings& s) { return s.zero > 0 && s.shard_ways < s.data * s.context; }

/// Of plans that shard among some of the devices that hold the same. Megatron-FSDP 0.16 makes groups for weights that
/// are sharded with all else, and meshes of experts only where there are no groups.
std::optional<Error> hybrid_refusal(const EngineSettings& s) {
  if (!shards_in_groups(s)) return std::nullopt;
  const std::string what =
      fmt::format("ZeRO-{} shards among {} of {} devices", s.zero, s.shard_ways, s.data * s.context);
  if (s.zero == 2)
    return lacking(what + ": Megatron-LM has such groups for ZeRO-1 and ZeRO-3",
                   words_of(s) + " with ZeRO-1 or ZeRO-3");
  if (s.zero == 3 && s.expert > 1)
    return lacking(
        fmt::format("{}, and experts lie on {}: Megatron-FSDP has such groups for models without split experts", what,
                    s.expert),
        words_of(s) + " with ZeRO-1");
  const std::int64_t copies = s.data * s.context / s.shard_ways;
  if (s.data * s.context * s.tensor / (s.expert * s.expert_tensor) % copies == 0) return std::nullopt;
  return lacking(
      fmt::format("{}, and experts lie on {}: Megatron-LM has all experts on devices that shard", what, s.expert),
      words_of(s) + " with all of them sharding");
}

Expected<MegatronPlan> as_megatron(const Scenario& scenario, const Plan& plan) {
  auto settings = read_engine_settings(scenario, plan, kMegatron);
  if (!settings) return settings.error();
  if (!settings->roles)
    return lacking(fmt::format("Megatron-LM trains transformers, and {}", settings->no_roles),
                   words_of(*settings) + " with an engine for any model");
  auto sizes = sizes_of(*settings->model, *settings->roles);
  if (!sizes) return lacking(fmt::format("Megatron-LM builds the model from its sizes: {}", sizes.error().what), {});
  if (!sizes->causal)
    return lacking("attention sees later positions, too: the transformer that Megatron-LM is told here is causal", {});
  MegatronPlan made{std::move(*settings), std::move(*sizes), {}};
  const EngineSettings& s = made.settings;
  if (s.again == RunsAgain::operators)
    return lacking(
        "operators of every layer run again by themselves: Megatron-LM runs whole layers again, or the "
        "cores of attentions",
        "recompute of whole layers");
  if (s.offload)
    return lacking(
        "the optimizer state of all operators lives with the host: these arguments of Megatron-LM keep it on "
        "the device",
        words_of(s));
  if (made.sizes.experts > 0 && s.tensor > 1 && !s.sequence_parallel)
    return lacking(fmt::format("a mixture of experts is split over {} devices without sequence parallelism, which "
                               "Megatron-LM asks for there",
                               s.tensor),
                   words_of(s) + " with sequence parallelism");
  if (const auto refusal = halves_refusal(s, 1, kMegatron); refusal) return *refusal;
  if (s.zero > 1 && s.stages > 1)
    return lacking(fmt::format("ZeRO-{} in a pipeline of {} stages: Megatron-LM shards gradients and weights where "
                               "there are no stages",
                               s.zero, s.stages),
                   words_of(s) + " with ZeRO-1");
  if (s.forwards_first)
    return lacking("all micro-batches go forward before the first goes backward: Megatron-LM takes them in turn",
                   words_of(s) + " with schedule=1f1b");
  if (const auto refusal = hybrid_refusal(s); refusal) return *refusal;
  return made;
}

std::string layout_of(const EngineSettings& settings) {
  std::string text = "E";
  for (std::size_t r = 0; r < settings.layers.size(); ++r)
    text += fmt::format("{}t*{}", r > 0 ? "|" : "", settings.layers[r]);
  return text + "L";
}

void add_parallel(const EngineSettings& s, MegatronLines& out) {
  out.both("--tensor-model-parallel-size", "tensor_model_parallel_size", s.tensor);
  if (s.sequence_parallel) out.argument("--sequence-parallel"), out.field("sequence_parallel", "True");
  if (s.beside_products) out.argument("--tp-comm-overlap"), out.field("tp_comm_overlap", "True");
  out.both("--pipeline-model-parallel-size", "pipeline_model_parallel_size", s.stages);
  if (s.stages > 1 && !equal_runs(s)) {
    out.argument("--pipeline-model-parallel-layout", layout_of(s));
    out.field("pipeline_model_parallel_layout", python_text(layout_of(s)));
  } else if (s.chunks > 1) {
    out.argument("--num-layers-per-virtual-pipeline-stage", s.layers.front());
    out.field("virtual_pipeline_model_parallel_size", s.chunks);
  }
  out.both("--context-parallel-size", "context_parallel_size", s.context);
  if (s.context > 1) out.argument("--cp-comm-type", "all_gather"), out.field("cp_comm_type", python_text("all_gather"));
}

void add_update(const Scenario& scenario, const EngineSettings& s, MegatronLines& out) {
  if (s.zero > 0) out.argument("--use-distributed-optimizer");
  if (s.data * s.context > 1 && s.reduces_meanwhile) out.argument("--overlap-grad-reduce");
  if (s.gather_first) out.argument("--overlap-param-gather");
  if (shards_in_groups(s)) {
    out.argument("--num-distributed-optimizer-instances", s.data * s.context / s.shard_ways);
    if (s.zero == 3) out.argument("--outer-dp-sharding-strategy", "no_shard");
  }
  if (s.zero > 1) {
    out.argument("--use-megatron-fsdp");
    out.argument("--data-parallel-sharding-strategy", s.zero == 2 ? "optim_grads" : "optim_grads_params");
    out.argument("--ckpt-format", "fsdp_dtensor");
    out.argument("--no-gradient-accumulation-fusion");
    out.field("gradient_accumulation_fusion", "False");
  }
  if (scenario.settings.precision != Precision::fp32) {
    out.argument("--bf16"), out.field("bf16", "True");
    if (scenario.settings.gradients == Gradients::as_weights) out.argument("--grad-reduce-in-bf16");
  }
  const std::string type = scenario.settings.precision == Precision::fp32 ? "torch.float32" : "torch.bfloat16";
  out.field("params_dtype", type), out.field("pipeline_dtype", type);
}

void add_again(RunsAgain again, MegatronLines& out) {
  if (again == RunsAgain::nothing) return;
  const char* granularity = again == RunsAgain::layers ? "full" : "selective";
  out.argument("--recompute-granularity", granularity), out.field("recompute_granularity", python_text(granularity));
  if (again != RunsAgain::layers) return;
  out.argument("--recompute-method", "uniform"), out.field("recompute_method", python_text("uniform"));
  out.both("--recompute-num-layers", "recompute_num_layers", 1);
}

void add_experts(const EngineSettings& s, const ModelSizes& m, MegatronLines& out) {
  if (m.experts == 0) return;
  out.both("--num-experts", "num_moe_experts", m.experts);
  out.both("--moe-router-topk", "moe_router_topk", m.experts_a_token);
  out.both("--moe-ffn-hidden-size", "moe_ffn_hidden_size", m.inner);
  out.both("--expert-model-parallel-size", "expert_model_parallel_size", s.expert);
  out.both("--expert-tensor-parallel-size", "expert_tensor_parallel_size", s.expert_tensor);
  if (s.expert > 1) {
    out.argument("--moe-token-dispatcher-type", "alltoall");
    out.field("moe_token_dispatcher_type", python_text("alltoall"));
  }
}

void add_model(MegatronPlan& plan, MegatronLines& out) {
  const ModelSizes& m = plan.sizes;
  out.both("--num-layers", "num_layers", m.layers);
  out.both("--hidden-size", "hidden_size", m.hidden);
  out.both("--num-attention-heads", "num_attention_heads", m.heads);
  if (m.groups != m.heads) {
    out.argument("--group-query-attention");
    out.both("--num-query-groups", "num_query_groups", m.groups);
  }
  out.both("--kv-channels", "kv_channels", m.head_channels);
  if (m.inner > 0) out.both("--ffn-hidden-size", "ffn_hidden_size", m.inner);
  out.argument("--seq-length", m.sequence);
  out.argument("--max-position-embeddings", m.sequence);
  if (m.vocabulary > 0) out.argument("--vocab-size", m.vocabulary);
  if (m.root_mean_square)
    out.argument("--normalization", "RMSNorm"), out.field("normalization", python_text("RMSNorm"));
  if (!m.biases) out.argument("--disable-bias-linear"), out.field("add_bias_linear", "False");
  if (m.query_biases) out.argument("--add-qkv-bias"), out.field("add_qkv_bias", "True");
  if (!m.tied) out.argument("--untie-embeddings-and-output-weights");
  if (m.gated && m.activation == "silu") {
    out.argument("--swiglu"), out.field("gated_linear_unit", "True");
    out.field("activation_func", "torch.nn.functional.silu");
  } else if (m.gated || m.activation.find("gelu") == std::string::npos) {
    plan.notes.push_back(
        fmt::format("the feed-forward parts compute {}{}, for which no argument stands here: choose it "
                    "in the model's specification",
                    m.activation.empty() ? "something" : m.activation, m.gated ? ", gated" : ""));
  }
  if (m.rotates)
    out.argument("--position-embedding-type", "rope");
  else if (m.position_table)
    out.argument("--position-embedding-type", "learned_absolute");
  else
    out.argument("--position-embedding-type", "none");
  for (const std::string& unlike : m.unlike) plan.notes.push_back(unlike + ", which these sizes do not tell");
}

void add_notes(const Scenario& scenario, MegatronPlan& plan) {
  const Settings& settings = scenario.settings;
  for (const std::string& text : plan.settings.otherwise) plan.notes.push_back(text);
  for (const std::string& text : padding_note(plan.settings, kMegatron)) plan.notes.push_back(text);
  if (settings.optimizer != Optimizer::adam)
    plan.notes.push_back(
        fmt::format("the plan counts the state of {}: choose it by --optimizer, where Megatron-LM has "
                    "it",
                    to_string(settings.optimizer)));
  if (settings.optimizer_state == OptimizerState::bf16)
    plan.notes.push_back(
        "the plan keeps the optimizer's moments in bf16: --use-precision-aware-optimizer is yours to "
        "set");
  if (settings.precision == Precision::fp8)
    plan.notes.push_back("the plan computes in fp8: choose --fp8-format and its recipe, which the plan does not know");
}

std::string in_lines(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += "    " + word + ",\n";
  return text;
}

Expected<EngineFile> write_megatron(const Scenario& scenario, const Plan& plan) {
  auto read = as_megatron(scenario, plan);
  if (!read) return read.error();
  const EngineSettings& s = read->settings;
  MegatronLines out;
  add_parallel(s, out);
  add_experts(s, read->sizes, out);
  add_update(scenario, s, out);
  add_again(s.again, out);
  out.argument("--micro-batch-size", s.micro_batch);
  out.argument("--global-batch-size", s.batch);
  add_model(*read, out);
  add_notes(scenario, *read);
  std::string text = "#!/usr/bin/env python3\n" + python_comment(headline(scenario, plan, s));
  for (const std::string& note : read->notes) text += python_comment("Note: " + note + ".");
  const std::string start = torchrun_words(scenario.cluster->nodes, scenario.cluster->devices_per_node) +
                            " megatron-plan.py PRETRAIN.py --data-path DATA --lr RATE";
  text += python_comment("Starts a program of Megatron-LM with the plan's arguments in front of yours:");
  text += "#   " + start + "\n";
  text += python_comment("Without a program it prints them, one word a line.");
  text += "ARGUMENTS = [\n" + in_lines(out.arguments) + "]\n\n\n";
  text +=
      "def transformer_config():\n    \"\"\"The same for who builds models of Megatron-Core.\"\"\"\n"
      "    import torch\n    from megatron.core.transformer.transformer_config import TransformerConfig\n\n"
      "    return TransformerConfig(\n";
  for (const std::string& field : out.fields) text += "        " + field + ",\n";
  text += "    )\n\n\n";
  text += R"(if __name__ == "__main__":
    import os
    import runpy
    import sys

    if len(sys.argv) < 2:
        print("\n".join(ARGUMENTS))
    else:
        program = sys.argv[1]
        sys.argv = [program, *ARGUMENTS, *sys.argv[2:]]
        sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")
)";
  return EngineFile{std::move(text), read->notes, start};
}

}  // namespace

ExportFormat megatron_format() {
  return for_engine({.key = "megatron",
                     .subject = "Plan",
                     .name = "Megatron-LM",
                     .file = "megatron-plan.py",
                     .text = "Arguments of Megatron-LM and a TransformerConfig, of plans that it can run"},
                    &write_megatron);
}

}  // namespace turnpoint
