// SPDX-License-Identifier: Apache-2.0
// Settings of jemalloc, which reads this name from the program that it is linked into.

// Searches free hundreds of megabytes at their end, on threads that allocate nothing afterwards. Without a thread of its
// own jemalloc gives such pages back only when those threads allocate again; after fifty models the window held a
// gigabyte. Pages that are only marked as free (muzzy) still count as the program's.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:3000,muzzy_decay_ms:0";
}
