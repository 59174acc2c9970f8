// SPDX-License-Identifier: Apache-2.0
// `hardware` lists presets; `hardware FILE...` reads measured logs and profiles, says what is in them and what is wrong
// with them, and makes one profile of all.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/base/text.h"
#include "core/cost/calibration.h"
#include "core/hardware/cluster.h"
#include "core/hardware/measured/profile_builder.h"

namespace turnpoint::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> files;
  std::string base, out, interpolation;
  bool json = false;
};

int list_hardware(bool as_json) {
  auto list = Json::array();
  std::string text;
  for (const auto& preset : preset_names()) {
    const auto cluster = open_hardware(preset.name);
    if (!cluster) return report(cluster.error());
    const DeviceType& device = (*cluster)->device;
    list.push_back({{"name", preset.name},
                    {"title", preset.title},
                    {"note", preset.note},
                    {"nodes", (*cluster)->nodes},
                    {"devices_per_node", (*cluster)->devices_per_node},
                    {"memory_bytes", device.memory_bytes},
                    {"reserve_bytes", device.reserve_bytes},
                    {"peak_flop_per_s", {{"fp32", device.peak_fp32}, {"bf16", device.peak_bf16}}}});
    if (device.peak_fp8 > 0) list.back()["peak_flop_per_s"]["fp8"] = device.peak_fp8;
    text += fmt::format("{:<20} {}, {} and {:g} TFLOP/s (fp32) a device, {}\n", preset.name, preset.title,
                        format_bytes(device.memory_bytes), device.peak_fp32 / 1e12, preset.note);
  }
  return write_output({}, as_json ? list.dump(1) + "\n" : text);
}

std::string shape(const DeviceGroup& group) {
  return fmt::format("{} x {}{}", group.nodes, group.per_node,
                     group.concurrent > 1 ? fmt::format(", {} at once", group.concurrent) : "");
}

std::string describe(const MeasuredLog& log) {
  std::string text = fmt::format("{}: {}", log.path, to_string(log.kind));
  if (!log.device_name.empty()) text += ", " + log.device_name;
  if (log.devices_per_node > 0) text += fmt::format(", {} x {} devices", std::max(1, log.nodes), log.devices_per_node);
  text += "\n";
  for (const auto& curve : log.curves)
    text += fmt::format("  {} of {} devices ({}){}: {} sizes, {} to {}, {} to {}\n", to_string(curve.kind),
                        curve.group.size, shape(curve.group), curve.variant.empty() ? "" : ", " + curve.variant,
                        curve.points.size(), format_bytes(static_cast<std::int64_t>(curve.points.front().bytes)),
                        format_bytes(static_cast<std::int64_t>(curve.points.back().bytes)),
                        format_seconds(curve.points.front().time_s), format_seconds(curve.points.back().time_s));
  for (const auto& figure : log.figures)
    text += fmt::format("  {} ({}): {:.6g}\n", to_string(figure.figure), figure.label, figure.value);
  if (!log.operators.empty()) text += fmt::format("  {} operator times\n", log.operators.size());
  if (log.topology)
    text += fmt::format("  {} devices in a node, {} NVLinks each, {} network cards\n", log.topology->devices,
                        log.topology->nvlinks_per_device, log.topology->nics.size());
  return text;
}

std::string problems(const MeasuredLog& log) {
  std::string text;
  for (const auto& problem : log.problems)
    text += fmt::format("{}{}: {}{}\n", log.path, problem.line > 0 ? fmt::format(":{}", problem.line) : "",
                        problem.severity == LogProblem::Severity::warning ? "" : "note: ", problem.what);
  if (log.problems_left_out > 0) text += fmt::format("{}: {} more problems\n", log.path, log.problems_left_out);
  return text;
}

