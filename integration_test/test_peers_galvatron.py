"""Searches of Galvatron's and NEST's problems against all plans of small random ones, by what `evaluate` says of each."""

import itertools
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'benchmarks'))
import peer_galvatron
import peer_nest


def by_degree(value, *more):
    return {**{str(degree): value / degree for degree in (1, 2, 4)}, **dict(more)}


def make_case(draw, layers, micro_batches, samples, coarse):
    """A random case and profile for 4 GPUs, some with links so slow that gradients take longer than the passes."""
    sizes, slow, rate = ('1', '8', '64'), draw.choice((1, 100)), draw.choice((0.005, 0.1))
    collectives = {kind: {group: {size: draw.uniform(0.05, 0.1) + int(size) * rate for size in sizes} for group in ('2', '4')}
                   for kind in ('all_reduce', 'all_to_all')}
    ends = {stage: {'8192': {'model_states': by_degree(draw.uniform(200, 3000)), 'activation': by_degree(draw.uniform(50, 900))}}
            for stage in ('one_stage', 'first_stage', 'last_stage')}
    profile = {
        'forward_ms_one_sample': {'layer': {length: int(length) / 400 + draw.uniform(0, 5) for length in ('2048', '4096', '8192', '16384')},
                                  'embedding_and_head': {length: int(length) / 200 + draw.uniform(0, 9) for length in ('2048', '4096', '8192')}},
        'layer_memory_mb': {length: {'parameters': draw.uniform(300, 900), 'activation_per_sample_by_degree':
                                     by_degree(draw.uniform(200, 2000), ('checkpoint', draw.uniform(10, 90)))} for length in ('512', '8192')},
        'embedding_and_head_memory_mb': ends, 'overlap_slowdown': draw.uniform(1.05, 1.3),
        'all_reduce_mb_per_ms': {key: draw.uniform(20, 200) / slow for key in ('4 contiguous', '2 contiguous', '2 strided')},
        'p2p_mb_per_ms': {'2': draw.uniform(100, 300), '4': draw.uniform(100, 300)},
        'all_reduce_ms_by_group_and_mb': collectives['all_reduce'], 'all_to_all_ms_by_group_and_mb': collectives['all_to_all']}
    case = {**peer_galvatron.SETTINGS, 'search': 'one strategy for all layers' if coarse else 'per layer', 'micro_batches': micro_batches, 'layers': layers,
            'model': 'random (hidden 2048)', 'sequence': draw.choice((4096, 8192, 12288)), 'global_batch': micro_batches * samples, 'gpus': 4,
            'usable_mb': draw.randint(2500, 8000)}
    return case, profile


def all_plans(rules, coarse):
    for pipeline in rules.pipelines():
        strategies = list(rules.strategies(pipeline))
        stages = [itertools.combinations_with_replacement(strategies, count) for count in rules.stage_layers(pipeline)]
        for chosen in ([[strategy] * rules.layers] for strategy in strategies) if coarse else itertools.product(*stages):
            layers = [strategy for members in chosen for strategy in members]
            for ends in strategies:
                if not ends.checkpoint:
                    yield peer_galvatron.write_plan(pipeline, layers, ends)


