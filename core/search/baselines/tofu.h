// SPDX-License-Identifier: Apache-2.0
// ToFu (Wang, Huang and Li, EuroSys 2019, arXiv 1807.08887) as the TensorOpt study simulates it
// (resources/manual/mathematics.md, 1.7): every tensor is split over all devices and nothing is replicated. Operators
// repeat no work; tensors between them, weights, gradients and optimizer state are stored as shards, fetched by whoever
// computes with them, in backward again, and only the shard counts as memory. Of all such plans the one with the least
// network time; of equals, the fastest.
//
// A tensor that cannot be divided that often is split over as many axes as divide it. Data is loaded as by every other
// method. A weight used in two places (tied embeddings) travels to the second one as it does in every plan of ours.
//
// Where the scenario switches update sharding off, nothing is gathered on demand that `ft` could not gather, too: of
// the configurations without repeated work those that split an operator's weights most, readers' copies gathered again
// in backward. But for copies that several readers share that is a part of what `ft` searches, and slow, as the study
// says.
#pragma once

#include "core/search/method/method.h"

namespace turnpoint::search {

Method tofu_method();

}  // namespace turnpoint::search
