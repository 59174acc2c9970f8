// SPDX-License-Identifier: Apache-2.0
// The rows of the plan table: layers, their parts, their operators; layers that are equal in structure and in the plan
// are one row ("layer x24"), whose inner rows stand for the operators of all of them.
#pragma once

#include <QString>
#include <vector>

#include "core/model/hierarchy.h"
#include "views/common/plan_figures.h"

namespace turnpoint::views {

struct PlanRow {
  int parent = -1;  ///< index into PlanRows::rows; -1: top level
  int place = 0;    ///< among its siblings
  std::vector<int> children;
  QString name;                       ///< as shown
  QString key;                        ///< stays the same from plan to plan where the row means the same
  OperatorId op;                      ///< of the first copy; invalid for groups
  int copies = 1;                     ///< how many equal ones the row stands for
  std::vector<OperatorId> operators;  ///< of all copies, sorted
  // Figures of all copies together, so that those of a level add up to the plan's; share is of the whole iteration.
  std::int64_t memory_bytes = 0;
  double compute_s = 0, network_s = 0, reshard_s = 0, share = 0;
  int configurations = 0;           ///< different ones inside
  QString choice;                   ///< how it trades memory for time; of a group, how many of its operators do
  std::uint32_t configuration = 0;  ///< index into PlanFigures::configurations; meaningful where there is one
};

struct PlanRows {
  std::vector<PlanRow> rows;  ///< parents before children
  std::vector<int> top;
  IdVector<OperatorId, int> row_of;        ///< the operator row that stands for an operator
  int folded_rows = 0, folded_groups = 0;  ///< rows that stand for several equal groups, and how many these are
};

/// `figures` may be null: then structure alone decides what is equal.
PlanRows make_plan_rows(const Model& model, const Hierarchy& hierarchy, const PlanFigures* figures);

}  // namespace turnpoint::views
