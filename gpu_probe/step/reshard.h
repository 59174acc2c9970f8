// SPDX-License-Identifier: Apache-2.0
// Carries out the steps of a resharding on real blocks: every rank calls with its own block and receives the one that
// the step's resulting layout says is its.
#pragma once

#include "core/plan/plan.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/values/block.h"

namespace turnpoint::step {

/// One rank's way of doing reshardings.
struct Mover {
  const Mesh& mesh;
  Communicator& communicator;
  Ledger& ledger;
  int rank() const { return communicator.rank(); }
};

/// `before` may be partial on axes of which an all-reduce or reduce-scatter makes the sum. `kept_in_place`: elements
/// of a permute's block that this rank already held; they count as moved in a plan's price, but nothing was sent.
/// Error: the step cannot be executed from this layout, or another rank gave up.
Expected<Value> execute(const Mover& mover, const ReshardStep& step, const Layout& before, const Shape& shape,
                        const Value& mine, std::int64_t& kept_in_place);

}  // namespace turnpoint::step
