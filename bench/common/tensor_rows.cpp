#include "common/tensor_rows.hpp"

#include <cmath>

#include "common/tensor_program.hpp"

namespace tessera::internal::bench {
namespace {

using Extents = std::vector<std::int64_t>;

float by_root(std::int64_t k) { return static_cast<float>(1 / std::sqrt(static_cast<double>(k))); }
/// A weight [k, n] that keeps the deviation of what it is multiplied with.
Input<bf16, 2> weight(std::int64_t k, std::int64_t n) { return {{k, n}, by_root(k)}; }

Row mlp(const Extents& shape) {
  const std::int64_t rows = shape[0], width = shape[1];
  return tensor_row(
      "mlp", "bf16", shape,
      [](Lazy<bf16, 2> x, Lazy<bf16, 2> w1, Lazy<bf16, 1> b1, Lazy<bf16, 2> w2, Lazy<bf16, 1> b2) {
    return x.linear(w1, b1).gelu_tanh().linear(w2, b2);
      },
      Input<bf16, 2>{{rows, width}}, weight(width, 4 * width), Input<bf16, 1>{{4 * width}}, weight(4 * width, width),
      Input<bf16, 1>{{width}});
}

Row swiglu(const Extents& shape) {
  const std::int64_t rows = shape[0], width = shape[1], hidden = 3 * width;
  return tensor_row(
      "swiglu", "bf16", shape,
      [](Lazy<bf16, 2> x, Lazy<bf16, 2> gate, Lazy<bf16, 2> up, Lazy<bf16, 2> down) {
    return (x.linear(gate).silu() * x.linear(up)).linear(down);
      },
      Input<bf16, 2>{{rows, width}}, weight(width, hidden), weight(width, hidden), weight(hidden, width));
}

Row residual_norm(const Extents& shape) {
  const std::int64_t width = shape[1];
  const Input<bf16, 2> x{{shape[0], width}};
  const Input<bf16, 1> of_columns{{width}};
  return tensor_row(
      "residual_norm", "bf16", shape,
      [](Lazy<bf16, 2> x, Lazy<bf16, 2> r, Lazy<bf16, 1> weight, Lazy<bf16, 1> bias) {
    const auto h = x + r;
    return std::tuple(h, h.layer_norm(weight, bias));
      },
      x, x, of_columns, of_columns);
}

Row rms_linear(const Extents& shape) {
  const std::int64_t width = shape[1];
  return tensor_row(
      "rms_linear", "bf16", shape,
      [](Lazy<bf16, 2> x, Lazy<bf16, 1> scale, Lazy<bf16, 2> w) { return x.rms_norm(scale).linear(w); },
      Input<bf16, 2>{{shape[0], width}}, Input<bf16, 1>{{width}}, weight(width, width));
}

/// Attention whose bias grows with the distance (Press et al., 2022).
Row alibi(const Extents& shape) {
  const std::int64_t heads = shape[1], tokens = shape[2];
  const Input<bf16, 4> x{{shape[0], heads, tokens, shape[3]}};
  return tensor_row(
      "alibi", "bf16", shape,
      [=](Lazy<bf16, 4> q, Lazy<bf16, 4> k, Lazy<bf16, 4> v) {
    const Device& device = q.device();
    const auto slopes = exp2((iota(device, {heads, 1, 1}, 0).cast<f32>() + 1.0f) * (-8.0f / static_cast<float>(heads)));
    const auto distance = iota(device, {1, 1, tokens}, 2) - iota(device, {1, tokens, 1}, 1);
    return attention(q, k, v, slopes * distance.cast<f32>(), {.causal = true});
      },
      x, x, x);
}

Row soft_cap(const Extents& shape) {
  const Input<bf16, 4> x{{shape[0], shape[1], shape[2], shape[3]}};
  return tensor_row(
      "soft_cap", "bf16", shape,
      [](Lazy<bf16, 4> q, Lazy<bf16, 4> k, Lazy<bf16, 4> v) {
    return attention(q, k, v, {.causal = true, .soft_cap = 30});
      },
      x, x, x);
}

/// Rotary positions of queries and keys, which it lays out as a cache has them.
Row rotary(const Extents& shape) {
  const std::int64_t batch = shape[0], tokens = shape[1], heads = shape[2], width = shape[3], half = width / 2;
  const Input<bf16, 4> x{{batch, tokens, heads, width}};
  const Input<f32, 2> angles{{tokens, half}};
  return tensor_row(
      "rotary", "bf16", shape,
      [=](Lazy<bf16, 4> q, Lazy<bf16, 4> k, Lazy<f32, 2> cosine, Lazy<f32, 2> sine) {
    const auto c = cosine.reshape({1, tokens, 1, half}), s = sine.reshape({1, tokens, 1, half});
    const auto rotated = [&](const Lazy<bf16, 4>& x) {
      const auto a = x.slice(3, 0, half).cast<f32>(), b = x.slice(3, half, half).cast<f32>();
      return concat(3, a * c - b * s, b * c + a * s).cast<bf16>().permute({0, 2, 1, 3});
    };
    return std::tuple(rotated(q), rotated(k));
      },
      x, x, angles, angles);
}

Row cross_entropy_smooth(const Extents& shape) {
  const std::int64_t rows = shape[0], vocab = shape[1];
  return tensor_row(
      "cross_entropy_smooth", "bf16", shape,
      [=](Lazy<bf16, 2> logits, Lazy<i32, 1> targets) {
    const auto logs = logits.cast<f32>().log_softmax();
    const auto is_target = iota(logits.device(), {1, vocab}, 1) == targets.expand_dims(1);
    const auto of_target = sum(where(is_target, logs, 0.0f), 1);
    return (of_target * -0.9f - mean(logs, 1) * 0.1f).squeeze(1);
      },
      Input<bf16, 2>{{rows, vocab}}, Input<i32, 1>{{rows}, 1, vocab});
}

/// Which experts a mixture sends each row to, and with which weights.
Row routing(const Extents& shape) {
  return tensor_row(
      "routing", "bf16", shape,
      [](Lazy<bf16, 2> x, Lazy<bf16, 2> w) {
    const auto [values, experts] = x.linear(w).cast<f32>().softmax().top_k(8, 1);
    return std::tuple(values / sum(values, 1), experts);
      },
      Input<bf16, 2>{{shape[0], shape[1]}}, weight(shape[1], shape[2]));
}

Row group_norm_silu(const Extents& shape) {
  const std::int64_t batch = shape[0], channels = shape[1], positions = shape[2], groups = 32;
  const Input<bf16, 1> of_channels{{channels}};
  return tensor_row(
      "group_norm_silu", "bf16", shape,
      [=](Lazy<bf16, 3> x, Lazy<bf16, 1> weight, Lazy<bf16, 1> bias) {
    const auto by_group = x.cast<f32>().reshape({batch, groups, channels / groups * positions});
    const auto centered = by_group - mean(by_group, 2);
    const auto normed = (centered * rsqrt(mean(centered * centered, 2) + 1e-5)).reshape({batch, channels, positions});
    const auto of_each = [](const Lazy<bf16, 1>& v) { return v.cast<f32>().expand_dims(1); };
    return (normed * of_each(weight) + of_each(bias)).silu().cast<bf16>();
      },
      Input<bf16, 3>{{batch, channels, positions}}, of_channels, of_channels);
}

/// A convolution of 3 x 3 over channels that are last in memory, as a product with what nine shifts see.
Row conv(const Extents& shape) {
  const std::int64_t height = shape[1], width = shape[2], channels = shape[3];
  return tensor_row(
      "conv", "bf16", shape,
      [=](Lazy<bf16, 4> x, Lazy<bf16, 2> w) {
    const auto shifted = [&](std::int64_t dy, std::int64_t dx) { return x.slice(1, dy, height).slice(2, dx, width); };
    return concat(3, shifted(0, 0), shifted(0, 1), shifted(0, 2), shifted(1, 0), shifted(1, 1), shifted(1, 2),
                  shifted(2, 0), shifted(2, 1), shifted(2, 2))
        .linear(w);
      },
      Input<bf16, 4>{{shape[0], height + 2, width + 2, channels}}, weight(9 * channels, channels));
}

Row statistics(const Extents& shape) {
  return tensor_row(
      "statistics", "f32", shape,
      [](Lazy<f32, 2> x) {
    return std::tuple(mean(x, 0).squeeze(0), var(x, 0).squeeze(0), min(x, 0).squeeze(0), max(x, 0).squeeze(0));
      },
      Input<f32, 2>{{shape[0], shape[1]}});
}

Row kmeans(const Extents& shape) {
  const std::int64_t points = shape[0], width = shape[1], clusters = shape[2];
  return tensor_row(
      "kmeans", "bf16", shape,
      [=](Lazy<bf16, 2> x, Lazy<bf16, 2> centers) {
    const auto squares = sum(centers.cast<f32>() * centers.cast<f32>(), 1).reshape({1, clusters});
    const auto nearest = argmin(squares - matmul(x, centers.transpose()).cast<f32>() * 2.0f, 1);
    const auto belongs = nearest.reshape({1, points}) == iota(x.device(), {clusters, 1}, 0);
    const auto counts = sum(where(belongs, full<f32>(x.device(), {1, 1}, 1), 0.0f), 1);
    const auto ones = where(belongs, full<bf16>(x.device(), {1, 1}, 1), 0.0f);
    return std::tuple(nearest.squeeze(1), (matmul(ones, x).cast<f32>() / maximum(counts, 1.0f)).cast<bf16>());
      },
      Input<bf16, 2>{{points, width}}, Input<bf16, 2>{{clusters, width}});
}

Row stencil(const Extents& shape) {
  const std::int64_t height = shape[0] - 2, width = shape[1] - 2;
  return tensor_row(
      "stencil", "f32", shape,
      [=](Lazy<f32, 2> u) {
    const auto at = [&](std::int64_t y, std::int64_t x) { return u.slice(0, y, height).slice(1, x, width); };
    return at(1, 1) + (at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2) - at(1, 1) * 4.0f) * 0.1f;
      },
      Input<f32, 2>{{shape[0], shape[1]}});
}

/// A layer of GPT-2, with heads of 64.
Row block(const Extents& shape) {
  const std::int64_t batch = shape[0], tokens = shape[1], width = shape[2], heads = width / 64;
  const Input<bf16, 1> column{{width}}, of_qkv{{3 * width}}, of_hidden{{4 * width}};
  return tensor_row(
      "block", "bf16", shape,
      [=](Lazy<bf16, 3> x, Lazy<bf16, 1> norm1, Lazy<bf16, 1> shift1, Lazy<bf16, 2> qkv, Lazy<bf16, 1> qkv_bias,
          Lazy<bf16, 2> project, Lazy<bf16, 1> project_bias, Lazy<bf16, 1> norm2, Lazy<bf16, 1> shift2,
          Lazy<bf16, 2> up, Lazy<bf16, 1> up_bias, Lazy<bf16, 2> down, Lazy<bf16, 1> down_bias) {
    const auto all = x.layer_norm(norm1, shift1).linear(qkv, qkv_bias);
    const auto part = [&](std::int64_t i) {
      return all.slice(2, i * width, width).reshape({batch, tokens, heads, 64}).permute({0, 2, 1, 3});
    };
    const auto seen = part(0).attention(part(1), part(2), {.causal = true});
    const auto h = x + seen.permute({0, 2, 1, 3}).reshape({batch, tokens, width}).linear(project, project_bias);
    return h + h.layer_norm(norm2, shift2).linear(up, up_bias).gelu_tanh().linear(down, down_bias);
      },
      Input<bf16, 3>{{batch, tokens, width}}, column, column, weight(width, 3 * width), of_qkv, weight(width, width),
      column, column, column, weight(width, 4 * width), of_hidden, weight(4 * width, width), column);
}

/// The tenth step of AdamW (Loshchilov and Hutter, 2019).
Row adamw(const Extents& shape) {
  const Input<f32, 1> x{{shape[0]}};
  const auto c1 = static_cast<float>(1 / (1 - std::pow(0.9, 10))),
             c2 = static_cast<float>(1 / (1 - std::pow(0.999, 10)));
  Input<f32, 1> squares = x;
  squares.deviation = 0.1F, squares.mean = 1;  // the second moment is not negative
  return tensor_row(
      "adamw", "f32", shape,
      [=](Lazy<f32, 1> p, Lazy<f32, 1> g, Lazy<f32, 1> m, Lazy<f32, 1> v) {
    const auto next_m = m * 0.9f + g * 0.1f, next_v = v * 0.999f + g * g * 0.001f;
    const auto step = next_m * c1 / (sqrt(next_v * c2) + 1e-8f) + p * 0.01f;
    return std::tuple(p - step * 1e-3f, next_m, next_v);
      },
      x, x, x, squares);
}

/// Nucleus sampling (Holtzman et al., 2020): the probabilities that it keeps, in their order.
Row top_p(const Extents& shape) {
  return tensor_row(
      "top_p", "bf16", shape,
      [](Lazy<bf16, 2> logits) {
    const auto sorted = -sort(-logits.cast<f32>().softmax(), 1);
    const auto kept = where(cumsum(sorted, 1) - sorted < 0.9f, sorted, 0.0f);
    return kept / sum(kept, 1);
      },
      Input<bf16, 2>{{shape[0], shape[1]}});
}

Row image(const Extents& shape) {
  const std::int64_t batch = shape[0], height = shape[1], width = shape[2];
  return tensor_row(
      "image", "u8", shape,
      [=](Lazy<u8, 4> x) {
    const auto channel = iota(x.device(), {1, 1, 1, 3}, 3);
    const auto by_channel = [&](double red, double green, double blue) {
      const Lazy<f32, 4> of_blue = full<f32>(x.device(), {1, 1, 1, 1}, blue);
      return where(channel == 0, static_cast<float>(red), where(channel == 1, static_cast<float>(green), of_blue));
    };
    const auto normed =
        (x.cast<f32>() * (1.0f / 255) - by_channel(0.485, 0.456, 0.406)) * by_channel(1 / 0.229, 1 / 0.224, 1 / 0.225);
    return normed.permute({0, 3, 1, 2}).cast<bf16>();
      },
      Input<u8, 4>{{batch, height, width, 3}, 1, 256});
}

/// The divergence of a student's distribution from its teacher's.
Row distill(const Extents& shape) {
  const Input<bf16, 2> logits{{shape[0], shape[1]}};
  return tensor_row(
      "distill", "bf16", shape,
      [](Lazy<bf16, 2> teacher, Lazy<bf16, 2> student) {
    const auto logs = teacher.cast<f32>().log_softmax();
    return sum(exp(logs) * (logs - student.cast<f32>().log_softmax()), 1).squeeze(1);
      },
      logits, logits);
}

/// A density at points, from others by Gaussian kernels.
Row density(const Extents& shape) {
  const std::int64_t points = shape[0], others = shape[1], width = shape[2];
  return tensor_row(
      "density", "bf16", shape,
      [=](Lazy<bf16, 2> x, Lazy<bf16, 2> y) {
    const auto squares = [](const Lazy<bf16, 2>& v) { return sum(v.cast<f32>() * v.cast<f32>(), 1); };
    const auto products = matmul(x, y.transpose()).cast<f32>();
    const auto distances = squares(x) + squares(y).reshape({1, others}) - products * 2.0f;
    return mean(exp(distances * static_cast<float>(-0.5 / static_cast<double>(width))), 1).squeeze(1);
      },
      Input<bf16, 2>{{points, width}}, Input<bf16, 2>{{others, width}});
}

/// Mamba-2's scan in chunks (Dao and Gu, 2024): state = exp(-exp(a) d) state + d x B^T, y = C state + D x, with
/// d = softplus(dt).
Row ssd(const Extents& shape) {
  const std::int64_t b = shape[0], t = shape[1], h = shape[2], p = shape[3], n = shape[4];
  const std::int64_t length = std::min<std::int64_t>(t, 64), z = t / length;
  Input<f32, 3> steps{{b, t, h}};
  steps.mean = -2;
  const Input<bf16, 3> of_state{{b, t, n}};
  return tensor_row(
      "ssd", "bf16", shape,
      [=](Lazy<bf16, 4> x, Lazy<f32, 3> dt, Lazy<f32, 1> a_log, Lazy<bf16, 3> B, Lazy<bf16, 3> C, Lazy<f32, 1> D) {
    const Device& device = x.device();
    const auto step = dt.softplus().reshape({b, z, length, h}).permute({0, 1, 3, 2});      // [b, z, h, length]
    const auto decays = (-exp(a_log).reshape({h, 1}) * step).cumsum(3);                    // logarithms, in a chunk
    const auto total = decays.slice(3, length - 1, 1);                                     // [b, z, h, 1]
    const auto xs = x.reshape({b, z, length, h, p}).permute({0, 1, 3, 2, 4}).cast<f32>();  // [b, z, h, length, p]
    const auto in = (xs * step.expand_dims(4)).cast<bf16>();
    const auto Bs = B.reshape({b, z, 1, length, n}), Cs = C.reshape({b, z, 1, length, n});
    // Within chunks.
    const auto seen = iota(device, {length, length}, 0) >= iota(device, {length, length}, 1);
    const auto decay = exp(where(seen, decays.expand_dims(4) - decays.expand_dims(3), -inf));
    const auto scores = matmul(Cs, Bs.transpose()).cast<f32>();
    const auto inside = matmul((scores * decay).cast<bf16>(), in).cast<f32>();  // [b, z, h, length, p]
    // The part that each chunk adds to the state, and the state ahead of each chunk.
    const auto weighted = (Bs.cast<f32>() * exp(total - decays).expand_dims(4)).cast<bf16>();
    const auto added = matmul(weighted.transpose(), in);  // [b, z, h, n, p]
    const auto totals = total.squeeze(3).permute({0, 2, 1});
    const auto through = totals.cumsum(2), before = totals.cumsum(2, {.exclusive = true});
    const auto later = iota(device, {z, z}, 0) > iota(device, {z, z}, 1);
    const auto carry = exp(where(later, before.expand_dims(3) - through.expand_dims(2), -inf));  // [b, h, z, z]
    const auto states = matmul(carry.cast<bf16>(), added.permute({0, 2, 1, 3, 4}).reshape({b, h, z, n * p}))
                            .reshape({b, h, z, n, p})
                            .permute({0, 2, 1, 3, 4});
    const auto outside = matmul(Cs, states).cast<f32>() * exp(decays).expand_dims(4);
    const auto y = inside + outside + xs * D.reshape({h, 1, 1});
    return y.permute({0, 1, 3, 2, 4}).reshape({b, t, h, p}).cast<bf16>();
      },
      Input<bf16, 4>{{b, t, h, p}}, steps, Input<f32, 1>{{h}}, of_state, of_state, Input<f32, 1>{{h}});
}

/// The global response norm of ConvNeXt V2 (Woo et al., 2023), and the patch merging of Swin (Liu et al., 2021).
Row grn_merge(const Extents& shape) {
  const std::int64_t n = shape[0], h = shape[1], w = shape[2], c = shape[3];
  const Input<f32, 1> of_channels{{c}}, of_merged{{4 * c}};
  return tensor_row(
      "grn_merge", "f32", shape,
      [=](Lazy<f32, 4> x, Lazy<f32, 1> gamma, Lazy<f32, 1> beta, Lazy<f32, 1> weight, Lazy<f32, 1> bias) {
    const auto norms = sqrt(sum(x * x, {1, 2}));
    const auto response = norms / (mean(norms, 3) + 1e-6);
    const auto y = x + gamma * (x * response) + beta;
    return y.reshape({n, h / 2, 2, w / 2, 2, c})
        .permute({0, 1, 3, 4, 2, 5})
        .reshape({n, h / 2, w / 2, 4 * c})
        .layer_norm(weight, bias);
      },
      Input<f32, 4>{{n, h, w, c}}, of_channels, of_channels, of_merged, of_merged);
}

/// RetinaNet's targets (Lin et al., 2017): anchors are matched to boxes (x0, y0, x1, y1). Labels are a class, -1
/// (background) or -2 (ignored).
Row match_anchors(const Extents& shape) {
  const std::int64_t a = shape[0], b = shape[1], g = shape[2];
  const auto box = [](const Normal& normal, std::size_t i) {
    const auto of = [&](std::size_t at) { return std::abs(normal[at]); };
    return i % 4 < 2 ? of(i) * 300 : of(i - 2) * 300 + 16 + of(i) * 150;
  };
  Input<f32, 2> anchors{{a, 4}};
  Input<f32, 3> boxes{{b, g, 4}};
  anchors.element = boxes.element = box;
  return tensor_row(
      "match_anchors", "f32", shape,
      [=](Lazy<f32, 2> anchors, Lazy<f32, 3> boxes, Lazy<i32, 2> classes) {
    const auto A = anchors.transpose().reshape({4, 1, 1, a});  // coordinates first
    const auto G = boxes.permute({2, 0, 1}).reshape({4, b, g, 1});
    const auto area = [](const auto& box) { return prod(box.slice(0, 2, 2) - box.slice(0, 0, 2), 0); };
    const auto low = maximum(A.slice(0, 0, 2), G.slice(0, 0, 2)), high = minimum(A.slice(0, 2, 2), G.slice(0, 2, 2));
    const auto overlap = prod(maximum(high - low, 0), 0);
    const auto iou = (overlap / (area(A) + area(G) - overlap)).squeeze(0);  // [b, g, a]
    const auto best = max(iou, 1).squeeze(1);
    const auto match = argmax(iou, 1).squeeze(1);
    const auto top = max(iou, 2);
    const auto rescued = any((iou == top) & (top > 0), 1).squeeze(1);  // the best anchor of some box
    const auto row = match + iota(anchors.device(), {b, 1}, 0) * g;
    const auto matched = gather(boxes.reshape({b * g, 4}), row);
    const auto label = gather(classes.reshape({b * g}), row);
    const auto none = full<i32>(anchors.device(), {1}, -1);
    const auto labels = where((best >= 0.5f) | rescued, label, where(best < 0.4f, none, -2));
    const auto center = [](const auto& box) { return (box.slice(-1, 0, 2) + box.slice(-1, 2, 2)) * 0.5f; };
    const auto size = [](const auto& box) { return box.slice(-1, 2, 2) - box.slice(-1, 0, 2); };
    const auto deltas =
        concat(2, (center(matched) - center(anchors)) / size(anchors) * 10, log(size(matched) / size(anchors)) * 5);
    return std::tuple(labels, deltas);
      },
      anchors, boxes, Input<i32, 2>{{b, g}, 1, 80});
}

}  // namespace

