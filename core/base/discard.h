// SPDX-License-Identifier: Apache-2.0
// Freeing large memory: at once, or behind the caller's back.
#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace turnpoint {

/// Leaves a container empty and without memory. Assigning {} does not: it assigns an empty list and keeps the capacity.
template <class Container>
void free_memory(Container& container) {
  Container().swap(container);
}

/// Giving a gigabyte, or a million small blocks, back takes as long as a user waits for a cancel or a frame.
template <class T>
void discard(T&& large) {
  try {
    std::thread([gone = std::move(large)] {}).detach();
  } catch (const std::system_error&) {  // no thread to be had: it is freed by now, and the caller has waited
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace turnpoint
