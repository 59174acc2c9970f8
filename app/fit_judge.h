// SPDX-License-Identifier: Apache-2.0
// What truly fits, for every result of sharding plans: follows the searches, simulates the plans that are named on
// workers, newest wins. Sketches are not judged: until the hand rests, words say that they speak of plain sums.
#pragma once

#include <QObject>
#include <map>
#include <string>

#include "core/plan/result.h"

namespace turnpoint::app {

class SearchRunner;
class TaskManager;
struct MethodRun;

class FitJudge : public QObject {
  Q_OBJECT
 public:
  FitJudge(SearchRunner& runner, TaskManager& tasks, QObject* parent = nullptr);

  /// The method's present result, judged by simulated peaks (core/schedule/fitting.h) where that has been done, else as it
  /// was found; indices are the same in both. Null: the method has none.
  ResultPtr find(const std::string& method) const;
  ResultPtr judged(const MethodRun& run) const;
  /// Nothing is on its way.
  bool settled() const { return asked_.empty(); }

 signals:
  /// The judged result of this method is there.
  void judged_changed(const QString& method);

 private:
  struct Verdict {
    ResultPtr of, judged;  ///< judged null: it could not be; words go on to say that they speak of sums
  };
  void update();
  void start(const MethodRun& run);

  SearchRunner& runner_;
  TaskManager& tasks_;
  std::map<std::string, Verdict> verdicts_;
  std::map<std::string, ResultPtr> asked_;  ///< running or waiting
};

}  // namespace turnpoint::app
