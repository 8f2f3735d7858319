"""Passes take time in proportion to the number of inputs and parameters, not to its square."""

import common

OPT = common.WINDLASS.with_name('windlass-opt')
COUNT = 100_000
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
    def passes(self, path, *passes):
        """Returns the output of the passes for a file and their processor time; bytecode, since text of millions of operators takes longer than they do."""
        out = self.folder / f'{path.stem}-out.mlirbc'
        outcome = common.run([OPT, path, '-emit-bytecode', '-o', out, *passes])
        self.assertEqual(outcome.code, 0, outcome.err[-2000:])
        print(f'{outcome.processor_seconds:.1f} s, {outcome.peak_bytes >> 20} MiB', flush=True)
        return out, outcome.processor_seconds

    def check_growth(self, shape, *stages):
        """Runs the stages, each of passes and a text that their output holds, for COUNT and for a quarter of it; `shape` gives the numbers of parameters
        and inputs. Time that grows with the count is four times as long, with its square sixteen times."""
        seconds = []
        for count in (COUNT // 4, COUNT):
            path = self.folder / f'{count}.mlir'
            path.write_text(graph(*shape(count)))
            seconds.append([])
            for passes, held in stages:
                path, took = self.passes(path, *passes)
                seconds[-1].append(took)
                self.assertIn(held, path.read_bytes())
        for few, many in zip(*seconds):
            self.assertLess(many, 8 * few)

    def test_many_parameters(self):
        self.check_growth(lambda count: (count, 1), (['--train-differentiate=micro-batches=2'], b'train.gradient'),
                          (['--train-add-optimizer=optimizer=sgd'], b'momentum_buffer'))

    def test_many_inputs(self):
        self.check_growth(lambda count: (1, count), (['--train-differentiate=micro-batches=2', '--train-add-optimizer=optimizer=sgd'], b'train.gradient'),
                          (['--plan-apply-strategy=strategy=ddp ranks=2'], b'plan.layout'))


common.main()
