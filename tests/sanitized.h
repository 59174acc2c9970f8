// SPDX-License-Identifier: Apache-2.0
// Limits on time and memory are those of the released program; sanitizers make it several times slower and larger.
#pragma once

namespace turnpoint::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSanitizerFactor = 10;
#else
inline constexpr int kSanitizerFactor = 1;
#endif

}  // namespace turnpoint::test
