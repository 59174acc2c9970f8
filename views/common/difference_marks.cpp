// SPDX-License-Identifier: Apache-2.0
#include "views/common/difference_marks.h"

#include <algorithm>

namespace turnpoint::views {

DifferenceMarksPtr marks_of(const PlanDifference& difference, const Model& model) {
  auto marks = std::make_shared<DifferenceMarks>(model.operators.size(), DifferenceMark::none);
  for (const PlanChange& change : difference.changes)
    for (const OperatorId op : change.operators) {
      DifferenceMark& mark = (*marks)[op.index];
      mark = std::max(mark, change.tensor ? DifferenceMark::tensors : DifferenceMark::itself);
    }
  return marks;
}

}  // namespace turnpoint::views
