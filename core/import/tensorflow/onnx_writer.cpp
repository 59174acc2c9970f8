// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/onnx_writer.h"

#include <cstring>

namespace turnpoint::tensorflow {

namespace {

void varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, std::uint32_t field, std::int64_t value) {
  varint(out, std::uint64_t{field} << 3);
  varint(out, static_cast<std::uint64_t>(value));
}
void put_bytes(std::string& out, std::uint32_t field, std::string_view value) {
  varint(out, std::uint64_t{field} << 3 | 2);
  varint(out, value.size());
  out += value;
}

/// TensorProto. Values of 16-bit floating-point constants are written as the 32-bit ones they equal.
std::string tensor_bytes(const TensorValue& tensor, std::string_view name) {
  std::string out;
  const bool half = tensor.type == DataType::f16 || tensor.type == DataType::bf16;
  const DataType type = tensor.known && half ? DataType::f32 : tensor.type;
  for (const auto size : tensor.shape) put_number(out, 1, size);
  put_number(out, 2, onnx_type(type));
  if (!name.empty()) put_bytes(out, 8, name);
  if (!tensor.known) return out;
  std::string data;
  if (type == DataType::f64) {
    data.assign(reinterpret_cast<const char*>(tensor.reals.data()), tensor.reals.size() * sizeof(double));
    put_bytes(out, 10, data);
  } else if (type == DataType::f32) {
    for (const double value : tensor.reals) {
      const auto narrow = static_cast<float>(value);
      data.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    }
    put_bytes(out, 4, data);
  } else {
    for (const auto value : tensor.integers) varint(data, static_cast<std::uint64_t>(value));
    put_bytes(out, type == DataType::i64 || type == DataType::u64 ? 7 : 5, data);
  }
  return out;
}

std::string value_info(const std::string& name, DataType type, const Shape& shape,
                       const std::vector<std::string>& symbols) {
  std::string dims, tensor, holder, out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::string dim;
    if (shape[d] >= 0)
      put_number(dim, 1, shape[d]);
    else if (d < symbols.size())
      put_bytes(dim, 2, symbols[d]);
    put_bytes(dims, 1, dim);
  }
  put_number(tensor, 1, onnx_type(type));
  put_bytes(tensor, 2, dims);
  put_bytes(holder, 1, tensor);
  put_bytes(out, 1, name);
  put_bytes(out, 2, holder);
  return out;
}

}  // namespace

std::int64_t onnx_type(DataType type) {
  switch (type) {
    case DataType::f32: return 1;
    case DataType::u8:
    case DataType::quint8: return 2;
    case DataType::i8:
    case DataType::qint8: return 3;
    case DataType::u16:
    case DataType::quint16: return 4;
    case DataType::i16:
    case DataType::qint16: return 5;
    case DataType::i32:
    case DataType::qint32: return 6;
    case DataType::i64: return 7;
    case DataType::boolean: return 9;
    case DataType::f16: return 10;
    case DataType::f64: return 11;
    case DataType::u32: return 12;
    case DataType::u64: return 13;
    case DataType::bf16: return 16;
    default: return 0;
  }
}

Attributes& Attributes::set(std::string_view key, std::int64_t value) {
  std::string out;
  put_bytes(out, 1, key);
  put_number(out, 3, value);
  put_number(out, 20, 2);
  put_bytes(bytes_, 5, out);
  return *this;
}
Attributes& Attributes::set(std::string_view key, const std::vector<std::int64_t>& values) {
  std::string out;
  put_bytes(out, 1, key);
  for (const auto value : values) put_number(out, 8, value);
  put_number(out, 20, 7);
  put_bytes(bytes_, 5, out);
  return *this;
}
Attributes& Attributes::text(std::string_view key, std::string_view value) {
  std::string out;
  put_bytes(out, 1, key);
  put_bytes(out, 4, value);
  put_number(out, 20, 3);
  put_bytes(bytes_, 5, out);
  return *this;
}
Attributes& Attributes::tensor(std::string_view key, const TensorValue& value) {
  std::string out;
  put_bytes(out, 1, key);
  put_bytes(out, 5, tensor_bytes(value, {}));
  put_number(out, 20, 4);
  put_bytes(bytes_, 5, out);
  return *this;
}

std::string OnnxWriter::unique(std::string name) {
  if (name.empty()) name = "value";
  auto& count = taken_[name];
  if (count++ == 0) return name;
  while (true) {
    auto candidate = name + "_" + std::to_string(count++);
    if (taken_.emplace(candidate, 1).second) return candidate;
  }
}

OnnxWriter::Node& OnnxWriter::node(Node node) {
  nodes_.push_back(std::move(node));
  for (const auto& output : nodes_.back().outputs) {
    if (!output.empty()) producers_[output] = &nodes_.back();
  }
  return nodes_.back();
}

OnnxWriter::Node* OnnxWriter::producer(const std::string& value) {
  const auto found = producers_.find(value);
  return found == producers_.end() ? nullptr : found->second;
}

void OnnxWriter::input(const std::string& name, DataType type, const Shape& shape,
                       const std::vector<std::string>& symbols) {
  put_bytes(rest_, 11, value_info(name, type, shape, symbols));
}
void OnnxWriter::declare(const std::string& name, DataType type, const Shape& shape) {
  put_bytes(rest_, 13, declared_[name] = value_info(name, type, shape, {}));
}
void OnnxWriter::output(const std::string& name) {
  std::string info;
  put_bytes(info, 1, name);
  const auto declared = declared_.find(name);  // an output says again what was declared, or it would be forgotten
  put_bytes(rest_, 12, declared == declared_.end() ? info : declared->second);
}
void OnnxWriter::initializer(const std::string& name, const TensorValue& tensor) {
  put_bytes(rest_, 5, tensor_bytes(tensor, name));
}

std::string OnnxWriter::bytes() const {
  std::string graph, opset, out;
  for (const auto& node : nodes_) {
    std::string message;
    for (const auto& input : node.inputs) put_bytes(message, 1, input);
    for (const auto& output : node.outputs) put_bytes(message, 2, output);
    put_bytes(message, 3, node.name);
    put_bytes(message, 4, node.kind);
    if (!node.domain.empty()) put_bytes(message, 7, node.domain);
    message += node.attributes.bytes();
    put_bytes(graph, 1, message);
  }
  graph += rest_;
  put_number(out, 1, 10);
  put_bytes(opset, 1, "");
  put_number(opset, 2, 18);
  put_bytes(out, 8, opset);
  put_bytes(out, 7, graph);
  return out;
}

}  // namespace turnpoint::tensorflow
