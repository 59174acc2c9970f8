// SPDX-License-Identifier: Apache-2.0
// The results of the methods of one command, those that gave none among them: no method takes another's answer along.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/search/objectives.h"

namespace turnpoint::cli {

class Answers {
 public:
  /// `asked`: how many methods the command names.
  Answers(ScenarioPtr scenario, Objective objective, std::size_t asked)
      : scenario_(std::move(scenario)), objective_(objective), asked_(asked) {}

  void keep(ResultPtr result) { results_.push_back(std::move(result)); }

  /// A method of several does not suit the scenario: said, and written as a result without points.
  void left_out(const std::string& method, const std::string& reason);

  /// After an answer. Where a stop was asked for meanwhile the method has kept its best: the context loses the request,
  /// so that what there is is written (a second interrupt ends at once), and methods that follow are left out.
  void look_for_stop(RunContext& context);
  /// False: nobody asked for a stop.
  bool left_out_by_stop(const std::string& method);

  /// A method ended without an answer after so many seconds. Where it gave up at a limit of its own, or does not suit
  /// and others are asked, that is said and written as a result without points; any other error ends the command, with
  /// the exit code that is returned.
  std::optional<int> failed(const std::string& method, const Error& error, double seconds);

  /// A method was stopped after so many seconds, and had nothing yet: said, and written as a result without points.
  void out_of_time(const std::string& method, double seconds);

  const std::vector<ResultPtr>& results() const { return results_; }
  /// What to exit with where no method at all could begin, so that there is nothing to write.
  std::optional<int> nothing_to_write() const;
  /// Where the fastest plan that fits by its plain sum does not fit by its simulated peak (core/schedule/fitting.h):
  /// said on standard error. What is written says `fits` by plain sums. Errors: cancelled.
  Expected<void> tell_of_peaks(const RunContext& context) const;
  /// After writing: 4, said on standard error, where no method found a plan or, `limited`, none that fits; else 0, or
  /// 130 where a stop was asked for.
  int exit_code(bool limited) const;

 private:
  /// Which plans none of the methods has: " without micro-batches", or nothing.
  std::string space() const;
  void keep_unanswered(const std::string& method, const std::string& note, double seconds);

  ScenarioPtr scenario_;
  Objective objective_;
  std::size_t asked_, unsuitable_ = 0;
  bool stopped_ = false;
  std::vector<ResultPtr> results_;
};

}  // namespace turnpoint::cli
