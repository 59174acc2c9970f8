// SPDX-License-Identifier: Apache-2.0
#include "core/import/files/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace turnpoint {

namespace {

constexpr std::size_t kLooked = std::size_t(4) << 20;
constexpr const char* kConfig = "open the config.json of the model that it belongs to";
constexpr const char* kExport = "export the model with torch.onnx.export or turnpoint-export-model (packaging/export_model.py) and open that";

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// Names of members stand in full in an archive's directory, which is its end, and before each member.
ForeignKind archive(std::string_view bytes) {
  const auto named = [&](std::string_view name) {
    return has(bytes.substr(0, kLooked), name) ||
           (bytes.size() > kLooked && has(bytes.substr(bytes.size() - kLooked), name));
  };
  if (named("serialized_exported_program.json") || named("models/model.json"))
    return {"a program of torch.export (.pt2) that is cut off: its archive has no directory",
            "torch.onnx.export takes the loaded program as it is; open what it writes"};
  if (named("data.pkl") && (named("/code/") || named("constants.pkl")))
    return {"a TorchScript module", std::string("TorchScript has no shapes: ") + kExport};
  if (named("data.pkl"))
    return {"a PyTorch checkpoint: weights without a graph", std::string(kConfig) + ", or " + kExport};
  if (named("model.weights.h5") || (named("metadata.json") && named("config.json")))
    return {"a Keras model", "write it as a SavedModel with model.export() and open that"};
  if (named(".npy")) return {"a NumPy archive: arrays without a graph", kConfig};
  if (named("word/document.xml") || named("xl/workbook.xml")) return {"an office document", ""};
  return {"a ZIP archive", "unpack it and open the model inside"};
}

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char *what, *way_out;
};

