// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as ONNX and binding the model ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "core/import/onnx/onnx_source.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "onnx"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto source = turnpoint::open_onnx_bytes({data, size}, "fuzz.onnx");
  if (!source) {
    if (source.error().message().empty()) std::abort();
    return 0;
  }
  for (const std::int64_t batch : {1, 12}) {
    const auto model = (*source)->bind({batch, 16});
    if (!model) {
      if (model.error().message().empty()) std::abort();
      continue;
    }
    // What a model promises its users: consistent walks and counts.
    for (const auto& op : (*model)->operators) {
      for (const auto* accesses : {&op.inputs, &op.outputs}) {
        for (const auto& access : *accesses) {
          const auto& tensor = (*model)->tensors[access.tensor];
          if (access.walks.size() != tensor.shape.size() || tensor.dims.size() != tensor.shape.size()) std::abort();
          for (const auto& walk : access.walks) {
            for (const auto loop : walk) {
              if (loop >= op.dims.size()) std::abort();
            }
          }
        }
      }
    }
    if (turnpoint::summarise(**model).parameters < 0) std::abort();
  }
  return 0;
}
