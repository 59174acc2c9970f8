// SPDX-License-Identifier: Apache-2.0
// What collectives cost as rings, every operator's by itself (`--collectives rings`), and as the hardware's library and
// training engines make them: the network's time of training runs, weak scaling, and groups whose times were measured.
//   TURNPOINT_DATA=... build/bench/prices_bench
// Exit 1 where a bar is missed.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "core/cost/collectives.h"
#include "core/cost/resharding.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

int missed = 0;
constexpr double kMiB = 1048576;

struct Run {
  const char* title;
  const char* model;
  const char* hardware;
  std::int64_t batch;
  Optimizer optimizer;
  const char* method;
  double most_network_s;  ///< the bar
};

ResultPtr result_of(const Run& run, Collectives collectives) {
  Settings settings;
  settings.batch = run.batch;
  settings.precision = Precision::bf16;
  settings.optimizer = run.optimizer;
  settings.collectives = collectives;
  const auto source = open_model(run.model);
  const auto hardware = cluster_preset(run.hardware);
  if (!source || !hardware) return nullptr;
  const auto model = (*source)->bind({settings.batch, 0});
  if (!model) return nullptr;
  const auto scenario = make_scenario(*model, *hardware, (*hardware)->name, settings);
  if (!scenario) return nullptr;
  const auto searcher = make_searcher(**find_method(run.method));
  if (!searcher) return nullptr;
  const auto result = (*searcher)->run(*scenario, SearchPass::exact, {});
  return result ? *result : nullptr;
}

void judge(bool good, const std::string& bar) {
  std::printf("   bar %s%s\n", bar.c_str(), good ? "" : ": MISSED");
  missed += !good;
}

void network(const Run& run) {
  const ResultPtr before = result_of(run, Collectives::rings), now = result_of(run, Collectives::library);
  if (!before || !now) return void(++missed);
  const auto& point = now->points.back();
  std::printf("%-52s compute %7.1f ms, network: rings %8.1f ms, library %7.2f ms", run.title, point.compute_s * 1e3,
              before->points.back().network_s * 1e3, point.network_s * 1e3);
  judge(point.network_s <= run.most_network_s, fmt::format("{:g} ms", run.most_network_s * 1e3));
}

void weak_scaling(const char* title, const char* model, const char* device, double bar_1024, double bar_4096) {
  double least[2] = {0, 0};
  for (const int nodes : {1, 8, 128, 512}) {
    const std::string hardware = fmt::format("{}-{}x8", device, nodes);
    Run run{title, model, hardware.c_str(), nodes * 8, Optimizer::adam, "data-parallel", 0};
    double times[2];
    for (const Collectives how : {Collectives::rings, Collectives::library}) {
      const ResultPtr result = result_of(run, how);
      if (!result) return void(++missed);
      double& first = least[how == Collectives::library];
      const double time = result->points.back().time_s;
      if (nodes == 1) first = time;
      times[how == Collectives::library] = time / first;
    }
    std::printf("%-52s %5d devices: rings %7.2f times, library %5.2f times", title, nodes * 8, times[0], times[1]);
    if (nodes >= 128)
      judge(times[1] < (nodes == 128 ? bar_1024 : bar_4096),
            fmt::format("{:g} times", nodes == 128 ? bar_1024 : bar_4096));
    else
      std::printf("\n");
  }
}

/// Messages by collective: every step is a part of one.
void messages(const Run& run) {
  const ResultPtr result = result_of(run, Collectives::library);
  if (!result) return void(++missed);
  std::map<std::string, double> counts;
  for (const auto& op : result->plans->sharding(0).operators)
    for (const auto& group : op.parameters)
      for (const ParameterRole role : kParameterRoles)
        for (const ReshardStep& step : group.steps(role))
          if (step.bytes > 0)
            counts[to_string(step.move)] += step.message_bytes > 0 ? step.bytes / step.message_bytes : 1;
  std::printf("%-52s", run.title);
  for (const auto& [collective, count] : counts) std::printf(" %s %.2f", collective.c_str(), count);
  std::printf("\n");
}

