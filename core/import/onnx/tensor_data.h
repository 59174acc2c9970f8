// SPDX-License-Identifier: Apache-2.0
// Element types and encodings of TensorProto.
#pragma once

#include "core/import/onnx/proto.h"

namespace turnpoint::onnx {

/// The type of a data_type code; none for strings, complex numbers and unknown codes.
std::optional<ElementType> element_type(std::int64_t code);
/// IEEE half and bfloat16 bit patterns, as int32_data holds them.
double from_half(std::uint16_t bits);
double from_bfloat(std::uint16_t bits);
/// Appends element `i` of raw_data (little-endian, as the machines we run on are). The caller has checked its size.
void append_raw(Constant& constant, std::span<const std::uint8_t> raw, std::int64_t code, std::size_t i);
/// TensorProto::samples of raw_data.
std::uint64_t sample_matrix(std::span<const std::uint8_t> raw, const std::vector<std::int64_t>& dims,
                            std::size_t element_bytes);

}  // namespace turnpoint::onnx
