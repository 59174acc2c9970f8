// SPDX-License-Identifier: Apache-2.0
// Stored weights as a model: the graph of the config.json beside them, with their own count compared, or what they
// are alone: parameters without operators, to be inspected.
#include <fmt/format.h>

#include <filesystem>

#include "core/import/files/foreign_file.h"
#include "core/import/files/safetensors.h"
#include "core/import/source/mapped_file.h"
#include "core/import/source/model_source.h"

namespace turnpoint {

namespace {

class StoredSource final : public ModelSource {
 public:
  StoredSource(std::string path, ModelSourcePtr graph, StoredCount count)
      : path_(std::move(path)), graph_(std::move(graph)), count_(std::move(count)) {}

  std::string name() const override {
    const std::filesystem::path file(path_);
    return graph_ ? graph_->name() : file.filename().string();
  }
  std::string source() const override { return path_; }
  std::int64_t chosen_batch() const override { return graph_ ? graph_->chosen_batch() : 0; }
  StatedDefaults stated() const override { return graph_ ? graph_->stated() : StatedDefaults(); }

  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    auto model = std::make_shared<Model>();
    if (graph_) {
      auto bound = graph_->bind(binding);
      if (!bound) return bound;
      *model = **bound;
    } else {
      model->name = name();
      model->batch = binding.batch > 0 ? binding.batch : 1;
      model->parameters = model->active_parameters = count_.parameters;
      model->buffers = count_.buffers;
      if (count_.parameters > 0) {
        Tensor all;
        all.name = "weights";
        all.shape = {count_.parameters};
        all.dims = {DimName::other};
        all.role = TensorRole::parameter;
        model->tensors.push_back(std::move(all));
        model->uses.resize(1);
      }
    }
    model->source = path_;
    for (auto& note : notes(model->parameters)) model->warnings.push_back(std::move(note));
    return ModelPtr(std::move(model));
  }

 private:
  std::vector<std::string> notes(std::int64_t of_graph) const {
    std::string types;
    for (const auto& [type, elements] : count_.by_type)
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", elements, type);
    std::vector<std::string> out;
    if (!graph_)
      out.push_back(
          "weights have no graph: they can be counted, not searched; a config.json beside them would be opened");
    else if (of_graph != count_.parameters)
      out.push_back(fmt::format("the stored weights hold {} parameters, the graph of config.json has {}",
                                count_.parameters, of_graph));
    out.push_back("stored elements: " + types);
    if (count_.other > 0)
      out.push_back(
          fmt::format("{} stored integers are not counted as parameters: packed weights or positions", count_.other));
    return out;
  }

  std::string path_;
  ModelSourcePtr graph_;
  StoredCount count_;
};

}  // namespace

Expected<ModelSourcePtr> open_stored_weights(const std::string& path) {
  const auto file = onnx::MappedFile::open(path);
  if (!file) return file.error();
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto tensors = is_safetensors(bytes) ? read_safetensors_header(bytes, path) : read_safetensors_index(bytes, path);
  if (!tensors) return tensors.error();
  for (const auto& tensor : *tensors)
    if (tensor.name.find(".lora_A") != std::string::npos)
      return foreign_error(
          {"a LoRA adapter, which is trained beside a model", "open the config.json of its base model"}, path);
  const auto config = std::filesystem::path(path).parent_path() / "config.json";
  std::error_code ec;
  ModelSourcePtr graph;
  // One shard of several holds a part: comparing it with the whole model would say nothing.
  const bool whole = std::filesystem::path(path).filename().string().find("-of-") == std::string::npos;
  if (whole && std::filesystem::is_regular_file(config, ec)) {
    auto opened = open_huggingface_config(config.string());
    if (!opened) return opened.error();
    graph = std::move(*opened);
  }
  return ModelSourcePtr(std::make_shared<const StoredSource>(path, std::move(graph), count_stored(*tensors)));
}

}  // namespace turnpoint
