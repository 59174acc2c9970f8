// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/options.h"

namespace turnpoint::step {

int element_bytes(const Tensor& tensor, const StepOptions& options) {
  return is_floating(tensor.type) ? options.floating_bytes : size_of(tensor.type);
}

}  // namespace turnpoint::step
