// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as an archive of torch.export, or as the program inside one, and binding the model
// ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "tests/import/torch_archive.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "torch_program"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace turnpoint;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bool archive = text.starts_with("PK");
  if (archive) (void)is_torch_program({data, size});
  const auto source =
      test::opened_archive(archive ? text : test::TorchArchive(true).add("n/models/model.json", text).text());
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
    for (const auto& op : (*model)->operators)
      for (const auto* accesses : {&op.inputs, &op.outputs})
        for (const auto& access : *accesses) {
          if (access.walks.size() != (*model)->tensors[access.tensor].shape.size()) std::abort();
          for (const auto& walk : access.walks)
            for (const auto loop : walk)
              if (loop >= op.dims.size()) std::abort();
        }
    if (summarise(**model).parameters < 0) std::abort();
  }
  return 0;
}
