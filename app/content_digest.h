// SPDX-License-Identifier: Apache-2.0
// A short name for what a model, a task graph and a cluster are, by content: the same file opened twice has one name, a
// file that was changed has another. Results are kept under it.
#pragma once

#include <string>

#include "core/scenario/scenario.h"

namespace turnpoint::app {

/// SHA-256, hexadecimal, of everything in the scenario that a search may read, except its settings. It does not depend
/// on where files lie: the model's source and the hardware's specification are left out. May take milliseconds for
/// large graphs.
std::string content_digest(const Scenario& scenario);

}  // namespace turnpoint::app
