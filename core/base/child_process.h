// SPDX-License-Identifier: Apache-2.0
// A program that is started, listened to line by line, and ended with all that it started itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint {

struct ChildCommand {
  std::vector<std::string> words;      ///< the program, looked for in PATH where it has no '/', and its arguments
  std::vector<std::string> variables;  ///< "NAME=value", besides those of this process, before which they go
  std::string input;                   ///< what it reads from its standard input
};

/// In a process group of its own, which is ended by force when the program itself has ended, or when this goes. Not for
/// several threads at once.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  /// Once. 0, or the system's number of the error.
  int start(const ChildCommand& command);

  /// Waits a tenth of a second at most for what it says; `take` is given each line of its standard output. Error:
  /// that of `take`, or a device error about a line without end.
  Expected<void> listen(const std::function<Expected<void>(const std::string& line)>& take);
  bool talks() const { return out_ >= 0; }           ///< its standard output is open
  bool cut_short() const { return !rest_.empty(); }  ///< what it said ends within a line
  double quiet_s() const;                            ///< since it said something there, or was started
  /// The end of what it said on standard error, of which all that is there is read.
  const std::string& complaints();
  /// The last lines of these that say something, with " | " between them: launchers put theirs into frames.
  std::string last_words(std::size_t lines = 1);

  void ask_to_end();
  bool ended();  ///< it has, and is no process any more; whatever it left in its group is ended by force
  /// ended(), once it has or so many seconds later. What it prints meanwhile is passed over: a full pipe would stop it.
  bool wait_for_end(double seconds);
  std::string describe_end() const;  ///< "ended with code 3", once it has

 private:
  int spawn(const ChildCommand& command, int input, int out, int err);
  void read_complaints();
  void pass_over();

  int pid_ = -1, out_ = -1, err_ = -1, status_ = 0;
  bool ended_ = false;
  double heard_ = 0;
  std::string name_, rest_, complaints_;
};

}  // namespace turnpoint
