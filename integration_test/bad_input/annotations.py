"""Models whose ONNX sharding annotations contradict themselves, the model or the mesh."""

from .case import BAD_INPUT, Case, write
from .models import small_gpt

WEIGHT = 'transformer.h.0.mlp.c_fc.weight'


def annotated(edit):
    """The small GPT with one weight split over pairs of devices; `edit` gets the configuration, the node's entry and the weight's."""
    model = small_gpt()
    model.ir_version = 11
    configuration = model.configuration.add()
    configuration.name, configuration.num_devices = 'c', 4
    node = next(node for node in model.graph.node if WEIGHT in node.input)
    entry = node.device_configurations.add()
    entry.configuration_id = 'c'
    spec = entry.sharding_spec.add()
    spec.tensor_name = WEIGHT
    spec.device.extend([-1, -2])
    for key, devices in ((-1, (0, 2)), (-2, (1, 3))):
        group = spec.index_to_device_group_map.add()
        group.key = key
        group.value.extend(devices)
    dim = spec.sharded_dim.add()
    dim.axis = 1
    simple = dim.simple_sharding.add()
    simple.dim_value, simple.num_shards = 32, 2
    edit(model, entry, spec)
    return model.SerializeToString()


def no_configuration(model, entry, spec):
    del model.configuration[:]


def two_configurations(model, entry, spec):
    model.configuration.add().CopyFrom(model.configuration[0])


def devices(count, names=0):
    def edit(model, entry, spec):
        model.configuration[0].num_devices = count
        model.configuration[0].device.extend(['d'] * names)
    return edit


def simple(**changes):
    def edit(model, entry, spec):
        for key, value in changes.items():
            setattr(spec.sharded_dim[0].simple_sharding[0], key, value)
    return edit


def axis(number):
    def edit(model, entry, spec):
        spec.sharded_dim[0].axis = number
    return edit


def again(model, entry, spec):
    entry.sharding_spec.add().CopyFrom(spec)


def axis_again(number):
    def edit(model, entry, spec):
        spec.sharded_dim.add().CopyFrom(spec.sharded_dim[0])
        spec.sharded_dim[1].axis = number
    return edit


def tensor(name):
    def edit(model, entry, spec):
        spec.tensor_name = name
    return edit


def holders(*places):
    def edit(model, entry, spec):
        del spec.device[:]
        spec.device.extend(places)
    return edit


def group(key, *members):
    def edit(model, entry, spec):
        found = spec.index_to_device_group_map[0]
        found.key = key
        del found.value[:]
        found.value.extend(members)
    return edit


def no_sharding(model, entry, spec):
    del spec.sharded_dim[0].simple_sharding[:]


def no_axis(model, entry, spec):
    spec.sharded_dim[0].ClearField('axis')


def many_dims(model, entry, spec):
    for number in range(2, 100000):
        spec.sharded_dim.add().CopyFrom(spec.sharded_dim[0])
        spec.sharded_dim[-1].axis = number


def many_factors(model, entry, spec):
    for _ in range(100000):
        factor = spec.sharded_dim[0].simple_sharding.add()
        factor.dim_value, factor.num_shards = 1, 1


def many_groups(model, entry, spec):
    for key in range(100000):
        spec.index_to_device_group_map.add().key = 10 + key


def symbol(model, entry, spec):
    spec.sharded_dim[0].simple_sharding[0].dim_param = 'n'
    factor = spec.sharded_dim[0].simple_sharding.add()
    factor.dim_value, factor.num_shards = 2, 1


WRONG = {
    'no configuration': (no_configuration, ('none',)),
    'a configuration twice': (two_configurations, ('twice',)),
    'no devices': (devices(0), ('0 devices',)),
    'fewer than no devices': (devices(-1), ('-1 devices',)),
    'more devices than ranks': (devices(8), ('devices',)),
    '2^31 - 1 devices': (devices(2**31 - 1), ('devices',)),
    'names of other devices': (devices(4, 3), ('3 names',)),
    'no shards': (simple(num_shards=0), ('shards',)),
    'fewer than no shards': (simple(num_shards=-2), ('shards',)),
    '2^62 shards': (simple(num_shards=2**62), ('shards',)),
    'shards that do not divide': (simple(dim_value=31), ('divide',)),
    'a factor of 0': (simple(dim_value=0), ('factor',)),
    'a factor of 2^62': (simple(dim_value=2**62), ('divide',)),
    'a factor that is too small': (simple(dim_value=16), ('multiply',)),
    'an axis beyond the rank': (axis(2), ('rank 2',)),
    'an axis far beyond the rank': (axis(-2**62), ('rank 2',)),
    'no axis': (no_axis, ('axis',)),
    'an axis twice': (axis_again(1), ('twice',)),
    'an axis twice, once from the back': (axis_again(-1), ()),
    'no sharding of an axis': (no_sharding, ('does not say',)),
    'a tensor twice': (again, ('twice',)),
    'a tensor of no node': (tensor('nobody'), ('no input or output',)),
    'a tensor without a name': (tensor(''), ('no input or output',)),
    'too few holders': (holders(-1), ('2 shards',)),
    'too many holders': (holders(-1, -2, 0), ('2 shards',)),
    'a holder that is not there': (holders(-1, 7), ('device 7',)),
    'holders of one group': (holders(-1, -1), ('two shards',)),
    'devices that hold nothing': (holders(0, 1), ('2 of',)),
    'a group twice': (group(-2, 0, 2), ('twice',)),
    'a group of strangers': (group(-1, 0, 9), ('device 9',)),
    'an empty group': (group(-1), ('devices',)),
    'shards where no axis has them': (group(-1, 0, 3), ('device',)),
    'a million holders': (holders(*range(1000000)), ('2 shards',)),
    '100,000 axes': (many_dims, ()),
    '100,000 factors': (many_factors, ('64',)),
    '100,000 groups': (many_groups, None),
    'a symbol beside a number': (symbol, ('divide',)),
}


def annotations(folder, made):
    path = folder / 'model.onnx'

    def plan(label, codes, says, configuration='c'):
        return Case(label, ['plan', path, '--cluster', 'cpu:4', '--strategy', 'zero1*megatron=2', '--micro-batches', 2, '--onnx-pins', configuration, '-o', folder / 'plan.json'],
                    codes, says, output='plan.json')

    write(path, annotated(lambda *_: None))
    yield plan('good annotations', (0,), ())
    for name in ('', 'd', 'c' * 100000, 'a\nb'):
        yield plan(f'configuration {name[:10]!r}', (BAD_INPUT,) if name else (0,), ('configuration',), name)
    for label, (edit, says) in WRONG.items():
        write(path, annotated(edit))
        yield plan(label, (0,) if says is None else (BAD_INPUT,), says or ())
