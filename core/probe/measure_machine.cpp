// SPDX-License-Identifier: Apache-2.0
#include "core/probe/measure_machine.h"

#include <fmt/format.h>
#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/base/machine_use.h"
#include "core/hardware/probe_local.h"
#include "core/hardware/refine_curve.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::int64_t kLeastBytes = 64, kMostBytes = std::int64_t(16) << 20, kMostGpuBytes = std::int64_t(512) << 20;
constexpr double kItemLimit = 20;
/// What the probe would say if it had nothing to measure.
constexpr const char* kNothingLeft = R"({"type":"result","v":1,"seq":0,"t":0,"measured":0})";

/// A machine of one core gets two ranks all the same, so that there is something to exchange.
int usual_ranks() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8); }

/// What is there: asked of the probe by a job of one empty kernel. The line is its hello.
struct Greeting {
  ProbeHello hello;
  std::string line;
};

Expected<Greeting> greet(const ProbeLaunch& launch, const MeasureOptions& options, const RunContext& context) {
  ProbeJob job;
  job.backend = options.backend;
  job.device = options.device;
  const int usual = options.backend == ProbeBackend::cuda ? 1 : usual_ranks();
  job.ranks = options.ranks > 0 ? options.ranks : usual;
  job.cpu_kernels = options.cpu_kernels;
  job.budget_s = 30;
  job.item_s = 0.001;
  ProbeOperator nothing;
  nothing.kind = "launch";
  nothing.calls = {ProbeCall{}};
  job.operators = {nothing};
  Greeting greeting;
  ProbeLaunch asking = launch;
  asking.on_line = [&](const std::string& line) {
    if (greeting.line.empty() && line.find("\"type\":\"hello\"") != std::string::npos) greeting.line = line;
  };
  const auto asked = run_probe(asking, job, context);
  if (!asked) return asked.error();
  greeting.hello = *asked->hello();
  return greeting;
}

/// How many GPUs of the same kind follow each other from the chosen one on.
int alike_gpus(const ProbeHello& hello) {
  const auto first = hello.devices.begin() + hello.device;
  const auto other = std::find_if(first, hello.devices.end(), [&](const auto& d) { return d.name != first->name; });
  return std::min(static_cast<int>(other - first), kMaximumProbeRanks);
}

/// Fields of an item that were measured; the others describe it.
constexpr const char* kMeasuredFields[] = {
    "time_s",    "min_s",     "q1_s",          "median_s", "q3_s",      "hot_s",    "samples",        "noisy",
    "statistic", "clock_mhz", "temperature_c", "power_w",  "throttled", "midpoint", "implementation", "group"};

ProbeCollective collective_of(const ProbeItem& item) {
  return {item.collective->kind, item.collective->group.size, static_cast<std::int64_t>(item.collective->bytes),
          item.stride};
}

double spread_of(const json& measured) {
  const double median = measured.value("median_s", 0.0);
  return median > 0 ? (measured.value("q3_s", median) - measured.value("q1_s", median)) / median : 0;
}

/// A job without what was measured before, and that as lines of the probe.
class TakenOver {
 public:
  TakenOver(const MeasureOptions& options, const ProbeHello& hello, const MeasuredCache& cache, double now)
      : options_(options),
        needs_hot_((options.hot || hello.backend == "cpu") && hello.cold),
        cache_(cache),
        now_(now) {}

  void take_from(ProbeJob& job) {
    std::vector<ProbeOperator> operators;
    for (auto& op : job.operators) {
      const KeptTime* kept = usable(cache_.find(time_signature(op)));
      if (kept && !lacks_hot(*kept))
        add(operator_header(op), *kept);
      else
        operators.push_back(std::move(op));
    }
    job.operators = std::move(operators);
    take_collectives(job);
  }

  const std::vector<std::string>& lines() const { return lines_; }
  const std::string& oldest() const { return oldest_; }

