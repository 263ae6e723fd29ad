"""Tokens per second of transformer_lm in PyTorch with a cache of keys and values, as one line of JSON.

The peer of `weft predict` on a language model. One text, one token at a time, drawn at a temperature. The network has the
weights of --weights, so that both sides do the same work. Two ways of keeping the cache are offered, since each is the
faster one somewhere: --cache static writes into tensors of the whole window and masks what is not there yet, which
torch.compile can hold in one graph (as Hugging Face's StaticCache and gpt-fast do); --cache growing appends and attends
to what is there (as Hugging Face's DynamicCache does).
"""

import argparse
import json
import os
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="safetensors, as `weft export` writes them")
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--prompt", type=int, default=6, help="tokens to begin with")
    parser.add_argument("--length", type=int, default=500, help="tokens to write")
    parser.add_argument("--repeat", type=int, default=3, help="texts to write; the fastest counts")
    parser.add_argument("--cache", choices=["static", "growing"], default="static")
    parser.add_argument("--bf16", action="store_true", help="weights and activations in bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


def read_weights(torch, path):
    """Of f32, from a safetensors file: the size of a JSON header, the header, and the numbers."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        numbers = file.read()
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(numbers[slice(*entry["data_offsets"])]), dtype=torch.float32)
            .reshape(entry["shape"]) for name, entry in header.items()}


def build(torch, arguments):
    import models

    weights = read_weights(torch, arguments.weights)
    window, width = weights["pos_emb.weight"].shape
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    model = models.build("transformer_lm", [window], weights["head.weight"].shape[0],
                         layers=layers, heads=arguments.heads, width=width)
    model.load_state_dict(weights)
    return model.eval().to(torch.bfloat16 if arguments.bf16 else torch.float32)


def main():
    arguments = parse_arguments()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    import torch
    from torch.nn import functional

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = build(torch, arguments)
    dtype = next(model.parameters()).dtype
    window, width = model.pos_emb.weight.shape
    heads, layers = arguments.heads, len(model.blocks)

    def new_cache():
        if arguments.cache == "growing":
            return [None] * layers
        shape = (1, heads, window, width // heads)
        return [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)) for _ in range(layers)]

    columns = torch.arange(window)

    def step(tokens, positions, cache):
        """Logits behind the last of these tokens [1,count], which stand at these positions [count]."""
        count = tokens.shape[1]
        x = model.tok_emb(tokens) + model.pos_emb(positions)
        for index, block in enumerate(model.blocks):
            qkv = block.attn.qkv(block.ln1(x)).view(1, count, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv
            if arguments.cache == "static":
                keys, values = cache[index]
                keys.index_copy_(2, positions, k)
                values.index_copy_(2, positions, v)
                mask = columns[None, :] <= positions[:, None]
                y = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            else:
                is_first = cache[index] is None
                keys, values = (k, v) if is_first else (torch.cat((old, new), 2) for old, new in zip(cache[index], (k, v)))
                cache[index] = (keys, values)
                y = functional.scaled_dot_product_attention(q, keys, values, is_causal=is_first)
            x = x + block.attn.proj(y.transpose(1, 2).reshape(1, count, width))
            x = x + block.mlp(block.ln2(x))
        return model.head(model.ln_f(x[:, -1]))

    run = torch.compile(step) if arguments.compile else step

    def write(length):
        cache, begin = new_cache(), time.perf_counter()
        tokens = torch.arange(arguments.prompt)[None] % model.head.weight.shape[0]
        positions = torch.arange(arguments.prompt)
        logits = step(tokens, positions, cache)
        for at in range(arguments.prompt, arguments.prompt + length):
            token = torch.multinomial((logits.float() / 0.8).softmax(-1), 1)
            logits = run(token, torch.tensor([at]), cache)
        return length / (time.perf_counter() - begin)

    with torch.inference_mode():
        write(8)  # compiles
        rates = [write(arguments.length) for _ in range(arguments.repeat)]
    print(json.dumps({"framework": f"pytorch {torch.__version__}", "tokens_per_second": max(rates)}))


if __name__ == "__main__":
    main()
