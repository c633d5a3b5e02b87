#!/usr/bin/env python3
"""Golden cases of the tiny models, from the exact oracle (numpy, float64).

    golden_tiny.py ORACLE.py MODELS OUT

MODELS is the folder that the example `write_tiny` wrote; OUT gets one JSON per model: its hash, the prompt, all logits
after the prompt's last id, and a greedy continuation of 12 ids with the margin of each choice.
"""
import importlib.util
import json
import os
import sys

import numpy as np

N_GREEDY = 12


def main():
    oracle_path, models, out = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("oracle", oracle_path)
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    os.makedirs(out, exist_ok=True)
    for entry in json.load(open(os.path.join(models, "index.json"))):
        model = oracle.Model(os.path.join(models, entry["model"] + ".gguf"))
        if entry["linear_factor"]:
            # Dividing positions by a number is dividing every frequency by it, which the oracle knows as factors.
            model.tensors["rope_freqs.weight"] = None
            model.cache["rope_freqs.weight"] = np.full(model.rope_dim // 2, entry["linear_factor"])
        ids, logits, greedy, margins = list(entry["ids"]), None, [], []
        for _ in range(N_GREEDY):
            row = model.forward(ids + greedy, last_only=True)[0]
            logits = row if logits is None else logits
            second, first = np.sort(row)[-2:]
            greedy.append(int(row.argmax()))
            margins.append(round(float(first - second), 5))
        case = {
            "model": entry["model"],
            "fnv1a64": entry["fnv1a64"],
            "ids": ids,
            "logits": [float(f"{value:.9g}") for value in logits],
            "greedy": greedy,
            "margins": margins,
        }
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in case.items())
        with open(os.path.join(out, entry["model"] + ".json"), "w") as file:
            file.write("{\n" + lines + "\n}\n")
        print(f"{entry['model']:20} std {logits.std():.3f} margins {min(margins):.4f} .. {max(margins):.4f}")


main()
