// SPDX-License-Identifier: Apache-2.0
#include "core/import/tensorflow/proto.h"

#include <algorithm>

#include "core/import/onnx/message_parser.h"
#include "core/import/tensorflow/tensor_value.h"
#include "core/import/tensorflow/text_format.h"

namespace turnpoint::tensorflow {

using onnx::WireReader;
using onnx::WireType;
using Bytes = std::span<const std::uint8_t>;

namespace {

constexpr std::size_t kMaxNameLength = 4096;
constexpr std::size_t kMaxListLength = 4096;

/// Attributes nobody reads, left out to save memory: hints of the runtime and types that the operands tell.
bool skipped_attribute(std::string_view key) {
  if (key.starts_with('_')) return key != "_output_shapes";
  for (const char* name :
       {"T",      "Tidx",         "Tdim",          "Tshape", "Tpaddings",  "Tparams", "Tindices",   "Taxis",
        "Tperm",  "Tlen",         "Tblock_shape",  "Tcrops", "Tmultiples", "Index",   "index_type", "use_cudnn_on_gpu",
        "config", "config_proto", "executor_type", "Tin",    "Tout"})
    if (key == name) return true;
  return false;
}

class Parser : public onnx::MessageParser {
 public:
  Parser(const std::string& file, GraphDef& out) : MessageParser(file, kMaxNameLength, "constants"), out_(out) {}

  void read(Bytes bytes, Container container) {
    if (container == Container::graph) return graph(bytes);
    if (container == Container::meta_graph) return meta_graph(bytes);
    bool first = true;
    each(bytes, "saved model", [&](const WireReader& r) {
      if (r.field() == 2 && first) {
        first = false;
        meta_graph(r.bytes());
      }
    });
    if (!error && first) fail("the saved model holds no graph");
  }

 private:
  void meta_graph(Bytes bytes) {
    bool found = false;
    std::map<std::string, std::vector<std::string>> interfaces;
    each(bytes, "meta graph", [&](const WireReader& r) {
      if (r.field() == 2) {
        found = true;
        graph(r.bytes());
      } else if (r.field() == 4) {
        collection(r.bytes());
      } else if (r.field() == 5) {
        signature(r.bytes(), interfaces);
      } else if (r.field() == 7) {
        objects(r.bytes());
      }
    });
    if (!error && !found) fail("the meta graph holds no graph");
    const auto serving = interfaces.find("serving_default");
    for (auto it = interfaces.begin(); it != interfaces.end() && out_.outputs.empty(); ++it) {
      if (it->first != "__saved_model_init_op")
        out_.outputs = serving != interfaces.end() && !serving->second.empty() ? serving->second : it->second;
    }
  }

  void collection(Bytes bytes) {
    std::string key;
    each(bytes, "collection", [&](const WireReader& r) {
      if (r.field() == 1) key = name(r);
      if (r.field() != 2 || key != "trainable_variables") return;
      if (!out_.trainable) out_.trainable.emplace();
      each(r.bytes(), "collection", [&](const WireReader& list) {
        if (list.field() != 2) return;
        each(list.bytes(), "collection", [&](const WireReader& value) {
          WireReader variable(value.bytes());  // a VariableDef; damage in it is no reason to refuse the graph
          while (variable.next()) {
            if (variable.field() != 1) continue;
            const auto text = name(variable);
            out_.trainable->insert(text.substr(0, text.find(':')));
          }
        });
      });
    });
  }

  void signature(Bytes bytes, std::map<std::string, std::vector<std::string>>& interfaces) {
    std::string key;
    std::vector<std::string> outputs;
    each(bytes, "signature", [&](const WireReader& r) {
      if (r.field() == 1) key = name(r);
      if (r.field() != 2) return;
      each(r.bytes(), "signature", [&](const WireReader& s) {
        if (s.field() != 2) return;
        each(s.bytes(), "signature", [&](const WireReader& entry) {
          if (entry.field() != 2) return;
          each(entry.bytes(), "signature", [&](const WireReader& info) {
            if (info.field() == 1) outputs.push_back(name(info));
          });
        });
      });
    });
    if (charge(64)) interfaces[key] = std::move(outputs);
  }

