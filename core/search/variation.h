// SPDX-License-Identifier: Apache-2.0
// One quantity of a scenario varied, everything else as it stands: for every value and method the fastest plan that
// fits and the turning point, with time, peak and price. People call it a sweep; in the engine that word is taken
// (core/search/frontier_tracking/sweep.h). Its file is `turnpoint/sweep@1` (resources/manual/formats.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/import/source/model_source.h"
#include "core/plan/result.h"
#include "core/search/method/method.h"

namespace turnpoint {

enum class Varied : std::uint8_t { batch, sequence, devices, micro_batches, hidden };

struct VariedQuantity {
  Varied quantity;
  const char *key, *title, *unit;  ///< "micro-batches", "Micro-batches", "" where the title says it all
};
/// All of them, in the order of Varied.
std::span<const VariedQuantity> varied_quantities();
const VariedQuantity& quantity_of(Varied quantity);

/// What is varied and over which values.
struct VariedAxis {
  static constexpr std::size_t kMostValues = 64;
  Varied quantity = Varied::batch;
  std::vector<std::int64_t> values;  ///< rising
};
/// "8,16,32", "8..512" (doubled until the second number, which is one of them), both in one list; put in order, each
/// once. Usage error: not a list of whole numbers, one outside the quantity's range, or more than kMostValues.
Expected<std::vector<std::int64_t>> parse_varied_values(Varied quantity, std::string_view text);
/// "batch=8..512". Usage error: no such quantity, or as of the values.
Expected<VariedAxis> parse_varied_axis(std::string_view text);

/// What stays as it is.
struct VariationSubject {
  ModelSourcePtr source;
  ClusterPtr cluster;    ///< uncut; null: a task graph's own file
  std::string hardware;  ///< as the user named it
  Settings settings;
  ScenarioPtr scenario;  ///< of all that
};
/// The scenario's own value; 0: it has none, as a scenario has no number of micro-batches.
std::int64_t own_value(Varied quantity, const VariationSubject& subject);
/// Usage error: the subject's model or hardware has no such quantity to choose, and why. Quick: whether a file's batch
/// is fixed is left to its cells.
Expected<void> check_can_vary(Varied quantity, const VariationSubject& subject);
/// A quarter of the own value to four times as much, by doubling; of devices an eighth to all that the hardware has; of
/// micro-batches 1, 2, 4, ... 16, those that divide the batch. Empty where the quantity cannot be varied.
std::vector<std::int64_t> usual_values(Varied quantity, const VariationSubject& subject);

/// Opens a model by its specification (open_model()).
using ModelOpener = std::function<Expected<ModelSourcePtr>(const std::string& specification)>;
/// The scenario with another value, made as a search of it by itself would have it. Of micro-batches, which are the
/// methods' own, the scenario as it stands. Usage error or bad input: it cannot be.
Expected<ScenarioPtr> varied_scenario(const VariationSubject& subject, Varied quantity, std::int64_t value,
                                      const ModelOpener& open = &open_model);

/// A method with its parameters, and what it is called in the answer: "fsdp:zero=2".
struct VariedMethod {
  const Method* method = nullptr;  ///< outlives the request
  std::string parameters;

  std::string name() const { return parameters.empty() ? method->name : method->name + ':' + parameters; }
};
/// Its parameters at a value of the quantity: with so many micro-batches, else as they stand.
std::string varied_parameters(const VariedMethod& method, Varied quantity, std::int64_t value);
/// What is asked where the quantity is varied: of micro-batches without the number that a method names itself, each
/// once.
std::vector<VariedMethod> varied_methods(std::vector<VariedMethod> methods, Varied quantity);

/// One plan of a cell.
struct VariedPlan {
  std::size_t point = 0;  ///< of the search's result
  double time_s = 0;      ///< of a step, on the cell's clock
  std::optional<double> simulated_time_s = std::nullopt;
  std::int64_t memory_bytes = 0;  ///< plain sum; of a cell on the simulated clock the peak
  std::optional<std::int64_t> simulated_memory_bytes = std::nullopt;
  std::string words = {};  ///< what it resembles; empty where the plan is no split of operators

