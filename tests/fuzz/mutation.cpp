// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutation.h"

#include <algorithm>
#include <cctype>

namespace turnpoint::test {

const std::vector<std::string>& odd_numbers() {
  static const std::vector<std::string> numbers = {"nan",
                                                   "NaN",
                                                   "inf",
                                                   "-Infinity",
                                                   "1e308",
                                                   "-1e308",
                                                   "1e309",
                                                   "5e-324",
                                                   "1e-300",
                                                   "0",
                                                   "-0",
                                                   "-0.0",
                                                   "-1",
                                                   "0.5",
                                                   "1.0",
                                                   "1e18",
                                                   "2147483647",
                                                   "2147483648",
                                                   "-2147483649",
                                                   "4294967295",
                                                   "4294967296",
                                                   "9007199254740993",
                                                   "4611686018427387904",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "18446744073709551615",
                                                   "18446744073709551616",
                                                   "1e30",
                                                   "007",
                                                   "0x10",
                                                   "1_000",
                                                   "1,5",
                                                   "+1",
                                                   ".5",
                                                   "1e"};
  return numbers;
}

std::string odd_word(Random& random) {
  switch (below(random, 9)) {
    case 0: return {};
    case 1: return std::string(5000, 'n');
    case 2: return "\xc3\x28\xff";
    case 3: return std::string("a\0b", 3);
    case 4: return "../../../../etc/passwd";
    case 5: return "%s%n%d";
    case 6: return "\xd9\xa3\xd9\xa4";  // Arabic digits
    case 7: return "\x1b[2J\r\n";
    default: return " ";
  }
}

std::string mutated_bytes(std::string text, Random& random) {
  const std::size_t edits = 1 + below(random, 8);
  for (std::size_t e = 0; e < edits && !text.empty(); ++e) {
    const std::size_t at = below(random, text.size());
    switch (below(random, 5)) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8))); break;
      case 2: text.resize(at); break;
      case 3: text.insert(at, text.substr(0, std::min<std::size_t>(at, 64))); break;
      default:
        for (std::size_t i = at; i < std::min(text.size(), at + 9); ++i) text[i] = '\xff';
    }
  }
  return text;
}

namespace {

/// Logs, settings and tables: lines of words, of which many are numbers.
class LineSeed final : public Seed {
 public:
  explicit LineSeed(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
      lines_.emplace_back(text.substr(begin, end + 1 - begin));
      begin = end + 1;
    }
  }

  std::string mutated(Random& random) const override {
    auto lines = lines_;
    const std::size_t edits = 1 + below(random, 4);
    for (std::size_t e = 0; e < edits && !lines.empty(); ++e) edit(lines, random);
    std::string text;
    for (const auto& line : lines) text += line;
    return text;
  }

 private:
  static bool of_number(char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-'; }

  /// Where the words of numbers of a line stand: begin and length.
  static std::vector<std::pair<std::size_t, std::size_t>> numbers_of(const std::string& line) {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (!of_number(line[i])) continue;
      const std::size_t begin = i;
      while (i < line.size() && of_number(line[i])) ++i;
      found.emplace_back(begin, i - begin);
    }
    return found;
  }

  static void edit(std::vector<std::string>& lines, Random& random) {
    const std::size_t at = below(random, lines.size());
    auto& line = lines[at];
    const auto place = [&](std::size_t k) { return lines.begin() + static_cast<std::ptrdiff_t>(k); };
    switch (below(random, 10)) {
      case 0: lines.erase(place(at)); break;
      case 1: lines.insert(place(at), 1 + below(random, 3), std::string(line)); break;
      case 2: std::swap(line, lines[below(random, lines.size())]); break;
      case 3: line.insert(0, std::string(1 + below(random, 300), below(random, 2) ? ' ' : '\t')); break;
      case 4: lines.resize(at); break;
      case 5: line.insert(below(random, line.size() + 1), odd_word(random)); break;
      case 6: {  // many of one
        const std::size_t copies = (below(random, 8) ? 10000 : 400000) / (line.size() + 1);
        lines.insert(place(at), copies, std::string(line));
        break;
      }
      default:
        if (const auto numbers = numbers_of(line); !numbers.empty()) {
          const auto [begin, length] = numbers[below(random, numbers.size())];
          line.replace(begin, length, odd_numbers()[below(random, odd_numbers().size())]);
        }
    }
  }

