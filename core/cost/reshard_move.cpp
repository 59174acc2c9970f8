// SPDX-License-Identifier: Apache-2.0
// Apart from the rest of resharding, so that turnpoint-probe gets along without it.
#include "core/cost/resharding.h"

namespace turnpoint {

const char* to_string(ReshardMove move) {
  switch (move) {
    case ReshardMove::all_gather: return "all_gather";
    case ReshardMove::slice: return "slice";
    case ReshardMove::all_to_all: return "all_to_all";
    case ReshardMove::all_reduce: return "all_reduce";
    case ReshardMove::reduce_scatter: return "reduce_scatter";
    case ReshardMove::permute: return "permute";
  }
  return "";
}

}  // namespace turnpoint
