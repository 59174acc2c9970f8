// SPDX-License-Identifier: Apache-2.0
// `measure` lets turnpoint-probe time this machine and writes a hardware profile; a run recorded elsewhere is read in.
#include <fmt/format.h>
#include <cstdio>
#include <map>

#include "app/cli/commands.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/probe/measure_machine.h"
#include "core/search/scenario_of.h"

namespace turnpoint::cli {

namespace {

struct MeasureArguments {
  std::string out, model, base, backend = "auto", kernels = "auto", precisions, job_out, record, from, name, launcher;
  std::int64_t batch = 0, sequence = 0;
  int ranks = 0, devices = 0, device = 0;
  double budget_s = 60, item_s = 0.2;
  double refine = 0.1, most_age_days = 30;
  bool tf32 = false, hot = false, check = false, fresh = false;
};

Expected<std::vector<ProbePrecision>> chosen_precisions(const std::string& list) {
  std::vector<ProbePrecision> chosen;
  if (list.empty()) return chosen;
  for (const auto name : split(list, ',')) {
    const std::size_t before = chosen.size();
    for (const auto p : {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16})
      if (name == to_string(p)) chosen.push_back(p);
    if (chosen.size() == before)
      return usage_error(fmt::format("--precisions knows fp32, tf32 and bf16, not '{}'", name));
  }
  return chosen;
}

Expected<ProbeBackend> chosen_backend(const std::string& name) {
  for (const auto backend : {ProbeBackend::automatic, ProbeBackend::cpu, ProbeBackend::cuda})
    if (name == to_string(backend)) return backend;
  return usage_error(fmt::format("--backend knows auto, cpu and cuda, not '{}'", name));
}

Expected<ModelPtr> chosen_model(const MeasureArguments& arguments) {
  if (arguments.model.empty()) return ModelPtr();
  const auto source = open_model(arguments.model);
  if (!source) return source.error();
  const GivenSettings given = {arguments.batch > 0, arguments.sequence > 0, true};
  Settings settings;
  settings.batch = arguments.batch;
  settings.sequence = arguments.sequence;
  settings = with_stated(**source, settings, given);
  auto model = (*source)->bind({settings.batch, settings.sequence});
  if (!model) return model;
  const auto taken = taken_settings(**source, **model, settings.precision, given);
  if (!taken.empty()) std::fprintf(stderr, "note: taken: %s\n", words_of(taken).c_str());
  return model;
}

Expected<MeasureOptions> options_of(const MeasureArguments& arguments) {
  MeasureOptions options;
  const auto backend = chosen_backend(arguments.backend);
  if (!backend) return backend.error();
  const auto precisions = chosen_precisions(arguments.precisions);
  if (!precisions) return precisions.error();
  const auto model = chosen_model(arguments);
  if (!model) return model.error();
  options.backend = *backend;
  options.precisions = *precisions;
  options.model = *model;
  if (!arguments.base.empty()) {
    auto base = open_hardware(arguments.base);
    if (!base) return base.error();
    options.base = *base;
  }
  options.cpu_kernels = *parse_cpu_kernels(arguments.kernels);
  options.device = arguments.device;
  options.ranks = arguments.ranks;
  options.devices = arguments.devices;
  options.budget_s = arguments.budget_s;
  options.item_s = arguments.item_s;
  options.tf32 = arguments.tf32;
  options.hot = arguments.hot;
  options.check = arguments.check;
  auto launcher = launcher_words(arguments.launcher);
  if (!launcher) return launcher.error();
  options.launcher = std::move(*launcher);
  options.refine = arguments.refine;
  options.fresh = arguments.fresh;
  options.most_age_days = arguments.most_age_days;
  return options;
}

void say_measured(const ProbeMessages& messages) {
  const ProbeHello& hello = *messages.hello();
  std::string device = hello.devices.at(static_cast<std::size_t>(hello.device)).name;
  std::fprintf(stderr, "%s: %s, %d rank%s\n", hello.backend.c_str(), device.c_str(), hello.ranks,
               hello.ranks == 1 ? "" : "s");
  std::fputs(topology_text(hello.topology).c_str(), stderr);
  for (const auto& warning : hello.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  for (const auto& missing : hello.missing) std::fprintf(stderr, "not there: %s\n", missing.c_str());
  for (const auto& failed : messages.failed_checks()) std::fprintf(stderr, "check failed: %s\n", failed.c_str());
  std::map<std::string, int> reasons;
  for (const auto& item : messages.items())
    if (!item.not_measured.empty()) ++reasons[item.not_measured];
  for (const auto& [reason, count] : reasons) std::fprintf(stderr, "not measured (%d): %s\n", count, reason.c_str());
}

int write_profile(const MeasureArguments& arguments, const ProbeMessages& messages, const MeasuredProfile& profile,
                  const std::vector<std::string>& notes, bool local) {
  Cluster cluster = *profile.cluster;
  if (!arguments.name.empty()) cluster.name = arguments.name;
  cluster.notes.insert(cluster.notes.end(), notes.begin(), notes.end());
  say_measured(messages);
  for (const auto& note : cluster.notes) std::fprintf(stderr, "%s\n", note.c_str());
  for (const auto& error : profile.errors)
    std::fprintf(stderr, "%-28s %-8s %s: %4d times, fitted within %5.1f %% (median), %6.1f %% (worst)\n",
                 error.kind.c_str(), error.phase.c_str(), to_string(error.precision), error.samples, 100 * error.median,
                 100 * error.worst);
  // What was asked for comes first: 'local' stays as it was if that cannot be written.
  const int written = write_output(arguments.out, write_hardware_profile(cluster));
  if (written != 0 || !local) return written;
  if (const auto kept = keep_as_local(cluster); !kept)
    std::fprintf(stderr, "warning: not kept as 'local': %s\n", kept.error().message().c_str());
  return written;
}

int run_measure(const MeasureArguments& arguments) {
  // Before a minute is spent on what cannot be kept.
  for (const auto& path : {arguments.out, arguments.record, arguments.job_out})
    if (const int refused = check_output(path, kMeasuredBytes); refused != kDone) return refused;
  auto options = options_of(arguments);
  if (!options) return report(options.error());
  if (!arguments.from.empty()) {
    const auto recording = read_probe_recording(arguments.from);
    if (!recording) return report(recording.error());
    const auto profile = measured_profile(recording->messages, options->base, options->tf32);
    if (!profile) return report(profile.error());
    return write_profile(arguments, recording->messages, *profile, recording->notes, false);
  }
  if (!arguments.job_out.empty()) {
    if (options->backend == ProbeBackend::automatic)
      return report(usage_error("--job-out needs --backend cpu or cuda"));
    std::vector<std::string> left_out;
    const ProbeJob job = measurement_job(*options, options->backend, left_out);
    for (const auto& reason : left_out) std::fprintf(stderr, "not measured: %s\n", reason.c_str());
    return write_output(arguments.job_out, write_probe_job(job));
  }
  std::string lines;
  if (!arguments.record.empty()) options->on_line = [&](const std::string& line) { lines += line + "\n"; };
  const auto measured = measure_machine(*options, command_context(0));
  // What a failed run said is worth keeping most of all.
  if (!arguments.record.empty())
    if (const auto kept = write_file_atomically(arguments.record, lines); !kept) return report(kept.error());
  if (!measured) return report(measured.error());
  for (const auto& warning : measured->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (const auto reused = reuse_text(*measured); !reused.empty())
    std::fprintf(stderr, "%s; --fresh measures them again\n", reused.c_str());
  for (const auto& reason : measured->left_out) std::fprintf(stderr, "not measured: %s\n", reason.c_str());
  return write_profile(arguments, measured->messages, measured->profile, {}, options->launcher.empty());
}

}  // namespace

void add_measure_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("measure", "Measure this machine into a hardware profile");
  auto a = std::make_shared<MeasureArguments>();
  sub->add_option("--out", a->out, "Profile file; default standard output");
  sub->add_option("--model", a->model, "Measure this model's operators too, in all the sizes that plans give them");
  sub->add_option("--batch", a->batch, "Global batch of the model")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--sequence", a->sequence, "Sequence length of the model")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--devices", a->devices, "Split the model's operators over up to so many devices")
      ->check(CLI::Range(1, 4096));
  sub->add_option("--hardware", a->base, "A cluster whose devices these are: keeps its shape and links");
  sub->add_option("--backend", a->backend, "auto, cpu or cuda")->capture_default_str();
  sub->add_option("--device", a->device, "Which GPU")->check(CLI::Range(0, 1023));
  sub->add_option("--ranks", a->ranks,
                  "CPU ranks, default one a core, 2 to 8; with --backend cuda GPUs, default all of one kind")
      ->check(CLI::Range(1, kMaximumProbeRanks));
  sub->add_option(
         "--cpu-kernels", a->kernels,
         "Matrix products and convolutions of CPU ranks: onednn, own, or auto, which is oneDNN where it is there")
      ->check(CLI::IsMember({"auto", "onednn", "own"}))
      ->capture_default_str();
  sub->add_option("--precisions", a->precisions, "fp32, tf32, bf16, comma-separated; default what the device has");
  sub->add_flag("--tf32", a->tf32, "fp32 figures are those with tf32 on");
  sub->add_flag(
      "--hot", a->hot,
      "Also time runs that find their numbers in the caches, and these themselves (GPUs; CPU ranks always do)");
  sub->add_flag("--check", a->check, "Compare every kernel with plain loops first (GPUs)");
  sub->add_option("--budget", a->budget_s, "Seconds for all")->check(CLI::Range(0.5, 86400.0))->capture_default_str();
  sub->add_option("--item", a->item_s, "Seconds for one item's samples")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  sub->add_option("--refine", a->refine,
                  "Measure sizes of collectives between the powers of two where interpolation is off by more than this "
                  "share; 0: none")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  sub->add_flag("--fresh", a->fresh, "Measure everything, also what was measured on this device before");
  sub->add_option("--max-age", a->most_age_days, "Days after which a time is measured again")
      ->check(CLI::Range(0.0, 36500.0))
      ->capture_default_str();
  sub->add_option("--record", a->record, "Keep what the probe said in this file");
  sub->add_option("--from", a->from, "Read such a recording, of another machine perhaps, instead of measuring");
  sub->add_option("--job-out", a->job_out, "Only write the job, for 'turnpoint-probe --job' elsewhere");
  sub->add_option("--launcher", a->launcher,
                  "Starts the probe on several hosts, 'mpirun -n 4 --hostfile hosts': put in front of its command "
                  "line; with --ranks");
  sub->add_option("--name", a->name, "Name of the profile");
  sub->callback([&command, a] { command.run = [a] { return run_measure(*a); }; });
}

}  // namespace turnpoint::cli
