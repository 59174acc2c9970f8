// SPDX-License-Identifier: Apache-2.0
// Any bytes as a result or as a report of a plan that was run: what is read can be written and read again, plans cost
// what they say, and everything else is a message that names the file.
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/export/writers.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/plan_io/result_json.h"
#include "core/search/registry.h"
#include "core/search/reopen.h"
#include "core/search/scenario_of.h"
#include "core/validation/validation_report.h"
#include "fuzz/checks.h"
#include "fuzz/seed_corpus.h"

namespace {

using namespace turnpoint;

constexpr const char* kModel = "builtin:lenet";
constexpr const char* kHardware = "v100-16gb-1x4";
constexpr std::size_t kMostPoints = 3;  // so that a mutation often meets what is read closely

/// A result with plans, cut to a few points.
nlohmann::json result_of(const char* method) {
  Settings settings;
  settings.batch = 64;
  settings.devices = 4;
  const auto scenario = *scenario_of(**open_model(kModel), kHardware, settings);
  const auto choice = *choose_method(method);
  const auto searcher = *make_searcher(*choice.method, choice.parameters);
  RunContext context;
  context.threads = 1;
  auto document = write_result(**searcher->run(scenario, SearchPass::exact, context), true);
  for (const char* key : {"points", "plans"}) {
    auto& list = document[key];
    while (list.size() > kMostPoints) list.erase(list.size() - 1);
  }
  for (const char* key : {"turning_point", "near_best"})
    if (document.contains(key)) document[key] = 0;
  return document;
}

/// Plans are read on the model that they were found for; another one would be a search or a file of the machine.
void check_plans(const nlohmann::json& document, const Result& points) {
  const auto& scenario = document["scenario"];
  if (!scenario.is_object() || scenario.value("/model"_json_pointer, nlohmann::json()) != kModel ||
      scenario.value("/hardware"_json_pointer, nlohmann::json()) != kHardware)
    return;
  for (std::size_t k = 0; k < std::min(points.points.size(), kMostPoints); ++k) {
    const auto& plan = document["plans"][k];
    if (!plan.is_object()) continue;
    // One of before files held the schedule would be searched.
    if (plan.contains("pipeline") && !plan["pipeline"].contains("send_s")) continue;
    const auto alone = read_plan_alone(plan, "fuzz.json");
    if (!alone)
      test::check_message(alone.error());
    else if (write_plan_csv(*alone).empty())
      std::abort();
    const auto result = reopen_result(document, "fuzz.json", {k}, {});
    if (!result) {
      test::check_message(result.error());
      continue;
    }
    const Plan read = (*result)->plans->sharding(k);
    if (read.cost.memory_bytes() != points.points[k].memory_bytes) std::abort();
    if (write_plan(*(*result)->scenario, read).empty()) std::abort();
  }
}

}  // namespace

extern "C" const char* turnpoint_fuzz_corpus() { return "session"; }  // which hold reports

extern "C" void turnpoint_fuzz_seeds(std::vector<std::string>& seeds) {
  for (const char* method : {"ft", "data-parallel", "manual:micro-batches=2:zero=2"}) {
    auto document = result_of(method);
    seeds.push_back(document.dump());
    document.erase("plans");
    seeds.push_back(document.dump(1));
  }
  std::vector<std::string> reports;
  for (const auto& seed : seeds) {
    const auto session = nlohmann::json::parse(seed, nullptr, false);
    if (!session.is_object() || !session.contains("reports")) continue;
    for (const auto& report : session["reports"]) reports.push_back(report.dump());
  }
  seeds.insert(seeds.end(), reports.begin(), reports.end());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!document) {
    test::check_message(document.error(), "fuzz.json");
    return 0;
  }
  if (const auto reports = read_validations(*document, "fuzz.json")) {
    if (!read_validations(write_validations(*reports), "again.json")) std::abort();
    (void)write_validations_csv(*reports);
    for (const auto& report : *reports) (void)write_validation_markdown(report);
  } else {
    test::check_message(reports.error(), "fuzz.json");
  }
  if (!document->is_object()) return 0;
  (void)missing_file(*document, "/nowhere/fuzz.json");
  const auto points = read_points(*document, "fuzz.json");
  if (!points) {
    test::check_message(points.error(), "fuzz.json");
    return 0;
  }
  (void)write_points_csv(**points);
  if (holds_plans(*document)) check_plans(*document, **points);
  return 0;
}
