// SPDX-License-Identifier: Apache-2.0
// Model sources whose hidden size can be chosen: built-in networks and config.json files.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/import/source/model_source.h"

namespace turnpoint {

/// What such a source is besides a ModelSource.
class HiddenSize {
 public:
  virtual ~HiddenSize() = default;
  /// Channels of the model as it stands; 0: it has none to choose.
  virtual std::int64_t hidden() const = 0;
  /// What open_model() takes for the same model with so many: "builtin:gpt2?hidden=1024". What the specification or the
  /// file names besides, such as the width of an MLP, stays; what it leaves to its family follows.
  virtual std::string with_hidden(std::int64_t channels) const = 0;
  /// What two sources that differ in their hidden size alone have in common, by content: of a file all that it says.
  virtual std::string others() const { return with_hidden(1); }
};

/// Usage error: the source has no hidden size to choose, and why.
Expected<const HiddenSize*> hidden_size_of(const ModelSource& source);

}  // namespace turnpoint
