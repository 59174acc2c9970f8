// SPDX-License-Identifier: Apache-2.0
// The members of a ZIP archive that lies in memory, stored or deflated, with the 64-bit sizes that PyTorch writes
// (APPNOTE.TXT 6.3.9, sections 4.3 and 4.5.3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint::torch_program {

struct Member {
  std::string name;
  std::span<const std::uint8_t> packed;
  std::uint64_t size = 0;  ///< unpacked, as the archive claims
  std::uint16_t method = 0;
};

/// By the archive's directory. Errors: no directory, or members that reach beyond the file.
Expected<std::vector<Member>> list_members(std::span<const std::uint8_t> bytes, const std::string& file);

/// At most `limit` bytes. Memory is taken as the data unpacks, not as the archive claims.
Expected<std::string> unpack(const Member& member, std::uint64_t limit, const std::string& file);

}  // namespace turnpoint::torch_program
