// SPDX-License-Identifier: Apache-2.0
// Any bytes as a job of turnpoint-probe and as what it says, live or recorded: a job that can be written again, values
// that were checked, or a message.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/hardware/probe_messages.h"
#include "core/probe/step_client.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"
#include "core/validation/step_of.h"
#include "fuzz/checks.h"
#include "fuzz/seed_corpus.h"

namespace {

using namespace turnpoint;

const StepJob& lenet_job() {
  static const StepJob job = [] {
    Settings settings;
    settings.batch = 8;
    settings.devices = 2;
    const auto scenario = *scenario_of(**open_model("builtin:lenet"), "v100-16gb-1x4", settings);
    const auto searcher = *make_searcher(**find_method("data-parallel"));
    RunContext context;
    context.threads = 1;
    const auto result = *searcher->run(scenario, SearchPass::exact, context);
    return *step_job_of(*scenario, result->plans->sharding(0), {});
  }();
  return job;
}

ProbeJob kernels_job() {
  ProbeJob job;
  job.ranks = 2;
  ProbeOperator op;
  op.kind = "matmul";
  op.fit = "matmul";
  op.dims = {64, 32, 16};
  op.calls.push_back({CallKind::copy, {1024}, 2});
  job.operators.push_back(op);
  job.collectives.push_back({Collective::all_reduce, 2, 1 << 16, 1});
  job.known.push_back({job.collectives[0], 1e-3, 0.1});
  return job;
}

constexpr const char* kStepRecording =
    R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"devices":[{"name":"core","kind":"cpu","memory_bytes":1000}]}
{"type":"start","phase":"proving","fraction":0.5,"limit_s":30}
{"type":"operator","op":1,"phase":"update","min_s":1,"q1_s":2,"median_s":3,"q3_s":4,"samples":5}
{"type":"exchange","reshard":-1,"op":1,"step":0,"planned_bytes":8,"received_bytes":8,"min_s":1,"q1_s":2,"median_s":3,"q3_s":4,"samples":5}
{"type":"result","ranks":2,"cores":2,"step_time":{"min_s":1,"q1_s":2,"median_s":3,"q3_s":4,"samples":5},"memory":{"parameters":1,"gradients":2,"optimizer":3,"kept":4,"peak":11,"counted_peak":10},"numerics":{"loss_error":1e-9,"activation_error":0,"gradient_error":1e-9,"update_error":0,"tolerance":1e-6,"precision":"fp64","where":"conv1","rounding":{"precision":"bf16","loss_error":0.1,"gradient_error":0.1,"loss_tolerance":0.5,"gradient_tolerance":0.5,"where":"conv1"}},"planned_bytes":8,"received_bytes":8,"notes":["one"]}
)";
constexpr const char* kKernelRecording =
    R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":4,"cold":true,"statistic":"q1","devices":[{"name":"core","kind":"cpu","memory_bytes":1000}],"libraries":["oneDNN 3.0"]}
{"type":"check","name":"matmul","ok":true}
{"type":"item","index":0,"operator":{"kind":"matmul","fit":"matmul","dims":[64,32,16],"precision":"fp32","backward":false,"flop":65536,"bytes":4096},"time_s":0.1,"min_s":0.05,"q1_s":0.1,"median_s":0.2,"q3_s":0.3,"samples":9}
{"type":"item","index":1,"collective":{"kind":"all_reduce","group_size":4,"bytes":65536,"stride":1},"time_s":0.1,"min_s":0.05,"q1_s":0.1,"median_s":0.2,"q3_s":0.3,"samples":9}
{"type":"item","index":2,"not_measured":"takes longer than 30 s"}
{"type":"result","measured":2,"not_measured":1,"skipped":0,"restarts":0,"elapsed_s":1.5}
)";

template <class Messages>
void take_all(Messages& messages, std::string_view text) {
  for (const auto line : split(text, '\n')) {
    if (line.empty()) continue;
    if (const auto taken = messages.take(line); !taken) {
      test::check_message(taken.error());
      return;
    }
  }
}

}  // namespace

extern "C" const char* turnpoint_fuzz_corpus() { return "probe"; }

extern "C" void turnpoint_fuzz_seeds(std::vector<std::string>& seeds) {
  seeds.push_back(write_step_job(lenet_job()));
  seeds.push_back(write_probe_job(kernels_job()));
  seeds.emplace_back(kStepRecording);
  seeds.emplace_back(kKernelRecording);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto job = parse_step_job(text, "fuzz.json")) {
    const std::string written = write_step_job(*job);
    const auto again = parse_step_job(written, "again.json");
    if (!again || write_step_job(*again) != written || fingerprint(*again) != fingerprint(*job)) std::abort();
    if (!(proof_needs(*job->model, job->plan).seconds >= 0)) std::abort();
  } else {
    test::check_message(job.error(), "fuzz.json");
  }
  if (const auto job = parse_probe_job(text, "fuzz.json")) {
    if (!parse_probe_job(write_probe_job(*job), "again.json")) std::abort();
    for (const auto& op : job->operators)
      for (const auto& call : op.calls)
        if (!std::isfinite(call_elements(call)) || !std::isfinite(call_flop(call))) std::abort();
  } else {
    test::check_message(job.error(), "fuzz.json");
  }
  StepMessages step(lenet_job());
  take_all(step, text);
  for (const auto& phase : step.measurement().phases)
    if (!std::isfinite(phase.time.median_s)) std::abort();
  ProbeMessages kernels;
  take_all(kernels, text);
  for (const auto& item : kernels.items())
    if (item.not_measured.empty() && !(item.time_s > 0)) std::abort();
  return 0;
}
