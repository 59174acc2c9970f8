// SPDX-License-Identifier: Apache-2.0
// What settings of a framework come to on a number of devices.
#include <fmt/format.h>
#include <algorithm>

#include "core/import/files/training_settings.h"

namespace turnpoint {

namespace {

/// Why a pipeline has no such runs of layers; empty: it has.
std::string runs_refusal_of(const TrainingSettings& s, std::int64_t layers, std::int64_t runs) {
  if (s.layers_in_stages > 0 && s.layers_in_stages != layers)
    return fmt::format("{} of the model's {} layers are in the pipeline, and a split here has all of them there",
                       s.layers_in_stages, layers);
  if (runs > 0 && s.stages * runs * s.layers_each == layers) return {};
  const auto counted = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return fmt::format("{} of {} of {} do not make the model's {} layers", counted(s.stages, "stage"),
                     s.runs_each > 0 ? counted(runs, "run") : "runs", counted(s.layers_each, "layer"), layers);
}

/// Runs of layers on each stage; 0: not known. Usage error: the model's layers are not so many.
Expected<std::int64_t> runs_of(const TrainingSettings& s, std::int64_t layers) {
  if (s.stages == 1 || s.layers_each == 0 || layers == 0) return s.runs_each;
  const std::int64_t runs = s.runs_each > 0 ? s.runs_each : layers / (s.stages * s.layers_each);
  if (const auto reason = runs_refusal_of(s, layers, runs); !reason.empty())
    return usage_error(fmt::format("{}: {}", s.framework, reason));
  return runs;
}

/// Of the devices that share batch and sequence those among which ZeRO shards; 0: all. Usage error: there are no such
/// groups.
Expected<std::int64_t> shards_of(const TrainingSettings& s, std::int64_t alike) {
  if (s.zero == 0) return 0;
  const std::int64_t group = s.sharding > 0 ? s.sharding * s.context : alike / std::max<std::int64_t>(1, s.copies);
  if (s.sharding == 0 && s.copies > 1 && alike % s.copies != 0)
    return usage_error(
        fmt::format("{}: {} devices that share batch and sequence cannot hold {} copies of what ZeRO shards",
                    s.framework, alike, s.copies));
  if (group < 1 || alike % group != 0)
    return usage_error(fmt::format("{}: ZeRO cannot shard among {} of {} devices that share batch and sequence",
                                   s.framework, group, alike));
  return group == alike ? 0 : group;
}

}  // namespace

Expected<std::string> TrainingSettings::split_on(std::int64_t devices, std::int64_t layers) const {
  const auto model_parallel = tensor * context * stages;
  const auto replicas = data > 0 ? data : devices / model_parallel;
  if (replicas < 1 || replicas > devices || model_parallel > devices || replicas * model_parallel != devices)
    return usage_error(fmt::format("{}: tp={}{} times pp={}{} does not make {} devices", framework, tensor,
                                   context > 1 ? fmt::format(" times cp={}", context) : "", stages,
                                   data > 0 ? fmt::format(" times dp={}", data) : "", devices));
  if (expert > 1 && expert_tensor > 0 && expert_tensor != tensor)
    return usage_error(
        fmt::format("{}: each expert is split over {} devices and all else over {}, which here are one "
                    "number",
                    framework, expert_tensor, tensor));
  const std::int64_t alike = replicas * context;
  const bool alone = sharding == 0 && copies > 1 && copies == alike;  // who shards with nobody has all
  const auto shards = alone ? Expected<std::int64_t>(0) : shards_of(*this, alike);
  if (!shards) return shards.error();
  const auto runs = runs_of(*this, layers);
  if (!runs) return runs.error();
  std::int64_t passes = std::max<std::int64_t>(1, accumulation);
  if (global_batch > 0 && micro_batch > 0) {
    if (global_batch % (micro_batch * replicas) != 0)
      return usage_error(fmt::format("{}: a batch of {} cannot be divided among {} replicas of {} samples each",
                                     framework, global_batch, replicas, micro_batch));
    passes = global_batch / (micro_batch * replicas);
  }
  std::string text = fmt::format("dp={}", replicas);
  if (tensor > 1) text += fmt::format(":tp={}", tensor);
  if (context > 1) text += fmt::format(":cp={}", context);
  if (expert > 1) text += fmt::format(":ep={}", expert);
  if (stages > 1) text += fmt::format(":pp={}", stages);
  if (stages > 1 && *runs > 1) text += fmt::format(":vp={}", *runs);
  if (forwards_first && stages > 1) text += ":schedule=gpipe";
  if (passes > 1) text += fmt::format(":micro-batches={}", passes);
  if (zero > 0 && !alone) text += fmt::format(":zero={}", zero);
  if (*shards > 0) text += fmt::format(":shard={}", *shards);
  if (gather_first && zero > 0 && !alone) text += ":gather-first";
  if (reduce_last && zero < 2 && alike > 1) text += ":reduce-last";
  if (recompute) text += by_operator ? ":recompute=op" : selective ? ":recompute=selective" : ":recompute";
  if (sequence_parallel) text += ":sequence-parallel";
  if (tensor_overlap && sequence_parallel && tensor > 1) text += ":tp-comm-overlap";
  return text;
}

}  // namespace turnpoint
