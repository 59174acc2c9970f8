// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/asked_part.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "core/base/text.h"
#include "core/plan/plan_difference.h"

namespace turnpoint {

namespace {

/// A comma would end the rule.
std::string without_commas(std::string name) {
  std::ranges::replace(name, ',', '?');
  return name;
}

AskedPart named_by(const Model& model, std::string pattern) {
  AskedPart part{std::move(pattern), {}};
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    if (matches_wildcards(model.operators[OperatorId(i)].name, part.pattern)) part.operators.emplace_back(i);
  return part;
}

}  // namespace

AskedPart asked_operator(const Model& model, OperatorId op) {
  return named_by(model, without_commas(model.operators[op].name));
}

std::optional<AskedPart> asked_layer(const Model& model, OperatorId op) {
  const std::string layer = layer_name(model.operators[op]);
  const std::string& name = model.operators[op].name;
  if (layer.empty() || !name.starts_with(layer) || name.size() == layer.size()) return std::nullopt;
  AskedPart part = named_by(model, without_commas(layer) + name[layer.size()] + "*");
  std::size_t members = 0;
  for (const Operator& other : model.operators) members += layer_name(other) == layer;
  if (part.operators.size() < 2 || part.operators.size() != members) return std::nullopt;
  const bool same = std::ranges::all_of(part.operators,
                                        [&](OperatorId other) { return layer_name(model.operators[other]) == layer; });
  return same ? std::optional(std::move(part)) : std::nullopt;
}

std::optional<AskedPart> asked_in_every_layer(const Model& model, OperatorId op) {
  const std::string layer = layer_name(model.operators[op]);
  const std::string& name = model.operators[op].name;
  std::size_t digits = layer.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(layer[digits - 1]))) --digits;
  if (digits == layer.size() || !name.starts_with(layer) || name.size() == layer.size()) return std::nullopt;
  AskedPart part = named_by(model, without_commas(layer.substr(0, digits) + "*" + name.substr(layer.size())));
  return part.operators.size() > 1 ? std::optional(std::move(part)) : std::nullopt;
}

AskedPart asked_whole(const Model& model) { return named_by(model, "*"); }

std::string to_string(const std::vector<ForceRule>& rules) {
  std::string text;
  for (const ForceRule& rule : rules)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", rule.pattern, to_string(rule.choice));
  return text;
}

std::string shell_quoted(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-./:=+,@").find(c) != std::string::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string search_command(const Result& result, const std::string& file) {
  const Scenario& scenario = *result.scenario;
  std::string command = fmt::format("turnpoint-cli search {}", shell_quoted(scenario.model->source));
  if (!scenario.hardware.empty()) command += fmt::format(" --hardware {}", shell_quoted(scenario.hardware));
  std::string without;
  for (const OptionRecord& option : scenario_options()) {
    double value = get_option(scenario.settings, option.key);
    // As the scenario has them, whatever the model states.
    const bool stated = option.key == "batch" || option.key == "precision" || option.key == "sequence";
    if (option.key == "batch") value = static_cast<double>(scenario.model->batch);
    if (option.key == "sequence") value = static_cast<double>(scenario.model->sequence);
    if (value == option.default_value && (!stated || option.key == "sequence")) continue;
    if (option.type != OptionType::flag)
      command += fmt::format(" --{} {}", option.key, shell_quoted(format_option(option, value)));
    else if (option.default_value == 0)
      command += fmt::format(" --{}", option.key);
    else
      without += fmt::format("{}{}", without.empty() ? "" : ",", option.key);
  }
  const std::string method = result.method + (result.method_options.empty() ? "" : ":" + result.method_options);
  if (!without.empty()) command += " --without " + without;
  return command + fmt::format(" --method {} --out {}", shell_quoted(method), shell_quoted(file));
}

std::string explain_command(std::size_t point, const std::string& file, const std::string& more) {
  return fmt::format("turnpoint-cli explain {} --point {}{}{}", shell_quoted(file), point, more.empty() ? "" : " ",
                     more);
}

std::string validate_command(std::size_t point, const std::string& file, const EngineQuestion& question) {
  std::string command = fmt::format("turnpoint-cli validate {} --point {} --engine {}", shell_quoted(file), point,
                                    shell_quoted(std::string(question.engine)));
  if (!question.launcher.empty()) command += " --launcher " + shell_quoted(question.launcher);
  if (!question.model_code.empty()) command += " --model-code " + shell_quoted(question.model_code);
  if (!question.prove) command += " --no-proof";
  if (question.budget_s != EngineQuestion().budget_s) command += fmt::format(" --budget {:g}", question.budget_s);
  return command + " --out report.json";
}

}  // namespace turnpoint
