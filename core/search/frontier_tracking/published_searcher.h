// SPDX-License-Identifier: Apache-2.0
// `ft-published` and `ft-published-elimination`: the published algorithms (core/frontier/published.h) on the priced
// problem of `ft`. An answer with heuristic eliminations is not certified.
//
// Parameters: `time-limit=SECONDS` (60 unless given, 0: none), after which the search ends with an error that says how
// far it came; `heuristic=weighted|memory`. There is no coarse pass: both passes are the same.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/base/options.h"
#include "core/search/method.h"

namespace turnpoint::search {

const std::vector<OptionRecord>& published_options();
Expected<std::unique_ptr<Searcher>> make_published(std::string_view parameters);
Expected<std::unique_ptr<Searcher>> make_published_elimination(std::string_view parameters);

}  // namespace turnpoint::search
