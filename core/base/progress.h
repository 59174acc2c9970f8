// SPDX-License-Identifier: Apache-2.0
// How long-running work talks to whoever started it: a stop token going in, typed snapshots coming out.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

namespace turnpoint {

/// A snapshot of running work. `fraction` is in 0..1, negative where unknown.
struct Progress {
  std::string phase;  ///< "resharding costs", "exact frontier"
  double fraction = -1;
};

/// Called from a worker thread; must be cheap and thread-safe. May be empty.
using ProgressSink = std::function<void(const Progress&)>;

/// What a long-running function gets besides its input. Work checks `stop` often enough to end within 100 ms.
struct RunContext {
  std::stop_token stop;
  ProgressSink progress;
  int threads = 0;  ///< 0: as many as the machine has

  bool cancelled() const { return stop.stop_requested(); }
  void report(const char* phase, double fraction = -1) const {
    if (progress) progress({phase, fraction});
  }
};

}  // namespace turnpoint
