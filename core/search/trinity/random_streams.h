// SPDX-License-Identifier: Apache-2.0
// A stream of random numbers of its own for every purpose, so that none depends on how much another drew.
#pragma once

#include <cstdint>

#include "core/search/placement/random.h"

namespace turnpoint::trinity {

inline placement::Random stream_of(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number = 0) {
  placement::Random mixed(seed);
  placement::Random further(mixed.next() ^ purpose);
  return placement::Random(further.next() ^ (number * 0xD6E8FEB86659FD93ull));
}

}  // namespace turnpoint::trinity
