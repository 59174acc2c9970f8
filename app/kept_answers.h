// SPDX-License-Identifier: Apache-2.0
// Answers of searches by what was asked: whoever goes back to a question has its answer at once.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <unordered_map>

#include "core/plan/result.h"

namespace turnpoint {
struct Method;
}

namespace turnpoint::app {

/// Everything that the exact answer of `method` with `parameters` depends on, as text. `content` is content_digest().
/// What only decides which plans fit and what they cost in money is no part of it, except for methods that place
/// tasks: those keep to the memory limit while they search.
std::string question_of(const Method& method, const std::string& parameters, const Scenario& scenario,
                        const std::string& content);

/// An answer to the same question, told of `scenario`: what fits, the turning point and the price are made anew, plans
/// stay. The same pointer where nothing differs.
ResultPtr answer_of(const ResultPtr& result, const ScenarioPtr& scenario);

/// Whether `told`, an answer told of another memory of devices, is less certain there than where it was found: slow
/// plans count there that its search left out.
bool leaves_open(const Result& answer, const Result& told);

/// That an answer holds, plans included, without what they are made of (the tables of their model).
std::size_t bytes_of(const Result& result);

/// Least recently used first out, by bytes. Not thread-safe.
class KeptAnswers {
 public:
  static constexpr std::size_t kMostBytes = std::size_t(96) << 20;
  explicit KeptAnswers(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// One answer that is larger than all may be together is not kept.
  void keep(const std::string& question, ResultPtr answer);
  /// Null: not kept.
  ResultPtr find(const std::string& question);
  /// Answers hold what their plans are made of, the tables of their model, which their bytes do not count.
  void forget_unless(const std::function<bool(const Scenario&)>& wanted);

  std::size_t size() const { return places_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string question;
    ResultPtr answer;
    std::size_t bytes = 0;
  };
  void forget(std::list<Entry>::iterator entry);

  std::list<Entry> entries_;  ///< newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
  std::size_t most_bytes_ = 0, bytes_ = 0;
};

}  // namespace turnpoint::app
