// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/import/tensorflow/proto.h"

namespace turnpoint::tensorflow {

/// Decodes a TensorShapeProto; false if it is damaged or has more than 32 dimensions.
bool read_shape(std::span<const std::uint8_t> bytes, MaybeShape& out);
/// Decodes a TensorProto; false if it is damaged. Values are kept of at most kMaxKeptElements elements.
bool read_tensor(std::span<const std::uint8_t> bytes, TensorValue& out);
DataType data_type(std::int64_t number);
/// Product of the sizes; none if one is negative or the product is above 2^60.
std::optional<std::int64_t> element_count(const Shape& shape);

}  // namespace turnpoint::tensorflow
