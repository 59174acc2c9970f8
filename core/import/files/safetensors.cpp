// SPDX-License-Identifier: Apache-2.0
#include "core/import/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/import/source/mapped_file.h"

namespace turnpoint {

namespace {

constexpr std::uint64_t kMaxHeader = std::uint64_t(64) << 20;
constexpr std::int64_t kMaxElements = std::int64_t(1) << 60;
constexpr std::size_t kMaxShards = 4096;

std::uint64_t header_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return length;
}

Expected<StoredTensor> read_entry(const std::string& name, const nlohmann::json& entry, const std::string& path) {
  const std::string where = path + ": tensor '" + name.substr(0, 120) + "'";
  StoredTensor tensor{name, {}, {}, 1};
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || entry["shape"].size() > 32)
    return bad_input("has no dtype and shape", where);
  tensor.dtype = entry["dtype"].get<std::string>().substr(0, 16);
  for (const auto& size : entry["shape"]) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < 0)
      return bad_input("has an impossible dimension", where);
    const auto value = size.get<std::int64_t>();
    if (value > 0 && tensor.elements > kMaxElements / value) return bad_input("has more than 2^60 elements", where);
    tensor.elements *= value;
    tensor.shape.push_back(value);
  }
  return tensor;
}

}  // namespace

bool is_safetensors(std::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  const auto length = header_length(bytes);
  return length >= 2 && length <= bytes.size() - 8;
}

Expected<std::vector<StoredTensor>> read_safetensors_header(std::string_view bytes, const std::string& path) {
  if (!is_safetensors(bytes)) return bad_input("its header is longer than the file: it is cut short", path);
  const auto length = header_length(bytes);
  if (length > kMaxHeader) return bad_input("its header is larger than 64 MiB", path);
  const auto header = parse_json(bytes.substr(8, length), path + ": header", 8);
  if (!header) return header.error();
  std::vector<StoredTensor> tensors;
  std::int64_t total = 0;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    auto tensor = read_entry(name, entry, path);
    if (!tensor) return tensor.error();
    total += tensor->elements;
    if (total > kMaxElements) return bad_input("holds more than 2^60 elements", path);
    tensors.push_back(std::move(*tensor));
  }
  if (tensors.empty()) return bad_input("holds no tensors", path);
  return tensors;
}

bool is_safetensors_index(std::string_view text) {
  if (text.size() > kMaxHeader || text.find("\"weight_map\"") == text.npos) return false;
  const auto document = parse_json(text, "", 8);
  return document && document->is_object() && document->contains("weight_map");
}

Expected<std::vector<StoredTensor>> read_safetensors_index(std::string_view text, const std::string& path) {
  const auto document = parse_json(text, path, 8);
  if (!document) return document.error();
  if (!document->is_object() || !document->contains("weight_map") || !(*document)["weight_map"].is_object())
    return bad_input("has no weight_map", path);
  std::set<std::string> shards, wanted;
  for (const auto& [name, file] : (*document)["weight_map"].items()) {
    if (!file.is_string()) return bad_input("tensor '" + name.substr(0, 120) + "' is in no file", path);
    shards.insert(file.get<std::string>());
    wanted.insert(name);
  }
  if (shards.size() > kMaxShards) return bad_input("names more than 4,096 files", path);
  std::vector<StoredTensor> all;
  std::int64_t total = 0;
  for (const auto& shard : shards) {
    // The files of an index lie beside it: a path of its own could name any file of the machine.
    if (shard.find('/') != shard.npos || shard == "..") return bad_input("names a file outside its folder", path);
    const auto file = (std::filesystem::path(path).parent_path() / shard).string();
    const auto mapped = onnx::MappedFile::open(file);
    if (!mapped) {
      Error error = mapped.error();
      error.hint = "the index beside it names this file; opening config.json needs none of them";
      return error;
    }
    auto part =
        read_safetensors_header({reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()}, file);
    if (!part) return part.error();
    for (auto& tensor : *part) {
      if (wanted.erase(tensor.name) == 0) continue;
      total += tensor.elements;
      if (total > kMaxElements) return bad_input("holds more than 2^60 elements", path);
      all.push_back(std::move(tensor));
    }
  }
  if (!wanted.empty())
    return bad_input("names the tensor '" + wanted.begin()->substr(0, 120) + "', which no file holds", path);
  return all;
}

StoredCount count_stored(const std::vector<StoredTensor>& tensors) {
  StoredCount count;
  for (const auto& tensor : tensors) {
    count.by_type[tensor.dtype] += tensor.elements;
    const std::string_view name = tensor.name;
    const auto ends = [&](std::initializer_list<const char*> endings) {
      return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return name.ends_with(end); });
    };
    const bool floating = tensor.dtype.starts_with("F") || tensor.dtype == "BF16";
    if (ends({"running_mean", "running_var"}))
      count.buffers += tensor.elements;
    else if (!floating)
      count.other += tensor.elements;
    else if (!ends(
                 {"inv_freq", "masked_bias", "num_batches_tracked", "weight_scale", "weight_scale_inv", "input_scale"}))
      count.parameters += tensor.elements;
  }
  return count;
}

}  // namespace turnpoint
