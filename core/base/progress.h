// SPDX-License-Identifier: Apache-2.0
// How long-running work talks to whoever started it: a stop token going in, typed snapshots coming out.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace turnpoint {

/// What some work has to show besides words; whoever knows its kind looks with dynamic_cast. Thread-safe.
struct ProgressDetail {
  virtual ~ProgressDetail() = default;
};

/// A snapshot of running work. `fraction` is in 0..1, negative where unknown.
struct Progress {
  std::string phase;  ///< "resharding costs", "exact frontier"
  double fraction = -1;
  std::shared_ptr<const ProgressDetail> detail = nullptr;  ///< null: there is none
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
    if (progress) progress({phase, fraction, nullptr});
  }
};

}  // namespace turnpoint
