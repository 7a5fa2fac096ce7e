"""A configuration object with keyword arguments, as large libraries write them."""

import torch
from torch import nn


class PretrainedConfig:
    def __init__(self, **kwargs):
        self.output_attentions = kwargs.pop("output_attentions", False)
        for key, value in kwargs.items():
            setattr(self, key, value)


class BertConfig(PretrainedConfig):
    model_type = "bert"

    def __init__(self, vocab_size=100, hidden_size=32, layers=2, heads=4, intermediate_size=64, act="gelu", **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = layers
        self.num_attention_heads = heads
        self.intermediate_size = intermediate_size
        self.hidden_act = act
        self.max_position = kwargs.get("max_position", 16)


ACT2FN = {"gelu": nn.GELU(), "relu": nn.ReLU()}


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position = nn.Embedding(config.max_position, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(config.max_position).expand((1, -1)), persistent=False)

    def forward(self, ids):
        return self.LayerNorm(self.word(ids) + self.position(self.position_ids[:, : ids.size(1)]))


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0 and not hasattr(config, "embedding_size"):
            raise ValueError("heads")
        self.heads = config.num_attention_heads
        self.size = int(config.hidden_size / config.num_attention_heads)
        self.all = self.heads * self.size
        self.query = nn.Linear(config.hidden_size, self.all)
        self.key = nn.Linear(config.hidden_size, self.all)
        self.value = nn.Linear(config.hidden_size, self.all)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        out = torch.matmul(nn.functional.softmax(torch.matmul(q, k.transpose(-1, -2)), dim=-1), v)
        out = out.permute(0, 2, 1, 3).contiguous()
        return out.view(out.size()[:-2] + (self.all,))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = SelfAttention(config)
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        if isinstance(config.hidden_act, str):
            self.act = ACT2FN[config.hidden_act]
        else:
            self.act = config.hidden_act
        self.output = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x):
        return self.output(self.act(self.dense(self.attention(x)))) + x


class PreTrained(nn.Module):
    config_class = BertConfig

    def __init__(self, config, *inputs, **kwargs):
        super().__init__()
        self.config = config

    def post_init(self):
        self.apply(self._init_weights)

    def _init_weights(self, module):
        pass


class Model(PreTrained):
    def __init__(self, config, add_pooling=True):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.layer = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if add_pooling else None
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.head.weight = self.embeddings.word.weight
        self.post_init()

    def forward(self, ids):
        x = self.embeddings(ids)
        for module in self.layer:
            x = module(x)
        if self.pooler is not None:
            x = self.pooler(x)
        return self.head(x)


model = Model(BertConfig(layers=3, max_position=24))
example = torch.randint(0, 100, (2, 8))
