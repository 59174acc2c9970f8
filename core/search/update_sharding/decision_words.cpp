// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/decision_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace turnpoint::update_sharding {

namespace {

std::string words_of_groups(const ShardGroups& groups) {
  switch (groups.way) {
    case ShardGroups::Way::whole: return "1";
    case ShardGroups::Way::all: return fmt::format("{}", groups.replicas);
    case ShardGroups::Way::rows: return fmt::format("{} of {} replicas", groups.row, groups.replicas);
    case ShardGroups::Way::two_phase:
      return fmt::format("{} in two phases, {} and {}", groups.replicas, groups.row, groups.columns());
  }
  return {};
}

/// Who keeps the weight from being gathered in 16 bits; empty: nobody.
std::string full_precision_reader(const Program& program, const UpdateCluster& cluster) {
  for (const ForcedGather& gather : cluster.gathers)
    if (gather.of_weight && !gather.product && !gather.branch.valid() && gather.reader.valid())
      return program.instructions[gather.reader].name;
  return {};
}

/// Whether what is gathered has 16 bits by itself: all readers read a copy of them.
bool read_in_16_bits(const Program& program, const UpdateCluster& cluster) {
  return std::all_of(cluster.gathers.begin(), cluster.gathers.end(), [&](const ForcedGather& gather) {
    return !gather.of_weight || gather.branch.valid() || program.values[gather.value].element_bytes <= 2;
  });
}

const char* words_of_reason(GatherReason why) {
  switch (why) {
    case GatherReason::program_output: return "hands it to the host";
    case GatherReason::not_redundant: return "does other work on every replica";
    case GatherReason::unshardable: return "cannot work on shards";
    case GatherReason::carried_elsewhere: return "is another variable of the loop";
    case GatherReason::branch_result: return "hands it on";
  }
  return "";
}

/// The dearest gather that a reader forces, and that reader: "'w/0' would be gathered at every step for 3.54 ms, ..".
std::string words_of_dearest(const Program& program, const UpdateCluster& cluster, const UpdateChoice& choice) {
  const GatherCost* dearest = nullptr;
  for (const GatherCost& cost : choice.gathers) {
    const bool of_weight = std::any_of(cluster.gathers.begin(), cluster.gathers.end(), [&](const ForcedGather& gather) {
      return gather.value == cost.value && gather.of_weight;
    });
    if (of_weight && !cost.in_branch) continue;  // the weight's own
    if (!dearest || cost.seconds > dearest->seconds) dearest = &cost;
  }
  if (!dearest) return {};
  std::string name = program.values[dearest->value].name;
  for (const CarriedPair& pair : cluster.pairs)
    if (pair.before == dearest->value || pair.after == dearest->value) name = pair.name;
  for (const ForcedGather& gather : cluster.gathers) {
    if (gather.value != dearest->value || gather.branch.valid() != dearest->in_branch) continue;
    const std::string reader =
        gather.reader.valid() ? "'" + program.instructions[gather.reader].name + "'" : "what reads it";
    const std::string often = dearest->frequency >= 1
                                  ? std::string("at every step")
                                  : fmt::format("at {:.3g} % of the steps", 100 * dearest->frequency);
    return fmt::format("'{}' would be gathered {} for {}, because {} {}", name, often, format_seconds(dearest->seconds),
                       reader, words_of_reason(gather.why));
  }
  return {};
}

std::string words_of_gather(const Program& program, const UpdateCluster& cluster, const UpdateChoice& choice) {
  const std::string time = format_seconds(choice.time.gather_s);
  if (choice.variant == Variant::stays_sharded) {
    if (choice.time.gather_s == 0) return "the weight stays sharded, as nobody reads it whole at every step";
    if (choice.gather_element_bytes > 2)
      return fmt::format("the weight is gathered for {} in fp32 before forward", time);
    return fmt::format("the weight is gathered for {} in bf16 before forward, {}", time,
                       read_in_16_bits(program, cluster) ? "as it is read" : "where only products read it");
  }
  const std::string reader = full_precision_reader(program, cluster);
  return fmt::format("the new weight is gathered for {} in {}{}", time, words_of_precision(choice.gather_element_bytes),
                     reader.empty() ? "" : fmt::format(", as '{}' reads it in full precision", reader));
}

}  // namespace

