"""vit_tiny and transformer_lm."""

import math

import torch
from torch import nn
from torch.nn import functional


def attend(q, k, v, mask=None):
    """Softmax attention of [N,H,T,D]; a mask is causal. PyTorch's own since 2.0, written out before."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -1e30)
    return scores.softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, mask)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width)

    def forward(self, x, mask):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.mlp(self.ln2(x))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, channels, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VitTiny(nn.Module):
    """DeiT-Ti (Touvron et al. 2021), with timm's names."""

    no_weight_decay = ("cls_token", "pos_embed")

    def __init__(self, input_shape, classes, patch=None, layers=12, heads=3, width=192):
        super().__init__()
        channels, rows, columns = input_shape
        patch = patch or (4 if max(rows, columns) < 64 else 16)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (rows // patch) * (columns // patch), width))
        self.patch_embed = PatchEmbed(channels, width, patch)
        self.blocks = nn.Sequential(*(VitBlock(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch_embed(x)], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


PRESETS = {"tiny": (4, 4, 128), "small": (6, 6, 384), "base": (12, 12, 768)}


class TransformerLm(nn.Module):
    """GPT-2's shape: pre-norm, learned positions, causal. Tokens [N,T] to logits [N*T,classes]."""

    def __init__(self, input_shape, classes, preset="tiny", layers=None, heads=None, width=None):
        super().__init__()
        layers, heads, width = (given or usual for given, usual in zip((layers, heads, width), PRESETS[preset]))
        context = input_shape[0]
        self.tok_emb = nn.Embedding(classes, width)
        self.pos_emb = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes, bias=False)
        self.register_buffer("mask", torch.ones(context, context).triu(1).bool(), persistent=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.tok_emb(tokens) + self.pos_emb.weight[:length]
        for block in self.blocks:
            x = block(x, self.mask[:length, :length])
        return self.head(self.ln_f(x)).flatten(0, 1)
