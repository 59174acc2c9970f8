// SPDX-License-Identifier: Apache-2.0
// The names that turnpoint/plan@1 gives to what our types count: shared by its writer and its reader.
#pragma once

#include <string>
#include <vector>

#include "core/cost/breakdown.h"
#include "core/model/model.h"

namespace turnpoint {

/// By loop dimension; two of one name are told apart by a number: "channel", "channel-2".
std::vector<std::string> loop_names(const Operator& op);

/// Of the parts of a CostBreakdown, by their index; the network's as files spell collectives ("all_reduce").
std::string memory_key(std::size_t part);
std::string compute_key(std::size_t part);
std::string network_key(std::size_t part);

}  // namespace turnpoint
