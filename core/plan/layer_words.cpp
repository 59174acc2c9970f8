// SPDX-License-Identifier: Apache-2.0
#include "core/plan/layer_words.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/cost/transformer_roles.h"
#include "core/plan/iteration_cost.h"
#include "core/plan/plan_difference.h"

namespace turnpoint {

namespace {

struct Part {
  std::string name;
  std::vector<OperatorId> operators;
};

/// In the order in which they begin.
class Parts {
 public:
  void add(const std::string& name, OperatorId op) {
    const auto [it, fresh] = known_.try_emplace(name, parts_.size());
    if (fresh) parts_.push_back({name, {}});
    parts_[it->second].operators.push_back(op);
  }
  std::vector<Part> take() { return std::move(parts_); }

 private:
  std::map<std::string, std::size_t> known_;
  std::vector<Part> parts_;
};

/// A path of which an inner word ends in a number: layer_name() then ends with it, and more follows.
bool in_numbered_layer(const Operator& op) {
  const std::string layer = layer_name(op);
  return !layer.empty() && std::isdigit(static_cast<unsigned char>(layer.back())) != 0 && layer != op.name;
}

std::vector<Part> parts_by_path(const Model& model) {
  Parts parts;
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    parts.add(layer_name(model.operators[OperatorId(i)]), OperatorId(i));
  return parts.take();
}

std::vector<Part> parts_by_role(const Model& model, const TransformerRoles& roles) {
  Parts parts;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const int layer = roles.layer_of[i];
    parts.add(layer < 0               ? "before the layers"
              : layer >= roles.layers ? "behind the layers"
                                      : fmt::format("layer {}", layer),
              OperatorId(i));
  }
  return parts.take();
}

/// What has no weight goes to the part before it; what comes before all weights goes to the first that has one.
std::vector<Part> parts_by_weight(const Plan& plan, const Model& model) {
  const auto holds = [&](const Part& part) {
    return std::ranges::any_of(part.operators,
                               [&](OperatorId op) { return !plan.operators[op.index].parameters.empty(); });
  };
  std::vector<Part> joined;
  bool named = false;
  for (Part& part : parts_by_path(model)) {
    const bool weights = holds(part);
    if (joined.empty() || (weights && named)) {
      joined.push_back(std::move(part));
    } else {
      if (weights) joined.back().name = part.name;
      auto& operators = joined.back().operators;
      operators.insert(operators.end(), part.operators.begin(), part.operators.end());
    }
    named = named || weights;
  }
  return joined;
}

std::vector<Part> parts_of(const Plan& plan, const Model& model) {
  if (!std::ranges::any_of(model.operators, in_numbered_layer))
    if (const auto roles = find_transformer_roles(model, false)) return parts_by_role(model, *roles);
  return parts_by_weight(plan, model);
}

bool says_something(const Plan& plan, const Part& part) {
  return std::ranges::any_of(part.operators, [&](OperatorId id) {
    const PlanOperator& op = plan.operators[id.index];
    return !op.parameters.empty() || of_iteration(op, plan.micro_batches()).compute_s() > 0;
  });
}

/// "tensor parallel 2 (column, row, sequence)", "vocabulary parallel 4".
std::string cut_words(const Ways& ways) {
  std::vector<const char*> kinds;
  const auto add = [&](Parallel parallel, const char* word) {
    if (ways.cuts[std::size_t(parallel)]) kinds.push_back(word);
  };
  add(Parallel::column, "column");
  add(Parallel::row, "row");
  add(Parallel::vocabulary, "vocabulary");
  // Which attentions and what lies between the products follow.
  if (kinds.empty()) add(Parallel::heads, "by heads"), add(Parallel::channels, "by channels");
  const bool other = !kinds.empty() && std::string_view(kinds.front()).starts_with("by ");
  if (ways.sequence_parallel) kinds.push_back("sequence");
  if (kinds.empty()) return fmt::format("tensor parallel {}", ways.tensor);
  if (kinds.size() > 1 || other) return fmt::format("tensor parallel {} ({})", ways.tensor, fmt::join(kinds, ", "));
  return fmt::format("{} parallel {}", kinds.front(), ways.tensor);
}

std::string ways_words(const Ways& ways, std::int64_t devices) {
  std::vector<std::string> words;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 1) words.push_back(fmt::format("{} {}", what, count));
  };
  add(ways.data, "data parallel");
  if (ways.tensor > 1) words.push_back(cut_words(ways));
  add(ways.context, "context parallel");
  add(ways.spatial, "spatially parallel");
  if (ways.repeated > 1)
    words.push_back(words.empty() && ways.expert <= 1 && ways.repeated == devices
                        ? "repeated on all devices"
                        : fmt::format("repeated on {} devices", ways.repeated));
  // Experts lie along axes that mean something else to all other operators, if there are any.
  std::string text = fmt::format("{}", fmt::join(words, " \u00d7 "));
  if (ways.expert > 1) text += fmt::format("{}expert parallel {}", text.empty() ? "" : ", ", ways.expert);
  return text.empty() ? "on one device" : text;
}

