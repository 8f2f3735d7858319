"""Plans of several ranks that an edit has made wrong, and wrong arguments of the subcommands that take plans."""

import copy
import json

from .case import BAD_INPUT, USAGE, Case, broken_texts, flips, write

# A plan of four ranks, zero1 over two replicas times megatron on two ranks.
MATMUL, WEIGHT = 'transformer.h.0.mlp.matmul.0', 'transformer.h.0.mlp.c_fc.weight'


def microbatch(plan):
    return plan['functions']['microbatch']


def operator(**changes):
    return lambda plan: microbatch(plan)['operators'][MATMUL].update(changes)


def axis(**changes):
    return lambda plan: plan['mesh']['axes'][0].update(changes)


def mesh(**changes):
    return lambda plan: plan['mesh'].update(changes)


def settings(**changes):
    return lambda plan: plan['settings'].update(changes)


def parameter(**changes):
    return lambda plan: plan['parameters'][WEIGHT].update(changes)


# The edits, and the words that the diagnostic must contain.
EDITS = {
    'an older version': (lambda plan: plan.update(version=plan['version'] - 1), ('older', 'plan again with this one')),
    'a newer version': (lambda plan: plan.update(version=plan['version'] + 1), ('newer', 'plan again with this one')),
    'version 0': (lambda plan: plan.update(version=0), ('version',)),
    'another hash': (lambda plan: plan['model'].update(hash='0' * 64), ('another model', 'constants')),
    'another optimizer': (settings(optimizer='adagrad'), ('optimizer',)),
    'another precision': (settings(precision='f8'), ('precision',)),
    'another loss': (settings(loss='nothing'), ('nothing',)),
    'other micro-batches': (settings(micro_batches=8), ('micro_batches',)),
    'more merged micro-batches than a step has': (settings(merge=3), ('settings.merge 3', 'settings.micro_batches')),
    'merged micro-batches without end': (settings(merge=1 << 40), ('settings.merge', '1024')),
    'a dimension that is not there': (settings(dims={'batch': 3}), ('batch',)),
    'a parameter that does not train any more': (lambda plan: plan['settings']['trainable'].remove(WEIGHT), (WEIGHT, 'does not train')),
    'a stranger that trains': (lambda plan: plan['settings']['trainable'].append('nobody'), ('nobody',)),
    'a stranger that does not decay': (lambda plan: plan['settings']['no_decay'].append('nobody'), ('nobody',)),
    'a stranger with a rate of its own': (settings(lr_scales={'nobody': 2}), ('nobody',)),
    'a rate below zero': (settings(lr_scales={WEIGHT: -1}), ('lr_scales', WEIGHT)),
    'a decay beyond bounds': (settings(decay_scales={WEIGHT: 1e300}), ('decay_scales', WEIGHT)),
    'scales that are no object': (settings(decay_scales=[1]), ('decay_scales',)),
    'a missing operator': (lambda plan: microbatch(plan)['operators'].pop(MATMUL), (MATMUL, 'not in the plan')),
    'an operator twice': (lambda plan: microbatch(plan)['whole'].append(MATMUL), (MATMUL, 'twice')),
    'a whole operator twice': (lambda plan: microbatch(plan)['whole'].append(microbatch(plan)['whole'][0]), ('twice',)),
    'a stranger': (lambda plan: microbatch(plan)['whole'].append(MATMUL + '0'), ('nearest', MATMUL)),
    'no operators': (lambda plan: microbatch(plan).update(operators={}, whole=[]), ('not in the plan',)),
    'an axis that does not exist': (operator(split={'n0': ['modle']}), ('modle', "'model'")),
    'an axis used twice': (operator(split={'n0': ['model', 'model']}), ('twice',)),
    'an axis on two factors': (operator(split={'n0': ['model'], 'm0': ['model']}), ('twice',)),
    'the axis of the replicas': (operator(split={'n0': ['data']}, layouts=['[2, 4, 32:data]']), ('data',)),
    'a factor that does not exist': (operator(split={'q0': ['model']}), ('q0',)),
    'a split of a split of a split': (operator(split={'n0': ['model'] * 100000}), ('twice',)),
    'a long name of an axis': (operator(split={'n0': ['m' * 1000000]}), ('mesh',)),
    'many factors': (operator(split={f'f{i}': ['model'] for i in range(100000)}), ('no factor',)),
    '2^62 blocks': (operator(split={'n0': ['4611686018427387904*', 'model']}), ('blocks',)),
    'no results': (operator(layouts=[]), ('result',)),
    'a million results': (operator(layouts=['[1]'] * 1000000), ('result',)),
    'a layout of 2^62': (operator(layouts=['[4611686018427387904, 4, 32]']), ('layout',)),
    'a layout of -1': (operator(layouts=['[-1, 4, 32]']), ('layout',)),
    'a layout of 0': (operator(layouts=['[0, 4, 32]']), ('layout',)),
    'a layout of a million factors': (operator(layouts=['[' + '2*' * 1000000 + '2, 4, 32]']), ('factor',)),
    'a layout of brackets': (operator(layouts=['[' * 1000000]), ('layout',)),
    'shards that do not divide': (parameter(master='[8, 32:model+data*3]'), ()),
    'a state of sums': (parameter(master='[8, 32] sum(data)'), ()),
    'an axis of 0': (axis(size=0), ('size',)),
    'an axis of -1': (axis(size=-1), ('size',)),
    'an axis of 2^62': (axis(size=2**62), ('size',)),
    'an axis without a name': (axis(name=''), ('name',)),
    'an axis of strange letters': (axis(name='a"b'), ('name',)),
    'two axes of one name': (axis(name='model'), ('twice',)),
    '100,000 axes': (lambda plan: plan['mesh'].update(axes=[{'name': f'a{i}', 'role': 'replica', 'size': 1} for i in range(100000)]), ()),
    'no axes': (mesh(axes=[]), ('mesh.axes make 1 rank, but the cluster has 4 devices',)),
    'a device twice': (mesh(device_order=[0, 1, 2, 2]), ('device_order',)),
    'a device that is not there': (mesh(device_order=[0, 1, 2, 4]), ('device_order',)),
    'a million devices': (mesh(device_order=list(range(1000000))), ('device_order',)),
    'other replicas': (mesh(replicas=4), ('replicas',)),
    'replicas on another axis': (axis(role='model'), ('replicas',)),
    'an axis of no role': (axis(role='nobody'), ('nobody',)),
    'a role that is a number': (axis(role=1), ('role',)),
    'a weight on a disk': (parameter(compute='[8, 32] on disk'), ('kept on disk', 'only what parameters keep')),
    'other accumulation steps': (mesh(accumulation_steps=3), ('accumulation_steps',)),
    'a cluster of 100,000 devices': (lambda plan: plan['cluster']['hosts'][0].update(devices=100000), ('devices',)),
    'buckets of nothing': (lambda plan: plan.update(bucket_bytes=0), ('bucket_bytes',)),
    'buckets below nothing': (lambda plan: plan.update(bucket_bytes=-1), ('bucket_bytes',)),
    'units below nothing': (lambda plan: plan.update(unit_bytes=-1), ('unit_bytes',)),
    'no size of units': (lambda plan: plan.pop('unit_bytes'), ('unit_bytes',)),
    'a pin that is none': (settings(pins=['nonsense']), ('nonsense',)),
    'a pin that the plan contradicts': (settings(pins=[f'{MATMUL}=whole']), (MATMUL,)),
    '100,000 pins': (settings(pins=[f'{i}=whole' for i in range(100000)]), ('matches nothing',)),
    'a claim': (lambda plan: plan.update(claims={'cost_seconds': 0}), ('claims',)),
}


