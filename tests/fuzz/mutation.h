// SPDX-License-Identifier: Apache-2.0
// Seeded mutations that know how a file is built: JSON, protobuf's wire format, lines of words, and plain bytes. The
// replay programs and libFuzzer's targets draw from the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace turnpoint::test {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t count) { return count ? random() % count : 0; }

/// A seed file, taken apart once.
class Seed {
 public:
  virtual ~Seed() = default;
  /// The file with some edits, the same for the same state of `random`; at most a few times as long.
  virtual std::string mutated(Random& random) const = 0;
};

/// Taken apart as what it looks like: JSON, a safetensors header, a protobuf message, lines of text.
std::unique_ptr<const Seed> take_apart(std::string_view text);

/// Null where the text is no such thing.
std::unique_ptr<const Seed> json_seed(std::string_view text);
std::unique_ptr<const Seed> safetensors_seed(std::string_view text);
std::unique_ptr<const Seed> wire_seed(std::string_view text);
std::unique_ptr<const Seed> line_seed(std::string_view text);

/// Edits of bytes, whatever they are.
std::string mutated_bytes(std::string text, Random& random);

/// Words that stand where a number is expected: nan, 1e308, 2^63, -1 and their like. All of them fit into JSON as
/// tokens, right or wrong.
const std::vector<std::string>& odd_numbers();
/// Empty, very long, not UTF-8, paths and formats; no quotes or backslashes.
std::string odd_word(Random& random);

/// One mutation, sometimes with broken bytes on top; nothing is longer than `kLongestMutant`.
inline constexpr std::size_t kLongestMutant = std::size_t(4) << 20;
std::string mutant_of(const Seed& seed, Random& random);

}  // namespace turnpoint::test
