// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/import/source/model_source.h"

namespace turnpoint {

namespace {

struct TypeName {
  const char* name;
  Precision precision;
};
constexpr TypeName kTypeNames[] = {
    {"float32", Precision::fp32},  {"fp32", Precision::fp32},    {"f32", Precision::fp32},
    {"float", Precision::fp32},    {"bfloat16", Precision::bf16}, {"bf16", Precision::bf16},
    {"float16", Precision::bf16},  {"fp16", Precision::bf16},    {"f16", Precision::bf16},
    {"half", Precision::bf16},     {"fp8", Precision::bf16},     {"float8_e4m3fn", Precision::bf16},
    {"f8_e4m3", Precision::bf16},
};

std::string plain_name(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  std::string plain(name);
  for (char& c : plain)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return plain;
}

}  // namespace

std::optional<Precision> stated_precision(std::string_view type_name) {
  const std::string plain = plain_name(type_name);
  for (const auto& [name, precision] : kTypeNames)
    if (plain == name) return precision;
  return std::nullopt;
}

std::string precision_reason(std::string_view where, std::string_view type_name) {
  const std::string plain = plain_name(type_name);
  const bool other = stated_precision(type_name) == Precision::bf16 && plain != "bfloat16" && plain != "bf16";
  return fmt::format("{} says {}{}", where, type_name, other ? ", counted as bf16" : "");
}

}  // namespace turnpoint
