// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/graph_options.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"

namespace turnpoint::search {

namespace {

constexpr std::string_view kRecurrent[] = {"steps", "parts", "whole"};
constexpr std::string_view kStepGradients[] = {"summed", "kept"};

}  // namespace

const std::vector<OptionRecord>& graph_options() {
  static const std::vector<OptionRecord> options = {
      {"recurrent", "Recurrent layers", "", OptionType::choice, 0, 0, 0, kRecurrent,
       "Recurrent layers as their time steps, as the parts that time steps are computed in, or whole"},
      {"micro-batches",
       "Micro-batches",
       "",
       OptionType::integer,
       1,
       1,
       kMaxMicroBatches,
       {},
       "Parts of the batch that go through one after the other, or side by side on different devices"},
      {"whole-layers",
       "Whole layers",
       "",
       OptionType::flag,
       0,
       0,
       1,
       {},
       "Keep all that a layer computes on the device of its weights, so that weights never travel"},
      {"step-gradients", "Gradients of steps", "", OptionType::choice, 0, 0, 0, kStepGradients,
       "Gradients that time steps make of one weight are summed as they are made, or all kept until the update"},
  };
  return options;
}

TrainingGraphOptions usual_training_graph() {
  TrainingGraphOptions options;
  options.unrolled_steps = true;
  return options;
}

Expected<TrainingGraphOptions> read_graph_options(std::string_view whose, std::string_view text) {
  const auto parameters = read_parameters(whose, graph_options(), text);
  if (!parameters) return parameters.error();
  TrainingGraphOptions options;
  const std::string_view recurrent = parameters->choice("recurrent");
  options.unrolled_steps = recurrent != "whole";
  options.cells_in_parts = recurrent == "parts";
  options.micro_batches = parameters->integer("micro-batches");
  options.whole_layers = parameters->flag("whole-layers");
  options.kept_gradients = parameters->choice("step-gradients") == kStepGradients[1];
  return options;
}

Expected<PlacementParameters> read_placement_parameters(const placement::PlacementMethod& method,
                                                        std::string_view text) {
  PlacementParameters read;
  read.text = text;
  const auto parts = text.empty() ? std::vector<std::string_view>() : split(text, ':');
  for (const std::string_view part : parts) {
    const std::string_view key = part.substr(0, part.find('='));
    const bool ours = std::any_of(graph_options().begin(), graph_options().end(),
                                  [&](const OptionRecord& option) { return option.key == key; });
    // What nobody knows is refused with all that there is to know.
    std::string& whose = ours || method.options.empty() ? read.of_the_graph : read.own;
    whose += (whose.empty() ? "" : ":") + std::string(part);
  }
  const auto graph = read_graph_options("method " + method.name, read.of_the_graph);
  if (!graph) return graph.error();
  read.graph = *graph;
  if (const auto run = placement::run_of(method, read.own); !run) return run.error();
  return read;
}

}  // namespace turnpoint::search
