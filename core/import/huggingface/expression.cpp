// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/expression.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace turnpoint::huggingface {

bool is_none(const Value& value) { return std::holds_alternative<std::monostate>(value); }

bool truth(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<double>(&value)) return *number != 0;
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  return false;
}

namespace {

class Evaluator {
 public:
  Evaluator(std::string_view text, const Names& names) : text_(text), names_(names) {}

  Result run() {
    Result result;
    result.value = choice();
    skip();
    if (at_ != text_.size() && fault_.empty()) fail("is not understood");
    result.key = key_;
    result.fault = fault_;
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool next_is(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
    at_ = text_.size();
  }
  double number(const Value& value) {
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
    if (!is_none(value)) fail("must be a whole number, not a string");
    return 0;
  }

  Value choice() {
    const std::string before_condition = key_;
    const Value condition = either();
    if (!take("?")) return condition;
    key_ = before_condition;  // a number is to blame, not what chose it
    const bool chosen = truth(condition);
    const bool before = quiet_;
    quiet_ = before || !chosen;
    const Value first = choice();
    quiet_ = before;
    if (!take(":")) return fail("is not understood"), Value{};
    quiet_ = before || chosen;
    const Value second = choice();
    quiet_ = before;
    return chosen ? first : second;
  }
  Value either() {
    Value left = both();
    while (take("||")) {
      const Value right = both();
      left = truth(left) || truth(right);
    }
    return left;
  }
  Value both() {
    Value left = comparison();
    while (take("&&")) {
      const Value right = comparison();
      left = truth(left) && truth(right);
    }
    return left;
  }
  Value comparison() {
    const Value left = alternatives();
    if (take("==")) return left == alternatives();
    if (take("!=")) return left != alternatives();
    if (take("<=")) return number(left) <= number(alternatives());
    if (take(">=")) return number(left) >= number(alternatives());
    if (take("<")) return number(left) < number(alternatives());
    if (take(">")) return number(left) > number(alternatives());
    return left;
  }

  /// What stands between bars. Keys that the config gives win over those to their left that it leaves out.
  struct Alternative {
    Value given, fallback;
    bool is_key = false;
    std::string key;
    const char* container = nullptr;  ///< what the key holds instead of one value
  };
  bool bar() {
    skip();
    if (at_ >= text_.size() || text_[at_] != '|' || text_.substr(at_).starts_with("||")) return false;
    ++at_;
    return true;
  }
  void blame(const Alternative& one) {
    if (key_.empty() && !quiet_) key_ = one.key;
  }
  Value chosen_of(const std::vector<Alternative>& list) {
    for (const auto& one : list) {
      if (one.is_key && !is_none(one.given)) return blame(one), one.given;
      if (!one.container || quiet_) continue;
      key_ = one.key;
      fail(one.container);
      return {};
    }
    for (const auto& one : list)
      if (!is_none(one.fallback)) return blame(one), one.fallback;
    blame(list.front());
    return {};
  }
  Value alternatives() {
    std::vector<Alternative> list;
    const std::string before = std::exchange(key_, std::string());
    do {
      list.push_back(sum());
      if (fault_.empty() && !key_.empty()) list.back().key = std::exchange(key_, std::string());
    } while (bar());
    if (fault_.empty()) key_ = before;
    return chosen_of(list);
  }
  double number(const Alternative& one) { return number(chosen_of({one})); }

  // Arithmetic of single keys leaves them keys, so that bars know what the config gives.
  Alternative sum() {
    Alternative left = product();
    for (;;) {
      if (take("+"))
        left = constant(number(left) + number(product()));
      else if (take("-"))
        left = constant(number(left) - number(product()));
      else
        return left;
    }
  }
  Alternative product() {
    Alternative left = unary();
    for (;;) {
      if (take("*")) {
        left = constant(number(left) * number(unary()));
      } else if (take("/")) {
        const double by = number(unary());
        left = constant(by == 0 ? Value{} : Value{std::floor(number(left) / by)});
      } else if (take("%")) {
        const double by = number(unary());
        left = constant(by == 0 ? Value{} : Value{std::fmod(number(left), by)});
      } else {
        return left;
      }
    }
  }
  Alternative unary() {
    skip();
    if (at_ + 1 < text_.size() && text_[at_] == '!' && text_[at_ + 1] != '=') {
      ++at_;
      return constant(!truth(chosen_of({unary()})));
    }
    return atom();
  }

  Alternative constant(Value value) {
    Alternative one;
    one.fallback = std::move(value);
    return one;
  }
  Alternative atom() {
    skip();
    if (at_ >= text_.size()) return fail("is not understood"), Alternative{};
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      const std::string before = std::exchange(key_, std::string());
      Alternative one = constant(choice());
      if (!take(")")) fail("is not understood");
      one.key = fault_.empty() ? std::exchange(key_, before) : key_;
      return one;
    }
    if (c == '\'') {
      const auto end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) return fail("is not understood"), Alternative{};
      std::string text(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return constant(std::move(text));
    }
    if (std::isdigit(static_cast<unsigned char>(c))) {
      char* end = nullptr;
      const std::string rest(text_.substr(at_, 32));
      const double value = std::strtod(rest.c_str(), &end);
      at_ += static_cast<std::size_t>(end - rest.c_str());
      return constant(value);
    }
    if (c == '$') {
      ++at_;
      const Result setting = names_.setting(word());
      Alternative one = constant(setting.value);
      one.key = setting.key;
      return one;
    }
    const std::string_view name = word();
    if (name.empty()) return fail("is not understood"), Alternative{};
    if (name == "none") return {};
    if (name == "true" || name == "false") return constant(name == "true");
    if (next_is('(')) return constant(call(name));
    return read(name);
  }
  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  static Value value_of(const nlohmann::json& json) {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    return {};
  }
  Alternative read(std::string_view name) {
    Alternative one;
    one.is_key = true;
    one.key = name;
    const nlohmann::json* given = names_.key(name, false);
    const nlohmann::json* any = given ? given : names_.key(name, true);
    if (take("[")) {
      const double index = number(choice());
      if (!take("]")) fail("is not understood");
      const auto entry = [&](const nlohmann::json* list) -> Value {
        if (!list || !list->is_array() || !(index >= 0) || index >= double(list->size())) return {};
        return value_of((*list)[static_cast<std::size_t>(index)]);
      };
      one.given = entry(given);
      one.fallback = entry(any);
      return one;
    }
    if (given) one.given = value_of(*given);
    if (any) one.fallback = value_of(*any);
    if (given && given->is_array()) one.container = "must be a whole number, not a list";
    if (given && given->is_object()) one.container = "must be a whole number, not an object";
    return one;
  }

