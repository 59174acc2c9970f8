// SPDX-License-Identifier: Apache-2.0
// Which methods are asked: check marks, and splits of the user's own.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "app/document.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "views/common/format.h"

namespace turnpoint::app {

void SearchRunner::set_enabled(const std::string& name, bool on) {
  MethodRun* run = find_mutable(name);
  if (!run || run->enabled == on) return;
  const MethodRun* before = subject_mutable();
  withdraw(*run);
  run->enabled = on;
  run->again = false;
  run->stopped_for = nullptr;
  run->state = MethodRun::State::idle;
  const std::vector<std::string> kept = take_kept();
  announce(kept);
  if (std::find(kept.begin(), kept.end(), name) == kept.end()) emit result_changed(views::to_qt(name));
  const MethodRun* const main = subject_mutable();
  if (main && main != before) sketch_due_ = needs_search(*main) && !(is_current(*main) && !main->coarse);
  advance();
  emit runs_changed();
  check_settled();
}

MethodChoice SearchRunner::chosen(const std::string& text) const {
  const std::size_t colon = text.find(':');
  for (const Method& method : backend_.methods())
    if (method.name == text.substr(0, colon))
      return {&method, colon == std::string::npos ? std::string() : text.substr(colon + 1)};
  return {splits_, text};
}

Expected<void> SearchRunner::add_split(const std::string& text, bool enabled) {
  if (!splits_) return usage_error("there is no method for splits of one's own");
  const auto [method, parameters] = chosen(text);
  if (parameters.empty() && method != splits_)
    return usage_error(fmt::format("{} stands in the list already; its settings follow its name", method->name));
  const auto searcher = make_searcher(*method, parameters);
  if (!searcher) return searcher.error();
  MethodRun run;
  run.method = method;
  run.parameters = parameters;
  run.name = method->name + ":" + run.parameters;
  run.title = run.parameters;
  std::replace(run.title.begin(), run.title.end(), ':', ' ');
  if (run.method != splits_) run.title = run.method->label() + " " + run.title;
  if (find(run.name)) {
    set_enabled(run.name, enabled);
    return {};
  }
  run.enabled = enabled;
  runs_.push_back(std::move(run));
  searchers_.emplace_back();
  ask_questions();
  refresh_refusals();
  announce(take_kept());
  advance();
  emit runs_changed();
  return {};
}

void SearchRunner::remove_split(const std::string& name) {
  const MethodRun* run = find(name);
  if (!run || !run->is_own()) return;
  tasks_.cancel_purpose(search_purpose(name));
  std::erase(others_, name);
  const auto index = run - runs_.data();
  runs_.erase(runs_.begin() + index);
  searchers_.erase(searchers_.begin() + index);
  emit result_changed(views::to_qt(name));
  advance();
  emit runs_changed();
  check_settled();
}

std::vector<std::string> SearchRunner::splits() const {
  std::vector<std::string> list;
  for (const MethodRun& run : runs_)
    if (run.is_own()) list.push_back(run.method == splits_ ? run.parameters : run.name);
  return list;
}

void SearchRunner::set_enabled_methods(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (splits_ && name.find(':') != std::string::npos && !find(name))
      (void)add_split(name);  // one that means nothing is left out
  const MethodRun* const before = subject_mutable();
  for (MethodRun& run : runs_) {
    run.enabled = std::find(names.begin(), names.end(), run.name) != names.end();
    if (run.enabled) continue;
    withdraw(run);
    run.state = MethodRun::State::idle;
  }
  announce(take_kept());
  // What was on before may have been searching; what is on now has to begin by itself.
  const MethodRun* const main = subject_mutable();
  if (main && main != before) sketch_due_ = needs_search(*main) && !(is_current(*main) && !main->coarse);
  advance();
  emit runs_changed();
  check_settled();
}

}  // namespace turnpoint::app
