// SPDX-License-Identifier: Apache-2.0
#include "core/probe/step_job.h"

#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/model/model_json.h"
#include "core/probe/plan_record.h"
#include "core/probe/step_placement.h"
#include "core/probe/step_ratio.h"

namespace turnpoint {

namespace {

constexpr const char* kFormat = "turnpoint/step-job@1";
constexpr int kMostMicroBatches = 1 << 20;
constexpr StepMode kModes[] = {StepMode::ranks, StepMode::slice};
constexpr ProbeBackend kBackends[] = {ProbeBackend::automatic, ProbeBackend::cpu, ProbeBackend::cuda};
constexpr CpuKernels kKernels[] = {CpuKernels::automatic, CpuKernels::onednn, CpuKernels::own};
constexpr ProbePrecision kPrecisions[] = {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16};

template <class Enum, std::size_t N>
Enum named(JsonFields& fields, const char* key, const Enum (&values)[N], Enum otherwise) {
  const std::string text = fields.text(key, to_string(otherwise));
  for (const auto value : values)
    if (text == to_string(value)) return value;
  fields.fail(key, fmt::format("'{}' is not known", text));
  return otherwise;
}

void read_slow(JsonFields& fields, int ranks, StepJob& job) {
  const nlohmann::json& list = fields.json()["slow"];
  if (!list.is_array() || list.size() > static_cast<std::size_t>(ranks))
    return fields.fail("slow", "must be a list of factors, no more than there are ranks");
  for (const nlohmann::json& factor : list) {
    if (!factor.is_number() || !(factor >= 1) || !(factor <= kMostSlowness))
      return fields.fail("slow", fmt::format("must be factors from 1 to {}", kMostSlowness));
    job.slow.push_back(factor.get<double>());
  }
  if (!job.ratio && !job.slow.empty()) fields.fail("slow", "is of the ranks of a ratio plan");
}

/// Elements of parameters that all ranks hold together while they compute.
double held_by_ranks(const Model& model, const Plan& plan) {
  double held = 0;
  for (const auto& planned : plan.operators) {
    const Operator& op = model.operators[planned.op];
    for (const auto& access : op.inputs) {
      const Tensor& tensor = model.tensors[access.tensor];
      if (tensor.role != TensorRole::parameter || tensor.tied_to.valid()) continue;
      const Layout layout = gradient_layout(op, access, false, planned.split, plan.mesh.count()).without_partial();
      held += static_cast<double>(local_elements(plan.mesh, layout, tensor.shape)) * plan.mesh.devices();
    }
  }
  return held;
}

/// What a step in double has to do, on one rank or on all.
struct ProofWork {
  double multiplied = 0, looped = 0;  ///< multiply-accumulates, in products of matrices and in loops
  double elements = 0, weights = 0;   ///< that are computed, that are held

