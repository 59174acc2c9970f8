// SPDX-License-Identifier: Apache-2.0
// Where a fuzz target's seed files lie: the folders it names, below the data folder and below tests/data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
/// Each target names its corpus folders, colon separated.
extern "C" const char* turnpoint_fuzz_corpus();
/// Seeds that a target makes itself are appended; null where it makes none.
extern "C" __attribute__((weak)) void turnpoint_fuzz_seeds(std::vector<std::string>& seeds);

namespace turnpoint::test {

inline std::vector<std::filesystem::path> seed_folders() {
  namespace fs = std::filesystem;
  const char* variable = std::getenv("TURNPOINT_DATA");
  const fs::path roots[] = {variable ? fs::path(variable) : fs::path(TURNPOINT_SOURCE_DIR) / "../shared/data",
                            fs::path(TURNPOINT_SOURCE_DIR) / "tests/data"};
  std::vector<fs::path> found;
  const std::string folders = turnpoint_fuzz_corpus();
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    for (const auto& root : roots) {
      std::error_code ec;
      if (!folder.empty() && fs::is_directory(root / folder, ec)) found.push_back(root / folder);
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace turnpoint::test
