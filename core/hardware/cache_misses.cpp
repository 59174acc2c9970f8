// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/cache_misses.h"

#include <algorithm>
#include <cmath>

namespace turnpoint {

double miss_share(double set_bytes, double cache_bytes) {
  if (!(cache_bytes > 0)) return 1;
  const double ratio = set_bytes / cache_bytes;
  if (!(ratio > 1)) return 0;
  // x -> 1 - exp(-ratio x) - x is positive below its root and negative above, where it falls ever faster: Newton's
  // method from the right never passes the root.
  double missed = 1;
  for (int i = 0; i < 64; ++i) {
    const double left = std::exp(-ratio * missed), off = 1 - left - missed, slope = ratio * left - 1;
    if (!(slope < 0)) break;
    const double next = missed - off / slope;
    if (!(next < missed)) break;
    missed = next;
  }
  return std::clamp(missed, 0.0, 1.0);
}

namespace {

constexpr std::size_t kLeastPasses = 4;  // three unknowns, and one to see that they hold
constexpr double kVisible = 1.2;         // repeated times of passes differ by a tenth on a host that is shared
/// Caches are tried in steps of 2 %, finer than repeated times of passes can tell apart.
constexpr double kStep = 1.02;

struct Candidate {
  CacheFit fit;
  double error = 0;
};

/// Both rates under a given cache: the normal equations of two unknowns.
std::optional<Candidate> rates_with(std::span<const CachePass> passes, double cache_bytes) {
  double hh = 0, hm = 0, mm = 0, h1 = 0, m1 = 0;
  for (const CachePass& pass : passes) {
    const double weight = pass.bytes / pass.time_s, missed = miss_share(pass.bytes, cache_bytes);
    const double hit = (1 - missed) * weight, miss = missed * weight;
    hh += hit * hit, hm += hit * miss, mm += miss * miss, h1 += hit, m1 += miss;
  }
  const double determinant = hh * mm - hm * hm;
  if (!(determinant > 1e-12 * hh * mm)) return std::nullopt;  // all on one side of the cache, but for rounding
  Candidate made;
  made.fit = {cache_bytes, (h1 * mm - m1 * hm) / determinant, (m1 * hh - h1 * hm) / determinant};
  if (!(made.fit.warm_s_per_byte > 0)) return std::nullopt;
  for (const CachePass& pass : passes) {
    const double missed = miss_share(pass.bytes, cache_bytes);
    const double predicted = pass.bytes * ((1 - missed) * made.fit.warm_s_per_byte + missed * made.fit.cold_s_per_byte);
    made.error += std::pow(predicted / pass.time_s - 1, 2);
  }
  return made;
}

}  // namespace

std::optional<CacheFit> fit_cache(std::span<const CachePass> passes) {
  if (passes.size() < kLeastPasses) return std::nullopt;
  const auto by_bytes = [](const CachePass& a, const CachePass& b) { return a.bytes < b.bytes; };
  const auto [least, most] = std::ranges::minmax_element(passes, by_bytes);
  std::optional<Candidate> best;
  for (double cache = least->bytes; cache < most->bytes; cache *= kStep)
    if (const auto tried = rates_with(passes, cache); tried && (!best || tried->error < best->error)) best = tried;
  if (!best || best->fit.cold_s_per_byte < kVisible * best->fit.warm_s_per_byte) return std::nullopt;
  return best->fit;
}

}  // namespace turnpoint
