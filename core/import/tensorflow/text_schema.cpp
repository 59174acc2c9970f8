// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/text_schema.h"

#include <array>
#include <span>

namespace turnpoint::tensorflow {

namespace {

using M = MessageType;
using S = ScalarType;

constexpr FieldType kGraph[] = {{"node", 1, S::message, M::node}, {"library", 2, S::message, M::library}};
constexpr FieldType kNode[] = {
    {"name", 1, S::bytes}, {"op", 2, S::bytes}, {"input", 3, S::bytes}, {"attr", 5, S::message, M::attribute_entry}};
constexpr FieldType kAttributeEntry[] = {{"key", 1, S::bytes}, {"value", 2, S::message, M::attribute}};
constexpr FieldType kAttribute[] = {{"list", 1, S::message, M::list},
                                    {"s", 2, S::bytes},
                                    {"i", 3, S::integer},
                                    {"f", 4, S::real32},
                                    {"b", 5, S::integer},
                                    {"type", 6, S::integer},
                                    {"shape", 7, S::message, M::shape},
                                    {"tensor", 8, S::message, M::tensor},
                                    {"placeholder", 9, S::bytes},
                                    {"func", 10, S::message, M::function_name}};
constexpr FieldType kList[] = {{"s", 2, S::bytes},
                               {"i", 3, S::integer},
                               {"f", 4, S::real32},
                               {"b", 5, S::integer},
                               {"type", 6, S::integer},
                               {"shape", 7, S::message, M::shape},
                               {"func", 9, S::message, M::function_name}};
constexpr FieldType kFunctionName[] = {{"name", 1, S::bytes}};
constexpr FieldType kShape[] = {{"dim", 2, S::message, M::dimension}, {"unknown_rank", 3, S::integer}};
constexpr FieldType kDimension[] = {{"size", 1, S::integer}};
constexpr FieldType kTensor[] = {{"dtype", 1, S::integer},        {"tensor_shape", 2, S::message, M::shape},
                                 {"tensor_content", 4, S::bytes}, {"half_val", 13, S::integer},
                                 {"float_val", 5, S::real32},     {"double_val", 6, S::real64},
                                 {"int_val", 7, S::integer},      {"int64_val", 10, S::integer},
                                 {"bool_val", 11, S::integer},    {"uint32_val", 16, S::integer},
                                 {"uint64_val", 17, S::integer}};
constexpr FieldType kLibrary[] = {{"function", 1, S::message, M::function}};
constexpr FieldType kFunction[] = {{"signature", 1, S::message, M::signature},
                                   {"node_def", 3, S::message, M::node},
                                   {"ret", 4, S::message, M::text_entry}};
constexpr FieldType kSignature[] = {
    {"name", 1, S::bytes}, {"input_arg", 2, S::message, M::argument}, {"output_arg", 3, S::message, M::argument}};
constexpr FieldType kArgument[] = {{"name", 1, S::bytes}, {"type", 3, S::integer}};
constexpr FieldType kTextEntry[] = {{"key", 1, S::bytes}, {"value", 2, S::bytes}};
constexpr FieldType kMetaGraph[] = {{"graph_def", 2, S::message, M::graph},
                                    {"collection_def", 4, S::message, M::collection_entry},
                                    {"signature_def", 5, S::message, M::interface_entry},
                                    {"object_graph_def", 7, S::message, M::objects}};
constexpr FieldType kCollectionEntry[] = {{"key", 1, S::bytes}, {"value", 2, S::message, M::collection}};
constexpr FieldType kCollection[] = {{"bytes_list", 2, S::message, M::bytes_list}};
constexpr FieldType kBytesList[] = {{"value", 1, S::bytes}};
constexpr FieldType kInterfaceEntry[] = {{"key", 1, S::bytes}, {"value", 2, S::message, M::interface}};
constexpr FieldType kInterface[] = {{"inputs", 1, S::message, M::tensor_entry},
                                    {"outputs", 2, S::message, M::tensor_entry}};
constexpr FieldType kTensorEntry[] = {{"key", 1, S::bytes}, {"value", 2, S::message, M::tensor_info}};
constexpr FieldType kTensorInfo[] = {{"name", 1, S::bytes}};
constexpr FieldType kSavedModel[] = {{"saved_model_schema_version", 1, S::integer},
                                     {"meta_graphs", 2, S::message, M::meta_graph}};
constexpr FieldType kObjects[] = {{"nodes", 1, S::message, M::object}};
constexpr FieldType kObject[] = {{"variable", 7, S::message, M::variable}};
constexpr FieldType kVariable[] = {{"trainable", 3, S::integer}, {"name", 6, S::bytes}};

std::span<const FieldType> fields_of(MessageType message) {
  switch (message) {
    case M::none: return {};
    case M::graph: return kGraph;
    case M::node: return kNode;
    case M::attribute_entry: return kAttributeEntry;
    case M::attribute: return kAttribute;
    case M::list: return kList;
    case M::function_name: return kFunctionName;
    case M::shape: return kShape;
    case M::dimension: return kDimension;
    case M::tensor: return kTensor;
    case M::library: return kLibrary;
    case M::function: return kFunction;
    case M::signature: return kSignature;
    case M::argument: return kArgument;
    case M::text_entry: return kTextEntry;
    case M::meta_graph: return kMetaGraph;
    case M::collection_entry: return kCollectionEntry;
    case M::collection: return kCollection;
    case M::bytes_list: return kBytesList;
    case M::interface_entry: return kInterfaceEntry;
    case M::interface: return kInterface;
    case M::tensor_entry: return kTensorEntry;
    case M::tensor_info: return kTensorInfo;
    case M::saved_model: return kSavedModel;
    case M::objects: return kObjects;
    case M::object: return kObject;
    case M::variable: return kVariable;
  }
  return {};
}

constexpr std::array<std::string_view, 24> kDataTypes = {
    "DT_INVALID",   "DT_FLOAT",  "DT_DOUBLE",     "DT_INT32", "DT_UINT8",    "DT_INT16",   "DT_INT8",     "DT_STRING",
    "DT_COMPLEX64", "DT_INT64",  "DT_BOOL",       "DT_QINT8", "DT_QUINT8",   "DT_QINT32",  "DT_BFLOAT16", "DT_QINT16",
    "DT_QUINT16",   "DT_UINT16", "DT_COMPLEX128", "DT_HALF",  "DT_RESOURCE", "DT_VARIANT", "DT_UINT32",   "DT_UINT64"};

}  // namespace

const FieldType* find_field(MessageType message, std::string_view name) {
  for (const auto& field : fields_of(message)) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::optional<int> data_type_number(std::string_view name) {
  const bool reference = name.ends_with("_REF");
  if (reference) name.remove_suffix(4);
  for (std::size_t i = 0; i < kDataTypes.size(); ++i) {
    if (kDataTypes[i] == name) return static_cast<int>(i) + (reference ? 100 : 0);
  }
  return std::nullopt;
}

}  // namespace turnpoint::tensorflow
