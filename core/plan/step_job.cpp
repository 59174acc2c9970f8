// SPDX-License-Identifier: Apache-2.0
#include "core/plan/step_job.h"

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/model/model_json.h"
#include "core/plan/plan_record.h"

namespace turnpoint {

namespace {

constexpr const char* kFormat = "turnpoint/step-job@1";
constexpr StepMode kModes[] = {StepMode::ranks, StepMode::slice};
constexpr ProbeBackend kBackends[] = {ProbeBackend::automatic, ProbeBackend::cpu, ProbeBackend::cuda};
constexpr ProbePrecision kPrecisions[] = {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16};

template <class Enum, std::size_t N>
Enum named(JsonFields& fields, const char* key, const Enum (&values)[N], Enum otherwise) {
  const std::string text = fields.text(key, to_string(otherwise));
  for (const auto value : values)
    if (text == to_string(value)) return value;
  fields.fail(key, fmt::format("'{}' is not known", text));
  return otherwise;
}

}  // namespace

const char* to_string(StepMode mode) { return mode == StepMode::ranks ? "ranks" : "slice"; }

const char* to_string(StepPhase phase) {
  static constexpr const char* kNames[] = {"forward", "backward", "recompute", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

Expected<StepJob> parse_step_job(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return document.error();
  JsonFields fields(*document, where);
  if (const std::string format = fields.text("format", ""); !fields.error() && format != kFormat)
    fields.fail("format", fmt::format("expected '{}', not '{}'", kFormat, format));
  StepJob job;
  job.backend = named(fields, "backend", kBackends, job.backend);
  job.device = static_cast<int>(fields.integer("device", 0, 1023, 0));
  job.mode = named(fields, "mode", kModes, job.mode);
  job.precision = named(fields, "precision", kPrecisions, job.precision);
  const auto bytes = [&](const char* key, int least, int otherwise) {
    return static_cast<int>(fields.integer(key, least, 64, otherwise));
  };
  job.floating_bytes = bytes("floating_bytes", 1, job.floating_bytes);
  job.weight_bytes = bytes("weight_bytes", 1, job.weight_bytes);
  job.gradient_bytes = bytes("gradient_bytes", 1, job.gradient_bytes);
  job.optimizer_bytes = bytes("optimizer_bytes", 0, job.optimizer_bytes);
  job.optimizer = fields.text("optimizer", job.optimizer);
  job.prove = fields.flag("prove", true);
  job.warm_up = static_cast<int>(fields.integer("warm_up", 0, 1000, job.warm_up));
  job.steps = static_cast<int>(fields.integer("steps", 1, 100'000, job.steps));
  job.budget_s = fields.number("budget_s", 0.1, 86400, job.budget_s);
  job.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  if (!fields.has("model")) fields.fail("model", "is missing");
  if (!fields.has("plan")) fields.fail("plan", "is missing");
  if (fields.error()) return *fields.error();
  job.model = read_model(fields.object("model"));
  if (fields.error()) return *fields.error();
  job.plan = read_plan_record(fields.object("plan"), *job.model);
  const int devices = fields.error() ? 1 : job.plan.mesh.devices();
  job.slice_device = static_cast<int>(fields.integer("slice_device", 0, devices - 1, 0));
  if (fields.error()) return *fields.error();
  return job;
}

std::string write_step_job(const StepJob& job) {
  const nlohmann::json document = {{"format", kFormat},
                                   {"model", write_model(*job.model)},
                                   {"plan", write_plan_record(job.plan)},
                                   {"backend", to_string(job.backend)},
                                   {"device", job.device},
                                   {"mode", to_string(job.mode)},
                                   {"slice_device", job.slice_device},
                                   {"precision", to_string(job.precision)},
                                   {"floating_bytes", job.floating_bytes},
                                   {"weight_bytes", job.weight_bytes},
                                   {"gradient_bytes", job.gradient_bytes},
                                   {"optimizer_bytes", job.optimizer_bytes},
                                   {"optimizer", job.optimizer},
                                   {"prove", job.prove},
                                   {"warm_up", job.warm_up},
                                   {"steps", job.steps},
                                   {"budget_s", job.budget_s},
                                   {"seed", job.seed}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace turnpoint
