// SPDX-License-Identifier: Apache-2.0
// AccPar (Song et al., HPCA 2020), HyPar (Song et al., HPCA 2019) and One Weird Trick (Krizhevsky, arXiv 1404.5997) as
// methods: the devices are cut into halves until one is left, and at every cut each layer is partitioned by its batch,
// its reduction or its output (states.h). What is chosen depends on the methods' own objectives. One answer each: of
// equal devices in powers of two a sharding plan, priced like every other (equal_halves.h); of others a ratio plan, in
// which unlike devices have shares of their own (unequal_halves.h).
#pragma once

#include "core/search/method/method.h"

namespace turnpoint::search {

Method accpar_method();  ///< "programme=published|exact", "objective=volume|time", "ratio=..."
Method hypar_method();
Method owt_method();

}  // namespace turnpoint::search
