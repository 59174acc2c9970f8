// SPDX-License-Identifier: Apache-2.0
// `measure` lets turnpoint-probe time this machine and writes a hardware profile; a run recorded elsewhere is read in.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "app/cli/commands.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/cost/probe_items.h"
#include "core/cost/probe_profile.h"
#include "core/hardware/probe_client.h"
#include "core/hardware/probe_local.h"
#include "core/import/model_source.h"

namespace turnpoint::cli {

namespace {

struct Arguments {
  std::string out, model, base, backend = "auto", precisions, job_out, record, from, name;
  std::int64_t batch = 0, sequence = 0;
  int ranks = 0, devices = 0, device = 0;
  double budget_s = 60, item_s = 0.2;
  bool tf32 = false, hot = false, check = false;
};

constexpr std::int64_t kLeastBytes = 64, kMostBytes = std::int64_t(16) << 20;
constexpr double kItemLimit = 20;

Expected<std::vector<ProbePrecision>> chosen_precisions(const std::string& list, bool gpu) {
  std::vector<ProbePrecision> chosen;
  if (list.empty()) {
    chosen = {ProbePrecision::fp32};
    if (gpu) chosen.insert(chosen.end(), {ProbePrecision::bf16, ProbePrecision::tf32});
    return chosen;
  }
  for (const auto name : split(list, ',')) {
    const std::size_t before = chosen.size();
    for (const auto p : {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16})
      if (name == to_string(p)) chosen.push_back(p);
    if (chosen.size() == before)
      return usage_error(fmt::format("--precisions knows fp32, tf32 and bf16, not '{}'", name));
  }
  return chosen;
}

/// Several cores each get a rank; one core gets two all the same, so that there is something to exchange.
int usual_ranks() {
  const auto cluster = local_hardware();
  const int cores = cluster && (*cluster)->device.name == "CPU core" ? (*cluster)->devices() : 0;
  return std::clamp(cores > 0 ? cores : static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
}

Expected<ProbeBackend> chosen_backend(const std::string& name) {
  for (const auto backend : {ProbeBackend::automatic, ProbeBackend::cpu, ProbeBackend::cuda})
    if (name == to_string(backend)) return backend;
  return usage_error(fmt::format("--backend knows auto, cpu and cuda, not '{}'", name));
}

/// What `auto` means here is for the probe to say: a job of one empty kernel.
Expected<ProbeBackend> ask_backend(const std::string& program, const RunContext& context) {
  ProbeJob job;
  job.budget_s = 30;
  ProbeOperator nothing;
  nothing.kind = "launch";
  nothing.calls = {ProbeCall{}};
  job.operators = {nothing};
  const auto asked = run_probe({program, 10, 0.4, {}}, job, context);
  if (!asked) return asked.error();
  return asked->hello()->backend == "cuda" ? ProbeBackend::cuda : ProbeBackend::cpu;
}

Expected<ProbeJob> compose(const Arguments& arguments, ProbeBackend backend) {
  const bool gpu = backend == ProbeBackend::cuda;
  const auto precisions = chosen_precisions(arguments.precisions, gpu);
  if (!precisions) return precisions.error();
  ProbeJob job;
  job.backend = backend;
  job.device = arguments.device;
  job.ranks = gpu ? 1 : arguments.ranks > 0 ? arguments.ranks : usual_ranks();
  job.budget_s = arguments.budget_s;
  job.item_s = arguments.item_s;
  job.limit_s = std::max(kItemLimit, 20 * arguments.item_s);
  job.hot = arguments.hot;
  job.check = arguments.check;
  ProbeItems items = standard_items(gpu, *precisions);
  if (!arguments.model.empty()) {
    const auto source = open_model(arguments.model);
    if (!source) return source.error();
    const std::int64_t batch = arguments.batch > 0             ? arguments.batch
                               : (*source)->chosen_batch() > 0 ? (*source)->chosen_batch()
                                                               : 256;
    const auto model = (*source)->bind({batch, arguments.sequence});
    if (!model) return model.error();
    ProbeItems of_model = model_items(**model, arguments.devices > 0 ? arguments.devices : job.ranks, *precisions);
    for (const auto& reason : of_model.left_out) std::fprintf(stderr, "not measured: %s\n", reason.c_str());
    // The few standard items without work (copies, launch) come first, then the model, then the other shapes.
    const auto shapes = std::find_if(items.operators.begin(), items.operators.end(),
                                     [](const ProbeOperator& op) { return !op.fit.empty(); });
    items.operators.insert(shapes, of_model.operators.begin(), of_model.operators.end());
  }
  job.operators = std::move(items.operators);
  if (!gpu && job.ranks > 1) {
    job.collectives = standard_collectives(job.ranks, kLeastBytes, kMostBytes);
  }
  return job;
}

void say(const ProbeMessages& messages) {
  const ProbeHello& hello = *messages.hello();
  std::string device = hello.devices.at(static_cast<std::size_t>(hello.device)).name;
  std::fprintf(stderr, "%s: %s, %d rank%s\n", hello.backend.c_str(), device.c_str(), hello.ranks,
               hello.ranks == 1 ? "" : "s");
  for (const auto& warning : hello.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  for (const auto& missing : hello.missing) std::fprintf(stderr, "not there: %s\n", missing.c_str());
  for (const auto& failed : messages.failed_checks()) std::fprintf(stderr, "check failed: %s\n", failed.c_str());
  std::map<std::string, int> reasons;
  for (const auto& item : messages.items())
    if (!item.not_measured.empty()) ++reasons[item.not_measured];
  for (const auto& [reason, count] : reasons) std::fprintf(stderr, "not measured (%d): %s\n", count, reason.c_str());
}

int write_profile(const Arguments& arguments, const ProbeMessages& messages, const std::vector<std::string>& notes,
                  bool local) {
  ClusterPtr base;
  if (!arguments.base.empty()) {
    auto opened = open_hardware(arguments.base);
    if (!opened) return report(opened.error());
    base = *opened;
  }
  auto made = measured_profile(messages, base, arguments.tf32);
  if (!made) return report(made.error());
  auto cluster = std::make_shared<Cluster>(*made->cluster);
  if (!arguments.name.empty()) cluster->name = arguments.name;
  cluster->notes.insert(cluster->notes.end(), notes.begin(), notes.end());
  say(messages);
  for (const auto& note : cluster->notes) std::fprintf(stderr, "%s\n", note.c_str());
  for (const auto& error : made->errors)
    std::fprintf(stderr, "%-28s %-8s %s: %4d times, fitted within %5.1f %% (median), %6.1f %% (worst)\n",
                 error.kind.c_str(), error.phase.c_str(), to_string(error.precision), error.samples, 100 * error.median,
                 100 * error.worst);
  const std::string text = write_hardware_profile(*cluster);
  if (local) {
    // A home that cannot be written to is no reason to lose the measurement.
    const auto path = local_profile_path();
    std::error_code ec;
    if (!path.empty()) std::filesystem::create_directories(path.parent_path(), ec);
    if (const auto kept = path.empty() ? Expected<void>() : write_file_atomically(path, text); !kept)
      std::fprintf(stderr, "warning: not kept as 'local': %s\n", kept.error().message().c_str());
  }
  return write_output(arguments.out, text);
}

int run_measure(const Arguments& arguments) {
  if (!arguments.from.empty()) {
    const auto recording = read_probe_recording(arguments.from);
    if (!recording) return report(recording.error());
    return write_profile(arguments, recording->messages, recording->notes, false);
  }
  const RunContext context = command_context(0);
  auto backend = chosen_backend(arguments.backend);
  if (!backend) return report(backend.error());
  if (!arguments.job_out.empty()) {
    if (*backend == ProbeBackend::automatic) return report(usage_error("--job-out needs --backend cpu or cuda"));
    const auto job = compose(arguments, *backend);
    if (!job) return report(job.error());
    return write_output(arguments.job_out, write_probe_job(*job));
  }
  const auto program = find_probe();
  if (!program) return report(program.error());
  if (*backend == ProbeBackend::automatic) backend = ask_backend(*program, context);
  if (!backend) return report(backend.error());
  const auto job = compose(arguments, *backend);
  if (!job) return report(job.error());
  std::string lines;
  ProbeLaunch launch{*program, 10, 0.4, {}};
  if (!arguments.record.empty()) launch.on_line = [&](const std::string& line) { lines += line + "\n"; };
  const auto measured = run_probe(launch, *job, context);
  if (!arguments.record.empty())
    if (const auto kept = write_file_atomically(arguments.record, lines); !kept) return report(kept.error());
  if (!measured) return report(measured.error());
  return write_profile(arguments, *measured, {}, true);
}

}  // namespace

void add_measure_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("measure", "Measure this machine into a hardware profile");
  auto a = std::make_shared<Arguments>();
  sub->add_option("--out", a->out, "Profile file; default standard output");
  sub->add_option("--model", a->model, "Measure this model's operators too, in all the sizes that plans give them");
  sub->add_option("--batch", a->batch, "Global batch of the model")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--sequence", a->sequence, "Sequence length of the model")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--devices", a->devices, "Split the model's operators over up to so many devices")
      ->check(CLI::Range(1, 4096));
  sub->add_option("--hardware", a->base, "A cluster whose devices these are: keeps its shape and links");
  sub->add_option("--backend", a->backend, "auto, cpu or cuda")->capture_default_str();
  sub->add_option("--device", a->device, "Which GPU")->check(CLI::Range(0, 1023));
  sub->add_option("--ranks", a->ranks, "CPU ranks; default one a core, 2 to 8")
      ->check(CLI::Range(1, kMaximumProbeRanks));
  sub->add_option("--precisions", a->precisions, "fp32, tf32, bf16, comma-separated; default what the device has");
  sub->add_flag("--tf32", a->tf32, "fp32 figures are those with tf32 on");
  sub->add_flag("--hot", a->hot, "Also time back-to-back runs with warm caches (GPUs)");
  sub->add_flag("--check", a->check, "Compare every kernel with plain loops first (GPUs)");
  sub->add_option("--budget", a->budget_s, "Seconds for all")->check(CLI::Range(0.5, 86400.0))->capture_default_str();
  sub->add_option("--item", a->item_s, "Seconds for one item's samples")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  sub->add_option("--record", a->record, "Keep what the probe said in this file");
  sub->add_option("--from", a->from, "Read such a recording, of another machine perhaps, instead of measuring");
  sub->add_option("--job-out", a->job_out, "Only write the job, for 'turnpoint-probe --job' elsewhere");
  sub->add_option("--name", a->name, "Name of the profile");
  sub->callback([&command, a] { command.run = [a] { return run_measure(*a); }; });
}

}  // namespace turnpoint::cli
