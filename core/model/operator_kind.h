// SPDX-License-Identifier: Apache-2.0
// All that others ask of a kind of operator, in one table. What a kind computes is the builder's to say (builder.h).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/model/model.h"

namespace turnpoint {

struct OperatorKindRecord {
  OperatorKind kind;
  std::string_view name;      ///< in files: "batch-normalisation"
  std::string_view words;     ///< for people, to be translated
  std::string_view timed_as;  ///< the kind under which profiles keep measured times
  bool products = false;      ///< is made of products that matrix units carry out, at the device's peak
};

/// One of every kind, in the order of the enumeration.
std::span<const OperatorKindRecord> operator_kinds();
const OperatorKindRecord& record_of(OperatorKind kind);
/// By its name in files; nullopt: no such kind.
std::optional<OperatorKind> operator_kind(std::string_view name);

}  // namespace turnpoint