class GalvatronTest(unittest.TestCase):
    def check(self, draw, layers, micro_batches, samples, coarse):
        """Returns whether a random case has a plan; the best one is proven in all cases drawn here."""
        case, profile = make_case(draw, layers, micro_batches, samples, coarse)
        rules = peer_galvatron.Rules(case, profile)
        found = [speed for speed, _, wrong in (peer_galvatron.add_up(rules, plan) for plan in all_plans(rules, coarse)) if not wrong]
        plan, speed, bound = peer_galvatron.search(case, profile)
        self.assertEqual(plan is not None, bool(found))
        if not found:
            return False
        self.assertEqual(peer_galvatron.evaluate(case, profile, plan)[::2], (speed, []))
        self.assertAlmostEqual(speed, max(found), delta=1e-12 * speed)
        self.assertAlmostEqual(bound, speed, delta=1e-12 * speed)
        return True

    def test_plans_are_the_best_of_all(self):
        draw = random.Random(1)
        shapes = {(3, 1, 2, False): 10, (2, 2, 2, False): 20, (3, 2, 2, False): 5, (4, 4, 2, False): 3, (4, 8, 1, False): 40, (6, 12, 1, False): 20,
                  (4, 12, 3, True): 20}
        for shape, count in shapes.items():
            with self.subTest(shape):
                self.assertGreater(sum(self.check(draw, *shape) for _ in range(count)), count / 4)

    def test_stages_are_joined_in_the_best_way(self):
        draw = random.Random(4)
        case, profile = make_case(draw, 4, 4, 1, False)
        for number in range(400):
            pipeline = draw.randint(1, 4)
            rules = peer_galvatron.Rules({**case, 'micro_batches': draw.randint(pipeline, 4 * pipeline)}, profile)
            options, stages = draw.randint(1, 4), []
            for index in range(pipeline):
                # Either the first stage is the fastest, or no exchange is exposed but that of the first stage.
                slowest = 20 if 0 < index < pipeline - 1 else 10
                without = [draw.uniform(5, 6) if number % 2 and not index else draw.uniform(6, slowest) for _ in range(options)]
                stages.append([peer_galvatron.Sums(0, each, each * draw.uniform(1, 9 if number % 2 else 1.2), None, None) for each in without])
            best, chosen = peer_galvatron.join_stages(rules, stages)
            steps = [rules.step_ms([each.without for each in sums], [each.exchanging for each in sums]) for sums in (chosen, *itertools.product(*stages))]
            self.assertAlmostEqual(best, steps[0])
            self.assertAlmostEqual(best, min(steps))

    def test_rules_by_hand(self):
        sizes = {'1': 800, '2': 400, '4': 200}, {'1': 10, '2': 5, '4': 2.5}
        profile = {
            'forward_ms_one_sample': {'layer': {'512': 10, '1024': 10, '2048': 10}, 'embedding_and_head': {'512': 4, '1024': 4, '2048': 4}},
            'layer_memory_mb': {'512': {'parameters': 100}, '1024': {'activation_per_sample_by_degree': {'1': 40, '2': 20, '4': 10, 'checkpoint': 8}}},
            'embedding_and_head_memory_mb': {stage: {'1024': dict(zip(('model_states', 'activation'), sizes))}
                                             for stage in ('one_stage', 'first_stage', 'last_stage')},
            'all_reduce_mb_per_ms': {'2 contiguous': 100, '2 strided': 70, '4 contiguous': 50}, 'p2p_mb_per_ms': {'2': 80}, 'overlap_slowdown': 1.25,
            'all_reduce_ms_by_group_and_mb': {'2': {'4': 0.6, '8': 1}}, 'all_to_all_ms_by_group_and_mb': {'2': {'2': 0.25, '4': 0.5}}}
        case = {**peer_galvatron.SETTINGS, 'search': 'per layer', 'micro_batches': 2, 'layers': 2, 'model': '(hidden 1024)', 'sequence': 1024,
                'global_batch': 4, 'gpus': 4, 'usable_mb': 2000}
        for pipeline, strategy, step, megabytes in (
                # 30 + 0.05 ms a layer and 6 for an end, three times; 363 or 323 MB a layer, 1610 or 1600 an end.
                (2, peer_galvatron.Strategy(1, 1, 2, 2, False), 3 * 36.05, [1973, 1923]),
                # 40 + 2.7 + 0.1 ms a layer and 6 + 0.3 an end; 216 or 208 MB a layer, 1444 or 1434 an end, and a buffer of 4.
                (2, peer_galvatron.Strategy(2, 1, 1, 0, True), 3 * 49.1, [1664, 1646]),
                # 15 + 0.75 + 1 ms a layer, 2.15 + 4.15 both ends; 147 MB a layer, 1282 both ends.
                (1, peer_galvatron.Strategy(1, 2, 2, 3, False), 2 * 39.8, [1576])):
            with self.subTest(strategy):
                plan = peer_galvatron.write_plan(pipeline, [strategy] * 2, strategy)
                speed, memory, wrong = peer_galvatron.evaluate(case, profile, plan)
                self.assertEqual((memory, wrong), (megabytes, []))
                self.assertAlmostEqual(speed, 4e3 / step)

    def test_plans_that_break_rules_are_told(self):
        draw = random.Random(2)
        case, profile = make_case(draw, 4, 4, 1, False)
        plan, speed, _ = peer_galvatron.search({**case, 'usable_mb': 100000}, profile)
        self.assertGreater(speed, 0)
        run = plan['strategies'][0]
        for said, broken in {
                'stages are not possible': {**plan, 'pipeline': 3}, 'a layer has no strategy': {**plan, 'strategies': plan['strategies'] + [run]},
                'one that is not possible': {**plan, 'strategies': [{**run, 'layers': 4, 'zero': 3}]}}.items():
            with self.subTest(said):
                self.assertIn(said, peer_galvatron.evaluate(case, profile, broken)[2][0])
        self.assertIn('takes', peer_galvatron.evaluate({**case, 'usable_mb': 1000}, profile, plan)[2][0])
        with self.assertRaisesRegex(ValueError, 'schedule'):
            peer_galvatron.evaluate({**case, 'schedule': 'GPipe'}, profile, plan)


