// SPDX-License-Identifier: Apache-2.0
// How the modules of the user's own model are called that a plan's operators with weights are. Of an ONNX file or an
// archive of torch.export: as the weights in it, which are called by their modules. Of a config.json: as in the model
// of Transformers of that family. Of built-in networks: as the operators, with dots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

class ModuleNames {
 public:
  /// Usage error: the model is a config.json of a family whose modules are not known, or one that is gone.
  static Expected<ModuleNames> of(const Model& model);

  /// Of an operator with a weight. Error: the weight's name in the file tells no module.
  Expected<std::string> module(const Model& model, OperatorId op) const;
  /// Whether modules are called as Transformers does, so that its layers pass on what it calls hidden_states.
  bool transformers() const { return transformers_; }

 private:
  bool transformers_ = false;
};

/// Families of Transformers whose modules are known: decoders as Llama's.
std::vector<std::string_view> known_families();

/// A pattern of Python for all modules whose names differ in numbers alone: "model\.layers\.\d+\.mlp\.up_proj".
std::string pattern_of(std::string_view module);

}  // namespace turnpoint
