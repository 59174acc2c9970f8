// SPDX-License-Identifier: Apache-2.0
// Where the rows of a product's operands begin. Matrix units are fed 16 bytes at a time: rows of 16-bit numbers that
// are no multiple of 8 go through kernels that fetch smaller pieces and reach a third or a sixth of the rate. GPT-2's
// 50,257 words are the known case, and why training frameworks pad a vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/hardware/cluster.h"
#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Whether the rows of every operand of a matrix product are a multiple of 8 elements, of 2, or neither.
enum class Rows : std::uint8_t { aligned, even, odd };

/// Of a 16-bit product; aligned for operators that are none.
Rows rows_of(const Model& model, const Operator& op, std::span<const std::int64_t> local);

/// The name under which times of products with such rows are fitted.
std::string fitted_kind_of(std::string kind, Rows rows);

/// FLOP/s of them where nothing was measured but the device's rates, which an aligned one's bounds.
double unaligned_rate(const DeviceType& device, Rows rows, double aligned_rate);

/// Which product loses most to rows of a size that the matrix units do not take, where that is more than a fiftieth of
/// the time of all products on one device; else empty.
std::string unaligned_rows_note(const Scenario& scenario);

}  // namespace turnpoint
