"""Plans edited by hand: illegal ones are refused with the rule, before anything is emitted; legal ones train to the same numbers.

    test_plan_edits.py           the illegal ones
    test_plan_edits.py legal     the legal ones, as programs on four ranks
"""

import copy
import json
import sys

import common
import equivalence
import test_program

STRATEGY = 'zero1*megatron=2'
UP, NORM, LOGITS = 'transformer.h.0.mlp.matmul.0', 'transformer.h.0.ln_1.layer_norm.0', 'lm_head.matmul.0'
ATTENTION, LOSS = 'transformer.h.0.attn.attention.0', 'node_cross_entropy_loss.softmax_cross_entropy.0'
WEIGHT = 'transformer.h.0.mlp.c_fc.weight'
STEP, SQUARES = f'update/{WEIGHT}/adamw', f'update/{WEIGHT}/square_sum'
BLOCK = 'transformer.h.0'


def function(plan, name='microbatch'):
    return plan['functions'][name]


def row(plan, op, name='microbatch'):
    """Returns the operator's row; an operator that was whole gets a row of its own."""
    rows = function(plan, name)
    if op in rows['whole']:
        rows['whole'].remove(op)
        rows['operators'][op] = {'layouts': [], 'split': {}}
    return rows['operators'][op]


def put(**entries):
    """Returns an edit of a parameter's entry."""
    return lambda plan: plan['parameters'][WEIGHT].update(entries)


def split(op, layouts, name='microbatch', **factors):
    def edit(plan):
        row(plan, op, name).update(split=factors, layouts=list(layouts))
    return edit


def edits(*all):
    return lambda plan: [edit(plan) for edit in all]


def remove(op):
    def edit(plan):
        rows = function(plan)
        rows['operators'].pop(op, None) or rows['whole'].remove(op)
    return edit


def setting(*path):
    *folders, key, value = path

    def edit(plan):
        for folder in folders:
            plan = plan[folder]
        plan[key] = value
    return edit


