// SPDX-License-Identifier: Apache-2.0
#include "app/cli/chosen_point.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace turnpoint::cli {

Expected<std::size_t> chosen_point(const std::optional<std::string>& asked, const Result& result, const char* option) {
  if (result.points.empty()) {
    const std::string why = result.notes.empty() ? std::string() : ": " + result.notes.front();
    return Error{ErrorCode::infeasible, "the result has no point" + why, {}, {}};
  }
  const std::string text = asked.value_or(result.turning_point ? "turning" : "min-time");
  if (text == "min-memory") return std::size_t(0);
  if (text == "min-time") return result.fastest_that_fits().value_or(result.points.size() - 1);
  if (text == "turning") {
    if (result.turning_point) return *result.turning_point;
    if (result.points.size() == 1) return std::size_t(0);
    return usage_error(
        fmt::format("the result has no turning point; choose {} min-time, min-memory or an index", option));
  }
  const auto index = parse_int(text);
  if (!index)
    return usage_error(fmt::format("{} expects an index, turning, min-time or min-memory, not '{}'", option, text));
  if (*index < 0 || *index >= static_cast<std::int64_t>(result.points.size()))
    return usage_error(fmt::format("{} {} is outside 0 to {}", option, *index, result.points.size() - 1));
  return static_cast<std::size_t>(*index);
}

}  // namespace turnpoint::cli
