// SPDX-License-Identifier: Apache-2.0
#include "app/core_backend.h"
#include "core/search/registry.h"

namespace turnpoint::app {

Expected<ModelSourcePtr> CoreBackend::open_model(const std::string& specification) const {
  return turnpoint::open_model(specification);
}
Expected<ClusterPtr> CoreBackend::open_hardware(const std::string& specification) const {
  return turnpoint::open_hardware(specification);
}

const std::vector<Method>& CoreBackend::methods() const { return turnpoint::methods(); }
const std::vector<BuiltinModel>& CoreBackend::builtin_models() const { return turnpoint::builtin_models(); }
const std::vector<PresetInfo>& CoreBackend::hardware_presets() const { return preset_names(); }

}  // namespace turnpoint::app
