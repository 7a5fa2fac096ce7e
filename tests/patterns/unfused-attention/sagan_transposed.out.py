# at: energy = torch.bmm(proj_query, proj_key)
import torch
import torch.nn as nn


class SelfAttn(nn.Module):
    """ Self attention layer of SAGAN: no scale, keys by columns """

    def __init__(self, in_dim):
        super(SelfAttn, self).__init__()
        self.query_conv = nn.Conv2d(in_dim, in_dim // 2, 1)
        self.key_conv = nn.Conv2d(in_dim, in_dim // 2, 1)
        self.value_conv = nn.Conv2d(in_dim, in_dim, 1)
        self.gamma = nn.Parameter(torch.ones(1))
        self.softmax  = nn.Softmax(dim=-1)

    def forward(self,x):
        m_batchsize,C,width ,height = x.size()
        proj_query  = self.query_conv(x).view(m_batchsize,-1,width*height).permute(0,2,1) # B X CX(N)
        proj_key =  self.key_conv(x).view(m_batchsize,-1,width*height) # B X C x (*W*H)
        proj_value = self.value_conv(x).view(m_batchsize,-1,width*height) # B X C X N

        out = nn.functional.scaled_dot_product_attention(
            proj_query.unsqueeze(1),
            proj_key.transpose(-2, -1).unsqueeze(1),
            proj_value.transpose(-2, -1).unsqueeze(1),
            scale=1.0,
        ).squeeze(1).transpose(-2, -1)
        out = out.view(m_batchsize,C,width,height)
        return self.gamma*out + x


def run():
    torch.manual_seed(0)
    return SelfAttn(4)(torch.randn(2, 4, 3, 5))
