// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/xml.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "core/base/text.h"

namespace turnpoint::logs {

namespace {

constexpr int kMaximumDepth = 64;
constexpr int kMaximumElements = 100'000;
constexpr std::size_t kMaximumAttributes = 256;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' || c == ':' || (c & 0x80);
}

class Parser {
 public:
  Parser(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  Expected<XmlElement> parse() {
    if (!skip_to_element()) return error();
    XmlElement root;
    if (!element(root, 1) || !skip_to_end()) return error();
    return root;
  }

 private:
  bool fail(std::string what) {
    if (!error_) error_ = bad_input(std::move(what), fmt::format("{}: line {}", where_, line_));
    return false;
  }
  Error error() { return error_ ? *error_ : bad_input("is not XML", where_); }

  bool at_end() const { return at_ >= text_.size(); }
  void advance(std::size_t count) {
    for (std::size_t i = 0; i < count && !at_end(); ++i) line_ += text_[at_++] == '\n';
  }
  bool starts(std::string_view prefix) const { return text_.substr(at_, prefix.size()) == prefix; }
  void skip_space() {
    while (!at_end() && is_space(text_[at_])) advance(1);
  }
  bool skip_past(std::string_view end, const char* what) {
    const auto found = text_.find(end, at_);
    if (found == std::string_view::npos) return fail(fmt::format("the file ends inside a {}", what));
    advance(found + end.size() - at_);
    return true;
  }

  /// Passes over comments and processing instructions; false at a document type, which could define entities.
  bool skip_markup(bool& skipped) {
    skipped = true;
    if (starts("<!--")) return skip_past("-->", "comment");
    if (starts("<?")) return skip_past("?>", "processing instruction");
    if (starts("<![CDATA[")) return skip_past("]]>", "CDATA section");
    if (starts("<!")) return fail("document types and entities are not read");
    skipped = false;
    return true;
  }

  bool skip_to_element() {
    for (;;) {
      skip_space();
      if (at_end()) return fail("holds no element");
      if (text_[at_] != '<') return fail("is not XML: text before the first element");
      bool skipped = false;
      if (!skip_markup(skipped)) return false;
      if (!skipped) return true;
    }
  }

  bool skip_to_end() {
    for (;;) {
      skip_space();
      if (at_end()) return true;
      bool skipped = false;
      if (text_[at_] != '<' || !skip_markup(skipped)) return fail("something follows the root element");
      if (!skipped) return fail("a second root element");
    }
  }

  bool name(std::string& out) {
    const std::size_t begin = at_;
    while (!at_end() && is_name(text_[at_]) && at_ - begin < 256) advance(1);
    out = std::string(text_.substr(begin, at_ - begin));
    return !out.empty() || fail("a name is missing");
  }

  bool attribute(XmlElement& out) {
    std::string key;
    if (!name(key)) return false;
    skip_space();
    if (at_end() || text_[at_] != '=') return fail(fmt::format("attribute '{}' has no value", key));
    advance(1);
    skip_space();
    const char quote = at_end() ? '\0' : text_[at_];
    if (quote != '"' && quote != '\'') return fail(fmt::format("the value of '{}' is not quoted", key));
    advance(1);
    const auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) return fail(fmt::format("the file ends inside the value of '{}'", key));
    const std::string_view raw = text_.substr(at_, end - at_);
    if (raw.find('<') != std::string_view::npos) return fail(fmt::format("the value of '{}' holds a '<'", key));
    std::string value;
    if (!decode(raw, value)) return false;
    advance(raw.size() + 1);
    if (out.attributes.size() >= kMaximumAttributes)
      return fail(fmt::format("more than {} attributes", kMaximumAttributes));
    for (const auto& [other, unused] : out.attributes)
      if (other == key) return fail(fmt::format("attribute '{}' is given twice", key));
    out.attributes.emplace_back(std::move(key), std::move(value));
    return true;
  }

  bool decode(std::string_view raw, std::string& out) {
    constexpr std::pair<std::string_view, char> kEntities[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '&') {
        out += raw[i];
        continue;
      }
      const auto end = raw.find(';', i);
      const std::string_view entity =
          end == std::string_view::npos ? raw.substr(i + 1, 20) : raw.substr(i + 1, end - i - 1);
      const auto known =
          std::find_if(std::begin(kEntities), std::end(kEntities), [&](const auto& e) { return e.first == entity; });
      const std::int64_t code = entity.starts_with("#") ? parse_int(entity.substr(1)).value_or(0) : 0;
      if (end == std::string_view::npos || (known == std::end(kEntities) && (code < 32 || code > 126)))
        return fail(fmt::format("entity '&{}' is not known", entity.substr(0, 20)));
      out += known != std::end(kEntities) ? known->second : static_cast<char>(code);
      i = end;
    }
    return true;
  }

  /// At '<' of a start tag.
  bool element(XmlElement& out, int depth) {
    if (depth > kMaximumDepth) return fail(fmt::format("nested deeper than {} levels", kMaximumDepth));
    if (++elements_ > kMaximumElements) return fail(fmt::format("more than {} elements", kMaximumElements));
    out.line = line_;
    advance(1);
    if (!name(out.name)) return false;
    for (;;) {
      skip_space();
      if (at_end()) return fail(fmt::format("the file ends inside element '{}'", out.name));
      if (starts("/>")) return advance(2), true;
      if (text_[at_] == '>') break;
      if (!attribute(out)) return false;
    }
    advance(1);
    return content(out, depth);
  }

  bool content(XmlElement& out, int depth) {
    for (;;) {
      const auto next = text_.find('<', at_);
      if (next == std::string_view::npos) return fail(fmt::format("the file ends inside element '{}'", out.name));
      advance(next - at_);
      bool skipped = false;
      if (!skip_markup(skipped)) return false;
      if (skipped) continue;
      if (starts("</")) {
        advance(2);
        std::string closed;
        if (!name(closed)) return false;
        skip_space();
        if (closed != out.name || at_end() || text_[at_] != '>')
          return fail(fmt::format("'</{}>' where '</{}>' is due", closed, out.name));
        return advance(1), true;
      }
      out.children.emplace_back();
      if (!element(out.children.back(), depth + 1)) return false;
    }
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  int line_ = 1, elements_ = 0;
  std::optional<Error> error_;
};

}  // namespace

const std::string& XmlElement::attribute(std::string_view key) const {
  static const std::string none;
  for (const auto& [other, value] : attributes)
    if (other == key) return value;
  return none;
}

Expected<XmlElement> parse_xml(std::string_view text, const std::string& where) { return Parser(text, where).parse(); }

}  // namespace turnpoint::logs
