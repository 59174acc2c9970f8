// SPDX-License-Identifier: Apache-2.0
// The ParDNN study (resources/manual/mathematics.md, 2.4): ten models, the largest batch that fits 1 to 16 devices, and
// the speed there. Shared by the benchmark that prints it and the test that pins what the sample session's notes quote.
//
// Devices: the study's DGX-2, sixteen V100 of 32 GB on one switch (preset v100-32gb-1xK, 120 GB/s). Training in fp32
// with Adam, which the study does not state: 16 bytes per parameter, with which a model of 1.9 to 2 billion parameters
// just fits one device at batch 1, as theirs did.
//
// Graphs: recurrent operators as the time steps the study used (28, 25, 35, 35, and 19 frames); batches as a whole.
// The study's node counts, which are those of TensorFlow's graphs with their shapes, constants, identities and
// optimizer state, are reached by taking the steps apart and by micro-batches: `counted`.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/frontier/solver.h"
#include "core/hardware/cluster.h"
#include "core/import/source/model_source.h"
#include "core/schedule/training_graph.h"
#include "core/search/batch_study.h"
#include "core/search/frontier_tracking/plans.h"
#include "core/search/frontier_tracking/structure.h"
#include "core/search/placement_registry.h"
#include "core/search/registry.h"

namespace turnpoint::test {

inline constexpr std::array<int, 5> kStudyDevices = {1, 2, 4, 8, 16};
using Batches = std::array<std::int64_t, 5>;  ///< by kStudyDevices; 0: does not fit

struct StudyModel {
  std::string name;
  std::int64_t tasks;  ///< nodes of the study's graph
  Batches batches;     ///< the study's
};

/// The networks and batches of resources/studies/pardnn-batches.json, with the node counts that only this file needs.
inline const std::vector<StudyModel>& study_models() {
  static const std::vector<StudyModel> kModels = [] {
    const std::map<std::string, std::int64_t> nodes = {
        {"word-rnn", 11744},   {"char-crn", 22748},   {"wrn", 187742},  {"trn", 80550},    {"e3d", 55756},
        {"word-rnn-2", 10578}, {"char-crn-2", 86663}, {"wrn-2", 79742}, {"trn-2", 160518}, {"e3d-2", 55756}};
    const std::string path = TURNPOINT_SOURCE_DIR "/resources/studies/pardnn-batches.json";
    const auto text = read_file(path, std::size_t(64) << 20);
    const auto study = text ? read_batch_study(*text, path) : Expected<BatchStudy>(text.error());
    if (!study) throw std::runtime_error(study.error().message());
    std::vector<StudyModel> models;
    for (const StudiedNetwork& network : study->networks) {
      StudyModel model{network.model.substr(network.model.find(':') + 1), 0, {}};
      model.tasks = nodes.at(model.name);
      for (std::size_t i = 0; i < kStudyDevices.size(); ++i) model.batches[i] = network.reported.at(i);
      models.push_back(std::move(model));
    }
    return models;
  }();
  return kModels;
}

inline Expected<ScenarioPtr> study_scenario(const StudyModel& model, std::int64_t batch, int devices) {
  const auto source = open_model("builtin:" + model.name);
  if (!source) return source.error();
  const auto bound = (*source)->bind({batch, 0});
  if (!bound) return bound.error();
  const std::string hardware = "v100-32gb-1x" + std::to_string(devices);
  const auto cluster = cluster_preset(hardware);
  if (!cluster) return cluster.error();
  Settings settings;
  settings.batch = batch;
  settings.split_loss = false;  // placements divide no operator
  return make_scenario(*bound, *cluster, hardware, settings);
}

inline TrainingGraphOptions study_options(bool whole_layers = false) {
  TrainingGraphOptions options;
  options.unrolled_steps = true;
  options.whole_layers = whole_layers;
  return options;
}

struct StudyPlacement {
  bool fits = false;
  double makespan_s = 0, search_s = 0;
  std::size_t tasks = 0, moved = 0;
  std::optional<PlacementShortage> shortage;
  double one_device_s = 0;
  std::string origin;  ///< SimulatedPlacement::origin
};

inline Expected<StudyPlacement> place(const TaskGraph& graph, int devices, const std::string& method) {
  placement::PlacementRequest request;
  request.devices = std::uint32_t(devices);
  const auto found = placement::find_placement_method(method);
  if (!found) return found.error();
  const auto placed = placement::run_placement(**found, graph, request, {});
  if (!placed) return placed.error();
  return StudyPlacement{placed->fits(),
                        placed->makespan_s,
                        placed->search_s,
                        graph.task_count(),
                        placed->moved_tasks,
                        placed->shortage,
                        std::accumulate(graph.time_s.begin(), graph.time_s.end(), 0.0),
                        placed->origin};
}

/// `micro_batches` of `batch` samples each.
inline Expected<StudyPlacement> place(const StudyModel& model, std::int64_t batch, int devices,
                                      const TrainingGraphOptions& options, const std::string& method = "pardnn") {
  const auto scenario = study_scenario(model, batch, devices);
  if (!scenario) return scenario.error();
  const auto graph = training_graph(**scenario, options);
  if (!graph) return graph.error();
  return place(**graph, devices, method);
}

/// A grid of ten layers of LSTM cells over 28 steps, 2048 units (134 MB of weights each), as the study's word-rnn has
/// them: of such a network the cells alone, on devices without a limit. What is before and behind them takes no time,
/// but the loss still waits for all steps.
inline Expected<TaskGraphPtr> lstm_grid(std::int64_t batch, int devices, bool whole_layers) {
  const StudyModel model{"lstm-lm?layers=10&hidden=2048&sequence=28", 0, {}};
  const auto scenario = study_scenario(model, batch, devices);
  if (!scenario) return scenario.error();
  const auto graph = training_graph(**scenario, study_options(whole_layers));
  if (!graph) return graph.error();
  auto grid = std::make_shared<TaskGraph>(**graph);
  grid->alike.memory_bytes = kUnlimitedBytes;
  for (TaskDevice& device : grid->devices) device.memory_bytes = kUnlimitedBytes;
  for (TaskIndex t = 0; t < grid->task_count(); ++t) {
    if (grid->names[t].starts_with("layer")) continue;
    grid->time_s[t] = 0;
    grid->output_bytes[t] = grid->persistent_bytes[t] = 0;
    for (EdgeIndex e = grid->out_begin[t]; e < grid->out_begin[t + 1]; ++e)
      if (!grid->names[grid->out_to[e]].starts_with("layer")) grid->out_bytes[e] = 0;
  }
  return TaskGraphPtr(grid);
}

/// Powers of two up to 2^14 and the study's own batches.
inline std::vector<std::int64_t> study_candidates(const StudyModel& model) {
  std::vector<std::int64_t> list(model.batches.begin(), model.batches.end());
  for (std::int64_t batch = 1; batch <= (1 << 14); batch *= 2) list.push_back(batch);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  list.erase(list.begin(), std::upper_bound(list.begin(), list.end(), 0));
  return list;
}

struct LargestBatch {
  std::int64_t batch = 0;  ///< 0: none fits
  StudyPlacement placement;
};

/// The largest candidate from `at_least` on (what fewer devices could take) before the first that does not fit: more
/// samples need more memory. Upwards, since finding out that nothing fits takes longest.
inline Expected<LargestBatch> largest_batch(const StudyModel& model, int devices, std::int64_t at_least = 1,
                                            bool whole_layers = false) {
  LargestBatch best;
  for (const std::int64_t batch : study_candidates(model)) {
    if (batch < at_least) continue;
    const auto placed = place(model, batch, devices, study_options(whole_layers));
    if (!placed) return placed.error();
    if (!placed->fits) break;
    best = {batch, *placed};
  }
  return best;
}

/// What comes closest to the study's number of tasks: steps in parts where that is within a tenth of it, else whole
/// steps; and so many micro-batches.
struct Counted {
  TrainingGraphOptions options;
  std::int64_t tasks = 0;  ///< expected
};
inline Expected<Counted> counted(const StudyModel& model) {
  const auto scenario = study_scenario(model, 1, 1);
  if (!scenario) return scenario.error();
  std::optional<Counted> best;
  const auto distance = [&](const Counted& c) { return std::abs(double(c.tasks) / double(model.tasks) - 1); };
  for (const bool in_parts : {true, false}) {
    if (best && distance(*best) <= 0.1) break;
    Counted candidate;
    candidate.options.unrolled_steps = true;
    candidate.options.whole_layers = true;  // as core/schedule/unrolling.h counts them
    candidate.options.cells_in_parts = in_parts;
    std::array<std::int64_t, 2> sizes{};
    for (int m : {1, 2}) {
      candidate.options.micro_batches = m;
      const auto graph = training_graph(**scenario, candidate.options);
      if (!graph) return graph.error();
      sizes[std::size_t(m) - 1] = std::int64_t((*graph)->task_count());
    }
    const std::int64_t more = sizes[1] - sizes[0];
    const auto steps = std::max<std::int64_t>(0, std::llround(double(model.tasks - sizes[0]) / double(more)));
    candidate.options.micro_batches = int(1 + steps);
    candidate.tasks = sizes[0] + steps * more;
    if (!best || distance(candidate) < distance(*best)) best = candidate;
  }
  return *best;
}

/// Data parallel in which every operator may be computed again in backward, and nothing else: the fastest such plan
/// that fits, or the one with the least memory. By the additive account, as every sharding plan.
inline Expected<ResultPoint> data_parallel_with_checkpointing(const StudyModel& model, std::int64_t batch,
                                                              int devices) {
  auto scenario = study_scenario(model, batch, devices);
  if (!scenario) return scenario.error();
  Settings settings = (*scenario)->settings;
  settings.update_sharding = settings.offload = false;
  scenario = make_scenario((*scenario)->model, (*scenario)->cluster, (*scenario)->hardware, settings);
  if (!scenario) return scenario.error();
  search::SearchSpace space;
  space.only = [](OperatorId, const Operator& op, const Mesh& mesh) {
    return std::vector<Configuration>{data_parallel_configuration(op, mesh)};
  };
  const RunContext context;
  const auto structure = search::build_structure(**scenario, space, context);
  if (!structure) return structure.error();
  ThreadPool pool(context.threads);
  const auto prices = std::make_shared<const search::Prices>(*scenario, *structure);
  auto priced = search::price_problem(*prices, pool, context);
  if (!priced) return priced.error();
  frontier::Solver solver;
  frontier::SolveOptions options;
  options.pass = frontier::Pass::coarse;  // every point of it is a plan, and the least memory is exact
  auto answer = solver.solve(priced->problem, options, context);
  if (!answer) return answer.error();
  const ResultPtr result = search::make_result("data-parallel", *scenario, prices, *priced, std::move(*answer), 0);
  return result->points[result->fastest_that_fits().value_or(0)];
}

/// The expert's split: Mesh-TensorFlow's best plan that fits, or the one with the least memory.
inline Expected<ResultPoint> mesh_tensorflow(const StudyModel& model, std::int64_t batch, int devices) {
  const auto scenario = study_scenario(model, batch, devices);
  if (!scenario) return scenario.error();
  const auto method = find_method("mesh-tensorflow");
  if (!method) return method.error();
  const auto result = (*method)->make()->run(*scenario, SearchPass::exact, {});
  if (!result) return result.error();
  return (*result)->points[(*result)->fastest_that_fits().value_or(0)];
}

}  // namespace turnpoint::test
