// SPDX-License-Identifier: Apache-2.0
// The clock of benchmarks that share their machine with other programs.
#pragma once

#include <time.h>

namespace turnpoint::test {

/// Of this process, all threads together.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

}  // namespace turnpoint::test
