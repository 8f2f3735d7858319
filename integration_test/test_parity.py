"""Compares training with PyTorch's stored answers: prepares the model's folder and hands over to parity.py.

    test_parity.py MODEL [arguments of parity.py]
"""

import subprocess
import sys
import tempfile

import common

with tempfile.TemporaryDirectory(prefix='windlass-test-') as scratch:
    model = common.prepared(sys.argv[1], scratch)
    command = [sys.executable, common.ROOT / 'integration_test' / 'parity.py', '--windlass', common.WINDLASS, '--model', model, *sys.argv[2:]]
    sys.exit(subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL).returncode)
