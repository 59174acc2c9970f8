// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/force_words.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

namespace {

using Kind = ForcedChoice::Kind;

struct ChoiceWord {
  const char* word;
  Kind kind;
  std::int64_t least, most;  ///< of the number; both -1: it takes none
};
constexpr std::int64_t kMostWays = 1 << 16;
constexpr ChoiceWord kChoiceWords[] = {
    {"dp", Kind::data, 1, kMostWays},         {"tp", Kind::tensor, 1, kMostWays},
    {"cp", Kind::context, 1, kMostWays},      {"ep", Kind::expert, 1, kMostWays},
    {"column", Kind::column, -1, -1},         {"row", Kind::row, -1, -1},
    {"vocabulary", Kind::vocabulary, -1, -1}, {"repeated", Kind::repeated, -1, -1},
    {"replicated", Kind::replicated, -1, -1}, {"zero", Kind::zero, 0, 3},
    {"offload", Kind::offload, -1, -1},       {"keep", Kind::keep, -1, -1},
    {"recompute", Kind::recompute, -1, -1},
};
constexpr const char* kChoicesInWords =
    "dp, dp=N, tp=N, cp=N, ep=N, column, row, vocabulary, repeated, replicated, sharded, zero=0 to 3, offload, keep "
    "and "
    "recompute";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Expected<ForcedChoice> parse_choice(std::string_view text) {
  if (text == "dp") return ForcedChoice{Kind::data, 0};
  if (text == "sharded") return ForcedChoice{Kind::zero, 3};
  const std::size_t equals = text.find('=');
  const std::string_view word = text.substr(0, equals);
  for (const ChoiceWord& known : kChoiceWords) {
    if (word != known.word) continue;
    if (known.least < 0 && equals == std::string_view::npos) return ForcedChoice{known.kind, 0};
    if (known.least < 0) return usage_error(fmt::format("--force: '{}' takes no number, and is '{}'", word, text));
    const auto number = equals == std::string_view::npos ? std::nullopt : parse_int(text.substr(equals + 1));
    if (!number || *number < known.least || *number > known.most)
      return usage_error(
          fmt::format("--force: '{}' needs a number from {} to {}: {}=N", text, known.least, known.most, known.word));
    return ForcedChoice{known.kind, *number};
  }
  return usage_error(fmt::format("--force knows no choice '{}'; there are {}", text, kChoicesInWords));
}

}  // namespace

std::string to_string(const ForcedChoice& choice) {
  if (choice.kind == Kind::data && choice.number == 0) return "dp";
  for (const ChoiceWord& known : kChoiceWords)
    if (known.kind == choice.kind)
      return known.least < 0 ? std::string(known.word) : fmt::format("{}={}", known.word, choice.number);
  return "?";
}

std::string describe(const ForcedChoice& choice) {
  switch (choice.kind) {
    case Kind::data:
      return choice.number == 0 ? "data parallel over all devices" : fmt::format("data parallel {}", choice.number);
    case Kind::tensor: return fmt::format("tensor parallel {}", choice.number);
    case Kind::context: return fmt::format("context parallel {}", choice.number);
    case Kind::expert: return fmt::format("expert parallel {}", choice.number);
    case Kind::column: return "column parallel";
    case Kind::row: return "row parallel";
    case Kind::vocabulary: return "vocabulary parallel";
    case Kind::repeated: return "repeated on all devices";
    case Kind::replicated: return "weights replicated";
    case Kind::zero:
      return choice.number == 0   ? "update not sharded"
             : choice.number == 1 ? "optimizer state sharded (ZeRO-1)"
             : choice.number == 2 ? "gradients and optimizer state sharded (ZeRO-2)"
                                  : "weights sharded (ZeRO-3)";
    case Kind::offload: return "optimizer state at the host";
    case Kind::keep: return "kept for backward";
    case Kind::recompute: return "run again in backward";
  }
  return "?";
}

Expected<std::vector<ForceRule>> parse_force(std::string_view text) {
  std::vector<ForceRule> rules;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view item = trimmed(part);
    if (item.empty()) return usage_error("--force has an empty rule; a rule is 'PATTERN: CHOICE'");
    const std::size_t colon = item.rfind(':');
    if (colon == std::string_view::npos && rules.empty())
      return usage_error(fmt::format("--force: '{}' has no pattern; a rule is 'PATTERN: CHOICE'", item));
    const std::string_view pattern =
        colon == std::string_view::npos ? std::string_view(rules.back().pattern) : trimmed(item.substr(0, colon));
    if (pattern.empty()) return usage_error(fmt::format("--force: '{}' has an empty pattern", item));
    const auto choice = parse_choice(trimmed(colon == std::string_view::npos ? item : item.substr(colon + 1)));
    if (!choice) return choice.error();
    rules.push_back({std::string(pattern), *choice});
  }
  return rules;
}

