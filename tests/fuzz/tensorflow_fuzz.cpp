// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes are: reading them as a TensorFlow graph and binding the model ends with a model or one message.
#include <cstdint>
#include <cstdlib>

#include "core/import/tensorflow/tensorflow_source.h"
#include "fuzz/checks.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "tf"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto counts = turnpoint::count_tensorflow({data, size}, "fuzz.pb");
  const auto source = turnpoint::open_tensorflow_bytes({data, size}, "fuzz.pb");
  if (!source) {
    turnpoint::test::check_message(source.error());
    return 0;
  }
  if (!counts || counts->nodes == 0) std::abort();  // what opens can be counted
  turnpoint::test::check_bound(**source);
  return 0;
}
