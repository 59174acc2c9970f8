// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/wire_reader.h"

namespace turnpoint::onnx {

bool WireReader::read_varint(std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) return fail();
    const std::uint8_t byte = *at_++;
    if (shift < 63 || byte <= 1) value |= static_cast<std::uint64_t>(byte & 0x7f) << (shift & 63);
    if ((byte & 0x80) == 0) return true;
  }
  return fail();  // more than ten bytes
}

bool WireReader::next() {
  if (broken_ || at_ == end_) return false;
  std::uint64_t tag = 0;
  if (!read_varint(tag)) return false;
  if (tag >> 3 == 0 || tag >> 32 != 0) return fail();
  field_ = static_cast<std::uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  const auto left = static_cast<std::uint64_t>(end_ - at_);
  switch (type_) {
    case WireType::varint: return read_varint(number_);
    case WireType::fixed64:
    case WireType::fixed32: {
      const std::size_t size = type_ == WireType::fixed64 ? 8 : 4;
      if (left < size) return fail();
      bytes_ = {at_, size};
      at_ += size;
      return true;
    }
    case WireType::bytes: {
      std::uint64_t size = 0;
      if (!read_varint(size)) return false;
      if (size > static_cast<std::uint64_t>(end_ - at_)) return fail();
      bytes_ = {at_, static_cast<std::size_t>(size)};
      at_ += size;
      return true;
    }
    case WireType::group_begin:
    case WireType::group_end: break;  // never written by anything that writes ONNX
  }
  return fail();
}

float WireReader::fixed32() const {
  float value = 0;
  if (type_ == WireType::fixed32) std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

double WireReader::fixed64() const {
  double value = 0;
  if (type_ == WireType::fixed64) std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

}  // namespace turnpoint::onnx
