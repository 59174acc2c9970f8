// SPDX-License-Identifier: Apache-2.0
// The small language in which the table of families says how a setting follows from a config's keys.
//
//   12   'silu'   true   none             constants; none is null, an absent key, no layer
//   hidden_size   attn_config.kv_n_heads  a key of the config, nested ones with dots
//   layer_types[$i]                       an entry of a list, none beyond its end
//   a | b | 12                            the first that the config has; else the first with a default of the family
//   $hidden  $i  $class                   a setting read before, the layer's number, what the class name ends with
//   + - * / %   == != < <= > >=   && || !   condition ? a : b
//   has(key)   size(key)   in(key, x)   letter(text, n)   begins(text, 'part')   ends(text, 'part')
//   min(a, b)   max(a, b)   up(a, b): the next multiple of b
//
// A key that is absent has the family's default, one that is null has none. 0 and none count as false.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/json_fields.h"

namespace turnpoint::huggingface {

using Value = std::variant<std::monostate, bool, double, std::string>;

bool is_none(const Value& value);
bool truth(const Value& value);

struct Result {
  Value value;
  std::string key;    ///< the key that the value was read from, or the first one looked at; empty: none
  std::string fault;  ///< what is wrong with the expression or a key's type; empty: nothing
};

/// Where names get their values from.
struct Names {
  /// The config's JSON at a dotted path, null where there is none; `given` keys only, or also the family's defaults.
  std::function<const nlohmann::json*(std::string_view key, bool defaults)> key;
  std::function<Result(std::string_view setting)> setting;
};

/// Evaluates an expression. Expressions come from the table, configs from outside: a fault about types names the key.
Result evaluate(std::string_view expression, const Names& names);

}  // namespace turnpoint::huggingface
