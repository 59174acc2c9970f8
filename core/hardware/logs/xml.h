// SPDX-License-Identifier: Apache-2.0
// A small reader for XML that machines write (topology dumps): elements and attributes. Document types, and with them
// external entities and entity bombs, are refused; text between elements is passed over.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint::logs {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  int line = 0;

  /// Empty if absent.
  const std::string& attribute(std::string_view name) const;
};

/// The root element. At most 64 levels, 100,000 elements and 256 attributes each.
Expected<XmlElement> parse_xml(std::string_view text, const std::string& where);

}  // namespace turnpoint::logs
