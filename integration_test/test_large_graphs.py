"""Passes take time in proportion to the number of inputs and parameters, not to its square."""

import common

OPT = common.WINDLASS.with_name('windlass-opt')
COUNT = 100_000
SECONDS = 10
VALUE = 'tensor<2x4xf32>'


def graph(parameters, inputs):
    """Returns L1 text whose loss adds up all parameters and inputs."""
    lines = [f'train.parameter weight @w{i} "w{i}" : {VALUE} from <packed, "", {32 * i}, 32> {{decays, trainable}}' for i in range(parameters)]
    arguments = [f'%x{i}: {VALUE} {{train.feed = "none", train.input = "x{i}"}}' for i in range(inputs)]
    lines.append(f'func.func @loss({", ".join(arguments)}) -> tensor<f32> {{')
    lines += [f'%w{i} = train.read @w{i} : {VALUE} {{train.id = "read.{i}"}}' for i in range(parameters)]
    values = [f'%w{i}' for i in range(parameters)] + [f'%x{i}' for i in range(inputs)]
    last = values[0]
    for i, value in enumerate(values[1:]):
        lines.append(f'%s{i} = train.add {last}, {value} : {VALUE} {{train.id = "add.{i}"}}')
        last = f'%s{i}'
    lines += [f'%loss = train.reduce sum {last} dims [0, 1] : {VALUE} -> tensor<f32> {{train.id = "loss"}}', 'return %loss : tensor<f32>', '}']
    return '\n'.join(lines) + '\n'


class LargeGraphs(common.Case):
    def write(self, parameters, inputs):
        path = self.folder / 'graph.mlir'
        path.write_text(graph(parameters, inputs))
        return path

    def passes(self, path, *passes):
        """Returns the output of the passes for a file; bytecode, since text of millions of operators takes longer than they do."""
        out = self.folder / f'{path.stem}-out.mlirbc'
        outcome = common.run([OPT, path, '-emit-bytecode', '-o', out, *passes])
        self.assertEqual(outcome.code, 0, outcome.err[-2000:])
        print(f'{outcome.processor_seconds:.1f} s, {outcome.peak_bytes >> 20} MiB', flush=True)
        self.assertLess(outcome.processor_seconds, SECONDS)
        return out

    def test_many_parameters(self):
        differentiated = self.passes(self.write(COUNT, 1), '--train-differentiate=micro-batches=2')
        self.assertIn(b'train.gradient', differentiated.read_bytes())
        updated = self.passes(differentiated, '--train-add-optimizer=optimizer=sgd')
        self.assertIn(b'momentum_buffer', updated.read_bytes())

    def test_many_inputs(self):
        differentiated = self.passes(self.write(1, COUNT), '--train-differentiate=micro-batches=2', '--train-add-optimizer=optimizer=sgd')
        planned = self.passes(differentiated, '--plan-apply-strategy=strategy=ddp ranks=2')
        self.assertIn(b'plan.layout', planned.read_bytes())


common.main()
