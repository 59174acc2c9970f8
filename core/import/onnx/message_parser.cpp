// SPDX-License-Identifier: Apache-2.0
#include "core/import/onnx/message_parser.h"

namespace turnpoint::onnx {

std::string clean_name(std::string_view text, std::size_t longest) {
  std::string result;
  text = text.substr(0, longest);
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    bool valid = length > 0 && i + length <= text.size() && lead >= 0x20 && lead != 0x7f;
    for (std::size_t k = 1; valid && k < length; ++k) valid = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (valid && length == 3) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      valid = !(lead == 0xe0 && second < 0xa0) && !(lead == 0xed && second >= 0xa0);
    }
    if (valid && length == 4) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      valid = !(lead == 0xf0 && second < 0x90) && !(lead == 0xf4 && second >= 0x90);
    }
    if (valid) {
      result.append(text, i, length);
      i += length;
    } else {
      result += '?';
      ++i;
    }
  }
  return result;
}

}  // namespace turnpoint::onnx
