// SPDX-License-Identifier: Apache-2.0
// The parameters of methods that take some, as records: texts are read and described by them, a window offers them as
// boxes.
#pragma once

#include <vector>

#include "core/base/options.h"

namespace turnpoint::search {

const std::vector<OptionRecord>& fsdp_options();
const std::vector<OptionRecord>& megatron_options();
const std::vector<OptionRecord>& manual_options();

}  // namespace turnpoint::search
