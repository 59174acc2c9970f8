// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/tensor_data.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace turnpoint::onnx {

namespace {

template <class Number>
Number load(const std::uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::optional<ElementType> element_type(std::int64_t code) {
  switch (code) {
    case 1: return ElementType::f32;
    case 2: return ElementType::u8;
    case 3: return ElementType::i8;
    case 4:
    case 5: return ElementType::i16;
    case 6:
    case 12: return ElementType::i32;
    case 7:
    case 13: return ElementType::i64;
    case 9: return ElementType::boolean;
    case 10: return ElementType::f16;
    case 11: return ElementType::f64;
    case 16: return ElementType::bf16;
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22: return ElementType::i8;  // eight- and four-bit kinds
    default: return std::nullopt;
  }
}

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude =
      exponent == 0    ? std::ldexp(mantissa, -24)
      : exponent == 31 ? (mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
                       : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

void append_raw(Constant& constant, std::span<const std::uint8_t> raw, std::int64_t code, std::size_t i) {
  const auto* at = raw.data();
  switch (code) {
    case 1: constant.reals.push_back(load<float>(at + 4 * i)); break;
    case 10: constant.reals.push_back(from_half(load<std::uint16_t>(at + 2 * i))); break;
    case 11: constant.reals.push_back(load<double>(at + 8 * i)); break;
    case 16: constant.reals.push_back(from_bfloat(load<std::uint16_t>(at + 2 * i))); break;
    case 2:
    case 9: constant.integers.push_back(at[i]); break;
    case 3: constant.integers.push_back(static_cast<std::int8_t>(at[i])); break;
    case 4: constant.integers.push_back(load<std::uint16_t>(at + 2 * i)); break;
    case 5: constant.integers.push_back(load<std::int16_t>(at + 2 * i)); break;
    case 6: constant.integers.push_back(load<std::int32_t>(at + 4 * i)); break;
    case 12: constant.integers.push_back(load<std::uint32_t>(at + 4 * i)); break;
    case 7:
    case 13: constant.integers.push_back(load<std::int64_t>(at + 8 * i)); break;
    default: break;
  }
}

}  // namespace turnpoint::onnx
