// SPDX-License-Identifier: Apache-2.0
// Which family of the table a config that names none of them looks like.
#pragma once

#include <string>
#include <vector>

#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

/// "decoder", "encoder of text"; empty where nothing tells.
struct ConfigKind {
  FamilyKind kind = FamilyKind::other;
  bool known = false;  ///< false: any kind may fit
  const char* words = "";
};
ConfigKind kind_of_config(const nlohmann::json& config, std::string_view name);

struct Nearest {
  const Family* family = nullptr;
  /// Keys that look like sizes or switches of the structure and that the family does not read: what they mean is lost.
  std::vector<std::string> unread;
  /// Sizes that the config leaves to the family.
  std::vector<std::string> assumed;
  bool agrees() const { return unread.empty() && assumed.empty(); }
};

/// Judged by the keys, among families of the kind that keys and architectures tell (a tower of sound is never read as a
/// decoder); of equals the one whose name is most like `name`, then the most usual. No family where the config holds
/// several parts, or where nothing is of its kind.
Nearest nearest_family(const nlohmann::json& config, std::string_view name);

}  // namespace turnpoint::huggingface