def make_problem(draw):
    """A random problem of up to 5 layers on 8 or 12 devices, with hops and exchanges that count; in some problems not every layer fits without ZeRO."""
    count, devices = draw.randint(2, 5), draw.choice((8, 12))
    layers = {degree: [{'forward': draw.randint(1, 9) / degree, 'backward': draw.randint(1, 9) / degree, 'parameters': draw.randint(1, 30),
                        'activations': draw.randint(1, 30), 'input': draw.randint(1, 20) if index else 0} for index in range(count)] for degree in (1, 2)}
    return {'layers': layers, 'devices': devices, 'expert_parallel': draw.randint(1, 2), 'micro_batches': draw.randint(3, 20),
            'recompute': draw.choice(([False], [True], [False, True])), 'memory': draw.randint(70, 240), 'bandwidth': [draw.uniform(5, 50) for _ in range(3)],
            'latency': [0.1, 0.2, 0.3], 'groups': [2, 2, devices // 4]}


def compositions(count):
    """All lists of positive numbers with this sum."""
    for cuts in itertools.product((False, True), repeat=count - 1):
        borders = [0] + [at for at, cut in enumerate(cuts, 1) if cut] + [count]
        yield [end - begin for begin, end in itertools.pairwise(borders)]


class NestTest(unittest.TestCase):
    def test_plans_are_the_best_of_all(self):
        draw, infeasible, sharded = random.Random(3), 0, 0
        for _ in range(40):
            problem, found = make_problem(draw), []
            for degree, layers in problem['layers'].items():
                zeros = [(0, 1)] + [(stage, ranks) for stage in (1, 2, 3) for ranks in (2, 4, 8)]
                for cut, pipelines, recompute, zero in itertools.product(compositions(len(layers)), range(1, problem['devices'] + 1), (False, True), zeros):
                    value, _, wrong = peer_nest.evaluate(problem, {'pipelines': pipelines, 'tensor_parallel': degree, 'recompute': recompute,
                                                                   'zero_stage': zero[0], 'zero_ranks': zero[1], 'stages': cut})
                    found += [] if wrong else [value]
            plan, least = peer_nest.search(problem)
            self.assertEqual(plan is not None, bool(found))
            infeasible += not found
            if found:
                value, _, wrong = peer_nest.evaluate(problem, plan)
                self.assertEqual(wrong, [])
                self.assertAlmostEqual(value, min(found), delta=1e-9 * value)
                self.assertAlmostEqual(value, least, delta=1e-9 * value)
                sharded += plan['zero_stage'] > 0
        self.assertIn(infeasible, range(1, 20))
        self.assertIn(sharded, range(1, 30))


if __name__ == '__main__':
    unittest.main()
