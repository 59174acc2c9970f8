// SPDX-License-Identifier: Apache-2.0
// Writes a graph as an ONNX file in memory, so that TensorFlow models are bound by the same code as ONNX files: shapes,
// batch re-binding, folding and the operators' loop dimensions are written once.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/import/tensorflow/proto.h"

namespace turnpoint::tensorflow {

/// TensorProto.DataType of onnx.proto; 0: none. Quantised types count as the integers they are stored in.
std::int64_t onnx_type(DataType type);

/// Attributes of one ONNX node, in the wire format.
class Attributes {
 public:
  Attributes& set(std::string_view key, std::int64_t value);
  Attributes& set(std::string_view key, const std::vector<std::int64_t>& values);
  Attributes& text(std::string_view key, std::string_view value);
  Attributes& tensor(std::string_view key, const TensorValue& value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class OnnxWriter {
 public:
  struct Node {
    std::string kind, domain, name;
    std::vector<std::string> inputs, outputs;
    Attributes attributes;
  };

  /// `name`, or with a number behind it where it is taken.
  std::string unique(std::string name);
  /// Adds a node and returns it; it stays valid.
  Node& node(Node node);
  /// The node that makes a value; null for inputs and initialisers.
  Node* producer(const std::string& value);
  /// A size of -1 is written as the symbol at its place.
  void input(const std::string& name, DataType type, const Shape& shape, const std::vector<std::string>& symbols);
  void declare(const std::string& name, DataType type, const Shape& shape);
  void output(const std::string& name);
  /// With values where the tensor has them.
  void initializer(const std::string& name, const TensorValue& tensor);
  std::size_t size() const { return nodes_.size(); }

  std::string bytes() const;

 private:
  std::deque<Node> nodes_;
  std::unordered_map<std::string, Node*> producers_;
  std::unordered_map<std::string, int> taken_;
  std::unordered_map<std::string, std::string> declared_;
  std::string rest_;  ///< everything of the graph but its nodes
};

}  // namespace turnpoint::tensorflow
