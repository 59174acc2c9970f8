// SPDX-License-Identifier: Apache-2.0
// Mutations of a JSON document's tree. What no tree can hold (nan, 2^64, a key twice) is marked in it and put in when the
// document is written.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fuzz/mutation.h"

namespace turnpoint::test {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kToken = "@token@";  ///< a string that is written without its quotes
constexpr std::string_view kTwice = "@twice@";  ///< a key that is written without this

/// A value's place: its container and what it is called or where it stands there; null: the document.
struct Place {
  Json* value = nullptr;
  Json* parent = nullptr;
  std::string key;
  std::size_t index = 0;
};

void collect(Json& value, std::vector<Place>& places) {
  if (value.is_object())
    for (auto& [key, inner] : value.items()) {
      places.push_back({&inner, &value, key, 0});
      collect(inner, places);
    }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) {
      places.push_back({&value[i], &value, {}, i});
      collect(value[i], places);
    }
}

Json token(const std::string& text) { return std::string(kToken) + text; }

Json odd_number(Random& random) { return token(odd_numbers()[below(random, odd_numbers().size())]); }

/// A number near the one that stood there: the readers that check ranges are passed that way.
Json near(const Json& value, Random& random) {
  if (!value.is_number()) return odd_number(random);
  const double number = value.get<double>();
  if (value.is_number_float()) return number * (below(random, 2) ? 0.5 : -1);
  if (!(std::abs(number) < 1e15)) return 0;
  const auto whole = value.get<std::int64_t>();
  switch (below(random, 6)) {
    case 0: return whole + 1;
    case 1: return whole - 1;
    case 2: return whole * 2;
    case 3: return whole / 2;
    case 4: return -whole;
    default: return whole * 1000;
  }
}

Json retyped(const Json& value, Random& random) {
  switch (below(random, 8)) {
    case 0: return nullptr;
    case 1: return below(random, 2) == 0;
    case 2: return Json::array();
    case 3: return Json::object();
    case 4: return Json::array({value});
    case 5: return Json{{"a", value}};
    case 6: return odd_word(random);
    default: return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

/// As deep as a hundred brackets.
Json deepened(Json value, Random& random) {
  const std::size_t levels = 1 + below(random, 100);
  const bool objects = below(random, 2) != 0;
  for (std::size_t i = 0; i < levels; ++i) {
    Json outer = objects ? Json::object() : Json::array();
    if (objects) outer["a"] = std::move(value);
    else outer.push_back(std::move(value));
    value = std::move(outer);
  }
  return value;
}

void insert_copy(const Place& place, Random& random) {
  const Json copy = *place.value;
  if (place.parent->is_array()) {
    const std::size_t at = below(random, place.parent->size() + 1);
    place.parent->insert(place.parent->begin() + static_cast<std::ptrdiff_t>(at), copy);
  } else {
    (*place.parent)[std::string(kTwice) + place.key] = copy;
  }
}

void make_huge(const Place& place, Random& random) {
  const std::size_t length = place.value->dump(-1, ' ', false, Json::error_handler_t::replace).size() + 1;
  const std::size_t most = below(random, 8) ? 10000 : 300000;  // bytes; rarely as many as take long to read
  const std::size_t copies = std::min<std::size_t>(1 + below(random, 50000), most / length);
  *place.value = Json(Json::array_t(copies, *place.value));
}

void erase(const Place& place) {
  if (place.parent->is_array()) place.parent->erase(place.parent->begin() + static_cast<std::ptrdiff_t>(place.index));
  else place.parent->erase(place.key);
}

void edit(Json& document, Random& random) {
  std::vector<Place> places;
  collect(document, places);
  if (places.empty()) {
    document = retyped(document, random);
    return;
  }
  const Place& place = places[below(random, places.size())];
  const Place& other = places[below(random, places.size())];
  switch (below(random, 14)) {
    case 0: erase(place); break;
    case 1: insert_copy(place, random); break;
    case 2: {
      // By copies: one of the two may lie within the other.
      const Json a = *place.value, b = *other.value;
      *place.value = b;
      if (place.value == other.value || (!a.is_structured() && !b.is_structured())) *other.value = a;
      break;
    }
    case 3: *place.value = retyped(*place.value, random); break;
    case 4: *place.value = deepened(*place.value, random); break;
    case 5: make_huge(place, random); break;
    case 6: *place.value = odd_word(random); break;
    case 7: {
      const Json copy = *other.value;
      *place.value = copy;
      break;
    }
    case 8:
      if (place.parent->is_object() && !other.key.empty()) {
        const Json copy = *place.value;
        place.parent->erase(place.key);
        if (place.parent->is_object() && !place.parent->contains(other.key)) (*place.parent)[other.key] = copy;
      }
      break;
    case 9:
    case 10: *place.value = odd_number(random); break;
    default: *place.value = near(*place.value, random);
  }
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

std::string written(const Json& document, Random& random) {
  std::string text = document.dump(below(random, 2) ? -1 : 1, ' ', false, Json::error_handler_t::replace);
  for (const auto& number : odd_numbers()) replace_all(text, '"' + std::string(kToken) + number + '"', number);
  replace_all(text, kTwice, "");
  return text;
}

class JsonSeed final : public Seed {
 public:
  explicit JsonSeed(Json document) : document_(std::move(document)) {}

  std::string mutated(Random& random) const override {
    Json document = document_;
    const std::size_t edits = 1 + below(random, 4);
    for (std::size_t e = 0; e < edits; ++e) edit(document, random);
    return written(document, random);
  }

 private:
  Json document_;
};

}  // namespace

std::unique_ptr<const Seed> json_seed(std::string_view text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_structured()) return nullptr;
  return std::make_unique<JsonSeed>(std::move(document));
}

}  // namespace turnpoint::test
