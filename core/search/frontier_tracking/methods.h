// SPDX-License-Identifier: Apache-2.0
// The methods that solve a frontier problem over configurations: `ft` (all points), and on the same tables
// `data-parallel` (one configuration per operator) and `optcnn` (the least time, memory ignored).
//
// Source: TensorOpt / frontier tracking, arXiv 2004.10856 (resources/manual/mathematics.md, 1); OptCNN as the study
// simulates it: the least-time end of the frontier.
#pragma once

#include "core/search/method/method.h"

namespace turnpoint::search {

Method frontier_tracking_method();
Method data_parallel_method();
Method optcnn_method();

}  // namespace turnpoint::search
