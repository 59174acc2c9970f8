// SPDX-License-Identifier: Apache-2.0
// Reads the protocol buffer text format (.pbtxt) of TensorFlow's graph messages by turning it into the wire format, so
// that one decoder serves both. Fields nobody needs are skipped unread, and so are the bytes of large constants: the
// result is small however large the file is.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint::tensorflow {

enum class Container { graph, meta_graph, saved_model };

/// Whether text begins like a GraphDef, MetaGraphDef or SavedModel in text format: a field of theirs and a bracket or
/// colon. `text` may be the first part of a file.
bool looks_like_text_graph(std::string_view text);

struct WireText {
  Container container = Container::graph;
  std::string bytes;  ///< the message in the wire format
};
/// Time and memory are bounded by the size of the text; nesting is limited to 64 levels. Errors name file and line.
Expected<WireText> parse_text_format(std::string_view text, const std::string& file);

}  // namespace turnpoint::tensorflow
