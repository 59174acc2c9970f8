// SPDX-License-Identifier: Apache-2.0
// What turnpoint-probe asks of an MPI library. The libraries' binary interfaces differ, so the calls to them are a
// small module of their own, built where an MPI is installed and loaded at run time where it is there.
#pragma once

namespace turnpoint::probe {

/// Every call returns 0, or an MPI error code. Groups are ranks of this run, ascending; all members call. Counts are
/// elements of float or, where they say so, bytes.
struct MpiModule {
  int version;  ///< kMpiModuleVersion
  /// The library's own words, cut at `length`; may be asked before begin().
  void (*name_of_library)(char* text, int length);
  /// Joins with all other processes that the launcher has started; `rank` orders them. `size`: how many there are.
  int (*begin)(int rank, int* size);
  void (*end)();
  int (*barrier)(const int* group, int members);
  int (*all_reduce)(const int* group, int members, float* data, long count);
  int (*all_gather)(const int* group, int members, int me, const float* in, float* out, long count);
  int (*reduce_scatter)(const int* group, int members, const float* in, float* out, long count);
  int (*all_to_all)(const int* group, int members, const float* in, float* out, long count);
  int (*broadcast)(const int* group, int members, float* data, long count, int root_place);
  /// Sends and receives bytes, to and from several ranks at once.
  int (*exchange)(int parts, const int* peers, const void* const* out, const long* out_bytes, void* const* in,
                  const long* in_bytes);
};

inline constexpr int kMpiModuleVersion = 1;
inline constexpr char kMpiModuleFile[] = "turnpoint-probe-mpi.so";
inline constexpr char kMpiModuleEntry[] = "turnpoint_probe_mpi";  ///< const MpiModule* (*)()

}  // namespace turnpoint::probe
