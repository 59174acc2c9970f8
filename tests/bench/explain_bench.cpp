// SPDX-License-Identifier: Apache-2.0
// How much processor time a forced choice takes to be priced, beside the search that found the point: the first
// question, which builds structures and prices, further ones about the same point, and one about another, which the
// window asks with what is there already; and how certain the answers are.
//   build/bench/explain_bench [threads]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "bench/processor_seconds.h"
#include "core/import/source/model_source.h"
#include "core/search/explain/forced_answer.h"
#include "core/search/explain/point_story.h"
#include "core/search/registry.h"

using namespace turnpoint;

namespace {

struct Asked {
  const char* model;
  const char* hardware;
  std::int64_t batch;
  const char* method;
  std::vector<const char*> forces;
};

int ask(const Asked& asked, const RunContext& context) {
  const auto fail = [&](const Error& error) {
    std::fprintf(stderr, "%s: %s\n", asked.model, error.message().c_str());
    return 1;
  };
  Settings settings;
  settings.batch = asked.batch;
  const auto source = open_model(asked.model);
  if (!source) return fail(source.error());
  const auto hardware = cluster_preset(asked.hardware);
  if (!hardware) return fail(hardware.error());
  const auto model = (*source)->bind({settings.batch, 0});
  if (!model) return fail(model.error());
  const auto scenario = make_scenario(*model, *hardware, asked.hardware, settings);
  if (!scenario) return fail(scenario.error());
  const auto choice = choose_method(asked.method);
  if (!choice) return fail(choice.error());
  const auto searcher = make_searcher(*choice->method, choice->parameters);
  if (!searcher) return fail(searcher.error());
  auto start = test::processor_seconds();
  const auto result = (*searcher)->run(*scenario, SearchPass::exact, context);
  if (!result) return fail(result.error());
  const std::size_t point = (*result)->turning_point.value_or((*result)->points.size() - 1);
  std::printf("%s on %s, %s: searched in %.2f processor seconds; point %zu\n", asked.model, asked.hardware,
              asked.method, test::processor_seconds() - start, point);
  start = test::processor_seconds();
  if (const auto story = story_of(**result, point, context); !story) return fail(story.error());
  std::printf("   %-28s %6.2f s\n", "what it is, what is near", test::processor_seconds() - start);
  std::unique_ptr<PointExplainer> explainer;
  const auto one = [&](std::size_t at, const char* force) {
    const auto rules = parse_force(force);
    if (!rules) return fail(rules.error());
    start = test::processor_seconds();
    auto made = PointExplainer::make(*result, at, explainer.get());
    if (!made) return fail(made.error());
    explainer = std::move(*made);
    const auto answer = explainer->force(*rules, context);
    if (!answer) return fail(answer.error());
    std::printf("   %-28s %6.2f s, %+.2f %% time, gap %.3f %%, in all memory gap %.3f %%\n", force,
                test::processor_seconds() - start, 100 * (answer->same_memory.point.time_s / answer->point.time_s - 1),
                100 * answer->same_memory.gap, 100 * answer->fitting.gap);
    return 0;
  };
  for (const char* force : asked.forces)
    if (const int failed = one(point, force)) return failed;
  std::printf("   of another point, with what these have built:\n");
  return one(point / 2, asked.forces.front());
}

}  // namespace

int main(int argc, char** argv) {
  RunContext context;
  if (argc > 1) context.threads = std::atoi(argv[1]);
  const std::vector<const char*> layers{"layer7/*: tp=4", "layer7/*: tp=2", "layer3/mlp/*: zero=3", "*: recompute"};
  int failed = 0;
  failed += ask({"builtin:gpt2", "v100-16gb-2x8", 256, "ft:micro-batches=1", layers}, context);
  failed += ask({"builtin:gpt2", "v100-16gb-2x8", 256, "ft", layers}, context);
  failed += ask({"builtin:llama-2-7b", "h100-80gb-2x8", 64, "ft:micro-batches=1", layers}, context);
  failed += ask({"builtin:resnet50", "v100-16gb-2x8", 256, "ft:micro-batches=1", {"*: dp", "*: zero=1", "*: zero=3"}},
                context);
  return failed ? 1 : 0;
}
