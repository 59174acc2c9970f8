// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/import/source/model_source.h"

namespace turnpoint {

/// Whether this is an archive that torch.export.save wrote (.pt2).
bool is_torch_program(std::span<const std::uint8_t> bytes);

/// A program of torch.export that lies in memory; `name` stands for the file in messages. Weights are never read: their
/// shapes are in the graph. Errors: a damaged archive, operators without a handler, by name.
Expected<ModelSourcePtr> open_torch_program_bytes(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace turnpoint
