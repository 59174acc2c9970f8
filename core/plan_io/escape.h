// SPDX-License-Identifier: Apache-2.0
// Names from model files inside other formats. Whatever bytes a name holds, the written document stays well-formed.
#pragma once

#include <string>
#include <string_view>

namespace turnpoint {

/// Valid UTF-8: broken sequences, surrogates and overlong forms become U+FFFD. JSON writers refuse anything else.
std::string valid_utf8(std::string_view text);
/// For XML text and attribute values; characters XML 1.0 cannot hold become U+FFFD.
std::string escape_xml(std::string_view text);
/// For a quoted Graphviz string, without the quotes; line breaks become "\n", other control characters spaces.
std::string escape_dot(std::string_view text);
/// One RFC 4180 field, quoted where needed.
std::string csv_field(std::string_view text);

}  // namespace turnpoint
