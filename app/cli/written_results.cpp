// SPDX-License-Identifier: Apache-2.0
#include "app/cli/written_results.h"

#include <fmt/format.h>
#include <cstdio>
#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/result_table.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace turnpoint::cli {

namespace {

constexpr double kWorthANote = double(1 << 30);

/// Bytes that are free where the file would lie; nothing where nobody knows, as of a device.
std::optional<double> free_bytes(const std::string& out) {
  if (out.empty() || out == "-") return std::nullopt;
  std::error_code ec;
  const auto path = std::filesystem::weakly_canonical(out, ec);
  if (ec || (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec))) return std::nullopt;
  const auto space = std::filesystem::space(path.parent_path(), ec);
  return ec ? std::nullopt : std::optional(static_cast<double>(space.available));
}

}  // namespace

int write_found(const std::string& out, const std::vector<ResultPtr>& results, bool as_list, const WrittenPlans& plans,
                const RunContext& context) {
  const double bytes = estimated_plan_bytes(results, plans);
  std::size_t count = 0;
  for (const auto& result : results) count += std::min(plans.at_most, result->points.size());
  const std::string size = fmt::format("{} plans take about {}", count, format_bytes(static_cast<std::int64_t>(bytes)));
  if (const auto free = free_bytes(out); free && bytes > *free)
    return report(bad_input(fmt::format("{}, and {} are free there; --max-plans N writes fewer", size,
                                        format_bytes(static_cast<std::int64_t>(*free))),
                            out));
  if (bytes > kWorthANote)
    std::fprintf(
        stderr, "note: %s; --max-plans N writes fewer, and none are needed to export or validate a point%s\n",
        size.c_str(),
        bytes > double(kLargestFile)
            ? fmt::format(". turnpoint-cli and the window read files up to {}", format_bytes(kLargestFile)).c_str()
            : "");
  return write_output(out,
                      [&](const TextSink& sink) { return write_results_text(results, as_list, plans, sink, context); });
}

int show_found(const std::vector<ResultPtr>& results, const RunContext& context) {
  const auto table = results_table(results, context);
  return table ? write_output({}, *table) : report(table.error());
}

}  // namespace turnpoint::cli