namespace search {

namespace {

bool is_tensor_parallel(Parallel parallel) {
  return parallel == Parallel::column || parallel == Parallel::row || parallel == Parallel::vocabulary ||
         parallel == Parallel::heads || parallel == Parallel::channels;
}

template <class Is>
std::int64_t ways_of(const Model& model, const Mesh& mesh, OperatorId op, const Configuration& split, const Is& is) {
  std::int64_t ways = 1;
  for (int a = 0; a < mesh.count(); ++a)
    if (is(parallel_of(model, model.operators[op], split.axis[std::size_t(a)]))) ways *= mesh.axes[std::size_t(a)].size;
  return ways;
}

/// Whether some axis splits a parameter that the operator reads.
bool splits_weights(const Model& model, const Mesh& mesh, OperatorId id, const Configuration& split) {
  const Operator& op = model.operators[id];
  for (const Access& access : op.inputs) {
    if (model.tensors[access.tensor].role != TensorRole::parameter) continue;
    const Layout layout = forward_layout(op, access, false, split, mesh.count());
    if (layout.without_partial() != Layout()) return true;
  }
  return false;
}

bool has_parameters(const Model& model, OperatorId op) {
  return std::ranges::any_of(model.operators[op].inputs, [&](const Access& access) {
    return model.tensors[access.tensor].role == TensorRole::parameter;
  });
}

bool split_is(const Model& model, const Mesh& mesh, OperatorId op, const Configuration& split,
              const ForcedChoice& choice) {
  const auto ways = [&](Parallel wanted) {
    return ways_of(model, mesh, op, split, [&](Parallel found) { return found == wanted; });
  };
  switch (choice.kind) {
    case Kind::data: return ways(Parallel::data) == (choice.number == 0 ? mesh.devices() : choice.number);
    case Kind::tensor: return ways_of(model, mesh, op, split, is_tensor_parallel) == choice.number;
    case Kind::context: return ways(Parallel::context) == choice.number;
    case Kind::expert: return ways(Parallel::expert) == choice.number;
    case Kind::column: return ways(Parallel::column) > 1;
    case Kind::row: return ways(Parallel::row) > 1;
    case Kind::vocabulary: return ways(Parallel::vocabulary) > 1;
    case Kind::repeated: return split == Configuration();
    case Kind::replicated: return !splits_weights(model, mesh, op, split);
    default: return true;
  }
}

bool memory_is(const MemoryChoice& memory, const ForcedChoice& choice) {
  switch (choice.kind) {
    case Kind::replicated: return memory.update == Update::replicated;
    case Kind::zero: {
      constexpr Update kStages[] = {Update::replicated, Update::sharded_state, Update::sharded,
                                    Update::sharded_weights};
      return memory.update == kStages[choice.number];
    }
    case Kind::offload: return memory.offload;
    default: return true;
  }
}

bool is_about_weights(Kind kind) { return kind == Kind::replicated || kind == Kind::zero || kind == Kind::offload; }

/// All of several choices at once.
std::shared_ptr<const Forced> forced_by(const Structure& structure, std::vector<ForcedChoice> choices) {
  auto forced = std::make_shared<Forced>();
  for (const ForcedChoice& choice : choices) {
    if (choice.kind == Kind::keep) forced->again = ForcedAgain::keep;
    if (choice.kind == Kind::recompute) forced->again = ForcedAgain::again;
  }
  forced->split = [model = structure.model, mesh = structure.mesh, choices](OperatorId op, const Configuration& split) {
    return std::ranges::all_of(choices,
                               [&](const ForcedChoice& choice) { return split_is(*model, mesh, op, split, choice); });
  };
  forced->choice = [choices = std::move(choices)](const MemoryChoice& memory) {
    return std::ranges::all_of(choices, [&](const ForcedChoice& choice) { return memory_is(memory, choice); });
  };
  return forced;
}

bool can_take(const Prices& prices, OperatorId op, const ForcedChoice& choice) {
  const Structure& structure = prices.structure();
  if (is_about_weights(choice.kind)) {
    const auto& owns = structure.uses.owns_parameter[op.index];
    if (!has_parameters(*structure.model, op) || std::ranges::none_of(owns, [](bool own) { return own; })) return false;
  }
  if (choice.kind == Kind::keep || choice.kind == Kind::recompute) {
    // Who cannot run again is kept anyway.
    Forced again;
    again.again = ForcedAgain::again;
    if (!can_be_forced(prices, op, again)) return false;
  }
  return can_be_forced(prices, op, *forced_by(structure, {choice}));
}

/// Operators of the names, or those that make or own the tensors of that name.
std::vector<OperatorId> named_by(const Structure& structure, const std::string& pattern) {
  const Model& model = *structure.model;
  std::vector<OperatorId> found;
  const auto gather = [&](const auto& is_named) {
    for (std::size_t i = 0; i < model.operators.size(); ++i)
      if (is_named(OperatorId(i))) found.emplace_back(i);
  };
  gather([&](OperatorId op) { return matches_wildcards(model.operators[op].name, pattern); });
  if (!found.empty()) return found;
  gather([&](OperatorId id) {
    const Operator& op = model.operators[id];
    const auto named = [&](const Access& access) {
      return matches_wildcards(model.tensors[access.tensor].name, pattern);
    };
    if (std::ranges::any_of(op.outputs, named)) return true;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (structure.uses.owns_parameter[id.index][i] && named(op.inputs[i])) return true;
    return false;
  });
  return found;
}

std::string words_of(const std::vector<ForcedChoice>& choices) {
  std::vector<std::string> words;
  for (const ForcedChoice& choice : choices) words.push_back(to_string(choice));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// For the operator of a message: one that sets the strategy, where there is one.
OperatorId example_of(const Model& model, const std::vector<OperatorId>& named) {
  for (const OperatorId op : named)
    if (sets_the_strategy(model, model.operators[op])) return op;
  return named.front();
}

}  // namespace

std::vector<OperatorId> reach_of(const Prices& prices, const std::vector<OperatorId>& named,
                                 const ForcedChoice& choice) {
  const Structure& structure = prices.structure();
  const Model& model = *structure.model;
  std::vector<OperatorId> forced;
  std::map<std::uint32_t, bool> takes;  // by group of equal operators
  for (const OperatorId op : named) {
    const auto [it, fresh] = takes.try_emplace(structure.variables[op.index].cost_group, false);
    if (fresh) it->second = can_take(prices, op, choice);
    if (it->second) forced.push_back(op);
  }
  if (choice.kind == Kind::tensor) {
    const auto leads = [&](OperatorId op) { return sets_the_strategy(model, model.operators[op]); };
    if (std::ranges::any_of(named, leads)) std::erase_if(forced, [&](OperatorId op) { return !leads(op); });
  }
  return forced;
}

std::vector<ForcedChoice> choices_of(const Prices& prices, const std::vector<OperatorId>& operators) {
  std::vector<ForcedChoice> all;
  const int devices = prices.structure().mesh.devices();
  for (const Kind kind : {Kind::data, Kind::tensor, Kind::context, Kind::expert})
    for (int ways = 2; ways <= devices; ++ways)
      if (devices % ways == 0) all.push_back({kind, ways});
  for (const Kind kind : {Kind::column, Kind::row, Kind::vocabulary, Kind::repeated, Kind::replicated})
    all.push_back({kind, 0});
  for (const std::int64_t stage : {1, 2, 3}) all.push_back({Kind::zero, stage});
  for (const Kind kind : {Kind::offload, Kind::keep, Kind::recompute}) all.push_back({kind, 0});
  std::erase_if(all, [&](const ForcedChoice& choice) { return reach_of(prices, operators, choice).empty(); });
  return all;
}

Expected<AppliedForce> apply_force(const std::vector<ForceRule>& rules, const Prices& prices) {
  const Structure& structure = prices.structure();
  const Model& model = *structure.model;
  AppliedForce applied;
  applied.operators.resize(model.operators.size());
  std::vector<std::vector<ForcedChoice>> asked(model.operators.size());
  for (const ForceRule& rule : rules) {
    RuleReach reach;
    reach.named = named_by(structure, rule.pattern);
    if (reach.named.empty())
      return usage_error(
          fmt::format("--force: '{}' names no operator and no tensor of {}; 'export --to csv' lists them", rule.pattern,
                      model.name));
    reach.forced = reach_of(prices, reach.named, rule.choice);
    if (reach.forced.empty()) {
      const OperatorId op = example_of(model, reach.named);
      return usage_error(fmt::format("--force: no operator that '{}' names can be '{}'; '{}' can be {}", rule.pattern,
                                     to_string(rule.choice), model.operators[op].name,
                                     words_of(choices_of(prices, {op}))));
    }
    for (const OperatorId op : reach.forced) asked[op.index].push_back(rule.choice);
    applied.rules.push_back(std::move(reach));
  }
  std::map<std::vector<std::pair<int, std::int64_t>>, std::shared_ptr<const Forced>> shared;
  std::map<std::pair<const Forced*, std::uint32_t>, bool> possible;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].empty()) continue;
    std::vector<std::pair<int, std::int64_t>> key;
    for (const ForcedChoice& choice : asked[i]) key.emplace_back(int(choice.kind), choice.number);
    auto& forced = shared[key];
    if (!forced) forced = forced_by(structure, asked[i]);
    const auto [it, fresh] = possible.try_emplace({forced.get(), structure.variables[i].cost_group}, true);
    if (fresh) {
      const bool both = std::ranges::count(asked[i], ForcedChoice{Kind::keep, 0}) > 0 &&
                        std::ranges::count(asked[i], ForcedChoice{Kind::recompute, 0}) > 0;
      it->second = !both && can_be_forced(prices, OperatorId(i), *forced);
    }
    if (!it->second)
      return usage_error(
          fmt::format("--force: '{}' cannot be {} at once", model.operators[OperatorId(i)].name, words_of(asked[i])));
    applied.operators[i] = forced;
  }
  return applied;
}

bool does_already(const Model& model, const Mesh& mesh, const PlanOperator& op, const ForcedChoice& choice) {
  if (choice.kind == Kind::keep) return !op.choice.recompute;
  if (choice.kind == Kind::recompute) return op.choice.recompute;
  return split_is(model, mesh, op.op, op.split, choice) && memory_is(op.choice, choice);
}

}  // namespace search

}  // namespace turnpoint
