// SPDX-License-Identifier: Apache-2.0
// What of a device's numbers its caches hold while a training step goes round and round through them
// (resources/manual/costs.md, 3).
#pragma once

#include <optional>
#include <span>

namespace turnpoint {

/// Share of the numbers that are not in the cache when a program comes back to them, where it goes round and round
/// through `set_bytes` and the cache of `cache_bytes` evicts at random. Between two visits to a line m W lines are
/// brought in, each of which evicts it with a chance of 1 to C, so that m = 1 - exp(-m W / C); 0 up to W = C.
double miss_share(double set_bytes, double cache_bytes);

/// How long a pass through so many bytes takes, again and again.
struct CachePass {
  double bytes = 0, time_s = 0;
};

/// Of times that follow bytes * (warm + miss_share(bytes, cache) * (cold - warm)).
struct CacheFit {
  double cache_bytes = 0, warm_s_per_byte = 0, cold_s_per_byte = 0;
};

/// Least squares of relative errors. Nothing where there are fewer than four passes, or where those outside the cache
/// are not slower by a fifth: then no cache can be seen.
std::optional<CacheFit> fit_cache(std::span<const CachePass> passes);

}  // namespace turnpoint
