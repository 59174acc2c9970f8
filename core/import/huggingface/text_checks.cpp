// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/text_checks.h"

#include <algorithm>
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
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  /// "attn_config.kv_n_heads": the key that was read last, with those around it.
  std::string path() const {
    std::string joined;
    for (const auto& level : open_)
      if (!level.key.empty()) joined += (joined.empty() ? "" : ".") + level.key;
    return joined;
  }

  std::string fault;

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

constexpr std::string_view kNonNumbers[] = {"-Infinity", "Infinity", "NaN"};

}  // namespace

std::optional<Error> find_json_fault(std::string_view text, const std::string& path) {
  FaultFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  if (finder.fault.empty()) return std::nullopt;
  const std::string key = finder.path();
  return bad_input(finder.fault, key.empty() ? path : path + ": " + key);
}

std::string quote_non_numbers(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      made += text[i++];
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      const auto found = std::find_if(std::begin(kNonNumbers), std::end(kNonNumbers), [&](std::string_view word) {
        return text.substr(i).starts_with(word);
      });
      if (found != std::end(kNonNumbers)) {
        ((made += '"') += *found) += '"';
        i += found->size() - 1;
        continue;
      }
    }
    made += text[i];
  }
  return made;
}

}  // namespace turnpoint
