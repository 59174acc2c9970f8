// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/gpu_collectives.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

using cuda::kNcclFloat32;
using cuda::kNcclSum;
using cuda::NcclCommunicator;
using cuda::NcclId;
using cuda::Pointer;

namespace {

void* at(Pointer pointer) { return reinterpret_cast<void*>(pointer); }
std::size_t elements(std::int64_t count) { return static_cast<std::size_t>(count); }
Error gave_up_elsewhere() { return device_error(kAnotherRankGaveUp); }

}  // namespace

Expected<std::unique_ptr<GpuCollectives>> GpuCollectives::open(cuda::Gpu& gpu, Communicator& control,
                                                               Transport& transport) {
  std::unique_ptr<GpuCollectives> made(new GpuCollectives(gpu, control, transport));
  if (auto loaded = made->nccl_.open(); !loaded) return loaded.error();
  if (const cuda::Result result = gpu.driver.allocate(&made->token_, 256); result != 0)
    return gpu.failure(result, "allocating a token");
  if (const cuda::Result result = gpu.driver.fill_words(made->token_, 0, 64, gpu.stream); result != 0)
    return gpu.failure(result, "clearing a token");
  gpu.interrupted = [all = made.get()] { return all->interrupted(); };
  return made;
}

GpuCollectives::~GpuCollectives() {
  gpu_.interrupted = nullptr;
  const bool whole = !transport_.lost() && !gpu_.broken;  // else the others may never come
  for (const auto& [group, communicator] : communicators_) (whole ? nccl_.destroy : nccl_.abort)(communicator);
  if (token_ != 0) gpu_.driver.free(token_);
}

std::optional<Error> GpuCollectives::interrupted() {
  if (transport_.lost()) {
    abort_nccl();
    return gave_up_elsewhere();
  }
  for (const auto& [group, communicator] : communicators_) {
    int result = 0;
    nccl_.asynchronous_error(communicator, &result);
    if (result == 0 || result == cuda::kNcclInProgress) continue;
    const Error error = nccl_.failure(result, "exchanging between GPUs", communicator);
    abort();
    return error;
  }
  return std::nullopt;
}

void GpuCollectives::abort_nccl() {
  for (const auto& [group, communicator] : std::exchange(communicators_, {})) nccl_.abort(communicator);
}

void GpuCollectives::abort() {
  transport_.abort();
  abort_nccl();
}

/// Groups are joined when they are first used, by all members at the same place of what they do.
Expected<NcclCommunicator> GpuCollectives::communicator(const Group& group) {
  if (transport_.lost()) return gave_up_elsewhere();
  if (const auto found = communicators_.find(group); found != communicators_.end()) return found->second;
  // Joining may wait for the device, which must not wait for a member that is joining already.
  if (auto done = gpu_.wait("exchanging between GPUs"); !done) return done.error();
  NcclId id{};
  if (rank() == group.front())
    if (const int result = nccl_.get_id(&id); result != 0) {
      const Error error = nccl_.failure(result, "starting NCCL");
      abort();
      return error;
    }
  float words[sizeof id / sizeof(float)];
  std::memcpy(words, &id, sizeof id);
  if (!control_.broadcast(group, words, static_cast<std::int64_t>(std::size(words)), group.front()))
    return gave_up_elsewhere();
  std::memcpy(&id, words, sizeof id);
  const auto place = std::find(group.begin(), group.end(), rank()) - group.begin();
  NcclCommunicator joined = nullptr;
  if (const int result = nccl_.join(&joined, static_cast<int>(group.size()), id, static_cast<int>(place));
      result != 0) {
    const Error error = nccl_.failure(result, "joining GPUs by NCCL");
    abort();
    return error;
  }
  return communicators_[group] = joined;
}

Expected<void> GpuCollectives::queued(int result, const char* what, NcclCommunicator communicator) {
  if (result == 0) return {};
  const Error error = nccl_.failure(result, what, communicator);
  abort();
  return error;
}