  void objects(Bytes bytes) {
    std::set<std::string, std::less<>> trained;
    each(bytes, "object graph", [&](const WireReader& r) {
      if (r.field() != 1) return;
      each(r.bytes(), "object", [&](const WireReader& object) {
        if (object.field() != 7) return;
        bool trainable = false;
        std::string text;
        each(object.bytes(), "variable", [&](const WireReader& v) {
          if (v.field() == 3) trainable = v.varint() != 0;
          if (v.field() == 6) text = name(v);
        });
        (trainable ? trained : out_.untrained).insert(std::move(text));
      });
    });
    for (const auto& text : trained) out_.untrained.erase(text);
  }

  void graph(Bytes bytes) {
    each(bytes, "graph", [&](const WireReader& r) {
      if (r.field() == 1) {
        node(r.bytes(), out_.nodes);
      } else if (r.field() == 2) {
        each(r.bytes(), "library", [&](const WireReader& l) {
          if (l.field() == 1) function(l.bytes());
        });
      }
    });
    if (!error && out_.nodes.empty()) fail("the graph holds no nodes");
  }

  void function(Bytes bytes) {
    if (!charge(sizeof(FunctionDef) + 64)) return;
    FunctionDef out;
    each(bytes, "function", [&](const WireReader& r) {
      if (r.field() == 1) {
        each(r.bytes(), "signature", [&](const WireReader& s) {
          if (s.field() == 1) out.name = name(s);
          if (s.field() != 2 && s.field() != 3) return;
          each(s.bytes(), "argument", [&](const WireReader& a) {
            if (a.field() == 1) (s.field() == 2 ? out.arguments : out.results).push_back(name(a));
          });
        });
      } else if (r.field() == 3) {
        node(r.bytes(), out.nodes);
      } else if (r.field() == 4) {
        std::string key, value;
        each(r.bytes(), "result", [&](const WireReader& e) {
          if (e.field() == 1) key = name(e);
          if (e.field() == 2) value = name(e);
        });
        out.returns[std::move(key)] = std::move(value);
      }
    });
    out_.functions.insert_or_assign(out.name, std::move(out));
  }

  void node(Bytes bytes, std::vector<NodeDef>& list) {
    if (!charge(sizeof(NodeDef))) return;
    NodeDef out;
    each(bytes, "node", [&](const WireReader& r) {
      switch (r.field()) {
        case 1:
          out.name = name(r);
          place_ = "node '" + out.name + "'";
          break;
        case 2: out.op = name(r); break;
        case 3: out.inputs.push_back(name(r)); break;
        case 5: attribute(r.bytes(), out); break;
        default: break;
      }
    });
    list.push_back(std::move(out));
    if (!error) place_.clear();
  }

  void attribute(Bytes bytes, NodeDef& node_def) {
    std::string_view key;
    Bytes value;
    each(bytes, "attribute", [&](const WireReader& r) {
      if (r.field() == 1) key = r.text();
      if (r.field() == 2) value = r.bytes();
    });
    if (skipped_attribute(key) || !charge(sizeof(Attribute) + 64 + key.size())) return;
    Attribute out;
    each(value, "attribute", [&](const WireReader& r) {
      switch (r.field()) {
        case 1: list(r.bytes(), out); break;
        case 2: out.s = name(r); break;
        case 3: out.i = r.integer(); break;
        case 4: out.f = r.fixed32(); break;
        case 5: out.b = r.varint() != 0; break;
        case 6: out.type = data_type(r.integer()); break;
        case 7: out.shape = shape(r.bytes()); break;
        case 8: {
          auto tensor = std::make_shared<TensorValue>();
          if (!read_tensor(r.bytes(), *tensor)) fail("the file is damaged or truncated (in a tensor message)");
          charge(sizeof(TensorValue) + 8 * (tensor->integers.size() + tensor->reals.size()));
          out.tensor = std::move(tensor);
          break;
        }
        case 10: function_name(r.bytes(), out.function); break;
        default: break;
      }
    });
    node_def.attributes.insert_or_assign(clean(key), std::move(out));
  }

