// SPDX-License-Identifier: Apache-2.0
// The switch of `packaging/check --mutants`: which one of the slips in slips.json a process makes. Only the copy of the
// sources that run.py writes includes this header; no other build knows of it.
#pragma once

#include <cstdlib>

namespace turnpoint::mutants {

/// Number of the slip that the environment asks for; 0: none.
inline const int chosen = [] {
  const char* text = std::getenv("TURNPOINT_SLIP");
  return text ? std::atoi(text) : 0;
}();

}  // namespace turnpoint::mutants