 private:
  const KeptTime* usable(const KeptTime* kept) const {
    if (!kept || kept->item_s < 0.99 * options_.item_s) return nullptr;
    if (now_ - seconds_of_date(kept->date) >= options_.most_age_days * 86400) return nullptr;
    return kept;
  }
  bool lacks_hot(const KeptTime& kept) const {
    return needs_hot_ && kept.fields.find("\"hot_s\"") == std::string::npos;
  }

  /// The listed sizes, and those between them that an earlier run found necessary.
  void take_collectives(ProbeJob& job) {
    std::set<std::string> curves;
    for (const auto& wanted : job.collectives) curves.insert(time_signature(curve_of(wanted)));
    std::vector<ProbeCollective> left;
    for (const auto& wanted : job.collectives)
      if (!usable(cache_.find(time_signature(wanted)))) left.push_back(wanted);
    job.collectives = std::move(left);
    for (const auto& [signature, kept] : cache_.times()) {
      const json described = json::parse(signature, nullptr, false);
      if (!described.is_object() || !usable(&kept)) continue;
      const auto wanted = read_collective(described);
      if (!wanted || !curves.contains(time_signature(curve_of(*wanted)))) continue;
      const json measured = json::parse(kept.fields);
      job.known.push_back({*wanted, measured.value("time_s", 0.0), spread_of(measured)});
      json header = {{"collective", to_string(wanted->kind)}, {"bytes", wanted->bytes}};
      if (wanted->stride != 1) header["stride"] = wanted->stride;
      add(std::move(header), kept);
    }
  }
  static ProbeCollective curve_of(ProbeCollective wanted) {
    wanted.bytes = 0;
    return wanted;
  }
  static std::optional<ProbeCollective> read_collective(const json& described) {
    JsonFields fields(described, "");
    ProbeCollective wanted;
    const auto kind = parse_collective(fields.text("kind", ""));
    wanted.group_size = static_cast<int>(fields.integer("group_size", 2, kMaximumProbeRanks));
    wanted.stride = static_cast<int>(fields.integer("stride", 1, kMaximumProbeRanks, 1));
    wanted.bytes = fields.integer("bytes", 1, std::int64_t(1) << 33);
    if (!kind || fields.error()) return std::nullopt;
    wanted.kind = *kind;
    return wanted;
  }

  void add(json line, const KeptTime& kept) {
    const json measured = json::parse(kept.fields);
    for (const char* field : kMeasuredFields)
      if (const auto found = measured.find(field); found != measured.end()) line[field] = *found;
    line["type"] = "item";
    line["index"] = 0;
    line["reused"] = kept.date;
    line["v"] = 1;
    line["seq"] = 0;
    line["t"] = 0;
    lines_.push_back(line.dump());
    if (oldest_.empty() || kept.date < oldest_) oldest_ = kept.date;
  }

  const MeasureOptions& options_;
  bool needs_hot_;
  const MeasuredCache& cache_;
  double now_;
  std::vector<std::string> lines_;
  std::string oldest_;
};

/// The probe's lines with those of earlier runs put in behind its hello; gathers what is worth keeping.
class Gathering : public ProbeSink {
 public:
  Gathering(const MeasureOptions& options, const ProbeJob& job, const std::vector<std::string>& before, MachineUse& use)
      : options_(options), job_(job), before_(before), use_(use) {}

  Expected<void> take(std::string_view line) override {
    const std::size_t items = messages.items().size();
    const bool greeted = messages.hello().has_value();
    if (options_.on_line) options_.on_line(std::string(line));
    if (auto taken = messages.take(line); !taken) return taken;
    if (messages.items().size() > items) keep(messages.items().back(), line);
    if (greeted || !messages.hello()) return {};
    for (const auto& kept : before_) {
      if (options_.on_line) options_.on_line(kept);
      if (auto taken = messages.take(kept); !taken) return taken;
    }
    return {};
  }
  bool finished() const override { return messages.finished(); }
  ProbeProgress progress() const override { return messages.progress(); }

