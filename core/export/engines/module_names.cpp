// SPDX-License-Identifier: Apache-2.0
#include "core/export/engines/module_names.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"

namespace turnpoint {

namespace {

/// The weight that gives an operator its module; of a norm its scale.
std::optional<TensorId> weight_of(const Model& model, OperatorId op) {
  for (const Access& access : model.operators[op].inputs)
    if (model.tensors[access.tensor].role == TensorRole::parameter) return access.tensor;
  return std::nullopt;
}

/// "layer3" -> 3.
std::optional<std::string> layer_number(std::string_view part) {
  if (!part.starts_with("layer") || part.size() == 5) return std::nullopt;
  const std::string_view digits = part.substr(5);
  if (!std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })) return std::nullopt;
  return std::string(digits);
}

const std::map<std::string_view, std::string_view>& modules_of_decoders() {
  static const std::map<std::string_view, std::string_view> names = {
      {"embed/tokens", "model.embed_tokens"},
      {"head/norm", "model.norm"},
      {"head/logits", "lm_head"},
      {"attention/norm", "input_layernorm"},
      {"attention/q", "self_attn.q_proj"},
      {"attention/k", "self_attn.k_proj"},
      {"attention/v", "self_attn.v_proj"},
      {"attention/out", "self_attn.o_proj"},
      {"mlp/norm", "post_attention_layernorm"},
      {"mlp/gate", "mlp.gate_proj"},
      {"mlp/up", "mlp.up_proj"},
      {"mlp/down", "mlp.down_proj"},
  };
  return names;
}

}  // namespace

std::vector<std::string_view> known_families() { return {"llama", "mistral", "qwen2"}; }

Expected<ModuleNames> ModuleNames::of(const Model& model) {
  ModuleNames names;
  if (!model.source.ends_with(".json")) return names;
  const auto config = read_json_file(model.source);
  if (!config) return config.error();
  const std::string family = config->is_object() ? config->value("model_type", std::string()) : std::string();
  const auto known = known_families();
  if (std::ranges::find(known, family) == known.end())
    return usage_error(
        fmt::format("modules of the family '{}' are not known here, those of {} are", family, fmt::join(known, ", ")),
        model.source);
  names.transformers_ = true;
  return names;
}

Expected<std::string> ModuleNames::module(const Model& model, OperatorId id) const {
  const Operator& op = model.operators[id];
  if (transformers_) {
    const std::string_view name = op.name;
    const auto slash = name.find('/');
    const auto layer = layer_number(name.substr(0, slash));
    const auto& known = modules_of_decoders();
    const auto found = known.find(layer ? name.substr(slash + 1) : name);
    if (found == known.end())
      return usage_error(fmt::format("{} is in no module that is known of this family", op.name), model.source);
    return layer ? fmt::format("model.layers.{}.{}", *layer, found->second) : std::string(found->second);
  }
  const auto weight = weight_of(model, id);
  if (!weight) return usage_error(fmt::format("{} has no weight, and so no module", op.name));
  std::string name = model.tensors[*weight].name;
  std::ranges::replace(name, '/', '.');
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name.find("::") != std::string::npos)
    return usage_error(
        fmt::format("the weight of {} is called {} in the file, which tells no module: export the model with the names "
                    "of its parameters",
                    op.name, model.tensors[*weight].name));
  return name.substr(0, dot);
}

std::string pattern_of(std::string_view module) {
  std::string pattern;
  for (std::size_t at = 0; at < module.size();) {
    std::size_t end = at;
    while (end < module.size() && std::isdigit(static_cast<unsigned char>(module[end])) != 0) ++end;
    if (end > at) {
      pattern += "\\d+";
      at = end;
      continue;
    }
    const char c = module[at++];
    if (std::ispunct(static_cast<unsigned char>(c)) != 0 && c != '_') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace turnpoint
