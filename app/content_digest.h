// SPDX-License-Identifier: Apache-2.0
// A short name for what a model, a task graph and a cluster are, by content: the same file opened twice has one name, a
// file that was changed has another. Results are kept under it.
#pragma once

#include <string>
#include <string_view>

#include "core/import/source/model_source.h"
#include "core/scenario/scenario.h"

namespace turnpoint::app {

/// SHA-256, hexadecimal, of everything in the scenario that a search may read, except its settings. It does not depend
/// on where files lie: the model's source and the hardware's specification are left out. May take milliseconds for
/// large graphs.
std::string content_digest(const Scenario& scenario);
/// The same of a source, bound to its own sizes, and of an uncut cluster: one name for all batches, sequences and
/// numbers of devices.
std::string unbound_digest(const ModelSource& source, const Cluster& cluster);
/// Of a text.
std::string text_digest(std::string_view text);

}  // namespace turnpoint::app
