// SPDX-License-Identifier: Apache-2.0
#include "app/cli/answers.h"

#include <fmt/format.h>
#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/search_objective.h"
#include "core/base/text.h"
#include "core/schedule/fitting.h"
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

void Answers::look_for_stop(RunContext& context) {
  if (!context.cancelled()) return;
  stopped_ = true;
  context.stop = {};
}

bool Answers::left_out_by_stop(const std::string& method) {
  if (stopped_) left_out(method, "the search was stopped before it");
  return stopped_;
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

void Answers::out_of_time(const std::string& method, double seconds) {
  const std::string why = fmt::format("no answer within the limit of {:g} s", seconds);
  std::fprintf(stderr, "note: method %s: %s\n", method.c_str(), why.c_str());
  keep_unanswered(method, why, seconds);
}

std::optional<int> Answers::nothing_to_write() const {
  if (results_.size() > unsuitable_) return std::nullopt;
  return report(usage_error("none of the methods suits this model on this hardware"));
}

std::string Answers::space() const {
  std::string words = scenario_->tasks ? "" : space_words({});
  for (const auto& result : results_)
    if (space_words(result->traits).empty()) words.clear();
  return words;
}

Expected<void> Answers::tell_of_peaks(const RunContext& context) const {
  for (const auto& result : results_) {
    const auto named = result->fastest_that_fits();
    if (!named || !can_judge_fits(*result)) continue;
    const auto judged = judge_fits(result, context);
    if (!judged) {
      if (judged.error().code == ErrorCode::cancelled) return judged.error();
      continue;
    }
    const auto truly = (*judged)->fastest_that_fits();
    if (truly == named) continue;
    const bool ratio = result->plans->kind(*named) == PlanKind::ratio;
    const std::string limit = ratio ? "its devices" : format_bytes(scenario_->memory_limit());
    std::fprintf(
        stderr, "note: %s: the fastest plan that fits %s by plain sums, point %zu, peaks at %s and does not; %s\n",
        full_method(*result).c_str(), limit.c_str(), *named, memory_words((*judged)->points[*named]).c_str(),
        truly ? fmt::format("the fastest that truly fits is point {}, {} and {}", *truly,
                            memory_words((*judged)->points[*truly]), format_seconds((*judged)->points[*truly].time_s))
                    .c_str()
              : "no plan of it truly fits");
  }
  return {};
}

int Answers::exit_code(bool limited) const {
  const Result* least = nullptr;
  for (const auto& result : results_) {
    if (result->points.empty()) continue;
    if (!limited || result->fastest_that_fits()) return stopped_ ? kInterrupted : kDone;
    if (!least || result->points.front().memory_bytes < least->points.front().memory_bytes) least = result.get();
  }
  if (least)
    std::fprintf(stderr, "no plan%s fits %s; the least any keeps is %s, by plain sums\n", space().c_str(),
                 format_bytes(scenario_->memory_limit()).c_str(),
                 format_bytes(least->points.front().memory_bytes).c_str());
  return kInfeasible;
}

}  // namespace turnpoint::cli
