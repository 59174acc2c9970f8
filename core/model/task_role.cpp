// SPDX-License-Identifier: Apache-2.0
#include "core/model/task_role.h"

namespace turnpoint {

const char* to_string(TaskRole role) {
  switch (role) {
    case TaskRole::forward: return "forward";
    case TaskRole::backward: return "backward";
    case TaskRole::weight_gradient: return "weight_gradient";
    case TaskRole::accumulate: return "accumulate";
    case TaskRole::update: return "update";
    case TaskRole::weights: return "weights";
  }
  return "";
}

}  // namespace turnpoint
