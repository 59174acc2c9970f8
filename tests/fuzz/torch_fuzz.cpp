// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as an archive of torch.export, or as the program inside one, and binding the model
// ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "fuzz/checks.h"
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
    test::check_message(source.error());
    return 0;
  }
  test::check_bound(**source);
  return 0;
}
