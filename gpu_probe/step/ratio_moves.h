// SPDX-License-Identifier: Apache-2.0
// Who sends what to whom so that a tensor that lies one way on the ranks of a ratio plan comes to lie another way.
//
// Cuts are gone through from the outermost inwards. At each cut a half gets from the other what it lacks of its new
// part: what nobody in it has, where the cut had split the tensor; the other half's summands, where both had some. What
// arrives is spread inside the half as its own cuts had spread the tensor: in the same shares, to every copy, to one of
// several summands.
#pragma once

#include "gpu_probe/step/ratio_tree.h"

namespace turnpoint::step {

using Boxes = std::vector<Region>;  ///< disjoint, none of them empty
Boxes without(const Boxes& boxes, const Boxes& taken);
Boxes common(const Boxes& a, const Boxes& b);
std::int64_t elements_of(const Boxes& boxes);

/// Elements that one rank adds to what another one has.
struct RatioMessage {
  std::uint32_t from = 0, to = 0;
  Region part;
  std::int64_t fresh = 0;  ///< of its elements those that the receiving half gets for the first time
};

struct RatioMove {
  std::vector<std::vector<RatioMessage>> at;  ///< [node]: between its halves
  std::vector<Region> room;                   ///< [rank]: holds all that it has, gets and wants; empty without messages
  std::int64_t fresh = 0, all = 0;            ///< elements in messages: those of the halves once, all
  bool empty() const { return all == 0; }
};

/// `to` has no summands. The tensor's parts on the whole are equal.
RatioMove move_between(const RatioTree& tree, const RatioLie& from, const RatioLie& to);

}  // namespace turnpoint::step
