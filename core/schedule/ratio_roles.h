// SPDX-License-Identifier: Apache-2.0
// The devices of a ratio plan that do the same at the same time, as one role, and the cuts at which roles exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/ratio_charges.h"

namespace turnpoint {

struct RatioRoles {
  /// Devices of one type with equal parts of everything, in equal places of the tree.
  struct Role {
    std::vector<std::uint32_t> devices;  ///< of the cluster, rising
    LoopLengths lengths;
  };
  /// A cut where it is carried out; equal places are one.
  struct Site {
    std::uint32_t parent = 0;          ///< the cut around it; the first one's own
    std::vector<std::uint32_t> roles;  ///< that take part
    bool inside_node = false;
    std::vector<RatioExchange> exchanges;
  };
  std::vector<Role> roles;
  std::vector<Site> sites;  ///< a cut before those inside it
};

/// Errors: those of RatioCharges.
Expected<RatioRoles> roles_of(const RatioPlan& plan, const Model& model, const RatioCharges& charges);

}  // namespace turnpoint
