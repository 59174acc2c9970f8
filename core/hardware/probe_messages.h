// SPDX-License-Identifier: Apache-2.0
// What turnpoint-probe says: JSON lines, read one by one. A recording of them can be read again on another machine.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fields.h"
#include "core/hardware/host_topology.h"
#include "core/hardware/probe_job.h"

namespace turnpoint {

/// A device as the probe found it.
struct ProbeDevice {
  std::string name, kind;  ///< "NVIDIA H200", "cuda"
  std::int64_t memory_bytes = 0;
};

struct ProbeHello {
  std::string backend;
  int ranks = 1, device = 0;    ///< the GPU that is measured, as an index into devices
  std::vector<int> node_ranks;  ///< of a run over several hosts: how many ranks each has; empty: one host
  bool cold = false;            ///< caches were emptied before every sample
  std::string statistic;        ///< which quartile `time_s` is: "median", "q1"
  std::string job;              ///< of a step: fingerprint() of its job; empty: an older probe, or kernels
  std::vector<ProbeDevice> devices;
  HostTopology topology;  ///< of several hosts, the first one's; empty where nothing was told
  std::vector<std::string> libraries, missing, warnings;
  /// Everything that times depend on besides the item: device, driver and libraries with versions, kernels, how many
  /// ranks on which hosts and over what, which quartile. A JSON text that is equal where a time measured before may
  /// stand for one measured now.
  std::string identity;
};

/// One measured time, or why there is none.
struct ProbeItem {
  std::int64_t index = 0;
  ProbeOperator op;  ///< its signature; the calls are not repeated
  std::optional<CollectiveSample> collective;
  double time_s = 0, min_s = 0, q1_s = 0, median_s = 0, q3_s = 0, hot_s = 0;
  int samples = 0;
  bool noisy = false;
  int stride = 1;         ///< of a collective's groups
  bool midpoint = false;  ///< a collective's size that the probe chose between the listed ones
  std::string reused;     ///< when it was measured, if not in this run: "2026-11-22T07:40:00Z"
  std::string throttled, implementation;
  std::string not_measured;  ///< the reason; empty: it was
};

struct ProbeResult {
  int measured = 0, not_measured = 0, skipped = 0, restarts = 0;
  int midpoints = 0, unresolved = 0;  ///< sizes between the listed ones; curves that want more of them
  double elapsed_s = 0;
};

struct ProbeProgress {
  std::string phase;
  double fraction = -1;
};

/// A line's document; error: it is no message. The parts that all runs have in common.
Expected<nlohmann::json> parse_probe_line(std::string_view line);
Error not_a_probe_message(std::string_view line);
ProbeHello read_probe_hello(JsonFields& fields);
ProbeProgress read_probe_progress(JsonFields& fields);
Error read_probe_error(JsonFields& fields);

/// Takes lines in order and keeps what they say. The first line that is no message, or an error message, is an error
/// from then on.
class ProbeMessages {
 public:
  Expected<void> take(std::string_view line);
  bool finished() const { return result_.has_value(); }

  const std::optional<ProbeHello>& hello() const { return hello_; }
  const std::vector<ProbeItem>& items() const { return items_; }
  const std::optional<ProbeResult>& result() const { return result_; }
  const ProbeProgress& progress() const { return progress_; }
  /// Comparisons of kernels with plain loops: how many, and which failed, in words.
  int checks() const { return checks_; }
  const std::vector<std::string>& failed_checks() const { return failed_checks_; }

 private:
  std::optional<ProbeHello> hello_;
  std::vector<ProbeItem> items_;
  std::optional<ProbeResult> result_;
  ProbeProgress progress_;
  int checks_ = 0;
  std::vector<std::string> failed_checks_;
};

/// A recording: all lines of one run. One that breaks off keeps what was measured until then, with a note.
struct ProbeRecording {
  ProbeMessages messages;
  std::vector<std::string> notes;
};
Expected<ProbeRecording> read_probe_recording(const std::string& path);

}  // namespace turnpoint
