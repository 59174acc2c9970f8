// SPDX-License-Identifier: Apache-2.0
#include "app/engine_commands.h"

#include <fmt/format.h>

#include "core/export/engines/python_text.h"
#include "core/validation/engine/engine_step.h"
#include "views/common/format.h"

namespace turnpoint::app {

QString engine_commands(const Result& result, std::size_t point, const EngineQuestion& question) {
  constexpr const char* kMeasuredResult = "result.json";
  return views::to_qt(search_command(result, kMeasuredResult) + "\n" +
                      validate_command(point, kMeasuredResult, question) + "\n");
}

QString cluster_commands(const Result& result, std::size_t point, std::string_view key) {
  EngineQuestion question{.engine = key};
  const Engine& engine = *find_engine(key);
  const Cluster& cluster = *result.scenario->cluster;
  if (engine.one_process && cluster.nodes > 1) return {};
  if (!engine.one_process)  // one command that starts the processes of all nodes
    question.launcher =
        cluster.nodes > 1 ? fmt::format("srun --nodes {} --ntasks-per-node {}", cluster.nodes, cluster.devices_per_node)
                          : torchrun_words(1, cluster.devices_per_node);
  if (engine.takes_model && !made_by_transformers(*result.scenario->model)) question.model_code = "MODEL.py:FUNCTION";
  return engine_commands(result, point, question);
}

}  // namespace turnpoint::app
