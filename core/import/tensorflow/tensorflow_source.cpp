// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/tensorflow_source.h"

#include <unordered_set>

#include "core/import/onnx/onnx_source.h"
#include "core/import/source/mapped_file.h"
#include "core/import/tensorflow/flat_graph.h"
#include "core/import/tensorflow/lowering.h"
#include "core/import/tensorflow/text_format.h"

namespace turnpoint {

namespace {

/// The bound graph of the ONNX reader, with what was noticed on the way to it.
class TensorFlowSource final : public ModelSource {
 public:
  TensorFlowSource(ModelSourcePtr graph, std::vector<std::string> warnings)
      : graph_(std::move(graph)), warnings_(std::move(warnings)) {}

  std::string name() const override { return graph_->name(); }
  std::string source() const override { return graph_->source(); }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    auto model = graph_->bind(binding);
    if (!model || warnings_.empty()) return model;
    auto annotated = std::make_shared<Model>(**model);
    annotated->warnings.insert(annotated->warnings.begin(), warnings_.begin(), warnings_.end());
    return ModelPtr(std::move(annotated));
  }

 private:
  ModelSourcePtr graph_;
  std::vector<std::string> warnings_;
};

}  // namespace

bool is_tensorflow(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return tensorflow::looks_like_text_graph(text) || tensorflow::looks_like_wire_graph(bytes);
}

Expected<ModelSourcePtr> open_tensorflow_bytes(std::span<const std::uint8_t> bytes, const std::string& name) {
  auto def = tensorflow::parse_graph(bytes, name);
  if (!def) return def.error();
  auto graph = tensorflow::flatten(std::make_shared<const tensorflow::GraphDef>(std::move(*def)), name);
  if (!graph) return graph.error();
  auto lowered = tensorflow::Lowering(*graph).run();
  if (!lowered) {
    Error error = lowered.error();
    if (error.hint.empty()) error.hint = "it can be placed node by node as it is: turnpoint-cli place " + name;
    return error;
  }
  auto warnings = graph->warnings;
  warnings.insert(warnings.end(), lowered->warnings.begin(), lowered->warnings.end());
  const auto& onnx = lowered->bytes;
  auto source = open_onnx_bytes({reinterpret_cast<const std::uint8_t*>(onnx.data()), onnx.size()}, name);
  if (!source) return source.error();
  return ModelSourcePtr(std::make_shared<const TensorFlowSource>(*source, std::move(warnings)));
}

Expected<ModelSourcePtr> open_tensorflow(const std::string& path) {
  // Everything that is kept is copied; the mapping ends here. Variables of a SavedModel lie in files beside it, which
  // are never opened: only their shapes matter, and those are in the graph.
  auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  return open_tensorflow_bytes(file->bytes(), path);
}

Expected<TensorFlowCounts> count_tensorflow(std::span<const std::uint8_t> bytes, const std::string& name) {
  const auto def = tensorflow::parse_graph(bytes, name);
  if (!def) return def.error();
  TensorFlowCounts counts;
  counts.nodes = def->nodes.size();
  counts.library_functions = def->functions.size();
  std::unordered_set<std::string_view> names;
  for (const auto& node : def->nodes) names.insert(node.name);
  for (const auto& node : def->nodes) {
    counts.inputs += node.inputs.size();
    for (std::string_view input : node.inputs) {
      if (input.starts_with('^')) input.remove_prefix(1);
      counts.dangling_inputs += names.count(input.substr(0, input.find(':'))) == 0 ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace turnpoint
