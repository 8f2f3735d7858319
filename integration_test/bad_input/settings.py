"""Plans, clusters, and settings of a run: JSON that people edit, and flags that contradict it."""

import json
import os

from .case import ANY, BAD_INPUT, USAGE, Case, broken_texts, cuts, flips, json_damage, write
from .models import classifier, small_gpt


def plans(folder, made):
    """`made` holds `classifier.onnx` with its plan, `plan.json`, and `gpt.onnx`."""
    path = folder / 'plan.json'
    text = (made / 'plan.json').read_text()

    def emit(label, codes=(BAD_INPUT,), says=('.json',), model='classifier.onnx', plan=path):
        return Case(label, ['emit', made / model, '--plan', plan, '-o', folder / 'project'], codes, says, output='project')

    yield emit('a good plan', (0,), (), plan=made / 'plan.json')
    for label, broken in broken_texts():
        write(path, broken)
        yield emit(label, says=('plan.json',))
    for length, cut in cuts(text.encode()):
        write(path, cut)
        yield emit(f'cut at {length}', (0, BAD_INPUT) if not text.encode()[length:].strip() else (BAD_INPUT,), ())
    for i, changed in flips(text.encode(), 100, 3):
        write(path, changed)
        yield emit(f'bits turned, {i}', (0, BAD_INPUT), ())
    for label, changed in json_damage(json.loads(text), lambda document: json.dumps(document, indent=1)):
        write(path, changed)
        yield emit(label, (0, BAD_INPUT, 3), ())
    yield emit('of another model', says=('plan',), model='gpt.onnx', plan=made / 'plan.json')
    yield emit('missing', plan=folder / 'none.json')
    yield emit('folder', says=('plan',), plan=folder)
    yield emit('device', says=('/dev/zero',), plan='/dev/zero')
    os.mkfifo(folder / 'pipe.json')
    yield emit('named pipe', plan=folder / 'pipe.json')
    with open(folder / 'large.json', 'wb') as large:
        large.truncate(2**32)
    yield emit('4 GiB', plan=folder / 'large.json')
    with open(folder / 'zeros.json', 'wb') as large:
        large.truncate(2**28)
    yield emit('256 MiB of zeros', plan=folder / 'zeros.json')
    write(folder / 'spaces.json', b' ' * 2**26)
    yield emit('64 MiB of spaces', plan=folder / 'spaces.json')
    write(folder / 'many.json', b'{"operators": [' + b'{},' * 5_000_000 + b'{}]}')
    yield emit('five million objects', plan=folder / 'many.json')


# Two types of device on two kinds of host, with everything that a cluster may say.
CLUSTER = {
    'version': 1,
    'device_types': {'big': {'backend': 'cuda', 'memory_bytes': 10**11, 'memory_bandwidth_bytes_per_s': 2 * 10**12, 'peak_flops_per_s': {'f32': 10**13, 'bf16': 10**14}},
                     'small': {'backend': 'cuda', 'memory_bytes': 10**10, 'memory_bandwidth_bytes_per_s': None}},
    'hosts': [{'count': 1, 'devices': 2, 'device_type': 'big', 'memory_bytes': 10**12, 'device_link': {'latency_s': 1e-5, 'bandwidth_bytes_per_s': 10**10},
               'memory_bandwidth_bytes_per_s': 10**11, 'flops_per_s': 10**12, 'disk_bytes': 10**13, 'disk_bandwidth_bytes_per_s': 10**9},
              {'count': 1, 'devices': 2, 'device_type': 'small'}],
    'link_tiers': [{'name': 'link', 'devices': 2, 'latency_s': 2.5e-6, 'bandwidth_bytes_per_s': 10**11}, {'name': 'net', 'devices': 4}],
    'device_order': [3, 2, 1, 0],
    'sources': {'hosts[0].memory_bytes': 'the label'},
}


# A profile of two ranks of this machine, with everything that a profile may hold.
TIME = {'median_seconds': 1e-5, 'spread_seconds': 0, 'turns': 6}
PROFILE = {
    'version': 1, 'machine': 'a machine', 'threads': 1,
    'cluster': {'version': 1, 'device_types': {'cpu': {'backend': 'cpu'}}, 'hosts': [{'count': 1, 'devices': 2, 'device_type': 'cpu', 'memory_bytes': 2**34}],
                'link_tiers': [{'name': 'memory', 'devices': 2}]},
    'commands': {'matmul(f32[4x4], f32[4x4]) -> f32[4x4] {}': {'family': 'matmul', 'flops': 128, 'bytes': 192, 'narrow_products': False, 'loaded': TIME,
                                                              'alone': TIME}},
    'collectives': [{'kind': 'all_reduce', 'members': 2, 'bytes': 256, **TIME}, {'kind': 'all_reduce', 'members': 2, 'bytes': 1024, **TIME}],
    'device': {'product_share': 0.7, 'product_half_flops': 1e9, 'memory_share': 0.8, 'attention_factor': 2, 'launch_seconds': 1e-6, 'issue_seconds': 1e-6,
               'update_issue_seconds': 1e-6, 'error_share': 0.1},
    'products': {'device': 'a device', 'library': 'a library', 'choices': {'f32 NN': {'algorithm': 9 * [1], 'seconds': 1e-5, 'first_seconds': 2e-5}},
                 'epilogues': {'matmul_bias()': {'seconds': 1e-5, 'apart_seconds': 2e-5}}},
    'attention': {'device': 'a device', 'library': 'a library', 'choices': {'attention()': {'seconds': 1e-5, 'own_seconds': 2e-5, 'workspace_bytes': 64}}},
}


