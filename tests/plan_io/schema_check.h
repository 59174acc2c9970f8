// SPDX-License-Identifier: Apache-2.0
// Checks documents against the JSON schemas in resources/schemas: the part of JSON Schema that those use. A keyword it
// does not know is an error, so that no schema rule is silently skipped.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace turnpoint::test {

class SchemaCheck {
 public:
  explicit SchemaCheck(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Empty if `document` follows the schema `name` ("plan@1"), else the first place where it does not.
  std::string check(const std::string& name, const nlohmann::json& document) {
    return visit(load(name + ".schema.json"), load(name + ".schema.json"), document, "$");
  }

 private:
  using json = nlohmann::json;

  const json& load(const std::string& file) {
    auto& schema = loaded_[file];
    if (schema.is_null()) {
      std::ifstream in(folder_ / file);
      if (!in) return schema = {{"unreadable schema", file}};
      schema = json::parse(in);
    }
    return schema;
  }

  static bool is_type(const json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    return type == "null" && value.is_null();
  }

  std::string visit(const json& schema, const json& root, const json& value, const std::string& at) {
    for (const auto& [key, rule] : schema.items()) {
      const std::string problem = apply(key, rule, schema, root, value, at);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  std::string apply(const std::string& key, const json& rule, const json& schema, const json& root, const json& value,
                    const std::string& at) {
    static const std::set<std::string> notes = {"$schema", "$id", "$defs", "title", "description"};
    if (notes.count(key)) return {};
    if (key == "$ref") {
      const std::string to = rule.get<std::string>();
      if (to.rfind("#/$defs/", 0) == 0) return visit(root.at("$defs").at(to.substr(8)), root, value, at);
      return visit(load(to), load(to), value, at);
    }
    if (key == "type") {
      bool fits = false;
      for (const auto& type : rule.is_array() ? rule : json::array({rule}))
        fits = fits || is_type(value, type.get<std::string>());
      return fits ? "" : at + ": is not of type " + rule.dump();
    }
    if (key == "const") return value == rule ? "" : at + ": is not " + rule.dump();
    if (key == "enum")
      return std::find(rule.begin(), rule.end(), value) != rule.end() ? "" : at + ": is none of " + rule.dump();
    if (key == "anyOf") {
      std::string first;
      for (const auto& option : rule) {
        const std::string problem = visit(option, root, value, at);
        if (problem.empty()) return {};
        if (first.empty()) first = problem;
      }
      return first;
    }
    if (key == "minimum")
      return !value.is_number() || value.get<double>() >= rule.get<double>() ? "" : at + ": is below the minimum";
    if (key == "maximum")
      return !value.is_number() || value.get<double>() <= rule.get<double>() ? "" : at + ": is above the maximum";
    if (key == "exclusiveMinimum")
      return !value.is_number() || value.get<double>() > rule.get<double>() ? "" : at + ": is not above the minimum";
    if (key == "minItems")
      return !value.is_array() || value.size() >= rule.get<std::size_t>() ? "" : at + ": has too few items";
    if (key == "maxItems")
      return !value.is_array() || value.size() <= rule.get<std::size_t>() ? "" : at + ": has too many items";
    if (key == "uniqueItems")
      return !value.is_array() || std::set<json>(value.begin(), value.end()).size() == value.size()
                 ? ""
                 : at + ": has equal items";
    if (key == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
        if (const auto problem = visit(rule, root, value[i], at + "[" + std::to_string(i) + "]"); !problem.empty())
          return problem;
      return {};
    }
    if (key == "required") {
      for (const auto& name : rule)
        if (value.is_object() && !value.contains(name.get<std::string>()))
          return at + ": lacks " + name.get<std::string>();
      return {};
    }
    if (key == "properties" || key == "additionalProperties") {
      if (!value.is_object()) return {};
      for (const auto& [name, member] : value.items()) {
        const bool listed = schema.contains("properties") && schema["properties"].contains(name);
        const json* of_member = key == "properties" ? (listed ? &rule[name] : nullptr) : (listed ? nullptr : &rule);
        if (!of_member) continue;
        if (const auto problem = visit(*of_member, root, member, at + "." + name); !problem.empty()) return problem;
      }
      return {};
    }
    return "schema keyword not known to the checker: " + key;
  }

  std::filesystem::path folder_;
  std::map<std::string, json> loaded_;
};

}  // namespace turnpoint::test
