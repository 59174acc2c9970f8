// SPDX-License-Identifier: Apache-2.0
// The chart's other clock: while it is on, every sharding result is followed by its points on the simulated clock, made
// on workers, newest wins. Placements are on it already.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/result.h"

namespace turnpoint::app {

class SearchRunner;
class TaskManager;

class SimulatedClock : public QObject {
  Q_OBJECT
 public:
  /// Points that are simulated of one result, spread along its curve: more than can be told apart on a chart.
  static constexpr std::size_t kMost = 240, kMostOfCoarse = 48;

  /// A result on the simulated clock. `drawn` has a point for each of the other's, in its order; those that were not
  /// simulated are not drawable. `line` are those that no other beats, by rising memory.
  struct Curve {
    ResultPtr of, drawn;
    std::shared_ptr<const std::vector<std::size_t>> line;
  };

  SimulatedClock(SearchRunner& runner, TaskManager& tasks, QObject* parent = nullptr);

  void set_on(bool on);
  bool on() const { return on_; }
  /// The newest there is, which may still be that of an older result; null: none yet.
  const Curve* find(const std::string& method) const;
  /// Nothing is on its way.
  bool settled() const;

 signals:
  void changed();
  void failed(const turnpoint::Error& error, const QString& what);

 private:
  void update();

  SearchRunner& runner_;
  TaskManager& tasks_;
  std::map<std::string, Curve> curves_;
  std::map<std::string, ResultPtr> asked_;  ///< running or waiting
  bool on_ = false;
};

}  // namespace turnpoint::app