  /// Also in lists of lists, and in words joined by bars.
  static bool holds(const nlohmann::json& json, const Value& wanted) {
    if (json.is_array())
      return std::any_of(json.begin(), json.end(), [&](const nlohmann::json& one) { return holds(one, wanted); });
    const auto* part = std::get_if<std::string>(&wanted);
    if (json.is_string() && part)
      return ("|" + json.get<std::string>() + "|").find("|" + *part + "|") != std::string::npos;
    return !is_none(wanted) && value_of(json) == wanted;
  }

  Value call(std::string_view name) {
    take("(");
    skip();
    if (name == "has" || name == "in" || name == "size") {
      const std::string_view key = word();
      const nlohmann::json* json = names_.key(key, true);
      Value wanted;
      if (name == "in") {
        if (!take(",")) fail("is not understood");
        wanted = choice();
      }
      if (!take(")")) fail("is not understood");
      if (name == "has") return json != nullptr && !json->is_null();
      if (name == "size") {
        if (json && json->is_string()) return double(json->get<std::string>().size());
        return json && json->is_array() && !json->empty() ? Value{double(json->size())} : Value{};
      }
      return json != nullptr && holds(*json, wanted);
    }
    const Value a = choice();
    if (!take(",")) return fail("is not understood"), Value{};
    const Value b = choice();
    if (!take(")")) fail("is not understood");
    if (name == "min") return std::min(number(a), number(b));
    if (name == "max") return std::max(number(a), number(b));
    if (name == "up") return number(b) == 0 ? Value{} : Value{std::ceil(number(a) / number(b)) * number(b)};
    const auto *text = std::get_if<std::string>(&a), *part = std::get_if<std::string>(&b);
    if (name == "ends") return text && part && text->ends_with(*part);
    if (name == "letter" && text) {
      const double index = number(b);
      if (!(index >= 0) || index >= double(text->size())) return Value{};
      return std::string(1, (*text)[static_cast<std::size_t>(index)]);
    }
    if (name == "letter") return Value{};
    if (name == "begins") return text && part && text->starts_with(*part);
    return fail("is not understood"), Value{};
  }

  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
  bool quiet_ = false;  ///< in the branch of a choice that is not taken
  std::string key_, fault_;
};

}  // namespace

Result evaluate(std::string_view expression, const Names& names) { return Evaluator(expression, names).run(); }

}  // namespace turnpoint::huggingface
