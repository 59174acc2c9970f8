// SPDX-License-Identifier: Apache-2.0
#include "app/cli/search_limits.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

#include "core/base/text.h"

namespace turnpoint::cli {

namespace {

constexpr std::string_view kGap = "gap";
constexpr double kLikelyPercent = 0.1;  // nobody asks for a gap so wide; somebody forgets the sign
// Methods give up after the one, and make the best of the other; one method has one of them.
constexpr std::string_view kTimes[] = {"time-limit", "seconds"};

bool has_parameter(const Method& method, std::string_view key) {
  return std::any_of(method.options.begin(), method.options.end(), [&](const auto& one) { return one.key == key; });
}

bool is_written(const Method& method, const std::string& parameters, std::string_view key) {
  const auto read = read_parameters("method " + method.name, method.options, parameters);
  return !read || read->written(key);  // what cannot be read is refused where it is used
}

void add(const Method& method, std::string& parameters, std::string_view key, double value) {
  if (!has_parameter(method, key) || is_written(method, parameters, key)) return;
  parameters += fmt::format("{}{}={}", parameters.empty() ? "" : ":", key, value);
}

}  // namespace

Expected<double> parse_gap(std::string_view text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_double(percent ? text.substr(0, text.size() - 1) : text);
  const double gap = number ? *number / (percent ? 100 : 1) : -1;
  if (!(gap >= 0 && gap <= 1))
    return usage_error(fmt::format("--gap expects a part of the time such as 0.3% or 0.003, not '{}'", text));
  if (!percent && gap >= kLikelyPercent)
    return usage_error(
        fmt::format("--gap {} would be {:g} % of the time; --gap {}% is {} per cent, and {:g}% that much", text,
                    100 * gap, text, text, 100 * gap));
  return gap;
}

std::string with_limits(const Method& method, std::string parameters, const SearchLimits& limits) {
  if (limits.gap) add(method, parameters, kGap, *limits.gap);
  if (limits.seconds > 0)
    for (const auto key : kTimes) add(method, parameters, key, limits.seconds);
  return parameters;
}

bool knows_time(const Method& method) {
  return std::any_of(std::begin(kTimes), std::end(kTimes), [&](auto key) { return has_parameter(method, key); });
}

Expected<void> check_limits(const std::vector<const Method*>& chosen, const SearchLimits& limits) {
  const auto proves = [](const Method* method) { return has_parameter(*method, kGap); };
  if (!limits.gap || std::any_of(chosen.begin(), chosen.end(), proves)) return {};
  std::string names;
  for (const Method& method : methods())
    if (proves(&method)) names += (names.empty() ? "" : ", ") + method.name;
  return usage_error(fmt::format("--gap is for methods that prove one ({}), and none of them was asked", names));
}

StopAfter::StopAfter(const RunContext& outer, double seconds)
    : context_(outer),
      timer_([this, seconds](const std::stop_token& ended) {
        std::unique_lock lock(mutex_);
        never_.wait_for(lock, ended, std::chrono::duration<double>(seconds), [] { return false; });
        if (ended.stop_requested()) return;
        over_ = true;
        source_.request_stop();
      }),
      forward_(outer.stop, [this] { source_.request_stop(); }) {
  context_.stop = source_.get_token();
}

StopAfter::~StopAfter() = default;

}  // namespace turnpoint::cli