const char* words_of_precision(int element_bytes) { return element_bytes <= 2 ? "bf16" : "fp32"; }

std::string words_of_padding(double padding) {
  return padding < 5e-4 ? std::string() : fmt::format(" with {:.1f} % padding", 100 * padding);
}

std::string words_of_held(const HeldBytes& held, std::string_view holder, bool shards_gradients) {
  const auto text = [](double bytes) { return format_bytes(std::llround(bytes)); };
  return fmt::format(
      "{} holds {} of weights, gradients and states in the training loop; unsharded it would hold {}. Where a "
      "checkpoint reads them whole, weights and states take {}. {}ZeRO's stages 1, 2 and 3 over all replicas would "
      "hold {}, {} and {}.",
      holder, text(held.inside), text(held.whole), text(held.outside),
      shards_gradients ? "Of reduced gradients each replica keeps its shard alone, as in ZeRO's stage 2. " : "",
      text(held.zero[0]), text(held.zero[1]), text(held.zero[2]));
}

std::int64_t held_on(const CostBreakdown& device) {
  CostBreakdown cost = device;
  return cost[MemoryPart::parameters] + cost[MemoryPart::gradients] + cost[MemoryPart::optimizer];
}

std::string words_of_fullest(const FullestDevice& fullest) {
  const auto& zero = fullest.zero;
  return fmt::format(
      "The fullest device holds {} of weights, gradients and states in the training loop; with whole updates {}. "
      "Where a checkpoint reads them whole, weights and states take {}. ZeRO's stages 1, 2 and 3 over all devices "
      "that hold the same of a weight would leave {}, {} and {} on the fullest one.",
      format_bytes(fullest.inside), format_bytes(fullest.whole), format_bytes(fullest.outside), format_bytes(zero[0]),
      format_bytes(zero[1]), format_bytes(zero[2]));
}

ScenarioPtr with_all_counted(const Scenario& scenario) {
  auto counted = std::make_shared<Scenario>(scenario);
  counted->settings.accounting = Accounting::full;
  return counted;
}

std::string reason_of(const Program& program, const UpdateCluster& cluster, const WeightDecision& decision) {
  const UpdateChoice& whole = decision.replicated;
  if (!decision.chosen.sharded()) {
    if (program.replicas == 1) return "left whole: one replica holds it all";
    if (!decision.rejected) return "left whole: it cannot be cut into shards";
    const UpdateChoice& best = *decision.rejected;
    std::string words = fmt::format(
        "left whole: a step takes {} for it, and sharded over {}{} at best {}, though the update would fall from {} to "
        "{}",
        format_seconds(whole.total()), words_of_groups(best.groups), words_of_padding(best.format.padding()),
        format_seconds(best.total()), format_seconds(whole.time.update_s), format_seconds(best.time.update_s));
    const std::string dearest =
        best.gathers_s > 0.005 * best.total() ? words_of_dearest(program, cluster, best) : std::string();
    return dearest.empty() ? words : words + ": " + dearest;
  }
  const UpdateChoice& chosen = decision.chosen;
  std::string words =
      fmt::format("sharded over {}{}: the update falls from {} to {}, and {}", words_of_groups(chosen.groups),
                  words_of_padding(chosen.format.padding()), format_seconds(whole.time.update_s),
                  format_seconds(chosen.time.update_s), words_of_gather(program, cluster, chosen));
  const auto counts = [&](double seconds) { return seconds > 0.005 * chosen.total(); };
  if (counts(chosen.sums_s)) words += fmt::format("; sums over its shards take {}", format_seconds(chosen.sums_s));
  if (counts(chosen.gathers_s))
    words +=
        fmt::format("; readers in branches and others need gathers of {} a step", format_seconds(chosen.gathers_s));
  return words + fmt::format("; a step takes {} for it instead of {}", format_seconds(chosen.total()),
                             format_seconds(whole.total()));
}

}  // namespace turnpoint::update_sharding
