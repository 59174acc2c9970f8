// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "app/cli/commands.h"
#include "core/base/file_writer.h"

namespace turnpoint::cli {

namespace {

[[noreturn]] void end_at_once() {
  remove_unfinished_files();
  std::_Exit(kInterrupted);
}

std::stop_source& interrupt_source() {
  static std::stop_source source;
  return source;
}

std::atomic<bool> g_takes_stops = false;  ///< the command has asked for a stop token and will end by itself
std::mutex g_terminal;                    ///< progress and the watcher's word share a line

void wait_for_interrupts(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  interrupt_source().request_stop();
  // Nothing of this program's is left behind by its end: unfinished files have no name yet, or go here.
  if (!g_takes_stops) end_at_once();
  {
    const std::lock_guard lock(g_terminal);
    if (isatty(STDERR_FILENO)) std::fputs("\r\033[K", stderr);
    std::fputs("turnpoint-cli: interrupting; once more to end at once\n", stderr);
  }
  sigwait(&signals, &signal);
  end_at_once();
}

void print_progress(const Progress& progress) {
  const std::lock_guard lock(g_terminal);
  if (progress.fraction < 0)
    std::fprintf(stderr, "\r\033[K%s", progress.phase.c_str());
  else
    std::fprintf(stderr, "\r\033[K%s %.0f%%", progress.phase.c_str(),
                 100 * std::min(progress.fraction, 0.99));  // all of it is the answer
  std::fflush(stderr);
}

bool g_progress_shown = false;
std::FILE* g_results = nullptr;  ///< standard output as the command found it; null: still stdout

/// Libraries print, too (METIS does where parts come out empty): what they say goes to standard error, so that
/// standard output holds the result and nothing else.
void keep_results_apart() {
  if (g_results) return;
  const int results = dup(STDOUT_FILENO);
  if (results < 0) return;
  g_results = fdopen(results, "w");
  if (g_results)
    dup2(STDERR_FILENO, STDOUT_FILENO);
  else
    close(results);
}

}  // namespace

void watch_interrupts() {
  interrupt_source();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(wait_for_interrupts, signals).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // no thread to be had: an interrupt ends the program at once
  }
}

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::usage: return kUsage;
    case ErrorCode::bad_input: return kBadInput;
    case ErrorCode::infeasible: return kInfeasible;
    case ErrorCode::device: return kDevice;
    case ErrorCode::cancelled: return kInterrupted;
  }
  return kBadInput;
}

int report(const Error& error) {
  if (g_progress_shown) std::fputs("\r\033[K", stderr);
  std::fprintf(stderr, "turnpoint-cli: %s\n", error.message().c_str());
  return exit_code(error);
}

int check_output(const std::string& path, std::size_t bytes) {
  if (path.empty() || path == "-") return kDone;
  std::error_code failure;
  const auto folder = std::filesystem::absolute(path, failure).parent_path();
  if (!failure && std::filesystem::is_directory(folder, failure) && !std::filesystem::is_directory(path, failure)) {
    if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure)) return kDone;
    auto file = FileWriter::open(path);  // never committed
    if (!file) return report(file.error());
    const auto written = file->write(std::string(bytes, ' '));
    return written ? kDone : report(written.error());
  }
  return report(bad_input(std::filesystem::is_directory(path, failure) ? "cannot be written: it is a folder"
                                                                       : "cannot be written: there is no such folder",
                          path));
}

int write_output(const std::string& path, std::string_view text) {
  return write_output(path, [&](const TextSink& sink) { return sink(text); });
}

int write_output(const std::string& path, const std::function<Expected<void>(const TextSink&)>& write) {
  if (!path.empty() && path != "-") {
    auto file = FileWriter::open(path);
    if (!file) return report(file.error());
    // An interrupt does not end this: what was measured or found until then is kept, and is written soon.
    auto written = write([&](std::string_view text) { return file->write(text); });
    if (written) written = file->commit();
    return written ? kDone : report(written.error());
  }
  if (g_progress_shown) std::fputs("\r\033[K", stderr);
  std::FILE* out = g_results ? g_results : stdout;
  const auto unwritten = [] { return bad_input("cannot be written", "standard output"); };
  const auto written = write([&](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), out) == text.size() ? Expected<void>() : unwritten();
  });
  if (!written) return report(written.error());
  return std::fflush(out) == 0 ? kDone : report(unwritten());
}

bool shown_to_a_person(const std::string& path) {
  return path.empty() && isatty(g_results ? fileno(g_results) : STDOUT_FILENO);
}

RunContext command_context(int threads) {
  g_takes_stops = true;
  keep_results_apart();
  RunContext context;
  context.stop = interrupt_source().get_token();
  context.threads = threads;
  if (isatty(STDERR_FILENO)) {
    g_progress_shown = true;
    context.progress = print_progress;
  }
  return context;
}

}  // namespace turnpoint::cli
