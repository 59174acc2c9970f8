// SPDX-License-Identifier: Apache-2.0
// Programs of torch.export made by hand: the JSON of a graph, and the archive around it.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/import/torch/torch_source.h"

namespace turnpoint::test {

/// The nodes, tensors and signature of a program. Arguments are JSON as the file has it.
class TorchProgram {
 public:
  /// f32; a size that is no number is a symbol. Said again, the last holds.
  TorchProgram& tensor(const std::string& name, const std::vector<std::string>& sizes, int type = 7) {
    std::string list;
    for (const auto& size : sizes) {
      const bool number = size.find_first_not_of("-0123456789") == size.npos;
      list += (list.empty() ? "" : ", ") + (number ? R"({"as_int": )" + size + "}"
                                                   : R"({"as_expr": {"expr_str": "Symbol(')" + size +
                                                         R"x(', positive=True, integer=True)", "hint": null}})x");
    }
    add(tensors_, '"' + name + R"(": {"dtype": )" + std::to_string(type) + R"(, "sizes": [)" + list + "]}");
    return *this;
  }
  TorchProgram& parameter(const std::string& name, const std::string& path, const std::vector<std::string>& sizes) {
    add(specs_, R"({"parameter": {"arg": {"name": ")" + name + R"("}, "parameter_name": ")" + path + "\"}}");
    return tensor(name, sizes);
  }
  TorchProgram& buffer(const std::string& name, const std::string& path, const std::vector<std::string>& sizes) {
    add(specs_, R"({"buffer": {"arg": {"name": ")" + name + R"("}, "buffer_name": ")" + path + R"(", "persistent": true}})");
    return tensor(name, sizes);
  }
  TorchProgram& data(const std::string& name, const std::vector<std::string>& sizes, int type = 7) {
    add(specs_, R"({"user_input": {"arg": )" + of(name) + "}}");
    return tensor(name, sizes, type);
  }
  /// `arguments`: "name", JSON.
  TorchProgram& node(const std::string& target, const std::vector<std::pair<std::string, std::string>>& arguments,
                     const std::vector<std::string>& outputs, const std::string& module = "") {
    add(nodes_, made_node(target, arguments, outputs, module));
    return *this;
  }
  TorchProgram& number(const std::string& target, const std::vector<std::pair<std::string, std::string>>& arguments,
                       const std::string& output) {
    std::string text = made_node(target, arguments, {}, "");
    const std::string none = R"("outputs": [])";
    text.replace(text.find(none), none.size(), R"("outputs": [{"as_sym_int": {"as_name": ")" + output + "\"}}]");
    add(nodes_, text);
    return *this;
  }
  TorchProgram& result(const std::string& name) {
    add(results_, R"({"user_output": {"arg": )" + of(name) + "}}");
    return *this;
  }

  static std::string made_node(const std::string& target,
                               const std::vector<std::pair<std::string, std::string>>& arguments,
                               const std::vector<std::string>& outputs, const std::string& module) {
    std::string inputs, made;
    for (const auto& [name, json] : arguments)
      add(inputs, R"({"name": ")" + name + R"(", "arg": )" + json + R"(, "kind": 1})");
    for (const auto& output : outputs) add(made, of(output));
    const std::string stack = module.empty() ? "" : "L__self__,,Net;L__self___" + module + "," + module + ",Part";
    return R"({"target": "torch.ops.)" + target + R"(", "inputs": [)" + inputs + R"(], "outputs": [)" + made +
           R"(], "metadata": {"nn_module_stack": ")" + stack + R"("}, "name": ")" +
           (outputs.empty() ? target : outputs.front()) + "\"}";
  }
  static std::string of(const std::string& name) { return R"({"as_tensor": {"name": ")" + name + "\"}}"; }
  static std::string list(const std::vector<std::string>& names) {
    std::string made;
    for (const auto& name : names) add(made, R"({"name": ")" + name + "\"}");
    return R"({"as_tensors": [)" + made + "]}";
  }
  static std::string ints(const std::string& numbers) { return R"({"as_ints": [)" + numbers + "]}"; }
  static std::string whole(std::int64_t number) { return R"({"as_int": )" + std::to_string(number) + "}"; }
  static std::string symbol(const std::string& name) { return R"({"as_sym_int": {"as_name": ")" + name + "\"}}"; }

  std::string json() const {
    return R"({"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [)" + nodes_ + R"(], "tensor_values": {)" +
           tensors_ + R"(}}, "signature": {"input_specs": [)" + specs_ + R"(], "output_specs": [)" + results_ +
           R"(]}}, "schema_version": {"major": 8, "minor": 20}})";
  }

 private:
  static void add(std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; }
  std::string nodes_, tensors_, specs_, results_;
};