  void function_name(Bytes bytes, std::string& out) {
    each(bytes, "function name", [&](const WireReader& r) {
      if (r.field() == 1) out = name(r);
    });
  }

  MaybeShape shape(Bytes bytes) {
    MaybeShape out;
    if (!read_shape(bytes, out)) fail("a shape is damaged or has more than 32 dimensions");
    charge(sizeof(MaybeShape) + (out ? 8 * out->size() : 0));
    return out;
  }

  void list(Bytes bytes, Attribute& out) {
    const auto integer = [&](std::int64_t value) {
      if (out.integers.size() < kMaxListLength && charge(8)) out.integers.push_back(value);
    };
    each(bytes, "list", [&](const WireReader& r) {
      if (r.field() == 3 || r.field() == 5 || r.field() == 6) {
        if (!r.for_each_varint(integer)) fail("a list is damaged");
      } else if (r.field() == 7) {
        auto one = shape(r.bytes());
        if (out.shapes.size() < kMaxListLength) out.shapes.push_back(std::move(one));
      } else if (r.field() == 9) {
        out.functions.emplace_back();
        function_name(r.bytes(), out.functions.back());
      }
    });
  }

  GraphDef& out_;
};

/// A NodeDef has a name and the name of an operator: letters, digits and a few signs.
bool looks_like_node(Bytes bytes) {
  WireReader reader(bytes);
  bool named = false, has_op = false;
  while (reader.next()) {
    if (reader.type() != WireType::bytes) return false;
    if (reader.field() == 1) named = !reader.text().empty();
    if (reader.field() != 2) continue;
    const auto op = reader.text();
    has_op = !op.empty() && std::all_of(op.begin(), op.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '>' ||
             c == '.';
    });
  }
  return named && has_op && !reader.broken();
}

bool holds_node(Bytes graph) {
  WireReader reader(graph);
  while (reader.next()) {
    if (reader.field() == 1 && reader.type() == WireType::bytes) return looks_like_node(reader.bytes());
  }
  return false;
}

/// By the fields at the top: a GraphDef's first field is its nodes, a MetaGraphDef's second one a GraphDef, a
/// SavedModel begins with a number and holds MetaGraphDefs in its second field (where an ONNX model has a producer's
/// name).
std::optional<Container> container_of(Bytes bytes) {
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.type() != WireType::bytes) continue;
    if (reader.field() == 1 && looks_like_node(reader.bytes())) return Container::graph;
    if (reader.field() != 2) continue;
    if (holds_node(reader.bytes())) return Container::meta_graph;
    WireReader meta(reader.bytes());
    while (meta.next()) {
      if (meta.field() == 2 && meta.type() == WireType::bytes && holds_node(meta.bytes()))
        return Container::saved_model;
    }
  }
  return std::nullopt;
}

}  // namespace

bool looks_like_wire_graph(Bytes bytes) { return container_of(bytes).has_value(); }

Expected<GraphDef> parse_graph(Bytes bytes, const std::string& file) {
  GraphDef graph;
  Parser parser(file, graph);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (looks_like_text_graph(text)) {
    auto wire = parse_text_format(text, file);
    if (!wire) return wire.error();
    parser.read({reinterpret_cast<const std::uint8_t*>(wire->bytes.data()), wire->bytes.size()}, wire->container);
  } else if (const auto container = container_of(bytes)) {
    parser.read(bytes, *container);
  } else {
    return bad_input("is not a TensorFlow graph", file);
  }
  if (parser.error) return *parser.error;
  return graph;
}

}  // namespace turnpoint::tensorflow
