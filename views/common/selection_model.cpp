// SPDX-License-Identifier: Apache-2.0
#include "views/common/selection_model.h"

namespace turnpoint::views {

void SelectionModel::pick_point(std::optional<PickedPoint> point) {
  if (point == point_) return;
  point_ = std::move(point);
  emit point_changed();
}

void SelectionModel::pick_operators(std::set<OperatorId> operators) {
  if (operators == operators_) return;
  operators_ = std::move(operators);
  emit operators_changed();
}

void SelectionModel::toggle_operator(OperatorId op) {
  auto operators = operators_;
  if (!operators.erase(op)) operators.insert(op);
  pick_operators(std::move(operators));
}

void SelectionModel::hover_point(std::optional<PickedPoint> point) {
  if (point == hovered_point_) return;
  hovered_point_ = std::move(point);
  emit hovered_point_changed();
}

void SelectionModel::hover_operator(OperatorId op) {
  if (op == hovered_operator_) return;
  hovered_operator_ = op;
  emit hovered_operator_changed();
}

}  // namespace turnpoint::views
