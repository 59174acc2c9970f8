// SPDX-License-Identifier: Apache-2.0
// One step of a resharding as an expression of Python: the collective that the plan lists, or a slice.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/export/jax/python.h"
#include "core/model/model.h"

namespace turnpoint {
struct ReshardStep;
}

namespace turnpoint::jax {

/// `value`, in layout `before`, behind the step. Error: a step that no single collective of JAX carries out.
Expected<std::string> moved(const Mesh& mesh, const Tensor& tensor, const Layout& before, const ReshardStep& step,
                            const std::string& value);

}  // namespace turnpoint::jax
