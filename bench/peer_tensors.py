"""Programs of tensors in PyTorch, for peer.py: each eager, and compiled by torch.compile.

A program is a function of (shape, dtype, device, sets) that yields pairs (name of the way, call); call(i) computes
set i and returns a new tensor or a tuple of them. All operands differ from set to set, weights too.

TESSERA_PEER_MODE is the mode of torch.compile; "default" compiles without autotuning.
"""

import math
import os

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from peer_models import normal

MODE = os.environ.get("TESSERA_PEER_MODE", "max-autotune-no-cudagraphs")
MODE = None if MODE == "default" else MODE
COMPILED = f"compiled, {MODE.removesuffix('-no-cudagraphs')}" if MODE else "compiled"


def compiled(function):
    return torch.compile(function, dynamic=False, mode=MODE)


def way(function, *operands):
    """call(i) for lists of operands by set."""
    return lambda i: function(*(one[i % len(one)] for one in operands))


def ways(function, *operands):
    yield "eager", way(function, *operands)
    yield COMPILED, way(compiled(function), *operands)


def drawing(dtype, device, sets):
    """Two functions of extents that return normal tensors, one for each set; the second's are weights [k, n]."""
    draw = lambda *extents, dtype=dtype, deviation=1.0: [normal(extents, dtype, device, deviation) for _ in range(sets)]
    return draw, lambda k, n: draw(k, n, deviation=1 / math.sqrt(k))


def gelu(x):
    return F.gelu(x, approximate="tanh")


def mlp(shape, dtype, device, sets):
    rows, width = shape
    draw, weights = drawing(dtype, device, sets)
    up, down = (weights(width, 4 * width), draw(4 * width)), (weights(4 * width, width), draw(width))
    function = lambda x, w1, b1, w2, b2: torch.addmm(b2, gelu(torch.addmm(b1, x, w1)), w2)
    yield from ways(function, draw(rows, width), *up, *down)


def swiglu(shape, dtype, device, sets):
    rows, width = shape
    draw, weights = drawing(dtype, device, sets)
    gate, up, down = weights(width, 3 * width), weights(width, 3 * width), weights(3 * width, width)
    yield from ways(lambda x, wg, wu, wd: (F.silu(x @ wg) * (x @ wu)) @ wd, draw(rows, width), gate, up, down)


def residual_norm(shape, dtype, device, sets):
    rows, width = shape
    draw, _ = drawing(dtype, device, sets)

    def function(x, r, weight, bias):
        h = x + r
        return h, F.layer_norm(h, (width,), weight, bias, 1e-5)

    yield from ways(function, draw(rows, width), draw(rows, width), draw(width), draw(width))


def rms_linear(shape, dtype, device, sets):
    rows, width = shape
    draw, weights = drawing(dtype, device, sets)
    function = lambda x, weight, w: F.rms_norm(x, (width,), weight, 1e-5) @ w
    yield from ways(function, draw(rows, width), draw(width), weights(width, width))


def flex(score, q, k, v):
    """Causal attention of scores that `score` changes."""
    tokens, device = q[0].shape[2], q[0].device
    blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, tokens, tokens, device=device)
    attend = compiled(flex_attention)
    call = way(lambda *operands: attend(*operands, score_mod=score, block_mask=blocks), q, k, v)
    yield f"flex_attention, {COMPILED}", call


def alibi(shape, dtype, device, sets):
    batch, heads, tokens, width = shape
    draw, _ = drawing(dtype, device, sets)
    q, k, v = (draw(*shape) for _ in range(3))
    yield from flex(lambda score, b, h, i, j: score + torch.exp2(-8.0 * (h + 1) / heads) * (j - i), q, k, v)

    slopes = torch.exp2(torch.arange(1, heads + 1, device=device) * (-8.0 / heads))
    places = torch.arange(tokens, device=device)
    bias = (slopes[:, None, None] * (places - places[:, None])).to(dtype)  # SDPA takes no bias in another type
    bias = bias.masked_fill_(places > places[:, None], -math.inf)[None]
    # Larger than any L2, a bias need not rotate.
    biases = [bias] + [bias.clone() for _ in range(sets - 1 if bias.nbytes < 2**28 else 0)]
    function = lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    yield "SDPA with a bias", way(function, q, k, v, biases)


