// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <csignal>

namespace turnpoint::test {

/// Sends a signal to one process that a test has started; false if there is none. A process that has ended already has
/// the number 0 in Qt, which kill() takes for "my own process group": the test, CTest and whatever runs it.
inline bool send_signal(long long process, int signal) {
  return process > 0 && ::kill(static_cast<pid_t>(process), signal) == 0;
}

}  // namespace turnpoint::test
