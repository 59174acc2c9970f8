// SPDX-License-Identifier: Apache-2.0
#include "core/import/torch/torch_source.h"

#include <algorithm>

#include "core/import/onnx/onnx_source.h"
#include "core/import/source/mapped_file.h"
#include "core/import/torch/archive.h"
#include "core/import/torch/lowering.h"

namespace turnpoint {

namespace {

using torch_program::Member;

constexpr std::uint64_t kLargestGraph = std::uint64_t(1) << 29;

/// "NAME/models/model.json" since PyTorch 2.9, "serialized_exported_program.json" before.
bool is_graph(const Member& member) {
  const std::string_view name = member.name;
  const auto models = name.rfind("models/");
  const bool in_models = models != name.npos && (models == 0 || name[models - 1] == '/') && name.ends_with(".json");
  return in_models || name == "serialized_exported_program.json" || name.ends_with("/serialized_exported_program.json");
}

}  // namespace

bool is_torch_program(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kZip = "PK\x03\x04";
  if (bytes.size() < kZip.size() || !std::equal(kZip.begin(), kZip.end(), bytes.begin())) return false;
  const auto members = torch_program::list_members(bytes, {});
  return members && std::any_of(members->begin(), members->end(), is_graph);
}

Expected<ModelSourcePtr> open_torch_program_bytes(std::span<const std::uint8_t> bytes, const std::string& name) {
  const auto members = torch_program::list_members(bytes, name);
  if (!members) return members.error();
  const auto graphs = std::count_if(members->begin(), members->end(), is_graph);
  if (graphs != 1)
    return bad_input("holds " + std::to_string(graphs) + " programs of torch.export where one can be opened", name);
  const auto text = unpack(*std::find_if(members->begin(), members->end(), is_graph), kLargestGraph, name);
  if (!text) return text.error();
  const auto program = torch_program::parse_program(*text, name);
  if (!program) return program.error();
  const auto lowered = torch_program::Lowering(*program, name).run();
  if (!lowered) return lowered.error();
  const auto& onnx = lowered->bytes;
  return open_onnx_bytes({reinterpret_cast<const std::uint8_t*>(onnx.data()), onnx.size()}, name, lowered->buffers);
}

Expected<ModelSourcePtr> open_torch_program(const std::string& path) {
  // Everything that is kept is copied; the mapping ends here.
  const auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  return open_torch_program_bytes(file->bytes(), path);
}

}  // namespace turnpoint
