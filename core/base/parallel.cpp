// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
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
    for (;;) {
      const std::size_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      const std::size_t end = std::min(count, begin + chunk);
      for (std::size_t i = begin; i < end; ++i) (*body)(i, worker);
    }
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

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = std::min(threads, kMaxThreads);
  for (int i = 1; i < threads; ++i) state_->threads.emplace_back([s = state_.get(), i] { s->run(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->quit = true;
  }
  state_->wake.notify_all();
  state_->threads.clear();
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
    for (std::size_t i = 0; i < count; ++i) body(i, 0);
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
    s.body = nullptr;
  }
  s.owner.store(std::thread::id(), std::memory_order_release);
}

}  // namespace turnpoint