def soft_cap(shape, dtype, device, sets):
    batch, heads, tokens, width = shape
    draw, _ = drawing(dtype, device, sets)
    q, k, v = (draw(*shape) for _ in range(3))
    unseen = torch.ones((tokens, tokens), dtype=torch.bool, device=device).triu(1)

    def function(q, k, v):
        scores = 30 * torch.tanh(q @ k.transpose(2, 3) * (1 / (30 * math.sqrt(width))))
        return torch.softmax(scores.masked_fill(unseen, -math.inf), 3, dtype=torch.float32).to(dtype) @ v

    yield "eager", way(function, q, k, v)
    yield from flex(lambda score, b, h, i, j: 30 * torch.tanh(score / 30), q, k, v)


def rotary(shape, dtype, device, sets):
    batch, tokens, heads, width = shape
    draw, _ = drawing(dtype, device, sets)
    angles = draw(tokens, width // 2, dtype=torch.float32)

    def turned(x, cos, sin):
        x1, x2 = x.float().chunk(2, dim=3)
        y = torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), 3)
        return y.to(dtype).transpose(1, 2).contiguous()

    def function(q, k, cos, sin):
        cos, sin = cos[:, None], sin[:, None]
        return turned(q, cos, sin), turned(k, cos, sin)

    yield from ways(function, draw(*shape), draw(*shape), [t.cos() for t in angles], [t.sin() for t in angles])


def cross_entropy_smooth(shape, dtype, device, sets):
    rows, vocab = shape
    draw, _ = drawing(dtype, device, sets)
    targets = [torch.randint(vocab, (rows,), device=device) for _ in range(sets)]
    function = lambda x, at: F.cross_entropy(x.float(), at, reduction="none", label_smoothing=0.1)
    yield from ways(function, draw(rows, vocab), targets)


def routing(shape, dtype, device, sets):
    rows, width, experts = shape
    draw, weights = drawing(dtype, device, sets)

    def function(x, w):
        values, indices = torch.topk(torch.softmax(x @ w, 1, dtype=torch.float32), 8, dim=1)
        return values / values.sum(1, keepdim=True), indices

    yield from ways(function, draw(rows, width), weights(width, experts))


def group_norm_silu(shape, dtype, device, sets):
    channels = shape[1]
    draw, _ = drawing(dtype, device, sets)
    function = lambda x, weight, bias: F.silu(F.group_norm(x, 32, weight, bias, 1e-5))
    yield from ways(function, draw(*shape), draw(channels), draw(channels))


