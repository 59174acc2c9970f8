// SPDX-License-Identifier: Apache-2.0
// PyTorch: annotations for the user's own model. A Python file with the mesh, a table of module names and how each
// holds its weight, and one function that applies them: tensor parallelism, checkpointing of layers, sharding. Every
// pattern says how many modules it must match, and the function stops with the first that does not.
//
// What several products read is made whole once, at the module that holds them (PrepareModuleInput), since a table of
// products alone sums the gradients of queries, keys and values apart. Logits that are split by words stay so: loss()
// sums over them as the plan does.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/export/engines/engine_settings.h"
#include "core/export/engines/module_names.h"
#include "core/export/engines/module_settings.h"
#include "core/export/engines/python_text.h"
#include "core/export/format.h"

namespace turnpoint {

namespace {

/// Modules whose names differ in numbers alone and that hold their weights alike.
struct ModuleRow {
  std::string pattern, style;
  std::set<std::string> modules;
};

class Annotations {
 public:
  Annotations(const EngineSettings& settings, ModuleNames names) : s_(settings), names_(names) {}

  std::optional<Error> read() {
    if (s_.tensor == 1) return find_layers();
    for (std::size_t i = 0; i < s_.model->operators.size(); ++i)
      if (auto error = read_operator(OperatorId(i))) return error;
    return find_layers();
  }

  const std::vector<ModuleRow>& rows() const { return rows_; }
  /// Modules that hold several products of one input, and how it is made whole there.
  const std::vector<ModuleRow>& inputs() const { return inputs_; }
  const std::set<std::string>& layers() const { return layers_; }
  /// A module and the one whose weight it uses.
  const std::vector<std::pair<std::string, std::string>>& tied() const { return tied_; }
  bool words_are_split() const { return words_are_split_; }

 private:
  const Model& model() const { return *s_.model; }

  static void add(std::vector<ModuleRow>& rows, const std::string& module, const std::string& style) {
    const std::string pattern = pattern_of(module);
    for (ModuleRow& row : rows)
      if (row.pattern == pattern && row.style == style) {
        row.modules.insert(module);
        return;
      }
    rows.push_back({pattern, style, {module}});
  }

  std::optional<Error> read_operator(OperatorId id) {
    const Operator& op = model().operators[id];
    const int weight =
        op.kind == OperatorKind::embedding || is_weighted_product(model(), op) ? first_parameter(op) : -1;
    if (weight < 0) return std::nullopt;
    const int loop = s_.roles->tensor_parallel_loop(model(), id);
    const auto module = names_.module(model(), id);
    if (!module) return module.error();
    if (loop < 0 || op.dims[std::size_t(loop)].size % s_.tensor != 0) return std::nullopt;
    // Laying a weight out makes a new one, which whoever shared the old one must be given.
    const TensorId tensor = op.inputs[std::size_t(weight)].tensor;
    if (const TensorId owner = model().tensors[tensor].tied_to; owner.valid() && owners_.contains(owner))
      tied_.emplace_back(*module, owners_.at(owner));
    owners_.emplace(tensor, *module);
    const LoopDimension& dim = op.dims[std::size_t(loop)];
    if (op.kind == OperatorKind::embedding) {
      add(rows_, *module, "RowwiseParallel(input_layouts=Replicate())");
    } else if (dim.name == DimName::vocabulary) {
      add(rows_, *module, "ColwiseParallel(use_local_output=False)");
      words_are_split_ = true;
    } else if (dim.role == DimRole::reduction) {
      add(rows_, *module, "RowwiseParallel()");
    } else {
      if (const Operator* cut = cut_apart(op))
        return lacking(fmt::format("{} is cut into parts by {}: ColwiseParallel() would hand each device whole parts",
                                   op.name, cut->name),
                       "a product for each part, or Megatron-LM");
      add(rows_, *module, "ColwiseParallel()");
      note_reader(op, *module);
    }
    return std::nullopt;
  }

  int first_parameter(const Operator& op) const {
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (model().tensors[op.inputs[k].tensor].role == TensorRole::parameter) return int(k);
    return -1;
  }

  /// What cuts a product's columns into parts, as queries, keys and values of one product; null: nothing does.
  const Operator* cut_apart(const Operator& op) const {
    std::vector<TensorId> columns{op.outputs.front().tensor};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto& whole = model().tensors[columns[i]].shape;
      for (const auto& use : model().uses[columns[i]]) {
        const Operator& reader = model().operators[use.op];
        if (reader.outputs.empty()) continue;
        const TensorId made = reader.outputs.front().tensor;
        const auto& part = model().tensors[made].shape;
        // Parts of a product lie behind its columns in the model, so that a plan may split the columns of each.
        if (reader.kind == OperatorKind::slice && !part.empty() &&
            (part.size() < whole.size() || part.back() < whole.back()))
          return &reader;
        // Behind its bias, and in another shape of as many columns.
        const bool same = !part.empty() && part.back() == whole.back();
        const bool passes = reader.is_view() || (reader.kind == OperatorKind::elementwise && part == whole);
        if (same && passes && std::ranges::find(columns, made) == columns.end()) columns.push_back(made);
      }
    }
    return nullptr;
  }

