// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/tofu.h"

#include <algorithm>
#include <limits>

#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

namespace {

// Weight of compute time beside network time: enough to decide between equals, never between others.
constexpr double kTieBreak = 1e-6;

// Configurations without repeated work; where none is legal, those that repeat over the fewest devices.
std::vector<Configuration> without_repeats(const Model& model, const Operator& op, const Mesh& mesh,
                                           bool split_windows) {
  auto configurations = enumerate_configurations(model, op, mesh, split_windows);
  const auto repeats = [&](const Configuration& configuration) {
    std::int64_t devices = 1;
    for (int a = 0; a < mesh.count(); ++a)
      if (configuration.axis[static_cast<std::size_t>(a)] == Configuration::kRepeat)
        devices *= mesh.axes[static_cast<std::size_t>(a)].size;
    return devices;
  };
  std::int64_t fewest = mesh.devices();
  for (const auto& configuration : configurations) fewest = std::min(fewest, repeats(configuration));
  std::erase_if(configurations, [&](const Configuration& c) { return repeats(c) > fewest; });
  return configurations;
}

// Over how many devices the operator's weights are replicated, as a sum over them.
std::int64_t replicas_of_weights(const Model& model, const Operator& op, const Mesh& mesh,
                                 const Configuration& configuration) {
  std::int64_t replicas = 0;
  for (const Access& input : op.inputs) {
    if (model.tensors[storage_of(model, input.tensor)].role != TensorRole::parameter) continue;
    const Layout layout = forward_layout(op, input, false, configuration, mesh.count());
    std::int64_t devices = 1;
    for (int a = 0; a < mesh.count(); ++a)
      if (layout.axis[static_cast<std::size_t>(a)] < 0) devices *= mesh.axes[static_cast<std::size_t>(a)].size;
    replicas += devices;
  }
  return replicas;
}

// Where weights must not be gathered on demand, "every tensor split, nothing replicated" is up to the configurations:
// of those without repeated work the ones that split the operator's weights most.
std::vector<Configuration> with_split_weights(const Model& model, const Operator& op, const Mesh& mesh,
                                              bool split_windows) {
  auto configurations = without_repeats(model, op, mesh, split_windows);
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& c : configurations) fewest = std::min(fewest, replicas_of_weights(model, op, mesh, c));
  std::erase_if(configurations,
                [&](const Configuration& c) { return replicas_of_weights(model, op, mesh, c) > fewest; });
  return configurations;
}

// Network time alone, memory forgotten.
frontier::Problem network_problem(const PricedProblem& priced, const Structure& structure) {
  frontier::Problem problem = priced.problem;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    auto points = problem.nodes[v].costs.mutable_points();
    const Variable& variable = structure.variables[v];
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i].memory = 0;
      if (!variable.choices) continue;
      const double compute = std::min(points[i].time, priced.operators[variable.cost_group].seconds[i]);
      points[i].time = points[i].time - compute + kTieBreak * compute;
    }
  }
  for (auto& edge : problem.edges)
    for (auto& point : edge.costs.mutable_points()) point.memory = 0;
  return problem;
}

class Tofu : public Searcher {
 public:
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const Mesh mesh = make_mesh(*scenario->cluster);
    const auto solve = [&](const Structure& structure, const PricedProblem& priced) {
      auto answer = frontier::Solver().solve(network_problem(priced, structure), {}, context);
      if (answer) keep_fastest(priced.problem, *answer);
      return answer;
    };
    return run_sharding("tofu", scenario, space_of(*scenario, mesh), solve, context);
  }

 private:
  // A comparison method obeys the scenario's switches: without update sharding it has no privilege that `ft` lacks, and
  // is a restriction of the same space, as the TensorOpt study simulates it.
  static SearchSpace space_of(const Scenario& scenario, const Mesh& mesh) {
    const bool gathers = scenario.settings.update_sharding;
    SearchSpace space;
    space.only = [model = scenario.model, gathers, windows = scenario.settings.split_windows](
                     OperatorId, const Operator& op, const Mesh& on) {
      return gathers ? without_repeats(*model, op, on, windows) : with_split_weights(*model, op, on, windows);
    };
    space.sharded_tensors = gathers;
    space.gathers_again = !gathers;
    space.choice = MemoryChoice{};
    if (gathers) space.choice = MemoryChoice{Update::sharded_weights, (1u << mesh.count()) - 1, false, false};
    return space;
  }
};

}  // namespace

Method tofu_method() {
  return {
      .name = "tofu",
      .title = "ToFu",
      .paper = "ToFu, arXiv 1807.08887; as the TensorOpt study simulates it",
      .description = "Every tensor split over all devices, nothing replicated, least network time",
      .on_by_default = true,
      .make = [] { return std::make_unique<Tofu>(); },
  };
}

}  // namespace turnpoint::search