std::string coverage_table(const HardwareReport& report) {
  std::string text = fmt::format("\n{} ({})\n", report.cluster->title, report.cluster->name);
  for (const auto& item : report.coverage) {
    if (item.what == CoverageItem::What::collective)
      text += fmt::format("  {:<15}{:<24}{:<11}", item.name, shape(item.group), to_string(item.origin));
    else
      text += fmt::format("  {:<39}{:<11}", item.name, to_string(item.origin));
    if (item.samples > 0) text += fmt::format("{} sample{}", item.samples, item.samples == 1 ? "" : "s");
    if (item.most_bytes > 0)
      text += fmt::format(", {} to {}", format_bytes(static_cast<std::int64_t>(item.least_bytes)),
                          format_bytes(static_cast<std::int64_t>(item.most_bytes)));
    while (text.ends_with(' ')) text.pop_back();
    text += "\n";
  }
  if (const auto host = topology_text(report.cluster->topology); !host.empty()) text += "\nthe measured host\n" + host;
  return text;
}

Json group_json(const DeviceGroup& group) {
  return {{"size", group.size}, {"nodes", group.nodes}, {"per_node", group.per_node}, {"concurrent", group.concurrent}};
}

Json log_json(const MeasuredLog& log) {
  Json curves = Json::array(), figures = Json::array(), issues = Json::array();
  for (const auto& curve : log.curves) {
    Json points = Json::array();
    for (const auto& point : curve.points) {
      points.push_back(
          {{"bytes", point.bytes}, {"time_s", point.time_s}, {"repeats", point.repeats}, {"line", point.line}});
      const std::pair<const char*, double> spread[] = {{"min_s", point.spread.min_s},
                                                       {"q1_s", point.spread.q1_s},
                                                       {"q3_s", point.spread.q3_s},
                                                       {"max_s", point.spread.max_s}};
      for (const auto& [key, value] : spread)
        if (value > 0) points.back()[key] = value;
    }
    curves.push_back({{"kind", to_string(curve.kind)},
                      {"group", group_json(curve.group)},
                      {"variant", curve.variant},
                      {"points", std::move(points)}});
  }
  for (const auto& figure : log.figures)
    figures.push_back({{"figure", to_string(figure.figure)},
                       {"label", figure.label},
                       {"value", figure.value},
                       {"line", figure.line}});
  for (const auto& problem : log.problems)
    issues.push_back({{"line", problem.line},
                      {"severity", problem.severity == LogProblem::Severity::warning ? "warning" : "note"},
                      {"what", problem.what}});
  return {{"path", log.path},
          {"kind", to_string(log.kind)},
          {"device", log.device_name},
          {"nodes", log.nodes},
          {"devices_per_node", log.devices_per_node},
          {"curves", std::move(curves)},
          {"figures", std::move(figures)},
          {"operators", log.operators.size()},
          {"problems", std::move(issues)},
          {"problems_left_out", log.problems_left_out}};
}

Json report_json(const HardwareReport& report) {
  Json files = Json::array(), items = Json::array();
  for (const auto& log : report.logs) files.push_back(log_json(log));
  for (const auto& item : report.coverage) {
    Json entry = {{"what", item.what == CoverageItem::What::collective ? "collective" : "operators"},
                  {"name", item.name}};
    if (item.what == CoverageItem::What::collective) entry["group"] = group_json(item.group);
    entry["origin"] = to_string(item.origin);
    entry["samples"] = item.samples;
    items.push_back(std::move(entry));
  }
  Json unread = Json::array();
  for (const auto& file : report.unread) unread.push_back({{"path", file.path}, {"what", file.error.message()}});
  Json root = {{"files", std::move(files)},
               {"unread", std::move(unread)},
               {"notes", report.notes},
               {"coverage", std::move(items)}};
  root["profile"] = report.cluster ? Json::parse(write_hardware_profile(*report.cluster)) : Json();
  if (!report.cluster) root["no_profile"] = report.no_cluster;
  return root;
}

