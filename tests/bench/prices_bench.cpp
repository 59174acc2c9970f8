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
  const std::filesystem::path folder = turnpoint::test::data_folder();
  if (folder.empty())
    std::printf("data folder absent (set TURNPOINT_DATA): measured groups not compared\n");
  else
    tensor_groups(folder);
  return missed > 0;
}