  ProbeMessages messages;
  std::vector<KeptTime> measured;
  int disturbed = 0;  ///< times that are not kept, since another measurement ran meanwhile

 private:
  void keep(const ProbeItem& item, std::string_view line) {
    // What was slowed down, by the device itself or by somebody who measured as well, is measured again the next time.
    if (!item.not_measured.empty() || !item.throttled.empty()) return;
    if (use_.disturbed()) {
      ++disturbed;
      return;
    }
    const auto index = static_cast<std::size_t>(item.index);
    if (!item.collective && index >= job_.operators.size()) return;
    const json said = json::parse(line, nullptr, false);
    json fields;
    for (const char* field : kMeasuredFields)
      if (const auto found = said.find(field); found != said.end()) fields[field] = *found;
    measured.push_back({item.collective ? time_signature(collective_of(item)) : time_signature(job_.operators[index]),
                        utc_date(static_cast<double>(std::time(nullptr))), options_.item_s, fields.dump()});
  }

  const MeasureOptions& options_;
  const ProbeJob& job_;
  const std::vector<std::string>& before_;
  MachineUse& use_;
};

/// Nothing left to measure, and no curve that wants another size.
bool all_there(const ProbeJob& job) {
  if (job.items() > 0) return false;
  std::map<std::string, std::pair<RefineRule, std::vector<TimedSize>>> curves;
  for (const auto& known : job.known) {
    ProbeCollective curve = known.collective;
    curve.bytes = 0;
    auto& [rule, points] = curves[time_signature(curve)];
    rule.tolerance = job.refine;
    rule.unit = collective_unit(curve);
    points.push_back({known.collective.bytes, known.time_s, known.spread});
  }
  return std::none_of(curves.begin(), curves.end(), [&](auto& entry) {
    auto& [rule, points] = entry.second;
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return job.refine > 0 && next_midpoint(points, rule).has_value();
  });
}

}  // namespace

ProbeJob measurement_job(const MeasureOptions& options, ProbeBackend backend, std::vector<std::string>& left_out) {
  const bool gpu = backend == ProbeBackend::cuda;
  std::vector<ProbePrecision> precisions = options.precisions;
  if (precisions.empty()) {
    precisions = {ProbePrecision::fp32};
    if (gpu) precisions.insert(precisions.end(), {ProbePrecision::bf16, ProbePrecision::tf32});
  }
  ProbeJob job;
  job.backend = backend;
  job.device = options.device;
  job.ranks = options.ranks > 0 ? options.ranks : gpu ? 1 : usual_ranks();
  job.cpu_kernels = options.cpu_kernels;
  job.budget_s = options.budget_s;
  job.item_s = options.item_s;
  job.limit_s = std::max(kItemLimit, 20 * options.item_s);
  job.hot = options.hot || !gpu;
  job.check = options.check;
  job.refine = options.refine;
  ProbeItems items = standard_items(gpu, precisions);
  left_out = items.left_out;
  if (!job.hot) std::erase_if(items.operators, [](const ProbeOperator& op) { return op.kind == kCachePass; });
  if (options.model) {
    ProbeItems own = model_items(*options.model, options.devices > 0 ? options.devices : job.ranks, precisions);
    left_out.insert(left_out.end(), own.left_out.begin(), own.left_out.end());
    // The few standard items without work (copies, launch) come first, then the model, then the other shapes.
    const auto shapes = std::find_if(items.operators.begin(), items.operators.end(),
                                     [](const ProbeOperator& op) { return !op.fit.empty(); });
    items.operators.insert(shapes, std::make_move_iterator(own.operators.begin()),
                           std::make_move_iterator(own.operators.end()));
  }
  job.operators = std::move(items.operators);
  if (job.ranks > 1) job.collectives = standard_collectives(job.ranks, kLeastBytes, gpu ? kMostGpuBytes : kMostBytes);
  return job;
}

