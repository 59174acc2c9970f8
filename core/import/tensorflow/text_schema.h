// SPDX-License-Identifier: Apache-2.0
// Names, numbers and types of the fields that are read from TensorFlow's graph messages (graph.proto, node_def.proto,
// attr_value.proto, tensor.proto, function.proto, op_def.proto, meta_graph.proto, saved_model.proto and
// saved_object_graph.proto of TensorFlow 2.x).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace turnpoint::tensorflow {

enum class MessageType : std::uint8_t {
  none,  ///< of unknown fields: read over
  graph,
  node,
  attribute_entry,
  attribute,
  list,
  function_name,
  shape,
  dimension,
  tensor,
  library,
  function,
  signature,
  argument,
  text_entry,
  meta_graph,
  collection_entry,
  collection,
  bytes_list,
  interface_entry,
  interface,
  tensor_entry,
  tensor_info,
  saved_model,
  objects,
  object,
  variable,
};

enum class ScalarType : std::uint8_t { integer, real32, real64, bytes, message };

struct FieldType {
  std::string_view name;
  std::uint32_t number;
  ScalarType scalar;
  MessageType message = MessageType::none;
};

/// Null for fields that are not read.
const FieldType* find_field(MessageType message, std::string_view name);

/// Number of a DataType's name: "DT_FLOAT" is 1, "DT_FLOAT_REF" 101.
std::optional<int> data_type_number(std::string_view name);

}  // namespace turnpoint::tensorflow
