"""Reference values of tests/optim/rules_test.cpp: AdamW, SGD and Muon by torch.optim in double, StableAdamW and Lion by
the algorithms of their papers, read literally. Run it; the test holds what it prints.

    python tests/optim/reference.py        # needs torch 2.13.0
"""
import torch

torch.set_default_dtype(torch.float64)
# Muon casts to bfloat16; as a copy the cast leaves its arithmetic in double.
torch.Tensor.bfloat16 = lambda self: self.clone()

SHAPES = {"wide": (2, 3), "tall": (3, 2), "vector": (2,)}
LRS, SCALES, DECAY, BETAS, EPS, MOMENTUM = (0.1, 0.2, 0.05), (1.0, 0.5, 4.0), 0.3, (0.9, 0.95), 1e-8, 0.95


def initial(shape):
    return torch.sin(1 + torch.arange(torch.Size(shape).numel())).reshape(shape)


def gradient(shape, step):
    return torch.cos(0.7 * torch.arange(torch.Size(shape).numel()) + 1.3 * step).reshape(shape)


def by_torch(make):
    def run(name, shape):
        p = torch.nn.Parameter(initial(shape))
        optimizer = make(p)
        for step, (lr, scale) in enumerate(zip(LRS, SCALES), 1):
            optimizer.param_groups[0]["lr"] = lr
            p.grad = scale * gradient(shape, step)
            optimizer.step()
        return p.detach()
    return run


def adamw(p):
    return torch.optim.AdamW([p], betas=BETAS, eps=EPS, weight_decay=DECAY if p.ndim == 2 else 0)


def sgd(p):
    return torch.optim.SGD([p], momentum=MOMENTUM, dampening=0)


def muon(p):
    if p.ndim != 2:
        return adamw(p)
    return torch.optim.Muon([p], momentum=MOMENTUM, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw")


def by_hand(update):
    def run(name, shape):
        p, m, v = initial(shape), torch.zeros(shape), torch.zeros(shape)
        decay = DECAY if len(shape) == 2 else 0
        for step, (lr, scale) in enumerate(zip(LRS, SCALES), 1):
            p, m, v = update(p, m, v, scale * gradient(shape, step), step, lr, decay)
        return p
    return run


def stable_adamw(p, m, v, g, t, lr, decay):
    """Algorithm 2 of arXiv 2304.13013, with the corrections for bias in the betas."""
    beta1 = BETAS[0] * (1 - BETAS[0] ** (t - 1)) / (1 - BETAS[0] ** t)
    beta2 = BETAS[1] * (1 - BETAS[1] ** (t - 1)) / (1 - BETAS[1] ** t)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g ** 2
    rms = (g ** 2 / torch.clamp(v, min=EPS ** 2)).mean().sqrt()
    lr = lr / max(1.0, rms.item())
    return p - lr * decay * p - lr * m / (v.sqrt() + EPS), m, v


def lion(p, m, v, g, t, lr, decay):
    """Algorithm 2 of arXiv 2302.06675."""
    c = BETAS[0] * m + (1 - BETAS[0]) * g
    p = p - lr * (torch.sign(c) + decay * p)
    return p, BETAS[1] * m + (1 - BETAS[1]) * g, v


def sgd_with_decoupled_decay(name, shape):
    """torch.optim.SGD adds its decay to the gradient, so p is decayed between its steps here."""
    p = torch.nn.Parameter(initial(shape))
    optimizer = sgd(p)
    for step, (lr, scale) in enumerate(zip(LRS, SCALES), 1):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = scale * gradient(shape, step)
        if len(shape) == 2:
            p.data *= 1 - lr * DECAY
        optimizer.step()
    return p.detach()


KINDS = {"adamw": by_torch(adamw), "muon": by_torch(muon), "stable_adamw": by_hand(stable_adamw),
         "lion": by_hand(lion), "sgd": sgd_with_decoupled_decay}
for kind, run in KINDS.items():
    print(kind)
    for name, shape in SHAPES.items():
        print(f"  {name}:", ", ".join(f"{x:.17g}" for x in run(name, shape).flatten().tolist()))
