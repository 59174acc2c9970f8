// SPDX-License-Identifier: Apache-2.0
// What a search that learns shows while it runs, besides its words: the course of learning, and its best answer so far
// as a result that can be drawn and picked like any other.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/plan/learning.h"
#include "core/plan/result.h"

namespace turnpoint::search {

struct LiveSearch : ProgressDetail {
  LiveSearch(std::shared_ptr<const Learning> course, ResultPtr best)
      : learning(std::move(course)), so_far(std::move(best)) {}
  std::shared_ptr<const Learning> learning;
  ResultPtr so_far;  ///< not the search's answer, which may be better; null: none yet
};

}  // namespace turnpoint::search