std::vector<Row> tensor_rows(bool small) {
  struct Program {
    Row (*make)(const Extents&);
    Extents tiny, small, medium, large;
  };
  const Program programs[] = {
      {mlp, {9, 32}, {16, 256}, {1024, 1024}, {8192, 2048}},
      {swiglu, {9, 32}, {16, 256}, {1024, 1024}, {8192, 2048}},
      {residual_norm, {9, 48}, {16, 768}, {2048, 1024}, {65536, 2048}},
      {rms_linear, {9, 32}, {16, 512}, {1024, 1024}, {8192, 2048}},
      {alibi, {1, 2, 20, 16}, {1, 4, 128, 64}, {4, 12, 512, 64}, {4, 16, 2048, 64}},
      {soft_cap, {1, 2, 20, 16}, {1, 4, 128, 128}, {4, 8, 512, 128}, {4, 16, 2048, 128}},
      {rotary, {1, 5, 2, 16}, {1, 64, 8, 64}, {4, 512, 16, 128}, {8, 2048, 32, 128}},
      {cross_entropy_smooth, {5, 70}, {32, 1000}, {512, 50257}, {8192, 32000}},
      {routing, {9, 32, 16}, {16, 256, 64}, {1024, 1024, 64}, {16384, 2048, 64}},
      {group_norm_silu, {1, 64, 10}, {1, 64, 64}, {8, 256, 1024}, {32, 512, 4096}},
      {conv, {1, 4, 5, 16}, {1, 8, 8, 64}, {8, 32, 32, 128}, {32, 64, 64, 256}},
      {statistics, {50, 7}, {1000, 16}, {65536, 128}, {262144, 256}},
      {kmeans, {60, 16, 5}, {1000, 16, 16}, {65536, 64, 64}, {262144, 128, 128}},
      {stencil, {12, 13}, {128, 128}, {1024, 1024}, {8192, 8192}},
      {block, {1, 9, 64}, {1, 64, 256}, {4, 512, 768}, {8, 1024, 1024}},
      {adamw, {100}, {10'000}, {1 << 20}, {1 << 26}},
      {top_p, {5, 60}, {16, 512}, {64, 4096}, {1024, 16384}},
      {image, {1, 5, 7}, {1, 32, 32}, {32, 224, 224}, {256, 512, 512}},
      {distill, {5, 70}, {32, 1000}, {512, 16384}, {8192, 32000}},
      {density, {9, 20, 16}, {100, 100, 16}, {4096, 4096, 64}, {32768, 32768, 64}},
      // Written by somebody who had not read the rules of fusion.
      {ssd, {1, 16, 2, 8, 8}, {1, 256, 4, 64, 64}, {1, 2048, 24, 64, 128}, {4, 2048, 24, 64, 128}},
      {grn_merge, {1, 4, 6, 12}, {1, 14, 14, 96}, {16, 28, 28, 192}, {128, 56, 56, 96}},
      {match_anchors, {60, 2, 5}, {1024, 1, 8}, {16384, 4, 32}, {120000, 8, 64}},
  };
  std::vector<Row> rows;
  for (const Program& program : programs) {
    if (small)
      rows.push_back(program.make(program.tiny));
    else
      for (const Extents& shape : {program.small, program.medium, program.large}) rows.push_back(program.make(shape));
  }
  return rows;
}

}  // namespace tessera::internal::bench
