// SPDX-License-Identifier: Apache-2.0
// Run-time choice of the instruction set for plain loops that the compiler vectorises. Sanitizers run before the loader's
// resolvers are safe, so their builds take the default.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNPOINT_VECTOR_CLONES
#elif defined(__clang__)
#define TURNPOINT_VECTOR_CLONES
#elif defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define TURNPOINT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TURNPOINT_VECTOR_CLONES
#endif
