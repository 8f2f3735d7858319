"""Plans edited by hand for meshes that no named strategy makes: two axes of the model on one matmul, and two axes of replicas of which one
shards the optimizer's state. Each runs at every level and as a program, with the numbers of the unplanned graph."""

import json
import re
import sys

import common
import equivalence
import test_program
from test_plan_edits import UP, WEIGHT, row

TO_L3 = ('--plan-verify-layouts=materialized=false',)


def with_axes(text, name, names):
    """Returns the plan with each mention of one axis replaced by `names`, in this order."""
    word = re.compile(rf'\b{name}\b')
    text = re.sub(r'\b(sum|max|flat)(\([^)]*\))', lambda match: match[1] + word.sub(','.join(names), match[2]), text)
    text = re.sub(rf'([:+]){name}\b', r'\1' + '+'.join(names), text)
    return text.replace(f'"{name}"', ', '.join(f'"{each}"' for each in names))


class AxesTest(test_program.ProgramCase):
    def plan(self, model, strategy, micro_batches):
        file = self.folder / 'plan.json'
        self.succeed('plan', model, '--cluster', 'cpu:4', '--strategy', strategy, '--micro-batches', micro_batches, '--clip', '-o', file)
        plan = json.loads(file.read_text())
        self.assertEqual(len(plan['mesh']['axes']), 1)
        return plan

    def split_axis(self, plan, names):
        """Returns the plan on a mesh that has two axes of 2 instead of one of 4."""
        axis, = plan['mesh']['axes']
        for part in ('functions', 'parameters'):
            plan[part] = json.loads(with_axes(json.dumps(plan[part]), axis['name'], names))
        plan['mesh']['axes'] = [{'name': name, 'role': axis['role'], 'size': 2} for name in names]

    def check(self, setup, plan):
        """Runs the plan at L3 to L5 and as a program; its text at L4."""
        file = self.folder / 'edited.json'
        file.write_text(json.dumps(plan))
        judge = equivalence.Equivalence(setup)
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        reference = judge.run(l2, 'L2', 'f64')
        # As windlass lowers it: ids of operators, by which a plan names them, come from locations, which files of IR lack.
        l0 = judge.work / 'located.mlir'
        l0.write_text(equivalence.execute(judge.opt, '--import-onnx', setup.input, '--locations'))
        l3 = judge.lower(l0, (*equivalence.TO_L1, '--canonicalize', '--cse', *equivalence.TO_L2, f'--plan-apply-file=file={file}', *TO_L3, *equivalence.TO_L3B), 'l3.mlir')
        l4 = judge.lower(l3, equivalence.TO_L4, 'l4.mlir')
        l5 = judge.lower(l4, equivalence.TO_FUSED + equivalence.TO_L5, 'l5.mlir')
        for module, level in ((l3, 'L3'), (l4, 'L4'), (l5, 'L5')):
            judge.compare(reference, judge.run(module, level, 'f64', '--ranks', 4), 'f64')
        dump = self.dump_of_program(setup, 4, '--plan', file)
        judge.compare(self.reference(judge), dump, 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
        print(f'worst deviation {judge.worst}', file=sys.stderr)
        return l4.read_text()

    def test_two_axes_of_the_model(self):
        """Two-dimensional tensor parallelism: one axis splits the columns of a matmul, another what it sums."""
        setup = self.setup_of(self.small_gpt(heads=4, tokens=8, width=16, vocabulary=32), micro_batches=2)
        plan = self.plan(setup.input, 'megatron', 2)
        self.split_axis(plan, ('columns', 'rows'))
        up = row(plan, UP)
        self.assertEqual(up, {'layouts': ['[4, 8, 64:columns+rows]'], 'split': {'n0': ['columns', 'rows']}})
        up['split'] = {'k0': ['rows'], 'n0': ['columns']}
        text = self.check(setup, plan)
        self.assertIn('<[<"columns", 2>, <"rows", 2>]>', text)
        # Each rank sums half of the 16 for half of the 64 columns; each member of `rows` keeps half of these sums.
        self.assertRegex(text, r'matmul .*: tensor<4x8x8xf32>, tensor<8x32xf32> -> tensor<4x8x32xf32>')
        self.assertRegex(text, r'reduce_scatter .* over \["rows"\] : tensor<32x2x16xf32> -> tensor<32x1x16xf32>')

    def test_two_axes_of_replicas(self):
        """Hybrid sharding: the state is sharded over the replicas of a host, and whole on each host."""
        setup = self.setup_of(self.small_gpt(tokens=8, width=16, vocabulary=32), micro_batches=4)
        plan = self.plan(setup.input, 'zero1', 4)
        self.split_axis(plan, ('hosts', 'inside'))
        self.assertEqual((plan['mesh']['replicas'], plan['mesh']['accumulation_steps']), (4, 1))
        only_inside = lambda text: text.replace('hosts+inside', 'inside').replace('hosts,inside', 'inside').replace('"hosts", "inside"', '"inside"')
        plan['functions']['update'] = json.loads(only_inside(json.dumps(plan['functions']['update'])))
        for parameter in plan['parameters'].values():
            parameter['master'] = only_inside(parameter['master'])
        self.assertEqual(plan['parameters'][WEIGHT], {'compute': '[16, 64]', 'gradient': '[16, 64] sum(hosts,inside)', 'master': '[16:inside, 64]'})
        text = self.check(setup, plan)
        self.assertIn('<[<"hosts", 2, replica>, <"inside", 2, replica>]>', text)
        self.assertRegex(text, r'reduce_scatter.*"inside"')
        self.assertRegex(text, r'all_reduce.*"hosts"')
        self.assertRegex(text, r'all_gather.*"inside"')
        self.assertNotRegex(text, r'all_gather.*"hosts"')
        # Programs know the axes too: rank 2 of 4 takes the micro-batches of replica 2.
        project = self.folder / 'project'
        self.succeed('emit', setup.input, '--plan', self.folder / 'edited.json', '-o', project)
        self.assertEqual((project / 'src' / 'tables.cpp').read_text().count('axis_role::replica'), 2)

    def test_what_is_not_kept_on_the_device(self):
        """A memory kind is read, and refused where nothing runs it."""
        model = self.small_gpt(tokens=8, width=16, vocabulary=32)
        plan = self.plan(model, 'ddp', 4)
        for copy, text in (('compute', '[16, 64] on disk'), ('gradient', '[16, 64] sum(data) on disk')):
            with self.subTest(copy):
                edited = json.loads(json.dumps(plan))
                edited['parameters'][WEIGHT][copy] = text
                file = self.folder / 'edited.json'
                file.write_text(json.dumps(edited))
                refused = common.windlass('emit', model, '--plan', file, '-o', self.folder / 'project')
                self.assertEqual(refused.code, 1, refused.err)
                self.assertRegex(refused.err, rf'{WEIGHT}.* is kept on {text.split()[-1]}, but only what parameters keep from step to step may be elsewhere')


if __name__ == '__main__':
    common.main()