/// A ZIP archive of stored or deflated members; `wide` writes sizes and offsets in 64 bits, as PyTorch does.
class TorchArchive {
 public:
  explicit TorchArchive(bool wide = false) : wide_(wide) {}

  TorchArchive& add(const std::string& name, const std::string& text, bool deflated = false, std::int64_t claimed = -1) {
    const std::string packed = deflated ? deflate(text) : text;
    const std::uint64_t offset = bytes_.size(), size = claimed < 0 ? text.size() : std::uint64_t(claimed);
    number(bytes_, 0x04034b50, 4);
    number(bytes_, 45, 2), number(bytes_, 0, 2), number(bytes_, deflated ? 8 : 0, 2), number(bytes_, 0, 8);
    number(bytes_, packed.size(), 4), number(bytes_, size, 4), number(bytes_, name.size(), 2), number(bytes_, 0, 2);
    bytes_ += name + packed;
    std::string extra;
    if (wide_) {
      number(extra, 1, 2), number(extra, 24, 2);
      number(extra, size, 8), number(extra, packed.size(), 8), number(extra, offset, 8);
    }
    const std::uint64_t elsewhere = 0xffffffff;
    number(directory_, 0x02014b50, 4), number(directory_, 45, 2), number(directory_, 45, 2), number(directory_, 0, 2);
    number(directory_, deflated ? 8 : 0, 2), number(directory_, 0, 8);
    number(directory_, wide_ ? elsewhere : packed.size(), 4), number(directory_, wide_ ? elsewhere : size, 4);
    number(directory_, name.size(), 2), number(directory_, extra.size(), 2), number(directory_, 0, 10);
    number(directory_, wide_ ? elsewhere : offset, 4);
    directory_ += name + extra;
    ++count_;
    return *this;
  }

  std::string text() const {
    std::string made = bytes_ + directory_;
    const std::uint64_t at = bytes_.size(), end = made.size();
    if (wide_) {
      number(made, 0x06064b50, 4), number(made, 44, 8), number(made, 45, 2), number(made, 45, 2), number(made, 0, 8);
      number(made, count_, 8), number(made, count_, 8), number(made, directory_.size(), 8), number(made, at, 8);
      number(made, 0x07064b50, 4), number(made, 0, 4), number(made, end, 8), number(made, 1, 4);
    }
    number(made, 0x06054b50, 4), number(made, 0, 4), number(made, count_, 2), number(made, count_, 2);
    number(made, directory_.size(), 4), number(made, wide_ ? 0xffffffff : at, 4), number(made, 0, 2);
    return made;
  }

 private:
  static void number(std::string& out, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  }
  static std::string deflate(const std::string& text) {
    std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
    z_stream stream = {};
    deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  bool wide_;
  std::string bytes_, directory_;
  std::uint64_t count_ = 0;
};

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline Expected<ModelSourcePtr> opened_archive(const std::string& text) {
  return open_torch_program_bytes(bytes_of(text), "net.pt2");
}
inline Expected<ModelSourcePtr> opened_program(const TorchProgram& program) {
  return opened_archive(TorchArchive(true).add("net/models/model.json", program.json()).text());
}

}  // namespace turnpoint::test
