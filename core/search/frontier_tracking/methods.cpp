// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/methods.h"

#include <fmt/format.h>

#include "core/search/frontier_tracking/micro_batches.h"
#include "core/search/frontier_tracking/run_again.h"
#include "core/search/frontier_tracking/searcher.h"
#include "core/search/frontier_tracking/sharding_run.h"
#include "core/search/method/notes.h"

namespace turnpoint::search {

Method frontier_tracking_method() {
  Method method{
      .name = "ft",
      .title = "FT frontier tracking",
      .short_name = "FT",
      .paper = "TensorOpt, arXiv 2004.10856",
      .description =
          "Every Pareto-optimal plan over all configurations and numbers of micro-batches, by variable elimination",
      .frontier = true,
      .on_by_default = true,
      .default_method = true,
      .holds_everything_once = true,
  };
  take_micro_batches(method, {.otherwise = kEveryMicroBatch,
                              .follows = true,
                              .may_end = true,
                              .make = [](int micro_batches, Sweep* sweep, const Enough& enough) {
                                SearchSpace space;
                                space.micro_batches = micro_batches;
                                return search_configurations("ft", std::move(space), Objective::frontier, sweep,
                                                             enough);
                              }});
  return method;
}

namespace {

constexpr std::string_view kRecompute = "recompute";

/// Adds the flag to a method of data parallelism that takes micro-batches; it goes with whole batches alone.
void take_recompute(Method& method) {
  const auto plain = method;
  method.options.push_back(
      {kRecompute,
       "Recompute",
       "",
       OptionType::flag,
       0,
       0,
       1,
       {},
       "As few operators run again in backward, instead of being kept, as give every device room"});
  const auto flag = [name = method.name, options = method.options](std::string_view text) -> Expected<bool> {
    const auto read = read_parameters("method " + name, options, text);
    if (!read) return read.error();
    const bool on = read->flag(kRecompute);
    if (on && read->integer("micro-batches") != 1)
      return usage_error(fmt::format("method {}: recompute is for a batch that goes through whole", name));
    return on;
  };
  method.make_with = [plain, flag](std::string_view text) -> Expected<std::unique_ptr<Searcher>> {
    const auto on = flag(text);
    if (!on) return on.error();
    if (!*on) return plain.make_with(text);
    return std::unique_ptr<Searcher>(std::make_unique<CheckpointedDataParallel>(std::string(text)));
  };
  method.refuses_with = [plain, flag](const Scenario& scenario, std::string_view text) {
    const auto on = flag(text);
    return !on ? on.error().what : *on ? std::string() : plain.refuses_with(scenario, text);
  };
  method.traits = [plain, flag](std::string_view text) {
    const auto on = flag(text);
    return on && *on ? MethodTraits{.recomputes = true} : plain.traits(text);
  };
}

}  // namespace

Method data_parallel_method() {
  Method method{
      .name = "data-parallel",
      .title = "Data-parallel",
      .paper = "common practice",
      .description = "Every operator splits the batch over all devices; parameters are replicated",
      .on_by_default = true,
      .holds_everything_once = true,
  };
  take_micro_batches(method, {.make = [](int micro_batches, Sweep*, const Enough&) {
                       SearchSpace space;
                       space.only = [](OperatorId, const Operator& op, const Mesh& mesh) {
                         return std::vector<Configuration>{data_parallel_configuration(op, mesh)};
                       };
                       space.memory_choices = false;
                       space.micro_batches = micro_batches;
                       return with_batch_note(
                           search_configurations("data-parallel", std::move(space), Objective::frontier),
                           micro_batches);
                     }});
  take_recompute(method);
  return method;
}

Method optcnn_method() {
  Method method{
      .name = "optcnn",
      .title = "OptCNN",
      .paper = "OptCNN, arXiv 1802.04924; as the TensorOpt study simulates it",
      .description =
          "The fastest plan over all configurations, memory ignored; updates replicated, nothing computed again",
      .on_by_default = true,
      .holds_everything_once = true,
  };
  take_micro_batches(method, {.make = [](int micro_batches, Sweep*, const Enough&) {
                       SearchSpace space;
                       space.memory_choices = false;
                       space.micro_batches = micro_batches;
                       return search_configurations("optcnn", std::move(space), Objective::least_time);
                     }});
  return method;
}

}  // namespace turnpoint::search
