// SPDX-License-Identifier: Apache-2.0
// One reader per kind of file; core/import/task_graph.h chooses among them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/model/task_graph.h"

namespace turnpoint::task_graph_import {

inline constexpr int kMaxDepth = 64;

Expected<TaskGraphPtr> read_native(std::string_view text, const std::string& where);
Expected<TaskGraphPtr> read_workload(const nlohmann::json& document, const std::string& where);
Expected<TaskGraphPtr> read_piper(const nlohmann::json& document, const std::string& where);
/// A task per node of a GraphDef, MetaGraphDef or SavedModel in either format (core/import/task_graph.h).
Expected<TaskGraphPtr> read_tensorflow(std::string_view text, const std::string& where);
Expected<TaskGraphPtr> read_pipedream(std::string_view text, const std::string& where);

/// Where and why the parser gave up, as in parse_json(): "file: line 3: not valid JSON: ...".
Error syntax_error(std::string_view text, std::size_t position, std::string what, const std::string& where);

/// Bytes that a file gives as any JSON number: rounded to whole ones. False if negative, NaN or above 2^53.
bool to_bytes(double value, std::int64_t& bytes);

}  // namespace turnpoint::task_graph_import
