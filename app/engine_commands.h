// SPDX-License-Identifier: Apache-2.0
// Lines for a terminal that search a point again and run some of its plan's steps under an engine, such as one of a
// cluster.
#pragma once

#include <QString>

#include "core/plan/result.h"
#include "core/search/explain/asked_part.h"

namespace turnpoint::app {

/// As the question says and no more: without a launcher processes are started where the lines are.
QString engine_commands(const Result& result, std::size_t point, const EngineQuestion& question);

/// For the scenario's own nodes: with a launcher that starts a process for each of their devices, and words in capitals
/// for the code that makes a model which Transformers does not make. `engine`: its key. Empty: it does not run on so
/// many nodes.
QString cluster_commands(const Result& result, std::size_t point, std::string_view engine);

}  // namespace turnpoint::app
