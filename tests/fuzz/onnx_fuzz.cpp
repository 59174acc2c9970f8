// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as ONNX and binding the model ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "core/import/onnx/onnx_source.h"
#include "fuzz/checks.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "onnx"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto source = turnpoint::open_onnx_bytes({data, size}, "fuzz.onnx");
  if (!source) {
    turnpoint::test::check_message(source.error());
    return 0;
  }
  turnpoint::test::check_bound(**source);
  return 0;
}
