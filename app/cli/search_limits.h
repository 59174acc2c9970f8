// SPDX-License-Identifier: Apache-2.0
// When a search may end before all is proven: `--gap` and `--time-limit`, which are parameters of the methods that know
// them, and a time after which all other methods are stopped.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/search/registry.h"

namespace turnpoint::cli {

struct SearchLimits {
  std::optional<double> gap = std::nullopt;  ///< as Result::gap has it
  double seconds = 0;                        ///< wall time of one method; 0: no limit
};

/// "0.3%" or "0.003", from 0 to 1 (100 %). Usage error: it is no such number, or one that lacks its per cent sign.
Expected<double> parse_gap(std::string_view text);

/// The parameters of a method with those limits that it knows; what they name themselves stays.
std::string with_limits(const Method& method, std::string parameters, const SearchLimits& limits);
/// Whether it ends by itself at the limit of time that it is given: others have to be stopped.
bool knows_time(const Method& method);
/// Usage error: a gap is asked for, and none of these methods proves one.
Expected<void> check_limits(const std::vector<const Method*>& methods, const SearchLimits& limits);

/// A context that is stopped when `outer` is, or after so many seconds.
class StopAfter {
 public:
  StopAfter(const RunContext& outer, double seconds);
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  const RunContext& context() const { return context_; }
  bool time_is_over() const { return over_; }

 private:
  std::stop_source source_;
  std::atomic<bool> over_ = false;
  RunContext context_;
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread timer_;
  std::stop_callback<std::function<void()>> forward_;
};

}  // namespace turnpoint::cli
