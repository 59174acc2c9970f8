// SPDX-License-Identifier: Apache-2.0
// Writes what a search found, with as many plans as were asked for.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/plan_io/result_text.h"

namespace turnpoint::cli {

/// turnpoint/result@1, or results@1 where `as_list`, to the file or to standard output; returns an exit code. Says so
/// where the plans will take gigabytes, and refuses to begin where they do not fit the disk.
int write_found(const std::string& out, const std::vector<ResultPtr>& results, bool as_list, const WrittenPlans& plans,
                const RunContext& context);

/// What a person at a terminal reads instead: the table of result_table.h.
int show_found(const std::vector<ResultPtr>& results, const RunContext& context);

}  // namespace turnpoint::cli
