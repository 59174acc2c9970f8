// SPDX-License-Identifier: Apache-2.0
// What PyTorch's kernels move where a model is not compiled (Settings::kernels). Frameworks write an RMS norm, the
// tanh form of a GELU, rotary positions and the loss as chains of elementwise operators, each of which goes through
// memory; a compiler makes one kernel of a chain. Counted from the sources of PyTorch and Transformers and the
// derivatives of their operators (resources/manual/costs.md, 3); nothing here is fitted.
#pragma once

#include <cstdint>

#include "core/cost/layout.h"
#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

struct PhaseWork;

/// Numbers that a phase reads or writes per element.
struct KernelTraffic {
  double plain = 0;  ///< in the run's precision
  double wide = 0;   ///< in fp32 whatever that is
  double casts = 0;  ///< from one to the other: one of each, and no kernel where the run is in fp32 itself
  int kernels = 0;   ///< launched in a 16-bit run, casts among them
};

struct EagerKernels {
  KernelTraffic forward, backward;
  /// Numbers per element, from forward to backward, beside what one kernel keeps; of a loss also what its backward has
  /// for a moment, since nothing lies between the two.
  double kept_plain = 0;
  double kept_wide = 0;
  double kept_grown = 0;  ///< kept by one kernel too, in the run's precision, and in fp32 here
  bool instead = true;    ///< of the operator's own traffic; false: beside it
};

/// Of an operator that is more than one kernel; null: it is one in either case. Elements are those of its output, of a
/// loss those of its logits.
const EagerKernels* eager_kernels(const Operator& op);
/// The tensor whose elements are meant, as the operator sees it.
struct EagerElements {
  const Access& access;
  bool is_output;
};
EagerElements eager_elements(const Operator& op);
/// How many of them a device has.
double local_eager_elements(const Model& model, const Operator& op, const Configuration& split, const Mesh& mesh);

/// Whether a scenario charges for them; the papers' accounting never does.
inline bool runs_eagerly(const Settings& settings) {
  return settings.kernels == Kernels::eager && settings.accounting != Accounting::paper;
}

/// The same where the scenario charges for them; null: one kernel.
inline const EagerKernels* eager_kernels(const Settings& settings, const Operator& op) {
  return runs_eagerly(settings) ? eager_kernels(op) : nullptr;
}

/// Turns what a phase asks of a device, so many elements of which are there, into what these kernels ask.
void charge_eagerly(const Settings& settings, const Operator& op, const EagerKernels& kernels, bool backward,
                    double elements, PhaseWork& work);
/// Bytes that so many elements of the operator move in a phase.
double eager_bytes(const Settings& settings, const Operator& op, const KernelTraffic& traffic, double elements);
/// Bytes that so many elements of it keep from forward to backward, beside what one kernel keeps.
double eager_kept_bytes(const Settings& settings, const Operator& op, const EagerKernels& kernels, double elements);

}  // namespace turnpoint