void tensor_groups(const std::filesystem::path& folder) {
  const auto report =
      read_hardware_files({folder / "hardware/nccl-tests/a100x8_nccl_allreduce.log"}, *cluster_preset("a100-40gb-1x8"));
  if (!report || !report->cluster) return void(++missed);
  const Cluster& cluster = *report->cluster;
  const Mesh mesh = make_mesh(cluster);
  Layout partial;
  for (int a = 0; a < mesh.count(); ++a) partial.axis[static_cast<std::size_t>(a)] = Layout::kPartial;
  for (const auto& [mib, measured] : {std::pair(8, 162e-6), std::pair(128, 1162e-6)}) {
    const auto time = [&](CollectiveModel::Pricing pricing) {
      const ReshardingModel resharding(mesh, CollectiveModel(cluster, {}, pricing), 1);
      return resharding.path({mib * 256, 1024}, 4, partial, Layout()).time_s;
    };
    const double library = time(CollectiveModel::Pricing::library);
    std::printf("all-reduce of %3d MiB, 8 measured A100 %14s rings between measurements %6.0f us, now %6.0f us", mib,
                "", time(CollectiveModel::Pricing::rings) * 1e6, library * 1e6);
    judge(std::abs(library / measured - 1) < 0.01, fmt::format("{:.0f} us, measured", measured * 1e6));
  }
}

/// Measured collectives of one node beside what a preset says of them, from 2 MiB on. `host_s`: what launching took in
/// any size, which steps of training do not wait for. `link`: bytes a second that the log's largest size reached, where
/// that is not the preset's; 0: the preset's. The bars keep what was reached.
void measured_beside(const char* title, const char* preset, const std::vector<CollectiveSample>& samples, double host_s,
                     double bar, double link = 0) {
  Cluster cluster = **cluster_preset(preset);
  if (link > 0) cluster.links[kIntraNode].bandwidth = link;
  const CollectiveModel model(cluster, {});
  double sum = 0, largest = 0;
  int count = 0;
  for (const CollectiveSample& sample : samples) {
    if (sample.bytes < 2 * kMiB || sample.time_s > 1) continue;
    const double off = model.time(sample.kind, sample.group, sample.bytes).value / (sample.time_s - host_s) - 1;
    sum += std::abs(off), ++count;
    if (std::abs(off) > std::abs(largest)) largest = off;
  }
  if (count == 0) return void(++missed);
  std::printf("%-52s %3d sizes from 2 MiB: mean error %4.1f %%, largest %+5.1f %%", title, count, 100 * sum / count,
              100 * largest);
  judge(sum / count < bar, fmt::format("{:.0f} %", 100 * bar));
}

std::vector<CollectiveSample> samples_of(const std::vector<std::string>& logs, const char* preset, Collective kind,
                                         int devices) {
  std::vector<CollectiveSample> samples;
  if (const auto report = read_hardware_files(logs, *cluster_preset(preset)); report && report->cluster)
    for (const CollectiveSample& sample : report->cluster->collectives)
      if (sample.kind == kind && sample.group.size == devices && sample.group.nodes == 1) samples.push_back(sample);
  if (samples.empty()) ++missed;
  return samples;
}

