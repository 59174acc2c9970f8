// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "core/import/files/foreign_file.h"
#include "core/import/files/safetensors.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/mapped_file.h"
#include "core/import/source/model_source.h"
#include "core/import/task_graph.h"
#include "core/import/tensorflow/tensorflow_source.h"
#include "core/import/torch/torch_source.h"

namespace turnpoint {

namespace {

namespace fs = std::filesystem;

/// The model in a folder: its config.json, else its SavedModel, else its only .onnx file.
Expected<std::string> file_in_folder(const std::string& folder) {
  std::error_code ec;
  if (fs::is_regular_file(fs::path(folder) / "config.json", ec)) return (fs::path(folder) / "config.json").string();
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"})
    if (fs::is_regular_file(fs::path(folder) / name, ec)) return (fs::path(folder) / name).string();
  std::vector<std::string> models;
  for (fs::directory_iterator it(folder, ec), last; !ec && it != last; it.increment(ec))
    if (it->path().extension() == ".onnx") models.push_back(it->path().string());
  if (ec) return bad_input("cannot be read: " + ec.message(), folder);
  if (models.empty())
    return bad_input("the folder holds neither a config.json nor a saved_model.pb nor an .onnx file", folder);
  if (models.size() > 1)
    return bad_input("the folder holds " + std::to_string(models.size()) + " .onnx files; name one of them", folder);
  return models.front();
}

enum class Kind { json, tasks, tensorflow, onnx, torch, stored, text, empty };

/// Tells JSON from protobuf by the first bytes: an ONNX file begins with field 1 (ir_version, 0x08) or another small
/// field key, never with '{' and white space before it. TensorFlow's graphs are told by the fields at their top, and
/// first: a node of 91 bytes begins like a JSON list.
Expected<Kind> sniff(const std::string& path) {
  std::error_code ec;
  if (fs::is_regular_file(path, ec) && fs::file_size(path, ec) == 0 && !ec) return Kind::empty;
  const auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  const std::string_view whole(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  constexpr std::size_t kLooked = 512;
  std::string_view head = whole.substr(0, kLooked);
  if (is_safetensors(whole) || is_safetensors_index(whole)) return Kind::stored;
  if (is_torch_program(file->bytes())) return Kind::torch;
  if (const auto foreign = foreign_kind(whole)) return foreign_error(*foreign, path);
  if (is_tensorflow(file->bytes())) return Kind::tensorflow;
  if (is_task_graph(whole)) return Kind::tasks;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  // 0x0a is white space and the key of a protobuf's first field when that is a message or a string; JSON needs a
  // bracket after it.
  const auto first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (head[first] == '{' || head[first] == '[')) return Kind::json;
  const bool printable = std::all_of(
      head.begin(), head.end(), [](char c) { return (c >= 32 && c < 127) || c == '\n' || c == '\r' || c == '\t'; });
  return printable ? Kind::text : Kind::onnx;
}

}  // namespace

Expected<ModelSourcePtr> open_model(const std::string& specification) {
  constexpr std::string_view kBuiltin = "builtin:";
  if (specification.empty()) return usage_error("no model named: give a path or builtin:NAME");
  if (specification.starts_with(kBuiltin)) return open_builtin(specification.substr(kBuiltin.size()));
  std::string path = specification;
  ConfigChanges changes;
  std::error_code ec;
  if (const auto mark = path.rfind('?'); mark != std::string::npos && !fs::exists(path, ec)) {
    const auto read = read_config_changes(std::string_view(path).substr(mark + 1), specification);
    if (!read) return read.error();
    if (*read) changes = **read, path.resize(mark);
  }
  if (!fs::exists(path, ec)) {
    Error error = bad_input("no such file", path);
    for (const auto& model : builtin_models())
      if (specification == model.name) error.hint = "did you mean 'builtin:" + model.name + "'?";
    return error;
  }
  if (fs::is_directory(path, ec)) {
    auto file = file_in_folder(path);
    if (!file) return file.error();
    path = std::move(*file);
  }
  const auto kind = sniff(path);
  if (!kind) return kind.error();
  if (!changes.as.empty() && *kind != Kind::json)
    return usage_error("only a config.json can be read as one of a family (?as= and --as)", path);
  if (changes.any() && *kind != Kind::json)
    return usage_error("only a config.json can be given another hidden size (?hidden=)", path);
  switch (*kind) {
    case Kind::json: return open_huggingface_config(path, changes);
    case Kind::tasks: return open_task_graph_source(path);
    case Kind::tensorflow: return open_tensorflow(path);
    case Kind::onnx: return open_onnx(path);
    case Kind::torch: return open_torch_program(path);
    case Kind::stored: return open_stored_weights(path);
    case Kind::empty: return bad_input("the file is empty", path);
    case Kind::text: break;
  }
  return bad_input("is neither a Hugging Face config.json nor an ONNX model nor a TensorFlow graph nor a task graph",
                   path);
}

}  // namespace turnpoint
