// SPDX-License-Identifier: Apache-2.0
// One door for every kind of model: a file (ONNX, torch.export, TensorFlow, Hugging Face config.json, a task graph) or a built-in by
// name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"
#include "core/model/model.h"
#include "core/model/task_graph.h"

namespace turnpoint {

/// Batch where nobody chose one (resources/manual/costs.md, 9).
inline constexpr std::int64_t kDefaultBatch = 256;
/// The longest sequence that is taken where nobody chose one, however many positions the model has
/// (resources/manual/costs.md, 9).
inline constexpr std::int64_t kLongestDefaultSequence = 8192;

/// Sizes the user may choose for one iteration. 0: the source's default (resources/manual/costs.md, 9).
struct ModelBinding {
  std::int64_t batch = 0;     ///< samples
  std::int64_t sequence = 0;  ///< tokens per sample
};

/// What a source says of its own training, and where it says so (resources/manual/costs.md, 9). A reason stands behind
/// the value: "torch_dtype says float16"; it is empty where the source says nothing.
struct StatedDefaults {
  std::optional<Precision> precision;
  std::string precision_reason;
  std::string batch_reason;     ///< of chosen_batch()
  std::string sequence_reason;  ///< of the sequence that bind() takes where none is chosen
  bool names_sequence = true;   ///< false: the source names none, and the reason is that of a usual length
};

/// The precision that a type's name stands for: "float32", "BF16", "torch.float16". 16 and 8 bits are counted as bf16;
/// nullopt: another name.
std::optional<Precision> stated_precision(std::string_view type_name);
/// "torch_dtype says float16, counted as bf16": `where` and `type_name` as a reason.
std::string precision_reason(std::string_view where, std::string_view type_name);

/// A model that has been read but not yet bound to a batch size. Immutable, thread-safe.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual std::string name() const = 0;
  virtual std::string source() const = 0;
  /// The batch that the specification itself names ("builtin:gpt2?batch=8") or that an exported file fixes, if that is
  /// above 1 or no other can be bound; 0: none. Callers with a default of their own put it behind this one.
  virtual std::int64_t chosen_batch() const { return 0; }
  virtual StatedDefaults stated() const { return {}; }
  /// Builds the graph; cheap enough to be repeated when batch or sequence change.
  virtual Expected<ModelPtr> bind(const ModelBinding& binding) const = 0;
  /// The task graph of a source that is one, as its file has it; its bound model has no operators, and what else is
  /// done with it is in core/scenario/task_scenario.h. Null: a model.
  virtual TaskGraphPtr tasks() const { return nullptr; }
};
using ModelSourcePtr = std::shared_ptr<const ModelSource>;

/// `specification` is a path or "builtin:NAME[?batch=256&layers=24]". The kind of file is told by its content. A path
/// may end with "?as=FAMILY": a config.json is read as one of that family whatever it says.
Expected<ModelSourcePtr> open_model(const std::string& specification);

// The parts behind it.
Expected<ModelSourcePtr> open_onnx(const std::string& path);
/// What torch.export.save wrote (.pt2).
Expected<ModelSourcePtr> open_torch_program(const std::string& path);
/// GraphDef, MetaGraphDef or SavedModel, in binary (.pb) or text (.pbtxt).
Expected<ModelSourcePtr> open_tensorflow(const std::string& path);
Expected<ModelSourcePtr> open_huggingface_config(const std::string& path, const std::string& as = {});
/// A safetensors file, or the index of several (core/import/files/safetensors.h): the config.json beside it with the
/// stored count compared, else parameters without operators, which can be inspected and not searched.
Expected<ModelSourcePtr> open_stored_weights(const std::string& path);
/// Whatever core/import/task_graph.h reads.
Expected<ModelSourcePtr> open_task_graph_source(const std::string& path);
Expected<ModelSourcePtr> open_builtin(const std::string& specification_after_colon);

struct BuiltinModel {
  std::string name, description;
  std::string parameters;  ///< accepted parameters with defaults: "layers=24 hidden=2048 ..."
};
const std::vector<BuiltinModel>& builtin_models();

}  // namespace turnpoint