def damaged(path, document, case, codes):
    """Yields a good file, and that file broken, cut and changed; `codes` are the exit codes of a document that may still be legal."""
    text = json.dumps(document, indent=1)
    write(path, text)
    yield case('a good file', (0,), ())
    for label, broken in broken_texts():
        write(path, broken)
        yield case(label)
    for length, cut in cuts(text.encode()):
        write(path, cut)
        yield case(f'cut at {length}')
    for i, changed in flips(text.encode(), 100, 5):
        write(path, changed)
        yield case(f'bits turned, {i}', (0, BAD_INPUT), ())
    for label, changed in json_damage(document, json.dumps):
        write(path, changed)
        yield case(label, codes, ())


def profile_files(folder, made):
    path = folder / 'profile.json'

    def plan(label, codes=(BAD_INPUT,), says=('profile.json',), profile=path):
        return Case(label, ['plan', made / 'classifier.onnx', '--cluster', 'cpu:2', '--micro-batches', 2, '--costs', profile, '-o', folder / 'plan.json'], codes, says, output='plan.json')

    yield from damaged(path, PROFILE, plan, (0, BAD_INPUT))
    command = next(iter(PROFILE['commands'].values()))
    for label, changed in (('200,000 commands', {'commands': {f'c{i}': command for i in range(200000)}}),
                           ('200,000 collectives', {'collectives': [dict(PROFILE['collectives'][0], bytes=i + 1) for i in range(200000)]}),
                           ('a time of 1e300', {'commands': {'c': dict(command, loaded=dict(TIME, median_seconds=1e300))}}),
                           ('a share of 0', {'device': dict(PROFILE['device'], memory_share=0)}),
                           ('a pause of years', {'device': dict(PROFILE['device'], issue_seconds=1e9)}),
                           ('a workspace of 2^62 bytes', {'attention': {**PROFILE['attention'], 'choices': {'attention()': {'seconds': 1, 'own_seconds': 2, 'workspace_bytes': 2**62}}}}),
                           ('200,000 attentions', {'attention': {**PROFILE['attention'], 'choices': {f'a{i}': PROFILE['attention']['choices']['attention()'] for i in range(200000)}}}),
                           ('200,000 epilogues', {'products': {**PROFILE['products'], 'epilogues': {f'e{i}': {'seconds': 1, 'apart_seconds': 2} for i in range(200000)}}}),
                           ('an epilogue of a year', {'products': {**PROFILE['products'], 'epilogues': {'matmul_bias()': {'seconds': 3e7, 'apart_seconds': 6e7}}}}),
                           ('no time', {'commands': {'c': dict(command, loaded=dict(TIME, median_seconds=0))}})):
        write(path, json.dumps(dict(PROFILE, **changed)))
        yield plan(label)
    path.unlink()
    yield plan('missing')
    os.mkfifo(folder / 'pipe.json')
    yield plan('named pipe', says=('pipe.json',), profile=folder / 'pipe.json')
    with open(folder / 'large.json', 'wb') as large:
        large.truncate(2**32)
    yield plan('4 GiB', says=('large.json', '64 MiB'), profile=folder / 'large.json')


def cluster_files(folder, made):
    path = folder / 'cluster.json'

    def plan(label, codes=(BAD_INPUT,), says=('cluster.json',), cluster=path):
        return Case(label, ['plan', made / 'classifier.onnx', '--cluster', cluster, '--micro-batches', 4, '-o', folder / 'plan.json'], codes, says, output='plan.json')

    yield from damaged(path, CLUSTER, plan, (0, BAD_INPUT, 3))
    host = CLUSTER['hosts'][0]
    for label, changed in (('100,000 hosts', {'hosts': [host] * 100000}), ('100,000 devices', {'hosts': [dict(host, count=100000)]}),
                           ('2^62 devices', {'hosts': [dict(host, count=2**62)]}), ('100,000 tiers', {'link_tiers': CLUSTER['link_tiers'][:1] * 100000}),
                           ('100,000 types', {'device_types': {f't{i}': CLUSTER['device_types']['big'] for i in range(100000)}}),
                           ('a million numbers', {'device_order': list(range(1000000))})):
        write(path, json.dumps(dict(CLUSTER, **changed)))
        yield plan(label)
    write(path, json.dumps(dict(CLUSTER, sources={f'a{i}': 'b' for i in range(100000)})))
    yield plan('100,000 sources', (0,), ())
    path.unlink()
    yield plan('missing')
    path.mkdir()
    yield plan('folder')
    os.mkfifo(folder / 'pipe.json')
    yield plan('named pipe', says=('pipe.json',), cluster=folder / 'pipe.json')
    with open(folder / 'large.json', 'wb') as large:
        large.truncate(2**32)
    yield plan('4 GiB', says=('large.json', '16 MiB'), cluster=folder / 'large.json')
    write(folder / 'zeros.json', bytes(2**24))
    yield plan('16 MiB of zeros', says=('zeros.json',), cluster=folder / 'zeros.json')


