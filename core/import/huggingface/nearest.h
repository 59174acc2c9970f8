// SPDX-License-Identifier: Apache-2.0
// Which family of the table a config that names none of them looks like.
#pragma once

#include <string>
#include <vector>

#include "core/import/huggingface/family_table.h"

namespace turnpoint::huggingface {

struct Nearest {
  const Family* family = nullptr;
  /// Keys that look like sizes or switches of the structure and that the family does not read: what they mean is lost.
  std::vector<std::string> unread;
  /// Sizes that the config leaves to the family.
  std::vector<std::string> assumed;
  bool agrees() const { return unread.empty() && assumed.empty(); }
};

/// Judged by the keys alone; of equals the one whose name is most like `name`, then the most usual.
Nearest nearest_family(const nlohmann::json& config, std::string_view name);

}  // namespace turnpoint::huggingface
