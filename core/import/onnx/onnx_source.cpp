// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/onnx_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/import/onnx/binder.h"
#include "core/import/source/mapped_file.h"

namespace turnpoint {

namespace {

/// A graph does not say how long its sequences may be: position tables refuse what is too long.
constexpr std::int64_t kUsualSequence = 2048, kShortestDefaultSequence = 16;
constexpr std::int64_t kMaxBinding = std::int64_t{1} << 40;

const char* type_name(ElementType type) {
  return type == ElementType::f32 ? "float32" : type == ElementType::f16 ? "float16" : type == ElementType::bf16 ? "bfloat16" : "";
}

class OnnxSource final : public ModelSource {
 public:
  OnnxSource(std::shared_ptr<const onnx::Graph> graph, onnx::InputPlan plan)
      : graph_(std::move(graph)), plan_(std::move(plan)) {}

  std::string name() const override {
    const auto slash = graph_->file.find_last_of('/');
    return slash == std::string::npos ? graph_->file : graph_->file.substr(slash + 1);
  }
  std::string source() const override { return graph_->file; }

  /// A batch above 1 that the file fixes was meant by whoever exported it. A batch of 1 is what exporters are given for
  /// want of a better one: it stands only where no other can be bound.
  std::int64_t chosen_batch() const override {
    if (!is_fixed()) return 0;
    return plan_.fixed_batch > 1 || contradiction() ? plan_.fixed_batch : 0;
  }

  StatedDefaults stated() const override {
    StatedDefaults stated;
    std::map<ElementType, double> bytes;
    for (const onnx::TensorProto& weights : graph_->proto->graph.initializers) {
      if (!weights.type || !is_floating(*weights.type)) continue;
      double elements = 1;
      for (const std::int64_t size : weights.dims) elements *= double(size);
      bytes[*weights.type] += elements * size_of(*weights.type);
    }
    const auto most = std::max_element(bytes.begin(), bytes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != bytes.end() && most->second > 0) {
      stated.precision = stated_precision(type_name(most->first));
      if (stated.precision) stated.precision_reason = precision_reason("the type of its weights", type_name(most->first));
    }
    if (chosen_batch() > 0) stated.batch_reason = "the export fixes it";
    stated.names_sequence = false;
    if (!plan_.sequence_symbols.empty())
      stated.sequence_reason = fmt::format("the longest up to {} that the graph takes, which names none", kUsualSequence);
    return stated;
  }

  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    if (binding.batch < 0 || binding.batch > kMaxBinding || binding.sequence < 0 || binding.sequence > kMaxBinding) {
      return usage_error("batch and sequence must lie between 1 and 2^40", graph_->file);
    }
    const std::int64_t batch = binding.batch > 0 ? binding.batch : chosen_batch() > 0 ? chosen_batch() : kDefaultBatch;
    auto model = bind_batch(batch, binding.sequence);
    if (!model || !is_fixed() || batch != plan_.fixed_batch || !contradiction()) return model;
    auto noted = std::make_shared<Model>(**model);
    noted->warnings.push_back(fmt::format(
        "this export fixes the batch at {0}, which is taken; export with dynamic_shapes to choose another", batch));
    return ModelPtr(std::move(noted));
  }

 private:
  bool is_fixed() const { return plan_.batch_symbol.empty() && plan_.fixed_batch > 0; }

  /// Whether no batch but the file's own can be bound; tried once, with the default batch.
  bool contradiction() const {
    std::call_once(tried_, [&] {
      const std::int64_t other = plan_.fixed_batch == kDefaultBatch ? 2 * kDefaultBatch : kDefaultBatch;
      contradicts_ = !bind_batch(other, 0).has_value();
    });
    return contradicts_;
  }

  Expected<ModelPtr> bind_batch(std::int64_t batch, std::int64_t sequence) const {
    if (sequence > 0 || plan_.sequence_symbols.empty()) return bind_to(batch, std::max<std::int64_t>(sequence, 1));
    auto result = bind_to(batch, kUsualSequence);
    for (auto shorter = kUsualSequence / 2; !result && shorter >= kShortestDefaultSequence; shorter /= 2) {
      auto model = bind_to(batch, shorter);
      if (model) return model;
    }
    return result;
  }

  Expected<ModelPtr> bind_to(std::int64_t batch, std::int64_t sequence) const {
    if (!is_fixed() || plan_.fixed_batch == batch)
      return onnx::Binder(*graph_, plan_, batch, sequence, nullptr).run().model;
    auto reference = onnx::Binder(*graph_, plan_, plan_.fixed_batch, sequence, nullptr).run();
    if (!reference.model) return reference.model;
    auto model = onnx::Binder(*graph_, plan_, batch, sequence, &reference.shapes).run().model;
    if (!model) {
      onnx::InputPlan literal = plan_;
      literal.literal_batch = true;
      model = onnx::Binder(*graph_, literal, batch, sequence, &reference.shapes).run().model;
    }
    Error error = !model ? model.error() : bad_input("has other parameters at another batch", graph_->file);
    if (model && (*model)->parameters == (*reference.model)->parameters) return model;
    error.hint = fmt::format("this export fixes the batch at {0}; give --batch {0} or export with dynamic_shapes",
                             plan_.fixed_batch);
    return error;
  }

  std::shared_ptr<const onnx::Graph> graph_;
  onnx::InputPlan plan_;
  mutable std::once_flag tried_;
  mutable bool contradicts_ = false;
};

}  // namespace

Expected<ModelSourcePtr> open_onnx_bytes(std::span<const std::uint8_t> bytes, const std::string& name,
                                         const std::optional<std::set<std::string>>& buffers) {
  auto proto = onnx::parse_model(bytes, name);
  if (!proto) return proto.error();
  auto graph = onnx::make_graph(std::make_shared<const onnx::ModelProto>(std::move(*proto)), name);
  if (!graph) return graph.error();
  auto plan = onnx::plan_inputs(**graph);
  if (buffers) onnx::take_buffers(**graph, *buffers, plan);
  return ModelSourcePtr(std::make_shared<const OnnxSource>(*graph, std::move(plan)));
}

Expected<ModelSourcePtr> open_onnx(const std::string& path) {
  // Everything that is kept is copied, so that a file that changes later cannot harm: the mapping ends here.
  auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  return open_onnx_bytes(file->bytes(), path);
}

}  // namespace turnpoint
