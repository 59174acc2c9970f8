// SPDX-License-Identifier: Apache-2.0
// The one selection that every view reads and writes (design.md 4.8): picked point, operators, reshards; hover apart.
#pragma once

#include <QObject>
#include <optional>
#include <set>
#include <string>

#include "core/base/ids.h"

namespace turnpoint::views {

/// A point of one drawn result: the method's name and the index into its points.
struct PickedPoint {
  std::string method;
  std::size_t index = 0;
  friend bool operator==(const PickedPoint&, const PickedPoint&) = default;
};

/// Setters emit only on change. All views hold a pointer; the document owns it. Lives on the interface thread.
class SelectionModel : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  const std::optional<PickedPoint>& point() const { return point_; }
  const std::set<OperatorId>& operators() const { return operators_; }
  const std::optional<PickedPoint>& hovered_point() const { return hovered_point_; }
  OperatorId hovered_operator() const { return hovered_operator_; }

  void pick_point(std::optional<PickedPoint> point);
  void pick_operators(std::set<OperatorId> operators);
  void toggle_operator(OperatorId op);
  void hover_point(std::optional<PickedPoint> point);
  void hover_operator(OperatorId op);

 signals:
  void point_changed();
  void operators_changed();
  void hovered_point_changed();
  void hovered_operator_changed();

 private:
  std::optional<PickedPoint> point_, hovered_point_;
  std::set<OperatorId> operators_;
  OperatorId hovered_operator_;
};

}  // namespace turnpoint::views
