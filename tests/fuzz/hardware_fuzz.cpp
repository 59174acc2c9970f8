// SPDX-License-Identifier: Apache-2.0
// Any bytes as a measured hardware log of any kind, under the names that make the readers look: a log whose every
// number is usable, or a message that names the file; what was read makes a profile that can be read again.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/hardware/collective_model.h"
#include "core/hardware/measured/profile_builder.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "hardware:hardware_profile"; }

namespace {

using namespace turnpoint;

void check(const MeasuredLog& log) {
  if (log.curves.empty() && log.figures.empty() && log.operators.empty() && !log.topology) std::abort();
  for (const auto& curve : log.curves) {
    double last = 0;
    for (const auto& point : curve.points) {
      if (!(point.bytes > last) || !(point.time_s > 0) || !std::isfinite(point.time_s) || !std::isfinite(point.bytes))
        std::abort();
      last = point.bytes;
    }
  }
  for (const auto& figure : log.figures)
    if (!(figure.value > 0) || !std::isfinite(figure.value)) std::abort();
  for (const auto& op : log.operators)
    if (!(op.time_s > 0) || !std::isfinite(op.time_s)) std::abort();
  if (log.problems.size() > kMaximumProblems) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ClusterPtr base = *cluster_preset("v100-16gb-2x8");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* name :
       {"fuzz_prim_all_gather_4gpus_mbs1_tp1_2nodes_8gpus_per_node", "p2p_intra_node", "intra_4.json"}) {
    const auto log = parse_measured_log(text, name);
    if (!log) {
      if (log.error().message().find(name) == std::string::npos) std::abort();
      continue;
    }
    check(*log);
    std::vector<std::string> notes;
    const auto cluster = build_profile({*log}, base, notes);
    if (!cluster) std::abort();
    if (size < 20000 && !parse_hardware_profile(write_hardware_profile(**cluster), "again.json")) std::abort();
    if (!(CollectiveModel(**cluster, {}).time(Collective::all_reduce, {8, 1, 8, 1}, 1e6).value > 0)) std::abort();
    for (const auto& item : coverage(**cluster))
      if (item.name.empty()) std::abort();
  }
  return 0;
}
