// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/json_stream.h"

#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace turnpoint::logs {

namespace {

constexpr std::size_t kLongestToken = 16u << 20;  // bytes
constexpr int kDeepest = 64;

class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  std::string_view next() override { return std::exchange(text_, std::string_view()); }

 private:
  std::string_view text_;
};

/// The characters of a source one by one. What stands between two quotes without end would be held in memory, so such
/// a text ends early.
struct Characters {
  ByteSource& source;
  std::string_view rest;
  std::size_t read = 0, since_quote = 0;
  bool too_long = false;

  bool at_end() {
    if (rest.empty() && !too_long) rest = source.next();
    return rest.empty();
  }
  void advance() {
    since_quote = rest.front() == '"' ? 0 : since_quote + 1;
    too_long |= since_quote > kLongestToken;
    rest.remove_prefix(1);
    if (too_long) rest = {};
    ++read;
  }
};

class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CharacterIterator() = default;
  explicit CharacterIterator(Characters& characters) : characters_(&characters) {}
  reference operator*() const { return characters_->rest.front(); }
  CharacterIterator& operator++() {
    characters_->advance();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(const CharacterIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return !characters_ || characters_->at_end(); }
  Characters* characters_ = nullptr;
};

class Forward : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Forward(JsonListener& listener) : listener_(listener) {}
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool value) override { return number_value(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override { return number_value(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number_value(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number_value(value); }
  bool string(string_t& value) override {
    listener_.text(depth_, key_, value);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& value) override {
    key_.swap(value);
    return true;
  }
  bool start_object(std::size_t) override { return begin(false); }
  bool start_array(std::size_t) override { return begin(true); }
  bool end_object() override { return end(false); }
  bool end_array() override { return end(true); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    if (problem.empty()) problem = fmt::format("not valid JSON: wrong or missing at byte {}", byte);
    return false;
  }

 private:
  bool number_value(double value) {
    listener_.number(depth_, key_, value);
    return true;
  }
  bool begin(bool list) {
    if (depth_ >= kDeepest) {
      problem = fmt::format("nested deeper than {} levels", kDeepest);
      return false;
    }
    listener_.begin(depth_++, key_, list);
    key_.clear();
    return true;
  }
  bool end(bool list) {
    listener_.end(--depth_, list);
    key_.clear();
    return true;
  }

  JsonListener& listener_;
  std::string key_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> text_source(std::string_view text) { return std::make_unique<TextSource>(text); }

Expected<void> stream_json(ByteSource& source, const std::string& where, JsonListener& listener) {
  Characters characters{source, {}, 0, 0, false};
  Forward forward(listener);
  const bool good = nlohmann::json::sax_parse(CharacterIterator(characters), CharacterIterator(), &forward,
                                              nlohmann::json::input_format_t::json, true);
  if (source.error()) return *source.error();
  if (characters.too_long) return bad_input(fmt::format("a value of more than {} MiB", kLongestToken >> 20), where);
  if (!good) return bad_input(forward.problem.empty() ? "not valid JSON" : forward.problem, where);
  return {};
}

}  // namespace turnpoint::logs