Expected<Measurement> measure_machine(const MeasureOptions& given, const RunContext& context) {
  ProbeLaunch launch;
  launch.program = given.program;
  if (launch.program.empty()) {
    auto found = find_probe();
    if (!found) return found.error();
    launch.program = *found;
  }
  launch.launcher = given.launcher;
  if (!launch.launcher.empty() && given.ranks < 1)
    return usage_error("a launcher starts the probe on several hosts: say for how many ranks (--ranks)");
  MeasureOptions options = given;
  if (!launch.launcher.empty()) {
    // CPU ranks unless GPUs are asked for. Which hosts these are is not part of what times are kept under.
    if (options.backend == ProbeBackend::automatic) options.backend = ProbeBackend::cpu;
    options.kept_in.clear();
    options.fresh = true;
  }
  MachineUse use(options.use_file);  // so that whoever measures at the same time knows
  auto greeting = greet(launch, options, context);
  if (!greeting) return greeting.error();
  Measurement made;
  const bool cuda = greeting->hello.backend == "cuda";
  if (cuda) {
    // Ranks were not asked for, or were meant for CPUs. Times of several GPUs are kept under what these say together.
    if (given.ranks < 1 || given.backend != ProbeBackend::cuda) options.ranks = alike_gpus(greeting->hello);
    options.backend = ProbeBackend::cuda;
    if (options.ranks > greeting->hello.ranks) greeting = greet(launch, options, context);
    if (!greeting) return greeting.error();
  }
  const auto& asked = options.precisions;
  if (!cuda && !asked.empty() && std::find(asked.begin(), asked.end(), ProbePrecision::fp32) == asked.end())
    return usage_error(
        "CPU ranks compute in fp32 only: most processors emulate 16-bit formats, so their times would say "
        "nothing of a device that has them");
  ProbeJob job = measurement_job(options, cuda ? ProbeBackend::cuda : ProbeBackend::cpu, made.left_out);
  MeasuredCache cache(options.kept_in, greeting->hello.identity);
  if (!cache.ignored().empty()) made.warnings.push_back("times kept before are ignored: " + cache.ignored());
  TakenOver taken_over(options, greeting->hello, cache, static_cast<double>(std::time(nullptr)));
  if (!options.fresh && !options.check) taken_over.take_from(job);
  Gathering gathering(options, job, taken_over.lines(), use);
  Expected<void> ran;
  if (all_there(job)) {
    for (const auto& line : {greeting->line, std::string(kNothingLeft)})
      if (ran) ran = gathering.take(line);
  } else {
    ran = run_probe(launch, write_probe_job(job), most_seconds(job), gathering, context);
  }
  if (!options.kept_in.empty())
    if (const auto kept = cache.keep(gathering.measured); !kept)
      made.warnings.push_back("what was measured is not kept for the next time: " + kept.error().message());
  if (!ran) return ran.error();
  if (gathering.disturbed > 0)
    made.warnings.push_back(
        fmt::format("another measurement ran on this machine meanwhile: {} times may be too long, and later runs "
                    "measure them again",
                    gathering.disturbed));
  made.messages = std::move(gathering.messages);
  made.reused = static_cast<int>(taken_over.lines().size());
  made.reused_since = taken_over.oldest();
  auto profile = measured_profile(made.messages, options.base, options.tf32);
  if (!profile) return profile.error();
  made.profile = std::move(*profile);
  return made;
}

std::string reuse_text(const Measurement& measured) {
  if (measured.reused == 0) return {};
  return fmt::format("{} of {} times were measured before, since {}", measured.reused, measured.messages.items().size(),
                     measured.reused_since.substr(0, 10));
}

Expected<void> keep_as_local(const Cluster& cluster) {
  const auto path = local_profile_path();
  if (path.empty()) return Error{ErrorCode::device, "there is no home folder to keep it in", {}, {}};
  std::error_code ec;
  std::filesystem::create_directories(path.parent_path(), ec);
  return write_file_atomically(path, write_hardware_profile(cluster));
}

}  // namespace turnpoint
