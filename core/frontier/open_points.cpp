// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/open_points.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TURNPOINT_X86_KERNELS
#include <immintrin.h>
#endif

namespace turnpoint::frontier::detail {

std::uint64_t open_points_scalar(const std::int64_t* memory, const double* time, std::size_t count, std::int64_t m0,
                                 double t0, const OpenLimits& open) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t k = static_cast<std::uint64_t>(m0 + memory[i]) >> open.shift;
    if (k < open.buckets && t0 + time[i] < open.limits[k]) mask |= std::uint64_t(1) << i;
  }
  return mask;
}

#ifdef TURNPOINT_X86_KERNELS

namespace {

__attribute__((target("avx512f"))) std::uint64_t open_points_avx512(const std::int64_t* memory, const double* time,
                                                                    std::size_t count, std::int64_t m0, double t0,
                                                                    const OpenLimits& open) {
  const __m512i add = _mm512_set1_epi64(m0), end = _mm512_set1_epi64(static_cast<long long>(open.buckets));
  const __m512d start = _mm512_set1_pd(t0), never = _mm512_setzero_pd();
  const __m128i shift = _mm_cvtsi32_si128(open.shift);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count; i += 8) {
    const auto lanes = static_cast<__mmask8>(count - i < 8 ? (1u << (count - i)) - 1 : 0xff);
    const __m512i k = _mm512_maskz_srl_epi64(
        lanes, _mm512_maskz_add_epi64(lanes, _mm512_maskz_loadu_epi64(lanes, memory + i), add), shift);
    const __mmask8 inside = _mm512_mask_cmplt_epu64_mask(lanes, k, end);
    const __m512d t = _mm512_add_pd(_mm512_maskz_loadu_pd(lanes, time + i), start);
    const __m512d limit = _mm512_mask_i64gather_pd(never, inside, k, open.limits, 8);
    mask |= std::uint64_t(_mm512_mask_cmp_pd_mask(inside, t, limit, _CMP_LT_OQ)) << i;
  }
  return mask;
}

__attribute__((target("avx2"))) std::uint64_t open_points_avx2(const std::int64_t* memory, const double* time,
                                                               std::size_t count, std::int64_t m0, double t0,
                                                               const OpenLimits& open) {
  const __m256i add = _mm256_set1_epi64x(m0), end = _mm256_set1_epi64x(static_cast<long long>(open.buckets)),
                before = _mm256_set1_epi64x(-1);
  const __m256d start = _mm256_set1_pd(t0), never = _mm256_setzero_pd();
  const __m128i shift = _mm_cvtsi32_si128(open.shift);
  std::uint64_t mask = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m256i sum = _mm256_add_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(memory + i)), add);
    const __m256i k = _mm256_srl_epi64(sum, shift);
    // Comparisons are signed here; a negative sum is above every bucket, whatever the shift makes of it.
    const __m256d inside =
        _mm256_castsi256_pd(_mm256_and_si256(_mm256_cmpgt_epi64(sum, before), _mm256_cmpgt_epi64(end, k)));
    const __m256d t = _mm256_add_pd(_mm256_loadu_pd(time + i), start);
    const __m256d limit = _mm256_mask_i64gather_pd(never, open.limits, k, inside, 8);
    const int bits = _mm256_movemask_pd(_mm256_and_pd(inside, _mm256_cmp_pd(t, limit, _CMP_LT_OQ)));
    mask |= static_cast<std::uint64_t>(bits) << i;
  }
  if (i < count) mask |= open_points_scalar(memory + i, time + i, count - i, m0, t0, open) << i;
  return mask;
}

}  // namespace

#endif

std::vector<OpenPoints> supported_open_points() {
  std::vector<OpenPoints> kernels;
#ifdef TURNPOINT_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) kernels.push_back(open_points_avx512);
  if (__builtin_cpu_supports("avx2")) kernels.push_back(open_points_avx2);
#endif
  kernels.push_back(open_points_scalar);
  return kernels;
}

}  // namespace turnpoint::frontier::detail
