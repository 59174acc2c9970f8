// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/tensor_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

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

std::uint64_t sample_matrix(std::span<const std::uint8_t> raw, const std::vector<std::int64_t>& dims,
                            std::size_t element_bytes) {
  if (dims.size() != 2 || dims[0] < 2 || dims[1] < 2 || dims[0] == dims[1] || element_bytes < 2) return 0;
  const auto rows = static_cast<std::uint64_t>(dims[0]), columns = static_cast<std::uint64_t>(dims[1]);
  if (rows > raw.size() || columns > raw.size() || raw.size() != rows * columns * element_bytes) return 0;
  const std::uint64_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
  constexpr std::uint64_t kSamples = 64, kPrime = 1099511628211ULL;
  std::uint64_t hash = 14695981039346656037ULL, state = longer * 31 + shorter;
  std::set<std::uint64_t> different;
  for (std::uint64_t k = 0; k < kSamples; ++k) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t far = (state >> 33) % longer, near = (state >> 13) % shorter;
    const std::uint64_t at = rows > columns ? far * columns + near : near * columns + far;
    std::uint64_t bits = 0;
    std::memcpy(&bits, raw.data() + at * element_bytes, std::min<std::size_t>(element_bytes, sizeof bits));
    different.insert(bits);
    hash = (hash ^ bits) * kPrime;
  }
  // Matrices of a few numbers (zeros, identities, masks) resemble each other without being tied.
  return different.size() < 8 ? 0 : hash | 1;
}

}  // namespace turnpoint::onnx
