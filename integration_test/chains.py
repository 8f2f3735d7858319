"""Writes models of level L4 in several positions: a chain of layers, each a chunk of its own, that positions run in turn.

The same chain as one graph is the reference. A pipeline is written out by hand here, so that no planner stands between a
test and what it tests.
"""

WIDTH, CLASSES, BATCH = 6, 3, 8
SQUARE, LAST, VALUE, LABELS = f'tensor<{WIDTH}x{WIDTH}xf32>', f'tensor<{WIDTH}x{CLASSES}xf32>', f'tensor<{BATCH}x{WIDTH}xf32>', f'tensor<{BATCH}xi64>'
LOGITS, SUMS = f'tensor<{BATCH}x{CLASSES}xf32>', f'tensor<{BATCH}xf32>'
HYPERPARAMETERS = ('learning_rate', 'momentum', 'weight_decay')


def whole(chunks):
    """Returns the training graph of the chain."""
    lines = ['module attributes {train.model = "chain"} {']
    for k in range(chunks):
        lines.append(f'train.parameter weight @w{k} "fc{k}.weight" : {weight(k, chunks)} from #train.source<packed> {{trainable}}')
    lines.append(f'func.func @loss(%v0: {VALUE} {{train.input = "x"}}, %y: {LABELS} {{train.input = "y", train.vocabulary = {CLASSES} : i64}}) -> tensor<f32> {{')
    for k in range(chunks):
        lines += [f'%w{k} = train.read @w{k} : {weight(k, chunks)}', product(f'%h{k}', f'%v{k}', f'%w{k}', VALUE, weight(k, chunks), VALUE if k < chunks - 1 else LOGITS)]
        if k < chunks - 1:
            lines.append(f'%v{k + 1} = train.tanh %h{k} : {VALUE}')
    lines += loss(f'%h{chunks - 1}') + ['return %loss : tensor<f32>', '}', '}']
    return '\n'.join(lines) + '\n'


def split(position_of, tables, micro_batches):
    """Returns the chain with chunk c on position position_of[c], whose schedule is tables[position]: actions as text."""
    chunks = len(position_of)
    lines = [f'module attributes {{train.model = "chain", train.settings = {{clip = false, micro_batches = {micro_batches} : i64, optimizer = "sgd"}}, '
             f'sched.placement = #sched.placement<{list(position_of)}>}} {{']
    for k in range(chunks):
        lines.append(f'train.parameter weight @w{k} "fc{k}.weight" : {weight(k, chunks)} from <packed> {{decays, trainable}}')
        lines.append(f'train.parameter state @m{k} "fc{k}.weight/momentum_buffer" : {weight(k, chunks)} from <none> {{of = @w{k}}}')
    for position, table in enumerate(tables):
        own = [c for c in range(chunks) if position_of[c] == position]
        lines.append(f'sched.program @at_{position} position {position} on <[]> {{')
        for name in HYPERPARAMETERS:
            lines.append(resource('scalar', name, 'tensor<f32>', f'scalar = #train<hyperparameter {name}>'))
        lines.append(resource('grad_norm', 'norm', 'tensor<f32>'))
        for c in own:
            lines += chunk(c, chunks, position_of, own, micro_batches)
        lines.append('sched.schedule [' + ', '.join(f'#sched.action<{action}>' for action in table) + ']')
        lines.append('}')
    return '\n'.join([*lines, '}']) + '\n'


def one_forward_one_backward(micro_batches):
    """Returns the schedules of two chunks on two positions, the first of which has two micro-batches in flight."""
    turns = micro_batches - 1
    return [['forward', 'send peer 1', f'repeat x {turns} of 4', 'forward', 'receive peer 1', 'send peer 1', 'backward', 'receive peer 1', 'backward', 'reduce', 'update'],
            [f'repeat x {micro_batches} of 4', 'receive chunk 1 peer 0', 'forward chunk 1', 'backward chunk 1', 'send chunk 1 peer 0', 'reduce chunk 1', 'update chunk 1']]


def chunk_by_chunk(position_of, micro_batches):
    """Returns schedules that run all micro-batches through one chunk after another, forth and back."""
    chunks = len(position_of)
    tables = [[] for _ in range(max(position_of) + 1)]

    def run(c, kind, source, target):
        table, of = tables[position_of[c]], f' chunk {c}'
        first = [f'receive{of} peer {source}'] if 0 <= source < chunks else []
        table += [f'repeat x {micro_batches} of {len(first) + 1}', *first, f'{kind}{of}']
        if 0 <= target < chunks:
            table += [f'repeat x {micro_batches} of 1', f'send{of} peer {target}']

    for c in range(chunks):
        run(c, 'forward', c - 1, c + 1)
    for c in reversed(range(chunks)):
        run(c, 'backward', c + 1, c - 1)
    for role in ('reduce', 'update'):
        for c in reversed(range(chunks)):
            tables[position_of[c]].append(f'{role} chunk {c}')
    return tables


def weight(k, chunks):
    return SQUARE if k < chunks - 1 else LAST


def product(out, a, b, left, right, result, contract='[1] x [0]'):
    return f'{out} = train.matmul {a}, {b} batch [] x [] contract {contract} : {left}, {right} -> {result}'


def loss(logits):
    return [f'%sum, %count, %log_sum = train.softmax_cross_entropy {logits}, %y ignore -100 : ({LOGITS}, {LABELS}) -> (tensor<f32>, tensor<f32>, {SUMS})',
            '%loss = train.loss %sum, %count : tensor<f32>']


def resource(kind, name, type, attributes=''):
    sizes = type[len('tensor<'):-1].split('x')[:-1]
    layout = ', '.join(f'<[<{size}>]>' for size in sizes)
    return f'sched.resource {kind} @{name} : {type} of {type} <[{layout}]>' + (f' {{{attributes}}}' if attributes else '')


