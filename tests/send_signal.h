// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

namespace turnpoint::test {

/// Sends a signal to one process that a test has started; false if there is none. A process that has ended already has
/// the number 0 in Qt, which kill() takes for "my own process group": the test, CTest and whatever runs it.
inline bool send_signal(long long process, int signal) {
  return process > 0 && ::kill(static_cast<pid_t>(process), signal) == 0;
}

/// Whether the process takes the signal by itself by now, by a handler or by waiting for it; false if there is none.
inline bool takes_signal(long long process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  bool takes = false;
  for (std::string line; std::getline(status, line);)
    if (line.rfind("SigCgt:", 0) == 0 || line.rfind("SigBlk:", 0) == 0)
      takes = takes || (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return takes;
}

/// Processor time that a process has taken so far; 0 if there is none. To wait for work to be under way.
inline double processor_seconds(long long process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto behind_name = text.rfind(')');
  if (behind_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(behind_name + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace turnpoint::test