def edits(folder, made):
    path = folder / 'plan.json'
    good = json.loads((made / 'plan-4.json').read_text())

    def emit(label, codes=(BAD_INPUT,), says=(), *flags):
        return Case(label, ['emit', made / 'gpt.onnx', '--plan', path, '-o', folder / 'project', *flags], codes, says, output='project')

    write(path, json.dumps(good))
    yield emit('a good plan of four ranks', (0,))
    yield emit('less memory than it needs', (3,), ('--memory-limit',), '--memory-limit', '1KiB')
    for label, (edit, says) in EDITS.items():
        edited = copy.deepcopy(good)
        edit(edited)
        write(path, json.dumps(edited))
        yield emit(label, says=says)
    text = json.dumps(good)
    for key in ('"version"', '"mesh"', f'"{MATMUL}"', f'"{WEIGHT}"', '"split"', '"layouts"'):
        write(path, text.replace(key, f'{key}: 0, {key}', 1))
        yield emit(f'{key} twice', says=('twice',))


def pins(folder, made):
    for value in ('', '=', 'a', 'a=', '=a', '*=', '*=[', '*=' + '[' * 100000, '*=n0:' + 'x+' * 50000, '*=n0:' + '9' * 1000 + '*model', '*=[99999999999999999999]',
                  '*=[-1]', '*=[0]', '*=n0:model', '*=whole,whole', '*=compute:', '*=compute:[', '*=master:[1]', '*=gradient:[] on moon', '[=whole', '\\=whole', '{' * 10000 + '=whole',
                  '{a,b}' * 30 + '=whole', '*' * 100000 + 'x=whole', 'a\nb=whole', '\x01=whole', '\udcff\udcfe=whole', f'{MATMUL}=n0:', f'{MATMUL}=:model', f'{MATMUL}=n0:0*model',
                  f'{MATMUL}=n0:-1*model', f'{MATMUL}=[2, 4, 32]' + ';[2]' * 30000, f'{WEIGHT}=compute:[8, 32] sum(model)', f'{MATMUL}=n0:model=whole'):
        yield Case(f'pin {value[:30]!r}', ['plan', made / 'gpt.onnx', '--cluster', 'cpu:4', '--strategy', 'zero1*megatron=2', '--micro-batches', 2, '--pin', value, '-o', folder / 'plan.json'],
                   (BAD_INPUT,), ('pin',), output='plan.json')


