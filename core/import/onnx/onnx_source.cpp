// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/onnx_source.h"

#include "core/import/onnx/binder.h"
#include "core/import/onnx/mapped_file.h"

namespace turnpoint {

namespace {

constexpr std::int64_t kDefaultBatch = 256;
constexpr std::int64_t kLongestDefaultSequence = 2048, kShortestDefaultSequence = 16;
constexpr std::int64_t kMaxBinding = std::int64_t{1} << 40;

class OnnxSource final : public ModelSource {
 public:
  OnnxSource(std::shared_ptr<const onnx::Graph> graph, onnx::InputPlan plan)
      : graph_(std::move(graph)), plan_(std::move(plan)) {}

  std::string name() const override {
    const auto slash = graph_->file.find_last_of('/');
    return slash == std::string::npos ? graph_->file : graph_->file.substr(slash + 1);
  }
  std::string source() const override { return graph_->file; }

  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    if (binding.batch < 0 || binding.batch > kMaxBinding || binding.sequence < 0 || binding.sequence > kMaxBinding) {
      return usage_error("batch and sequence must lie between 1 and 2^40", graph_->file);
    }
    const std::int64_t batch = binding.batch > 0 ? binding.batch : kDefaultBatch;
    if (binding.sequence > 0 || plan_.sequence_symbols.empty())
      return bind_to(batch, std::max<std::int64_t>(binding.sequence, 1));
    // The longest sequence the model takes is not written anywhere: position tables refuse what is too long.
    auto result = bind_to(batch, kLongestDefaultSequence);
    for (auto sequence = kLongestDefaultSequence / 2; !result && sequence >= kShortestDefaultSequence; sequence /= 2) {
      auto shorter = bind_to(batch, sequence);
      if (shorter) return shorter;
    }
    return result;
  }

 private:
  Expected<ModelPtr> bind_to(std::int64_t batch, std::int64_t sequence) const {
    const bool rebinds = plan_.batch_symbol.empty() && plan_.fixed_batch > 0 && plan_.fixed_batch != batch;
    if (!rebinds) return onnx::Binder(*graph_, plan_, batch, sequence, nullptr).run().model;
    auto reference = onnx::Binder(*graph_, plan_, plan_.fixed_batch, sequence, nullptr).run();
    if (!reference.model) return reference.model;
    return onnx::Binder(*graph_, plan_, batch, sequence, &reference.shapes).run().model;
  }

  std::shared_ptr<const onnx::Graph> graph_;
  onnx::InputPlan plan_;
};

}  // namespace

Expected<ModelSourcePtr> open_onnx_bytes(std::span<const std::uint8_t> bytes, const std::string& name) {
  auto proto = onnx::parse_model(bytes, name);
  if (!proto) return proto.error();
  auto graph = onnx::make_graph(std::make_shared<const onnx::ModelProto>(std::move(*proto)), name);
  if (!graph) return graph.error();
  auto plan = onnx::plan_inputs(**graph);
  return ModelSourcePtr(std::make_shared<const OnnxSource>(*graph, std::move(plan)));
}

Expected<ModelSourcePtr> open_onnx(const std::string& path) {
  // Everything that is kept is copied, so that a file that changes later cannot harm: the mapping ends here.
  auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  return open_onnx_bytes(file->bytes(), path);
}

}  // namespace turnpoint
