// SPDX-License-Identifier: Apache-2.0
// Which measured files open: hardware_files_bench FOLDER prints a row for each file below the folder, as what it was read
// and what is in it, and how many of all were read. Without a folder it looks where TURNPOINT_DATA points.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/hardware/logs/measured_log.h"

int main(int argc, char** argv) {
  using namespace turnpoint;
  namespace fs = std::filesystem;
  const char* data = std::getenv("TURNPOINT_DATA");
  const fs::path folder = argc > 1 ? fs::path(argv[1]) : data ? fs::path(data) / "hardware" : fs::path();
  std::error_code ec;
  if (folder.empty() || !fs::is_directory(folder, ec)) {
    std::printf("hardware_files_bench FOLDER: no folder of measured files was given\n");
    return 0;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::size_t opened = 0;
  std::printf("%-64s %-28s %6s %7s %7s %9s %8s\n", "file", "read as", "curves", "points", "figures", "operators", "warnings");
  for (const auto& file : files) {
    const std::string name = fs::relative(file, folder).string();
    const auto log = read_measured_log(file.string());
    if (!log) {
      std::printf("%-64s %s\n", name.c_str(), log.error().what.c_str());
      continue;
    }
    ++opened;
    std::size_t points = 0, warnings = 0;
    for (const auto& curve : log->curves) points += curve.points.size();
    for (const auto& problem : log->problems) warnings += problem.severity == LogProblem::Severity::warning ? 1 : 0;
    std::printf("%-64s %-28s %6zu %7zu %7zu %9zu %8zu\n", name.c_str(), to_string(log->kind), log->curves.size(), points,
                log->figures.size(), log->operators.size(), warnings);
  }
  std::printf("%zu of %zu files of %s were read\n", opened, files.size(), folder.c_str());
  return opened == files.size() ? 0 : 1;
}
