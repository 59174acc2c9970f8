// SPDX-License-Identifier: Apache-2.0
// A sharding plan in the terms in which engines that people train with are told theirs: sizes of groups, stages,
// micro-batches, who shares out the update, what runs again. Read from the plan alone, whatever method found it, and
// strictly: every product with a weight, every look-up and every attention lies as the engine lays it out, or the plan
// is refused with the operator and the reason. What other operators do differently is said, not refused: it changes
// what is sent, not what is trained. Groups of an engine are neighbouring devices, tensor-parallel ones innermost, then
// context, then data parallel ones, stages outermost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/cost/transformer_roles.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// What of the forward pass backward computes again.
enum class RunsAgain : std::uint8_t {
  nothing,
  cores,      ///< of attentions
  operators,  ///< selective_operators() of every layer, each by itself
  layers,     ///< whole
};

struct EngineSettings {
  ModelPtr model;  ///< of one micro-batch
  std::optional<TransformerRoles> roles;
  std::string no_roles;  ///< why there are none

  std::int64_t data = 1, tensor = 1, context = 1;
  std::int64_t expert = 1;         ///< devices that share the experts, of the data and context parallel ones
  std::int64_t expert_tensor = 1;  ///< devices that share each expert's matrices
  bool sequence_parallel = false;
  int stages = 1, chunks = 1, micro_batches = 1;
  std::vector<int> layers;      ///< of each run of layers, as a micro-batch passes through them; empty without stages
  int zero = 0;                 ///< stage, as DeepSpeed numbers them
  std::int64_t shard_ways = 1;  ///< devices among which zero shards: `data` x `context`, or the innermost of them
  bool gather_first = false;    ///< new weights of sharded updates are gathered before the next forward
  /// As PlanPipeline has them; `reduces_meanwhile`: gradients are summed while backward runs.
  bool forwards_first = false, reduces_meanwhile = true, beside_products = false;
  RunsAgain again = RunsAgain::nothing;
  bool offload = false;                ///< the optimizer state of all operators lives with the host
  std::int64_t batch = 1;              ///< samples of an iteration
  std::int64_t micro_batch = 1;        ///< samples of a micro-batch on a device
  bool words_whole = false;            ///< a vocabulary that tensor parallelism cannot divide is whole on every device
  OperatorId split_by_weight;          ///< the first that tensor parallelism splits; invalid: none
  std::vector<std::string> otherwise;  ///< a sentence for each way in which the engine works otherwise than the plan
};

/// "data parallel 4 × tensor parallel 2 with sequence parallelism"; what devices share, in the words of describe() of
/// core/plan/resemblance.h.
std::string words_of(const EngineSettings& settings);

/// "gpt2 on v100-16gb-2x8, 16 devices, batch 256: data parallel 8 × tensor parallel 2, 4 micro-batches, optimizer state
/// sharded (ZeRO-1). By plain sums 9.6 GiB and 812 ms.": what a file is for.
std::string headline(const Scenario& scenario, const Plan& plan, const EngineSettings& settings);

/// What an engine without such switches does otherwise than the plan: when gradients are summed, and what runs beside
/// products.
std::vector<std::string> overlap_notes(const EngineSettings& settings, std::string_view engine);

/// Of an engine that pads such a vocabulary; empty where there is none.
std::vector<std::string> padding_note(const EngineSettings& settings, std::string_view engine);

/// `engine` is how the reader calls it: "Megatron-LM". Usage error: in one sentence the operator, how it lies, why the
/// engine cannot, and what is nearest.
Expected<EngineSettings> read_engine_settings(const Scenario& scenario, const Plan& plan, std::string_view engine);

/// The usage error of a plan whose settings the engine lacks; `nearest` in words, empty: nothing is.
Error lacking(const std::string& why, const std::string& nearest);

/// Of an engine that gives each device of a context group one part of the sequence from its front and one from its end,
/// so that causal attention is as much work everywhere, and cuts each of these parts `cuts` times more for tensor
/// groups (1: not at all): why there are no such parts. nullopt: there are, or sequences are whole.
std::optional<Error> halves_refusal(const EngineSettings& settings, std::int64_t cuts, std::string_view engine);

/// Whether runs of layers are as many layers each.
bool equal_runs(const EngineSettings& settings);

}  // namespace turnpoint
