// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/mpi/module.h"

#include <mpi.h>
#include <algorithm>
#include <map>
#include <vector>

namespace turnpoint::probe {

namespace {

constexpr long kMost = 1L << 30;  // elements or bytes of one call, whose counts are ints
constexpr int kTag = 1;

MPI_Comm everyone = MPI_COMM_NULL;
std::map<std::vector<int>, MPI_Comm>& groups() {
  static std::map<std::vector<int>, MPI_Comm> made;
  return made;
}

void name_of_library(char* text, int length) {
  std::vector<char> words(MPI_MAX_LIBRARY_VERSION_STRING + 1, '\0');
  int size = 0;
  MPI_Get_library_version(words.data(), &size);
  int i = 0;
  for (; i + 1 < length && words[static_cast<std::size_t>(i)] != '\0' && words[static_cast<std::size_t>(i)] != '\n';
       ++i)
    text[i] = words[static_cast<std::size_t>(i)];
  if (length > 0) text[i] = '\0';
}

int begin(int rank, int* size) {
  int given = 0;
  if (const int failed = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given)) return failed;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int failed = MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &everyone)) return failed;
  return MPI_Comm_size(everyone, size);
}

void end() { MPI_Finalize(); }

int of_group(const int* ranks, int members, MPI_Comm& comm) {
  auto& known = groups()[std::vector<int>(ranks, ranks + members)];
  if (known == MPI_Comm()) {
    MPI_Group all, some;
    MPI_Comm_group(everyone, &all);
    MPI_Group_incl(all, members, ranks, &some);
    const int failed = MPI_Comm_create_group(everyone, some, kTag, &known);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    if (failed) return failed;
  }
  comm = known;
  return 0;
}

int barrier(const int* group, int members) {
  MPI_Comm comm;
  if (const int failed = of_group(group, members, comm)) return failed;
  return MPI_Barrier(comm);
}

int all_reduce(const int* group, int members, float* data, long count) {
  MPI_Comm comm;
  int failed = of_group(group, members, comm);
  for (long at = 0; at < count && !failed; at += kMost)
    failed =
        MPI_Allreduce(MPI_IN_PLACE, data + at, static_cast<int>(std::min(kMost, count - at)), MPI_FLOAT, MPI_SUM, comm);
  return failed;
}

int all_gather(const int* group, int members, int me, const float* in, float* out, long count) {
  MPI_Comm comm;
  if (const int failed = of_group(group, members, comm)) return failed;
  const bool there = in == out + me * count;
  return MPI_Allgather(there ? MPI_IN_PLACE : in, static_cast<int>(count), MPI_FLOAT, out, static_cast<int>(count),
                       MPI_FLOAT, comm);
}

int reduce_scatter(const int* group, int members, const float* in, float* out, long count) {
  MPI_Comm comm;
  if (const int failed = of_group(group, members, comm)) return failed;
  // The sum may be wanted in this rank's own part of `in`, which MPI does not allow.
  std::vector<float> sum(static_cast<std::size_t>(count));
  const int failed = MPI_Reduce_scatter_block(in, sum.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm);
  std::copy(sum.begin(), sum.end(), out);
  return failed;
}

int all_to_all(const int* group, int members, const float* in, float* out, long count) {
  MPI_Comm comm;
  if (const int failed = of_group(group, members, comm)) return failed;
  return MPI_Alltoall(in, static_cast<int>(count), MPI_FLOAT, out, static_cast<int>(count), MPI_FLOAT, comm);
}

int broadcast(const int* group, int members, float* data, long count, int root_place) {
  MPI_Comm comm;
  int failed = of_group(group, members, comm);
  for (long at = 0; at < count && !failed; at += kMost)
    failed = MPI_Bcast(data + at, static_cast<int>(std::min(kMost, count - at)), MPI_FLOAT, root_place, comm);
  return failed;
}

int exchange(int parts, const int* peers, const void* const* out, const long* out_bytes, void* const* in,
             const long* in_bytes) {
  std::vector<MPI_Request> requests;
  int failed = 0;
  for (int i = 0; i < parts && !failed; ++i)
    for (long at = 0; at < in_bytes[i] && !failed; at += kMost)
      failed = MPI_Irecv(static_cast<char*>(in[i]) + at, static_cast<int>(std::min(kMost, in_bytes[i] - at)), MPI_BYTE,
                         peers[i], kTag, everyone, &requests.emplace_back());
  for (int i = 0; i < parts && !failed; ++i)
    for (long at = 0; at < out_bytes[i] && !failed; at += kMost)
      failed = MPI_Isend(static_cast<const char*>(out[i]) + at, static_cast<int>(std::min(kMost, out_bytes[i] - at)),
                         MPI_BYTE, peers[i], kTag, everyone, &requests.emplace_back());
  if (failed) return failed;
  return MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

constexpr MpiModule kModule{kMpiModuleVersion, name_of_library, begin,      end,       barrier, all_reduce,
                            all_gather,        reduce_scatter,  all_to_all, broadcast, exchange};

}  // namespace

}  // namespace turnpoint::probe

extern "C" __attribute__((visibility("default"))) const turnpoint::probe::MpiModule* turnpoint_probe_mpi() {
  return &turnpoint::probe::kModule;
}
