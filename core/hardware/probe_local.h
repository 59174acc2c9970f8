// SPDX-License-Identifier: Apache-2.0
// Hardware `local`: this machine as last measured.
#pragma once

#include <filesystem>

#include "core/hardware/cluster.h"

namespace turnpoint {

/// Where the last measurement lies: $XDG_DATA_HOME/turnpoint/local.json, or ~/.local/share/...; empty without a home.
std::filesystem::path local_profile_path();

/// That profile; where nothing was measured yet, this machine's cores as CPU ranks with assumed figures and a note that
/// says so.
Expected<ClusterPtr> local_hardware();

}  // namespace turnpoint