  // Of products that read one tensor, the module around them all makes it whole, and sums its gradient once.
  void note_reader(const Operator& op, const std::string& module) {
    const auto dot = module.rfind('.');
    if (dot == std::string::npos) return;
    const std::string around = module.substr(0, dot);
    const TensorId read = op.inputs.front().tensor;
    int readers = 0;
    for (const auto& use : model().uses[read]) readers += is_weighted_product(model(), model().operators[use.op]);
    if (readers < 2 || !prepared_.insert(around).second) return;
    const bool named = names_.transformers() && around.ends_with(".self_attn");
    add(inputs_, around,
        named ? "PrepareModuleInput(input_kwarg_layouts={\"hidden_states\": Replicate()}, "
                "desired_input_kwarg_layouts={\"hidden_states\": Replicate()})"
              : "PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),))");
  }

  // The module of a layer is what the names of all its modules begin with.
  std::optional<Error> find_layers() {
    if (!s_.roles || s_.roles->layers == 0) return std::nullopt;
    std::map<int, std::string> common;
    for (std::size_t i = 0; i < model().operators.size(); ++i) {
      const OperatorId id(i);
      const int layer = s_.roles->layer_of[i];
      const Operator& op = model().operators[id];
      if (layer < 0 || layer >= s_.roles->layers || !is_weighted_product(model(), op) || first_parameter(op) < 0)
        continue;
      const auto module = names_.module(model(), id);
      if (!module) return module.error();
      const auto [it, first] = common.emplace(layer, *module);
      if (!first) it->second = shared_path(it->second, *module);
    }
    for (const auto& [layer, module] : common) {
      if (module.empty() || layers_.contains(module))
        return usage_error(
            fmt::format("layer {} has no module of its own: its weights are called by nothing that only "
                        "they share",
                        layer));
      layers_.insert(module);
    }
    return std::nullopt;
  }

  /// "a.b" of "a.b.c" and "a.b.d.e".
  static std::string shared_path(const std::string& one, const std::string& other) {
    std::size_t end = 0, at = 0;
    while (at < one.size() && at < other.size() && one[at] == other[at]) {
      if (one[at] == '.') end = at;
      ++at;
    }
    const bool one_ends = at == one.size() && at < other.size() && other[at] == '.';
    const bool other_ends = at == other.size() && at < one.size() && one[at] == '.';
    if (one_ends || other_ends || (at == one.size() && at == other.size())) end = at;
    return one.substr(0, end);
  }

  const EngineSettings& s_;
  ModuleNames names_;
  std::vector<ModuleRow> rows_, inputs_;
  std::set<std::string> layers_, prepared_;
  std::map<TensorId, std::string> owners_;
  std::vector<std::pair<std::string, std::string>> tied_;
  bool words_are_split_ = false;
};

std::string table(const char* name, const std::vector<ModuleRow>& rows) {
  std::string text = fmt::format("{} = [\n", name);
  for (const ModuleRow& row : rows)
    text += fmt::format("    ({}, {}, {}),\n", python_text(row.pattern), row.modules.size(), row.style);
  return text + "]\n";
}

std::string layers_line(const std::set<std::string>& layers) {
  std::vector<ModuleRow> rows;
  for (const std::string& layer : layers) {
    const std::string pattern = pattern_of(layer);
    const auto same = std::ranges::find(rows, pattern, &ModuleRow::pattern);
    if (same == rows.end())
      rows.push_back({pattern, "", {layer}});
    else
      same->modules.insert(layer);
  }
  std::string text = "LAYERS = [\n";
  for (const ModuleRow& row : rows)
    text += fmt::format("    ({}, {}),\n", python_text(row.pattern), row.modules.size());
  return text + "]\n";
}

constexpr const char* kFunctions = R"(

def make_mesh(device_type="cuda"):
    """Call it on every rank, behind torch.distributed's start."""
    return init_device_mesh(device_type, tuple(MESH.values()), mesh_dim_names=tuple(MESH))


def matched(model, pattern, count):
    """The modules of a pattern. Stops where there are more or fewer than the plan has."""
    found = [(name, module) for name, module in model.named_modules() if re.fullmatch(pattern, name)]
    if len(found) != count:
        raise RuntimeError(f"{pattern!r} matches {len(found)} modules of your model, not {count}: it is not the plan's")
    return found


def parallelize(model, mesh):
    """Lays the model out as the plan has it, and returns it."""
    if tuple(mesh.shape) != tuple(MESH.values()):
        raise RuntimeError(f"a mesh of {tuple(mesh.shape)} is not the plan's {tuple(MESH.values())}")
    layers = [found for pattern, count in LAYERS for found in matched(model, pattern, count)]
    if MESH["tensor"] > 1:
        for pattern, count, style in TABLE + INPUTS:
            for _, module in matched(model, pattern, count):
                parallelize_module(module, mesh["tensor"], style)
        for name, owner in TIED:
            model.get_submodule(name).weight = model.get_submodule(owner).weight
    if CHECKPOINT_LAYERS:
        for name, layer in layers:
            around, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(around), leaf, checkpoint_wrapper(layer))
    if MESH["replicate"] * MESH["shard"] > 1:
        names = ("replicate", "shard") if MESH["replicate"] > 1 else ("shard",)
        how = {"mesh": mesh[names], "mp_policy": PRECISION, "reshard_after_forward": GATHER_AGAIN}
        for name, _ in layers:
            fully_shard(model.get_submodule(name), **how)
        fully_shard(model, **how)
    return model


