// SPDX-License-Identifier: Apache-2.0
#include "core/base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "core/base/text.h"

namespace turnpoint {

namespace {

std::string content_of(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<std::int64_t> limit_in(const char* path) {
  std::string text = content_of(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return parse_int(text);
}

}  // namespace

MachineMemory parse_memory_information(std::string_view text) {
  MachineMemory memory;
  for (const std::string_view line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    const auto kilobytes = parse_int(value.substr(0, value.find(' ')));
    if (!kilobytes || *kilobytes < 0 || *kilobytes > (std::int64_t(1) << 50)) continue;
    if (key == "MemTotal") memory.total = *kilobytes * 1024;
    if (key == "MemAvailable") memory.available = *kilobytes * 1024;
  }
  return memory;
}

MachineMemory machine_memory() {
  MachineMemory memory = parse_memory_information(content_of("/proc/meminfo"));
  // A container may have less than the machine; where it has no limit the file says "max".
  const auto limit = limit_in("/sys/fs/cgroup/memory.max"), used = limit_in("/sys/fs/cgroup/memory.current");
  if (limit && *limit > 0) {
    memory.total = memory.total > 0 ? std::min(memory.total, *limit) : *limit;
    if (used) memory.available = std::min(memory.available, std::max<std::int64_t>(0, *limit - *used));
  }
  return memory;
}

}  // namespace turnpoint
