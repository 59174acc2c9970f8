// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "app/cli/commands.h"
#include "core/base/file_writer.h"

namespace turnpoint::cli {

namespace {

std::stop_source& interrupt_source() {
  static std::stop_source source;
  return source;
}

/// Blocks SIGINT and SIGTERM in every thread and waits for them in one of its own: a stop request runs callbacks, which
/// a signal handler must not. A second interrupt ends the process at once.
void watch_interrupts() {
  static const bool started = [] {
    interrupt_source();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
      int signal = 0;
      sigwait(&signals, &signal);
      interrupt_source().request_stop();
      sigwait(&signals, &signal);
      std::_Exit(kInterrupted);
    }).detach();
    return true;
  }();
  (void)started;
}

void print_progress(const Progress& progress) {
  if (progress.fraction < 0)
    std::fprintf(stderr, "\r\033[K%s", progress.phase.c_str());
  else
    std::fprintf(stderr, "\r\033[K%s %.0f%%", progress.phase.c_str(), 100 * progress.fraction);
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

int check_output(const std::string& path) {
  if (path.empty() || path == "-") return kDone;
  std::error_code failure;
  const auto folder = std::filesystem::absolute(path, failure).parent_path();
  if (!failure && std::filesystem::is_directory(folder, failure) && !std::filesystem::is_directory(path, failure))
    return kDone;
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

RunContext command_context(int threads) {
  watch_interrupts();
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
