// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/text_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/import/tensorflow/text_schema.h"

namespace turnpoint::tensorflow {

namespace {

constexpr std::size_t kMaxDepth = 64;
/// A tensor with more numbers is no shape, axis or scale: its numbers are read over.
constexpr std::size_t kMaxTensorNumbers = 4097, kMaxTensorBytes = 8 * kMaxTensorNumbers;
constexpr std::size_t kMaxText = 4096;  ///< longest string that is kept (names, keys)
constexpr std::size_t kMaxWire = std::size_t{128} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '+';
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_varint(out, std::uint64_t{field} << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

std::optional<double> real_number(std::string_view word) {
  const bool negative = word.starts_with('-');
  std::string_view rest = negative ? word.substr(1) : word;
  if (rest == "inf" || rest == "infinity" || rest == "Infinity")
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (rest == "nan" || rest == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (rest.ends_with('f') || rest.ends_with('F')) rest.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size() || rest.empty() || rest[0] == '-') return std::nullopt;
  if (error == std::errc::result_out_of_range)
    value = rest.find("e-") == std::string_view::npos ? std::numeric_limits<double>::infinity() : 0;
  else if (error != std::errc())
    return std::nullopt;
  return negative ? -value : value;
}

/// Decimal, 0x hexadecimal or 0 octal; true, false and the names of data types.
std::optional<std::uint64_t> whole_number(std::string_view word) {
  if (word == "true" || word == "True" || word == "t") return 1;
  if (word == "false" || word == "False" || word == "f") return 0;
  if (const auto type = data_type_number(word)) return static_cast<std::uint64_t>(*type);
  const bool negative = word.starts_with('-');
  if (negative) word.remove_prefix(1);
  int base = 10;
  if (word.starts_with("0x") || word.starts_with("0X")) {
    word.remove_prefix(2);
    base = 16;
  } else if (word.size() > 1 && word[0] == '0') {
    base = 8;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (negative && value > std::uint64_t{1} << 63) return std::nullopt;
  return negative ? 0 - value : value;
}

std::string quote(std::string_view token) {
  std::string text = "'";
  text.append(token.substr(0, 40));
  return text += "'";
}

/// One pass over the text with a stack of open messages; no recursion.
class TextParser {
 public:
  TextParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Expected<WireText> run() {
    WireText result;
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    skip_blank();
    result.container = container_of(peek_word());
    stack_.push_back({result.container == Container::graph        ? MessageType::graph
                      : result.container == Container::meta_graph ? MessageType::meta_graph
                                                                  : MessageType::saved_model});
    while (!error_) {
      skip_blank();
      if (at_ == text_.size()) break;
      step();
    }
    if (!error_ && stack_.size() > 1)
      fail("the text ends inside a message that begins in line " + std::to_string(line_of(stack_.back().begin)));
    if (error_) return *error_;
    result.bytes = std::move(stack_.front().wire);
    return result;
  }

  static Container container_of(std::string_view word) {
    if (find_field(MessageType::graph, word) || word == "versions" || word == "version") return Container::graph;
    if (find_field(MessageType::saved_model, word)) return Container::saved_model;
    return Container::meta_graph;
  }

 private:
  struct Frame {
    MessageType type = MessageType::none;
    std::uint32_t field = 0;  ///< of the parent
    char close = '}';
    std::size_t begin = 0;    ///< where it was opened
    std::size_t numbers = 0;  ///< written into a tensor
    bool in_list = false;     ///< an element of [ ... ]
    std::string wire = {};
  };

  void fail(std::string what) {
    if (!error_) error_ = bad_input(std::move(what), file_ + ": line " + std::to_string(line_of(at_)));
  }
  std::size_t line_of(std::size_t at) const {
    return 1 + static_cast<std::size_t>(std::count(
                   text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size())), '\n'));
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        break;
      }
    }
  }
  bool take(char c) {
    skip_blank();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view peek_word() const {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view word() {
    skip_blank();
    const auto result = peek_word();
    at_ += result.size();
    return result;
  }

  /// One field, or the end of a message.
  void step() {
    const char c = text_[at_];
    if (c == ',' || c == ';') {
      ++at_;
      return;
    }
    if (c == '}' || c == '>') return close(c);
    if (c == '[') {  // an extension or the type of an Any
      const auto end = text_.find(']', at_);
      if (end == std::string_view::npos) return fail("a bracket is never closed");
      at_ = end + 1;
      return value(nullptr);
    }
    const auto name = word();
    if (name.empty()) return fail("a field name was expected");
    value(find_field(stack_.back().type, name));
  }

  void value(const FieldType* field) {
    const bool colon = take(':');
    skip_blank();
    if (at_ == text_.size()) return fail("the text ends where a value was expected");
    if (text_[at_] == '{' || text_[at_] == '<') return open(field, false);
    if (!colon) return fail("':' or '{' was expected");
    if (text_[at_] != '[') return scalar(field);
    ++at_;
    list(field);
  }

  /// After '[' or after an element of a list of messages.
  void list(const FieldType* field) {
    while (!error_) {
      if (take(']')) return;
      skip_blank();
      if (at_ == text_.size()) return fail("a list is never closed");
      if (text_[at_] == ',') {
        ++at_;
      } else if (text_[at_] == '{' || text_[at_] == '<') {
        return open(field, true);  // goes on in close()
      } else {
        scalar(field);
      }
    }
  }

  void open(const FieldType* field, bool in_list) {
    if (stack_.size() >= kMaxDepth) return fail("messages are nested more than 64 deep");
    Frame frame;
    frame.close = text_[at_] == '{' ? '}' : '>';
    frame.begin = at_++;
    frame.in_list = in_list;
    if (field && field->scalar == ScalarType::message) {
      frame.type = field->message;
      frame.field = field->number;
    }
    stack_.push_back(std::move(frame));
  }

  void close(char c) {
    if (stack_.size() == 1) return fail(std::string("'") + c + "' closes nothing");
    if (stack_.back().close != c) return fail(std::string("'") + c + "' closes a message that another bracket opened");
    ++at_;
    const Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.type != MessageType::none) append_bytes(stack_.back().wire, frame.field, frame.wire);
    check_size();
    if (!frame.in_list) return;
    const FieldType field{"", frame.field, ScalarType::message, frame.type};
    list(frame.type == MessageType::none ? nullptr : &field);
  }

  void check_size() {
    if (stack_.back().wire.size() > kMaxWire) fail("the graph is larger than 128 MB without its constants");
  }

  void scalar(const FieldType* field) {
    if (text_[at_] == '"' || text_[at_] == '\'') return quoted(field);
    const auto token = word();
    if (token.empty()) return fail("a value was expected");
    if (!field) return;
    Frame& frame = stack_.back();
    if (frame.type == MessageType::tensor && field->number >= 5 && ++frame.numbers > kMaxTensorNumbers) return;
    switch (field->scalar) {
      case ScalarType::integer: {
        auto number = whole_number(token);
        // Names of enumerators this version does not know have no number: 0 is "invalid" everywhere.
        if (!number && std::isalpha(static_cast<unsigned char>(token[0]))) number = 0;
        if (!number) return fail(quote(token) + " is no whole number of 64 bits");
        append_varint(frame.wire, std::uint64_t{field->number} << 3);
        append_varint(frame.wire, *number);
        break;
      }
      case ScalarType::real32:
      case ScalarType::real64: {
        const auto number = real_number(token);
        if (!number) return fail(quote(token) + " is no number");
        const bool single = field->scalar == ScalarType::real32;
        append_varint(frame.wire, std::uint64_t{field->number} << 3 | (single ? 5 : 1));
        const auto narrow = static_cast<float>(*number);
        const char* bytes = single ? reinterpret_cast<const char*>(&narrow) : reinterpret_cast<const char*>(&*number);
        frame.wire.append(bytes, single ? 4 : 8);
        break;
      }
      case ScalarType::bytes: return fail("text in quotes was expected");
      case ScalarType::message: return fail("'{' was expected");
    }
    check_size();
  }

  /// Adjacent strings are one. Beyond the limit the bytes are read over.
  void quoted(const FieldType* field) {
    if (field && field->scalar != ScalarType::bytes) return fail("text in quotes stands where something else belongs");
    const bool content = stack_.back().type == MessageType::tensor;
    const std::size_t limit = !field ? 0 : content ? kMaxTensorBytes : kMaxText;
    std::string bytes;
    bool complete = true;
    while (!error_ && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const char quote = text_[at_++];
      while (true) {
        if (at_ >= text_.size()) return fail("a text in quotes is never closed");
        const char c = text_[at_];
        if (c == quote) break;
        if (c == '\n') return fail("a text in quotes is not closed in its line");
        if (bytes.size() >= limit) {
          complete = false;
          at_ += c == '\\' ? 2 : 1;
        } else if (c == '\\') {
          ++at_;
          if (!escape(bytes)) return;
        } else {
          bytes += c;
          ++at_;
        }
      }
      ++at_;
      skip_blank();
    }
    if (!field || (content && !complete)) return;
    append_bytes(stack_.back().wire, field->number, bytes);
    check_size();
  }

  /// After the backslash.
  bool escape(std::string& out) {
    if (at_ >= text_.size()) return fail("a text in quotes is never closed"), false;
    const char c = text_[at_++];
    const auto digits = [&](std::size_t most, int base) {
      unsigned value = 0;
      const auto begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, begin + std::min(most, text_.size() - at_), value, base);
      at_ += static_cast<std::size_t>(end - begin);
      return value;
    };
    static constexpr std::string_view kFrom = "abfnrtv\\'\"?", kTo = "\a\b\f\n\r\t\v\\'\"?";
    if (c >= '0' && c <= '7') {
      --at_;
      out += static_cast<char>(digits(3, 8));
    } else if (c == 'x' || c == 'X') {
      out += static_cast<char>(digits(2, 16));
    } else if (c == 'u' || c == 'U') {
      digits(c == 'u' ? 4 : 8, 16);
      out += '?';  // only in names written by hand, which need no more than to be told apart from others
    } else if (const auto k = kFrom.find(c); k != std::string_view::npos) {
      out += kTo[k];
    } else {
      return fail("an unknown escape in a text"), false;
    }
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::vector<Frame> stack_;
  std::optional<Error> error_;
};

}  // namespace

bool looks_like_text_graph(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t at = 0;
  const auto blank = [&] {
    while (at < text.size() && (is_space(text[at]) || text[at] == '#')) {
      if (text[at] == '#') at = std::min(text.find('\n', at), text.size());
      if (at < text.size()) ++at;
    }
  };
  blank();
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  const auto word = text.substr(at, end - at);
  bool known = false;
  for (const char* name :
       {"node", "library", "versions", "meta_info_def", "graph_def", "saver_def", "collection_def", "signature_def",
        "asset_file_def", "object_graph_def", "saved_model_schema_version", "meta_graphs"})
    known = known || word == name;
  at = end;
  blank();
  return known && at < text.size() && (text[at] == '{' || text[at] == ':' || text[at] == '<');
}

Expected<WireText> parse_text_format(std::string_view text, const std::string& file) {
  return TextParser(text, file).run();
}

}  // namespace turnpoint::tensorflow
