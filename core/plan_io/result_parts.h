// SPDX-License-Identifier: Apache-2.0
// What a turnpoint/result@1 document is made of, for the writers of it: its long lists are made entry by entry.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/plan/result.h"

namespace turnpoint {

inline constexpr const char* kResultsFormat = "turnpoint/results@1";

struct ResultParts {
  struct List {
    std::size_t count = 0;
    std::function<nlohmann::json(std::size_t)> at;  ///< may be called from several threads
  };
  std::shared_ptr<nlohmann::json> head;  ///< the document, null in place of its long lists
  std::map<std::string, List> lists;     ///< "points", "lower_bound", "plans", where it has them
};

/// The result must outlive its parts.
ResultParts result_parts(const Result& result, bool with_plans);

}  // namespace turnpoint