def asked(folder, made):
    """`windlass explain OP` and `windlass diff`."""
    path, good = folder / 'plan.json', made / 'plan-4.json'
    for label, broken in broken_texts():
        write(path, broken)
        yield Case(f'diff, {label}', ['diff', good, path], says=('plan.json',))
        yield Case(f'explain, {label}', ['explain', MATMUL, '--plan', path], says=('plan.json',))
    # Plans that differ give exit code 1 without an error, so they are not among these cases.
    for i, changed in flips(good.read_bytes(), 50, 7):
        write(path, changed)
        yield Case(f'explain, bits turned, {i}', ['explain', '*', '--plan', path], (0, BAD_INPUT))
    for pattern in ('', '[', '\\', '{' * 10000, '{a,b}' * 30, '*' * 100000 + 'x', 'x' * 100000, 'a\nb', '\udcff', 'nobody'):
        for model in ([], [made / 'gpt.onnx']):
            yield Case(f'explain {pattern[:20]!r}', ['explain', pattern, *model, '--plan', good])
    yield Case('explain by a plan of another model', ['explain', MATMUL, made / 'classifier.onnx', '--plan', good], says=('plan',))
    yield Case('explain without a model file', ['explain', MATMUL, folder / 'none.onnx', '--plan', good])
    yield Case('explain without an operator', ['explain', '--plan', good], (USAGE,))
    yield Case('diff of one plan', ['diff', good], (USAGE,))
    yield Case('diff with a folder', ['diff', good, folder])
