// SPDX-License-Identifier: Apache-2.0
// Threads of a block: each with a stack of its own, on one thread of the machine, so that they can wait for each other.
#pragma once

#include <sys/mman.h>
#include <ucontext.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace emulated_gpu {

#if defined(__x86_64__)
// The context is what a call preserves: on the stack, so that a pointer to it is all of it.
extern "C" void emulated_gpu_switch(void** save, void* load);
asm(R"(
.text
.globl emulated_gpu_switch
.hidden emulated_gpu_switch
.type emulated_gpu_switch, @function
emulated_gpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulated_gpu_switch, .-emulated_gpu_switch
)");
#endif

class Fibers {
 public:
  enum class State { idle, waiting };

  /// Runs body(0), body(1), ... to their ends; false: some waited at a barrier to which others never came.
  bool run(unsigned count, const std::function<void(unsigned)>& body, const std::function<void(unsigned)>& resumed) {
    while (all_.size() < count) make();
    body_ = &body;
    std::vector<unsigned> left(count);
    for (unsigned i = 0; i < count; ++i) left[i] = i;
    bool together = true;
    while (!left.empty()) {
      std::vector<unsigned> waiting;
      for (const unsigned i : left) {
        resumed(i);
        current_ = i;
        enter(*all_[i]);
        if (all_[i]->state == State::waiting) waiting.push_back(i);
      }
      if (!waiting.empty() && waiting.size() != left.size()) together = false;
      left = std::move(waiting);
    }
    return together;
  }
  /// From within a body.
  void wait() {
    all_[current_]->state = State::waiting;
    leave(*all_[current_]);
  }

 private:
  static constexpr std::size_t kStack = std::size_t(64) << 10;
  struct Fiber {
    Fibers* owner = nullptr;
    State state = State::idle;
    void* stack = nullptr;
    void* context = nullptr;
    ucontext_t slow{};
  };

  void live() {
    for (;;) {
      const unsigned i = current_;
      (*body_)(i);
      all_[i]->state = State::idle;
      leave(*all_[i]);
    }
  }
  static inline thread_local Fibers* starting_ = nullptr;
  static void begin() { starting_->live(); }

  void make() {
    auto fiber = std::make_unique<Fiber>();
    fiber->owner = this;
    fiber->stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fiber->stack == MAP_FAILED) std::abort();
#if defined(__x86_64__)
    auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(fiber->stack) + kStack) - 2;
    *top = reinterpret_cast<std::uintptr_t>(&Fibers::begin);
    for (int i = 1; i <= 6; ++i) top[-i] = 0;
    fiber->context = top - 6;
#else
    getcontext(&fiber->slow);
    fiber->slow.uc_stack.ss_sp = fiber->stack;
    fiber->slow.uc_stack.ss_size = kStack;
    makecontext(&fiber->slow, &Fibers::begin, 0);
#endif
    all_.push_back(std::move(fiber));
  }
#if defined(__x86_64__)
  void enter(Fiber& fiber) {
    starting_ = this;
    emulated_gpu_switch(&outside_, fiber.context);
  }
  void leave(Fiber& fiber) { emulated_gpu_switch(&fiber.context, outside_); }
  void* outside_ = nullptr;
#else
  void enter(Fiber& fiber) {
    starting_ = this;
    swapcontext(&outside_, &fiber.slow);
  }
  void leave(Fiber& fiber) { swapcontext(&fiber.slow, &outside_); }
  ucontext_t outside_{};
#endif

  std::vector<std::unique_ptr<Fiber>> all_;
  const std::function<void(unsigned)>* body_ = nullptr;
  unsigned current_ = 0;
};

}  // namespace emulated_gpu
