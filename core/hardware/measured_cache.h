// SPDX-License-Identifier: Apache-2.0
// Times that turnpoint-probe measured on this machine before: a file for each device in the user's cache folder.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

/// One time as the probe gave it, without the item's own description.
struct KeptTime {
  std::string signature;  ///< time_signature()
  std::string date;       ///< "2026-11-22T07:40:00Z"
  double item_s = 0;      ///< for how long it was sampled
  std::string fields;     ///< JSON object: "time_s", quartiles, "samples", ...
};

/// $XDG_CACHE_HOME/turnpoint/measured, or ~/.cache/...; empty without a home.
std::filesystem::path measured_cache_folder();

/// "2026-11-22T07:40:00Z", s since 1970; what is no such date is as old as can be (0).
std::string utc_date(double seconds);
double seconds_of_date(const std::string& date);

class MeasuredCache {
 public:
  /// `identity`: ProbeHello::identity. A file that cannot be used counts as empty and `ignored()` says why.
  MeasuredCache(const std::filesystem::path& folder, std::string identity);

  const std::string& ignored() const { return ignored_; }
  const KeptTime* find(const std::string& signature) const;
  const std::map<std::string, KeptTime>& times() const { return times_; }

  /// Adds these to what the file holds by now, also of programs that measure at the same time; replaces the file at
  /// once, so that a reader never sees half of it. A file that could not be used is kept beside it as ".broken".
  Expected<void> keep(const std::vector<KeptTime>& times);

  std::filesystem::path file() const { return file_; }

 private:
  void read();

  std::filesystem::path file_;
  std::string identity_, ignored_;
  std::map<std::string, KeptTime> times_;
};

}  // namespace turnpoint
