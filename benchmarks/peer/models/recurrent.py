"""lstm_classifier, seq2seq_attention and crnn."""

import torch
from torch import nn
from torch.nn import functional


class LstmClassifier(nn.Module):
    """The last hidden states of nn.LSTM or nn.GRU over tokens, or over the rows of images."""

    labels_per_sequence = True  # one, not one per token

    def __init__(
        self, input_shape, classes, cell="lstm", layers=1, width=128, bidirectional="no", dropout=0, vocabulary=256
    ):
        super().__init__()
        layer = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        both = bidirectional == "yes"
        self.directions = 2 if both else 1
        if len(input_shape) == 1:
            self.embedding = nn.Embedding(vocabulary, width)
        features = width if len(input_shape) == 1 else input_shape[0] * input_shape[2]
        self.rnn = layer(features, width, layers, bidirectional=both, dropout=float(dropout))
        self.dropout = nn.Dropout(float(dropout))
        self.fc = nn.Linear(self.directions * width, classes)

    def forward(self, x):
        steps = self.embedding(x.t()) if x.ndim == 2 else x.permute(2, 0, 1, 3).flatten(2)
        hidden = self.rnn(steps)[1]
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return self.fc(self.dropout(torch.cat(list(hidden[-self.directions :]), 1)))


class Seq2seqAttention(nn.Module):
    """Encoder, decoder and Luong's general attention. Tokens [N,T]: the source, then the translation so far."""

    def __init__(self, input_shape, classes, source=None, width=128, layers=1, padding=0):
        super().__init__()
        self.source = source or input_shape[0] // 2
        self.target = input_shape[0] - self.source
        self.padding = padding
        self.embedding = nn.Embedding(classes, width)
        self.encoder = nn.LSTM(width, width, layers, bidirectional=True)
        self.bridge_hidden = nn.Linear(2 * width, width)
        self.bridge_cell = nn.Linear(2 * width, width)
        self.decoder = nn.LSTM(width, width, layers)
        self.attention = nn.Module()
        self.attention.keys = nn.Linear(2 * width, width, bias=False)
        self.attention.out = nn.Linear(3 * width, width, bias=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        source, target = tokens[:, : self.source], tokens[:, self.source :]
        steps, states = self.encoder(self.embedding(source.t()))
        hidden, cell = (torch.cat([state[-2], state[-1]], 1) for state in states)
        first = torch.tanh(self.bridge_hidden(hidden)), self.bridge_cell(cell)
        first = [state.expand(self.decoder.num_layers, *state.shape).contiguous() for state in first]
        queries, _ = self.decoder(self.embedding(target.t()), first)
        queries, steps = queries.transpose(0, 1), steps.transpose(0, 1)
        scores = queries @ self.attention.keys(steps).transpose(1, 2)
        scores = scores.masked_fill((source == self.padding)[:, None], -1e30)
        both = torch.cat([scores.softmax(-1) @ steps, queries], 2)
        return self.head(torch.tanh(self.attention.out(both))).flatten(0, 1)


class Crnn(nn.Module):
    """Shi, Bai and Yao 2015. Images to logits [T,N,classes]; class 0 is the blank and ends the labels of short texts."""

    def __init__(self, input_shape, classes, width=64, layers=2, rnn_width=256, length=16):
        super().__init__()
        self.text_length = length
        self.cnn = nn.Module()
        inputs = input_shape[0]
        for index, factor in enumerate((1, 2, 4, 4, 8, 8, 8)):
            kernel, padding = (2, 0) if index == 6 else (3, 1)
            self.cnn.add_module(f"conv{index}", nn.Conv2d(inputs, factor * width, kernel, padding=padding))
            inputs = factor * width
            if index in (2, 4, 6):
                self.cnn.add_module(f"batchnorm{index}", nn.BatchNorm2d(inputs))
        self.rnn = nn.LSTM(inputs * (input_shape[1] // 16 - 1), rnn_width, layers, bidirectional=True)
        self.fc = nn.Linear(2 * rnn_width, classes)

    def forward(self, x):
        pools = {0: 2, 1: 2, 3: (2, 1), 5: (2, 1)}
        for index in range(7):
            x = getattr(self.cnn, f"conv{index}")(x)
            if index in (2, 4, 6):
                x = getattr(self.cnn, f"batchnorm{index}")(x)
            x = functional.relu(x, inplace=True)
            if index in pools:
                x = functional.max_pool2d(x, pools[index])
        return self.fc(self.rnn(x.permute(3, 0, 1, 2).flatten(2))[0])
