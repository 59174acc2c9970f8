// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/tensor_value.h"

#include <cstring>

#include "core/import/onnx/tensor_data.h"
#include "core/import/onnx/wire_reader.h"

namespace turnpoint::tensorflow {

using onnx::WireReader;
using onnx::WireType;
using Bytes = std::span<const std::uint8_t>;

namespace {

/// Bytes of one element in tensor_content; 0: a type whose values are never needed.
std::size_t width(DataType type) {
  switch (type) {
    case DataType::f64:
    case DataType::i64:
    case DataType::u64: return 8;
    case DataType::f32:
    case DataType::i32:
    case DataType::u32:
    case DataType::qint32: return 4;
    case DataType::i16:
    case DataType::u16:
    case DataType::f16:
    case DataType::bf16:
    case DataType::qint16:
    case DataType::quint16: return 2;
    case DataType::u8:
    case DataType::i8:
    case DataType::boolean:
    case DataType::qint8:
    case DataType::quint8: return 1;
    default: return 0;
  }
}

template <class Number>
Number load(const std::uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void append_content(TensorValue& out, const std::uint8_t* at) {
  switch (out.type) {
    case DataType::f32: out.reals.push_back(load<float>(at)); break;
    case DataType::f64: out.reals.push_back(load<double>(at)); break;
    case DataType::f16: out.reals.push_back(onnx::from_half(load<std::uint16_t>(at))); break;
    case DataType::bf16: out.reals.push_back(onnx::from_bfloat(load<std::uint16_t>(at))); break;
    case DataType::i64:
    case DataType::u64: out.integers.push_back(load<std::int64_t>(at)); break;
    case DataType::i32:
    case DataType::qint32: out.integers.push_back(load<std::int32_t>(at)); break;
    case DataType::u32: out.integers.push_back(load<std::uint32_t>(at)); break;
    case DataType::i16:
    case DataType::qint16: out.integers.push_back(load<std::int16_t>(at)); break;
    case DataType::u16:
    case DataType::quint16: out.integers.push_back(load<std::uint16_t>(at)); break;
    case DataType::i8:
    case DataType::qint8: out.integers.push_back(load<std::int8_t>(at)); break;
    default: out.integers.push_back(*at); break;
  }
}

/// Fewer values than elements: the last one stands for the rest, none at all means zeros.
template <class Number>
void repeat_last(std::vector<Number>& values, std::size_t count) {
  if (values.size() > count) values.resize(count);
  const Number last = values.empty() ? Number{} : values.back();
  values.resize(count, last);
}

void complete(TensorValue& out, Bytes content, bool cut) {
  const auto count = element_count(out.shape);
  const std::size_t size = width(out.type);
  if (cut || !count || *count > kMaxKeptElements || size == 0) {
    out.integers.clear();
    out.reals.clear();
    return;
  }
  const auto elements = static_cast<std::size_t>(*count);
  if (!content.empty()) {
    out.integers.clear();
    out.reals.clear();
    if (content.size() != elements * size) return;
    for (std::size_t i = 0; i < elements; ++i) append_content(out, content.data() + i * size);
  } else if (is_floating(out.type)) {
    repeat_last(out.reals, elements);
    out.integers.clear();
  } else {
    repeat_last(out.integers, elements);
    out.reals.clear();
  }
  out.known = true;
}

}  // namespace

bool is_floating(DataType type) {
  return type == DataType::f32 || type == DataType::f64 || type == DataType::f16 || type == DataType::bf16;
}

DataType data_type(std::int64_t number) {
  if (number > 100) number -= 100;
  return number >= 0 && number <= 23 ? static_cast<DataType>(number) : DataType::invalid;
}

std::optional<std::int64_t> element_count(const Shape& shape) {
  std::int64_t total = 1;
  for (const auto size : shape) {
    if (size < 0 || (size > 0 && total > (std::int64_t{1} << 60) / size)) return std::nullopt;
    total *= size;
  }
  return total;
}

bool read_shape(Bytes bytes, MaybeShape& out) {
  out.emplace();
  WireReader reader(bytes);
  bool unknown = false, valid = true;
  while (reader.next()) {
    if (reader.field() == 3) unknown = reader.varint() != 0;
    if (reader.field() != 2) continue;
    if (out->size() >= 32) return false;
    std::int64_t size = 0;  // proto3 does not write zeros
    WireReader dimension(reader.bytes());
    while (dimension.next()) {
      if (dimension.field() == 1) size = dimension.integer();
    }
    valid = valid && !dimension.broken();
    out->push_back(size < 0 ? -1 : size);
  }
  if (unknown) out.reset();
  return valid && !reader.broken();
}

bool read_tensor(Bytes bytes, TensorValue& out) {
  constexpr auto kMost = static_cast<std::size_t>(kMaxKeptElements);
  Bytes content;
  bool valid = true, cut = false;
  const auto integer = [&](std::int64_t value) {
    if (out.integers.size() < kMost) out.integers.push_back(value);
  };
  const auto real = [&](double value) {
    if (out.reals.size() < kMost) out.reals.push_back(value);
  };
  WireReader reader(bytes);
  while (reader.next()) {
    const bool small = reader.type() != WireType::bytes || reader.bytes().size() <= 10 * kMost;
    switch (reader.field()) {
      case 1: out.type = data_type(reader.integer()); break;
      case 2: {
        MaybeShape shape;
        valid = valid && read_shape(reader.bytes(), shape);
        if (shape) out.shape = *shape;
        break;
      }
      case 4: content = reader.bytes(); break;
      case 5:
        if (small)
          valid = reader.for_each_fixed<float>(real) && valid;
        else
          cut = true;
        break;
      case 6:
        if (small)
          valid = reader.for_each_fixed<double>(real) && valid;
        else
          cut = true;
        break;
      case 7:
      case 10:
      case 11:
      case 16:
      case 17:
        if (small)
          valid = reader.for_each_varint(integer) && valid;
        else
          cut = true;
        break;
      case 13:
        if (!small) cut = true;
        valid = !small || reader.for_each_varint([&](std::int64_t bits) {
          const auto half = static_cast<std::uint16_t>(bits);
          real(out.type == DataType::bf16 ? onnx::from_bfloat(half) : onnx::from_half(half));
        });
        break;
      default: break;
    }
  }
  complete(out, content, cut);
  return valid && !reader.broken();
}

}  // namespace turnpoint::tensorflow