/// What was published of single nodes: all-reduces of eight H200s and B200s (network notes of stas00/ml-engineering),
/// and the lines that SimuMax fitted to what it measured on eight B200s (MooreThreads/SimuMax, configs/system).
void published_nodes() {
  constexpr DeviceGroup eight{8, 1, 8, 1};
  constexpr double kH200[] = {0.82, 1.67, 3.27, 6.71, 13.7, 22.8, 36.9, 61.2, 88.9, 126,
                              158,  198,  230,  249,  257,  265,  268,  270,  273,  276};  // GB/s, from 32 KiB on
  std::vector<CollectiveSample> h200, b200;
  double bytes = 32768;
  for (const double rate : kH200) {
    h200.push_back({Collective::all_reduce, eight, bytes, bytes / (rate * 1e9), 0, 0});
    bytes *= 2;
  }
  for (const auto& [mib, bus] : {std::pair(16., 255.), {256., 646.}, {4096., 741.}})
    b200.push_back({Collective::all_reduce, eight, mib * kMiB, 1.75 * mib * kMiB / (bus * 1e9), 0, 0});
  measured_beside("all-reduce of 8 H200 (NVLS's ramp follows from it)", "h200-141gb-1x8", h200, 24e-6, 0.10);
  measured_beside("all-reduce of 8 B200", "b200-180gb-1x8", b200, 24e-6, 0.15);
  struct Line {
    Collective kind;
    double fixed_s, hop_s, bandwidth;
  };
  for (const Line& line : {Line{Collective::all_gather, 23.1e-6, 9.18e-6, 606e9},
                           Line{Collective::reduce_scatter, 25.6e-6, 8.03e-6, 606e9}}) {
    std::vector<CollectiveSample> samples;
    for (const int g : {2, 4, 8})
      for (double size = 2 * kMiB; size <= 1024 * kMiB; size *= 2)
        samples.push_back({line.kind,
                           {g, 1, g, 1},
                           size,
                           line.fixed_s + line.hop_s * (g - 1) + size * (g - 1) / g / line.bandwidth,
                           0,
                           0});
    measured_beside(line.kind == Collective::all_gather ? "all-gather of 2, 4, 8 B200, SimuMax's line"
                                                        : "reduce-scatter of 2, 4, 8 B200, SimuMax's line",
                    "b200-180gb-1x8", samples, 0, 0.20);
  }
}

void measured_nodes(const std::filesystem::path& folder) {
  const auto a100 = [&](const char* log) { return (folder / "hardware/nccl-tests" / log).string(); };
  measured_beside("all-gather of 8 A100 (gathers' ramp follows from it)", "a100-40gb-1x8",
                  samples_of({a100("a100x8_nccl_allgather.log")}, "a100-40gb-1x8", Collective::all_gather, 8), 23e-6,
                  0.10);
  measured_beside("all-reduce of 8 A100", "a100-40gb-1x8",
                  samples_of({a100("a100x8_nccl_allreduce.log")}, "a100-40gb-1x8", Collective::all_reduce, 8), 23e-6,
                  0.10);
  // These scatters pass 61 GB/s where all-reduces of the same study pass 130: of lists of tensors, which are copied.
  const std::string v100 = (folder / "hardware/aceso_v100/prim_gpt_1_3B_reduce_scatter_8gpus.csv").string();
  measured_beside("reduce-scatter of 8 V100, link of its largest size", "v100-16gb-1x8",
                  samples_of({v100}, "v100-16gb-1x8", Collective::reduce_scatter, 8), 0, 0.30, 61.2e9);
}

}  // namespace

int main() {
  network({"GPT-2, bf16, 64 H100, data parallel", "builtin:gpt2", "h100-80gb-8x8", 512, Optimizer::adam,
           "data-parallel", 4e-3});
  network({"ResNet-50, bf16, 2,048 TPU v3 (512 boards)", "builtin:resnet50", "tpu-v3-256x2", 32768, Optimizer::lars,
           "data-parallel", 5e-3});
  weak_scaling("Llama-2-7B, bf16, one sample a device, H100", "builtin:llama-2-7b", "h100-80gb", 1.5, 2);
  weak_scaling("GPT-2 medium, bf16, one sample a device, A100", "builtin:gpt2?layers=24&hidden=1024", "a100-80gb", 1.5,
               2);
  messages({"messages of fsdp, GPT-2 with two layers", "builtin:gpt2?layers=2", "h100-80gb-1x8", 64, Optimizer::adam,
            "fsdp", 0});
  published_nodes();
  const std::filesystem::path folder = turnpoint::test::data_folder();
  if (folder.empty())
    std::printf("data folder absent (set TURNPOINT_DATA): measured groups not compared\n");
  else
    tensor_groups(folder), measured_nodes(folder);
  return missed > 0;
}
