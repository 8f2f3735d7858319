"""What steps of GPT-2 on one GPU should take by the rooflines of their kernels does not get worse unseen."""

import re
import sys

import common

# Tokens per second on an H200 by benchmarks/rooflines: one percent less than what it prints.
LEAST = {('124m', 16): 558_000, ('124m', 64): 591_000, ('1558m', 8): 52_600, ('1558m', 16): 56_200}
# Commands of a step: each is a launch, or a few.
MOST_COMMANDS = {'124m': 340, '1558m': 1500}


class RooflinesTest(common.Case):
    def test_steps_take_no_longer(self):
        done = common.run([sys.executable, '-B', common.ROOT / 'benchmarks' / 'rooflines', '--details'], timeout=600)
        self.assertEqual(done.code, 0, done.err)
        print(done.out, end='')
        rows = re.findall(r'^(\w+) +(\d+) +(\d+) +[\d.]+ ms +(\d+)/s', done.out, re.M)
        self.assertEqual([(name, int(batch)) for name, batch, *_ in rows], list(LEAST))
        for name, batch, commands, rate in rows:
            with self.subTest(name, batch=batch):
                self.assertGreaterEqual(int(rate), LEAST[name, int(batch)])
                self.assertLessEqual(int(commands), MOST_COMMANDS[name])


common.main()
