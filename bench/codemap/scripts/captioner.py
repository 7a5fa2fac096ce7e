"""Show-attend-and-tell: CNN encoder, LSTM decoder with attention, teacher forcing then greedy decoding."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.profiler import profile, record_function, schedule

VOCAB, EMB, HID, ENC = 60, 32, 48, 64
PAD, BOS, EOS = 0, 1, 2


class EncoderCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential()
        ch = [3, 16, 32, ENC]
        for i in range(3):
            self.net.add_module('conv%d' % i, nn.Conv2d(ch[i], ch[i + 1], 3, stride=2, padding=1))
            self.net.add_module('relu%d' % i, nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d((4, 4))

    def forward(self, images):
        features = self.net(images)
        features = self.pool(features)
        features = features.permute(0, 2, 3, 1)
        return features.reshape(features.size(0), -1, features.size(-1))


class Attention(nn.Module):
    def __init__(self, encoder_dim, decoder_dim, attention_dim):
        super().__init__()
        self.U = nn.Linear(decoder_dim, attention_dim)
        self.W = nn.Linear(encoder_dim, attention_dim)
        self.v = nn.Linear(attention_dim, 1)
        self.tanh = nn.Tanh()
        self.softmax = nn.Softmax(1)

    def forward(self, img_features, hidden_state):
        U_h = self.U(hidden_state).unsqueeze(1)
        W_s = self.W(img_features)
        att = self.tanh(W_s + U_h)
        e = self.v(att).squeeze(2)
        alpha = self.softmax(e)
        context = (img_features * alpha.unsqueeze(2)).sum(1)
        return context, alpha


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMB, padding_idx=PAD)
        self.attention = Attention(ENC, HID, 32)
        self.init_h = nn.Linear(ENC, HID)
        self.init_c = nn.Linear(ENC, HID)
        self.f_beta = nn.Linear(HID, ENC)
        self.lstm = nn.LSTMCell(EMB + ENC, HID)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(HID, VOCAB)

    def init_state(self, features):
        mean = features.mean(dim=1)
        return torch.tanh(self.init_h(mean)), torch.tanh(self.init_c(mean))

    def step(self, token_embedding, features, h, c):
        context, alpha = self.attention(features, h)
        gate = torch.sigmoid(self.f_beta(h))
        context = gate * context
        h, c = self.lstm(torch.cat([token_embedding, context], dim=1), (h, c))
        return self.fc(self.drop(h)), h, c, alpha

    def forward(self, features, captions, lengths):
        lengths, order = lengths.sort(descending=True)
        features, captions = features[order], captions[order]
        embeddings = self.embedding(captions)
        h, c = self.init_state(features)
        steps = (lengths - 1).tolist()
        preds = torch.zeros(len(captions), max(steps), VOCAB)
        alphas = torch.zeros(len(captions), max(steps), features.size(1))
        for t in range(max(steps)):
            n = sum(l > t for l in steps)
            out, h, c, alpha = self.step(embeddings[:n, t], features[:n], h[:n], c[:n])
            preds[:n, t] = out
            alphas[:n, t] = alpha
        return preds, captions, steps, alphas

    @torch.inference_mode()
    def greedy(self, features, max_len=8):
        h, c = self.init_state(features)
        word = torch.full((features.size(0),), BOS, dtype=torch.long)
        sentence = []
        done = torch.zeros_like(word, dtype=torch.bool)
        while len(sentence) < max_len and not done.all():
            logits, h, c, _ = self.step(self.embedding(word), features, h, c)
            word = logits.argmax(1)
            sentence.append(word)
            done |= word == EOS
        return torch.stack(sentence, 1)


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = EncoderCNN(), Decoder()
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    def forward(self, images, captions, lengths):
        with record_function("encode"):
            features = self.encoder(images)
        with record_function("decode"):
            preds, captions, steps, alphas = self.decoder(features, captions, lengths)
        scores = pack_padded_sequence(preds, steps, batch_first=True).data
        targets = pack_padded_sequence(captions[:, 1:], steps, batch_first=True).data
        loss = self.criterion(scores, targets)
        loss = loss + 1.0 * ((1. - alphas.sum(dim=1)) ** 2).mean()
        return loss


def collate(n=6):
    caps = [torch.cat([torch.tensor([BOS]), torch.randint(3, VOCAB, (4 + i,)), torch.tensor([EOS])]) for i in range(n)]
    lengths = torch.tensor([len(c) for c in caps])
    return torch.randn(n, 3, 48, 48), pad_sequence(caps, batch_first=True, padding_value=PAD), lengths


def main():
    model = Captioner()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(params, lr=4e-4)
    with profile(schedule=schedule(wait=1, warmup=1, active=2), with_stack=True) as prof:
        for it in range(4):
            images, captions, lengths = collate()
            loss = model(images, captions, lengths)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                for param in group['params']:
                    if param.grad is not None:
                        param.grad.data.clamp_(-5., 5.)
            optimizer.step()
            if it % 2:
                with record_function("greedy"):
                    model.decoder.greedy(model.encoder(images))
            prof.step()


if __name__ == '__main__':
    main()
