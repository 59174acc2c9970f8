// SPDX-License-Identifier: Apache-2.0
// Computes small constant sub-graphs (shapes, axes, scales) exactly as ONNX defines them.
#pragma once

#include "core/import/onnx/graph.h"

namespace turnpoint::onnx {

/// The result of `node` for known `inputs` (null: absent or unknown), or nothing if the kind is not evaluated here, an
/// input it needs is unknown, or the result would be large. `shape0`: shape of the first input, for Shape and Size.
/// CastLike needs no elements of its second input: evaluate_cast_like().
ConstantPtr evaluate(const Node& node, const std::vector<ConstantPtr>& inputs, const std::vector<std::int64_t>* shape0,
                     std::int64_t opset);

/// `value` with the element type of something else; nothing where a number does not fit it.
ConstantPtr evaluate_cast_like(const Constant& value, ElementType type);

/// NumPy's broadcast of two shapes; nothing if they do not fit.
std::optional<std::vector<std::int64_t>> broadcast(const std::vector<std::int64_t>& a,
                                                   const std::vector<std::int64_t>& b);

}  // namespace turnpoint::onnx
