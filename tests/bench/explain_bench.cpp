// SPDX-License-Identifier: Apache-2.0
// How much processor time questions about a plan take, beside the search that found it: what it is, how it differs from
// another point, and what forced choices cost. A question is new (a terminal asks it: structures and prices are built
// anew) or ready (the window asks it: they are there); and how certain the answers are. Then median and worst of all.
// Models were looked at while answers were made faster, or not.
//   build/bench/explain_bench [threads]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/processor_seconds.h"
#include "core/import/source/model_source.h"
#include "core/search/explain/forced_answer.h"
#include "core/search/explain/point_story.h"
#include "core/search/explain/told_answer.h"
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

/// Processor seconds of questions of one kind.
class Times {
 public:
  double add(double seconds) {
    seconds_.push_back(seconds);
    return seconds;
  }
  void print(const char* kind) {
    if (seconds_.empty()) return;
    std::ranges::sort(seconds_);
    std::printf("%-28s %2zu questions, median %.2f s, worst %.2f s\n", kind, seconds_.size(),
                seconds_[seconds_.size() / 2], seconds_.back());
  }

 private:
  std::vector<double> seconds_;
};

Times g_told, g_against, g_new, g_ready;

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
  const auto since = [&] { return test::processor_seconds() - start; };
  start = test::processor_seconds();
  if (const auto story = story_of(**result, point, context); !story) return fail(story.error());
  std::printf("   %-28s %6.2f s\n", "what it is, what is near", g_told.add(since()));
  start = test::processor_seconds();
  const auto lines =
      describe(difference_of(*(*scenario)->model, (*result)->plans->sharding(point), (*result)->plans->sharding(0)),
               **result, point, 0);
  std::printf("   %-28s %6.2f s, %zu lines\n", "beside the least", g_against.add(since()), lines.size());
  const auto ready = PointExplainer::make(*result, point);
  if (!ready) return fail(ready.error());
  if (auto done = (*ready)->get_ready(context); !done) return fail(done.error());
  for (const char* force : asked.forces) {
    const auto rules = parse_force(force);
    if (!rules) return fail(rules.error());
    start = test::processor_seconds();
    const auto explainer = PointExplainer::make(*result, point);
    if (!explainer) return fail(explainer.error());
    auto answer = (*explainer)->force(*rules, context);
    if (!answer) return fail(answer.error());
    const double anew = g_new.add(since());
    start = test::processor_seconds();
    answer = (*ready)->force(*rules, context);
    if (!answer) return fail(answer.error());
    std::printf("   %-28s %6.2f s new, %.2f s ready, %+.2f %% time, gap %.3f %%, in all memory gap %.3f %%\n", force,
                anew, g_ready.add(since()), 100 * (answer->same_memory.point.time_s / answer->point.time_s - 1),
                100 * answer->same_memory.gap, 100 * answer->fitting.gap);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunContext context;
  if (argc > 1) context.threads = std::atoi(argv[1]);
  const std::vector<const char*> layers{"layer7/*: tp=4", "layer3/mlp/*: zero=3", "*: zero=3", "*: recompute"},
      whole{"*: dp", "*: zero=1", "*: zero=3", "*: recompute"};
  int failed = 0;
  failed += ask({"builtin:gpt2", "v100-16gb-2x8", 256, "ft:micro-batches=1", layers}, context);
  failed += ask({"builtin:gpt2", "v100-16gb-2x8", 256, "ft", layers}, context);
  failed += ask({"builtin:llama-2-7b", "h100-80gb-2x8", 64, "ft", layers}, context);
  failed += ask({"builtin:transformer", "v100-16gb-2x8", 256, "ft", layers}, context);
  failed += ask({"builtin:inception-v3", "v100-16gb-2x8", 256, "ft", whole}, context);
  std::puts("Not looked at:");
  failed += ask({"builtin:bert-large", "v100-16gb-2x8", 256, "ft", layers}, context);
  failed += ask({"builtin:transformer-s", "v100-16gb-1x8", 256, "ft", layers}, context);
  failed += ask({"builtin:wide-resnet", "v100-16gb-2x8", 256, "ft", whole}, context);
  failed += ask({"builtin:resnet50", "v100-16gb-2x8", 256, "ft", whole}, context);
  g_told.print("what it is, what is near");
  g_against.print("beside another");
  g_new.print("forced, new");
  g_ready.print("forced, ready");
  return failed ? 1 : 0;
}
