// SPDX-License-Identifier: Apache-2.0
// Mutations of protobuf's wire format: fields, lengths, varints and the messages inside, as far as they can be told
// without a schema (bytes that parse as fields are taken for a message).
#include <algorithm>
#include <bit>
#include <optional>

#include "fuzz/mutation.h"

namespace turnpoint::test {

namespace {

enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint64_t number = 1;
  std::uint32_t wire = kVarint;
  std::uint64_t value = 0;    ///< varint and fixed
  std::string bytes;          ///< of kBytes where it is no message
  std::vector<Field> fields;  ///< of kBytes where it is one
  bool message = false;
  std::uint64_t length_off = 0;  ///< added to the length that is written
  int longer = 0;                ///< bytes that the varint is longer than it need be
};

constexpr int kDeepest = 12;

struct Reader {
  std::string_view text;
  std::size_t at = 0;

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < text.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(text[at++]);
      value |= std::uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<std::uint64_t> fixed(std::size_t size) {
    if (text.size() - at < size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
    at += size;
    return value;
  }
};

std::optional<std::vector<Field>> parse(std::string_view text, int depth) {
  std::vector<Field> fields;
  for (Reader reader{text}; reader.at < text.size();) {
    const auto tag = reader.varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 2048) return std::nullopt;
    Field field;
    field.number = *tag >> 3;
    field.wire = static_cast<std::uint32_t>(*tag & 7);
    std::optional<std::uint64_t> value;
    if (field.wire == kVarint || field.wire == kBytes) value = reader.varint();
    else if (field.wire == kFixed64) value = reader.fixed(8);
    else if (field.wire == kFixed32) value = reader.fixed(4);
    if (!value) return std::nullopt;
    if (field.wire != kBytes) {
      field.value = *value;
    } else {
      if (*value > text.size() - reader.at) return std::nullopt;
      field.bytes = text.substr(reader.at, *value);
      reader.at += *value;
      auto inner = depth < kDeepest && !field.bytes.empty() ? parse(field.bytes, depth + 1) : std::nullopt;
      if (inner) {
        field.fields = std::move(*inner);
        field.message = true;
        field.bytes.clear();
      }
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

void put_varint(std::string& out, std::uint64_t value, int longer = 0) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  for (; longer > 0; --longer, value = 0) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void write(const std::vector<Field>& fields, std::string& out) {
  for (const auto& field : fields) {
    put_varint(out, field.number << 3 | field.wire);
    if (field.wire == kVarint) {
      put_varint(out, field.value, field.longer);
    } else if (field.wire == kFixed64 || field.wire == kFixed32) {
      for (int i = 0; i < (field.wire == kFixed64 ? 8 : 4); ++i) out += static_cast<char>(field.value >> (8 * i) & 0xff);
    } else if (field.wire == kBytes) {
      std::string inner;
      if (field.message) write(field.fields, inner);
      else inner = field.bytes;
      put_varint(out, inner.size() + field.length_off, field.longer);
      out += inner;
    }  // groups and wire types that nobody knows: the tag alone
  }
}

struct Place {
  std::vector<Field>* among;
  std::size_t index;
  Field& field() const { return (*among)[index]; }
};

void collect(std::vector<Field>& fields, std::vector<Place>& places) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    places.push_back({&fields, i});
    collect(fields[i].fields, places);
  }
}

std::uint64_t odd_value(std::uint64_t value, Random& random) {
  switch (below(random, 10)) {
    case 0: return 0;
    case 1: return ~std::uint64_t(0);  // -1
    case 2: return std::uint64_t(1) << below(random, 64);
    case 3: return (std::uint64_t(1) << below(random, 64)) - 1;
    case 4: return value + 1;
    case 5: return value - 1;
    case 6: return value * 2;
    case 7: return std::bit_cast<std::uint64_t>(1e308);
    case 8: return 0x7ff8000000000000u;  // nan
    default: return random() % 64;
  }
}

/// The message within itself, some levels deep.
void deepen(Field& field, Random& random) {
  const std::size_t levels = 1 + below(random, 150);
  for (std::size_t i = 0; i < levels; ++i) {
    Field outer;
    outer.number = field.number;
    outer.wire = kBytes;
    outer.message = true;
    outer.fields.push_back(std::move(field));
    field = std::move(outer);
  }
}

void retype(Field& field, Random& random) {
  field.wire = static_cast<std::uint32_t>(below(random, 8));
  if (below(random, 2) && field.wire == kBytes) {
    field.message = false;
    field.bytes = odd_word(random);
  }
}

void edit_bytes(Field& field, Random& random) {
  field.message = false;
  field.wire = kBytes;
  switch (below(random, 4)) {
    case 0: field.bytes.clear(); break;
    case 1: field.bytes = odd_word(random); break;
    case 2: field.bytes.assign(1 + below(random, below(random, 8) ? 1000 : 100000), static_cast<char>(random())); break;  // many packed numbers
    default: field.bytes = mutated_bytes(std::move(field.bytes), random);
  }
}

void edit(std::vector<Field>& document, Random& random) {
  std::vector<Place> places;
  collect(document, places);
  if (places.empty()) return;
  const Place place = places[below(random, places.size())], other = places[below(random, places.size())];
  auto& among = *place.among;
  const auto where = [&](std::size_t k) { return among.begin() + static_cast<std::ptrdiff_t>(k); };
  switch (below(random, 13)) {
    case 0: among.erase(where(place.index)); break;
    case 1: {
      const Field copy = place.field();
      among.insert(where(place.index), 1 + below(random, 3), copy);
      break;
    }
    case 2: {
      const Field copy = other.field();
      place.field() = copy;
      break;
    }
    case 3: std::swap(place.field(), among[below(random, among.size())]); break;
    case 4: place.field().number = 1 + below(random, below(random, 4) ? 32 : 600000000); break;
    case 5: retype(place.field(), random); break;
    case 6: deepen(place.field(), random); break;
    case 7: edit_bytes(place.field(), random); break;
    case 8: place.field().length_off = below(random, 2) ? random() % 9 - 4 : std::uint64_t(1) << below(random, 64); break;
    case 9: place.field().longer = 1 + static_cast<int>(below(random, 12)); break;
    case 10: {  // many of one: inputs, sizes, attributes
      const Field copy = place.field();
      std::string text;
      write({copy}, text);
      among.insert(where(place.index), std::min<std::size_t>(1 + below(random, 20000), (below(random, 8) ? 10000 : 300000) / (text.size() + 1)), copy);
      break;
    }
    default: {
      const bool number = place.field().wire != kBytes;
      Field& field = number ? place.field() : other.field();
      if (field.wire != kBytes) field.value = odd_value(field.value, random);
    }
  }
}

class WireSeed final : public Seed {
 public:
  explicit WireSeed(std::vector<Field> fields) : fields_(std::move(fields)) {}

  std::string mutated(Random& random) const override {
    auto fields = fields_;
    const std::size_t edits = 1 + below(random, 4);
    for (std::size_t e = 0; e < edits; ++e) edit(fields, random);
    std::string text;
    write(fields, text);
    return text;
  }

 private:
  std::vector<Field> fields_;
};

}  // namespace

std::unique_ptr<const Seed> wire_seed(std::string_view text) {
  auto fields = parse(text, 0);
  if (!fields || fields->empty()) return nullptr;
  return std::make_unique<WireSeed>(std::move(*fields));
}

}  // namespace turnpoint::test