def function(role, c, arguments, body, results=()):
    given = ', '.join(f'{name}: {type}' for name, type in arguments)
    types = ', '.join(type for _, type in results)
    names = ', '.join(name for name, _ in results)
    return [f'func.func @{role}_{c}({given})' + (f' -> ({types})' if results else '') + f' attributes {{sched.step = #sched.step<{role}, chunk {c}>}} {{',
            *body, f'return {names} : {types}' if results else 'return', '}']


def load(name, of, type):
    return f'{name} = sched.load @{of} : {type}'


def chunk(c, chunks, position_of, own, micro_batches):
    """Returns the resources and functions of a chunk."""
    type, is_first, is_last = weight(c, chunks), c == 0, c == chunks - 1
    out = [resource(kind, f'{name}{c}', type, f'logical_name = "fc{c}.weight{suffix}", of = @{"m" if name == "m" else "w"}{c}')
           for kind, name, suffix in (('parameter', 'w', ''), ('gradient', 'g', ''), ('state', 'm', '/momentum_buffer'))]
    border = 'chunk = {c} : i64, peer = {peer} : i64'
    if is_first:
        out.append(resource('input', 'v0', VALUE, 'logical_name = "x"'))
    else:
        for kind, name in (('received', f'v{c}'), ('sent', f'd{c}')):
            out.append(resource(kind, name, VALUE, border.format(c=c, peer=c - 1)))
    if is_last:
        out.append(resource('input', 'y', LABELS, f'chunk = {c} : i64, logical_name = "y", train.vocabulary = {CLASSES} : i64'))
        out += [resource(kind, name, 'tensor<f32>') for kind, name in (('loss', 'loss'), ('evaluate', 'evaluated'))]
    else:
        for kind, name in (('sent', f'o{c}'), ('received', f'e{c}')):
            out.append(resource(kind, name, VALUE, border.format(c=c, peer=c + 1)))
    begin = [load('%v', f'v{c}', VALUE), load('%w', f'w{c}', type), product('%h', '%v', '%w', VALUE, type, LOGITS if is_last else VALUE)]
    if is_last:
        forward = begin + [load('%y', 'y', LABELS), *loss('%h'), f'%factor = train.constant dense<{1 / micro_batches}> : tensor<f32>',
                           '%share = train.mul %loss, %factor : tensor<f32>', 'sched.add_to @loss, %share : tensor<f32>']
        stash = [('%count', 'tensor<f32>'), ('%h', LOGITS), ('%log_sum', SUMS), ('%v', VALUE), ('%y', LABELS)]
        backward = [f'%factor = train.constant dense<{1 / micro_batches}> : tensor<f32>', '%per_label = train.div %factor, %count : tensor<f32>',
                    f'%dh = train.softmax_cross_entropy_grad %per_label, %h, %y, %log_sum ignore -100 : (tensor<f32>, {LOGITS}, {LABELS}, {SUMS}) -> {LOGITS}']
        evaluate = begin + [load('%y', 'y', LABELS), *loss('%h'), 'sched.store @evaluated, %loss : tensor<f32>']
    else:
        made = [f'%a = train.tanh %h : {VALUE}', f'sched.store @o{c}, %a : {VALUE}']
        forward, evaluate = begin + made, begin + made
        stash = [('%a', VALUE), ('%v', VALUE)]
        backward = [load('%d', f'e{c}', VALUE), f'%dh = train.tanh_grad %a, %d : {VALUE}']
    dh = LOGITS if is_last else VALUE
    if not is_first:
        backward += [load('%w', f'w{c}', type), product('%dv', '%dh', '%w', dh, type, VALUE, '[1] x [1]'), f'sched.store @d{c}, %dv : {VALUE}']
    backward += [product('%dw', '%v', '%dh', VALUE, dh, type, '[0] x [0]'), f'sched.add_to @g{c}, %dw : {type}']
    out += function('forward', c, (), forward, stash) + function('backward', c, stash, backward) + function('reduce', c, (), [])
    return out + function('update', c, (), update(c, own, type, chunks, sorted(set(position_of)))) + function('evaluate', c, (), evaluate)


def update(c, own, type, chunks, positions):
    """Returns the update of a chunk. The last chunk of a position updates first, and finds the norm of all gradients."""
    lines = []
    if c == own[-1]:
        for k in own:
            lines += [load(f'%g{k}', f'g{k}', weight(k, chunks)), f'%s{k} = train.square_sum %g{k} : {weight(k, chunks)} -> tensor<f32>']
        total = f'%s{own[0]}'
        for k in own[1:]:
            lines.append(f'%t{k} = train.add {total}, %s{k} : tensor<f32>')
            total = f'%t{k}'
        lines += [f'%all = sched.all_reduce sum {total} over [] and positions {positions} : (tensor<f32>) -> tensor<f32>', '%norm = train.sqrt %all : tensor<f32>',
                  'sched.store @norm, %norm : tensor<f32>']
    names = ('%w', '%m', '%g', '%learning_rate', '%momentum', '%weight_decay', '%one')
    types = (type, type, type, *['tensor<f32>'] * 4)
    return [*lines, load('%w', f'w{c}', type), load('%m', f'm{c}', type), load('%g', f'g{c}', type), *(load(f'%{name}', name, 'tensor<f32>') for name in HYPERPARAMETERS),
            '%one = train.constant dense<1.0> : tensor<f32>', f'%w1, %m1 = train.sgd {", ".join(names)} decays : ({", ".join(types)}) -> ({type}, {type})',
            f'sched.store @w{c}, %w1 : {type}', f'sched.store @m{c}, %m1 : {type}']
