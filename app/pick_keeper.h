// SPDX-License-Identifier: Apache-2.0
// Keeps the picked point while results change under it: the fastest plan that fits, which is picked at first, stays the
// fastest that fits, the turning point stays the turning point, any other pick stays at its memory. On the simulated
// clock these are the marks of the curve that is drawn as soon as it is there; until then those of the plain sums.
#pragma once

#include <QObject>
#include <optional>

#include "views/common/selection_model.h"

namespace turnpoint::app {

class FitJudge;
class SearchRunner;
class SimulatedClock;
struct MethodRun;

class PickKeeper : public QObject {
  Q_OBJECT
 public:
  /// What a pick sticks to.
  enum class Follows { fastest, turning_point, memory };

  PickKeeper(SearchRunner& runner, const FitJudge& judge, const SimulatedClock& clock, views::SelectionModel& selection,
             QObject* parent = nullptr);
  Follows follows() const { return follows_; }

  /// From a session: the point nearest to this memory once results are there.
  void want(const std::string& method, double memory_bytes);
  /// The point of a method that has one: now, or once it is there.
  void want(const std::string& method);

 private:
  void result_changed(const QString& method);
  void point_changed();
  void pick(const std::string& method, std::size_t index);
  /// What the chart draws of a method that has a result; its points are those of the result, in its order.
  ResultPtr drawn(const MethodRun& run) const;
  std::size_t nearest_memory(const MethodRun& run) const;

  SearchRunner& runner_;
  const FitJudge& judge_;
  const SimulatedClock& clock_;
  views::SelectionModel& selection_;
  Follows follows_ = Follows::fastest;
  bool own_ = false;
  std::string method_;
  double memory_ = 0;  ///< bytes, by the plain sum
};

}  // namespace turnpoint::app
