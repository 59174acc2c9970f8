// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/text_checks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

namespace turnpoint {

namespace {

class FaultFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool key(string_t& name) override {
    if (!open_.back().seen.insert(name).second) {
      open_.back().key = name;
      fault = "is given twice";
      return false;
    }
    open_.back().key = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_at = position;
    return false;
  }

  /// "attn_config.kv_n_heads": the key that was read last, with those around it.
  std::string path() const {
    std::string joined;
    for (const auto& level : open_)
      if (!level.key.empty()) joined += (joined.empty() ? "" : ".") + level.key;
    return joined;
  }

  std::string fault;
  std::optional<std::size_t> error_at;

 private:
  struct Level {
    std::unordered_set<std::string> seen;
    std::string key;
  };
  bool open() {
    constexpr std::size_t kDeepest = 64;  // parse_json refuses more
    if (open_.size() > kDeepest) return false;
    open_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  std::vector<Level> open_;
};

/// The word that ends just before `end` or goes on there, with its sign.
std::string_view word_at(std::string_view text, std::size_t end) {
  const auto is_letter = [&](std::size_t i) {
    return i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z'));
  };
  std::size_t first = std::min(end, text.size()), last = first;
  while (first > 0 && (is_letter(first - 1) || text[first - 1] == '-')) --first;
  while (is_letter(last)) ++last;
  return text.substr(first, last - first);
}

}  // namespace

std::optional<Error> find_json_fault(std::string_view text, const std::string& path) {
  FaultFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  if (finder.error_at) {
    const std::string_view word = word_at(text, *finder.error_at);
    for (const std::string_view known : {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"})
      if (word == known) finder.fault = fmt::format("must be a finite number, not {}", word);
  }
  if (finder.fault.empty()) return std::nullopt;
  const std::string key = finder.path();
  return bad_input(finder.fault, key.empty() ? path : path + ": " + key);
}

}  // namespace turnpoint