std::string for_some(int count, int all) {
  return count < all ? fmt::format(" for {} of {} operators", count, all) : std::string();
}

/// All but how many operators run again.
std::string part_words(const Resemblance& part) {
  std::string text = "no named strategy";
  if (part.named()) {
    text = ways_words(part, part.devices);
    if (part.share < 0.995) text += fmt::format(" for {:.0f} % of its computing", 100 * part.share);
    if (part.second)
      text += fmt::format(", {} for {:.0f} %", ways_words(*part.second, part.devices), 100 * part.second->share);
  }
  for (std::size_t stage = 3; stage > 0; --stage)
    if (part.zero[stage] > 0) text += fmt::format(", ZeRO-{}{}", stage, for_some(part.zero[stage], part.weighted));
  if (part.offloaded > 0) text += ", optimizer state at the host" + for_some(part.offloaded, part.weighted);
  if (part.layers_again) text += ", checkpointing";
  if (part.cores_again) text += ", checkpointing of the attention core";
  if (part.recomputed > 0) text += ", checkpointing in";
  return text;
}

/// Of a plan with several.
std::vector<int> stages_of(const Plan& plan, const Part& part) {
  std::set<int> stages;
  if (plan.pipeline && plan.pipeline->stages > 1)
    for (const OperatorId op : part.operators) stages.insert(plan.operators[op.index].stage);
  return {stages.begin(), stages.end()};
}

/// "6 operators", "4 to 32 operators".
std::string again_words(int fewest, int most) {
  if (most == 0) return {};
  if (most == 1) return " 1 operator";
  return fewest == most ? fmt::format(" {} operators", most) : fmt::format(" {} to {} operators", fewest, most);
}

}  // namespace

std::vector<LayerWords> words_by_layer(const Plan& plan, const Model& model) {
  if (plan.operators.size() != model.operators.size()) return {};
  std::vector<Part> parts = parts_of(plan, model);
  std::erase_if(parts, [&](const Part& part) { return !says_something(plan, part); });
  std::vector<std::vector<OperatorId>> operators;
  for (const Part& part : parts) operators.push_back(part.operators);
  const std::vector<Resemblance> found = resemblances_of(plan, model, operators);
  std::vector<LayerWords> lines;
  std::string said;  // of the last line, but for how many run again
  int fewest = 0, most = 0;
  const auto end_line = [&] {
    if (!lines.empty()) lines.back().words += again_words(fewest, most);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int again = found[i].recomputed;
    std::string words = part_words(found[i]);
    std::vector<int> stages = stages_of(plan, parts[i]);
    if (lines.empty() || said != words || lines.back().stages != stages) {
      end_line();
      said = words;
      lines.push_back({{}, std::move(words), std::move(stages)});
      fewest = most = again;
    }
    fewest = std::min(fewest, again), most = std::max(most, again);
    lines.back().layers.push_back(parts[i].name);
  }
  end_line();
  return lines;
}

std::string place_of(const LayerWords& line) {
  const std::vector<std::string> runs = runs_of(line.layers);
  std::string text = runs.size() <= 3 ? fmt::format("{}", fmt::join(runs, ", "))
                                      : fmt::format("{} to {} ({} parts)", line.layers.front(), line.layers.back(),
                                                    line.layers.size());
  if (!line.stages.empty())
    text += fmt::format(" on stage{} {}", line.stages.size() > 1 ? "s" : "", fmt::join(line.stages, ", "));
  return text;
}

std::string describe(const LayerWords& line) { return fmt::format("{}: {}", place_of(line), line.words); }

}  // namespace turnpoint