Expected<void> GpuCollectives::all_reduce(const Group& group, Pointer in, Pointer out, std::int64_t count, int type) {
  const auto joined = communicator(group);
  if (!joined) return joined.error();
  return queued(nccl_.all_reduce(at(in), at(out), elements(count), type, kNcclSum, *joined, gpu_.stream), "all-reduce",
                *joined);
}

Expected<void> GpuCollectives::all_gather(const Group& group, Pointer in, Pointer out, std::int64_t count, int type) {
  const auto joined = communicator(group);
  if (!joined) return joined.error();
  return queued(nccl_.all_gather(at(in), at(out), elements(count), type, *joined, gpu_.stream), "all-gather", *joined);
}

Expected<void> GpuCollectives::reduce_scatter(const Group& group, Pointer in, Pointer out, std::int64_t count,
                                              int type) {
  const auto joined = communicator(group);
  if (!joined) return joined.error();
  return queued(nccl_.reduce_scatter(at(in), at(out), elements(count), type, kNcclSum, *joined, gpu_.stream),
                "reduce-scatter", *joined);
}

Expected<void> GpuCollectives::broadcast(const Group& group, Pointer data, std::int64_t count, int root) {
  const auto joined = communicator(group);
  if (!joined) return joined.error();
  const auto place = std::find(group.begin(), group.end(), root) - group.begin();
  return queued(
      nccl_.broadcast(at(data), at(data), elements(count), kNcclFloat32, static_cast<int>(place), *joined, gpu_.stream),
      "broadcast", *joined);
}

Expected<void> GpuCollectives::exchange(std::span<const GpuPart> parts, cuda::Stream stream) {
  if (!stream) stream = gpu_.stream;
  const auto joined = communicator(control_.all());
  if (!joined) return joined.error();
  int result = nccl_.group_start();
  for (const auto& part : parts) {
    if (result == 0 && part.out_count > 0)
      result = nccl_.send(at(part.out), elements(part.out_count), part.type, part.peer, *joined, stream);
    if (result == 0 && part.in_count > 0)
      result = nccl_.receive(at(part.in), elements(part.in_count), part.type, part.peer, *joined, stream);
  }
  const int ended = nccl_.group_end();
  return queued(result != 0 ? result : ended, "sending and receiving", *joined);
}

void describe_nccl(nlohmann::json& hello, const std::string& version, const std::optional<Error>& missing) {
  if (missing) {
    hello["missing"].push_back(missing->what);
    return;
  }
  hello["libraries"].push_back({{"name", "NCCL"}, {"version", version}});
  hello["transport"] = "NCCL";
}

Error without_gpu(const Error& error, int rank) {
  Error named = error;
  named.what = fmt::format("rank {}: {}", rank, error.what);
  if (error.what.starts_with("there is no GPU"))
    named.hint = "each rank takes the next GPU of its host: start fewer there, or check CUDA_VISIBLE_DEVICES";
  return named;
}

bool gather_devices(nlohmann::json& hello, Communicator& control) {
  constexpr std::size_t kMostText = 4096;
  const auto ranks = static_cast<std::size_t>(control.ranks());
  std::string mine = hello["devices"][hello.value("device", std::size_t(0))].dump();
  mine.resize(kMostText, ' ');
  std::vector<float> words(kMostText / sizeof(float)), all(words.size() * ranks);
  std::memcpy(words.data(), mine.data(), kMostText);
  if (!control.all_gather(control.all(), words.data(), all.data(), static_cast<std::int64_t>(words.size())))
    return false;
  hello["devices"] = nlohmann::json::array();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const char* text = reinterpret_cast<const char*>(all.data() + rank * words.size());
    hello["devices"].push_back(nlohmann::json::parse(text, text + kMostText, nullptr, false));
    if (hello["devices"].back().is_object()) hello["devices"].back()["index"] = rank;
  }
  hello["device"] = 0;
  return true;
}

Expected<void> GpuCollectives::line_up() { return all_reduce(control_.all(), token_, token_, 1); }

}  // namespace turnpoint::probe
