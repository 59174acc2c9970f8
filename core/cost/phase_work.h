// SPDX-License-Identifier: Apache-2.0
// What one phase of an operator, forward or backward, asks of a device.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// What one phase of an operator asks of one device: the inputs of its time.
struct PhaseWork {
  double flop = 0, bytes = 0;
  double beside_bytes = 0;  ///< moved by further kernels, behind the operator's own
  int more_kernels = 0;     ///< launched beside the operator's own
  double launches = 1;      ///< of the operator's own kernels, one after the other: launches_of()
};

/// How often a phase of an operator's own kernels reads or writes an input or an output. Forward does once; backward
/// reads what was kept and the gradients that arrive, and writes those that it makes. Of its table an embedding touches
/// the rows that it looks up alone, which are as large as its output.
double times_moved(const Operator& op, const Access& access, const Tensor& tensor, bool output, bool backward);

/// The table whose gradient an embedding's backward fills with zeros before it adds to its rows, as frameworks do; none
/// for all else, and for the papers' accounting.
const Access* cleared_table(const Model& model, const Operator& op, bool backward, Accounting accounting);

/// How often a device launches the kernels of an operator whose loops have these sizes there, one after the other:
/// those of a recurrent layer for every time step and direction, those of others once. A fit's launch_s is that of one.
double launches_of(const Operator& op, std::span<const std::int64_t> local);

}  // namespace turnpoint
