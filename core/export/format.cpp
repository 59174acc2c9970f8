// SPDX-License-Identifier: Apache-2.0
#include "core/export/format.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>

#include "core/base/json.h"

namespace turnpoint {

namespace {

/// Of a plan that the format is for.
Expected<PlanKind> kind_of_picked(const ExportFormat& format, const ExportSource& source, FormatNames names) {
  const ResultPtr& result = source.picked;
  if (!result || !result->plans || source.point >= result->points.size()) return usage_error("no plan is picked");
  const PlanKind kind = result->plans->kind(source.point);
  if (!format.accepts(kind)) return usage_error(refusal_of(format, kind, names));
  return kind;
}

Expected<std::string> plan_text(const ExportFormat& format, const ExportSource& source, FormatNames names) {
  if (const auto kind = kind_of_picked(format, source, names); !kind) return kind.error();
  const ResultPtr& result = source.picked;
  return visit_plan(
      result->plans->plan(source.point), [&](const Plan& plan) { return format.plan(*result->scenario, plan); },
      [&](const RatioPlan& plan) { return format.ratio(*result->scenario, plan); },
      [&](const PlacementPlan& plan) { return format.placement(*result->scenario, plan); });
}

}  // namespace

ExportFormat for_engine(ExportFormat format, Expected<EngineFile> (*made)(const Scenario&, const Plan&)) {
  format.engine = made;
  format.plan = [made](const Scenario& scenario, const Plan& plan) -> Expected<std::string> {
    auto file = made(scenario, plan);
    if (!file) return file.error();
    return std::move(file->text);
  };
  return format;
}

std::string ExportFormat::title() const { return fmt::format("{} as {}", subject, name); }

std::string_view ExportFormat::suffix() const { return file.substr(file.rfind('.') + 1); }

bool ExportFormat::accepts(PlanKind kind) const {
  if (kind == PlanKind::placement) return placement != nullptr;
  if (kind == PlanKind::ratio) return ratio != nullptr;
  return plan && (pipelines || kind != PlanKind::pipeline);
}

bool ExportFormat::for_plans() const { return plan || ratio || placement; }

const ExportFormat* find_format(std::string_view key) {
  const auto formats = export_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const auto& format) { return format.key == key; });
  return found == formats.end() ? nullptr : &*found;
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? std::string() : words.front();
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string refusal_of(const ExportFormat& format, PlanKind kind, FormatNames names) {
  const bool keys = names == FormatNames::keys;
  std::vector<std::string> others;
  for (const ExportFormat& other : export_formats())
    if (other.accepts(kind)) others.emplace_back(keys ? other.key : other.name);
  // Whoever splits operators alone runs one program on all devices.
  const bool alike = kind == PlanKind::ratio && format.plan;
  return fmt::format("{}{} is not for {}, which go to {}{}", keys ? "--to " : "", keys ? format.key : format.name,
                     plural_of(kind), listed(others),
                     alike ? "; it gives every device an equal part, so search on equal devices, where the same method "
                             "has a plan that splits operators"
                           : "");
}

Expected<std::string> export_text(const ExportFormat& format, const ExportSource& source, FormatNames names) {
  if (format.for_plans()) return plan_text(format, source, names);
  if (source.results.empty()) return usage_error("there is no result yet");
  if (format.points) return format.points(*source.results.front());
  std::string text;
  const auto written = format.results(source.results, [&](std::string_view piece) {
    text += piece;
    return Expected<void>();
  });
  return written ? Expected<std::string>(std::move(text)) : written.error();
}

Expected<EngineFile> engine_file(const ExportFormat& format, const ExportSource& source) {
  if (!format.engine) return usage_error(fmt::format("{} is for no program that trains", format.name));
  if (const auto kind = kind_of_picked(format, source, FormatNames::names); !kind) return kind.error();
  const AnyPlan plan = source.picked->plans->plan(source.point);
  return format.engine(*source.picked->scenario, *std::get<PlanPtr>(plan));
}

std::vector<std::string> export_remarks(const ExportFormat& format, const ExportSource& source) {
  const ResultPtr& result = source.picked;
  if (!format.remarks || !result || !result->plans || source.point >= result->points.size()) return {};
  const AnyPlan plan = result->plans->plan(source.point);
  const auto* sharding = std::get_if<PlanPtr>(&plan);
  return sharding ? format.remarks(*result->scenario, **sharding) : std::vector<std::string>();
}

Expected<void> export_to_file(const ExportFormat& format, const ExportSource& source,
                              const std::filesystem::path& path) {
  if (format.results && !source.results.empty()) {
    auto file = FileWriter::open(path);
    if (!file) return file.error();
    const auto written = format.results(source.results, [&](std::string_view text) { return file->write(text); });
    return written ? file->commit() : written;
  }
  const auto text = export_text(format, source);
  if (!text) return text.error();
  return write_file_atomically(path, *text);
}

}  // namespace turnpoint
