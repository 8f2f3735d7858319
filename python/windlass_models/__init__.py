"""Generates ONNX training graphs as PyTorch's exporter writes them, with the `onnx` package alone.

`python -m windlass_models gpt ... -o model.onnx` is the command; `gpt.build`, `llama.build` and so on are the functions.
The same arguments give the same bytes.
"""
