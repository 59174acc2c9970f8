// SPDX-License-Identifier: Apache-2.0
// A plan's step as an engine carries it out that people train with: what of a plan it is given to run, and what its
// processes say that the step took.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/validation/step_of.h"

namespace turnpoint {

struct Engine {
  std::string_view key;     ///< what --engine takes, and the folder of its environment (packaging/engines)
  std::string_view name;    ///< "PyTorch"
  std::string_view format;  ///< of core/export: the plan as a program of this engine
  std::vector<std::string_view (*)()> parts = {};  ///< its own of the program that runs plans (engine_parts.h)
  /// How it always works otherwise than such a plan, a sentence each without full stop; may be empty.
  std::vector<std::string> (*notes)(const Scenario&, const Plan&) = nullptr;
  bool takes_model = false;  ///< the program applies to the user's own model, which has to be made; else it holds one
  bool sees_loss = false;    ///< what the loss sums is among the collectives that it says
  bool one_process = false;  ///< runs all devices of a machine; else each has a process, which a launcher starts
};
/// The same objects for as long as the program runs.
const std::vector<Engine>& engines();
const Engine* find_engine(std::string_view key);  ///< null: none is called so

/// Whether Transformers makes the model of its config.json; else whoever runs it has to bring code that does.
bool made_by_transformers(const Model& model);

/// All of a run that is decided before it starts.
struct EngineJob {
  const Engine* engine = nullptr;
  std::string program;               ///< text of the exported one
  std::string document;              ///< what is to be run, as JSON for the processes
  std::vector<std::string> remarks;  ///< what the program says of itself in comments ("Note: ..."), without full stop
  int devices = 1;
  double budget_s = 60;
};

/// `plan` is of the scenario, `program` what the engine's export format writes of it. `model_code`: "FILE.py:function",
/// a function that makes the user's model; empty: the model is a config.json, of which Transformers makes it.
/// `most_cpu_ranks`: with more ranks than that, the program refuses to run them on processors; 0: it never does.
/// Usage error: neither is there, or an optimizer that the engine does not have.
Expected<EngineJob> engine_job_of(const Engine& engine, const Scenario& scenario, const Plan& plan, std::string program,
                                  const std::string& model_code, const StepChoice& choice, int most_cpu_ranks = 0);

/// All collectives of one kind that one rank makes with the same others in a step.
struct EngineCollective {
  std::string kind;        ///< as to_string(ReshardMove); others by the engine's own name
  std::vector<int> ranks;  ///< rising, rank 0 among them; permute: empty
  std::int64_t count = 0;
  double bytes = 0;  ///< that a rank receives
};

struct EngineMeasurement {
  std::string engine;   ///< with its version: "pytorch 2.15.0"
  std::string backend;  ///< "cpu", "cuda"
  std::string device;   ///< the name of an accelerator; empty: none
  int ranks = 1, cores = 0;
  std::vector<double> times_s;  ///< of each timed step the slowest rank's
  std::vector<double> losses;   ///< of each step from the first, warm-up included; NaN: no number
  std::vector<EngineCollective> collectives;
  /// Bytes of tensors on the rank that has most; what was not measured is not there.
  std::optional<std::int64_t> parameters, gradients, optimizer, peak;
  struct Numerics {
    double loss_error = 0, gradient_error = 0;
    std::string precision, where;
  };
  std::optional<Numerics> numerics;
  std::vector<std::string> notes;
};

/// What the processes say, line by line.
class EngineMessages {
 public:
  explicit EngineMessages(const EngineJob& job) : job_(job) {}
  /// Lines that are no message are passed over: launchers and libraries print, too. Device error: what a process says
  /// went wrong, or a result that is none.
  Expected<void> take(std::string_view line);
  const std::optional<EngineMeasurement>& measurement() const { return measurement_; }
  const std::string& phase() const { return phase_; }
  double fraction() const { return fraction_; }

 private:
  const EngineJob& job_;
  std::optional<EngineMeasurement> measurement_;
  std::string phase_;
  double fraction_ = -1;
};

}  // namespace turnpoint
