"""Programs on the emulated device give the same bits in whatever order streams, blocks and threads run that nothing orders.

    test_orders.py              two orders of a few programs
    test_orders.py all          more programs; 1000 orders of the two smallest, 20 of most others
"""

import json
import pathlib
import re
import sys

import common
import test_cuda
from windlass_models import files, safetensors_file

ALL = sys.argv[1:] == ['all']
del sys.argv[1:]

# The model, the number of orders when all are asked for, the flags of its plan and those of its program. Few of the last: attention in
# f32 is slow to emulate.
PROGRAMS = (
    ('mlp', 1000, ('--cluster', 'h200:2', '--strategy', 'ddp', '--micro-batches', '2'), ('--micro-batches', '2')),
    ('gpt2-tiny', 20, ('--cluster', 'h200:2', '--strategy', 'zero3', '--precision', 'bf16', '--offload', 'weights'), ()),
    ('mlp', 20, ('--cluster', 'h200:1', '--strategy', 'ddp', '--clip'), ('--graphs', 'on')),
    ('gpt2-tiny', 20, ('--cluster', 'h200:2', '--strategy', 'zero3', '--precision', 'bf16'), ()),
    ('gpt2-tiny', 20, ('--cluster', 'h200:2', '--strategy', 'megatron', '--precision', 'f16'), ()),
    ('gpt2-tiny', 20, ('--cluster', 'h200:2', '--strategy', 'dos=1', '--precision', 'bf16'), ()),
    ('block', 1000, ('--cluster', 'h200:1', '--strategy', 'ddp', '--precision', 'bf16'), ()),
    ('gpt2-tiny', 5, ('--cluster', 'h200:2', '--strategy', 'ddp', '--stages', '2', '--micro-batches', '4'), ('--micro-batches', '4')),
)
FEW = PROGRAMS[:2]


class OrdersTest(test_cuda.EmulatedCase):
    def model(self, name):
        folder = self.folder / name
        if name == 'block' and not folder.exists():  # one block of a transformer
            folder.mkdir()
            graph = common.one_layer('gpt', width=32, vocabulary=64, batch=2)
            files.save(graph, folder / 'model.onnx', False)
            safetensors_file.write(files.random_batches(graph, 2, 0), folder / 'batches.safetensors')
        return folder if folder.exists() else pathlib.Path(common.prepared(name, self.folder))

    def trained(self, program, model, name, *flags, seed=0):
        """Returns what two steps leave: losses, norms and the digests of the checkpoint."""
        run = self.folder / f'{name}-{seed}'
        self.succeed([program, '--data', model / 'batches.safetensors', '--steps', '2', *flags, '-o', run],
                     env={'WINDLASS_EMULATED_SEED': str(seed)} if seed else {})
        rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
        return [(row['loss'], row['grad_norm']) for row in rows], self.digests(run, 2)

    def test_any_order_gives_the_same_bits(self):
        for number, (name, orders, plan, flags) in enumerate(PROGRAMS if ALL else FEW):
            model = self.model(name)
            with self.subTest(name, plan=plan):
                program = self.program(self.emit(model, *plan))
                expected = self.trained(program, model, f'run{number}', *flags)
                for seed in range(1, (orders if ALL else 2) + 1):
                    self.assertEqual(self.trained(program, model, f'run{number}', *flags, seed=seed), expected, f'seed {seed}')
                print(f'{name} {" ".join(plan)}: {seed} orders')

    def test_a_program_without_its_waits_differs(self):
        folder = self.folder / 'hasty'
        folder.mkdir()
        model = pathlib.Path(common.prepared('mlp', folder))
        project = self.emit(model, '--cluster', 'h200:2', '--strategy', 'zero3')
        expected = self.trained(self.program(project), model, 'patient')
        step = project / 'src' / 'step.cpp'
        step.write_text(re.sub(r'WINDLASS_TRY\(wait_event\([^;]*;', '', step.read_text()))
        hasty = self.program(project)
        self.assertEqual(self.trained(hasty, model, 'hasty-run'), expected)  # where each command is done at once
        self.assertTrue(any(self.differs(expected, hasty, model, 'hasty-run', seed=seed) for seed in range(1, 11)))

    def test_a_program_with_two_values_in_one_place_differs(self):
        """The second of two values that the forward pass keeps for the backward pass is put where the first one is."""
        folder = self.folder / 'aliased'
        folder.mkdir()
        model = pathlib.Path(common.prepared('mlp', folder))
        project = self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp')
        expected = self.trained(self.program(project), model, 'apart')
        step, buffers = (project / 'src' / 'step.cpp').read_text(), project / 'src' / 'buffers.h'
        body = {name: step.split(f'\nstatus {name}(', 1)[1].split('\n}\n', 1)[0] for name in ('forward', 'backward')}
        values = re.findall(r'\n(constexpr buffer (v\d+)\(\{(\d+), (\d+)\}, ([^/\n]*))', buffers.read_text())
        written = re.findall(r'WINDLASS_TRY\(\w+(?:<[^;(]*>)?\(compute, at\((v\d+)\)', body['forward'])
        kept = [value for value in values if value[1] in written and f'at({value[1]})' in body['backward']]
        first, second = next((a, b) for a in kept for b in kept if a[4] == b[4] and a[1] != b[1])
        moved = second[0].replace(f'{{{second[2]}, {second[3]}}}', f'{{{first[2]}, {first[3]}}}')
        buffers.write_text(buffers.read_text().replace(second[0], moved))
        aliased = self.program(project)
        for seed in range(3):
            self.assertTrue(self.differs(expected, aliased, model, 'aliased-run', seed=seed), (first, second, seed))

    def differs(self, expected, *arguments, **options):
        try:
            return self.trained(*arguments, **options) != expected
        except self.failureException:  # it has stopped, by a loss that is not finite as a rule
            return True


if __name__ == '__main__':
    common.main()
