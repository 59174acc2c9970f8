// SPDX-License-Identifier: Apache-2.0
// `ft-published` and `ft-published-elimination`: the published algorithms (core/frontier/published.h) on the priced
// problem of `ft`. An answer with heuristic eliminations is not certified.
//
// Parameters: `time-limit=SECONDS` (60 unless given, 0: none), after which the search ends with an error that says how
// far it came; `heuristic=weighted|memory`. There is no coarse pass: both passes are the same.
#pragma once

#include "core/search/method/method.h"

namespace turnpoint::search {

Method published_method();
Method published_elimination_method();

}  // namespace turnpoint::search
