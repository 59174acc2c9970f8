// SPDX-License-Identifier: Apache-2.0
// The time that a test may take is judged by what its process has computed: on a machine that others keep busy the clock
// on the wall says how busy they are. What merely waits is not judged by a clock: it would wait until CTest's limit.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace turnpoint::test {

/// Milliseconds of processor time that this process, all threads of it, has taken since the clock was made.
class ProcessorClock {
 public:
  std::int64_t elapsed() const { return now() - began_; }

 private:
  static std::int64_t now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& t) { return std::int64_t(t.tv_sec) * 1000 + t.tv_usec / 1000; };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
  }
  std::int64_t began_ = now();
};

}  // namespace turnpoint::test
