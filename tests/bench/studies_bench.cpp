// SPDX-License-Identifier: Apache-2.0
// Every figure of the sample studies, printed: `studies_bench [--coarse] [STUDY...]`. Exact unless told otherwise.
#include <cstdio>
#include <cstring>
#include <set>

#include "app/study_figures.h"
#include "core/search/registry.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

void print_point(const char* what, const std::optional<ResultPoint>& point) {
  if (point)
    std::printf("    %-12s %8.2f GiB %9.3f s (network %.3f s)%s\n", what, gib(point->memory_bytes), point->time_s,
                point->network_s, point->fits ? "" : ", does not fit");
}

void print_frontier(const Result& result) {
  std::printf("  %s: %zu points in %.2f s, gap %s\n", result.method.c_str(), result.points.size(), result.search_s,
              result.gap ? std::to_string(*result.gap).c_str() : "not certified");
  if (result.points.empty()) return;
  print_point("least memory", result.points.front());
  if (result.points.size() == 1) return;
  print_point("turning", turning_of_shape(result));
  print_point("within 5 %", near_best_of_shape(result));
  if (const auto fastest = result.fastest_that_fits()) print_point("fits", result.points[*fastest]);
  print_point("least time", result.points.back());
}

void print_profile(const app::Session& session, const StudyScenario& study) {
  for (const auto& name : session.methods) {
    const auto method = find_method(name);
    if (!method) continue;
    std::printf("  %s:", name.c_str());
    const auto found = profile(contender(**method), study.scenario, doubling_counts(*study.scenario->cluster), {},
                               [](const ResultPtr& one) {
                                 const auto& point = one->points.front();
                                 std::printf(" %d: %.2f GiB %s", one->scenario->cluster->devices(),
                                             gib(point.memory_bytes), point.fits ? "" : "(does not fit)");
                                 if (point.fits) std::printf("%.3f s", point.time_s);
                                 std::fflush(stdout);
                               });
    std::printf(found ? "\n" : " failed\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  SearchPass pass = SearchPass::exact;
  std::set<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--coarse") == 0)
      pass = SearchPass::coarse;
    else
      wanted.insert(argv[i]);
  }
  for (const auto& study : app::studies()) {
    if (!wanted.empty() && !wanted.contains(study.file)) continue;
    const auto session = app::load_study(app::study_path(study));
    const auto scenarios = session ? study_scenarios(*session) : Expected<std::vector<StudyScenario>>(session.error());
    if (!scenarios) {
      std::fprintf(stderr, "%s\n", scenarios.error().message().c_str());
      return 1;
    }
    std::printf("%s (%s)\n", study.title, study.file);
    if (session->front == "parallelism") {
      print_profile(*session, scenarios->front());
      continue;
    }
    for (const auto& each : *scenarios) {
      if (!each.label.empty()) std::printf("  %s\n", each.label.c_str());
      for (const auto& method : each.label.empty() ? session->methods : std::vector<std::string>{each.method}) {
        const auto result = search_study(each, method, pass);
        if (result)
          print_frontier(**result);
        else
          std::printf("  %s: %s\n", method.c_str(), result.error().message().c_str());
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