  std::int64_t peak_bytes() const { return simulated_memory_bytes.value_or(memory_bytes); }
};

/// What one method answered at one value.
struct VariationCell {
  enum class State : std::uint8_t {
    fits,
    nothing_fits,  ///< plans were found, and none fits
    cannot_be,     ///< no such scenario, or the method does not take it: nothing was searched
    failed,        ///< the search ended without an answer
  };
  std::int64_t value = 0;
  std::string method;  ///< VariedMethod::name()
  State state = State::fits;
  std::string reason = {};  ///< one sentence, where it does not fit
  // Of the scenario at this value; 0 where there is none.
  std::int64_t batch = 0, sequence = 0, memory_limit = 0;
  int devices = 0;
  std::optional<double> price_per_hour = std::nullopt;  ///< of one device
  // Of the answer.
  Clock clock = Clock::additive;
  bool exact = false;
  std::optional<double> gap = std::nullopt;
  std::size_t plans = 0;
  double search_s = 0;  ///< of an answer that was there already what it took when it was found
  std::optional<VariedPlan> fastest = std::nullopt;  ///< that fits
  std::optional<VariedPlan> turning = std::nullopt;  ///< the turning point, of a frontier that has one
  std::int64_t least_bytes = 0;                      ///< where nothing fits: the least peak that was met
  std::vector<std::string> notes = {};

  bool fits() const { return state == State::fits; }
  /// Of a step of so many seconds; nullopt where the scenario has no samples, no tokens or no price.
  std::optional<double> samples_per_second(double time_s) const;
  std::optional<double> tokens_per_second(double time_s) const;
  std::optional<double> price_per_step(double time_s) const;
  /// Of a million tokens; of a million samples where the model has no sequence.
  std::optional<double> price_per_million(double time_s) const;
};

struct VariationRequest {
  VariationSubject subject;
  VariedAxis axis;
  std::vector<VariedMethod> methods;
  ModelOpener open = &open_model;
  /// The exact answer to the subject's own scenario that is there already, to be taken instead of a search; null: there
  /// is none. May be empty. Called where run_variation() runs.
  std::function<ResultPtr(const std::string& method)> known = {};
};

/// What is asked and the answers found so far.
struct Variation {
  VariedAxis axis;
  std::vector<std::string> methods;
  std::int64_t own = 0;              ///< own_value()
  std::string model, hardware;       ///< names for people; where devices are varied that of one
  std::string scenario = "null";     ///< what stays, as the JSON object of a result
  double search_s = 0;               ///< wall seconds of the whole
  std::vector<VariationCell> cells;  ///< by method and value in the request's order, once complete() or sorted

  const VariationCell* find(std::int64_t value, std::string_view method) const;
  void put(VariationCell cell);  ///< in place of one of the same value and method
  bool complete() const { return cells.size() == methods.size() * axis.values.size(); }
};
/// Without answers.
Variation variation_of(const VariationRequest& request);

/// Asks every method at every value, methods of one answer before those with a frontier, and hands each answer to
/// `found`, on the calling thread. Each search is one of its own, exact, on as many threads as `context` says, so that
/// a cell is what a search of that scenario answers. What fits is judged by simulated peaks (core/schedule/fitting.h);
/// a ratio plan has devices of unlike size. Errors: check_can_vary(); cancelled, what was found stays found.
Expected<void> run_variation(const VariationRequest& request, const RunContext& context,
                             const std::function<void(const VariationCell&)>& found);

/// turnpoint/sweep@1. Errors of reading: bad input, at `where`.
std::string write_variation(const Variation& variation);
Expected<Variation> read_variation(std::string_view text, const std::string& where);
/// A row for each cell, header first; seconds, bytes and the currency of the price. What a cell does not have is empty.
std::string variation_csv(const Variation& variation);
const char* to_string(VariationCell::State state);  ///< "fits", "nothing fits", "cannot be", "failed"

}  // namespace turnpoint