def conv(shape, dtype, device, sets):
    batch, height, width, channels = shape
    draw, weights = drawing(dtype, device, sets)

    def function(x, w):
        slices = [x[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
        return torch.cat(slices, 3) @ w

    yield from ways(function, draw(batch, height + 2, width + 2, channels), weights(9 * channels, channels))


def statistics(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)

    def function(x):
        variance, mean = torch.var_mean(x, 0, correction=0)
        return mean, variance, *torch.aminmax(x, dim=0)

    yield from ways(function, draw(*shape))


def kmeans(shape, dtype, device, sets):
    points, width, clusters = shape
    draw, _ = drawing(dtype, device, sets)
    x, c = draw(points, width), draw(clusters, width)
    assigned = lambda x, c: (c.float().square().sum(1) - 2 * (x @ c.t()).float()).argmin(1)
    centroids = lambda sums, counts: (sums.float() / counts.clamp(min=1)[:, None]).to(dtype)

    def by_product(x, c):
        at = assigned(x, c)
        hot = (at[:, None] == torch.arange(clusters, device=device)).to(dtype)
        return at, centroids(hot.t() @ x, hot.sum(0, dtype=torch.float32))

    def by_index(x, c):
        at = assigned(x, c)
        zeros, ones = (lambda *n: torch.zeros(n, device=device)), torch.ones(points, device=device)
        return at, centroids(zeros(clusters, width).index_add(0, at, x.float()), zeros(clusters).index_add(0, at, ones))

    yield from ways(by_product, x, c)
    yield f"index_add, {COMPILED}", way(compiled(by_index), x, c)


def stencil(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)

    def function(u):
        centre = u[1:-1, 1:-1]
        return centre + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * centre)

    yield from ways(function, draw(*shape))


def block(shape, dtype, device, sets):
    batch, tokens, width = shape
    draw, weights = drawing(dtype, device, sets)
    norms = [draw(width) for _ in range(4)]
    linear = lambda k, n: (draw(n), weights(k, n))
    linears = linear(width, 3 * width) + linear(width, width) + linear(width, 4 * width) + linear(4 * width, width)
    norm = lambda x, weight, bias: F.layer_norm(x, (width,), weight, bias, 1e-5)
    split = lambda t: t.view(batch, tokens, width // 64, 64).transpose(1, 2)

    def function(x, g1, s1, g2, s2, b_qkv, qkv, b_project, project, b_up, up, b_down, down):
        x = x.view(batch * tokens, width)
        q, k, v = map(split, torch.addmm(b_qkv, norm(x, g1, s1), qkv).chunk(3, dim=1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + torch.addmm(b_project, y.transpose(1, 2).reshape(x.shape), project)
        x = x + torch.addmm(b_down, gelu(torch.addmm(b_up, norm(x, g2, s2), up)), down)
        return x.view(batch, tokens, width)

    yield from ways(function, draw(*shape), *norms, *linears)


def adamw(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)
    p, g, m = (draw(*shape) for _ in range(3))
    v = [t.square_() for t in draw(*shape)]  # it is a mean of squares
    c1, c2 = 1 - 0.9**10, 1 - 0.999**10

    def function(p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / c1 / (torch.sqrt(v / c2) + 1e-8) + 0.01 * p), m, v

    yield from ways(function, p, g, m, v)


def top_p(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)

    def function(x):
        p = torch.sort(torch.softmax(x, 1, dtype=torch.float32), 1, descending=True).values
        kept = p.masked_fill(torch.cumsum(p, 1) - p >= 0.9, 0)
        return kept / kept.sum(1, keepdim=True)

    yield from ways(function, draw(*shape))


def image(shape, dtype, device, sets):
    x = [torch.randint(256, (*shape, 3), device=device, dtype=torch.uint8) for _ in range(sets)]
    by_channel = lambda *values: [torch.tensor(values, device=device) for _ in range(sets)]
    mean, std = by_channel(0.485, 0.456, 0.406), by_channel(0.229, 0.224, 0.225)
    function = lambda x, mean, std: ((x / 255 - mean) / std).to(torch.bfloat16).permute(0, 3, 1, 2).contiguous()
    yield from ways(function, x, mean, std)


def distill(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)

    def function(teacher, student):
        log_p, log_q = (torch.log_softmax(t, 1, dtype=torch.float32) for t in (teacher, student))
        return (log_p.exp() * (log_p - log_q)).sum(1)

    yield from ways(function, draw(*shape), draw(*shape))


def density(shape, dtype, device, sets):
    points, others, width = shape
    draw, _ = drawing(dtype, device, sets)
    squares = lambda t: t.float().square().sum(1)

    def function(x, y):
        distances = squares(x)[:, None] + squares(y) - 2 * (x @ y.t()).float()
        return torch.exp(distances * (-0.5 / width)).mean(1)

    yield from ways(function, draw(points, width), draw(others, width))


def chunked_scan(x, dt, a_log, B, C, D, length=64):
    b, t, h, p = x.shape
    n, z, bf16 = B.shape[2], t // length, torch.bfloat16
    step = F.softplus(dt).reshape(b, z, length, h).permute(0, 1, 3, 2)               # [b, z, h, l]
    cum = (-torch.exp(a_log).reshape(h, 1) * step).cumsum(3)
    total = cum[..., -1:]                                                            # [b, z, h, 1]
    xs = x.reshape(b, z, length, h, p).permute(0, 1, 3, 2, 4).float()                # [b, z, h, l, p]
    xdt = (xs * step.unsqueeze(4)).to(bf16)
    Bs, Cs = B.reshape(b, z, 1, length, n), C.reshape(b, z, 1, length, n)

    seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    decay = torch.exp((cum.unsqueeze(4) - cum.unsqueeze(3)).masked_fill(~seen, -torch.inf))  # [b, z, h, l, l]
    scores = (Cs @ Bs.transpose(-1, -2)).float()                                     # [b, z, 1, l, l]
    inside = ((scores * decay).to(bf16) @ xdt).float()                               # [b, z, h, l, p]

    weighted = (Bs.float() * torch.exp(total - cum).unsqueeze(4)).to(bf16)           # [b, z, h, l, n]
    added = weighted.transpose(-1, -2) @ xdt                                         # [b, z, h, n, p]
    totals = total.squeeze(3).permute(0, 2, 1)                                       # [b, h, z]
    through = totals.cumsum(2)
    before = F.pad(through, (1, 0))[..., :-1]
    later = torch.ones(z, z, dtype=torch.bool, device=x.device).tril(-1)
    carry = torch.exp((before.unsqueeze(3) - through.unsqueeze(2)).masked_fill(~later, -torch.inf))  # [b, h, z, z]
    states = carry.to(bf16) @ added.permute(0, 2, 1, 3, 4).reshape(b, h, z, n * p)
    states = states.reshape(b, h, z, n, p).permute(0, 2, 1, 3, 4)                    # [b, z, h, n, p]
    outside = (Cs @ states).float() * torch.exp(cum).unsqueeze(4)                    # [b, z, h, l, p]

    y = inside + outside + xs * D.reshape(h, 1, 1)
    return y.permute(0, 1, 3, 2, 4).reshape(b, t, h, p).to(bf16)


def response_norm_merged(x, gamma, beta, weight, bias):
    n, h, w, c = x.shape
    norms = (x * x).sum((1, 2), keepdim=True).sqrt()
    response = norms / (norms.mean(-1, keepdim=True) + 1e-6)
    y = x + gamma * (x * response) + beta
    y = y.reshape(n, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 4, 2, 5).reshape(n, h // 2, w // 2, 4 * c)
    return F.layer_norm(y, (4 * c,), weight, bias, 1e-5)


def targets_of_anchors(anchors, boxes, classes):
    g = boxes.shape[1]
    A, G = anchors[None, None], boxes[:, :, None]                                    # [1, 1, a, 4], [b, g, 1, 4]
    area = lambda box: (box[..., 2:] - box[..., :2]).prod(-1)
    low, high = torch.maximum(A[..., :2], G[..., :2]), torch.minimum(A[..., 2:], G[..., 2:])
    overlap = (high - low).clamp(min=0).prod(-1)
    iou = overlap / (area(A) + area(G) - overlap)                                    # [b, g, a]

    best, match = iou.max(1)                                                         # [b, a]
    top = iou.amax(2, keepdim=True)                                                  # [b, g, 1]
    rescued = ((iou == top) & (top > 0)).any(1)                                      # the best anchor of some box
    row = match + torch.arange(boxes.shape[0], device=boxes.device)[:, None] * g
    matched, label = boxes.reshape(-1, 4)[row], classes.reshape(-1)[row]
    other = torch.where(best < 0.4, -1, -2).to(torch.int32)
    labels = torch.where((best >= 0.5) | rescued, label, other)

    center = lambda box: (box[..., :2] + box[..., 2:]) * 0.5
    size = lambda box: box[..., 2:] - box[..., :2]
    deltas = torch.cat(((center(matched) - center(anchors)) / size(anchors) * 10,
                        torch.log(size(matched) / size(anchors)) * 5), -1)
    return labels, deltas


def ssd(shape, dtype, device, sets):
    b, t, h, p, n = shape
    draw, _ = drawing(dtype, device, sets)
    plain = lambda *extents: draw(*extents, dtype=torch.float32)
    steps = [one - 2 for one in plain(b, t, h)]
    yield from ways(chunked_scan, draw(b, t, h, p), steps, plain(h), draw(b, t, n), draw(b, t, n), plain(h))


def grn_merge(shape, dtype, device, sets):
    draw, _ = drawing(dtype, device, sets)
    c = shape[3]
    yield from ways(response_norm_merged, draw(*shape), draw(c), draw(c), draw(4 * c), draw(4 * c))


def match_anchors(shape, dtype, device, sets):
    a, b, g = shape

    def boxes(*extents):
        low = torch.randn(*extents, 2, device=device).abs() * 300
        return torch.cat((low, low + 16 + torch.randn(*extents, 2, device=device).abs() * 150), -1)

    classes = [torch.randint(0, 80, (b, g), device=device, dtype=torch.int32) for _ in range(sets)]
    yield from ways(targets_of_anchors, [boxes(a) for _ in range(sets)], [boxes(b, g) for _ in range(sets)], classes)


PROGRAMS = {
    f.__name__: f
    for f in (mlp, swiglu, residual_norm, rms_linear, alibi, soft_cap, rotary, cross_entropy_smooth, routing)
    + (group_norm_silu, conv, statistics, kmeans, stencil, block, adamw, top_p, image, distill, density)
    + (ssd, grn_merge, match_anchors)
}
