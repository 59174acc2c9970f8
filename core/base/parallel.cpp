// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace turnpoint {

struct ThreadPool::State {
  std::mutex entry;                      // held for the whole of a loop: one loop at a time
  std::atomic<std::thread::id> owner{};  // who runs the current loop besides the pool's threads
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::vector<std::jthread> threads;
  const std::function<void(std::size_t, int)>* body = nullptr;
  std::size_t count = 0, chunk = 1;
  std::atomic<std::size_t> next{0};
  std::uint64_t generation = 0;
  int active = 0;
  bool quit = false;
  std::exception_ptr thrown;  // the first of the running loop

  // Which worker of the running loop this thread is; -1 if it takes no part in it.
  int current_worker() const {
    const auto me = std::this_thread::get_id();
    const auto running = owner.load(std::memory_order_acquire);
    if (running == std::thread::id()) return -1;
    if (running == me) return 0;
    for (std::size_t i = 0; i < threads.size(); ++i)
      if (threads[i].get_id() == me) return static_cast<int>(i) + 1;
    return -1;
  }

  void drain(int worker) {
    try {
      for (;;) {
        const std::size_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= count) return;
        const std::size_t end = std::min(count, begin + chunk);
        for (std::size_t i = begin; i < end; ++i) (*body)(i, worker);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);  // what has not begun is not needed any more
      std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  }

  // As many as can be had: a limit of processes or of address space leaves fewer, and the same results.
  void start(int wanted) {
    threads.reserve(static_cast<std::size_t>(std::max(0, wanted - 1)));
    try {
      for (int i = 1; i < wanted; ++i) threads.emplace_back([this, i] { run(i); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  // A loop's exception reaches whoever started the loop, and leaves the pool fit for the next one.
  void rethrow() {
    std::exception_ptr first;
    {
      std::lock_guard lock(mutex);
      first = std::exchange(thrown, nullptr);
    }
    if (first) std::rethrow_exception(first);
  }

  void run(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return quit || generation != seen; });
        if (quit) return;
        seen = generation;
      }
      drain(worker);
      std::lock_guard lock(mutex);
      if (--active == 0) finished.notify_all();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) { state_->start(affordable(threads)); }

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->quit = true;
  }
  state_->wake.notify_all();
  state_->threads.clear();
}

// Under a limit of address space (ulimit -v) threads take a quarter of it at most: each reserves its stack, and memory
// of its own for small blocks, which some allocators cannot do without.
int ThreadPool::affordable(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = std::min(threads, kMaxThreads);
  rlimit space{}, stack{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return threads;
  constexpr rlim_t kMostStack = rlim_t(64) << 20, kOwnBlocks = rlim_t(8) << 20;
  const bool known = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY;
  const rlim_t each = (known ? std::min(stack.rlim_cur, kMostStack) : rlim_t(8) << 20) + kOwnBlocks;
  return static_cast<int>(std::clamp<rlim_t>(space.rlim_cur / 4 / each, 1, static_cast<rlim_t>(threads)));
}

int ThreadPool::threads() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t, int)>& body, std::size_t chunk) {
  if (count == 0) return;
  State& s = *state_;
  const int nested_in = s.current_worker();
  if (nested_in >= 0) {
    for (std::size_t i = 0; i < count; ++i) body(i, nested_in);
    return;
  }
  std::lock_guard one_loop(s.entry);
  s.owner.store(std::this_thread::get_id(), std::memory_order_release);
  if (s.threads.empty() || count <= chunk) {
    s.body = &body;
    s.count = s.chunk = count;
    s.next.store(0, std::memory_order_relaxed);
    s.drain(0);
  } else {
    {
      std::lock_guard lock(s.mutex);
      s.body = &body;
      s.count = count;
      s.chunk = std::max<std::size_t>(1, chunk);
      s.next.store(0, std::memory_order_relaxed);
      s.active = static_cast<int>(s.threads.size());
      ++s.generation;
    }
    s.wake.notify_all();
    s.drain(0);
    std::unique_lock lock(s.mutex);
    s.finished.wait(lock, [&] { return s.active == 0; });
  }
  s.body = nullptr;
  s.owner.store(std::thread::id(), std::memory_order_release);
  s.rethrow();
}

}  // namespace turnpoint
