// SPDX-License-Identifier: Apache-2.0
#include "app/kept_answers.h"

#include <cmath>
#include <utility>

#include "core/search/registry.h"

namespace turnpoint::app {

namespace {

bool decides_only_what_fits(std::string_view key) {
  return key == "memory-limit" || key == "device-memory-scale" || key == "reserve";
}

}  // namespace

std::size_t bytes_of(const Result& result) {
  std::size_t bytes = sizeof result + result.points.capacity() * sizeof(ResultPoint) +
                      result.lower_bound.capacity() * sizeof(frontier::CostPoint);
  if (result.plans) bytes += result.plans->bytes();
  return bytes;
}

std::string question_of(const Method& method, const std::string& parameters, const Scenario& scenario,
                        const std::string& content) {
  std::string question = content + ' ' + method.name + ':' + parameters;
  for (const OptionRecord& option : scenario_options()) {
    if (option.key == "price-per-hour" || (!method.places && decides_only_what_fits(option.key))) continue;
    question += ' ';
    question += format_option(option, get_option(scenario.settings, option.key));
  }
  return question;
}

ResultPtr answer_of(const ResultPtr& result, const ScenarioPtr& scenario) {
  if (!result || result->scenario == scenario) return result;
  auto told = std::make_shared<Result>(*result);
  told->scenario = scenario;
  if (result->clock == Clock::simulated) return told;  // a placement: the limit belongs to its question
  const std::int64_t limit = scenario->memory_limit();
  if (result->scenario && limit == result->scenario->memory_limit()) return told;
  for (std::size_t i = 0; i < told->points.size(); ++i) {
    ResultPoint& point = told->points[i];
    const bool ratio = told->plans && told->plans->kind(i) == PlanKind::ratio;
    point.fits = ratio ? fits(*scenario, *std::get<RatioPlanPtr>(told->plans->plan(i))) : point.memory_bytes <= limit;
  }
  if (!result->near_best) return told;  // of a split of the user's own there is one plan and nothing to choose
  find_marks(*told);
  if (told->gap && !told->exact && std::isfinite(told->slowest_considered_s)) told->gap = considered_gap(*told);
  return told;
}

bool leaves_open(const Result& answer, const Result& told) { return answer.gap && told.gap && *told.gap > *answer.gap; }

void KeptAnswers::keep(const std::string& question, ResultPtr answer) {
  if (const auto at = places_.find(question); at != places_.end()) forget(at->second);
  const std::size_t bytes = bytes_of(*answer) + question.size();
  if (bytes > most_bytes_) return;
  entries_.push_front({question, std::move(answer), bytes});
  places_[question] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > most_bytes_) forget(std::prev(entries_.end()));
}

ResultPtr KeptAnswers::find(const std::string& question) {
  const auto at = places_.find(question);
  if (at == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->answer;
}

void KeptAnswers::forget_unless(const std::function<bool(const Scenario&)>& wanted) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (!wanted(*entry->answer->scenario)) forget(entry);
    entry = next;
  }
}

void KeptAnswers::forget(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->question);
  entries_.erase(entry);
}

}  // namespace turnpoint::app