  void add(const Model& model, const Operator& op, double times) {
    (op.kind == OperatorKind::matmul ? multiplied : looped) += times * (op.forward_flop + op.backward_flop) / 2;
    for (const auto& access : op.outputs)
      elements += times * static_cast<double>(model.tensors[access.tensor].elements());
  }
  /// Of processor time, a little more than it takes. Fitted to GPT-2 of two layers on two ranks with OpenBLAS on a
  /// machine that did much else: this says 23.4 s with 512 tokens, where 15.4 s were used on an idle one (8.7 s on its
  /// two cores). Of models that were not fitted an LSTM took 1.6 s (this says 3.3 s) and LeNet 0.3 s (0.5 s). Products
  /// by blocks and loops as measured before: less than 0.1 ns and 4 ns a multiply-accumulate.
  double seconds(bool library) const {
    return kLooped * looped + (library ? kByLibrary : kByBlocks) * multiplied + kElement * elements + kWeight * weights;
  }
  /// Seconds a multiply-accumulate in loops, by a library and by blocks; an element, a weight.
  static constexpr double kLooped = 4e-9, kByLibrary = 5e-11, kByBlocks = 1e-10, kElement = 1e-7, kWeight = 4e-8;
};

/// Ranks that do the same as another one: how often an operator is carried out.
double times_done(const PlanOperator& planned, const Mesh& mesh) {
  double times = 1;
  for (int a = 0; a < mesh.count(); ++a)
    if (planned.split.axis[static_cast<std::size_t>(a)] < 0) times *= mesh.axes[static_cast<std::size_t>(a)].size;
  return times;
}

}  // namespace

const char* to_string(StepMode mode) { return mode == StepMode::ranks ? "ranks" : "slice"; }

const char* to_string(StepPhase phase) {
  static constexpr const char* kNames[] = {"forward", "backward", "recompute", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

Plan unsplit_plan(const Model& model) {
  Plan plan;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    PlanOperator op;
    op.op = OperatorId(i);
    plan.operators.push_back(std::move(op));
  }
  return plan;
}

bool ProofNeeds::affordable(double budget_s, std::int64_t available_bytes) const {
  return seconds <= budget_s && (available_bytes <= 0 || bytes <= 0.5 * static_cast<double>(available_bytes));
}

ProofNeeds proof_needs(const Model& model, const Plan& plan, const ProofMachine& machine, int micro_batches) {
  ProofWork whole, ranks;
  for (const auto& op : model.operators) whole.add(model, op, 1);
  for (const auto& planned : plan.operators)
    ranks.add(model, model.operators[planned.op], times_done(planned, plan.mesh));
  whole.weights = static_cast<double>(model.parameters);
  ranks.weights = held_by_ranks(model, plan);
  const int together = std::max(1, std::min(machine.cores, plan.mesh.devices()));
  // The two steps run beside each other (gpu_probe/step/whole_step.h) and take less time than one after the other. The
  // memory is that of both: GPT-2 of two layers took 5.4 GB with 256 tokens and 7.6 GB with 512, and this says 7.0 and
  // 8.1 GB.
  return {micro_batches * (whole.seconds(machine.library) + ranks.seconds(machine.library) / together),
          8 * (3 * (whole.elements + ranks.elements) + 4.7 * (whole.weights + ranks.weights))};
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
  job.cpu_kernels = named(fields, "cpu_kernels", kKernels, job.cpu_kernels);
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
  const bool layer_wise = job.optimizer == "lars" || job.optimizer == "lamb" || job.optimizer == "adafactor";
  if (job.optimizer != "sgd" && job.optimizer != "momentum" && job.optimizer != "adam" && !layer_wise)
    fields.fail("optimizer", fmt::format("the probe updates by sgd, momentum, adam, lars, lamb or adafactor, not by {}",
                                         job.optimizer));
  if (layer_wise && (job.backend == ProbeBackend::cuda || fields.has("placement")))
    fields.fail("optimizer", fmt::format("{} takes norms of whole weights, which CPU ranks of plans that split "
                                         "operators make, and no others",
                                         job.optimizer));
  job.prove = fields.flag("prove", true);
  job.warm_up = static_cast<int>(fields.integer("warm_up", 0, 1000, job.warm_up));
  job.steps = static_cast<int>(fields.integer("steps", 1, 100'000, job.steps));
  job.budget_s = fields.number("budget_s", 0.1, 86400, job.budget_s);
  job.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  job.micro_batches = static_cast<int>(fields.integer("micro_batches", 1, kMostMicroBatches, 1));
  if (!fields.has("model")) fields.fail("model", "is missing");
  const bool placed = fields.has("placement"), unequal = fields.has("ratio");
  if (!placed && !unequal && !fields.has("plan")) fields.fail("plan", "is missing");
  if (placed && unequal) fields.fail("ratio", "stands beside a placement: a job has one plan");
  if (fields.error()) return *fields.error();
  job.model = read_model(fields.object("model"));
  if (fields.error()) return *fields.error();
  if (placed) {
    job.plan = unsplit_plan(*job.model);
    job.placement = read_step_placement(fields.object("placement"), *job.model);
    if (job.mode == StepMode::slice) fields.fail("mode", "is slice, and a placement's tasks are not slices");
    if (job.micro_batches > 1) fields.fail("micro_batches", "is more than 1, and a placement's tasks run once a step");
  } else if (unequal) {
    job.plan = unsplit_plan(*job.model);
    job.ratio = read_step_ratio(fields.object("ratio"), *job.model);
    if (job.mode == StepMode::slice) fields.fail("mode", "is slice, and the ranks of a ratio plan are not run alone");
    if (job.micro_batches > 1) fields.fail("micro_batches", "is more than 1, and a ratio plan has none");
    if (job.backend == ProbeBackend::cuda) fields.fail("backend", "is cuda, and a ratio plan runs on CPU ranks alone");
  } else {
    job.plan = read_plan_record(fields.object("plan"), *job.model);
  }
  const int devices = fields.error() ? 1 : job.devices();
  job.slice_device = static_cast<int>(fields.integer("slice_device", 0, devices - 1, 0));
  if (fields.has("slow")) read_slow(fields, devices, job);
  if (fields.error()) return *fields.error();
  return job;
}

namespace {

nlohmann::json step_job_document(const StepJob& job) {
  nlohmann::json document = {{"format", kFormat},
                             {"model", write_model(*job.model)},
                             {"backend", to_string(job.backend)},
                             {"device", job.device},
                             {"cpu_kernels", to_string(job.cpu_kernels)},
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
  if (!job.slow.empty()) document["slow"] = job.slow;
  if (job.micro_batches > 1) document["micro_batches"] = job.micro_batches;
  if (job.placement)
    document["placement"] = write_step_placement(*job.placement);
  else if (job.ratio)
    document["ratio"] = write_step_ratio(*job.ratio);
  else
    document["plan"] = write_plan_record(job.plan);
  return document;
}

void erase_everywhere(nlohmann::json& value, std::initializer_list<const char*> keys) {
  if (value.is_object())
    for (const char* key : keys) value.erase(key);
  if (value.is_structured())
    for (auto& item : value) erase_everywhere(item, keys);
}

}  // namespace

std::string write_step_job(const StepJob& job) {
  return step_job_document(job).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string fingerprint(const StepJob& job) {
  nlohmann::json document = step_job_document(job);
  for (const char* key : {"backend", "device", "cpu_kernels", "prove", "warm_up", "steps", "budget_s", "seed"})
    document.erase(key);
  for (const char* key : {"name", "source", "warnings"}) document["model"].erase(key);
  for (const char* key : {"plan", "placement"})
    if (document.contains(key)) erase_everywhere(document[key], {"time_s", "cost"});
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

}  // namespace turnpoint
