// SPDX-License-Identifier: Apache-2.0
// The places of a ratio plan's tree, equal ones as one, and of whose weights the halves of each hold the same.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/loop_lengths.h"
#include "core/plan/ratio_charges.h"

namespace turnpoint {

/// A part of the devices where it is cut, or a device. Equal places next to each other are one.
struct RatioPlace {
  /// What the halves of a cut hold of an operator's own weights.
  enum class Held : std::uint8_t {
    nothing_alike,  ///< every weight is split, or there is none
    /// Some weights are whole on both halves, and each of these is divided further on either in the same way: every
    /// device has one in the other half that holds the same of it.
    alike,
    unlike,  ///< some are whole on both, and divided further otherwise on either
  };
  std::uint32_t part = 0, cut = RatioPlan::kNoCut;
  std::uint32_t first = 0;                ///< of its devices, in the plan's order
  int level = 0;                          ///< cuts around it
  std::array<std::uint32_t, 2> halves{};  ///< places; the same one where one half tells of both
  LoopLengths lengths;
  std::vector<Held> held;  ///< by operator; of a cut

  bool is_device() const { return cut == RatioPlan::kNoCut; }
  bool one_half_tells() const { return halves[0] == halves[1]; }
};

/// The whole first, every place before those inside it. Whether updates are shared out does not matter to `held`.
/// Errors: those of RatioCharges::cut_of() and divide().
Expected<std::vector<RatioPlace>> places_of(const RatioPlan& plan, const Model& model, const RatioCharges& charges);

/// The plan with those updates whole that are shared out between halves that do not hold the weights alike any more,
/// as after its ratios were moved.
Expected<RatioPlan> with_possible_updates(const Scenario& scenario, RatioPlan plan);

}  // namespace turnpoint
