// SPDX-License-Identifier: Apache-2.0
#include "app/cli/answers.h"

#include <fmt/format.h>
#include <algorithm>

#include "app/cli/commands.h"
#include "core/base/text.h"
#include "core/search/unanswered.h"

namespace turnpoint::cli {

void Answers::keep_unanswered(const std::string& method, const std::string& note, double seconds) {
  auto result = std::make_shared<Result>(*unanswered(method, scenario_, note, seconds));
  if (objective_ != Objective::frontier) result->objective = to_string(objective_);
  results_.push_back(std::move(result));
}

void Answers::left_out(const std::string& method, const std::string& reason) {
  ++unsuitable_;
  std::fprintf(stderr, "note: method %s is left out: %s\n", method.c_str(), reason.c_str());
  keep_unanswered(method, "left out: " + reason, 0);
}

std::optional<int> Answers::failed(const std::string& method, const Error& error, double seconds) {
  if (error.code == ErrorCode::usage && asked_ > 1) {
    left_out(method, error.what);
    return std::nullopt;
  }
  Error said = error;
  if (said.code == ErrorCode::usage && !said.what.starts_with("method "))
    said.what = fmt::format("method {}: {}", method, said.what);
  const int code = report(said);
  if (error.code != ErrorCode::infeasible) return code;
  keep_unanswered(method, "no answer: " + error.what, seconds);
  return std::nullopt;
}

std::optional<int> Answers::nothing_to_write() const {
  if (results_.size() > unsuitable_) return std::nullopt;
  return report(usage_error("none of the methods suits this model on this hardware"));
}

int Answers::exit_code(bool limited) const {
  const Result* least = nullptr;
  for (const auto& result : results_) {
    if (result->points.empty()) continue;
    if (!limited || result->fastest_that_fits()) return kDone;
    if (!least || result->points.front().memory_bytes < least->points.front().memory_bytes) least = result.get();
  }
  if (least)
    std::fprintf(stderr, "no plan fits %s; the least any needs is %s\n",
                 format_bytes(scenario_->memory_limit()).c_str(),
                 format_bytes(least->points.front().memory_bytes).c_str());
  return kInfeasible;
}

}  // namespace turnpoint::cli
