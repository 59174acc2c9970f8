// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as a TensorFlow graph and binding the model ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "core/import/tensorflow/tensorflow_source.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "tf"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto counts = turnpoint::count_tensorflow({data, size}, "fuzz.pb");
  const auto source = turnpoint::open_tensorflow_bytes({data, size}, "fuzz.pb");
  if (!source) {
    if (source.error().message().empty()) std::abort();
    return 0;
  }
  if (!counts || counts->nodes == 0) std::abort();  // what opens can be counted
  for (const std::int64_t batch : {1, 12}) {
    const auto model = (*source)->bind({batch, 16});
    if (!model) {
      if (model.error().message().empty()) std::abort();
      continue;
    }
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
