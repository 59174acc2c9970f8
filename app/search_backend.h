// SPDX-License-Identifier: Apache-2.0
// The one door between the window and everything that computes: tests put a double behind it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/import/source/model_source.h"
#include "core/search/method/method.h"

namespace turnpoint::app {

/// All calls are thread-safe; those that read files may take a while and are made from workers only.
class SearchBackend {
 public:
  virtual ~SearchBackend() = default;

  virtual Expected<ModelSourcePtr> open_model(const std::string& specification) const = 0;
  virtual Expected<ClusterPtr> open_hardware(const std::string& specification) const = 0;

  virtual const std::vector<Method>& methods() const = 0;
  virtual const std::vector<BuiltinModel>& builtin_models() const = 0;
  virtual const std::vector<PresetInfo>& hardware_presets() const = 0;
};

}  // namespace turnpoint::app
