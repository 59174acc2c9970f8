// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace turnpoint::step {

namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded(std::size_t bytes) { return std::max<std::size_t>(1, (bytes + kLine - 1) / kLine) * kLine; }

void* allocate_here(std::size_t bytes) { return std::aligned_alloc(kLine, bytes); }

}  // namespace

Buffers::Buffers() : Buffers(allocate_here, std::free) {}

Buffers& Buffers::of_this_rank() {
  thread_local Buffers mine;
  return mine;
}

Buffers& Buffers::scratch_of_this_rank() {
  thread_local Buffers mine;
  return mine;
}

Buffers& Buffers::outside_of_this_rank() {
  thread_local Buffers mine;
  return mine;
}

Buffers::~Buffers() { release(); }

void Buffers::release() {
  for (auto& [bytes, list] : free_)
    for (void* data : list) give_back_(data);
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
    data = allocate_(bytes);
    if (!data) {
      release();
      data = allocate_(bytes);
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
