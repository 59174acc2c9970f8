// SPDX-License-Identifier: Apache-2.0
// Frontier problems as JSON: whatever the bytes, reading ends with a problem or a message; small problems are also
// solved, and every point must re-evaluate to its cost.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/json.h"
#include "core/frontier/solver.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "frontier"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace turnpoint;
  const auto document = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!document) return 0;
  const auto problem = frontier::read_problem(*document, "fuzz");
  if (!problem) {
    if (problem.error().message().empty()) std::abort();
    return 0;
  }
  std::size_t entries = 0;
  for (const auto& node : problem->nodes) entries += node.costs.points().size();
  for (const auto& edge : problem->edges) entries += edge.costs.points().size();
  if (problem->nodes.size() > 8 || problem->edges.size() > 12 || entries > 100) return 0;
  frontier::SolveOptions options;
  options.direct_terms = size % 2 ? 0 : 1000;
  options.max_table = size % 3 ? std::size_t(1) << 20 : 2;
  RunContext context;
  context.threads = 1;
  const auto answer = frontier::Solver().solve(*problem, options, context);
  if (!answer) return 0;
  for (const auto& point : answer->points) {
    const auto cost = frontier::evaluate(*problem, point);
    if (cost.memory != point.memory || cost.time != point.time) std::abort();
  }
  const auto again = frontier::read_problem(frontier::write_problem(*problem), "fuzz");
  if (!again || frontier::write_problem(*again) != frontier::write_problem(*problem)) std::abort();
  return 0;
}
