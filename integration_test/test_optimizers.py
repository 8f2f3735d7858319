"""Each step of each optimizer is what its authors' formula makes, in double precision, of the gradients and the state before it."""

import json

import numpy

import common
from windlass_models import safetensors_file

STEPS, LR, DECAY, CLIP, EMA = 3, 0.01, 0.1, 0.5, 0.75
LAYOUTS = {'one rank': ('-n', 1), 'sharded': ('-n', 2, '--strategy', 'zero3'), 'on the host': ('-n', 1, '--cluster', 'cpu:1', '--offload', 'optimizer')}


def adam(w, g, state, t, lr, decay, coupled, betas=(0.9, 0.999), eps=1e-8):
    g = g + decay * w if coupled else g
    m = betas[0] * state['exp_avg'] + (1 - betas[0]) * g
    v = betas[1] * state['exp_avg_sq'] + (1 - betas[1]) * g * g
    kept = w if coupled else w * (1 - lr * decay)
    root = numpy.sqrt(v / (1 - betas[1] ** t))
    # Where a gradient is rounding only, so is the direction.
    return kept - lr * m / (1 - betas[0] ** t) / (root + eps), {'exp_avg': m, 'exp_avg_sq': v}, root > 1e-6


def lion(w, g, state, lr, decay, betas=(0.9, 0.99)):
    m = state['exp_avg']
    direction = betas[0] * m + (1 - betas[0]) * g
    is_sure = abs(direction) > 1e-6 * (abs(m) + abs(g))
    return w * (1 - lr * decay) - lr * numpy.sign(direction), {'exp_avg': betas[1] * m + (1 - betas[1]) * g}, is_sure | (direction == 0)


def lamb(w, g, state, t, lr, decay, decays, betas=(0.9, 0.999), eps=1e-6):
    m = betas[0] * state['exp_avg'] + (1 - betas[0]) * g
    v = betas[1] * state['exp_avg_sq'] + (1 - betas[1]) * g * g
    root = numpy.sqrt(v / (1 - betas[1] ** t))
    direction = m / (1 - betas[0] ** t) / (root + eps) + decay * w
    norms = numpy.linalg.norm(w), numpy.linalg.norm(direction)
    trust = norms[0] / norms[1] if decays and min(norms) > 0 else 1
    # Where a gradient is rounding only, so is the direction.
    return w - lr * trust * direction, {'exp_avg': m, 'exp_avg_sq': v}, root > 1e-6


def root_mean_square(values):
    return numpy.sqrt((values * values).mean())


def adafactor(w, g, state, t, lr, decay, eps=1e-3, least=2.0 ** -23):
    rate = t ** -0.8
    moved = {'row_var': (g * g).mean(-1), 'col_var': (g * g).mean(-2)} if g.ndim > 1 else {'variance': g * g}
    moved = {name: state[name] + rate * (value - state[name]) for name, value in moved.items()}
    if g.ndim > 1:
        rows, columns = moved['row_var'][..., :, None], moved['col_var'][..., None, :]
        estimate = rows * columns / numpy.maximum(rows.mean(-2, keepdims=True), least)
    else:
        estimate = moved['variance']
    direction = g / numpy.sqrt(numpy.maximum(estimate, least * least))
    scale = max(eps, root_mean_square(w)) * min(lr, t ** -0.5) / max(1, root_mean_square(direction))
    return w * (1 - lr * decay) - scale * direction, moved, numpy.full(w.shape, True)


