// SPDX-License-Identifier: Apache-2.0
#include "core/import/huggingface/family_table.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace turnpoint::huggingface {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

void set_path(nlohmann::json& object, std::string_view path, nlohmann::json value) {
  nlohmann::json* at = &object;
  for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos; path.remove_prefix(dot + 1))
    at = &(*at)[std::string(path.substr(0, dot))];
  (*at)[std::string(path)] = std::move(value);
}

/// "refuse key: condition: words" and "note: condition: words".
Refusal refusal_of(std::string_view line, bool has_key) {
  const auto first = line.find(':');
  auto rest = line.substr(first + 1);
  const auto second = rest.find(": ");
  Refusal made;
  if (has_key) made.key = trimmed(line.substr(0, first));
  made.condition = trimmed(rest.substr(0, second));
  made.words = trimmed(rest.substr(second + 1));
  return made;
}

void read_line(Family& family, nlohmann::json& defaults, std::string_view line) {
  if (line.starts_with("refuse ")) {
    family.refusals.push_back(refusal_of(line.substr(7), true));
  } else if (line.starts_with("note:")) {
    family.notes.push_back(refusal_of(line, false));
  } else if (const auto assigned = line.find(":="); assigned != std::string_view::npos) {
    set_path(defaults, trimmed(line.substr(0, assigned)),
             nlohmann::json::parse(trimmed(line.substr(assigned + 2))));
  } else if (const auto equals = line.find('='); equals != std::string_view::npos) {
    family.settings[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 1));
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trimmed(text)).empty()) {
    const auto end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

/// Several assignments of a line are separated by semicolons, but for lines of words.
void read_text(Family& family, nlohmann::json& defaults, std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("refuse ") || line.starts_with("note:")) {
      read_line(family, defaults, line);
      continue;
    }
    while (!line.empty()) {
      const auto semicolon = std::min(line.find(';'), line.size());
      read_line(family, defaults, trimmed(line.substr(0, semicolon)));
      line.remove_prefix(std::min(semicolon + 1, line.size()));
    }
  }
}

std::map<std::string, Family, std::less<>> read_table() {
  std::map<std::string, Family, std::less<>> table;
  std::map<std::string_view, const char*> defaults;
  for (auto* list : {defaults_1, defaults_2})
    for (const FamilyDefaults& one : list()) defaults.emplace(one.name, one.text);
  for (auto* rows : {classic_rows, rotary_rows, expert_rows, latent_rows, state_rows, encoder_rows, pair_rows,
                     media_rows}) {
    for (const FamilyRow& row : rows()) {
      Family family;
      if (*row.like) family = table.at(row.like);  // rows stand below those that they are like
      family.name = row.name;
      family.kind = rows == pair_rows      ? FamilyKind::pair
                    : rows == encoder_rows ? FamilyKind::encoder
                                           : FamilyKind::decoder;
      family.like = row.like;
      family.begins = words_of(row.begin);
      nlohmann::json given = family.defaults ? *family.defaults : nlohmann::json::object();
      read_text(family, given, row.text);
      if (const auto own = defaults.find(row.name); own != defaults.end()) read_text(family, given, own->second);
      // A spectrogram cut into patches is read as a picture is, but is sound.
      const auto given_to = [&](const char* setting) {
        const auto found = family.settings.find(setting);
        return found != family.settings.end() ? std::string_view(found->second) : std::string_view();
      };
      if (rows == media_rows)
        family.kind = given_to("audio_bins").empty() && given_to("image_height") != "num_mel_bins" ? FamilyKind::picture
                                                                                                 : FamilyKind::sound;
      else if (!given_to("audio_bins").empty())
        family.kind = FamilyKind::sound;
      family.defaults = std::make_shared<const nlohmann::json>(std::move(given));
      table.emplace(row.name, std::move(family));
    }
  }
  return table;
}

}  // namespace

const std::map<std::string, Family, std::less<>>& family_table() {
  static const auto table = read_table();
  return table;
}

std::string_view class_ending(std::string_view class_name) {
  for (std::size_t at = class_name.find("For"); at != std::string_view::npos; at = class_name.find("For", at + 3))
    if (at > 0 && at + 3 < class_name.size() && std::isupper(static_cast<unsigned char>(class_name[at + 3])))
      return class_name.substr(at);
  for (const std::string_view ending : {"WithLMHeadModel", "LMHeadModel", "TextModel", "Model", "Decoder", "Encoder"})
    if (class_name.ends_with(ending)) return class_name.substr(class_name.size() - ending.size());
  return {};
}

const Family* family_of_class(std::string_view class_name) {
  const std::string_view begin = class_name.substr(0, class_name.size() - class_ending(class_name).size());
  if (begin.empty() || begin == class_name) return nullptr;
  const Family* found = nullptr;
  for (const auto& [name, family] : family_table())
    for (const auto& one : family.begins)
      if (one == begin && (!found || name.size() < found->name.size())) found = &family;
  return found;
}

const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path) {
  const nlohmann::json* at = &object;
  while (true) {
    if (!at->is_object()) return nullptr;
    const auto dot = path.find('.');
    const auto found = at->find(path.substr(0, dot));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace turnpoint::huggingface
