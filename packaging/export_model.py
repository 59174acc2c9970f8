#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the graph of a PyTorch model as ONNX without its weights, for turnpoint.

    export_model.py config.json model.onnx            a Hugging Face configuration, or a folder that holds one
    export_model.py my_package.my_module:make out.onnx   a callable that returns a module, or (module, arguments)

The model is built on the meta device: no weight is downloaded, allocated or written, so that 70 billion parameters take
no more memory than 70 million. The batch and the sequence stay free where PyTorch can trace them so.
Needs torch (2.9 or newer), onnxscript and, for configurations, transformers."""
import argparse
import importlib
import json
import logging
import os
import sys
import warnings


def library(name):
    """Imported when it is needed, so that wrong usage is told from a missing library."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"{name} is needed and cannot be imported: {error}")


def logits_of(model, names):
    """The model with named inputs; its result is the tensor that training computes its loss from."""
    torch = library("torch")

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            out = self.model(**dict(zip(names, values)))
            if isinstance(out, torch.Tensor):
                return out
            for key in ("logits", "logits_per_image", "last_hidden_state"):
                if out.get(key) is not None:
                    return out[key]
            return out[0]

    return Logits()


def values_of(path):
    """What a config.json says."""
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")
    if not isinstance(values, dict):
        sys.exit(f"{path}: must be an object")
    return values


def ints(config, *names):
    """The first of these keys that the configuration or a part of it has."""
    for part in (config, getattr(config, "vision_config", None), getattr(config, "text_config", None)):
        for name in names:
            value = getattr(part, name, None)
            if value:
                return value
    return None


def hugging_face(path, batch, sequence):
    """(module, arguments, dynamic shapes) of a config.json."""
    folder = path if os.path.isdir(path) else None
    values = {} if folder else values_of(path)
    kind = values.pop("model_type", None)
    if not folder and kind is None:
        sys.exit(f"{path}: has no model_type")
    if folder and not os.path.exists(os.path.join(folder, "config.json")):
        sys.exit(f"{path}: the folder holds no config.json")
    torch, transformers = library("torch"), library("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(folder) if folder else transformers.AutoConfig.for_model(kind, **values)
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    for part in (config, getattr(config, "text_config", None)):
        if part is not None:
            part.use_cache = False
    kind = next((getattr(transformers, a) for a in config.architectures or [] if hasattr(transformers, a)), None)
    if (ints(config, "num_local_experts", "num_experts", "n_routed_experts") or 0) > 1:
        print("note: PyTorch's graph of experts copies their weights for every token, and memory is that of these copies; "
              "turnpoint reads mixtures better from their config.json itself", file=sys.stderr)
    options = {"attn_implementation": "eager"}
    # Experts as one product over all of them: the other ways count tokens, which a graph without numbers cannot.
    config._experts_implementation = "batched_mm"
    with torch.device("meta"):
        if kind is not None:
            model = kind._from_config(config, **options)
        else:
            try:
                model = transformers.AutoModelForCausalLM.from_config(config, **options)
            except ValueError:
                model = transformers.AutoModel.from_config(config, **options)
    tokens = lambda: torch.zeros((batch, sequence), dtype=torch.long, device="meta")
    token_axes = {0: "batch", 1: "sequence"}
    main = model.main_input_name
    names, values, axes = [], [], []
    if main == "pixel_values" or (main == "input_ids" and hasattr(config, "vision_config") and model.can_generate() is False):
        size = ints(config, "image_size") or 224
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        names.append("pixel_values")
        values.append(torch.zeros((batch, ints(config, "num_channels") or 3, height, width), device="meta"))
        axes.append({0: "batch"})
    if main == "input_features":
        names.append("input_features")
        length = 2 * (ints(config, "max_source_positions") or 1500)
        values.append(torch.zeros((batch, ints(config, "num_mel_bins") or 80, length), device="meta"))
        axes.append({0: "batch"})
    if main == "input_ids":
        names.append("input_ids")
        values.append(tokens())
        axes.append(token_axes)
    if config.is_encoder_decoder:
        names.append("decoder_input_ids")
        values.append(tokens())
        axes.append(token_axes)
    if not names:
        sys.exit(f"{path}: the input '{main}' of {type(model).__name__} is not known here; give module:callable")
    return logits_of(model, names), tuple(values), (tuple(axes),)


def own_module(specification):
    module, _, name = specification.partition(":")
    torch = library("torch")
    sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        sys.exit(f"{specification}: {error}")
    with torch.device("meta"):
        made = make()
    model, arguments = made if isinstance(made, tuple) else (made, None)
    if arguments is None:
        sys.exit(f"{specification}: return (module, arguments); what the module is called with is not known")
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    model = model.to("meta")
    return model, tuple(a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments), None


def export(model, arguments, axes):
    """The exported program, with a free batch and sequence where that can be traced."""
    torch = library("torch")
    tries = [axes, None] if axes else [None]
    for shapes in tries:
        try:
            return torch.onnx.export(model.eval(), arguments, dynamo=True, optimize=False, verbose=False,
                                     dynamic_shapes=shapes), shapes is not None
        except Exception as error:  # torch.onnx raises many kinds
            last = error
    raise last


def write_without_weights(program, path):
    """Every tensor on the meta device becomes a reference to a file that need not exist."""
    torch, ir = library("torch"), library("onnx_ir")
    graph = program.model.graph
    offset = 0
    for name, value in graph.initializers.items():
        tensor = value.const_value
        raw = getattr(tensor, "raw", None)
        if isinstance(raw, torch.Tensor) and raw.device.type != "meta":
            continue
        value.const_value = ir.ExternalTensor("weights-are-absent", offset, tensor.nbytes, tensor.dtype,
                                              shape=tensor.shape, name=name)
        offset += tensor.nbytes
    with open(path, "wb") as out:
        out.write(ir.to_proto(program.model).SerializeToString())


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 1")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="CONFIG|FOLDER|module:callable")
    parser.add_argument("out", metavar="OUT.onnx")
    parser.add_argument("--batch", type=positive, default=2, help="of the traced example (default 2)")
    parser.add_argument("--sequence", type=positive, default=128, help="tokens of the traced example (default 128)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if os.path.exists(options.model):
        model, arguments, axes = hugging_face(options.model, options.batch, options.sequence)
    elif ":" in options.model:
        model, arguments, axes = own_module(options.model)
    else:
        sys.exit(f"{options.model}: no such file, and not module:callable")
    program, free = export(model, arguments, axes)
    write_without_weights(program, options.out)
    count = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
    print(f"{options.out}: {count} parameters, " + ("batch and sequence free" if free else "at the traced sizes"))


if __name__ == "__main__":
    main()
