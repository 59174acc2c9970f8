// SPDX-License-Identifier: Apache-2.0
// What others ask of the method behind a result, so that nobody compares names of methods.
#pragma once

namespace turnpoint {

/// A result carries those of its method and parameters; whoever makes or reads results through the registry of methods
/// (core/search/registry.h) sets them.
struct MethodTraits {
  bool shards_updates = false;      ///< whatever the scenario's switch "update-sharding" says
  bool fewest_collectives = false;  ///< layouts change as training engines change them, not in the cheapest way
  bool recomputes = false;          ///< computes activations again, whatever the switch "recompute" says
  bool micro_batches = false;       ///< among its plans are some that go through the batch in parts

  friend bool operator==(const MethodTraits&, const MethodTraits&) = default;
};

}  // namespace turnpoint
