// SPDX-License-Identifier: Apache-2.0
// The parameters of methods that take some, as records: what a window can offer as boxes. The readers of the texts are
// with the methods.
#pragma once

#include <vector>

#include "core/base/options.h"

namespace turnpoint::search {

const std::vector<OptionRecord>& fsdp_options();
const std::vector<OptionRecord>& megatron_options();
const std::vector<OptionRecord>& manual_options();

}  // namespace turnpoint::search
