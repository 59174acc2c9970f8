// SPDX-License-Identifier: Apache-2.0
// turnpoint/validation@1: what was predicted of a plan's step and what was measured, side by side.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/probe/step_job.h"

namespace turnpoint {

enum class ValueSource : std::uint8_t { measured, modelled };
const char* to_string(ValueSource source);

/// Seconds or bytes. What was not measured has no `measured` and is modelled; it never borrows the predicted number.
struct ComparedValue {
  std::string name;
  double predicted = 0;
  std::optional<double> measured;
  double q1 = 0, q3 = 0;  ///< of `measured`; 0 where there is none
  ValueSource source = ValueSource::modelled;
  /// Signed, relative to the measured value; nothing without one or where it is 0.
  std::optional<double> error() const;
};

/// How notes begin or go on that say why measured times are longer than they need be.
inline constexpr std::string_view kRanksWaited = "ranks waited for a processor";
inline constexpr std::string_view kSearchesRan = "searches ran on this machine meanwhile";
/// A note: MachineUse says so.
inline constexpr std::string_view kMeasuredMeanwhile =
    "another measurement of ours ran on this machine meanwhile: the times are longer than they need be";

struct ReportNumerics {
  double loss_error = 0, gradient_error = 0, tolerance = 0;  ///< relative
  std::string precision, where;
  std::optional<StepRounding> rounding = std::nullopt;
  bool holds() const { return loss_error <= tolerance && gradient_error <= tolerance; }
};

/// All collectives of one kind that the same ranks make together in a step.
struct ComparedExchange {
  std::string kind;        ///< "all_reduce"
  std::vector<int> ranks;  ///< rising, rank 0 among them; permute: empty
  std::int64_t predicted_count = 0, measured_count = 0;
  double predicted_bytes = 0, measured_bytes = 0;  ///< that a rank receives
  std::string name() const;                        ///< "all_reduce among ranks 0, 2"
  ComparedValue compared_bytes() const;            ///< these of that name; of one step, so without a spread
};

struct ValidationReport {
  std::string model, hardware;  ///< as the scenario names them
  std::string plan;             ///< "ft, point 3: 120 MiB, 41 ms"
  std::string engine;           ///< what ran it, "pytorch 2.15.0"; empty: turnpoint-probe
  std::string backend, mode;    ///< "cpu", "ranks" or "slice"
  int ranks = 1, cores = 0;
  std::string date;        ///< ISO 8601, UTC
  bool placement = false;  ///< of tasks on devices; collectives are its transfers
  bool ratio = false;      ///< of devices with unlike parts; collectives are its moves of tensors
  bool by_device() const { return placement || ratio; }
  bool calibrated = false;                  ///< predicted with times that an earlier report measured
  ComparedValue step;                       ///< seconds of one iteration
  ComparedValue execution, network;         ///< seconds of its computing and of its exchanges
  std::vector<ComparedValue> phases;        ///< seconds of all operators' forward, backward, recompute and update
  std::vector<ComparedValue> operators;     ///< seconds, forward, backward, recompute and update together
  std::vector<ComparedValue> collectives;   ///< seconds
  std::vector<ComparedValue> memory;        ///< bytes: parameters, gradients, optimizer, activations, "peak"
  std::vector<ComparedExchange> exchanges;  ///< an engine's collectives, which have no times
  std::vector<double> losses;               ///< an engine's, of each step from the first, warm-up included
  std::vector<ComparedValue> devices;       ///< ratio: seconds that each device computes in a step
  std::optional<ReportNumerics> numerics;
  ComparedValue bytes_sent;  ///< of all exchanges, on one device
  std::vector<std::string> notes;
  /// The first note that says so; null: nothing is known to have disturbed the run.
  const std::string* disturbed() const;
};
nlohmann::json write_validation(const ValidationReport& report);
Expected<ValidationReport> read_validation(const nlohmann::json& document, const std::string& where);

/// turnpoint/validations@1: reports of several plans of one model; summaries of those before calibration
/// and of the calibrated ones.
nlohmann::json write_validations(const std::vector<ValidationReport>& reports);
/// Of either format: one report, or a list of them.
Expected<std::vector<ValidationReport>> read_validations(const nlohmann::json& document, const std::string& where);

/// One row per value: part, name, predicted, measured, q1, q3, error, source.
std::string write_validation_csv(const ValidationReport& report);
std::string write_validation_markdown(const ValidationReport& report);
/// "In bf16 the same step is off by what rounding explains: loss by ..."
std::string describe(const StepRounding& rounding);

/// The same of several, columns with the plan and whether its prediction is calibrated before.
std::string write_validations_csv(const std::vector<ValidationReport>& reports);

/// Several plans of one model, as the TensorOpt study tabulates its errors (resources/manual/mathematics.md, 1.7): mean
/// and largest |error| of execution, network and memory, and whether predicted and measured order agree.
struct ErrorSummary {
  struct Row {
    std::string name;                        ///< "step", "execution", "network", "memory"
    int plans = 0;                           ///< with a measured value
    double mean = 0, median = 0, worst = 0;  ///< of |error|
  };
  std::vector<Row> rows;
  std::optional<double> rank_correlation;  ///< Spearman's, of step times; nothing with fewer than three plans
};
ErrorSummary summarise(const std::vector<ValidationReport>& reports);
std::string write_summary_markdown(const std::vector<ValidationReport>& reports);

/// Spearman's rank correlation with mean ranks for ties, -1 to 1; nothing for fewer than three pairs or where one side
/// is constant.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace turnpoint
