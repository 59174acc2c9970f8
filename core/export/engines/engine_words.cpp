// SPDX-License-Identifier: Apache-2.0
// What engines are told, and refuse, in words.
#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/export/engines/engine_settings.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

std::string words_of(const EngineSettings& settings) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 1) parts.push_back(fmt::format("{} {}", what, count));
  };
  add(settings.stages, "pipeline parallel");
  add(settings.data, "data parallel");
  add(settings.context, "context parallel");
  add(settings.tensor, "tensor parallel");
  if (settings.sequence_parallel) parts.back() += " with sequence parallelism";
  if (parts.empty()) return "everything on one device";
  const std::string experts = settings.expert > 1 ? fmt::format(", experts over {}", settings.expert) : std::string();
  return fmt::format("{}{}", fmt::join(parts, " \u00d7 "), experts);
}

std::vector<std::string> overlap_notes(const EngineSettings& settings, std::string_view engine) {
  std::vector<std::string> notes;
  if (!settings.reduces_meanwhile)
    notes.push_back(fmt::format("the plan sums gradients behind backward, {} while backward runs", engine));
  if (settings.beside_products)
    notes.push_back(fmt::format(
        "the plan lets collectives of tensor groups run beside products, {} makes them one after the other", engine));
  return notes;
}

std::vector<std::string> padding_note(const EngineSettings& settings, std::string_view engine) {
  if (!settings.words_whole) return {};
  return {
      fmt::format("the vocabulary cannot be divided by {}: {} pads it and splits look-up, logits and loss by words, "
                  "where the plan has them whole on every device",
                  settings.tensor, engine)};
}

std::string headline(const Scenario& scenario, const Plan& plan, const EngineSettings& settings) {
  std::string text = words_of(settings);
  if (settings.chunks > 1) text += fmt::format(", {} virtual stages on each device", settings.chunks);
  if (settings.micro_batches > 1) text += fmt::format(", {} micro-batches", settings.micro_batches);
  if (settings.forwards_first) text += " (all forward first)";
  constexpr const char* kSharded[] = {"", "optimizer state", "gradients and optimizer state", "weights"};
  if (settings.zero > 0)
    text += fmt::format(", {} sharded (ZeRO-{}){}", kSharded[settings.zero], settings.zero,
                        hybrid_words(settings.shard_ways, settings.data * settings.context / settings.shard_ways));
  constexpr const char* kAgain[] = {"", "attention cores", "operators", "layers"};
  if (settings.again != RunsAgain::nothing)
    text += fmt::format(", checkpointing of {}", kAgain[std::size_t(settings.again)]);
  return fmt::format("{} on {}, {} devices, batch {}: {}. By plain sums {} and {}.", scenario.model->name,
                     scenario.hardware, scenario.cluster->devices(), settings.batch, text,
                     format_bytes(plan.cost.memory_bytes()), format_seconds(plan.cost.time_s()));
}

Error lacking(const std::string& why, const std::string& nearest) {
  Error error = usage_error(why);
  if (!nearest.empty()) error.hint = fmt::format("nearest is {}", nearest);
  return error;
}

std::optional<Error> halves_refusal(const EngineSettings& settings, std::int64_t cuts, std::string_view engine) {
  const std::int64_t parts = 2 * settings.context * cuts;
  if (settings.context == 1 || settings.model->sequence % parts == 0) return std::nullopt;
  const std::string once_more =
      cuts > 1 ? fmt::format(", and asks that each be cut once more for the {} devices of a tensor group", cuts) : "";
  return lacking(
      fmt::format("a sequence of {} has no {} equal parts: {} gives each of {} devices one from its front and "
                  "one from its end{}",
                  settings.model->sequence, parts, engine, settings.context, once_more),
      {});
}

bool equal_runs(const EngineSettings& settings) {
  return std::ranges::all_of(settings.layers, [&](int layers) { return layers == settings.layers.front(); });
}

}  // namespace turnpoint
