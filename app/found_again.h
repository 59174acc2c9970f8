// SPDX-License-Identifier: Apache-2.0
// Whether a terminal that searches a result again finds the same points under the same numbers, so that a command can
// name one of them.
#pragma once

#include <QString>

#include "core/plan/result.h"

namespace turnpoint::app {

/// Why it does not, a sentence for people; empty: it does. `sketch`: the result is that of a coarse pass.
QString why_not_found_again(const Result& result, bool sketch);

}  // namespace turnpoint::app
