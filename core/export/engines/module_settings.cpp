// SPDX-License-Identifier: Apache-2.0
#include "core/export/engines/module_settings.h"

#include <fmt/format.h>

namespace turnpoint {

Expected<EngineSettings> read_module_settings(const Scenario& scenario, const Plan& plan, std::string_view engine) {
  auto s = read_engine_settings(scenario, plan, engine);
  if (!s) return s.error();
  const std::string whole = words_of(*s);
  if (s->stages > 1)
    return lacking(fmt::format("the plan has {} stages: annotations leave the model in one piece", s->stages),
                   "torchtitan or Megatron-LM");
  if (s->context > 1)
    return lacking(
        fmt::format("the sequence is split over {} devices, for which the annotations have no module", s->context),
        "torchtitan or Megatron-LM");
  if (s->expert > 1 || (s->roles && s->tensor > 1 && s->expert_tensor > 1))
    return lacking("a mixture of experts is split, for which the annotations have no module",
                   "torchtitan or Megatron-LM");
  if (s->sequence_parallel)
    return lacking(
        "norms and sums are split by sequence, for which the annotations would have to know how your model "
        "makes positions and masks",
        whole.substr(0, whole.find(" with sequence parallelism")));
  if (s->zero == 1)
    return lacking(fmt::format("the optimizer state alone is sharded, among {} devices (ZeRO-1): fully_shard() shards "
                               "gradients with it",
                               s->shard_ways),
                   whole + " with ZeRO-2");
  if (s->again == RunsAgain::cores || s->again == RunsAgain::operators)
    return lacking(fmt::format("{} run again in backward: the annotations checkpoint whole layers",
                               s->again == RunsAgain::cores ? "the cores of attentions" : "single operators"),
                   "recompute of whole layers");
  if (s->offload)
    return lacking(
        "the optimizer state of all operators lives with the host: fully_shard() moves weights and gradients "
        "there with it",
        whole);
  if (scenario.settings.precision == Precision::fp8)
    return lacking("the plan computes in fp8, which the annotations do not lay on", "bf16");
  if (scenario.settings.precision != Precision::fp32 && s->data == 1)
    return lacking(
        "the plan computes in bf16 without data parallel devices: it is fully_shard() that lays precisions on",
        "fp32, or data parallel 2");
  return s;
}

}  // namespace turnpoint
