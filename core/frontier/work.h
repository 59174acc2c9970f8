// SPDX-License-Identifier: Apache-2.0
// The measure of what a search did.
#pragma once

namespace turnpoint::frontier {

/// The same on every machine and on any number of threads.
struct Work {
  double products = 0;  ///< pairs of points that lists summed
  double terms = 0;     ///< entries of tables that lanes summed, sixteen slopes at once
};

}  // namespace turnpoint::frontier
