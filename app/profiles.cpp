// SPDX-License-Identifier: Apache-2.0
#include "app/profiles.h"

#include <QStandardPaths>
#include <cctype>

#include "core/base/json.h"

namespace turnpoint::app {

namespace {

constexpr int kMostNames = 1000;
constexpr std::size_t kMaximumProfile = 256u << 20;  // bytes

std::string file_stem(const std::string& name) {
  std::string stem;
  for (const char c : name) stem += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return stem.empty() || stem.front() == '.' ? "profile" + stem : stem.substr(0, 100);
}

}  // namespace

std::filesystem::path profile_folder() {
  return std::filesystem::path(
      (QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/profiles"))
          .toStdU16String());
}

Expected<std::string> store_profile(const Cluster& cluster) {
  const std::filesystem::path folder = profile_folder();
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) return bad_input("the folder for profiles cannot be made: " + ec.message(), folder.string());
  const std::string text = write_hardware_profile(cluster), stem = file_stem(cluster.name);
  for (int number = 1; number <= kMostNames; ++number) {
    const auto path = folder / (number == 1 ? stem + ".json" : stem + "-" + std::to_string(number) + ".json");
    if (std::filesystem::exists(path, ec)) {
      const auto there = read_file(path, kMaximumProfile);
      if (!there || *there != text) continue;
      return path.string();
    }
    const auto written = write_file_atomically(path, text);
    if (!written) return written.error();
    return path.string();
  }
  return bad_input("a thousand profiles of this name are there already", (folder / (stem + ".json")).string());
}

}  // namespace turnpoint::app
