// SPDX-License-Identifier: Apache-2.0
// Time, or the largest batch that fits, against the number of devices: the fastest plan that fits, per method and
// count, with what it costs.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace turnpoint::views {

/// One method on one count of devices.
struct ParallelismPoint {
  enum class State { pending, fits, does_not_fit, refused, failed };
  int devices = 0;
  State state = State::pending;
  bool coarse = false;  ///< of a coarse pass; an exact one follows
  double time_s = 0;    ///< of the fastest plan that fits
  std::int64_t memory_bytes =
      0;                ///< of that plan, its simulated peak where known; where none fits, the least any needs
  QString reason = {};  ///< why it was refused or failed
  /// Where the largest batch is shown: the samples of an iteration; `memory_bytes` is then the simulated peak. 0: the
  /// scenario's batch.
  std::int64_t batch = 0;
  QString bound = {};    ///< likewise, a sentence about larger batches; may be empty
  bool stopped = false;  ///< the best until the user stopped it
  QString no_peak = {};  ///< why its peak could not be had, so that a plain sum says what fits; empty: the peak does

  bool fits() const { return state == State::fits; }
  friend bool operator==(const ParallelismPoint&, const ParallelismPoint&) = default;
};

struct ParallelismLine {
  std::string method;  ///< registry name
  QString title;
  std::vector<ParallelismPoint> points;  ///< rising devices, one per count

  const ParallelismPoint* at(int devices) const;
  friend bool operator==(const ParallelismLine&, const ParallelismLine&) = default;
};

struct ParallelismData {
  std::vector<int> counts;               ///< rising
  std::vector<ParallelismLine> lines;    ///< the first is the subject: drawn strongest, and the one that is priced
  int devices = 0;                       ///< of the scenario
  std::int64_t batch = 1;                ///< samples of one iteration
  QString device;                        ///< "V100-16GB"
  std::int64_t memory_limit = 0;         ///< bytes of one device
  std::optional<double> price_per_hour;  ///< of one device
  QString nothing;                       ///< words in place of a chart; empty: there is one
  bool largest_batch = false;            ///< points are of the largest batch that fits, not all of `batch`

  const ParallelismLine* subject() const { return lines.empty() ? nullptr : &lines.front(); }
  /// Samples of one iteration of this point.
  double samples(const ParallelismPoint& point) const {
    return static_cast<double>(point.batch > 0 ? point.batch : batch);
  }
  /// Price of 1000 iterations, or, where batches differ, of a million samples; nullopt where the price is not known or
  /// nothing fits.
  std::optional<double> price(const ParallelismPoint& point) const;
  /// The subject's point with the least price per sample, fewest devices on ties; null without price or plan.
  const ParallelismPoint* cheapest() const;
  bool complete() const;  ///< nothing pending, coarse or stopped

  friend bool operator==(const ParallelismData&, const ParallelismData&) = default;
};

QString devices_text(int devices);  ///< "1 device", "8 devices"
QString price_text(double price);   ///< "$4.27", three significant digits
/// One row per method and count, header first; seconds and bytes.
QString parallelism_csv(const ParallelismData& data);
/// Everything known of one count, a line per method.
QString column_text(const ParallelismData& data, int devices);
/// The chart in words.
QString describe(const ParallelismData& data);

}  // namespace turnpoint::views
