// SPDX-License-Identifier: Apache-2.0
// Transformers: a DistributedConfig for the model that its own config.json makes, with the style of every module
// (tp_plan), what is sharded as one (fsdp_plan), and a function that loads the model so. Every name says how many
// modules it must match, and the file stops with the first that does not.
#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <vector>

#include "core/export/engines/module_names.h"
#include "core/export/engines/module_settings.h"
#include "core/export/engines/python_text.h"
#include "core/export/format.h"

namespace turnpoint {

namespace {

/// Modules called alike but for the number of their layer, as Transformers writes them: "model.layers.*.mlp.up_proj".
struct StyledModules {
  std::string name, style;
  int count = 0;
};

std::string with_star(const std::string& module) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!module.starts_with(kLayers)) return module;
  const auto behind = module.find('.', kLayers.size());
  return std::string(kLayers) + "*" + (behind == std::string::npos ? "" : module.substr(behind));
}

Expected<std::vector<StyledModules>> styles_of(const EngineSettings& s, const ModuleNames& names) {
  std::vector<StyledModules> styles;
  for (std::size_t i = 0; s.tensor > 1 && i < s.model->operators.size(); ++i) {
    const OperatorId id(i);
    const Operator& op = s.model->operators[id];
    if (op.kind != OperatorKind::embedding && !is_weighted_product(*s.model, op)) continue;
    const int loop = s.roles->tensor_parallel_loop(*s.model, id);
    if (loop < 0) continue;
    const auto module = names.module(*s.model, id);
    if (!module) return module.error();
    const LoopDimension& dim = op.dims[std::size_t(loop)];
    const std::string style = op.kind == OperatorKind::embedding ? "embedding_rowwise"
                              : dim.name == DimName::vocabulary  ? "colwise_gather_output"
                              : dim.role == DimRole::reduction   ? "rowwise"
                                                                 : "colwise";
    const std::string name = with_star(*module);
    const auto same = std::ranges::find(styles, name, &StyledModules::name);
    if (same == styles.end())
      styles.push_back({name, style, 1});
    else
      ++same->count;
  }
  return styles;
}

std::string dictionary(const char* name, const std::vector<StyledModules>& rows) {
  std::string text = fmt::format("{} = {{\n", name);
  for (const StyledModules& row : rows)
    text += fmt::format("    {}: ({}, {}),\n", python_text(row.name), row.count, python_text(row.style));
  return text + "}\n";
}

/// What is gathered as one; Transformers never lets go of the last norm and the logits' weights.
std::vector<StyledModules> shards_of(const EngineSettings& s) {
  const char* layers = s.zero == 3 ? "free_full_weight" : "keep_full_weight";
  return {{"model.embed_tokens", layers, 1},
          {"model.layers.*", layers, s.roles->layers},
          {"model.norm", "keep_full_weight", 1}};
}

constexpr const char* kLoading = R"py(

