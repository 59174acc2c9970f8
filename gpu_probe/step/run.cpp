// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/rank_step.h"

namespace turnpoint::step {

Expected<StepRun> run_step(const Model& model, const Plan& plan, const StepOptions& options) {
  const auto program = Program::make(model, plan, options);
  if (!program) return program.error();
  const int count = plan.mesh.devices();
  ThreadRanks ranks(count);
  StepRun run;
  run.ranks.resize(static_cast<std::size_t>(count));
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < count; ++r)
      threads.emplace_back([&, r] {
        const auto communicator = ranks.communicator(r);
        RankStep step(**program, *communicator);
        if (auto done = step.run(); !done) {
          errors[static_cast<std::size_t>(r)] = done.error();
          communicator->give_up();
        }
        run.ranks[static_cast<std::size_t>(r)] = step.report();
      });
  }
  const std::optional<Error>* first = nullptr;
  for (const auto& error : errors)
    if (error && (!first || ((*first)->code == ErrorCode::device && error->code != ErrorCode::device))) first = &error;
  if (first) return **first;
  for (const auto& report : run.ranks) run.loss += report.loss;
  return run;
}

Expected<StepRun> run_whole(const Model& model, const Plan& plan, StepOptions options) {
  options.shares = statistics_shares(model, plan);
  return run_step(model, whole_plan(model), options);
}

namespace {

using Key = std::tuple<Compared, OperatorId, std::uint32_t>;

struct Whole {
  const Recorded* recorded = nullptr;
  double scale = 0;
};

const Tensor& tensor_of(const Model& model, const Recorded& r) {
  const Operator& op = model.operators[r.op];
  const bool output = r.kind == Compared::activation || r.kind == Compared::activation_gradient;
  return model.tensors[output ? op.outputs[r.slot].tensor : op.inputs[r.slot].tensor];
}

std::size_t global_index(const Region& region, std::int64_t at, const Shape& shape) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    index += (region.offset[d] + at % region.extent[d]) * stride;
    at /= region.extent[d];
    stride *= shape[d];
  }
  return static_cast<std::size_t>(index);
}

}  // namespace

double Comparison::largest() const { return std::max(loss, *std::max_element(worst.begin(), worst.end())); }

Expected<Comparison> compare(const Model& model, const Plan& plan, const StepRun& step, const StepRun& whole) {
  std::map<Key, Whole> reference;
  for (const auto& r : whole.ranks.front().recorded) {
    Whole& here = reference[{r.kind, r.op, r.slot}];
    here.recorded = &r;
    for (const double v : r.data) here.scale = std::max(here.scale, std::abs(v));
  }
  Comparison result;
  result.loss = std::abs(step.loss - whole.loss) / std::max(std::abs(whole.loss), 1e-3);
  const auto check = [&](const Recorded& r, const std::vector<double>& data) -> Expected<void> {
    const auto found = reference.find({r.kind, r.op, r.slot});
    const Tensor& tensor = tensor_of(model, r);
    if (found == reference.end())
      return bad_input("the unpartitioned step has no " + std::string(to_string(r.kind)) + " '" + tensor.name + "'");
    const auto kind = static_cast<std::size_t>(r.kind);
    const double scale = std::max(found->second.scale, 1e-12);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::size_t at = global_index(r.region, r.first + static_cast<std::int64_t>(i), tensor.shape);
      const double difference = std::abs(data[i] - found->second.recorded->data[at]) / scale;
      if (difference <= result.worst[kind]) continue;
      // A value that is no number is wrong, whatever it is compared with.
      result.worst[kind] = std::isfinite(difference) ? difference : HUGE_VAL;
      if (result.worst[kind] >= result.largest())
        result.where = model.operators[r.op].name + ": " + to_string(r.kind) + " '" + tensor.name + "'";
    }
    for (const double v : data)
      if (std::isnan(v)) {
        result.worst[kind] = HUGE_VAL;
        result.where = model.operators[r.op].name + ": " + to_string(r.kind) + " '" + tensor.name + "' is no number";
      }
    result.elements[kind] += static_cast<std::int64_t>(data.size());
    return {};
  };
  // Ranks along partial axes hold summands of the same elements.
  std::map<std::pair<Key, int>, std::pair<const Recorded*, std::vector<double>>> sums;
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    for (const auto& r : step.ranks[rank].recorded) {
      if (!r.partial) {
        if (auto done = check(r, r.data); !done) return done.error();
        continue;
      }
      const std::uint32_t others = ((1u << plan.mesh.count()) - 1) & ~r.partial;
      auto& [first, sum] = sums[{{r.kind, r.op, r.slot}, position_of(plan.mesh, static_cast<int>(rank), others)}];
      first = &r;
      sum.resize(r.data.size(), 0);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += r.data[i];
    }
  }
  for (const auto& [key, sum] : sums)
    if (auto done = check(*sum.first, sum.second); !done) return done.error();
  return result;
}

double traffic_error(const StepRun& step, std::string* where) {
  double worst = 0;
  const auto& listed = step.ranks.front().traffic;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    double received = 0;
    for (const auto& rank : step.ranks) {
      if (rank.traffic.size() != listed.size()) return HUGE_VAL;
      received += rank.traffic[i].received_bytes + rank.traffic[i].in_place_bytes;
    }
    const double planned = listed[i].planned_bytes * static_cast<double>(step.ranks.size());
    const double error = std::abs(received - planned) / std::max(planned, 1.0);
    if (error <= worst) continue;
    worst = error;
    if (where)
      *where = listed[i].where + ", " + to_string(listed[i].move) + ": planned " + std::to_string(planned) +
               " bytes, received " + std::to_string(received);
  }
  return worst;
}

}  // namespace turnpoint::step
