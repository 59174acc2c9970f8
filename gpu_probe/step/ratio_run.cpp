// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_run.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <tuple>

#include "gpu_probe/step/rank_threads.h"
#include "gpu_probe/step/whole_step.h"

namespace turnpoint::step {

namespace {

constexpr int kMostRatioRanks = 8;

Error cannot_prove(const StepJob& job, const std::string& what) {
  return bad_input("ratio plan: " + what, job.model->name);
}

const Tensor& recorded_tensor(const Model& model, const Recorded& r) {
  const Operator& op = model.operators[r.op];
  const bool output = r.kind == Compared::activation || r.kind == Compared::activation_gradient;
  return model.tensors[output ? op.outputs[r.slot].tensor : op.inputs[r.slot].tensor];
}

}  // namespace

Expected<RatioRun> run_ratio(const Arithmetic& in, const StepJob& job, const StepOptions& options, int steps) {
  const ComputeIn here(in);
  const auto program = RatioProgram::make(job, options);
  if (!program) return program.error();
  const int count = (*program)->tree.ranks();
  ThreadRanks ranks(count);
  RatioRun run;
  run.lines = (*program)->lines;
  run.step.ranks.resize(static_cast<std::size_t>(count));
  run.came.resize(run.step.ranks.size());
  std::vector<std::optional<Error>> errors(run.step.ranks.size());
  std::optional<Error> not_started;
  {
    const auto body = [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const auto communicator = ranks.communicator(rank);
      try {
        RatioRank step(**program, *communicator);
        for (int s = 0; s < steps && !errors[r]; ++s)
          if (auto done = step.run(); !done) errors[r] = done.error();
        run.step.ranks[r] = std::move(step.report());
        run.came[r] = step.traffic();
      } catch (const std::bad_alloc&) {
        errors[r] = Error{ErrorCode::device, "out of memory", job.model->name, "a smaller batch or model"};
      }
      if (errors[r]) communicator->give_up();
    };
    std::vector<std::jthread> threads;
    not_started = start_ranks(threads, 0, count, body, [&] { ranks.communicator(0)->give_up(); });
  }
  if (not_started) return *not_started;
  const std::optional<Error>* first = nullptr;
  for (const auto& error : errors)
    if (error && (!first || ((*first)->code == ErrorCode::device && error->code != ErrorCode::device))) first = &error;
  if (first) return **first;
  for (const auto& report : run.step.ranks) run.step.loss += report.loss;
  return run;
}

Expected<void> check_ratio_job(const StepJob& job, int ranks) {
  if (ranks > kMostRatioRanks)
    return usage_error("a ratio plan for " + std::to_string(ranks) + " devices, and at most " +
                           std::to_string(kMostRatioRanks) + " ranks are carried out here",
                       job.model->name);
  const ComputeIn here(in_float());
  const auto program = RatioProgram::make(job, options_of(job));
  if (!program) return program.error();
  // Weights with gradient and state, and the largest output: what certainly has to be there.
  const StepOptions& options = (*program)->options;
  const double states = states_of(options.rule);
  double bytes = 0;
  for (std::size_t n = 0; n < (*program)->tree.nodes.size(); ++n) {
    if ((*program)->tree.nodes[n].cut) continue;
    double largest = 0;
    for (const RatioOperator& op : (*program)->operators) {
      for (const RatioLie& output : op.outputs)
        largest = std::max(largest, 4.0 * static_cast<double>(output.part[n].elements()));
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        if (op.input_weight[k] >= 0) bytes += 4 * (2 + states) * static_cast<double>(op.inputs[k].part[n].elements());
    }
    bytes += largest;
  }
  return check_room(job, bytes);
}

// Summands become one record of the whole tensor: ranks that add up to it need not have parts of equal size. What ranks
// have alike may be there several times; each element has to be there once at least.
Expected<Comparison> compare_ratio(const StepJob& job, RatioRun& run, const StepRun& whole) {
  const Model& model = *job.model;
  const auto tree = RatioTree::make(model, *job.ratio);
  if (!tree) return tree.error();
  using Key = std::tuple<Compared, OperatorId, std::uint32_t>;
  std::map<Key, Recorded> sums;
  std::map<Key, std::vector<char>> there;
  for (std::uint32_t r = 0; r < run.step.ranks.size(); ++r) {
    std::vector<Recorded> kept;
    for (Recorded& recorded : run.step.ranks[r].recorded) {
      const Tensor& tensor = recorded_tensor(model, recorded);
      const Key key{recorded.kind, recorded.op, recorded.slot};
      auto& seen = there[key];
      seen.resize(static_cast<std::size_t>(tensor.elements()), 0);
      const auto elements = recorded.region.elements();
      for_each_run(recorded.region, tensor.shape, recorded.first, static_cast<std::int64_t>(recorded.data.size()),
                   [&](std::int64_t, std::int64_t index, std::int64_t count) {
                     std::fill_n(seen.begin() + index, count, char(1));
                   });
      if (!recorded.partial) {
        kept.push_back(std::move(recorded));
        continue;
      }
      Recorded& sum = sums[key];
      if (sum.data.empty()) {
        sum = {recorded.kind, recorded.op, recorded.slot, whole_of(tensor), 0, 0, {}};
        sum.data.assign(static_cast<std::size_t>(tensor.elements()), 0);
      }
      // Of copies that are summands the first ones are enough.
      const Access& access = model.operators[recorded.op].outputs[recorded.slot];
      const auto lie = lie_of(model, *tree, recorded.op, access, RatioSide::output);
      if (!lie) return lie.error();
      if (!first_among(*tree, *lie, r, Layout::kReplicated)) continue;
      for_each_run(
          recorded.region, tensor.shape, 0, elements, [&](std::int64_t local, std::int64_t index, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i)
              sum.data[static_cast<std::size_t>(index + i)] += recorded.data[static_cast<std::size_t>(local + i)];
          });
    }
    run.step.ranks[r].recorded = std::move(kept);
  }
  for (auto& [key, sum] : sums) run.step.ranks.front().recorded.push_back(std::move(sum));
  for (const Recorded& expected : whole.ranks.front().recorded) {
    const auto found = there.find({expected.kind, expected.op, expected.slot});
    if (found == there.end() || std::find(found->second.begin(), found->second.end(), char(0)) != found->second.end())
      return cannot_prove(job, "no rank has computed all of " + std::string(to_string(expected.kind)) + " '" +
                                   recorded_tensor(model, expected).name + "'");
  }
  return compare(model, job.plan, run.step, whole);
}

Expected<StepNumerics> prove_ratio(const StepJob& job) {
  StepOptions options = options_of(job);
  options.record = options.one_step = true;
  const auto tree = RatioTree::make(*job.model, *job.ratio);
  if (!tree) return tree.error();
  StepOptions in_parts = options;
  in_parts.parts = statistics_parts(*job.model, *tree);
  WholeStep whole([&] { return run_step(in_double(), *job.model, job.plan, in_parts); });
  auto run = run_ratio(in_double(), job, options);
  if (!run) return run.error();
  const auto& unpartitioned = whole.get();
  if (!unpartitioned) return unpartitioned.error();
  const auto compared = compare_ratio(job, *run, *unpartitioned);
  if (!compared) return compared.error();
  return numerics_of(*compared);
}

}  // namespace turnpoint::step
