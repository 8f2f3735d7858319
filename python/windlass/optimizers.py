"""Optimizers that PyTorch does not have, or not in f32."""

from __future__ import annotations

from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al., arXiv:1904.00962). The norms scale the steps of weights that decay."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group['betas']
            for value in group['params']:
                state = self.state[value]
                state['step'] = step = state.get('step', 0) + 1
                mean = state.setdefault('exp_avg', torch.zeros_like(value)).lerp_(value.grad, 1 - beta1)
                square = state.setdefault('exp_avg_sq', torch.zeros_like(value)).lerp_(value.grad * value.grad, 1 - beta2)
                direction = mean / (1 - beta1 ** step) / ((square / (1 - beta2 ** step)).sqrt() + group['eps'])
                rate = group['lr']
                if group['weight_decay']:
                    direction += group['weight_decay'] * value
                    norms = value.norm(), direction.norm()
                    rate *= float(norms[0] / norms[1]) if min(norms) > 0 else 1
                value.sub_(direction, alpha=rate)


class Lion(torch.optim.Optimizer):
    """Lion (Chen et al., arXiv:2302.06675)."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            beta1, beta2 = group['betas']
            for value in group['params']:
                average = self.state[value].setdefault('exp_avg', torch.zeros_like(value))
                direction = torch.sign(torch.lerp(average, value.grad, 1 - beta1))
                value.mul_(1 - group['lr'] * group['weight_decay']).sub_(direction, alpha=group['lr'])
                average.lerp_(value.grad, 1 - beta2)


class Muon(torch.optim.Optimizer):
    """torch.optim.Muon with `match_rms_adamw`, in the precision of the weights instead of bf16."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for value in group['params']:
                buffer = self.state[value].setdefault('momentum_buffer', torch.zeros_like(value)).lerp_(value.grad, 1 - group['momentum'])
                x = value.grad.lerp(buffer, group['momentum'])
                is_tall = x.shape[0] > x.shape[1]
                x = (x.T if is_tall else x) / x.norm().clamp(min=1e-7)
                for _ in range(5):
                    gram = x @ x.T
                    x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
                value.mul_(1 - group['lr'] * group['weight_decay'])
                value.sub_(x.T if is_tall else x, alpha=0.2 * max(x.shape) ** 0.5 * group['lr'])


class Both:
    """Two optimizers of different parameters as one."""

    def __init__(self, first: torch.optim.Optimizer, second: torch.optim.Optimizer):
        self.optimizers = first, second

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()
