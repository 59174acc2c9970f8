// SPDX-License-Identifier: Apache-2.0
// Where hardware profiles made here are kept, so that sessions find them again.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"

namespace turnpoint::app {

std::filesystem::path profile_folder();
/// Keeps a profile there; its path. Another one of the same name gets a number, since a profile that a session names
/// must stay what it was. Any thread may call.
Expected<std::string> store_profile(const Cluster& cluster);

}  // namespace turnpoint::app