/// JSON with bytes of file names that are no UTF-8 replaced.
std::string dumped(const Json& document) { return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Error wrong_interpolation(const Arguments& arguments) {
  return usage_error(fmt::format("--interpolation must be time or bandwidth, not '{}'", arguments.interpolation));
}

/// A preset, or a profile with `--base`, as a profile to be edited.
int write_profile(const Arguments& arguments, const std::string& name) {
  const auto opened = open_hardware(name);
  if (!opened) return report(opened.error());
  auto cluster = std::make_shared<Cluster>(**opened);
  if (!arguments.interpolation.empty()) {
    const auto interpolation = parse_interpolation(arguments.interpolation);
    if (!interpolation) return report(wrong_interpolation(arguments));
    cluster->interpolation = *interpolation;
  }
  return write_output(arguments.out, write_hardware_profile(*cluster));
}

/// "v100-16gb-2x8" where no such file is: not a log.
bool is_preset_name(const std::string& name) {
  std::error_code ignored;
  return name.find('/') == std::string::npos && !name.ends_with(".json") && !std::filesystem::exists(name, ignored) &&
         open_hardware(name).has_value();
}

int read_files(const Arguments& arguments) {
  ClusterPtr base;
  if (!arguments.base.empty()) {
    auto opened = open_hardware(arguments.base);
    if (!opened) return report(opened.error());
    base = *opened;
  }
  auto read = read_hardware_files(arguments.files, base);
  if (!read) return report(read.error());
  calibrate(*read);
  if (read->cluster && !arguments.interpolation.empty()) {
    const auto interpolation = parse_interpolation(arguments.interpolation);
    if (!interpolation) return report(wrong_interpolation(arguments));
    auto changed = std::make_shared<Cluster>(*read->cluster);
    changed->interpolation = *interpolation;
    read->cluster = changed;
  }
  if (!arguments.out.empty() && !read->cluster)
    return report(usage_error("no profile can be made: " + read->no_cluster));
  std::string text;
  if (arguments.json) {
    text = dumped(report_json(*read));
  } else {
    for (const auto& log : read->logs) text += describe(log);
    for (const auto& log : read->logs) text += problems(log);
    for (const auto& unread : read->unread) text += "not read: " + unread.error.message() + "\n";
    for (const auto& note : read->notes) text += note + "\n";
    text += read->cluster ? coverage_table(*read) : "\nno profile: " + read->no_cluster + "\n";
  }
  // A profile on standard output leaves no room for the report.
  if (arguments.out == "-") return write_output("-", write_hardware_profile(*read->cluster));
  if (!arguments.out.empty())
    if (const int code = write_output(arguments.out, write_hardware_profile(*read->cluster)); code != kDone)
      return code;
  return write_output({}, text);
}

}  // namespace

void add_hardware_command(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("hardware", "List the built-in hardware, or read measured logs into a profile");
  auto arguments = std::make_shared<Arguments>();
  sub->add_option("files", arguments->files,
                  "Measured logs and profiles, or one preset to write out; without any, the presets are listed")
      ->type_name("FILE");
  sub->add_option("--base", arguments->base, "Preset or profile that fills in what was not measured")->type_name("HW");
  sub->add_option("--out", arguments->out, "Write the profile here")->type_name("PROFILE.json");
  sub->add_option("--interpolation", arguments->interpolation,
                  "Between measured sizes, linear in: time or bandwidth [time]")
      ->type_name("VALUE");
  sub->add_flag("--json", arguments->json, "Print JSON");
  sub->callback([&command, arguments] {
    command.run = [arguments] {
      const bool listing = arguments->files.empty();
      if (listing && !arguments->base.empty() && !arguments->out.empty())
        return write_profile(*arguments, arguments->base);
      if (arguments->files.size() == 1 && arguments->base.empty() && is_preset_name(arguments->files[0]))
        return write_profile(*arguments, arguments->files[0]);
      if (listing && !(arguments->base.empty() && arguments->out.empty() && arguments->interpolation.empty()))
        return report(
            usage_error("--base, --out and --interpolation need measured files; a preset is written by 'hardware "
                        "PRESET --out FILE'"));
      return listing ? list_hardware(arguments->json) : read_files(*arguments);
    };
  });
}

}  // namespace turnpoint::cli
