// SPDX-License-Identifier: Apache-2.0
// Reads the protocol buffer wire format (varint, fixed and length-delimited fields) of a message that lies in memory.
// Nothing is copied and nothing outside the message is ever touched: every length is checked against what is left.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace turnpoint::onnx {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, group_begin = 3, group_end = 4, fixed32 = 5 };

class WireReader {
 public:
  explicit WireReader(std::span<const std::uint8_t> message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  /// Moves to the next field; false at the end of the message or when it is broken (see `broken`).
  bool next();
  std::uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  bool broken() const { return broken_; }

  /// Value of the field found by next(). Asked for in another form than it was written in, a field is empty or 0.
  std::uint64_t varint() const { return type_ == WireType::varint ? number_ : 0; }
  std::int64_t integer() const { return static_cast<std::int64_t>(varint()); }
  float fixed32() const;
  double fixed64() const;
  std::span<const std::uint8_t> bytes() const {
    return type_ == WireType::bytes ? bytes_ : std::span<const std::uint8_t>();
  }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

  /// Calls `use` for every element of a repeated varint field, packed or not; false if the packed form is broken.
  template <class Use>
  bool for_each_varint(Use&& use) const {
    if (type_ == WireType::varint) return use(integer()), true;
    WireReader inner(bytes());
    std::uint64_t value = 0;
    while (inner.at_ != inner.end_) {
      if (!inner.read_varint(value)) return false;
      use(static_cast<std::int64_t>(value));
    }
    return true;
  }
  /// The same for `float` (fixed32) and `double` (fixed64) fields.
  template <class Number, class Use>
  bool for_each_fixed(Use&& use) const {
    if (type_ == WireType::bytes) {
      for (std::size_t i = 0; i + sizeof(Number) <= bytes_.size(); i += sizeof(Number)) {
        Number value;
        std::memcpy(&value, bytes_.data() + i, sizeof(Number));
        use(value);
      }
      return bytes_.size() % sizeof(Number) == 0;
    }
    use(sizeof(Number) == 4 ? static_cast<Number>(fixed32()) : static_cast<Number>(fixed64()));
    return true;
  }

 private:
  bool read_varint(std::uint64_t& value);
  bool fail() { return broken_ = true, at_ = end_, false; }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::varint;
  std::uint64_t number_ = 0;
  std::span<const std::uint8_t> bytes_;
  bool broken_ = false;
};

}  // namespace turnpoint::onnx