UP_LAYOUT = '[4, 8, 64:model]'
# Each edit with the words that the message must contain: the place, and the rule that is broken.
ILLEGAL = {
    'an operator that is not there': (lambda plan: function(plan)['whole'].append('transformer.h.7.matmul.0'), 'transformer.h.7.matmul.0.*does not have'),
    'a missing operator': (remove(UP), f'{UP}.*not in the plan'),
    'an operator twice': (lambda plan: function(plan)['whole'].append(UP), f'{UP}.*twice'),
    'an axis that does not exist': (split(UP, [UP_LAYOUT], n0=['modle']), f'{UP}.*"?modle.*mesh does not have'),
    'an axis twice in one factor': (split(UP, [UP_LAYOUT], n0=['model', 'model']), f'{UP}.*twice'),
    'an axis on two factors': (split(UP, [UP_LAYOUT], n0=['model'], k0=['model']), f'{UP}.*twice'),
    'a factor that does not exist': (split(UP, [UP_LAYOUT], n9=['model']), f'{UP}.*no factor.*n9'),
    'a factor that cannot be split': (split(ATTENTION, ['[4, 2, 8, 8]', '[4, 2, 8]'], depth=['model']), f'{ATTENTION}.*cannot be split'),
    'a statistic that stays partial': (split(NORM, ['[4, 8, 16:model]', '[4, 8] sum(model)', '[4, 8]'], row=['model']), 'partial'),
    'blocks that do not divide': (split(UP, [UP_LAYOUT], n0=['3*', 'model']), f'{UP}.*3 blocks'),
    'blocks without axes': (split(UP, [UP_LAYOUT], n0=['2*']), f'{UP}.*blocks'),
    'the replicas\' axis on a value': (split(UP, ['[4:data, 8, 64:model]'], m0=['data'], n0=['model']), 'h.0.mlp.*result 0 names axis "data"'),
    'a layout of another size': (split(UP, ['[4, 8, 32:model]'], n0=['model']), f'{UP}.*multipl|{UP}.*size'),
    'a layout of another rank': (split(UP, ['[32, 64:model]'], n0=['model']), f'{UP}.*needs a factor of 4'),
    'a layout that is no text': (split(UP, ['[4, 8, 64:model'], n0=['model']), UP),
    'a layout for a result that is not there': (split(UP, [UP_LAYOUT, UP_LAYOUT], n0=['model']), f'{UP}.*1 result.*2 layouts'),
    'a whole value that turns partial': (split(LOGITS, ['[4, 8, 32] sum(model)']), 'partial'),
    'a partial value of another kind': (split(LOGITS, ['[4, 8, 32] mean(model)']), 'mean'),
    'shards that do not divide': (put(master='[16, 64:data+model+data]'), 'c_fc.weight.*twice|c_fc.weight.*divide'),
    'a master that is partial': (put(master='[16, 64] sum(data)'), 'partial'),
    'a compute copy that is partial': (put(compute='[16, 64] sum(model)'), 'partial'),
    'a gradient that is partial where it is not made so': (put(gradient='[16, 64:model] max(data)'), 'partial'),
    'a gradient without a layout': (put(gradient=None), 'c_fc.weight.*gradient'),
    'a parameter that is not there': (setting('parameters', 'nobody.weight', {'compute': '[1]', 'gradient': None, 'master': '[1]'}), 'nobody.weight'),
    'a missing parameter': (lambda plan: plan['parameters'].pop(WEIGHT), 'c_fc.weight.*not in the plan'),
    'a missing function': (lambda plan: plan['functions'].pop('update'), 'update'),
    'too few arguments': (lambda plan: function(plan)['arguments'].pop(), 'arguments'),
    'a mesh of other ranks': (lambda plan: plan['mesh']['axes'][0].update(size=3), 'mesh'),
    'an axis of the mesh twice': (lambda plan: plan['mesh']['axes'][0].update(name='model'), 'model.*twice'),
    'replicas that micro-batches do not fit': (lambda plan: plan['mesh'].update(replicas=4), 'replicas'),
    'a device twice': (setting('mesh', 'device_order', [0, 1, 2, 2]), 'device_order'),
    'another version': (setting('version', 9), 'version'),
    'a key that does not exist': (setting('buckets', 1), 'buckets.*bucket_bytes'),
    'no bytes per bucket': (setting('bucket_bytes', 0), 'bucket_bytes'),
    'another model': (setting('model', 'hash', '0' * 64), 'another model'),
    'another number of micro-batches': (setting('settings', 'micro_batches', 4), 'micro'),
    'a label that a segment cannot have': (setting('segments', BLOCK, 'attentoin'), f"{BLOCK}.*attentoin.*can be kept, attention, mlp, halves, block"),
    'a segment that is not there': (setting('segments', 'transformer.h.1', 'kept'), f"transformer.h.1.*does not have; the nearest is '{BLOCK}'"),
    'a missing segment': (lambda plan: plan['segments'].pop(BLOCK), f'{BLOCK}.*not among'),
    'a memory limit of nothing': (setting('memory_limit_bytes', 0), 'memory_limit_bytes'),
    'a flat compute copy': (put(compute='[16, 64] flat(data)'), 'plan.layout is flat, as only gradients and master copies'),
    'a flat value': (split(UP, ['[4, 8, 64] flat(model)']), 'h.0.mlp.*result 0 is flat, as only gradients and master copies'),
    'a flat split of a matmul': (split(UP, [UP_LAYOUT], flat=['model']), f"{UP}.*no factor 'flat'"),
    'a flat axis that is used': (put(master='[16, 64:model] flat(model)'), "c_fc.weight.*axis 'model' twice"),
    'a flat axis that does not exist': (put(master='[16, 64] flat(modle)'), "c_fc.weight.*axis 'modle'.*mesh does not have; the nearest is 'model'"),
    'a flat split in blocks': (split(STEP, ['[16, 64]'] * 3, 'update', flat=['2*', 'data']), f'{STEP}.*2 blocks'),
    'inputs that lie in two ways': (lambda plan: function(plan, 'evaluate')['arguments'].__setitem__(0, '[4:model, 8]'), 'input'),
}
LEGAL = {
    'small buckets': setting('bucket_bytes', 256),
    'a weight whose state is whole': put(master='[16, 64:model]'),
    'a gradient that is scattered each time': put(gradient='[16:data, 64:model]'),
    'a weight of which each rank holds a quarter': put(gradient='[16:data, 64:model]', compute='[16:data, 64:model]'),
    'a weight that lies across its use': put(compute='[16:model, 64]'),
    'heads in another order of factors': put(master='[16, 2*32:model+data]'),
    'a master in ranges of what the model axis leaves': put(master='[16, 64:model] flat(data)'),
    'a master and a gradient in ranges over both axes': put(master='[16, 64] flat(data,model)', gradient='[16, 64] flat(data,model)'),
    'ranges that are updated as they lie': edits(put(master='[16, 64] flat(model,data)'), split(SQUARES, ['[] sum(data,model)'], 'update', flat=['model', 'data']),
                                                 split(STEP, ['[16, 64] flat(model,data)'] * 3, 'update', flat=['model', 'data'])),
    'an update in ranges of a master that is none': split(STEP, ['[16, 64:model]'] * 3, 'update', flat=['data', 'model']),
    'logits split by sample': split(LOGITS, ['[4:model, 8, 32]'], m0=['model']),
    'a norm split by token': split(NORM, ['[4, 8:model, 16]', '[4, 8:model]', '[4, 8:model]'], d1=['model']),
    'a norm split by feature': edits(split(NORM, ['[4, 8, 16:model]', '[4, 8]', '[4, 8]'], row=['model']),
                                     split(NORM + '.grad.input', ['[4, 8, 16:model]', '[16:model]', '[16:model]'], row=['model'])),
    'a loss split by class': edits(split(LOSS, ['[]', '[]', '[4, 8]'], classes=['model']),
                                   split(LOSS + '.grad.logits', ['[4, 8, 32:model]'], classes=['model'])),
    'attention split by key': edits(split(ATTENTION, ['[4, 2, 8, 8]', '[4, 2, 8]'], keys=['model']),
                                    split(ATTENTION + '.grad.query', ['[4, 2, 8, 8]', '[4, 2, 8:model, 8]', '[4, 2, 8:model, 8]'], keys=['model'])),
    'a value that is found split': split(NORM, ['[4, 8, 16:model]', '[4, 8]', '[4, 8]']),
    'an MLP that is recomputed': setting('segments', BLOCK, 'mlp'),
    'both halves recomputed': setting('segments', BLOCK, 'halves'),
    'a block that is recomputed as one': setting('segments', BLOCK, 'block'),
    'inputs split by sample': lambda plan: [function(plan, name)['arguments'].__setitem__(0, '[4:model, 8]') for name in ('microbatch', 'evaluate')],
}