def loss(logits, labels):
    """Cross entropy of logits that may be split by words; labels are those of the logits' own positions.

    Such logits are summed over where they lie inside `with loss_parallel():`, which must hold for backward, too.
    """
    if not isinstance(logits, DTensor):
        return torch.nn.functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten())
    labels = DTensor.from_local(labels.flatten(), logits.device_mesh, [Replicate()], run_check=False)
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2).float(), labels)
)";

bool has_table(const Model& model) {
  return std::ranges::any_of(model.operators, [](const Operator& op) { return op.kind == OperatorKind::embedding; });
}

Expected<EngineFile> write_pytorch(const Scenario& scenario, const Plan& plan) {
  const auto s = read_module_settings(scenario, plan, "PyTorch");
  if (!s) return s.error();
  const auto names = ModuleNames::of(*scenario.model);
  if (!names) return names.error();
  Annotations made(*s, *names);
  if (auto error = made.read()) return *error;
  std::vector<std::string> notes = s->otherwise;
  if (s->micro_batches > 1)
    notes.push_back(fmt::format(
        "the batch goes through in {} parts of {} samples a device, which is your loop's to do{}", s->micro_batches,
        s->micro_batch,
        s->zero == 0 && s->data > 1 ? "; before all but the last call model.set_requires_gradient_sync(False)" : ""));
  if (made.layers().empty() && s->zero > 0)
    notes.push_back("the model has no layers that could be told apart: its weights are gathered all at once");
  if (s->zero == 3 && s->shard_ways > 1 && has_table(*s->model))
    notes.push_back("fully_shard() gathers the table of tokens once more for backward, which the plan does not");
  if (s->tensor > 1 && !names->transformers())
    notes.push_back("each device has its part of the heads: attention must take their number from what it is handed");
  if (made.words_are_split())
    notes.push_back("logits are split by words: call loss() and its backward() inside \"with loss_parallel():\"");
  std::string text = python_comment(headline(scenario, plan, *s));
  for (const std::string& note : notes) text += python_comment("Note: " + note + ".");
  text += python_comment("Names are the modules of your model, by pattern. Use:");
  text += "#   model = parallelize(model, make_mesh())\n";
  const std::string start = torchrun_words(scenario.cluster->nodes, scenario.cluster->devices_per_node) + " TRAIN.py";
  text += "#   " + start + "\n";
  text += R"(import re

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)

)";
  const std::int64_t shard = s->zero == 0 ? 1 : s->shard_ways;
  text +=
      fmt::format("MESH = {{\"replicate\": {}, \"shard\": {}, \"tensor\": {}}}\n", s->data / shard, shard, s->tensor);
  text += "# A pattern, how many modules it must match, how they hold their weights.\n" + table("TABLE", made.rows());
  text += "# Modules in which several products read one input.\n" + table("INPUTS", made.inputs());
  text += "# What is checkpointed and sharded as one.\n" + layers_line(made.layers());
  text += "TIED = [\n";
  for (const auto& [module, owner] : made.tied())
    text += fmt::format("    ({}, {}),\n", python_text(module), python_text(owner));
  text += "]\n";
  text += fmt::format("CHECKPOINT_LAYERS = {}\n", s->again == RunsAgain::layers ? "True" : "False");
  text += fmt::format("GATHER_AGAIN = {}\n", s->zero == 3 ? "True" : "False");
  const Settings& settings = scenario.settings;
  const char* sums = settings.gradients == Gradients::fp32 ? "torch.float32" : "torch.bfloat16";
  text += settings.precision == Precision::fp32
              ? "PRECISION = MixedPrecisionPolicy()\n"
              : fmt::format("PRECISION = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype={})\n", sums);
  text += fmt::format("MICRO_BATCHES = {}\n", s->micro_batches);
  return EngineFile{text + kFunctions, notes, start};
}

}  // namespace

ExportFormat pytorch_format() {
  return for_engine(
      {.key = "pytorch",
       .subject = "Plan",
       .name = "PyTorch",
       .file = "parallelize.py",
       .text = "Annotations of your model's modules, of plans that DTensor and fully_shard can carry out"},
      &write_pytorch);
}

}  // namespace turnpoint
