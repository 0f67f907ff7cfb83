"""The functions of docs/tutorial/compare.md in PyTorch, and what they compute, written out: beside_pytorch.py [DEVICE]"""

import sys

import torch
import torch.nn.functional as F


# [gelu]
def gelu(x):
    return F.gelu(x, approximate="tanh")
# [/gelu]


# [layer_norm]
def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, (x.shape[1],), weight, bias, eps)
# [/layer_norm]


# [linear]
def linear(x, w, bias):
    return torch.addmm(bias, x, w)
# [/linear]


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    x, w, weight, bias = (torch.randn(shape, dtype=torch.float64, device=device) for shape in ((9, 70), (70, 130), (70,), (70,)))
    shift = torch.randn(130, dtype=torch.float64, device=device)
    torch.testing.assert_close(gelu(x), x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x**3)))
    centered = x - x.mean(1, keepdim=True)
    expected = centered * torch.rsqrt((centered**2).mean(1, keepdim=True) + 1e-5) * weight + bias
    torch.testing.assert_close(layer_norm(x, weight, bias, 1e-5), expected)
    torch.testing.assert_close(linear(x, w, shift), x @ w + shift)
    print("all agree")


if __name__ == "__main__":
    main()
