// SPDX-License-Identifier: Apache-2.0
// Whether two measurements ran on this machine at once: each of them lengthens the other's times. Nobody is refused;
// both can say so.
#pragma once

#include <cstdint>
#include <filesystem>

namespace turnpoint {

/// One measurement, from its beginning to its end. Known to others of the same user through a lock file; where none can
/// be made, nobody is seen.
class MachineUse {
 public:
  /// `file`: empty: $XDG_RUNTIME_DIR/turnpoint/measuring, else that of the user's cache folder.
  explicit MachineUse(std::filesystem::path file = {});
  MachineUse(const MachineUse&) = delete;
  MachineUse& operator=(const MachineUse&) = delete;
  ~MachineUse();

  /// Another one was going on at some moment since this one began.
  bool disturbed();

 private:
  bool alone();
  int file_ = -1;
  std::uint64_t begun_ = 0;  ///< of all measurements, which one this is
  bool disturbed_ = false;
};

}  // namespace turnpoint