def check(config):
    """Stops where a name matches more or fewer modules of the model than the plan has."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    names = [re.sub(r"\.\d+(?=\.|$)", ".*", name) for name, _ in model.named_modules()]
    for name, (count, _) in (TP_PLAN | FSDP_PLAN).items():
        if names.count(name) != count:
            found = names.count(name)
            raise RuntimeError(f"{name!r} matches {found} modules of your model, not {count}: it is not the plan's")


def distributed():
    tp_plan, fsdp_plan = ({name: style for name, (_, style) in plan.items()} or None for plan in (TP_PLAN, FSDP_PLAN))
    return DistributedConfig(**SIZES, tp_plan=tp_plan, fsdp_plan=fsdp_plan)


def load(where, **how):
    """The model of a folder that save_pretrained() wrote, laid out as the plan has it."""
    check(AutoConfig.from_pretrained(where))
    model = AutoModelForCausalLM.from_pretrained(where, distributed_config=distributed(), **how)
    if CHECKPOINT_LAYERS:
        model.gradient_checkpointing_enable()
    return model
)py";

Expected<EngineSettings> as_transformers(const Scenario& scenario, const Plan& plan, const ModuleNames& names) {
  const auto s = read_module_settings(scenario, plan, "Transformers");
  if (!s) return s.error();
  if (!names.transformers())
    return lacking(
        fmt::format("{} is of no config.json, from which Transformers makes its models", scenario.model->name),
        "PyTorch, for models of your own");
  if (!s->roles) return lacking(fmt::format("the model's layers are not known: {}", s->no_roles), "");
  if (s->tensor == 1 && s->data == 1) return lacking("the plan has one device, and nothing to be laid out", "");
  if (scenario.settings.precision != Precision::fp32 && scenario.settings.gradients != Gradients::fp32)
    return lacking("gradients are summed in 16 bits, which Transformers' mixed precision does in 32",
                   "--gradients fp32, or PyTorch");
  return s;
}

Expected<EngineFile> write_transformers(const Scenario& scenario, const Plan& plan) {
  const auto names = ModuleNames::of(*scenario.model);
  if (!names) return names.error();
  const auto s = as_transformers(scenario, plan, *names);
  if (!s) return s.error();
  const auto styles = styles_of(*s, *names);
  if (!styles) return styles.error();
  std::vector<std::string> notes = s->otherwise;
  for (const std::string& note : padding_note(*s, "Transformers")) notes.push_back(note);
  for (const std::string& note : overlap_notes(*s, "Transformers")) notes.push_back(note);
  if (s->tensor > 1) {
    notes.push_back("logits are gathered by words for the loss, which the plan sums over where they are split");
    notes.push_back("gradients of what several products read are summed for each product by itself");
  }
  const bool shares = s->zero > 0;
  if (s->zero == 3)
    notes.push_back(
        "fully_shard() gathers the table of tokens once more for backward, and the last norm's and the "
        "logits' weights once alone");
  if (s->micro_batches > 1)
    notes.push_back(fmt::format("the batch goes through in {} parts of {} samples a device, which is your loop's to do",
                                s->micro_batches, s->micro_batch));
  std::string text = python_comment(headline(scenario, plan, *s));
  for (const std::string& note : notes) text += python_comment("Note: " + note + ".");
  text += python_comment("Names are those of Transformers' own model, \"*\" for the number of a layer. Use:");
  text += "#   model = load(\"folder of the model\")\n";
  const std::string start = torchrun_words(scenario.cluster->nodes, scenario.cluster->devices_per_node) + " TRAIN.py";
  text += "#   " + start + "\n";
  text += R"(import re

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.distributed import DistributedConfig

)";
  const std::int64_t shard = shares ? s->shard_ways : 1;
  text += fmt::format("SIZES = {{\"tp_size\": {}, \"fsdp_size\": {}, \"dp_replicate_size\": {}{}}}\n", s->tensor, shard,
                      s->data / shard,
                      scenario.settings.precision == Precision::fp32 ? "" : ", \"fsdp_mixed_precision\": True");
  text += "# A name, how many modules it must match, how they hold their weights.\n" + dictionary("TP_PLAN", *styles);
  text += "# What is gathered as one, and whether it is kept from forward to backward.\n" +
          dictionary("FSDP_PLAN", s->data > 1 ? shards_of(*s) : std::vector<StyledModules>());
  text += fmt::format("CHECKPOINT_LAYERS = {}\n", s->again == RunsAgain::layers ? "True" : "False");
  return EngineFile{text + kLoading, notes, start};
}

}  // namespace

ExportFormat transformers_format() {
  return for_engine(
      {.key = "transformers",
       .subject = "Plan",
       .name = "Transformers",
       .file = "distributed.py",
       .text = "Distribution of the model that Transformers makes of a config.json, of plans that its tp_plan can say"},
      &write_transformers);
}

}  // namespace turnpoint
