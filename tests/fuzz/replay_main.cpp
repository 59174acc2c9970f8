// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of its corpus folders, then seeded mutations of them that know how
// such files are built (fuzz/mutation.h), for some seconds of processor time. Not coverage-guided, but every build runs
// it; the `fuzz` preset links the same targets with libFuzzer. An input that takes more processor time or memory than
// any file of its size should, or that ends the program, is left in the folder where the program was started.
//     TARGET [--seconds S] [--seed N] [FILE...]     with files: these alone, as they are
#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <new>

#include "fuzz/mutation.h"
#include "fuzz/seed_corpus.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

namespace {

constexpr std::uintmax_t kLargestSeed = 1u << 20;
/// Of one input, which has at most 4 MiB. Real models take a tenth of the first.
constexpr int kProcessorSeconds = kSanitized ? 100 : 10;
constexpr std::size_t kMemory = std::size_t(1) << 30;

const std::string* current = nullptr;  ///< the input that is being read
std::atomic<std::size_t> held = 0;     ///< bytes of all that is allocated

void say(const char* words) { (void)!write(STDERR_FILENO, words, std::strlen(words)); }

/// Leaves the input behind and ends; called from handlers, so by system calls alone.
[[noreturn]] void give_up(const char* why) {
  say("fuzz: ");
  say(why);
  if (current) {
    const char* name = "fuzz_failed_input";
    if (FILE* file = std::fopen(name, "wb")) {
      std::fwrite(current->data(), 1, current->size(), file);
      std::fclose(file);
      say("; the input is in ");
      say(name);
    }
  }
  say("\n");
  _exit(1);
}

void on_signal(int number) {
  switch (number) {
    case SIGPROF: give_up("an input takes too much processor time");
    case SIGABRT: give_up("a check failed (SIGABRT)");
    case SIGSEGV: give_up("a wrong address (SIGSEGV)");
    case SIGFPE: give_up("a division by zero (SIGFPE)");
    default: give_up("ended by a signal");
  }
}

void run(const std::string& input) {
  current = &input;
  itimerval limit{};
  limit.it_value.tv_sec = kProcessorSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);  // counts what this process computes, not what others leave of the machine
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  limit = {};
  setitimer(ITIMER_PROF, &limit, nullptr);
  current = nullptr;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

std::vector<std::string> read_corpus() {
  std::vector<std::string> corpus;
  for (const auto& folder : turnpoint::test::seed_folders()) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.file_size() <= kLargestSeed) files.push_back(entry.path());
    std::sort(files.begin(), files.end());  // so that a seed number means the same everywhere
    for (const auto& file : files) corpus.push_back(content_of(file));
  }
  if (turnpoint_fuzz_seeds) turnpoint_fuzz_seeds(corpus);
  if (corpus.empty()) corpus.emplace_back("{}");
  return corpus;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

// What is allocated is counted, but under a sanitizer, which does that itself.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  if (size > kMemory || held > kMemory) {
    if (current) give_up("an input takes too much memory");
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  held += malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory) held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

int main(int argc, char** argv) {
  double seconds = 5;
  std::uint64_t seed = 1;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
    else if (!std::strcmp(argv[i], "--seed") && i + 1 < argc) seed = std::strtoull(argv[++i], nullptr, 10);
    else files.emplace_back(argv[i]);
  }
  if (!kSanitized)  // which says more of a wrong address than its number
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, on_signal);
  signal(SIGPROF, on_signal);

  for (const auto& file : files) run(content_of(file));
  if (!files.empty()) return 0;
  const auto corpus = read_corpus();
  std::vector<std::unique_ptr<const turnpoint::test::Seed>> seeds;
  for (const auto& input : corpus) {
    run(input);
    seeds.push_back(turnpoint::test::take_apart(input));
  }
  turnpoint::test::Random random(seed);
  std::size_t runs = corpus.size();
  for (const double begin = processor_seconds(); processor_seconds() - begin < seconds; ++runs) {
    const std::size_t at = turnpoint::test::below(random, corpus.size());
    const bool plain = turnpoint::test::below(random, 4) == 0;
    run(plain ? turnpoint::test::mutated_bytes(corpus[at], random) : turnpoint::test::mutant_of(*seeds[at], random));
  }
  std::printf("%zu inputs from %zu corpus files, seed %llu\n", runs, corpus.size(),
              static_cast<unsigned long long>(seed));
  return 0;
}
