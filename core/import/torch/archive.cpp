// SPDX-License-Identifier: Apache-2.0
#include "core/import/torch/archive.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace turnpoint::torch_program {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kMostMembers = 1'000'000;

/// The little-endian number of `width` bytes at `at`; 0 beyond the end, which no signature is.
std::uint64_t number(Bytes bytes, std::uint64_t at, int width) {
  if (at > bytes.size() || bytes.size() - at < static_cast<std::uint64_t>(width)) return 0;
  std::uint64_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | bytes[at + static_cast<std::uint64_t>(i)];
  return value;
}
std::uint32_t word(Bytes bytes, std::uint64_t at) { return static_cast<std::uint32_t>(number(bytes, at, 4)); }

/// The part of `bytes`, or nothing where it is not all there.
std::optional<Bytes> part(Bytes bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.subspan(at, size);
}

struct Directory {
  std::uint64_t at = 0, size = 0;
};

std::optional<Directory> find_directory(Bytes bytes) {
  constexpr std::size_t kLongestComment = 0xffff;
  if (bytes.size() < kEndSize) return std::nullopt;
  const std::size_t last = bytes.size() - kEndSize, first = last > kLongestComment ? last - kLongestComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (word(bytes, at) != kEnd) continue;
    if (at >= 20 && word(bytes, at - 20) == kLocator64)
      if (const std::uint64_t end = number(bytes, at - 12, 8); word(bytes, end) == kEnd64)
        return Directory{number(bytes, end + 48, 8), number(bytes, end + 40, 8)};
    return Directory{word(bytes, at + 16), word(bytes, at + 12)};
  }
  return std::nullopt;
}

/// Sizes and offset of an entry; those that do not fit 32 bits stand in an extra field, in this order.
struct Place {
  std::uint64_t size, packed, offset;
};
Place place_of(Bytes entry, Bytes extra) {
  Place at{word(entry, 24), word(entry, 20), word(entry, 42)};
  constexpr std::uint64_t kElsewhere = 0xffffffff;
  for (std::uint64_t i = 0; i + 4 <= extra.size();) {
    const auto length = number(extra, i + 2, 2);
    if (number(extra, i, 2) == 1) {
      std::uint64_t next = i + 4;
      for (auto* value : {&at.size, &at.packed, &at.offset})
        if (*value == kElsewhere) *value = number(extra, next, 8), next += 8;
      return at;
    }
    i += 4 + length;
  }
  return at;
}

}  // namespace

Expected<std::vector<Member>> list_members(Bytes bytes, const std::string& file) {
  const auto damaged = [&](const char* what) { return bad_input(std::string("is damaged or truncated: ") + what, file); };
  const auto found = find_directory(bytes);
  const auto directory = found ? part(bytes, found->at, found->size) : std::nullopt;
  if (!directory) return damaged("the archive has no directory");
  std::vector<Member> members;
  for (std::uint64_t at = 0; at < directory->size();) {
    const auto entry = part(*directory, at, kEntrySize);
    if (!entry || word(*entry, 0) != kEntry) return damaged("an entry of the archive's directory");
    const auto names = number(*entry, 28, 2), extras = number(*entry, 30, 2), comments = number(*entry, 32, 2);
    const auto name = part(*directory, at + kEntrySize, names), extra = part(*directory, at + kEntrySize + names, extras);
    if (!name || !extra || members.size() >= kMostMembers) return damaged("an entry of the archive's directory");
    at += kEntrySize + names + extras + comments;
    const Place place = place_of(*entry, *extra);
    Member member;
    member.name.assign(name->begin(), name->end());
    member.size = place.size;
    member.method = static_cast<std::uint16_t>(number(*entry, 10, 2));
    const auto local = part(bytes, place.offset, kLocalSize);
    if (!local || word(*local, 0) != kLocal) return damaged("a member of the archive");
    const std::uint64_t begin = place.offset + kLocalSize + number(*local, 26, 2) + number(*local, 28, 2);
    const auto packed = part(bytes, begin, place.packed);
    if (!packed) return damaged("a member of the archive");
    member.packed = *packed;
    members.push_back(std::move(member));
  }
  return members;
}

Expected<std::string> unpack(const Member& member, std::uint64_t limit, const std::string& file) {
  const std::string place = file + ": " + member.name;
  if (member.size > limit || (member.method == 0 && member.packed.size() > limit))
    return bad_input("is larger than " + std::to_string(limit >> 20) + " MiB", place);
  if (member.method == 0) return std::string(member.packed.begin(), member.packed.end());
  if (member.method != 8) return bad_input("is packed in a way that is not supported", place);
  constexpr std::size_t kStep = std::size_t(1) << 18;
  std::string text;
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return bad_input("cannot be unpacked", place);
  Bytes rest = member.packed;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t had = text.size();
    text.resize(had + kStep);
    const auto given = static_cast<uInt>(std::min<std::size_t>(rest.size(), std::numeric_limits<uInt>::max()));
    stream.next_in = const_cast<Bytef*>(rest.data());
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + had);
    stream.avail_out = static_cast<uInt>(kStep);
    state = inflate(&stream, Z_NO_FLUSH);
    rest = rest.subspan(given - stream.avail_in);
    text.resize(had + kStep - stream.avail_out);
    if (text.size() > limit) break;
  }
  inflateEnd(&stream);
  if (text.size() > limit) return bad_input("is larger than " + std::to_string(limit >> 20) + " MiB", place);
  if (state != Z_STREAM_END || text.size() != member.size) return bad_input("is damaged or truncated", place);
  return text;
}

}  // namespace turnpoint::torch_program
