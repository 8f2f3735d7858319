"""The command: `python -m windlass_models gpt|llama|moe|bert|t5|whisper|vit|resnet|convnext|unet|irregular|mlp|batches`."""

import argparse
import dataclasses
import sys

import onnx

from . import attention, bert, convnext, encoder_decoder, files, gpt, irregular, layers, llama, mlp, moe, resnet, safetensors_file, unet, vit


def _parser():
    parser = argparse.ArgumentParser(prog='windlass_models', description='Generates ONNX training graphs; the same arguments give the same bytes.')
    commands = parser.add_subparsers(dest='command', required=True)

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument('-o', '--output', required=True, metavar='FILE')
    common.add_argument('--seed', type=int, default=0)
    common.add_argument('--jitter', type=float, default=0.0, help='moves biases and norm weights off 0 and 1 by N(0, JITTER)')
    values = common.add_mutually_exclusive_group()
    values.add_argument('--external', action='store_true', help='the values in FILE.data beside the graph')
    values.add_argument('--no-values', action='store_true', help='parameters refer to a file that is not written: any size, quickly')

    def with_sizes(parser, **sizes):
        for name, default in sizes.items():
            parser.add_argument(f'--{name}', type=int, default=default)

    layered = argparse.ArgumentParser(add_help=False, parents=[common])
    with_sizes(layered, layers=2, width=128, batch=8)
    layered.add_argument('--scale', type=float, default=0.02, help='standard deviation of matrices')
    sized = argparse.ArgumentParser(add_help=False, parents=[layered])
    with_sizes(sized, vocabulary=256, tokens=64)
    attending = argparse.ArgumentParser(add_help=False)
    with_sizes(attending, heads=4)
    attending.add_argument('--attention', choices=attention.FORMS, default='sdpa',
                           help="sdpa: torch's function as primitives; eager: transformers' own chain; operator: ONNX's operators of opset 23")
    language = argparse.ArgumentParser(add_help=False, parents=[sized, attending])
    masks = argparse.ArgumentParser(add_help=False)
    masks.add_argument('--mask', choices=attention.MASKS, default='range', help='range: from positions, one for all layers; trilu: one in each')

    command = commands.add_parser('gpt', parents=[language, masks], help='a GPT-like language model', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command.add_argument('--untied', action='store_true', help='an own weight for the output layer')
    command.add_argument('--unshifted', action='store_true', help='labels are the next tokens; without, they are the ids and the graph shifts them')
    command.add_argument('--fused-qkv', action='store_true', help='one layer for queries, keys and values, then a split')
    command.add_argument('--activation', choices=layers.ACTIVATIONS, default='chain', help='chain: GELU as Pow, Mul, Tanh …; tanh, erf: the Gelu operator')
    command.add_argument('--linear', choices=layers.LINEARS, default='conv1d', help='conv1d: flatten and Gemm; matmul: Transpose and MatMul')
    command.add_argument('--no-bias', dest='bias', action='store_false', help='layers without biases, with --linear matmul')
    command.add_argument('--dropout', type=float, default=0.0, help='ratio behind the embedding, attention and MLP')

    decoder = argparse.ArgumentParser(add_help=False, parents=[language, masks])
    decoder.add_argument('--key-heads', type=int, default=2)
    decoder.add_argument('--hidden', type=int, default=256, help='width between the layers of the MLP')
    decoder.add_argument('--qkv-bias', action='store_true', help='biases for queries, keys and values, as in Qwen')
    decoder.add_argument('--tied', action='store_true', help='one weight for the embedding and the output layer')
    commands.add_parser('llama', parents=[decoder], help='a LLaMA-like language model', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command = commands.add_parser('moe', parents=[decoder], help='the same with experts', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command.add_argument('--experts', type=int, default=4)
    command.add_argument('--chosen', type=int, default=2, help='experts of each token')
    command.add_argument('--router', choices=moe.ROUTERS, default='topk', help='topk: TopK and a one-hot matrix; threshold: maxima and masks; gather: only the chosen are computed')

    command = commands.add_parser('bert', parents=[language], help='a BERT-like masked language model', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command.add_argument('--activation', choices=layers.ACTIVATIONS, default='erf')

    command = commands.add_parser('vit', parents=[layered, attending], help='a ViT-like image classifier', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    with_sizes(command, classes=10, channels=3, side=32, patch=8)
    command.add_argument('--activation', choices=layers.ACTIVATIONS, default='erf')

    for kind, text in (('t5', 'a T5-like encoder-decoder for texts'), ('whisper', 'a Whisper-like encoder-decoder from spectra to text')):
        command = commands.add_parser(kind, parents=[common], help=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        with_sizes(command, layers=2, width=64, heads=4, hidden=256, vocabulary=256, source=32, tokens=32, channels=80, batch=4)
        command.add_argument('--head-width', type=int, default=16)
        command.add_argument('--scale', type=float, default=0.02, help='standard deviation of matrices')

    def depths(text):
        return tuple(int(each) for each in text.split(','))

    command = commands.add_parser('convnext', parents=[common], help='a ConvNeXt-like image classifier', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    with_sizes(command, width=16, batch=8, classes=10, channels=3, side=32)
    command.add_argument('--depths', type=depths, default=(1, 1), metavar='N,...', help='blocks of each stage')
    command.add_argument('--scale', type=float, default=0.05, help='standard deviation of kernels and matrices')

    command = commands.add_parser('resnet', parents=[common], help='a ResNet-like image classifier', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    with_sizes(command, layers=2, width=16, batch=8, classes=10, channels=3, side=32)
    command.add_argument('--groups', type=int, default=1, help='groups of the second convolution of a block')
    command.add_argument('--depthwise', action='store_true', help='a group for each of its channels')
    command.add_argument('--depths', type=depths, default=(), metavar='N,...', help='blocks of three convolutions in each stage, as in ResNet-50 and deeper ones')
    command.add_argument('--scale', type=float, default=0.1, help='standard deviation of kernels and matrices')

    command = commands.add_parser('unet', parents=[common], help='a U-Net-like segmentation of images or volumes', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    with_sizes(command, layers=2, width=16, batch=1, classes=4, channels=1, side=32, dims=3)
    command.add_argument('--scale', type=float, default=0.1, help='standard deviation of kernels')

    command = commands.add_parser('irregular', parents=[sized], help='a language model that repeats nothing', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command.add_argument('--structure', type=int, default=0, help='seed of widths, skips, norms, activations')

    command = commands.add_parser('mlp', parents=[common], help='a classifier', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    command.add_argument('--sizes', default='64,256,256,10', help='widths of input, hidden layers and classes')
    command.add_argument('--activations', default='relu,gelu', help='one for each hidden layer: relu or gelu')
    command.add_argument('--batch', type=int, default=32)
    command.add_argument('--scale', type=float, default=0.05, help='standard deviation of matrices')

    command = commands.add_parser('batches', help='random micro-batches for a graph made by this program')
    command.add_argument('model')
    command.add_argument('--count', type=int, default=20)
    command.add_argument('--seed', type=int, default=0)
    command.add_argument('-o', '--output', required=True, metavar='FILE')
    return parser


def _build(args):
    common = dict(seed=args.seed, scale=args.scale, jitter=args.jitter, with_values=not args.no_values)
    families = {'gpt': (gpt.build, gpt.GptConfig), 'llama': (llama.build, llama.LlamaConfig), 'moe': (moe.build, moe.MoeConfig),
                'bert': (bert.build, bert.BertConfig), 'vit': (vit.build, vit.VitConfig), 'resnet': (resnet.build, resnet.ResnetConfig),
                't5': (encoder_decoder.build, encoder_decoder.EncoderDecoderConfig), 'whisper': (encoder_decoder.build, encoder_decoder.EncoderDecoderConfig),
                'convnext': (convnext.build, convnext.ConvnextConfig), 'unet': (unet.build, unet.UnetConfig),
                'irregular': (irregular.build, irregular.IrregularConfig)}
    if args.command in families:
        build, kind = families[args.command]
        given = dict({'tied': not getattr(args, 'untied', False), 'kind': args.command}, **vars(args), shifted=not getattr(args, 'unshifted', False))
        return build(kind(**{field.name: given[field.name] for field in dataclasses.fields(kind)}), **common)
    names = tuple(name for name in args.activations.split(',') if name)
    if not set(names) <= set(mlp.ACTIVATIONS):
        raise ValueError(f'activations {args.activations}: only {" and ".join(mlp.ACTIVATIONS)} are known')
    return mlp.build(mlp.MlpConfig(tuple(int(size) for size in args.sizes.split(',')), names, args.batch), **common)


def main(arguments=None):
    args = _parser().parse_args(arguments)
    try:
        if args.command == 'batches':
            model = onnx.load(args.model, load_external_data=False)
            safetensors_file.write(files.random_batches(model, args.count, args.seed), args.output)
        else:
            files.save(_build(args), args.output, args.external)
    except (ValueError, OSError) as error:
        print(f'windlass_models: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