  std::vector<std::string> lines_;
};

/// A JSON document a line: recordings and logs of programs that print while they run.
class JsonLinesSeed final : public Seed {
 public:
  JsonLinesSeed(std::vector<std::unique_ptr<const Seed>> lines, std::string_view text)
      : lines_(std::move(lines)), whole_(text), texts_(split_lines(text)) {}

  std::string mutated(Random& random) const override {
    if (below(random, 4) == 0) return whole_.mutated(random);
    const std::size_t at = below(random, lines_.size());
    std::string text;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::string line = i == at ? lines_[i]->mutated(random) : texts_[i];
      std::replace(line.begin(), line.end(), '\n', ' ');
      text += line + '\n';
    }
    return text;
  }

  static std::vector<std::string> split_lines(std::string_view text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      if (end > begin) lines.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }

 private:
  std::vector<std::unique_ptr<const Seed>> lines_;
  LineSeed whole_;
  std::vector<std::string> texts_;
};

std::unique_ptr<const Seed> json_lines_seed(std::string_view text) {
  std::vector<std::unique_ptr<const Seed>> lines;
  for (const auto& line : JsonLinesSeed::split_lines(text)) {
    lines.push_back(json_seed(line));
    if (!lines.back()) return nullptr;
  }
  return lines.empty() ? nullptr : std::make_unique<JsonLinesSeed>(std::move(lines), text);
}

/// The length that the header says, then JSON; a wrong length now and then.
class SafetensorsSeed final : public Seed {
 public:
  SafetensorsSeed(std::unique_ptr<const Seed> header, std::string_view rest) : header_(std::move(header)), rest_(rest) {}

  std::string mutated(Random& random) const override {
    const std::string header = header_->mutated(random);
    std::uint64_t length = header.size();
    switch (below(random, 12)) {
      case 0: length += random() % 9 - 4; break;
      case 1: length = random(); break;
      case 2: length = std::uint64_t(1) << below(random, 64); break;
      default: break;
    }
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i) & 0xff);
    return text + header + rest_;
  }

 private:
  std::unique_ptr<const Seed> header_;
  std::string rest_;
};

class ByteSeed final : public Seed {
 public:
  explicit ByteSeed(std::string_view text) : text_(text) {}
  std::string mutated(Random& random) const override { return mutated_bytes(text_, random); }

 private:
  std::string text_;
};

}  // namespace

std::unique_ptr<const Seed> line_seed(std::string_view text) {
  const auto odd = std::count_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t';
  });
  return text.empty() || odd > 0 ? nullptr : std::make_unique<LineSeed>(text);
}

std::unique_ptr<const Seed> safetensors_seed(std::string_view text) {
  if (text.size() < 10 || text[8] != '{') return nullptr;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
  if (length > text.size() - 8) return nullptr;
  auto header = json_seed(text.substr(8, length));
  if (!header) return nullptr;
  return std::make_unique<SafetensorsSeed>(std::move(header), text.substr(8 + length));
}

std::unique_ptr<const Seed> take_apart(std::string_view text) {
  if (auto seed = json_seed(text)) return seed;
  if (auto seed = safetensors_seed(text)) return seed;
  if (auto seed = json_lines_seed(text)) return seed;
  if (auto seed = line_seed(text)) return seed;
  if (auto seed = wire_seed(text)) return seed;
  return std::make_unique<ByteSeed>(text);
}

std::string mutant_of(const Seed& seed, Random& random) {
  std::string text = seed.mutated(random);
  if (below(random, 8) == 0) text = mutated_bytes(std::move(text), random);
  if (text.size() > kLongestMutant) text.resize(kLongestMutant);
  return text;
}

}  // namespace turnpoint::test
