// SPDX-License-Identifier: Apache-2.0
// Any bytes as a config.json and as a hardware profile: a model or a message, never a crash, never a hang.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/hardware/cluster.h"
#include "core/import/huggingface/huggingface.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "hf_config:hardware_profile"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto source = turnpoint::parse_huggingface_config(text, "fuzz.json");
  if (source) {
    // Two samples of eight tokens: large enough to walk every operator, small enough for thousands of runs a second.
    const auto model = (*source)->bind({2, 8});
    if (model && turnpoint::summarise(**model).parameters < 1) std::abort();
    if (!model && model.error().what.empty()) std::abort();
  } else if (source.error().message().find("fuzz.json") == std::string::npos) {
    std::abort();
  }
  const auto cluster = turnpoint::parse_hardware_profile(text, "fuzz.json");
  if (cluster) {
    const turnpoint::CollectiveModel times(**cluster, {});
    if (!(times.time(turnpoint::Collective::all_reduce, {2, 1, 2, 1}, 1e6).value >= 0)) std::abort();
    const auto again = turnpoint::parse_hardware_profile(turnpoint::write_hardware_profile(**cluster), "again.json");
    if (!again) std::abort();
  }
  return 0;
}
