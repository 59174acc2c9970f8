// SPDX-License-Identifier: Apache-2.0
// Limits on time and memory are those of the released program; sanitizers make it several times slower and larger.
#pragma once

namespace turnpoint::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSanitizerFactor = 10;
#else
inline constexpr int kSanitizerFactor = 1;
#endif
inline constexpr bool kSanitized = kSanitizerFactor > 1;
/// Why a test that limits a program's memory or files is skipped then.
inline constexpr const char* kOwnLimits =
    "sanitizers reserve terabytes of addresses, and need a pipe to look at what they complain of";

}  // namespace turnpoint::test
