// SPDX-License-Identifier: Apache-2.0
// One binary for every x86-64: a function marked so is compiled three times and chosen at load time. Sanitizers run
// before the choice is made and cannot stand it; clang spells it differently.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TURNPOINT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TURNPOINT_CLONES
#endif
