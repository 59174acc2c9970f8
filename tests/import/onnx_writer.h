// SPDX-License-Identifier: Apache-2.0
// Writes ONNX files for tests, straight in the wire format.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace turnpoint::test {

/// One protocol buffer message under construction.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) { return tag(field, 0).varint(value); }
  Message& real(std::uint32_t field, float value) {
    tag(field, 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    tag(field, 2).varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.bytes_); }
  Message& raw(std::string_view bytes) { return bytes_.append(bytes), *this; }
  Message& tag(std::uint32_t field, std::uint32_t wire) { return varint(field << 3 | wire); }
  Message& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

enum : std::uint64_t { kFloat = 1, kInt64 = 7, kBool = 9, kDouble = 11 };

inline Message tensor(std::string_view name, std::vector<std::int64_t> dims, std::uint64_t type,
                      std::string_view raw = {}) {
  Message m;
  for (const auto dim : dims) m.number(1, static_cast<std::uint64_t>(dim));
  m.number(2, type).text(8, name);
  if (!raw.empty()) m.text(9, raw);
  return m;
}
inline Message integers(std::string_view name, const std::vector<std::int64_t>& values) {
  return tensor(name, {static_cast<std::int64_t>(values.size())}, kInt64,
                {reinterpret_cast<const char*>(values.data()), values.size() * 8});
}
inline Message number(std::string_view name, float value) {
  return tensor(name, {}, kFloat, {reinterpret_cast<const char*>(&value), 4});
}
inline Message integer(std::string_view name, std::int64_t value) {
  return tensor(name, {}, kInt64, {reinterpret_cast<const char*>(&value), 8});
}

inline Message attribute(std::string_view name, std::int64_t value) {
  return Message().text(1, name).number(3, static_cast<std::uint64_t>(value)).number(20, 2);
}
inline Message attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  Message m;
  m.text(1, name).number(20, 7);
  for (const auto value : values) m.number(8, static_cast<std::uint64_t>(value));
  return m;
}
inline Message attribute(std::string_view name, const std::string& value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
inline Message attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message tensor_attribute(std::string_view name, const Message& value) {
  return Message().text(1, name).message(5, value).number(20, 4);
}

/// A dimension is a size ("3"), a symbol ("batch") or unknown ("").
inline Message value(std::string_view name, const std::vector<std::string>& dims, std::uint64_t type = kFloat) {
  Message shape;
  for (const auto& dim : dims) {
    const bool size = !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos;
    shape.message(1, size ? Message().number(1, std::stoull(dim)) : dim.empty() ? Message() : Message().text(2, dim));
  }
  return Message().text(1, name).message(2, Message().message(1, Message().number(1, type).message(2, shape)));
}

class Model {
 public:
  explicit Model(std::uint64_t opset = 17) : opset_(opset) {}

  Model& input(std::string_view name, const std::vector<std::string>& dims, std::uint64_t type = kFloat) {
    return graph_.message(11, value(name, dims, type)), *this;
  }
  Model& output(std::string_view name) { return graph_.message(12, Message().text(1, name)), *this; }
  Model& declare(std::string_view name, const std::vector<std::string>& dims) {
    return graph_.message(13, value(name, dims)), *this;
  }
  Model& weight(std::string_view name, std::vector<std::int64_t> dims, std::uint64_t type = kFloat) {
    return initializer(tensor(name, std::move(dims), type));
  }
  Model& initializer(const Message& tensor_message) { return graph_.message(5, tensor_message), *this; }
  Model& node(std::string_view kind, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
              const std::vector<Message>& attributes = {}, std::string_view name = {}, std::string_view domain = {}) {
    return graph_.message(1, make_node(kind, inputs, outputs, attributes, name, domain)), *this;
  }
  static Message make_node(std::string_view kind, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                           std::string_view name = {}, std::string_view domain = {}) {
    Message m;
    for (const auto& in : inputs) m.text(1, in);
    for (const auto& out : outputs) m.text(2, out);
    if (!name.empty()) m.text(3, name);
    m.text(4, kind);
    for (const auto& a : attributes) m.message(5, a);
    if (!domain.empty()) m.text(7, domain);
    return m;
  }
  Model& function(const Message& f) { return extra_.message(25, f), *this; }
  Message& graph() { return graph_; }
  std::string bytes() const {
    return Message()
        .number(1, 8)
        .message(8, Message().text(1, "").number(2, opset_))
        .message(7, graph_)
        .raw(extra_.bytes())
        .bytes();
  }

 private:
  std::uint64_t opset_;
  Message graph_, extra_;
};

inline std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace turnpoint::test
