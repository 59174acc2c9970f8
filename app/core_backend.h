// SPDX-License-Identifier: Apache-2.0
// The real backend: core/ as it is.
#pragma once

#include "app/search_backend.h"

namespace turnpoint::app {

class CoreBackend : public SearchBackend {
 public:
  Expected<ModelSourcePtr> open_model(const std::string& specification) const override;
  Expected<ClusterPtr> open_hardware(const std::string& specification) const override;
  const std::vector<Method>& methods() const override;
  const std::vector<BuiltinModel>& builtin_models() const override;
  const std::vector<PresetInfo>& hardware_presets() const override;
};

}  // namespace turnpoint::app
