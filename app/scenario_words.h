// SPDX-License-Identifier: Apache-2.0
// What tells two scenarios apart, in words short enough for a label.
#pragma once

#include <QString>

#include "core/scenario/scenario.h"

namespace turnpoint::app {

/// What `other` has that `present` has not: "Inter-node bandwidth x0.27", "Batch 128, BF16", "1 x 8 V100-16GB"; two
/// things at most and then dots. Empty where a search would not tell them apart.
QString words_of_other(const Scenario& other, const Scenario& present);

}  // namespace turnpoint::app
