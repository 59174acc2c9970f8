// SPDX-License-Identifier: Apache-2.0
// The methods that solve a frontier problem over configurations: `ft` (all points), and on the same tables
// `data-parallel` (one configuration per operator) and `optcnn` (the least time, memory ignored).
//
// Source: TensorOpt / frontier tracking, arXiv 2004.10856 (resources/manual/mathematics.md, 1); OptCNN as the study
// simulates it: the least-time end of the frontier.
#pragma once

#include <memory>

#include "core/search/method.h"

namespace turnpoint::search {

std::unique_ptr<Searcher> make_frontier_tracking();
std::unique_ptr<Searcher> make_data_parallel();
std::unique_ptr<Searcher> make_optcnn();

}  // namespace turnpoint::search
