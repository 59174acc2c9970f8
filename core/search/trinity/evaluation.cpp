// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/evaluation.h"

#include <algorithm>
#include <cmath>

#include "core/search/annealing/anneal.h"

namespace turnpoint::trinity {

Evaluation::Evaluation(const TaskGraph& graph, const placement::PlacementRequest& request, int workers)
    : request_(request), costs_(graph, request.devices) {
  for (int w = 0; w < workers; ++w) {
    judges_.push_back(std::make_unique<placement::Judge>(graph, request));
    simulators_.push_back(std::make_unique<RankedSimulator>(graph, request.devices));
  }
}

Expected<Evaluated> Evaluation::of_devices(const std::vector<std::uint32_t>& device, int worker) {
  RankedSimulator& simulator = *simulators_[std::size_t(worker)];
  const auto& priority = priority_.empty() ? placement::bottom_levels(costs_, 1.0, &device) : priority_;
  double most = 1e-300;
  for (const double one : priority) most = std::max(most, std::abs(one));
  for (TaskIndex t = 0; t < device.size(); ++t) {
    simulator.move(t, device[t]);
    simulator.set_rank(t, float(priority[t] / most));
  }
  simulator.run({});
  Placement placement;
  simulator.store(placement);
  return of_placement(std::move(placement), worker);
}

Expected<Evaluated> Evaluation::of_placement(Placement placement, int worker) {
  placement::Judge& judge = *judges_[std::size_t(worker)];
  auto verdict = judge.measure(placement);
  if (!verdict) return verdict.error();
  if (placement.order.empty()) judge.keep_order(placement);
  Evaluated made;
  made.peak_communication = turnpoint::peak_communication(judge.simulation());
  made.placement = std::move(placement);
  made.verdict = std::move(*verdict);
  made.peak_memory = *std::max_element(made.verdict.peak_bytes.begin(), made.verdict.peak_bytes.end());
  made.seconds = made.verdict.objective_s(request_.objective);
  ++calls_;
  return made;
}

Expected<Evaluated> Evaluation::refined(Evaluated from, std::uint64_t calls, std::uint64_t seed,
                                        const RunContext& context) {
  annealing::Walk walk(costs_, request_, request_.met);
  RunContext quiet = context;
  quiet.progress = nullptr;
  const auto done = annealing::anneal(walk, {from.placement}, seed, {.calls = calls}, 0, quiet);
  calls_ += walk.measurements();
  if (!done && done.error().code != ErrorCode::cancelled) return done.error();
  if (!done || !walk.best().better_than(from.score())) return from;
  --calls_;  // what is measured once more
  return of_placement(walk.best_placement(), 0);
}

Expected<void> Evaluation::go_by(const Placement& placement) {
  const auto by_distance = of_devices(placement.device, 0);
  if (!by_distance) return by_distance.error();
  if (const auto own = of_placement(placement, 0); !own) return own.error();
  for (const double start : judges_[0]->simulation().start_s) priority_.push_back(-start);
  const auto as_there = of_devices(placement.device, 0);
  if (!as_there) return as_there.error();
  if (!as_there->verdict.better_than(by_distance->verdict, request_.objective)) priority_.clear();
  return {};
}

}  // namespace turnpoint::trinity
