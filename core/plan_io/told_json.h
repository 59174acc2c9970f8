// SPDX-License-Identifier: Apache-2.0
// What a result says beside its figures (resources/manual/formats.md): `notes`, `explanations`, `weights`,
// `whole_updates` and `bounds_by_number`, alike in result files and in kept answers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/plan/result.h"

namespace turnpoint {

/// Into the object; what there is none of is left out.
void write_told(const Result& result, nlohmann::json& object);
/// The result has its points. What has another form is left out: it explains a result, and is not part of its figures.
void read_told(const nlohmann::json& object, Result& result);

}  // namespace turnpoint