const Magic kMagics[] = {
    {0, "GGUF", "a GGUF file: quantised weights for inference", kConfig},
    {0, "ggjt", "an old file of llama.cpp: quantised weights for inference", kConfig},
    {4, "TFL3", "a TensorFlow Lite model, made for inference", "open the SavedModel that it was converted from"},
    {4, "ET12", "an ExecuTorch program, made for inference", kExport},
    {0, "\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes its models and weights (.h5)",
     "write the model as a SavedModel with model.export() and open that"},
    {0, "ML\xefR", "MLIR bytecode, as StableHLO programs are stored",
     "open the ONNX or TensorFlow graph of the model, or its config.json"},
    {0, "ftrt", "a TensorRT engine, built for one GPU's inference", "open the ONNX file that it was built from"},
    {0, "\x93NUMPY", "a NumPy array: numbers without a graph", kConfig},
    {0, "PAR1", "a Parquet table", ""},
    {0, std::string_view("\x1f\x8b", 2), "compressed with gzip", "unpack it and open what is inside"},
    {0, std::string_view("\x28\xb5\x2f\xfd", 4), "compressed with Zstandard", "unpack it and open what is inside"},
    {0,
     std::string_view("\xfd"
                      "7zXZ",
                      5),
     "compressed with xz", "unpack it and open what is inside"},
    {0, "BZh", "compressed with bzip2", "unpack it and open what is inside"},
    {257, "ustar", "a tar archive", "unpack it and open the model inside"},
    {0,
     "\x7f"
     "ELF",
     "a program or library", ""},
    {0, "%PDF", "a PDF document", ""},
    {0, "\x89PNG", "a picture", ""},
    {0, "\xff\xd8\xff", "a picture", ""},
    {0, "SQLite format 3", "a database, as profilers of NVIDIA write theirs",
     "measured logs are opened with turnpoint-cli hardware"},
    {0, "version https://git-lfs", "a Git LFS pointer: the file itself was not downloaded", "run git lfs pull"},
    {0, "[net]", "a Darknet configuration", kExport},
    {0, "7767517", "an ncnn model, made for inference", "open the ONNX file that it was converted from"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<ForeignKind> text_kind(std::string_view bytes) {
  const auto head = bytes.substr(0, 4096);
  const auto small = lower(head.substr(0, 256));
  if (small.starts_with("<!doctype html") || small.starts_with("<html"))
    return ForeignKind{"a web page, not what it links to",
                       "download the file itself, on Hugging Face by its 'raw' link"};
  if (has(head, "stablehlo.") || has(head, "mhlo.") || (has(head, "module @") && has(head, "func.func")))
    return ForeignKind{"a StableHLO program as text",
                       "open the ONNX or TensorFlow graph of the model, or its config.json"};
  if (head.starts_with("HloModule"))
    return ForeignKind{"an HLO program of XLA", "open the ONNX or TensorFlow graph of the model, or its config.json"};
  if (small.starts_with("<?xml") && has(small, "<net "))
    return ForeignKind{"an OpenVINO model, made for inference", "open the model that it was converted from"};
  return std::nullopt;
}

std::optional<ForeignKind> json_kind(std::string_view bytes) {
  if (bytes.size() > kLooked) return std::nullopt;
  const auto parsed = parse_json(bytes, "");
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto& document = *parsed;
  const auto text = [&](const char* key) {
    const auto found = document.find(key);
    return found != document.end() && found->is_string() ? found->get<std::string>().substr(0, 80) : std::string();
  };
  if (document.contains("peft_type")) {
    const auto base = text("base_model_name_or_path");
    return ForeignKind{"a LoRA adapter, which is trained beside a model",
                       base.empty() ? kConfig : "open the config.json of its base model, " + base};
  }
  if (document.contains("_diffusers_version") || document.contains("_class_name"))
    return ForeignKind{
        "a diffusers configuration (" + (text("_class_name").empty() ? "a part" : text("_class_name")) + ")",
        "export that part with turnpoint-export-model module:callable (packaging/export_model.py) and open the graph"};
  if (document.contains("model_type")) return std::nullopt;
  if (document.contains("class_name") && document.contains("config"))
    return ForeignKind{"a Keras architecture", "write the model as a SavedModel with model.export() and open that"};
  if (document.contains("added_tokens") || document.contains("tokenizer_class"))
    return ForeignKind{"a tokenizer", "open the config.json beside it"};
  if (document.contains("log_history") && document.contains("global_step"))
    return ForeignKind{"the state of a training run", "open the config.json beside it"};
  if (document.contains("traceEvents")) return ForeignKind{"a trace, which has times and no graph", kConfig};
  if (document.contains("transformers_version") &&
      (document.contains("eos_token_id") || document.contains("do_sample")) && !document.contains("architectures") &&
      !document.contains("hidden_size"))
    return ForeignKind{"a generation_config.json", "open the config.json beside it"};
  return std::nullopt;
}

}  // namespace

std::optional<ForeignKind> foreign_kind(std::string_view bytes) {
  for (const auto& magic : kMagics)
    if (bytes.size() >= magic.at && bytes.substr(magic.at).starts_with(magic.bytes))
      return ForeignKind{magic.what, magic.way_out};
  if (bytes.starts_with(std::string_view("PK\x03\x04", 4))) return archive(bytes);
  // Pickles of protocol 2 to 5 begin with their protocol, and PyTorch's oldest with a number of its own.
  if (bytes.size() > 4 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    const bool torch = has(bytes.substr(0, 16), "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
    return ForeignKind{
        torch ? "a PyTorch checkpoint: weights without a graph" : "a Python pickle, which is never read here",
        std::string(kConfig) + ", or " + kExport};
  }
  auto text = bytes;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return std::nullopt;
  text.remove_prefix(first);
  if (text.front() == '{') return json_kind(text);
  return text_kind(text);
}

Error foreign_error(const ForeignKind& kind, const std::string& path) {
  Error error = bad_input("is " + kind.what, path);
  error.hint = kind.way_out;
  return error;
}

}  // namespace turnpoint
