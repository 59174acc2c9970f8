// SPDX-License-Identifier: Apache-2.0
// A whole Model as JSON and back, for another process of ours to work on. Not a format for people: names are kept, but
// the lists are terse.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_fields.h"
#include "core/model/model.h"

namespace turnpoint {

nlohmann::json write_model(const Model& model);

/// What write_model() wrote. Ids, sizes and walks are checked, so that whoever indexes by them stays inside; tensors
/// above 2^60 elements and more than a million operators or tensors are refused. Reasons are left in `fields`; null
/// then.
ModelPtr read_model(JsonFields fields);

}  // namespace turnpoint
