// SPDX-License-Identifier: Apache-2.0
#include "app/start_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/base/text.h"

#ifndef TURNPOINT_VERSION
#define TURNPOINT_VERSION "0.1.0"
#endif

namespace turnpoint::app {

Expected<StartOptions> parse_start_options(int argc, const char* const* argv) {
  StartOptions options;
  std::string size, theme;
  CLI::App parser("Turnpoint: how should this model be trained on these devices?", "turnpoint");
  parser.set_version_flag("--version", "turnpoint " TURNPOINT_VERSION);
  parser.add_option("SESSION|MODEL", options.path, "a .turnpoint session, a model file, a task graph, or builtin:NAME");
  parser.add_option("--hardware", options.hardware, "hardware profile or preset, e.g. v100-16gb-2x8");
  parser.add_option("--devices", options.devices, "number of devices")->check(CLI::Range(1, 65536));
  parser.add_option("--screenshot", options.screenshot,
                    "wait for the first frontier, save a picture of the window, quit");
  parser.add_option("--export", options.export_plan,
                    "wait for the first frontier, save its turning point's plan as JSON, quit");
  parser.add_option("--size", size, "window size, e.g. 1600x1000");
  parser.add_option("--theme", theme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
  parser
      .add_option("--autosave", options.autosave_s,
                  "seconds between recovery copies of unsaved work, 60 if not given; 0: none")
      ->check(CLI::Range(0, 86400));
  try {
    parser.parse(argc, const_cast<char**>(argv));
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser.help().c_str(), stdout);
    options.stop = true;
    return options;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    options.stop = true;
    return options;
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (!theme.empty()) options.dark = theme == "dark";
  if (!size.empty()) {
    const auto parts = split(size, 'x');
    const auto width = parts.size() == 2 ? parse_int(parts[0]) : std::nullopt,
               height = parts.size() == 2 ? parse_int(parts[1]) : std::nullopt;
    if (!width || !height || *width < 320 || *height < 240 || *width > 16384 || *height > 16384)
      return usage_error("--size expects WIDTHxHEIGHT such as 1600x1000, not '" + size + "'");
    options.width = static_cast<int>(*width);
    options.height = static_cast<int>(*height);
  }
  return options;
}

}  // namespace turnpoint::app