class EditsCase(test_program.ProgramCase):
    def make_plan(self):
        self.model = self.small_gpt(tokens=8, width=16, vocabulary=32)
        file = self.folder / 'plan.json'
        self.succeed('plan', self.model, '--cluster', 'cpu:4', '--strategy', STRATEGY, '--micro-batches', 2, '--clip', '-o', file)
        return json.loads(file.read_text())

    def edited(self, plan, edit):
        plan = copy.deepcopy(plan)
        edit(plan)
        file = self.folder / 'edited.json'
        file.write_text(json.dumps(plan))
        return file


class IllegalEditsTest(EditsCase):
    def test_each_is_refused_with_its_rule(self):
        plan = self.make_plan()
        target = self.folder / 'project'
        for name, (edit, rule) in ILLEGAL.items():
            with self.subTest(name):
                outcome = common.windlass('emit', self.model, '--plan', self.edited(plan, edit), '-o', target)
                self.assertEqual(outcome.code, 1, outcome.err)
                self.assertRegex(outcome.err, rule)
                self.assertFalse(target.exists())

    def test_the_unedited_plan_is_taken_and_gives_the_same_bytes_twice(self):
        plan = self.make_plan()
        texts = []
        for name in ('one', 'two'):
            self.succeed('emit', self.model, '--plan', self.edited(plan, lambda _: None), '-o', self.folder / name)
            texts.append({file.relative_to(self.folder / name): file.read_bytes() for file in sorted((self.folder / name).rglob('*')) if file.is_file()})
        self.assertEqual(*texts)


class LegalEditsTest(EditsCase):
    def test_each_trains_to_the_same_numbers(self):
        plan = self.make_plan()
        setup = self.setup_of(self.model, micro_batches=2, ranks=(4,))
        run = equivalence.Equivalence(setup)
        reference = self.reference(run)
        for name, edit in LEGAL.items():
            with self.subTest(name):
                try:
                    dump = self.dump_of_program(setup, 4, '--plan', self.edited(plan, edit))
                    run.compare(reference, dump, 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
                except equivalence.Failure as failure:
                    self.fail(str(failure))
        print(f'{len(LEGAL)} edits, worst deviation {run.worst["f32"]:.1e}', file=sys.stderr)


if __name__ == '__main__':
    if sys.argv[1:] == ['legal']:
        del IllegalEditsTest
        sys.argv.pop()
    else:
        del LegalEditsTest
    common.main()