def clusters(folder, made):
    for text in ('', 'cpu', 'cpu:', 'cpu:0', 'cpu:-1', 'cpu:two', 'cpu:99999999999999999999', 'cpu:1000000000', 'gpu:2', ':2', 'cpu:2:2',
                 'cpu:2x', 'cpu:0x2', 'cpu:2x2x2',
                 'none.json', '/dev/zero', str(folder), '{"devices": 2}', 'a\nb', 'n' * 100000, 'h200', 'h200:', 'h200:0', 'h200:9', 'h200:x', 'h200:4x', 'h200:0x8',
                 'h200:8x8x8', 'h200:12500x8', 'h200:99999999999999999999x8', 'h20:8', 'cpu:100000'):
        yield Case(f'cluster {text[:30]!r}', ['plan', made / 'classifier.onnx', '--cluster', text, '-o', folder / 'plan.json'], (BAD_INPUT, USAGE), output='plan.json')
    for ranks in (0, -1, 65537, 2**63, 3, 7):
        yield Case(f'{ranks} ranks', ['plan', made / 'classifier.onnx', '-n', ranks, '-o', folder / 'plan.json'], (BAD_INPUT, USAGE), output='plan.json')
    for flag, values in {'--micro-batches': (0, -1, 2**63, 'two'), '--memory-limit': (0, -1, '1KiB', '1XB', 2**64), '--optimizer': ('adagrad', ''),
                         '--precision': ('f8',), '--strategy': ('none', '', 'zero1*', 'a' * 10000), '--freeze': ('[', '*', 'none', '\\', '{' * 10000),
                         '--no-decay': ('[', '{a,', '\\'), '--lr-scale': ('', '*', '=2', '*=', '*=0', '*=-1', '*=nan', '*=inf', '*=1e300', 'none=2', '[=2', '{' * 10000 + '=2'),
                         '--decay-scale': ('*=0x', '==', '*=1e-400')}.items():
        for value in values:
            yield Case(f'{flag} {str(value)[:20]}', ['plan', made / 'classifier.onnx', flag, value, '-o', folder / 'plan.json'],
                       (0, BAD_INPUT, USAGE, 3) if flag in ('--freeze', '--no-decay') else (BAD_INPUT, USAGE, 3), output='plan.json')


def configs(folder, made):
    path = folder / 'train.json'
    good = {'steps': 1, 'lr': 0.001, 'betas': [0.9, 0.99], 'lr-schedule': 'cosine', 'seed': 1, 'bytes': False, 'on-nan': 'skip', 'threads': 1,
            'inputs': 'x=tokens', 'keep': 2, 'clip-norm': 1.0, 'weight-decay': 0.1, 'warmup': 1}

    def run(label, codes=(BAD_INPUT,), says=('train.json',)):
        return Case(label, ['--config', path, '--data', made / 'classifier.safetensors', '-o', folder / 'run'], codes, says, 'classifier', 'run')

    for label, broken in broken_texts():
        write(path, broken)
        yield run(label)
    for label, changed in json_damage(good, json.dumps):
        write(path, changed)
        yield run(label, (0, BAD_INPUT, USAGE), ())
    for key in ('config', 'stpes', '', '--steps', 'o\n', 'k' * 10000):
        write(path, json.dumps({key: 1}))
        yield run(f'setting {key[:20]!r}', (BAD_INPUT, USAGE), ())
    path.unlink()
    yield run('missing')
    path.mkdir()
    yield run('folder')


def flags(folder, made):
    """Values of the training program's own flags."""
    strange = ('', 'text', '-1', '0', '1e999', 'nan', 'inf', str(2**63), str(2**64), '0x10', '1,2,3', '1.5', 'n' * 100000)
    for flag in ('steps', 'epochs', 'lr', 'betas', 'eps', 'momentum', 'weight-decay', 'clip-norm', 'lr-schedule', 'schedule-steps', 'warmup', 'seed', 'init',
                 'checkpoint-every', 'keep', 'eval-every', 'eval-batches', 'threads', 'communicator', 'on-nan', 'inputs', 'resume', 'weights', 'eval-data'):
        for value in strange:
            if flag == 'threads' and value == '1.5':
                continue
            yield Case(f'--{flag} {value[:20]!r}', [f'--{flag}={value}', '--data', made / 'classifier.safetensors', '-o', folder / 'run', *([] if flag == 'steps' else ['--steps', 1])],
                       (0, BAD_INPUT, USAGE, 6), (), 'classifier', 'run')


def prepare(folder):
    write(folder / 'classifier.onnx', classifier().SerializeToString())
    write(folder / 'gpt.onnx', small_gpt().SerializeToString())
