// SPDX-License-Identifier: Apache-2.0
#include "app/end_signals.h"

#include <fcntl.h>
#include <unistd.h>
#include <QSocketNotifier>
#include <csignal>

namespace turnpoint::app {

namespace {

constexpr int kEnding[] = {SIGTERM, SIGHUP, SIGINT};
volatile int end_write_end = -1;  // read in a signal handler

extern "C" void tell_of_the_end(int) {
  const char byte = 1;
  if (::write(end_write_end, &byte, 1) < 0) _exit(1);
}

}  // namespace

EndSignals::EndSignals(QObject* parent) : QObject(parent) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // signals keep ending the process as they always did
  read_end_ = ends[0];
  end_write_end = ends[1];
  auto* notifier = new QSocketNotifier(read_end_, QSocketNotifier::Read, this);
  connect(notifier, &QSocketNotifier::activated, this, [this, notifier] {
    notifier->setEnabled(false);
    emit ended();
  });
  struct sigaction action {};
  action.sa_handler = tell_of_the_end;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : kEnding) sigaction(signal, &action, nullptr);
}

EndSignals::~EndSignals() {
  if (read_end_ < 0) return;
  for (const int signal : kEnding) std::signal(signal, SIG_DFL);
  ::close(read_end_);
  ::close(end_write_end);
  end_write_end = -1;
}

}  // namespace turnpoint::app
