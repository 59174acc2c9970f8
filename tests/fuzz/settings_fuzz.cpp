// SPDX-License-Identifier: Apache-2.0
// Any bytes as settings of a training framework: a split or a message that names the file.
#include "core/import/files/training_settings.h"
#include "fuzz/checks.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "training_settings"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace turnpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)is_training_settings(text);
  const auto settings = parse_training_settings(text, "fuzz.yaml");
  if (!settings) {
    test::check_message(settings.error(), "fuzz.yaml");
    return 0;
  }
  for (const std::int64_t devices : {1, 8, 48, 4096}) {
    if (settings->batch_on(devices) < 0) std::abort();
    const auto split = settings->split_on(devices);
    if (!split) test::check_message(split.error());
    else if (split->empty()) std::abort();
  }
  return 0;
}