def muon(w, g, state, t, lr, decay, momentum):
    if 'momentum_buffer' not in state:
        return adam(w, g, state, t, lr, decay, coupled=False)
    buffer = state['momentum_buffer'] + (1 - momentum) * (g - state['momentum_buffer'])
    x = g + momentum * (buffer - g)
    is_tall = x.shape[0] > x.shape[1]
    x = (x.T if is_tall else x) / max(numpy.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    x = 0.2 * max(x.shape) ** 0.5 * (x.T if is_tall else x)
    return w * (1 - lr * decay) - lr * x, {'momentum_buffer': buffer}, numpy.full(w.shape, True)


def sgd(w, g, state, lr, decay, momentum):
    v = momentum * state['momentum_buffer'] + g + decay * w
    return w - lr * v, {'momentum_buffer': v}, numpy.full(w.shape, True)


RULES = {
    'adamw': ((), lambda w, g, state, t, lr, decay: adam(w, g, state, t, lr, decay, coupled=False)),
    'adam': ((), lambda w, g, state, t, lr, decay: adam(w, g, state, t, lr, decay, coupled=True)),
    'lion': ((), lambda w, g, state, t, lr, decay: lion(w, g, state, lr, decay)),
    'adafactor': ((), adafactor),
    'lamb': ((), lambda w, g, state, t, lr, decay: lamb(w, g, state, t, lr, decay, decay > 0)),
    'muon': (('--momentum', 0.8), lambda w, g, state, t, lr, decay: muon(w, g, state, t, lr, decay, 0.8)),
    'sgd': (('--momentum', 0.9), lambda w, g, state, t, lr, decay: sgd(w, g, state, lr, decay, 0.9)),
}


class OptimizersTest(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(tokens=8, width=16, vocabulary=256)
        self.data = self.folder / 'text.txt'
        self.data.write_bytes(b'a stitch in time saves nine ' * 200)

    def read(self, run):
        exported = self.folder / 'state.safetensors'
        self.succeed('checkpoint', 'export', run, '--state', '-o', exported)
        values, state = {}, {}
        for name, value in safetensors_file.read(exported).items():
            weight, slash, kind = name.rpartition('/')
            if slash:
                state.setdefault(weight, {})[kind] = value.astype('f8')
            else:
                values[name] = value.astype('f8')
        return values, state

    def check(self, optimizer, layout, more=(), scales=lambda name: (1, 1), ema=False):
        """Compares each step; `scales` returns what a parameter's learning rate and weight decay are times the run's. With `ema` the run
        keeps a moving average, which begins as the first step's weight."""
        run, gradients = self.folder / f'{optimizer}-{layout}', self.folder / 'gradients.safetensors'
        flags, rule = RULES[optimizer]
        train = ('train', self.model, '--data', self.data, '--bytes', '-o', run, '--optimizer', optimizer, '--lr', LR, '--weight-decay', DECAY,
                 '--clip-norm', CLIP, '--schedule-steps', STEPS, *flags, *LAYOUTS[layout], *(('--ema-decay', EMA) if ema else ()), *more)
        self.succeed(*train, '--steps', 0, '--checkpoint-initial')
        before, state = self.read(run)
        unsure = elements = 0
        for t in range(1, STEPS + 1):
            self.succeed(*train, '--resume', '--steps', t, '--dump-gradients', gradients)
            norm = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()][-1]['grad_norm']
            after, next_state = self.read(run)
            for name, gradient in safetensors_file.read(gradients).items():
                scaled = gradient.astype('f8') * min(1, CLIP / (norm + 1e-6))
                rate, decay = scales(name)
                decay *= DECAY if gradient.ndim >= 2 or decay != 1 else 0
                wanted, wanted_state, is_sure = rule(before[name], scaled, state[name], t, LR * rate, decay)
                self.assertLess(abs(after[name] - wanted)[is_sure].max(initial=0), 1e-6 * max(1, abs(wanted).max()), name)
                if ema:
                    wanted_state['ema'] = after[name] if t == 1 else EMA * state[name]['ema'] + (1 - EMA) * after[name]
                self.assertEqual(set(next_state[name]), set(wanted_state))
                for kind, value in wanted_state.items():
                    self.assertLess(abs(next_state[name][kind] - value).max(), 1e-6 * max(1e-3, abs(value).max()), (name, kind))
                unsure, elements = unsure + (~is_sure).sum(), elements + is_sure.size
            before, state = after, next_state
        self.assertLess(unsure, 0.05 * elements)
        return run

    def test_formulas(self):
        for optimizer in RULES:
            with self.subTest(optimizer):
                self.check(optimizer, 'one rank')

    def test_layouts(self):
        for optimizer in 'adafactor', 'adam', 'lamb', 'lion', 'muon':
            for layout in 'sharded', 'on the host':
                with self.subTest(optimizer=optimizer, layout=layout):
                    self.check(optimizer, layout)

    def test_moving_average(self):
        for optimizer, layout in (('adamw', 'one rank'), ('lion', 'sharded'), ('sgd', 'on the host')):
            with self.subTest(optimizer=optimizer, layout=layout):
                run = self.check(optimizer, layout, ema=True)
        # The averages stand for the weights, and another run begins with them.
        averages = self.folder / 'averages.safetensors'
        self.succeed('checkpoint', 'export', run, '--ema', '-o', averages)
        values, state = self.read(run)
        exported = safetensors_file.read(averages)
        self.assertEqual(set(exported), set(values))
        for name in values:
            self.assertEqual(exported[name].astype('f8').tolist(), state[name]['ema'].tolist())
        self.assertEqual(json.loads((run / 'run.json').read_text())['settings']['ema_decay'], EMA)
        plain = self.folder / 'plain'
        self.succeed('train', self.model, '--data', self.data, '--bytes', '--optimizer', 'sgd', '--init-from', averages, '--steps', 1, '-o', plain)
        outcome = common.windlass('checkpoint', 'export', plain, '--ema', '-o', averages)
        self.assertEqual(outcome.code, 1)
        self.assertIn('has no moving average', outcome.err)

    def test_scaled_parameters(self):
        flags = ('--lr-scale', '*wpe*=0.25', '--lr-scale', '*.attn.*=2', '--decay-scale', '*.bias=0.5', '--decay-scale', '*wpe*=3')

        def scales(name):
            return 0.25 if 'wpe' in name else 2 if '.attn.' in name else 1, 0.5 if name.endswith('.bias') else 3 if 'wpe' in name else 1

        for optimizer, layout in (('adamw', 'one rank'), ('lion', 'sharded'), ('sgd', 'on the host')):
            with self.subTest(optimizer=optimizer, layout=layout):
                self.check(optimizer, layout, flags, scales)


common.main()
