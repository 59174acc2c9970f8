// SPDX-License-Identifier: Apache-2.0
// Where the real models and hardware logs lie. They are not part of the repository; tests that need them skip, saying
// so.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace turnpoint::test {

/// TURNPOINT_DATA, else ../shared/data beside the sources; empty if the folder is absent.
inline std::filesystem::path data_folder() {
  const char* variable = std::getenv("TURNPOINT_DATA");
  const std::filesystem::path folder = variable
                                           ? std::filesystem::path(variable)
                                           : std::filesystem::path(TURNPOINT_SOURCE_DIR) / ".." / "shared" / "data";
  std::error_code ec;
  return std::filesystem::is_directory(folder, ec) ? std::filesystem::weakly_canonical(folder, ec)
                                                   : std::filesystem::path();
}

}  // namespace turnpoint::test

#define REQUIRE_DATA(folder)                          \
  const auto folder = turnpoint::test::data_folder(); \
  if (folder.empty()) QSKIP("data folder absent: set TURNPOINT_DATA to run this test")
