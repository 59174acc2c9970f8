// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace turnpoint::step {

namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded(std::size_t bytes) { return std::max<std::size_t>(1, (bytes + kLine - 1) / kLine) * kLine; }

}  // namespace

Buffers& Buffers::of_this_rank() {
  thread_local Buffers mine;
  return mine;
}

Buffers& Buffers::scratch_of_this_rank() {
  thread_local Buffers mine;
  return mine;
}

Buffers::~Buffers() { release(); }

void Buffers::release() {
  for (auto& [bytes, list] : free_)
    for (void* data : list) std::free(data);
  free_.clear();
}

void* Buffers::take(std::size_t bytes) {
  bytes = rounded(bytes);
  void* data = nullptr;
  auto& list = free_[bytes];
  if (!list.empty()) {
    data = list.back();
    list.pop_back();
  } else {
    data = std::aligned_alloc(kLine, bytes);
    if (!data) {
      release();
      data = std::aligned_alloc(kLine, bytes);
    }
    if (!data) throw std::bad_alloc();
  }
  now_ += static_cast<std::int64_t>(bytes);
  peak_ = std::max(peak_, now_);
  return data;
}

void Buffers::give(void* data, std::size_t bytes) {
  bytes = rounded(bytes);
  now_ -= static_cast<std::int64_t>(bytes);
  free_[bytes].push_back(data);
}

}  // namespace turnpoint::step
