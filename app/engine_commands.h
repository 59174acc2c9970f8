// SPDX-License-Identifier: Apache-2.0
// Lines for a terminal that search a point again and run some of its plan's steps under an engine, such as one of a
// cluster.
#pragma once

#include <QString>

#include "core/plan/result.h"
#include "core/search/explain/asked_part.h"

namespace turnpoint::app {

/// What was not chosen is filled in: a launcher that starts a process for each device of the scenario's nodes, and
/// words in capitals for the code that makes a model which Transformers does not make. Empty: the engine does not run
/// on so many nodes.
QString engine_commands(const Result& result, std::size_t point, EngineQuestion question);

}  // namespace turnpoint::app
